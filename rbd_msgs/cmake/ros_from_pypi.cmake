# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
#
# Lets this package build against the ROS 2 wheels of PyPI. With an installed ROS, whose environment
# says where it is and whose targets name no foreign directory, it changes nothing.

if(NOT DEFINED ENV{AMENT_PREFIX_PATH})
  # <prefix>/lib/pythonX.Y/site-packages/ament_package
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -c
      "import pathlib, ament_package as a; print(pathlib.Path(a.__file__).parents[4].as_posix())"
    OUTPUT_VARIABLE rbd_ros_prefix OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE rbd_not_found)
  if(rbd_not_found)
    message(FATAL_ERROR "ROS 2 was not found. Source its setup file, or build with `make setup`.")
  endif()
  set(ENV{AMENT_PREFIX_PATH} "${rbd_ros_prefix}")
  list(PREPEND CMAKE_PREFIX_PATH "${rbd_ros_prefix}")
endif()

# The targets that the wheels export name a directory of headers of the machine that built them,
# which CMake refuses to use. It is not needed, and is dropped once all targets are known.
function(rbd_drop_missing_include_directories)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(directories ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(directories MATCHES "/opt/python/")
      list(FILTER directories EXCLUDE REGEX "^/opt/python/")
      set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${directories}")
    endif()
  endforeach()
endfunction()
cmake_language(DEFER CALL rbd_drop_missing_include_directories)

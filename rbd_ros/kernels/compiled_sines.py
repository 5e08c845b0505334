# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
How cosines and sines of several angles at once are compiled.

What it gains: one by one they took a fifth of the time of inverse dynamics. glibc has them for
four and for eight angles at a time, in its library of vector functions, libmvec, to 4 units in the
last place.
What guards it: the library has to load, on a processor with AVX2 or AVX-512 that kernels are
compiled for; otherwise they are computed one by one.
What breaks it: another processor, another C library. Results then differ in the last place.

"""

import math
import platform

from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload
from rbd_ros.kernels.compiled_lanes import Lanes, lanes, vector_of
from rbd_ros.kernels.lanes import WIDTH
from rbd_ros.kernels.sines import cosine_and_sine, cosines_and_sines

# How libmvec names its functions for registers of that many numbers.
PREFIXES = {4: '_ZGVdN4v_', 8: '_ZGVeN8v_'}
# Of one state there are few angles: longer registers, which are slower at first, don't pay.
OF_ONE_STATE = min(WIDTH, 4)


def has_vector_library():
    """Return whether libmvec is here, and kernels are compiled for a processor that it knows."""
    if platform.machine() != 'x86_64':
        return False
    try:
        # In any case: a kernel from the cache may need it.
        binding.load_library_permanently('libmvec.so.1')
    except RuntimeError:
        return False
    return WIDTH in PREFIXES and bool(binding.get_host_cpu_features().get('avx2'))


VECTOR_LIBRARY = has_vector_library()


def of_register(builder, name, angles):
    """Return the cosines or sines of the angles in a register."""
    width = angles.type.count
    if VECTOR_LIBRARY:
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(angles.type, [angles.type]), PREFIXES[width] + name)
        return builder.call(function, [angles])
    found, function = angles, builder.module.declare_intrinsic(f'llvm.{name}', [ir.DoubleType()])
    for lane in range(width):
        place = ir.Constant(ir.IntType(32), lane)
        found = builder.insert_element(
            found, builder.call(function, [builder.extract_element(angles, place)]), place)
    return found


@intrinsic
def replace_angles(typing_context, array, first, count):
    """Do what `cosines_and_sines` does."""
    def generate(context, builder, signature, arguments):
        view = context.make_array(array)(context, builder, arguments[0])
        first, count = arguments[1:]
        step = ir.Constant(count.type, OF_ONE_STATE)
        if array.ndim == 2:
            step = ir.Constant(count.type, WIDTH)
            first, count = builder.mul(first, step), builder.mul(count, step)
        zero = ir.Constant(step.type, 0)
        with cgutils.for_range_slice(builder, zero, count, step) as (k, _):
            place = builder.gep(view.data, [builder.add(first, k)])
            places = [builder.bitcast(x, vector_of(step.constant).as_pointer())
                      for x in (place, builder.gep(place, [count]))]
            angles = builder.load(places[0], align=8)
            for name, where in zip(('cos', 'sin'), places):
                builder.store(of_register(builder, name, angles), where, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate


@overload(cosines_and_sines)
def _cosines_and_sines(array, first, count):
    return lambda array, first, count: replace_angles(array, first, count)


@intrinsic
def of_lanes(typing_context, angles):
    """Return cosines and sines of lanes."""
    pair = types.UniTuple(lanes, 2)

    def generate(context, builder, signature, arguments):
        return context.make_tuple(builder, pair, [
            of_register(builder, name, arguments[0]) for name in ('cos', 'sin')])
    return pair(lanes), generate


@overload(cosine_and_sine)
def _cosine_and_sine(angle):
    if isinstance(angle, Lanes):
        return lambda angle: of_lanes(angle)
    return lambda angle: (math.cos(angle), math.sin(angle))

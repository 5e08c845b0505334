#!/usr/bin/env bash
# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
#
# Build both packages and install them below a folder, with compiled kernels: what the Dockerfile
# does once apt has brought ROS 2 and the other packages.
#
#     docker/install.sh /opt/rbd_ros
set -euo pipefail
prefix=$1
source=$(cd "$(dirname "$0")/.." && pwd)

# numba in an environment of its own, which sees the packages of the system. NumPy must stay that
# of the system: the messages of ROS are compiled for it.
python3 -m venv --system-site-packages "$prefix/venv"
numpy=$("$prefix/venv/bin/python" -c 'import numpy; print(numpy.__version__)')
"$prefix/venv/bin/python" -m pip install --no-cache-dir --disable-pip-version-check \
    numba "numpy==$numpy"

if [ -n "${ROS_DISTRO:-}" ]; then
    set +u
    # shellcheck source=/dev/null
    source "/opt/ros/$ROS_DISTRO/setup.bash"
    set -u
fi
build=$(mktemp -d)
(cd "$build" && colcon build --merge-install --base-paths "$source" "$source/rbd_msgs" \
    --install-base "$prefix/install")
rm -rf "$build"

install --mode=755 "$source/docker/entrypoint.sh" "$prefix/entrypoint.sh"
# Programs are started by their names; kernels are compiled into $NUMBA_CACHE_DIR.
"$prefix/entrypoint.sh" rbd_ros warmup

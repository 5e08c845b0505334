#!/usr/bin/env bash
# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
#
# Run a program of rbd_ros, or any other, as the process that gets the signals.
set -e
prefix=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=/dev/null
source "$prefix/install/setup.bash"
# Programs run in the Python that comes first: that with numba.
export PATH="$prefix/venv/bin:$prefix/install/lib/rbd_ros:$PATH"
exec "$@"

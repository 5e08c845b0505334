# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Measure whether the viewer slows the dynamics node.

States are published at 500 Hz, as in benchmark/node.py, in turns without a viewer, with an open
page while the viewer runs on another core, and on the core of the node; and with an endless loop
of the lowest priority on the core of the node, the cost of any other process. Measured are the
latency of the node, the viewer's share of a core while the page is open, and its messages to the
page. The page is a program that receives the same data as a browser, on the other core, since a
browser usually runs on another machine.

"""

import asyncio
import itertools
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
from threading import Thread
from time import monotonic

import node
import numpy as np
import psutil
from timing import gauge, options, save

RATE = 500
# The first message of a browser: its camera pose.
CAMERA = {
    'type': 'ViewerCameraMessage', 'wxyz': (1.0, 0.0, 0.0, 0.0), 'position': (1.0, 1.0, 1.0),
    'fov': 1.0, 'near': 0.01, 'far': 100.0, 'image_height': 600, 'image_width': 800,
    'look_at': (0.0, 0.0, 0.0), 'up_direction': (0.0, 0.0, 1.0)}


def look(url, core, messages):
    """Receive all messages to a page, and count them."""
    import msgspec
    import viser
    import websockets

    async def read():
        async with websockets.connect(url.replace('http', 'ws'), origin=url, max_size=None,
                                      subprotocols=[f'viser-v{viser.__version__}']) as socket:
            await socket.send(msgspec.msgpack.encode(CAMERA))
            async for _ in socket:
                messages.value += 1

    os.sched_setaffinity(0, {core})
    asyncio.run(read())


def run_beside_loop(seconds):
    """Return the results of benchmark/node.py next to a loop that yields to all others."""
    loop = subprocess.Popen([sys.executable, '-c', 'while True: pass'])
    try:
        os.sched_setscheduler(loop.pid, os.SCHED_IDLE, os.sched_param(0))
        return run_alone(seconds)
    finally:
        loop.kill()
        loop.wait()


def run_alone(seconds):
    """Return the results of benchmark/node.py."""
    from robots import DEMO_ARM
    return node.run('rbd_ros', str(DEMO_ARM), 'tool', 'events', RATE, seconds)


def run_viewed(seconds, cores, core):
    """Return the results of benchmark/node.py, and the cost of a viewer on a core."""
    viewer = subprocess.Popen([sys.executable, '-m', 'rbd_ros.ros.nodes', 'viewer', '--ros-args',
                               '-p', 'port:=0'], stderr=subprocess.PIPE, text=True)
    os.sched_setaffinity(viewer.pid, {core})
    messages, watched = multiprocessing.Value('i', 0), psutil.Process(viewer.pid)
    pages, opened = [], []

    def reading():
        return monotonic(), sum(watched.cpu_times()[:2]), messages.value

    def open_page():
        for line in viewer.stderr:
            found = re.search(r'shown at (\S+)', line)
            if found:
                pages.append(multiprocessing.Process(target=look, args=(
                    found.group(1), cores[-1], messages)))
                pages[0].start()
                opened.append(reading())

    reader = Thread(target=open_page, daemon=True)
    reader.start()
    try:
        row = run_alone(seconds)
        time, cpu, count = np.subtract(reading(), opened[0])
        return {**row, 'viewer CPU %': 100.0 * cpu / time, 'messages/s': count / time}
    finally:
        for page in pages:
            page.terminate()
        viewer.terminate()
        viewer.wait()


def main():
    """Measure, print and save."""
    from domain_coordinator import domain_id
    parser = options(__doc__)
    parser.add_argument('--seconds', type=float, default=10.0, help='of each measurement, s')
    parser.add_argument('--rounds', type=int, default=5, help='rounds of all cases in turns')
    chosen = parser.parse_args()
    multiprocessing.set_start_method('spawn')
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:1])
    seconds = 2.0 if chosen.quick else chosen.seconds
    cases = {
        'no viewer': lambda: run_alone(seconds),
        'viewer on another core': lambda: run_viewed(seconds, cores, cores[-1]),
        'viewer on the same core': lambda: run_viewed(seconds, cores, cores[0]),
        'loop on the same core': lambda: run_beside_loop(seconds)}
    rows = []
    for _, (name, measure) in itertools.product(range(1 if chosen.quick else chosen.rounds),
                                                cases.items()):
        gauge.wait_for_calm()
        with domain_id() as domain:
            os.environ.update(ROS_DOMAIN_ID=str(domain),
                              ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
            row = {'case': name, **measure()}
        rows.append(row)
        print(', '.join(f'{label} {x:.2f}' if isinstance(x, float) else f'{label} {x}'
                        for label, x in row.items()), flush=True)
    for name in cases:
        found = [row['p99 ms'] for row in rows if row['case'] == name]
        print(f'{name}: p99 {statistics.median(found):.2f} ms, '
              f'from {min(found):.2f} to {max(found):.2f} ms')
    save('view', chosen.quick, {'seconds': seconds, 'rows': rows})


if __name__ == '__main__':
    main()

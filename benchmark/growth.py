# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time chains and balanced binary trees of 2 ... 1,000 joints, and fit the growth of the times.

The expected growth is that of the number of steps in the same range: a recursion visits every
joint; M, C and the derivatives of inverse dynamics have an entry per joint and supporting joint;
the derivatives of forward dynamics apply the factor of M, which has as many entries, to each of
3 n columns. Times are those of the fastest round: sizes are measured one after the other, so a
disturbance would bend the curve.

Also measured are loading, and the node: from a joint state to the last of its messages, without
markers, with a subscriber of every topic in the same process. Its matrices are dense, so their
number of entries is expected, and that of the middleware's bytes.

"""

from contextlib import contextmanager
from functools import partial
import os
from tempfile import TemporaryDirectory
from warnings import catch_warnings, simplefilter

from domain_coordinator import domain_id
import numpy as np
import rbd_ros
from rbd_ros import load_urdf_string, ModelBuilder, save_urdf, Workspace
from timing import one_core, options, save, take_turns

SIZES = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
# The exponents are fitted from here on.
LARGE = 100
PARENTS = {'chain': lambda k: k - 1, 'tree': lambda k: (k - 1) // 2}


def build(shape, n):
    """Return a chain or a balanced binary tree of n revolute joints."""
    rng = np.random.default_rng(0)
    builder = ModelBuilder(f'{shape} of {n}').link('link0')
    for k in range(1, n + 1):
        parent = PARENTS[shape](k)
        builder.link(f'link{k}', mass=1.0, com=(0.0, 0.0, 0.05), inertia=(0.01, 0.01, 0.005))
        builder.joint(f'joint{k}', 'revolute', f'link{parent}', f'link{k}', xyz=(0.0, 0.0, 0.1),
                      axis=rng.normal(size=3))
    return builder.build()


def carried(shape, n):
    """Return the number of pairs of a joint and a joint that supports it, itself included."""
    depth = [0]
    for k in range(1, n + 1):
        depth.append(depth[PARENTS[shape](k)] + 1)
    return sum(depth)


# For every function the steps for n joints with so many pairs.
STEPS = {'load': lambda n, pairs: n,
         'inverse dynamics': lambda n, pairs: n,
         'forward dynamics': lambda n, pairs: n,
         'mass matrix': lambda n, pairs: pairs,
         'all terms': lambda n, pairs: pairs,
         'derivatives of inverse dynamics': lambda n, pairs: pairs,
         'derivatives of forward dynamics': lambda n, pairs: n * pairs,
         'node': lambda n, pairs: n * n}


def exponent(sizes, values):
    """Return the slope of the line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def urdf_of(model):
    """Return the description of a robot."""
    with TemporaryDirectory() as folder:
        path = os.path.join(folder, 'robot.urdf')
        save_urdf(model, path)
        with open(path) as file:
            return file.read()


@contextmanager
def node_of(text):
    """Start a node for a robot, and yield it with a subscriber of all of its topics."""
    from node import listen_to_all
    from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
    import rclpy
    from rclpy.parameter import Parameter

    rclpy.init(args=['--ros-args', '--log-level', 'error'])
    node = DynamicsNode(parameter_overrides=[Parameter('robot_description', value=text),
                                             Parameter('marker_rate', value=0.0)])
    sink = rclpy.create_node('sink')
    while not listen_to_all(sink):
        pass
    yield node
    node.destroy_node()
    sink.destroy_node()
    rclpy.try_shutdown()


def state_message(model, q, v):
    """Return a serialized joint state without a stamp."""
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import JointState
    return bytes(serialize_message(JointState(
        name=list(model.velocity_names), position=q.tolist(), velocity=v.tolist())))


def calls(model, text, node):
    """Return the timed calls."""
    w, rng = Workspace(model), np.random.default_rng(1)
    q, v, a = rng.uniform(-1.0, 1.0, model.nv), *rng.normal(scale=0.1, size=(2, model.nv))
    tau = w.inverse_dynamics(q, v, a).copy()
    answer = partial(node.listening.all['joint_states'].callback, state_message(model, q, v))
    return {'load': lambda: load_urdf_string(text),
            'inverse dynamics': lambda: w.inverse_dynamics(q, v, a),
            'forward dynamics': lambda: w.forward_dynamics(q, v, tau),
            'mass matrix': lambda: w.mass_matrix(q),
            'all terms': lambda: w.all_terms(q, v),
            'derivatives of inverse dynamics': lambda: w.inverse_dynamics_derivatives(q, v, a),
            'derivatives of forward dynamics': lambda: w.forward_dynamics_derivatives(q, v, tau),
            'node': answer}


def main():
    """Measure, print and save."""
    quick = options(__doc__).parse_args().quick
    results = {}
    # A network of its own
    with domain_id() as domain, one_core(), catch_warnings():
        simplefilter('ignore', rbd_ros.ModelWarning)
        os.environ.update(ROS_DOMAIN_ID=str(domain), ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
        for shape in PARENTS:
            us = {function: [] for function in STEPS}
            for n in SIZES:
                model = build(shape, n)
                text = urdf_of(model)
                with node_of(text) as node:
                    for function, call in calls(model, text, node).items():
                        # The fastest of few rounds.
                        t, = take_turns({function: call}, quick=True).values()
                        us[function].append(1e6 * float(np.min(t)))
                print(f'{shape} {n:5d}', *(f'{function} {t[-1]:.1f} us' for function, t
                                           in us.items()), sep='  ', flush=True)
            large = [k for k, n in enumerate(SIZES) if n >= LARGE]
            sizes = [SIZES[k] for k in large]
            results[shape] = {
                function: {'us': t,
                           'exponent': exponent(sizes, [t[k] for k in large]),
                           'expected': exponent(sizes, [STEPS[function](n, carried(shape, n))
                                                        for n in sizes])}
                for function, t in us.items()}
            for function, row in results[shape].items():
                print(f'{shape} {function}: n^{row["exponent"]:.2f}, '
                      f'expected n^{row["expected"]:.2f}')
    save('growth', quick, {'sizes': SIZES, 'fitted from': LARGE, 'shapes': results})


if __name__ == '__main__':
    main()

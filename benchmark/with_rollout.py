# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
MuJoCo's dynamics of many states: a rollout of one step from each, in threads.

A step is forward dynamics and an integration, from whose result the accelerations are computed.

"""

import mujoco as mj
from mujoco.rollout import Rollout
import numpy as np
import with_mujoco


def forward_dynamics(robot, threads, Q, V, Tau):
    """Return the timed call, and a function that returns its accelerations; fixed base."""
    m = with_mujoco.build(robot)
    # With a step of 1 s, velocities change by the accelerations.
    m.opt.timestep = 1.0
    joints = [(m.joint(joint.name), of_q.start, of_v.start)
              for joint, of_q, of_v in robot.model.moving_joints]
    there = np.array([joint.dofadr[0] for joint, _, _ in joints])
    states = np.zeros((len(Q), mj.mj_stateSize(m, mj.mjtState.mjSTATE_FULLPHYSICS)))
    q, v = states[:, 1:1 + m.nq], states[:, 1 + m.nq:1 + m.nq + m.nv]
    torques = np.zeros((len(Q), 1, m.nv))
    for joint, k, row in joints:
        q[:, joint.qposadr[0]] = Q[:, k]
        v[:, joint.dofadr[0]] = V[:, row]
        torques[:, 0, joint.dofadr[0]] = Tau[:, row]
    found, sensors = np.zeros((len(Q), 1, states.shape[1])), np.zeros((len(Q), 1, 0))
    pool, data = Rollout(nthread=threads), [mj.MjData(m) for _ in range(threads)]

    def call():
        pool.rollout(m, data, states, torques, nstep=1, state=found, sensordata=sensors,
                     control_spec=mj.mjtState.mjSTATE_QFRC_APPLIED.value)

    def accelerations():
        call()
        return (found[:, 0, 1 + m.nq:1 + m.nq + m.nv] - v)[:, there]

    return call, accelerations

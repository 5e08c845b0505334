# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Policy gradient with PyTorch: a network learns to bring the tool of an arm to any goal.

The loss is differentiated through a simulation of many arms at once: the gradient of each step is
that of `rbd_ros.torch`.

"""

import pathlib

import rbd_ros

try:
    import torch
except ModuleNotFoundError:
    raise SystemExit('this example needs PyTorch: pip install torch') from None
import rbd_ros.torch as rbd_torch

URDF = pathlib.Path(__file__).parents[1] / 'urdf' / 'demo_arm.urdf'
# s; steps of a motion; motions that are simulated together; steps of learning
h, STEPS, ARMS, ROUNDS = 0.04, 25, 64, 60

arm = rbd_ros.load_urdf(URDF)
arm = rbd_ros.with_armature(arm, dict.fromkeys(arm.velocity_names, 0.1))
START = torch.tensor((0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0), dtype=torch.float64)
acceleration, gravity = rbd_torch.forward_dynamics(arm), rbd_torch.gravity_torques(arm)
pose, limit = rbd_torch.forward_kinematics(arm, 'tool'), torch.tensor(arm.effort_limit)


def miss(policy, goals):
    """Return the mean distance of the tools from their goals, m, during the second half."""
    q, v = START.expand(len(goals), -1), torch.zeros(len(goals), arm.nv, dtype=torch.float64)
    total = 0.0
    for step in range(STEPS):
        u = torch.tanh(policy(torch.cat((q, v, goals), -1)))
        tau = gravity(q) + 0.1 * limit * u - v
        v = v + h * acceleration(q, v, tau)
        q = q + h * v
        if step >= STEPS // 2:
            total = total + torch.linalg.norm(pose(q)[:, :3, 3] - goals, dim=-1).mean()
    return total / (STEPS - STEPS // 2)


def random_goals(count):
    """Return goals around the place of the tool at the start, m."""
    return pose(START)[:3, 3] + 0.4 * (torch.rand(count, 3, dtype=torch.float64) - 0.5)


def main():
    """Print how far tools are from goals that were not learnt, before and after learning."""
    torch.manual_seed(0)
    torch.set_num_threads(1)    # more of them wait for each other, with matrices this small
    policy = torch.nn.Sequential(
        torch.nn.Linear(arm.nq + arm.nv + 3, 64), torch.nn.Tanh(),
        torch.nn.Linear(64, arm.nv)).double()
    optimizer, test = torch.optim.Adam(policy.parameters(), lr=1e-2), random_goals(200)
    before = miss(policy, test).item()
    for _ in range(ROUNDS):
        optimizer.zero_grad()
        miss(policy, random_goals(ARMS)).backward()
        optimizer.step()
    after = miss(policy, test).item()
    print(f'distance from the goal: {before:.3f} m before learning, {after:.3f} m after')
    return before, after


if __name__ == '__main__':
    main()

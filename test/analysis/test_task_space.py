# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The dynamics of a link: Lynch and Park section 9.6, redundant arms and singular poses."""

from dataclasses import replace
from itertools import pairwise

from covering import seeds
import numpy as np
import pytest
import rbd_ros
from rbd_ros.analysis.task_space import characteristic_length, task_space_dynamics
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.joints import KINDS, Mimic
from rbd_ros.model.positions.configurations import integrate, random_configuration
from rbd_ros.model.se3 import Ad, ad, inverse, pose
from rbd_ros.textbook import sums_over_links
from robots import example_urdf, load_quietly, random_tree, relative_error

# Rounding times the condition number of Lambda, up to 1e6 where it is not damped.
EXACT = 1e-9
# Central differences with the step 1e-6.
STEP, DIFFERENCES = 1e-6, 1e-6
STATES = 50
FRAMES = ['body', 'world-aligned']


@pytest.fixture(scope='module')
def ur5():
    """Return an arm with six joints."""
    return load_quietly(example_urdf('ur5_robot.urdf'))


@pytest.fixture(scope='module', params=[('ur5_robot.urdf', 'tool0'), ('panda.urdf', 'panda_hand'),
                                        ('talos_reduced.urdf', 'gripper_left_base_link')])
def arm(request):
    """Return a robot with at least six joints, and the link of interest."""
    name, link = request.param
    return load_quietly(example_urdf(name)), link


def random_state(model, seed):
    """Return a random q, v and tau."""
    rng = np.random.default_rng(seed)
    q = random_configuration(model, rng)
    return q, rng.normal(size=model.nv), rng.normal(scale=10.0, size=model.nv)


def regular_states(model, link, frame='body', count=STATES):
    """Yield states in which the Jacobian is well conditioned, with the task's dynamics."""
    found = seed = 0
    while found < count:
        q, v, tau = random_state(model, seed)
        task = task_space_dynamics(model, q, v, link, frame=frame)
        # Of J alone; that of Lambda is up to its square times that of M.
        if task.condition < 100.0:
            assert not task.damped
            found += 1
            yield q, v, tau, task
        seed += 1


def body_twist_rate(model, q, v, a, link, frame):
    """Return the derivative of a link's twist, by differences along the motion."""
    k = model.link_index(link)

    def twist(t):
        q_t, v_t = integrate(model, q, v + 0.5 * t * a, t), v + t * a
        V = rbd_ros.body_jacobian(model, q_t, link) @ v_t
        R = rbd_ros.forward_kinematics(model, q_t)[k, :3, :3]
        return V if frame == 'body' else np.concatenate((R @ V[:3], R @ V[3:]))

    return (twist(STEP) - twist(-STEP)) / (2 * STEP)


@pytest.mark.parametrize('frame', FRAMES)
def test_task_jacobian_and_its_rate_give_the_acceleration_of_the_link(arm, frame):
    model, link = arm
    for q, v, a, task in regular_states(model, link, frame, 10):
        assert relative_error(task.J @ a + task.J_dot @ v,
                              body_twist_rate(model, q, v, a, link, frame)) < DIFFERENCES


def test_square_arms_have_the_formulas_of_lynch_and_park(ur5):
    for q, v, _, task in regular_states(ur5, 'tool0'):
        M, b = rbd_ros.mass_matrix(ur5, q), rbd_ros.bias_torques(ur5, q, v)
        J_inv = np.linalg.inv(task.J)
        Lambda = J_inv.T @ M @ J_inv                                       # (9.98)
        eta = J_inv.T @ b - Lambda @ task.J_dot @ J_inv @ (task.J @ v)    # (9.99)
        assert relative_error(task.Lambda, Lambda) < EXACT
        assert relative_error(task.eta, eta) < EXACT
        assert relative_error(task.J_bar, J_inv) < EXACT
        assert np.max(np.abs(task.null_projector)) < EXACT


@pytest.mark.parametrize('frame', FRAMES)
def test_link_accelerates_by_its_task_space_equation_of_motion(arm, frame):
    model, link = arm
    for q, v, tau, task in regular_states(model, link, frame):
        a = rbd_ros.forward_dynamics(model, q, v, tau)
        Vdot = task.J @ a + task.J_dot @ v
        assert relative_error(task.Lambda @ Vdot + task.eta, task.J_bar.T @ tau) < EXACT


@pytest.mark.parametrize('frame', FRAMES)
def test_wrench_on_the_link_accelerates_it_by_lambda(arm, frame):
    # Lynch and Park, text after (9.99): no torques, a force from outside.
    model, link = arm
    rng = np.random.default_rng(0)
    k = model.link_index(link)
    for q, v, _, task in regular_states(model, link, frame):
        F = rng.normal(scale=20.0, size=6)
        R = rbd_ros.forward_kinematics(model, q)[k, :3, :3]
        body = F if frame == 'body' else np.concatenate((R.T @ F[:3], R.T @ F[3:]))
        a = rbd_ros.forward_dynamics(model, q, v, np.zeros(model.nv),
                                     external_wrenches={link: body})
        assert relative_error(task.Lambda @ (task.J @ a + task.J_dot @ v) + task.eta, F) < EXACT


def test_lambda_changes_frames_by_adjoints(arm):
    model, link = arm
    k = model.link_index(link)
    for q, v, _, task in regular_states(model, link):
        T = rbd_ros.forward_kinematics(model, q)[k]
        spatial = Ad(T) @ task.J
        Lambda = np.linalg.inv(spatial @ np.linalg.solve(rbd_ros.mass_matrix(model, q), spatial.T))
        B = Ad(inverse(T))
        assert relative_error(B.T @ task.Lambda @ B, Lambda) < EXACT
        aligned = task_space_dynamics(model, q, v, link, frame='world-aligned')
        B = Ad(pose(T[:3, :3].T, np.zeros(3)))
        assert relative_error(aligned.Lambda, B.T @ task.Lambda @ B) < EXACT
        assert relative_error(task.condition, aligned.condition) < EXACT


def test_null_space_motions_leave_the_link_at_rest():
    model = load_quietly(example_urdf('panda.urdf'))
    for q, v, tau, task in regular_states(model, 'panda_hand'):
        N = task.null_projector
        assert np.linalg.matrix_rank(N, tol=1e-6) == model.nv - 6
        assert relative_error(N @ N, N) < EXACT
        assert np.max(np.abs(task.J @ N)) < EXACT
        # Torques of the null space accelerate the robot, but not the link.
        push = rbd_ros.forward_dynamics(model, q, v, N.T @ tau) - rbd_ros.forward_dynamics(
            model, q, v, np.zeros(model.nv))
        assert np.max(np.abs(task.J @ push)) < EXACT * np.max(np.abs(push))
        # Of all motions with the same twist, J_bar V has the least kinetic energy.
        M, least = rbd_ros.mass_matrix(model, q), task.J_bar @ (task.J @ v)
        assert abs(least @ M @ (v - least)) < EXACT * (v @ M @ v)


def closed_form(model, q, v, link, frame, limit):
    """Return Lambda, eta, J_bar and the condition by the definition, with NumPy's SVD."""
    M, b = rbd_ros.mass_matrix(model, q), rbd_ros.bias_torques(model, q, v)
    k, length = model.link_index(link), characteristic_length(model, link)
    J, J_rate = (rows[k] for rows in sums_over_links.body_jacobian_rates(model, q, v))
    if frame == 'world-aligned':
        R = sums_over_links.poses(model, q)[k, :3, :3]
        turn = Ad(pose(R, np.zeros(3)))
        J, J_rate = turn @ J, turn @ (J_rate + ad([*(J @ v)[:3], 0.0, 0.0, 0.0]) @ J)
    scale = np.array([1.0] * 3 + [1.0 / length] * 3)
    scaled = scale[:, None] * J
    U, sigma, _ = np.linalg.svd(scaled)
    sigma = np.append(sigma, np.zeros(6 - len(sigma)))
    A = scaled @ np.linalg.solve(M, scaled.T)
    mu = np.linalg.eigvalsh(A)[-1] / sigma[0] ** 2
    D = U @ np.diag(mu * np.maximum((sigma[0] / limit) ** 2 - sigma ** 2, 0.0)) @ U.T
    Lambda = scale[:, None] * np.linalg.inv(A + D) * scale
    J_bar = np.linalg.solve(M, J.T) @ Lambda
    return Lambda, J_bar.T @ b - Lambda @ J_rate @ v, J_bar, sigma[0] / max(sigma[-1], 1e-300)


def check_definition(model, q, v, link, frame, limit):
    """Compare the kernel with the definition, for one link."""
    task = task_space_dynamics(model, q, v, link, frame=frame, condition_limit=limit)
    Lambda, eta, J_bar, condition = closed_form(model, q, v, link, frame, limit)
    M = rbd_ros.mass_matrix(model, q)
    # The definition squares J, up to a condition of limit^2 times that of M.
    rounding = EXACT + 1e-13 * limit ** 2 + 1e-15 * np.linalg.cond(M)
    assert relative_error(task.Lambda, Lambda) < rounding
    assert relative_error(task.J_bar, J_bar) < rounding
    # Both are differences, which may be much smaller than what is subtracted.
    terms = np.abs(J_bar).max() * np.abs(rbd_ros.bias_torques(model, q, v)).sum()
    terms += np.abs(Lambda).max() * np.abs(task.J_dot @ v).sum()
    assert np.max(np.abs(task.eta - eta)) < rounding * terms
    terms = 1.0 + np.abs(J_bar).max() * np.abs(task.J).sum()
    differences = np.eye(model.nv) - J_bar @ task.J - task.null_projector
    assert np.max(np.abs(differences)) < rounding * terms
    if condition < 1e6:
        assert task.condition == pytest.approx(condition, rel=1e-8)
    else:
        assert task.condition > 1e6
    assert task.damped == (task.condition > limit)
    workspace = rbd_ros.Workspace(model)
    if frame == 'body':
        got = workspace.task_inertia(M, q, link, condition_limit=limit)
        assert relative_error(got[0], task.Lambda) < EXACT
        assert got[1] == task.condition


@pytest.mark.parametrize('frame', FRAMES)
@pytest.mark.parametrize('limit', [3.0, 200.0])
@pytest.mark.parametrize('seed', seeds(30))
def test_kernel_has_the_definition_on_trees_of_all_kinds(seed, limit, frame):
    model = random_tree(seed, 6, kinds=list(KINDS))
    q, v, _ = random_state(model, seed)
    for link, body in zip(model.link_names, model.tree.link_body):
        if body:
            check_definition(model, q, v, link, frame, limit)


@pytest.mark.parametrize('seed', range(10))
def test_kernel_has_the_definition_where_joints_of_other_branches_are_copied(seed):
    model = random_tree(seed, 8, kinds=('revolute', 'prismatic', 'spherical'))
    single = [joint.name for joint in model.joints if joint.nv == 1]
    copies = {single[-1]: Mimic(single[0], -1.5, 0.2)} if single[1:] else {}
    model = rebuild(model, joints=[replace(joint, mimic=copies.get(joint.name))
                                   for joint in model.joints])
    assert (not model.coordinates.is_identity) == (len(single) > 1)
    q, v, _ = random_state(model, seed)
    for link, body in zip(model.link_names, model.tree.link_body):
        if body:
            check_definition(model, q, v, link, 'body', 3.0)


@pytest.mark.parametrize('name, link', [('panda.urdf', 'panda_leftfinger'),
                                        ('panda.urdf', 'panda_link3'),
                                        ('talos_reduced.urdf', 'gripper_left_base_link')])
def test_kernel_has_the_definition_on_real_robots(name, link):
    model = load_quietly(example_urdf(name))
    for seed in range(5):
        q, v, _ = random_state(model, seed)
        check_definition(model, q, v, link, 'body', 100.0)
        check_definition(model, q, v, link, 'world-aligned', 3.0)


def test_task_space_dynamics_near_singular_poses_are_damped_reported_and_finite(ur5):
    q, v, _ = random_state(ur5, 2)
    limit, before = 1e3, None
    bounds = []
    for angle in (0.3, 1e-1, 1e-2, 1e-3, 1e-5, 1e-9, 0.0):
        q[2] = angle                                  # the elbow, stretched at zero
        task = task_space_dynamics(ur5, q, v, 'tool0', condition_limit=limit)
        assert all(np.all(np.isfinite(x)) for x in task[:6])
        assert task.damped == (task.condition > limit)
        assert before is None or task.condition > before or before == np.inf
        bounds.append(np.max(np.linalg.eigvalsh(task.Lambda)))
        before = task.condition
    assert before > 1e12
    # Undamped it would grow without end.
    assert bounds[-1] < 1.1 * bounds[-3]
    # Directions that the arm can move in are left as they are.
    M = rbd_ros.mass_matrix(ur5, q)
    mobility = task.J @ np.linalg.solve(M, task.J.T)
    assert relative_error(mobility @ task.Lambda @ mobility, mobility) < 1e-5


@pytest.mark.parametrize('name, link', [('ur5_robot.urdf', 'tool0'), ('ur10_robot.urdf', 'tool0'),
                                        ('panda.urdf', 'panda_hand'), ('xarm7.urdf', 'link_eef')])
def test_regular_poses_are_not_damped(name, link):
    model, damped = load_quietly(example_urdf(name)), 0
    rng = np.random.default_rng(0)
    for _ in range(300):
        q = random_configuration(model, rng)
        task = task_space_dynamics(model, q, np.zeros(model.nv), link)
        damped += task.damped
        if not task.damped and task.condition < 300.0:
            mobility = task.J @ np.linalg.solve(rbd_ros.mass_matrix(model, q), task.J.T)
            assert relative_error(task.Lambda @ mobility, np.eye(6)) < 1e-5
    assert damped <= 0.02 * 300


@pytest.mark.parametrize('name, link', [('ur10_robot.urdf', 'tool0'),
                                        ('panda.urdf', 'panda_hand')])
def test_lambda_is_continuous_on_a_way_through_singular_poses(name, link):
    model = load_quietly(example_urdf(name))
    q, v, _ = random_state(model, 4)
    # Through a stretched elbow, and through a pose in which two wrist axes are in line.
    for joint, limit in ((2, 50.0), (3, 50.0), (4, 1e3)):
        gaps = []
        for steps in (200, 2000, 20000):
            way = np.linspace(-0.05, 0.05, steps + 1)[steps // 2 - 40:steps // 2 + 40]
            Lambdas, damped = [], 0
            for x in way:
                q[joint] = x
                task = task_space_dynamics(model, q, v, link, condition_limit=limit)
                Lambdas.append(task.Lambda)
                damped += task.damped
            gaps.append(max(relative_error(b, a) for a, b in pairwise(Lambdas)))
        # The largest step goes to zero with the distance of the poses.
        assert gaps[2] < 0.3 * gaps[1] or gaps[2] < 1e-3


def test_damping_of_the_task_inertia_equals_its_formula(ur5):
    q, v, _ = random_state(ur5, 2)
    q[2] = 1e-3
    limit = 200.0
    task = task_space_dynamics(ur5, q, v, 'tool0', condition_limit=limit)
    assert task.damped
    # The joints of the UR5 are this far apart, as its URDF has it.
    way = sum(np.linalg.norm(joint.placement[:3, 3]) for joint in ur5.joints
              if joint.name in (*ur5.velocity_names, 'wrist_3_link-tool0_fixed_joint',
                                'world_joint'))
    unit = np.diag([1.0] * 3 + [1.0 / (0.2 * way)] * 3)
    J = unit @ task.J
    values, vectors = np.linalg.eigh(J @ J.T)
    A = J @ np.linalg.solve(rbd_ros.mass_matrix(ur5, q), J.T)
    mu, bound = np.linalg.eigvalsh(A)[-1] / values[-1], values[-1] / limit ** 2
    D = sum(mu * max(bound - x, 0.0) * np.outer(u, u) for x, u in zip(values, vectors.T))
    assert relative_error(task.Lambda, unit @ np.linalg.inv(A + D) @ unit) < 1e-6
    assert task.condition == pytest.approx(np.sqrt(values[-1] / values[0]), rel=1e-6)


def test_task_space_dynamics_of_arms_with_fewer_than_six_joints_are_exact_in_feasible_directions(
        ur5):
    arm = rbd_ros.model.with_free_joints(ur5, ['shoulder_pan_joint', 'shoulder_lift_joint',
                                         'elbow_joint'])
    q, v, tau = random_state(arm, 3)
    task = task_space_dynamics(arm, q, v, 'tool0')
    assert task.damped
    assert task.condition == np.inf
    assert relative_error(task.J_bar @ task.J, np.eye(3)) < EXACT
    assert np.max(np.abs(task.null_projector)) < EXACT
    # The torques follow from the wrench again.
    assert relative_error(task.J.T @ (task.J_bar.T @ tau), tau) < EXACT


def test_wrong_requests_are_refused(ur5):
    zero = np.zeros(6)
    for link in ('nowhere', ur5.link_names[0]):
        with pytest.raises(rbd_ros.ModelError, match=link):
            task_space_dynamics(ur5, zero, zero, link)
    with pytest.raises(rbd_ros.StateError, match='frame'):
        task_space_dynamics(ur5, zero, zero, 'tool0', frame='spatial')
    with pytest.raises(rbd_ros.StateError, match='condition_limit'):
        task_space_dynamics(ur5, zero, zero, 'tool0', condition_limit=0.0)
    with pytest.raises(rbd_ros.StateError, match='v has'):
        task_space_dynamics(ur5, zero, zero[1:], 'tool0')


@pytest.mark.filterwarnings('ignore:these links move but have no mass')
def test_robots_without_inertia_are_refused():
    model = (rbd_ros.ModelBuilder('light').link('a').link('b')
             .joint('hinge', 'revolute', 'a', 'b').build())
    with pytest.raises(rbd_ros.SingularError, match="'hinge' moves no inertia"):
        task_space_dynamics(model, [0.0], [0.0], 'b')

# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots with closed loops, and robots made from others by new links, joints or gravity."""

from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from math import inf

import numpy as np
import numpy.typing as npt
from rbd_ros._internal.text import amount, listed
from rbd_ros.errors import ModelError
from rbd_ros.kernels.loops.arrays import SINGULAR
from rbd_ros.model.arguments import check_model, number
from rbd_ros.model.description import Link
from rbd_ros.model.joints import Joint
from rbd_ros.model.loops import (
    check_constraint, Constraint, equation_rows, Loops, make_loops, with_independent)
from rbd_ros.model.model import build_tree, Model
from rbd_ros.model.plausibility import NO_EFFORT, without_effort
from rbd_ros.model.positions.closure import close_nearby, equations_and_gaps, gap_in_words
from rbd_ros.model.positions.steps import moved, neutral_of_tree, random_of_tree, step_between
from rbd_ros.model.uncertainty import Uncertainty

# Relative size of singular values of J that are zero but for the rounding of numbers in
# descriptions, and of those that are too small for a choice of joints.
RANK_TOLERANCE, ILL_CONDITIONED = 1e-6, 1e-4
# Relative difference of equal columns of J: of symmetric mechanisms, whose numbers are rounded.
EQUAL = 1e-6
# A higher condition limit would be close to what counts as singular.
HIGHEST_LIMIT = 0.1 / SINGULAR
# Configurations that are tried, and the perturbation, rad or m, that tells whether the neutral
# configuration is singular.
TRIES, PERTURBATION = 100, 0.05


def with_constraints(model: Model, constraints: Sequence[Constraint],
                     independent: Sequence[str] | None = None, *,
                     condition_limit: float | None = None) -> Model:
    """
    Return the robot with constraints that close loops, in place of previous ones.

    Its q is that of all joints, on the closure; v, a and tau are of the independent joints.

    Parameters
    ----------
    model, constraints : Model, sequence of Constraint
        The robot; none remove the constraints.
    independent : sequence of str, optional
        Names of joints or velocities, as many as the robot has degrees of freedom: the motors, as
        a rule. By default those that determine the others best in the neutral configuration, where
        joints with an effort limit other than 0 come first, and of equal ones the first in the
        tree.
    condition_limit : float, optional
        Condition number of the equations of the dependent velocities, rad/s and m/s, beyond which
        their inverse is damped, 1 to 1e5. Near singular configurations, all functions then return
        finite results, for velocities that open the loops: see doc/closed_loops.md. By default
        singular configurations are a SingularError.

    Raises
    ------
    ModelError
        If a constraint is wrong, the loops cannot be closed or leave no degree of freedom, or the
        independent joints do not determine the others.
    StateError
        If the condition limit is out of range.

    """
    check_model(model)
    return closed_tree(model.unconstrained, constraints, independent, condition_limit=(
        inf if condition_limit is None else number(
            'condition_limit', condition_limit, 1.0, HIGHEST_LIMIT)))


def closed_tree(tree: Model, constraints: Sequence[Constraint],
                independent: Sequence[str] | None = None,
                passive: Collection[str] | None = None, condition_limit: float = inf) -> Model:
    """Return a tree with constraints, as `with_constraints` does."""
    # Of independent joints that are not given, the velocities named by `passive` come last; None
    # stands for those with an effort limit of 0.
    if not constraints:
        return tree
    links = {name: k for k, name in enumerate(tree.link_names)}
    loops = make_loops([check_constraint(one, links) for one in constraints], links, tree.tree)
    _refuse_fixed_distances(tree, loops)
    q = _closed_configuration(tree, loops)
    regular, J = _regular_equations(tree, loops, q)
    rank, at_neutral = _rank(J), _rank(equations_and_gaps(loops, q)[0])
    if rank == tree.nv or not _moves(tree, loops, regular, J, rank):
        names = [one.name for one in constraints]
        raise ModelError(f"the constraints of robot '{tree.name}' leave no degree of freedom: "
                         f'remove {"one of " * (len(names) > 1)}{listed(names)}')
    own = (_chosen(tree, J, rank, np.array(
        [x == 0.0 for joint, _, _ in tree.moving_joints for x in joint.effort] if passive is None
        else [name in passive for name in tree.velocity_names])) if independent is None
        else _given(tree, J, rank, independent))
    robot = _constrained(tree, replace(loops, neutral=q, condition_limit=condition_limit), own)
    if at_neutral == rank:
        return robot
    return replace(robot, warnings=(*robot.warnings, (
        'the loops are singular in the neutral configuration, where forces and velocities are not '
        'defined: place the zero of the joints elsewhere')))


def _refuse_fixed_distances(tree: Model, loops: Loops) -> None:
    """Raise ModelError if no joint moves the points of a distance apart."""
    rng = np.random.default_rng(0)
    J = np.array([equations_and_gaps(loops, random_of_tree(tree, rng))[0] for _ in range(3)])
    for one, rows in equation_rows(loops.constraints):
        if one.kind == 'distance' and np.abs(J[:, rows]).max() <= RANK_TOLERANCE * np.abs(J).max():
            raise ModelError(f"constraint '{one.name}' holds points at a distance that no joint "
                             'changes: remove it, or check its links and placements')


def _closed_configuration(tree: Model, loops: Loops) -> np.ndarray:
    """Return the closed configuration that is found first, beginning at the neutral one."""
    rng = np.random.default_rng(0)
    for k in range(1 + TRIES):
        guess = random_of_tree(tree, rng) if k else neutral_of_tree(tree)
        if (q := close_nearby(tree, loops, guess)) is not None:
            return q
    raise ModelError(f"the loops of robot '{tree.name}' cannot be closed: "
                     + gap_in_words(loops, neutral_of_tree(tree)) + ' in the neutral '
                     f'configuration, and none of {TRIES} others leads to a closed one: check the '
                     'placements and lengths')


def _rank(J: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(J, RANK_TOLERANCE * np.linalg.norm(J, 2)))


def _moves(tree: Model, loops: Loops, q: np.ndarray, J: np.ndarray, rank: int) -> bool:
    """Return whether the robot can move along all solutions of J V = 0; rigid loops cannot."""
    for direction in np.linalg.svd(J)[2][rank:]:
        q_1 = close_nearby(tree, loops, moved(tree, q, PERTURBATION * direction))
        if q_1 is None or step_between(tree, q, q_1) @ direction < 0.1 * PERTURBATION:
            return False
    return True


def _regular_equations(tree: Model, loops: Loops, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a configuration near q that is not singular, and J there."""
    rng = np.random.default_rng(0)
    steps = [scale * rng.uniform(-1.0, 1.0, tree.nv)
             for scale in (0.0, PERTURBATION, PERTURBATION)]
    found = [(near, equations_and_gaps(loops, near)[0]) for step in steps
             if (near := close_nearby(tree, loops, moved(tree, q, step))) is not None]
    return max(found, key=lambda one: _rank(one[1]))


def _chosen(tree: Model, J: np.ndarray, rank: int, passive: np.ndarray) -> list[int]:
    """Return the velocities that are left when columns of J are chosen by pivoting."""
    left = J.copy()
    dependent: list[int] = []
    enough = ILL_CONDITIONED * np.linalg.norm(J, 2)
    for _ in range(rank):
        sizes = np.linalg.norm(left, axis=0)
        sizes[dependent] = -1.0
        first = np.where(passive, sizes, -1.0)
        sizes = first if first.max() > enough else sizes
        k = int(np.flatnonzero(sizes >= (1.0 - EQUAL) * sizes.max())[-1])
        dependent.append(k)
        axis = left[:, k] / np.linalg.norm(left[:, k])
        left -= np.outer(axis, axis @ left)
    return [k for k in range(tree.nv) if k not in dependent]


def _given(tree: Model, J: np.ndarray, rank: int, independent: Sequence[str]) -> list[int]:
    """Return the velocities of joints that the user has named."""
    if isinstance(independent, str):
        raise ModelError('independent must be a list of names of joints')
    own: set[int] = set()
    for name in independent:
        of_joint = [v for joint, _, v in tree.moving_joints if joint.name == name]
        if of_joint:
            own.update(range(of_joint[0].start, of_joint[0].stop))
        elif name in tree.velocity_names:
            own.add(tree.velocity_names.index(name))
        else:
            raise ModelError(f"independent joint '{name}': robot '{tree.name}' has no such joint "
                             'that moves; it has ' + listed(tree.velocity_names))
    if len(own) != tree.nv - rank:
        raise ModelError(f"robot '{tree.name}' has {amount(tree.nv - rank, 'degree')} of freedom, "
                         f'but the independent joints have {len(own)} velocities: name as many')
    rest = [k for k in range(tree.nv) if k not in own]
    sizes = np.linalg.svd(J[:, rest], compute_uv=False)
    if not sizes[-1] > ILL_CONDITIONED * sizes[0]:
        _, _, V = np.linalg.svd(J[:, rest])
        names = [tree.velocity_names[k] for k, x in zip(rest, V[-1]) if abs(x) > 0.1]
        raise ModelError(f"the independent joints of robot '{tree.name}' do not determine "
                         f'{listed(names)}: name one of these instead of another')
    return sorted(own)


def _constrained(tree: Model, loops: Loops, own: list[int]) -> Model:
    loops = with_independent(loops, tree.tree, own)
    place = {k: i for i, k in enumerate(own)}
    moving = tuple((joint, q, slice(place[v.start], place[v.start] + joint.nv))
                   for joint, q, v in tree.moving_joints if {*range(v.start, v.stop)} <= {*own})
    per_velocity = {one.name: getattr(tree, one.name)[own] for one in fields(tree)
                    if one.name != 'gravity' and isinstance(getattr(tree, one.name), np.ndarray)}
    # Passive joints of a loop have no motors on purpose.
    notes = (*(note for note in tree.warnings if not note.endswith(NO_EFFORT)),
             *without_effort([joint for joint, _, _ in moving]))
    return replace(tree, warnings=notes, velocity_names=tuple(tree.velocity_names[k] for k in own),
                   moving_joints=moving, loops=loops, coordinates=replace(
                       tree.coordinates, is_identity=False, is_constant=False),
                   _unconstrained=tree, **per_velocity)


def rebuild(model: Model, *, links: Sequence[Link] | None = None,
            joints: Sequence[Joint] | None = None, gravity: npt.ArrayLike | None = None,
            constraints: Sequence[Constraint] | None = None) -> Model:
    """Return the robot with other parts or gravity; known warnings are not repeated."""
    # Its uncertainty is kept if it has the same joints and moving bodies.
    check_model(model)
    tree = build_tree(model.name, model.links if links is None else links,
                      model.joints if joints is None else joints,
                      model.gravity if gravity is None else gravity, notes=model.warnings)
    if model.loops is None:
        robot = tree
    elif joints is None:    # the same kinematics
        links_of = {name: k for k, name in enumerate(tree.link_names)}
        loops = replace(make_loops(model.constraints, links_of, tree.tree),
                        neutral=model.loops.neutral, condition_limit=model.loops.condition_limit)
        robot = _constrained(tree, loops, [
            tree.velocity_names.index(name) for name in model.velocity_names])
    else:
        # As far as they can, the same joints stay independent.
        passive = {*model.unconstrained.velocity_names} - {*model.velocity_names}
        same = tree.velocity_names == model.unconstrained.velocity_names and constraints is None
        robot = closed_tree(tree, model.constraints if constraints is None else constraints,
                            model.velocity_names if same else None, passive,
                            model.loops.condition_limit)
    return attach(robot, model.uncertainty)


def attach(model: Model, uncertainty: Uncertainty | None) -> Model:
    """Return the robot with the uncertainty of its torques, if that belongs to such a robot."""
    bodies = {joint.child for joint in model.joints if joint.nv}
    if uncertainty is None or uncertainty.joints != model.velocity_names or not bodies.issuperset(
            name.rpartition('/')[0] for name in uncertainty.parameters if '/' in name):
        return model
    return replace(model, uncertainty=uncertainty)

# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of robots in PyTorch: values, derivatives of both orders in both modes, errors."""

from itertools import product

from closed_robots import closed_robot
from covering import covering
from differentiable_robots import (
    arguments_of, DIFFERENCES, GRAVITY, LENGTH, MASS, NAMES, OF_LINK, OPERATIONS, operations_of,
    pendulum, ROBOTS, SHAPES, states, WITHOUT_RULE)
import numpy as np
from optional import Optional
import pytest
from rbd_ros import batch, differentiable, ModelError, StateError
from robots import relative_error

# Imported by the process that runs these tests alone: it takes seconds.
torch, rbd_torch = Optional('torch'), Optional('rbd_ros.torch')

# Rounding, of a sum of a dozen products.
ROUNDING = 1e-12
# Differences by gradcheck with steps of 1e-6, of derivatives up to a few hundred.
CHECK = {'eps': 1e-6, 'atol': 2e-4, 'rtol': 1e-5}
# Second derivatives, by different sums of differences; those of accelerations are the worst.
SECOND = 1e-8


def function(name, model):
    return getattr(rbd_torch, name)(model, *([model.link_names[-1]] if name in OF_LINK else []))


def tensors(model, count, name='inverse_dynamics', **options):
    return [torch.tensor(x, **options) for x in states(model, count)[:arguments_of(name)]]


@pytest.mark.parametrize('name', WITHOUT_RULE)
def test_other_quantities_are_those_of_the_library_with_derivatives(name):
    model = ROBOTS['free']
    options, x, direction, expected, change = operations_of(model, name)
    x = [torch.tensor(y, requires_grad=True) for y in x]
    found = getattr(rbd_torch, name)(model, *options)(*x)
    found = found if isinstance(found, tuple) else (found,)
    values = torch.cat([y.ravel() for y in found])
    assert relative_error(values.detach().numpy(), expected) < OPERATIONS
    weights = np.random.default_rng(4).normal(size=len(expected))
    if not values.requires_grad:        # as of joints without springs
        assert not change.any()
        return
    slopes = torch.autograd.grad(values @ torch.tensor(weights), x, allow_unused=True)
    along = sum(float(y.numpy() @ d) for y, d in zip(slopes, direction) if y is not None)
    assert abs(along - change @ weights) <= DIFFERENCES * np.abs(change) @ np.abs(weights)


@pytest.mark.parametrize('kind, name', covering(
    product(ROBOTS, NAMES), *product(['ball'], SHAPES[:4]), ('free', 'forward_kinematics')))
def test_gradcheck_and_gradgradcheck(kind, name):
    model = ROBOTS[kind]
    x = tensors(model, 1, name, requires_grad=True)
    f = function(name, model)
    assert torch.autograd.gradcheck(f, x, check_forward_ad=True, **CHECK)
    assert torch.autograd.gradgradcheck(f, x, check_fwd_over_rev=True, fast_mode=True, **CHECK)


@pytest.mark.parametrize('name', covering(NAMES, *SHAPES))
def test_second_derivatives_agree_in_all_modes_and_under_vmap(name):
    model, func = ROBOTS['free'], torch.func
    f = function(name, model)

    def loss(*x):
        return torch.sin(f(*x)).sum()
    many = tensors(model, 2, name)
    one = [x[1] for x in many]
    hessian = func.hessian(loss)(*one)
    assert hessian.shape == (model.nq, model.nq) and torch.all(torch.isfinite(hessian))
    for other in (func.jacrev(func.jacrev(loss)), func.jacfwd(func.jacfwd(loss))):
        assert relative_error(other(*one).numpy(), hessian.numpy()) < SECOND
    mapped = func.vmap(func.hessian(loss))(*many)[1]
    assert relative_error(mapped.numpy(), hessian.numpy()) < ROUNDING


def test_results_equal_batch_and_leading_axes_broadcast():
    model = ROBOTS['free']
    q, v, a = states(model, 6)
    expected = batch.inverse_dynamics(model, q, v, np.repeat(a[:1], 6, 0)).reshape(2, 3, -1)
    f = rbd_torch.inverse_dynamics(model)
    found = f(torch.tensor(q).reshape(2, 3, -1), torch.tensor(v).reshape(2, 3, -1),
              torch.tensor(a[0]))
    assert relative_error(found.numpy(), expected) < ROUNDING
    assert f(*(torch.tensor(x[2]) for x in (q, v, a))).shape == (model.nv,)
    M = rbd_torch.mass_matrix(model)(torch.tensor(q))
    assert relative_error(M.numpy(), batch.all_terms(model, q, v).M) < ROUNDING
    f = torch.func.vmap(rbd_torch.inverse_dynamics(model), in_dims=(0, 1, None))
    mapped = f(*(torch.tensor(x) for x in (q, v.T, a[0])))
    assert relative_error(mapped.numpy(), expected.reshape(6, -1)) < ROUNDING


def test_third_derivatives_are_refused():
    x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    y = rbd_torch.gravity_torques(pendulum())(x)
    for expected in (-np.cos(1.0), np.sin(1.0)):
        y, = torch.autograd.grad(y.sum(), x, create_graph=True)
        assert y.item() == pytest.approx(MASS * GRAVITY * LENGTH * expected, rel=1e-10)
    with pytest.raises(RuntimeError, match='third derivatives of gravity_torques'):
        torch.autograd.grad(y.sum(), x)


def test_contiguous_tensors_of_64_bits_are_not_copied(monkeypatch):
    model, passed, returned = ROBOTS['ball'], [], []
    compute = batch.inverse_dynamics

    def recorded(model, *arrays):
        found = compute(model, *arrays)
        if len(arrays[0]):      # not asked for the shapes of results
            passed.extend(arrays)
            returned.append(found)
        return found
    monkeypatch.setattr(differentiable.batch, 'inverse_dynamics', recorded, raising=False)
    x = tensors(model, 3)
    tau = rbd_torch.inverse_dynamics(model)(*x)
    assert [np.shares_memory(a, b.numpy()) for a, b in zip(passed, x)] == [True] * 3
    assert np.shares_memory(returned[0], tau.numpy())


@pytest.mark.parametrize('name', ['float32', 'float16', 'bfloat16'])
def test_short_floats_are_computed_in_64_bits_and_returned_in_their_type(name):
    model, dtype = ROBOTS['ball'], getattr(torch, name)
    x = [y.to(dtype).requires_grad_() for y in tensors(model, 3)]
    tau = rbd_torch.inverse_dynamics(model)(*x)
    exact = batch.inverse_dynamics(model, *(y.detach().double().numpy() for y in x))
    assert tau.dtype == dtype and torch.equal(tau, torch.tensor(exact).to(dtype))
    assert [y.dtype for y in torch.autograd.grad(tau.sum(), x)] == [dtype] * 3
    mixed = rbd_torch.inverse_dynamics(model)(x[0], x[1].double(), x[2])
    assert mixed.dtype == torch.float64


def test_configuration_rates_of_motions_are_differentiated():
    model = ROBOTS['free']
    q, v, _ = tensors(model, 2, requires_grad=True)
    rate = rbd_torch.configuration_rate(model)
    assert torch.autograd.gradcheck(rate, (q, v), **CHECK)
    # J T dq/dt is J v.
    f = rbd_torch.center_of_mass(model)
    found = torch.func.jvp(f, (q.detach(),), (rate(q, v).detach(),))[1]
    expected = np.einsum('tij,tj->ti', batch.com_jacobian(model, q.detach().numpy()),
                         v.detach().numpy())
    assert relative_error(found.numpy(), expected) < ROUNDING
    closed = closed_robot('five_bar').model
    with pytest.raises(ModelError, match='closed loops, for which configuration_rate'):
        rbd_torch.configuration_rate(closed)


def test_arguments_are_checked():
    model = pendulum()
    f = rbd_torch.bias_torques(model)
    q = torch.zeros(4, 1)
    for arguments, message in [
            ((np.zeros(1), q), r'q is no tensor but of type ndarray: use torch.as_tensor\(...\)'),
            ((q, torch.zeros(4, 1, dtype=torch.int64)), r'v has the type torch.int64.*\.double'),
            ((q, torch.zeros(4, 1, dtype=torch.complex128)), 'v has the type torch.complex128; it '
                                                             'must be real'),
            ((q, torch.zeros(4, 1, device='meta')), 'v is on the device meta'),
            ((q, torch.zeros(4, 2)), r'v has the shape \(4, 2\)'),
            ((q,), r'bias_torques takes 2 arguments \(q, v\), got 1'),
            ((q, torch.tensor([[0.0], [0.0], [np.nan], [0.0]])),
             "state 2: v of 'swing' is nan")]:
        with pytest.raises(StateError, match=message):
            f(*arguments)
    with pytest.raises(ModelError, match="has no link 'hand'"):
        rbd_torch.body_jacobian(model, 'hand')

# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
How cosines and sines of several angles at once are compiled.

Benefit: computed one by one, they took a third of the time of inverse dynamics of many states;
with a library of vector functions, which does not share r, a fifth.
Safeguard: angles beyond MAX_ANGLE, where r would lose digits, and non-finite angles are passed to
the C library one by one.

"""

import math

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload
from rbd_ros.kernels.lanes.compiled_lanes import Lanes, lanes, vector_of
from rbd_ros.kernels.lanes.lanes import WIDTH
from rbd_ros.kernels.lanes.sines import (C, cosine_and_sine, cosines_and_sines, MAX_ANGLE, QUARTER,
                                         ROUND, S)

# One state has few angles: longer registers, which need time to power up, do not pay.
OF_ONE_STATE = min(WIDTH, 4)


class Register:
    """Angles in one register, an LLVM vector of floats."""

    def __init__(self, builder, angles):
        self.builder, self.angles, self.count = builder, angles, angles.type.count
        self.bits = ir.VectorType(ir.IntType(64), self.count)

    def floats(self, x):
        return ir.Constant(self.angles.type, [x] * self.count)

    def integers(self, k):
        return ir.Constant(self.bits, [k] * self.count)

    def add_product(self, c, a, b):
        """Return c + a b."""
        return self.builder.fadd(c, self.builder.fmul(a, b))

    def polynomial(self, coefficients, z):
        """Return the value of a polynomial."""
        *rest, value = map(self.floats, coefficients)
        for c in reversed(rest):
            value = self.add_product(c, value, z)
        return value

    def with_sign_of(self, x, k):
        """Return -x where bit 1 of k is set, else x."""
        builder = self.builder
        sign = builder.and_(builder.shl(k, self.integers(62)), self.integers(1 << 63))
        return builder.bitcast(builder.xor(builder.bitcast(x, self.bits), sign), x.type)

    def in_range(self):
        """Return whether all angles are finite and at most MAX_ANGLE."""
        builder, limit = self.builder, self.floats(MAX_ANGLE)
        inside = builder.and_(builder.fcmp_ordered('<=', self.angles, limit),
                              builder.fcmp_ordered('>=', self.angles, self.floats(-MAX_ANGLE)))
        inside = builder.bitcast(inside, ir.IntType(self.count))
        return builder.icmp_unsigned('==', inside, ir.Constant(inside.type, -1))

    def polynomial_values(self):
        """Return cosines and sines of angles in range."""
        builder = self.builder
        shifted = self.add_product(self.floats(ROUND), self.angles, self.floats(2.0 / math.pi))
        quarters = builder.fsub(shifted, self.floats(ROUND))
        r = self.angles
        for part in QUARTER:
            r = self.add_product(r, quarters, self.floats(-part))
        z = builder.fmul(r, r)
        sine = self.add_product(r, builder.fmul(r, z), self.polynomial(S, z))
        cosine = self.add_product(self.add_product(self.floats(1.0), z, self.floats(-0.5)),
                                  builder.fmul(z, z), self.polynomial(C, z))
        k = builder.bitcast(shifted, self.bits)
        even = builder.icmp_unsigned('==', builder.and_(k, self.integers(1)), self.integers(0))
        return (self.with_sign_of(builder.select(even, cosine, sine),
                                  builder.add(k, self.integers(1))),
                self.with_sign_of(builder.select(even, sine, cosine), k))

    def library_values(self, name):
        """Return cosines or sines from the C library."""
        builder, found = self.builder, self.angles
        function = builder.module.declare_intrinsic(f'llvm.{name}', [ir.DoubleType()])
        for lane in range(self.count):
            place = ir.Constant(ir.IntType(32), lane)
            found = builder.insert_element(found, builder.call(
                function, [builder.extract_element(self.angles, place)]), place)
        return found

    def cosines_and_sines(self):
        builder = self.builder
        with builder.if_else(self.in_range(), likely=True) as (near, far):
            with near:
                near_values, near_block = self.polynomial_values(), builder.block
            with far:
                far_values = [self.library_values(name) for name in ('cos', 'sin')]
                far_block = builder.block
        results = []
        for near_value, far_value in zip(near_values, far_values):
            phi = builder.phi(self.angles.type)
            phi.add_incoming(near_value, near_block)
            phi.add_incoming(far_value, far_block)
            results.append(phi)
        return results


@intrinsic
def replace_angles(typing_context, array, first, count):
    """Do `cosines_and_sines`."""
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
            found = Register(builder, builder.load(places[0], align=8)).cosines_and_sines()
            for x, where in zip(found, places):
                builder.store(x, where, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate


@overload(cosines_and_sines)
def _cosines_and_sines(array, first, count):
    return lambda array, first, count: replace_angles(array, first, count)


@intrinsic
def of_lanes(typing_context, angles):
    """Do `cosine_and_sine` for lanes."""
    pair = types.UniTuple(lanes, 2)

    def generate(context, builder, signature, arguments):
        return context.make_tuple(builder, pair,
                                  Register(builder, arguments[0]).cosines_and_sines())
    return pair(lanes), generate


@overload(cosine_and_sine)
def _cosine_and_sine(angle):
    if isinstance(angle, Lanes):
        return lambda angle: of_lanes(angle)
    return lambda angle: (math.cos(angle), math.sin(angle))

# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How numba compiles lanes: as an LLVM vector that fills one register of the processor."""

import math
import operator

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, lower_cast, models, overload, register_model
from rbd_ros.kernels.lanes.lanes import (
    as_screw, constants_of, element, entry, exceeds, finite, only_screws, reciprocal, set_element,
    set_entry, sharing, square_root, vectorized, WIDTH, work_of)


def vector_of(width):
    """Return LLVM's type of a vector of floats."""
    return ir.VectorType(ir.DoubleType(), width)


VECTOR = vector_of(WIDTH)


class Lanes(types.Type):
    """Numba's type of lanes."""

    def __init__(self):
        super().__init__(f'lanes{WIDTH}')

    def can_convert_from(self, context, other):
        """Return how numbers convert to lanes."""
        return Conversion.safe if isinstance(other, (types.Float, types.Integer)) else None

    def unify(self, context, other):
        """Return the common type of lanes and a number."""
        return self if isinstance(other, (types.Float, types.Integer)) else None


lanes = Lanes()


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):
    """Lanes are LLVM vectors."""

    def __init__(self, manager, kind):
        super().__init__(manager, kind, VECTOR)


def splat(builder, x):
    """Return lanes that all hold x."""
    one = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), x,
                                 ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, ir.Constant(VECTOR, ir.Undefined), ir.Constant(
        ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH))


@lower_cast(types.Float, Lanes)
@lower_cast(types.Integer, Lanes)
def number_to_lanes(context, builder, source, target, x):
    """Convert a number to lanes."""
    return splat(builder, context.cast(builder, x, source, types.float64))


def operator_on_lanes(function, name, count):
    """Define an operator with so many operands: lanes, or lanes and numbers."""
    @infer_global(function)
    class Typing(AbstractTemplate):

        def generic(self, arguments, keywords):
            if (len(arguments) == count and lanes in arguments and all(
                    x is lanes or isinstance(x, (types.Float, types.Integer))
                    for x in arguments)):
                return signature(lanes, *count * [lanes])
            return None

    @lower_builtin(function, *count * [Lanes])
    def lower(context, builder, signature, arguments):
        return getattr(builder, name)(*arguments)


for functions, instruction in (((operator.add, operator.iadd), 'fadd'),
                               ((operator.sub, operator.isub), 'fsub'),
                               ((operator.mul, operator.imul), 'fmul'),
                               ((operator.truediv, operator.itruediv), 'fdiv')):
    for operation in functions:
        operator_on_lanes(operation, instruction, 2)
operator_on_lanes(operator.neg, 'fneg', 1)


def row_pointer(context, builder, kind, array, i):
    """Return a pointer to row i of an array of lanes."""
    view = context.make_array(kind)(context, builder, array)
    place = builder.gep(view.data, [builder.mul(i, ir.Constant(i.type, WIDTH))])
    return builder.bitcast(place, VECTOR.as_pointer())


@intrinsic
def load_lanes(typing_context, array, i):
    """Return row i."""
    def generate(context, builder, signature, arguments):
        return builder.load(row_pointer(context, builder, signature.args[0], *arguments), align=8)
    return lanes(array, types.uint64), generate


@intrinsic
def store_lanes(typing_context, array, i, x):
    """Write row i."""
    def generate(context, builder, signature, arguments):
        builder.store(arguments[2], row_pointer(context, builder, signature.args[0],
                                                *arguments[:2]), align=8)
        return context.get_dummy_value()
    return types.void(array, types.uint64, lanes), generate


def holds_in_all(builder, condition):
    """Return whether a condition holds in every lane."""
    bits = builder.bitcast(condition, ir.IntType(WIDTH))
    return builder.icmp_unsigned('==', bits, ir.Constant(bits.type, 2 ** WIDTH - 1))


@intrinsic
def lanes_are_finite(typing_context, x):
    """Return whether every lane is finite."""
    def generate(context, builder, signature, arguments):
        difference = builder.fsub(arguments[0], arguments[0])     # NaN unless finite
        return holds_in_all(builder, builder.fcmp_ordered('ord', difference, difference))
    return types.boolean(lanes), generate


@intrinsic
def lanes_exceed(typing_context, x, y):
    """Return whether x > y in every lane."""
    def generate(context, builder, signature, arguments):
        return holds_in_all(builder, builder.fcmp_ordered('>', *arguments))
    return types.boolean(lanes, lanes), generate


@intrinsic
def lanes_reciprocal(typing_context, x):
    """Return 1 / x where x > 0, else 0."""
    def generate(context, builder, signature, arguments):
        zero, one = (splat(builder, ir.Constant(ir.DoubleType(), k)) for k in (0.0, 1.0))
        positive = builder.fcmp_ordered('>', arguments[0], zero)
        return builder.select(positive, builder.fdiv(one, arguments[0]), zero)
    return lanes(lanes), generate


@intrinsic
def lanes_square_root(typing_context, x):
    """Return the roots."""
    def generate(context, builder, signature, arguments):
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(VECTOR, [VECTOR]), f'llvm.sqrt.v{WIDTH}f64')
        return builder.call(function, arguments)
    return lanes(lanes), generate


def part_of_robot(function, k):
    """Make a function that returns part k of a pair, and a single table unchanged."""
    @infer_global(function)
    class Typing(AbstractTemplate):

        def generic(self, arguments, keywords):
            robot, = arguments
            return signature(robot[k] if isinstance(robot, types.BaseTuple) else robot, robot)

    @lower_builtin(function, types.BaseTuple)
    def lower(context, builder, signature, arguments):
        return impl_ret_borrowed(context, builder, signature.return_type,
                                 builder.extract_value(arguments[0], k))

    @lower_builtin(function, types.Array)
    def lower_array(context, builder, signature, arguments):
        return impl_ret_borrowed(context, builder, signature.return_type, arguments[0])


part_of_robot(constants_of, 0)
part_of_robot(work_of, 1)


def by_type(function, value_of):
    """Make a function return a constant, which the type of its argument determines."""
    @overload(function)
    def of_type(x):
        value = value_of(x)
        return lambda x: value


def is_pair(robot):
    """Return whether a type of a robot is that of several states."""
    return isinstance(robot, types.BaseTuple)


def is_sharing(traits):
    """Return whether a type of traits is that of joints that share coordinates."""
    return isinstance(traits, (types.Float, types.Boolean))


by_type(vectorized, is_pair)
by_type(only_screws, lambda traits: isinstance(traits, (types.Integer, types.Float)))
by_type(sharing, is_sharing)
by_type(as_screw, lambda traits: 1.0 if is_sharing(traits) else 1)


@overload(entry)
def _entry(x, i):
    if x.ndim == 2:
        return lambda x, i: load_lanes(x, i)
    return lambda x, i: x[i]


@overload(set_entry)
def _set_entry(x, i, value):
    if x.ndim == 2:
        return lambda x, i, value: store_lanes(x, i, value)

    def one(x, i, value):
        x[i] = value
    return one


@overload(element)
def _element(x, i, j):
    if x.ndim == 3:
        return lambda x, i, j: load_lanes(x, i * x.shape[1] + j)
    return lambda x, i, j: x[i, j]


@overload(set_element)
def _set_element(x, i, j, value):
    if x.ndim == 3:
        return lambda x, i, j, value: store_lanes(x, i * x.shape[1] + j, value)

    def one(x, i, j, value):
        x[i, j] = value
    return one


@overload(exceeds)
def _exceeds(x, y):
    if x is lanes:
        return lambda x, y: lanes_exceed(x, y)
    return lambda x, y: x > y


def of_lanes_or_float(function, of_lanes, of_float):
    """Make a function of lanes or of a number."""
    @overload(function)
    def of_type(x):
        return (lambda x: of_lanes(x)) if x is lanes else of_float


of_lanes_or_float(reciprocal, lanes_reciprocal, lambda x: 1.0 / x if x > 0.0 else 0.0)
of_lanes_or_float(square_root, lanes_square_root, lambda x: math.sqrt(x))
of_lanes_or_float(finite, lanes_are_finite, lambda x: math.isfinite(x))

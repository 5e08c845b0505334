# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How the compiler sees lanes: as a vector in one register of the processor."""

import math
import operator

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import (intrinsic, lower_builtin, lower_cast, models, overload,
                             register_model)
from rbd_ros.kernels.lanes.lanes import (
    constants_of, element, entry, exceeds, finite, gather, reciprocal, scatter, set_element,
    set_entry, side_by_side, square_root, STREAMED, WIDTH, work_of)


def vector_of(width):
    """Return LLVM's type of so many floats."""
    return ir.VectorType(ir.DoubleType(), width)


VECTOR = vector_of(WIDTH)


class Lanes(types.Type):
    """The type of lanes."""

    def __init__(self):
        super().__init__(f'lanes{WIDTH}')

    def can_convert_from(self, context, other):
        """Return how a number becomes lanes."""
        return Conversion.safe if isinstance(other, (types.Float, types.Integer)) else None

    def unify(self, context, other):
        """Return the type of what may be lanes or a number."""
        return self if isinstance(other, (types.Float, types.Integer)) else None


lanes = Lanes()


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):
    """How they are kept."""

    def __init__(self, manager, kind):
        super().__init__(manager, kind, VECTOR)


def splat(builder, x):
    """Return lanes of one number."""
    one = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), x,
                                 ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, ir.Constant(VECTOR, ir.Undefined), ir.Constant(
        ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH))


@lower_cast(types.Float, Lanes)
@lower_cast(types.Integer, Lanes)
def number_to_lanes(context, builder, source, target, x):
    """Return lanes of one number."""
    return splat(builder, context.cast(builder, x, source, types.float64))


def binary(function, name):
    """Make an operator work on lanes."""
    @infer_global(function)
    class Typing(AbstractTemplate):
        """Lanes with lanes, or with numbers."""

        def generic(self, arguments, keywords):
            """Return lanes."""
            if (len(arguments) == 2 and lanes in arguments and all(
                    x is lanes or isinstance(x, (types.Float, types.Integer))
                    for x in arguments)):
                return signature(lanes, lanes, lanes)
            return None

    @lower_builtin(function, Lanes, Lanes)
    def lower(context, builder, signature, arguments):
        return getattr(builder, name)(*arguments)


for functions, instruction in (((operator.add, operator.iadd), 'fadd'),
                               ((operator.sub, operator.isub), 'fsub'),
                               ((operator.mul, operator.imul), 'fmul'),
                               ((operator.truediv, operator.itruediv), 'fdiv')):
    for operation in functions:
        binary(operation, instruction)


@infer_global(operator.neg)
class Negation(AbstractTemplate):
    """-x of lanes."""

    def generic(self, arguments, keywords):
        """Return lanes."""
        return signature(lanes, lanes) if arguments == (lanes,) else None


@lower_builtin(operator.neg, Lanes)
def negate(context, builder, signature, arguments):
    """Return -x."""
    return builder.fneg(arguments[0])


def row(context, builder, kind, array, i):
    """Return where row i of an array of lanes is."""
    view = context.make_array(kind)(context, builder, array)
    place = builder.gep(view.data, [builder.mul(i, ir.Constant(i.type, WIDTH))])
    return builder.bitcast(place, VECTOR.as_pointer())


@intrinsic
def load_lanes(typing_context, array, i):
    """Return row i."""
    def generate(context, builder, signature, arguments):
        return builder.load(row(context, builder, signature.args[0], *arguments), align=8)
    return lanes(array, types.uint64), generate


@intrinsic
def store_lanes(typing_context, array, i, x):
    """Write row i."""
    def generate(context, builder, signature, arguments):
        builder.store(arguments[2], row(context, builder, signature.args[0], *arguments[:2]),
                      align=8)
        return context.get_dummy_value()
    return types.void(array, types.uint64, lanes), generate


# Between arrays of states and lanes: squares of WIDTH entries of WIDTH states. What a square has
# of one state is read and written at once, in half of the time that its entries take one by one.
def whole(k):
    """Return a constant index."""
    return ir.Constant(ir.IntType(64), k)


def smaller(builder, k, limit):
    """Return the smaller of two indices."""
    return builder.select(builder.icmp_signed('<', k, limit), k, limit)


def transposed(builder, square):
    """Return the columns of a square, given by its rows."""
    rows, step = list(square), 1
    while step < WIDTH:
        for i in range(WIDTH):
            if not i & step:
                pair = rows[i], rows[i + step]
                # In each of the two: entries of the first row, and of the second from WIDTH on.
                for row, places in ((i, [k + WIDTH - step if k & step else k
                                         for k in range(WIDTH)]),
                                    (i + step, [k + WIDTH if k & step else k + step
                                                for k in range(WIDTH)])):
                    rows[row] = builder.shuffle_vector(*pair, ir.Constant(
                        ir.VectorType(ir.IntType(32), WIDTH), places))
        step *= 2
    return rows


def size_of(context, builder, kind, x):
    """Return how many rows of lanes there are in an array."""
    view, size = context.make_array(kind)(context, builder, x), whole(1)
    for length in cgutils.unpack_tuple(builder, view.shape, kind.ndim)[:-1]:
        size = builder.mul(size, length)
    return size


class States:
    """
    An array of states, the first axis; all others are taken as one.

    Parameters
    ----------
    context, builder, kind, array
        As numba passes them.

    """

    def __init__(self, context, builder, kind, array):
        view = context.make_array(kind)(context, builder, array)
        self.builder, self.data = builder, view.data
        self.count, *shape = cgutils.unpack_tuple(builder, view.shape, kind.ndim)
        self.width = whole(1)
        for size in shape:
            self.width = builder.mul(self.width, size)
        self.single = kind.dtype is types.float32
        self.vector = (ir.VectorType(ir.FloatType(), WIDTH) if self.single else VECTOR)

    def squares(self):
        """Go through the squares of some states: yield their first column."""
        return cgutils.for_range_slice(self.builder, whole(0), self.width, whole(WIDTH))

    def _move(self, name, result, *arguments):
        """Call LLVM's load or store of some of the entries of a register."""
        suffix = f'v{WIDTH}f{32 if self.single else 64}.p0'
        function = cgutils.get_or_insert_function(self.builder.module, ir.FunctionType(
            result, [x.type for x in arguments]), f'llvm.masked.{name}.{suffix}')
        return self.builder.call(function, arguments)

    def _where(self, state, column):
        """Return where a row of a square begins, its alignment, and which entries it has."""
        builder = self.builder
        place = builder.gep(self.data, [builder.add(builder.mul(state, self.width), column)])
        left = ir.Constant(ir.VectorType(ir.IntType(64), WIDTH), ir.Undefined)
        for lane in range(WIDTH):
            left = builder.insert_element(left, builder.sub(self.width, column),
                                          ir.Constant(ir.IntType(32), lane))
        there = builder.icmp_signed('<', ir.Constant(left.type, list(range(WIDTH))), left)
        return (builder.bitcast(place, self.vector.as_pointer()),
                ir.Constant(ir.IntType(32), 4 if self.single else 8), there)

    def load(self, state, column):
        """Return the row of a square."""
        row = self._move('load', self.vector, *self._where(state, column),
                         ir.Constant(self.vector, ir.Undefined))
        return self.builder.fpext(row, VECTOR) if self.single else row

    def store(self, state, column, row):
        """Write the row of a square."""
        if self.single:
            row = self.builder.fptrunc(row, self.vector)
        self._move('store', ir.VoidType(), row, *self._where(state, column))

    def are_many(self):
        """Return whether they fill caches, and their rows whole registers of the processor."""
        builder = self.builder
        size = builder.mul(whole(8), builder.mul(self.count, self.width))
        place = builder.or_(builder.ptrtoint(self.data, ir.IntType(64)),
                            builder.mul(whole(8), self.width))
        aligned = builder.icmp_unsigned(
            '==', builder.and_(place, whole(8 * WIDTH - 1)), whole(0))
        return builder.and_(aligned, builder.icmp_signed('>=', size, whole(STREAMED)))

    def stream(self, state, column, row):
        """Write the row of a square to memory, past the caches, which need not read it then."""
        # Whoever hands results to another thread takes a lock, which completes the writing.
        builder = self.builder
        place = builder.gep(self.data, [builder.add(builder.mul(state, self.width), column)])
        store = builder.store(row, builder.bitcast(place, self.vector.as_pointer()),
                              align=8 * WIDTH)
        store.set_metadata('nontemporal', builder.module.add_metadata(
            [ir.Constant(ir.IntType(32), 1)]))


@intrinsic
def load_states(typing_context, X, first, x):
    """Write states from the first on to lanes."""
    if X.layout != 'C' or x.layout != 'C':
        return None

    def generate(context, builder, signature, arguments):
        array, first, x = arguments
        states = States(context, builder, signature.args[0], array)
        last = builder.sub(states.count, whole(1))
        with states.squares() as (column, _):
            square = [states.load(smaller(builder, builder.add(first, whole(lane)), last), column)
                      for lane in range(WIDTH)]
            for k, entries in enumerate(transposed(builder, square)):
                i = builder.add(column, whole(k))
                with builder.if_then(builder.icmp_signed('<', i, states.width)):
                    builder.store(entries, row(context, builder, signature.args[2], x, i),
                                  align=8)
        return context.get_dummy_value()
    return types.void(X, types.intp, x), generate


@intrinsic
def store_states(typing_context, x, first, X):
    """Write lanes to states from the first on."""
    if X.layout != 'C' or x.layout != 'C':
        return None

    def generate(context, builder, signature, arguments):
        x, first, array = arguments
        states = States(context, builder, signature.args[2], array)
        # Where rows of states are longer than there are lanes the last ones fill them.
        last = builder.sub(size_of(context, builder, signature.args[0], x), whole(1))

        def store(write):
            with states.squares() as (column, _):
                square = [builder.load(
                    row(context, builder, signature.args[0], x,
                        smaller(builder, builder.add(column, whole(k)), last)), align=8)
                    for k in range(WIDTH)]
                for lane, entries in enumerate(transposed(builder, square)):
                    state = builder.add(first, whole(lane))
                    with builder.if_then(builder.icmp_signed('<', state, states.count)):
                        write(state, column, entries)

        if states.single:
            store(states.store)
        else:
            with builder.if_else(states.are_many()) as (many, few):
                with many:
                    store(states.stream)
                with few:
                    store(states.store)
        return context.get_dummy_value()
    return types.void(x, types.intp, X), generate


@intrinsic
def lanes_are_finite(typing_context, x):
    """Return whether every lane is finite."""
    def generate(context, builder, signature, arguments):
        difference = builder.fsub(arguments[0], arguments[0])
        fine = builder.fcmp_ordered('ord', difference, difference)
        bits = builder.bitcast(fine, ir.IntType(WIDTH))
        return builder.icmp_unsigned('==', bits, ir.Constant(bits.type, 2 ** WIDTH - 1))
    return types.boolean(lanes), generate


@intrinsic
def lanes_exceed(typing_context, x, y):
    """Return whether x > y in every lane."""
    def generate(context, builder, signature, arguments):
        bits = builder.bitcast(builder.fcmp_ordered('>', *arguments), ir.IntType(WIDTH))
        return builder.icmp_unsigned('==', bits, ir.Constant(bits.type, 2 ** WIDTH - 1))
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
    """Make a function that returns part k of a pair, and anything else as it is."""
    @infer_global(function)
    class Typing(AbstractTemplate):
        """The part, or the table."""

        def generic(self, arguments, keywords):
            """Return its type."""
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


@overload(side_by_side)
def _side_by_side(robot):
    if isinstance(robot, types.BaseTuple):
        return lambda robot: True
    return lambda robot: False


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


@overload(gather)
def _gather(X, first, x):
    return lambda X, first, x: load_states(X, first, x)


@overload(scatter)
def _scatter(x, first, X):
    return lambda x, first, X: store_states(x, first, X)


@overload(exceeds)
def _exceeds(x, y):
    if x is lanes:
        return lambda x, y: lanes_exceed(x, y)
    return lambda x, y: x > y


@overload(reciprocal)
def _reciprocal(x):
    if x is lanes:
        return lambda x: lanes_reciprocal(x)
    return lambda x: 1.0 / x if x > 0.0 else 0.0


@overload(square_root)
def _square_root(x):
    if x is lanes:
        return lambda x: lanes_square_root(x)
    return lambda x: math.sqrt(x)


@overload(finite)
def _finite(x):
    if x is lanes:
        return lambda x: lanes_are_finite(x)
    return lambda x: math.isfinite(x)

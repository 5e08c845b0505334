# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
How `gather` and `scatter` are compiled: arrays of states to lanes, and back.

Both work on tiles of WIDTH entries of WIDTH states, which are transposed in registers. Loads and
stores of whole rows of a tile take half the time of single entries.

"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload
from rbd_ros.kernels.lanes.compiled_lanes import row_pointer, VECTOR
from rbd_ros.kernels.lanes.lanes import gather, scatter, STREAMED, WIDTH


def index(k):
    """Return a constant index."""
    return ir.Constant(ir.IntType(64), k)


def smaller(builder, k, limit):
    """Return the smaller of two indices."""
    return builder.select(builder.icmp_signed('<', k, limit), k, limit)


def transposed(builder, tile):
    """Return the columns of a tile, given by its rows."""
    rows, step = list(tile), 1
    while step < WIDTH:
        for i in range(WIDTH):
            if not i & step:
                pair = rows[i], rows[i + step]
                # Shuffle indices: entries of the first row, then of the second from WIDTH on.
                first = [k + WIDTH - step if k & step else k for k in range(WIDTH)]
                second = [k + WIDTH if k & step else k + step for k in range(WIDTH)]
                for row, picked in ((i, first), (i + step, second)):
                    rows[row] = builder.shuffle_vector(*pair, ir.Constant(
                        ir.VectorType(ir.IntType(32), WIDTH), picked))
        step *= 2
    return rows


def size_of(context, builder, kind, x):
    """Return how many rows of lanes there are in an array."""
    view, size = context.make_array(kind)(context, builder, x), index(1)
    for length in cgutils.unpack_tuple(builder, view.shape, kind.ndim)[:-1]:
        size = builder.mul(size, length)
    return size


class States:
    """An array of states, one per entry of its first axis; the other axes count as one."""

    def __init__(self, context, builder, kind, array):
        view = context.make_array(kind)(context, builder, array)
        self.builder, self.data = builder, view.data
        self.count, *shape = cgutils.unpack_tuple(builder, view.shape, kind.ndim)
        self.width = index(1)
        for size in shape:
            self.width = builder.mul(self.width, size)
        self.single = kind.dtype is types.float32
        self.vector = (ir.VectorType(ir.FloatType(), WIDTH) if self.single else VECTOR)

    def tile_columns(self):
        """Loop over the first columns of the tiles."""
        return cgutils.for_range_slice(self.builder, index(0), self.width, index(WIDTH))

    def _masked(self, name, result, *arguments):
        """Call LLVM's masked load or store."""
        suffix = f'v{WIDTH}f{32 if self.single else 64}.p0'
        function = cgutils.get_or_insert_function(self.builder.module, ir.FunctionType(
            result, [x.type for x in arguments]), f'llvm.masked.{name}.{suffix}')
        return self.builder.call(function, arguments)

    def _tile_row(self, state, column):
        """Return pointer, alignment and mask of a row of a tile."""
        builder = self.builder
        pointer = builder.gep(self.data, [builder.add(builder.mul(state, self.width), column)])
        left = ir.Constant(ir.VectorType(ir.IntType(64), WIDTH), ir.Undefined)
        for lane in range(WIDTH):
            left = builder.insert_element(left, builder.sub(self.width, column),
                                          ir.Constant(ir.IntType(32), lane))
        there = builder.icmp_signed('<', ir.Constant(left.type, list(range(WIDTH))), left)
        return (builder.bitcast(pointer, self.vector.as_pointer()),
                ir.Constant(ir.IntType(32), 4 if self.single else 8), there)

    def load(self, state, column):
        row = self._masked('load', self.vector, *self._tile_row(state, column),
                           ir.Constant(self.vector, ir.Undefined))
        return self.builder.fpext(row, VECTOR) if self.single else row

    def store(self, state, column, row):
        if self.single:
            row = self.builder.fptrunc(row, self.vector)
        self._masked('store', ir.VoidType(), row, *self._tile_row(state, column))

    def should_stream(self):
        """Return whether the array exceeds the caches and its rows fill whole registers."""
        builder = self.builder
        size = builder.mul(index(8), builder.mul(self.count, self.width))
        pointer = builder.or_(builder.ptrtoint(self.data, ir.IntType(64)),
                              builder.mul(index(8), self.width))
        aligned = builder.icmp_unsigned(
            '==', builder.and_(pointer, index(8 * WIDTH - 1)), index(0))
        return builder.and_(aligned, builder.icmp_signed('>=', size, index(STREAMED)))

    def stream(self, state, column, row):
        """Write a row of a tile to memory, bypassing the caches, which then need not read it."""
        # The lock taken to hand results to another thread orders these stores.
        builder = self.builder
        pointer = builder.gep(self.data, [builder.add(builder.mul(state, self.width), column)])
        store = builder.store(row, builder.bitcast(pointer, self.vector.as_pointer()),
                              align=8 * WIDTH)
        store.set_metadata('nontemporal', builder.module.add_metadata(
            [ir.Constant(ir.IntType(32), 1)]))


@intrinsic
def load_states(typing_context, X, first, x):
    """Do `gather`."""
    if X.layout != 'C' or x.layout != 'C':
        return None

    def generate(context, builder, signature, arguments):
        array, first, x = arguments
        states = States(context, builder, signature.args[0], array)
        last = builder.sub(states.count, index(1))
        with states.tile_columns() as (column, _):
            tile = [states.load(smaller(builder, builder.add(first, index(lane)), last), column)
                    for lane in range(WIDTH)]
            for k, entries in enumerate(transposed(builder, tile)):
                i = builder.add(column, index(k))
                with builder.if_then(builder.icmp_signed('<', i, states.width)):
                    builder.store(entries, row_pointer(context, builder, signature.args[2], x, i),
                                  align=8)
        return context.get_dummy_value()
    return types.void(X, types.intp, x), generate


@intrinsic
def store_states(typing_context, x, first, X):
    """Do `scatter`."""
    if X.layout != 'C' or x.layout != 'C':
        return None

    def generate(context, builder, signature, arguments):
        x, first, array = arguments
        states = States(context, builder, signature.args[2], array)
        # Rows of states that are longer than x are filled with its last row.
        last = builder.sub(size_of(context, builder, signature.args[0], x), index(1))

        def store(write):
            with states.tile_columns() as (column, _):
                rows = [smaller(builder, builder.add(column, index(k)), last)
                        for k in range(WIDTH)]
                tile = [builder.load(row_pointer(context, builder, signature.args[0], x, i),
                                     align=8) for i in rows]
                for lane, entries in enumerate(transposed(builder, tile)):
                    state = builder.add(first, index(lane))
                    with builder.if_then(builder.icmp_signed('<', state, states.count)):
                        write(state, column, entries)

        if states.single:
            store(states.store)
        else:
            with builder.if_else(states.should_stream()) as (many, few):
                with many:
                    store(states.stream)
                with few:
                    store(states.store)
        return context.get_dummy_value()
    return types.void(x, types.intp, X), generate


@overload(gather)
def _gather(X, first, x):
    return lambda X, first, x: load_states(X, first, x)


@overload(scatter)
def _scatter(x, first, X):
    return lambda x, first, X: store_states(x, first, X)

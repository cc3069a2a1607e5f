"""The compiled inner loop of the statistics: log det and inverse of the minors L_Y of many small sets.

numba cannot vectorise over sets, so this module writes the inner code itself, in LLVM's intermediate language. LLVM is
the compiler behind numba. No knowledge of it is needed beyond this page.

Lanes. A processor applies one instruction to LANES float64 numbers at a time. Sets of equal size need the same
instructions, so each lane holds another set. `data.blocks` lays out the items of LANES sets side by side; that is a
block. A `Lanes` stands for LANES numbers that will exist at run time. Its operators do not compute anything: they
append an instruction to the program that is being written. Ordinary Python code with `Lanes` therefore reads like the
formula, and a Python loop over `range(k)` is unrolled. Loops that must exist at run time use `loop`, and variables that
these change are a `Sum`.

Sizes. For each size from 2 to SMALL a separate function without loops is written, in which all numbers stay in
registers or on the stack. Larger sizes share `_any_sets`, with loops at run time and a work array. Sets of one item
need only their weights.

Guards. C is L scaled to a unit diagonal, so pivots lie between 0 and 1. A pivot below `smallest` cannot be
distinguished from 0: the set is left out, and its weight is summed separately. Lanes cannot branch one by one, so the
computation continues in all of them; `alive` masks the result. Items with L_ii = 0 have rows of NaN, and comparisons
with NaN are false, which also leaves the set out. Determinants of larger sets are kept as mantissa and exponent
(`split`), because products of many pivots would underflow. The caller takes the logarithms.

Formulas. C_Y = l D lᵀ with l unit lower triangular, and C_Y⁻¹ = Tᵀ D⁻¹ T with T = −l⁻¹.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from dpplearn.data import blocks
from dpplearn.distributions.compiled.signatures import (
    GROUPS,
    ITEMS,
    MATRIX,
    NUMBERS,
    OUT_MATRIX,
    OUT_NUMBERS,
)

LANES = 4
# numba compiles again when this file changes, but not when a constant of another file does.
assert LANES == blocks.LANES

INT = ir.IntType(64)
ITEM = ir.IntType(32)
VECTOR = ir.VectorType(ir.DoubleType(), LANES)
BITS = ir.VectorType(INT, LANES)

# a multiplication and an addition may become one instruction; NaN and infinity keep their meaning
CONTRACT = ("contract",)

ONE, ROOT_HALF = 0x3FF0000000000000, 0x3FE6A09E667F3BCD  # the bits of 1 and of √½
TWO_TO_52 = 0x4330000000000000  # the bits of 2⁵², whose last bits count in ones
MANTISSA = 0x000FFFFFFFFFFFFF

SMALL = 10  # sizes up to this have code of their own; beyond, it would take long to compile
WIDTH = 4  # columns that share the loads of a row


class Lanes:
    """Four float64, with the arithmetic of one."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def _value(self, other: Lanes | float) -> Any:
        return other.value if isinstance(other, Lanes) else ir.Constant(VECTOR, [float(other)] * LANES)

    def __add__(self, other: Lanes | float) -> Lanes:
        return Lanes(self.builder, self.builder.fadd(self.value, self._value(other), flags=CONTRACT))

    def __sub__(self, other: Lanes | float) -> Lanes:
        return Lanes(self.builder, self.builder.fsub(self.value, self._value(other), flags=CONTRACT))

    def __rsub__(self, other: float) -> Lanes:
        return Lanes(self.builder, self.builder.fsub(self._value(other), self.value, flags=CONTRACT))

    def __mul__(self, other: Lanes | float) -> Lanes:
        return Lanes(self.builder, self.builder.fmul(self.value, self._value(other), flags=CONTRACT))

    def __truediv__(self, other: Lanes) -> Lanes:
        return Lanes(self.builder, self.builder.fdiv(self.value, other.value))

    def __rtruediv__(self, other: float) -> Lanes:
        return Lanes(self.builder, self.builder.fdiv(self._value(other), self.value))

    def at_least(self, bound: Lanes | float) -> Any:
        """Return a mask, false where a lane is NaN."""
        return self.builder.fcmp_ordered(">=", self.value, self._value(bound))

    def where(self, mask: Any, other: float) -> Lanes:
        """Return these lanes where the mask is true, and the number elsewhere."""
        return Lanes(self.builder, self.builder.select(mask, self.value, self._value(other)))

    def each(self) -> list[Any]:
        """Return the four numbers."""
        return [self.builder.extract_element(self.value, ITEM(lane)) for lane in range(LANES)]


def constant(builder: Any, number: float) -> Lanes:
    return Lanes(builder, ir.Constant(VECTOR, [float(number)] * LANES))


def broadcast(builder: Any, number: Any) -> Lanes:
    """Return one number in every lane."""
    return from_each(builder, [number] * LANES)


def from_each(builder: Any, numbers: Sequence[Any]) -> Lanes:
    value = ir.Constant(VECTOR, ir.Undefined)
    for lane, number in enumerate(numbers):
        value = builder.insert_element(value, number, ITEM(lane))
    return Lanes(builder, value)


def load(builder: Any, array: Any, index: Any) -> Lanes:
    """The four neighbours that are number `index` of the fours of an array."""
    return Lanes(builder, builder.load(_four(builder, array, index), align=8))


def store(builder: Any, array: Any, index: Any, lanes: Lanes) -> None:
    builder.store(lanes.value, _four(builder, array, index), align=8)


def _four(builder: Any, array: Any, index: Any) -> Any:
    return builder.gep(builder.bitcast(array, VECTOR.as_pointer()), [index])


@contextmanager
def loop(builder: Any, start: Any, stop: Any, step: int = 1) -> Iterator[Any]:
    """Emit a loop over start, start + step, ... below stop; its body is what is emitted within."""
    with cgutils.for_range_slice(builder, start, stop, INT(step), INT) as (index, _):
        yield index


class Sum:
    """A register that a loop adds to."""

    def __init__(self, start: Lanes) -> None:
        self.builder = start.builder
        self.place = cgutils.alloca_once(self.builder, VECTOR)  # type: ignore[no-untyped-call]
        self.set(start)

    def set(self, lanes: Lanes) -> None:
        self.builder.store(lanes.value, self.place)

    def get(self) -> Lanes:
        return Lanes(self.builder, self.builder.load(self.place))


def split(x: Lanes) -> tuple[Lanes, Lanes]:
    """m in [√½, √2) and e whole, with x = m 2ᵉ, for positive normal x."""
    builder = x.builder
    bits = builder.add(builder.bitcast(x.value, BITS), _bits(ONE - ROOT_HALF))
    exponent = builder.or_(builder.lshr(bits, _bits(52)), _bits(TWO_TO_52))
    mantissa = builder.add(builder.and_(bits, _bits(MANTISSA)), _bits(ROOT_HALF))
    e = Lanes(builder, builder.bitcast(exponent, VECTOR)) - (2.0**52 + 1023)
    return Lanes(builder, builder.bitcast(mantissa, VECTOR)), e


def _bits(pattern: int) -> Any:
    return ir.Constant(BITS, [pattern] * LANES)


class Block:
    """LANES sets of k items, four of a kind side by side: what an intrinsic reads of them and adds for them."""

    def __init__(self, builder: Any, arrays: Any, block: Any, k: Any) -> None:
        self.builder = builder
        self.n_items = arrays.n_items
        self.first = builder.gep(arrays.items, [builder.mul(builder.mul(block, k), INT(LANES))])
        self.weights = load(builder, arrays.weights, block)
        self.read: dict[int, list[Any]] = {}

    def items(self, i: Any) -> list[Any]:
        """Return y_i of every set; straight-line code, where i is a number, reads it once."""
        if not isinstance(i, int):
            start = self.builder.mul(i, INT(LANES))
            return self._items([self.builder.add(start, INT(lane)) for lane in range(LANES)])
        if i not in self.read:
            self.read[i] = self._items([INT(i * LANES + lane) for lane in range(LANES)])
        return self.read[i]

    def _items(self, places: list[Any]) -> list[Any]:
        return [self.builder.zext(self.builder.load(self.builder.gep(self.first, [place])), INT) for place in places]

    def rows(self, matrix: Any, i: Any) -> list[Any]:
        """Return the address of row y_i of a matrix for every set."""
        return [self.builder.gep(matrix, [self.builder.mul(item, self.n_items)]) for item in self.items(i)]

    def gather(self, rows: list[Any], j: Any) -> Lanes:
        """Return entry y_j of those rows."""
        places = [self.builder.gep(row, [item]) for row, item in zip(rows, self.items(j), strict=True)]
        return from_each(self.builder, [self.builder.load(place) for place in places])

    def add(self, rows: list[Any], j: Any, lanes: Lanes) -> None:
        """Add to entry y_j of those rows, one set after the other: two may hold the same pair."""
        for row, item, value in zip(rows, self.items(j), lanes.each(), strict=True):
            place = self.builder.gep(row, [item])
            self.builder.store(self.builder.fadd(self.builder.load(place), value), place)


class Arrays:
    """The arguments of an intrinsic as LLVM values."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        values = [
            context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
            for kind, value in zip(signature.args, arguments, strict=True)
        ]
        C, items, first_item, weights, first_place, self.k, self.smallest, self.start, self.stop, *results = values
        delta, determinants, exponents, work = results
        self.builder, self.n_items = builder, builder.extract_value(C.shape, 0)
        self.C = C.data
        self.items = builder.gep(items.data, [first_item])
        self.weights = builder.gep(weights.data, [first_place])
        self.delta = delta.data
        self.determinants = builder.gep(determinants.data, [first_place])
        self.exponents = builder.gep(exponents.data, [first_place])
        self.work = work.data


class Factor(NamedTuple):
    """l below its diagonal, 1/d, the product of d, and which lanes have no pivot below the smallest allowed."""

    lower: list[list[Lanes]]
    inverses: list[Lanes]
    det: Lanes
    alive: Any


def _small_factor(block: Block, C: Any, k: int, smallest: Any) -> Factor:
    builder = block.builder
    limit = broadcast(builder, smallest)
    det = constant(builder, 1.0)
    alive = det.at_least(0.0)
    lower: list[list[Lanes]] = [[]]
    inverses = [det]
    for i in range(1, k):
        rows, d = block.rows(C, i), constant(builder, 1.0)
        u: list[Lanes] = []
        l_i: list[Lanes] = []
        for j in range(i):
            u_j = block.gather(rows, j)
            for p in range(j):
                u_j = u_j - u[p] * lower[j][p]
            u.append(u_j)
            l_i.append(u_j * inverses[j] if j else u_j)
            d = d - u_j * l_i[j]
        lower.append(l_i)
        inverses.append(1.0 / d)
        det = det * d if i > 1 else d
        alive = builder.and_(alive, d.at_least(limit))
    return Factor(lower, inverses, det, alive)


def _small_inverse(block: Block, factor: Factor, delta: Any) -> None:
    """Add w (C_Y)⁻¹ = w TᵀD⁻¹T to the upper triangle of delta."""
    l, inverses, k = factor.lower, factor.inverses, len(factor.lower)  # noqa: E741
    T: list[list[Lanes]] = []
    for i in range(k):
        T.append([])
        for j in range(i):
            t = l[i][j]
            for p in range(j + 1, i):
                t = t - l[i][p] * T[p][j]
            T[i].append(t)
    weighted = [inverse * block.weights for inverse in inverses]
    Z = [[t * weighted[i] for t in T[i]] for i in range(k)]
    for j in range(k):
        rows = block.rows(delta, j)
        for i in range(j, k):
            first, *terms = [Z[p][i] * T[p][j] for p in range(i + 1, k)] or [constant(block.builder, 0.0)]
            value = first + weighted[i] if i == j else first - Z[i][j]
            for term in terms:
                value = value + term
            block.add(rows, i, value.where(factor.alive, 0.0))


def _small_function(module: Any, k: int, want_delta: bool) -> Any:
    """A function for blocks start to stop of sets of k items: determinants, 0 where a pivot is too small, and Delta."""
    number, pointer = ir.DoubleType(), ir.DoubleType().as_pointer()
    given = [pointer, INT, ITEM.as_pointer(), pointer, pointer, number, INT, INT, pointer]
    kind = ir.FunctionType(ir.VoidType(), given)
    function = ir.Function(module, kind, f"{'inverses' if want_delta else 'determinants'}_of_{k}")
    function.linkage = "internal"
    function.attributes.add("noinline")  # so that its registers and its frame are its own
    function.attributes.alignstack = 8 * LANES
    builder = ir.IRBuilder(function.append_basic_block())
    arrays = SmallArguments(*function.args)
    with loop(builder, arrays.start, arrays.stop) as number:
        block = Block(builder, arrays, number, INT(k))
        factor = _small_factor(block, arrays.C, k, arrays.smallest)
        store(builder, arrays.determinants, number, factor.det.where(factor.alive, 0.0))
        if want_delta:
            _small_inverse(block, factor, arrays.delta)
    builder.ret_void()
    return function


class SmallArguments(NamedTuple):
    C: Any
    n_items: Any
    items: Any
    weights: Any
    delta: Any
    smallest: Any
    start: Any
    stop: Any
    determinants: Any


def _small_sets(builder: Any, arrays: Arrays, want_delta: bool) -> None:
    """Emit the code for blocks of sets of k ≤ SMALL items; every k has straight-line code.

    A product of at most SMALL pivots is above 1e-150, so it needs no exponent.
    """
    given = (arrays.C, arrays.n_items, arrays.items, arrays.weights, arrays.delta, arrays.smallest)
    done = builder.append_basic_block("done")
    switch = builder.switch(arrays.k, done)
    for k in range(2, SMALL + 1):
        switch.add_case(INT(k), builder.append_basic_block(f"size_{k}"))
        builder.position_at_end(switch.cases[-1][1])
        function = _small_function(builder.module, k, want_delta)
        builder.call(function, (*given, arrays.start, arrays.stop, arrays.determinants))
        builder.branch(done)
    builder.position_at_end(done)


class Work:
    """Memory for one block of sets of k items: T (and before it l), and what belongs to one row or column."""

    def __init__(self, builder: Any, arrays: Arrays) -> None:
        self.builder, self.work, self.k = builder, arrays.work, arrays.k
        self.pitch = builder.or_(arrays.k, INT(1))  # odd, so that a column does not crowd into few cache sets
        self.vectors = builder.mul(arrays.k, self.pitch)

    def T(self, i: Any, j: Any) -> Any:
        return self.builder.add(self.builder.mul(i, self.pitch), j)

    def inverse(self, i: Any) -> Any:
        return self.builder.add(self.vectors, i)

    def row(self, i: Any) -> Any:
        return self.builder.add(self.inverse(self.k), i)

    def __getitem__(self, place: Any) -> Lanes:
        return load(self.builder, self.work, place)

    def __setitem__(self, place: Any, lanes: Lanes) -> None:
        store(self.builder, self.work, place, lanes)

    def clear(self) -> None:
        """−1 on the diagonal of T and 0 above."""
        zero = constant(self.builder, 0.0)
        with loop(self.builder, INT(0), self.vectors) as place:
            self[place] = zero
        with loop(self.builder, INT(0), self.k) as i:
            self[self.T(i, i)] = zero - 1.0


def _in_columns(builder: Any, start: Any, stop: Any, columns: Callable[[list[Any]], None]) -> None:
    """Emit columns(numbers) for those from start to stop, WIDTH at a time and then one by one."""
    rest = builder.add(start, builder.and_(builder.sub(stop, start), INT(-WIDTH)))
    with loop(builder, start, rest, WIDTH) as j:
        columns([builder.add(j, INT(c)) for c in range(WIDTH)])
    with loop(builder, rest, stop) as j:
        columns([j])


def _any_factor(block: Block, work: Work, arrays: Arrays) -> tuple[Lanes, Lanes, Any]:
    """l into the lower triangle and 1/d; det = m 2ᵉ, and which lanes have no pivot below the smallest allowed."""
    builder = block.builder
    smallest = broadcast(builder, arrays.smallest)
    one = constant(builder, 1.0)
    mantissa, exponent, lowest, d = Sum(one), Sum(constant(builder, 0.0)), Sum(one), Sum(one)
    work[work.inverse(INT(0))] = one
    with loop(builder, INT(1), work.k) as i:
        rows = block.rows(arrays.C, i)
        d.set(one)

        def columns(js: list[Any]) -> None:
            u = [Sum(block.gather(rows, j)) for j in js]
            with loop(builder, INT(0), js[0]) as p:
                u_p = work[work.row(p)]
                for j, u_j in zip(js, u, strict=True):
                    u_j.set(u_j.get() - u_p * work[work.T(j, p)])
            done: list[Lanes] = []
            for j, u_j in zip(js, u, strict=True):
                value = u_j.get()
                for p, u_p in zip(js, done, strict=False):
                    value = value - u_p * work[work.T(j, p)]
                done.append(value)
                work[work.row(j)] = value
                l_j = value * work[work.inverse(j)]
                work[work.T(i, j)] = l_j
                d.set(d.get() - value * l_j)

        _in_columns(builder, INT(0), i, columns)
        pivot = d.get()
        work[work.inverse(i)] = 1.0 / pivot
        possible = pivot.at_least(smallest)
        lowest.set(lowest.get().where(possible, -1.0))
        m, e = split(mantissa.get() * pivot.where(possible, 1.0))
        mantissa.set(m)
        exponent.set(exponent.get() + e)
    return mantissa.get(), exponent.get(), lowest.get().at_least(0.0)


def _any_inverse(block: Block, work: Work, alive: Any, delta: Any) -> None:
    """Add w (C_Y)⁻¹ = w TᵀD⁻¹T to the upper triangle of delta; T = −l⁻¹ takes the place of l, row by row."""
    builder, k = block.builder, work.k
    with loop(builder, INT(1), k) as i:

        def columns(js: list[Any]) -> None:
            t = [Sum(constant(builder, 0.0)) for _ in js]
            with loop(builder, js[0], i) as p:
                l_p = work[work.T(i, p)]
                for j, t_j in zip(js, t, strict=True):
                    t_j.set(t_j.get() - l_p * work[work.T(p, j)])
            for j, t_j in zip(js, t, strict=True):
                work[work.T(i, j)] = t_j.get()

        _in_columns(builder, INT(0), i, columns)
    with loop(builder, INT(0), k) as i:
        rows = block.rows(delta, i)
        with loop(builder, i, k) as p:
            work[work.row(p)] = work[work.T(p, i)] * (work[work.inverse(p)] * block.weights)

        def entries(js: list[Any]) -> None:
            sums = [Sum(constant(builder, 0.0)) for _ in js]
            with loop(builder, js[0], k) as p:
                z = work[work.row(p)]
                for j, entry in zip(js, sums, strict=True):
                    entry.set(entry.get() + z * work[work.T(p, j)])
            for j, entry in zip(js, sums, strict=True):
                block.add(rows, j, entry.get().where(alive, 0.0))

        _in_columns(builder, i, k, entries)


def _any_sets(builder: Any, arrays: Arrays, want_delta: bool) -> None:
    """Emit the code for blocks of sets of one larger size."""
    work = Work(builder, arrays)
    work.clear()
    with loop(builder, arrays.start, arrays.stop) as number:
        block = Block(builder, arrays, number, arrays.k)
        mantissa, exponent, alive = _any_factor(block, work, arrays)
        store(builder, arrays.determinants, number, mantissa.where(alive, 0.0))
        store(builder, arrays.exponents, number, exponent)
        if want_delta:
            _any_inverse(block, work, alive, arrays.delta)


# contraction allows fused multiply-add; the flags that assume away NaN and infinity stay off
OPTIONS: Any = {"nogil": True, "cache": True, "fastmath": {"contract"}, "error_model": "numpy"}


def _sets_of_one_size(want_delta: bool) -> Any:
    """Return the intrinsic for the blocks from start to stop of sets of k ≥ 2 items.

    Their first item is at `item`, their first weight and result at `place`. Results are determinants, 0 for sets that
    are left out, and their exponents to base 2.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = Arrays(context, builder, signature, arguments)
        with builder.if_else(builder.icmp_signed("<=", arrays.k, INT(SMALL))) as (small, other):
            with small:
                _small_sets(builder, arrays, want_delta)
            with other:
                _any_sets(builder, arrays, want_delta)
        return context.get_dummy_value()

    @intrinsic
    def sets_of_one_size(  # type: ignore[no-untyped-def]
        typing: Any, C, items, item, weights, place, k, smallest, start, stop, delta, determinants, exponents, work
    ):
        given = (C, items, item, weights, place, k, smallest, start, stop, delta, determinants, exponents, work)
        return types.void(*given), emit

    return sets_of_one_size


_add_inverses = _sets_of_one_size(want_delta=True)
_take_determinants = _sets_of_one_size(want_delta=False)


@njit(
    types.void(
        *(MATRIX, ITEMS, NUMBERS, GROUPS, NUMBERS, types.int64, types.int64, types.int64),
        *(OUT_MATRIX, OUT_NUMBERS, OUT_NUMBERS, OUT_NUMBERS),
    ),
    **OPTIONS,
)
def definite(  # type: ignore[no-untyped-def]
    C, items, weights, groups, smallest, rank, thread, threads, delta, determinants, exponents, work
):
    """Write a thread's part of the determinants m 2ᵉ of sets of 2 to `rank` items, 0 where a pivot is too small.

    The smallest pivot allowed for k items is smallest[k]. Unless `delta` is empty, add the upper triangle of
    Σ w (C_Y)⁻¹. `work` holds one block of the largest size.
    """
    for group in range(len(groups)):
        k, item, place, n_blocks = groups[group, 0], groups[group, 1], groups[group, 2], groups[group, 3]
        if k < 2 or k > rank:
            continue
        start, stop = n_blocks * thread // threads, n_blocks * (thread + 1) // threads
        given = (C, items, item, weights, place, k, smallest[k], start, stop)
        if len(delta):
            _add_inverses(*given, delta, determinants, exponents, work)
        else:
            _take_determinants(*given, delta, determinants, exponents, work)

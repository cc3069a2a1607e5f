"""The compiled inner loop of the statistics: determinants and inverses of the minors C_Y of many small sets.

numba cannot vectorise over sets, so this module writes the inner code itself, in LLVM's intermediate language. LLVM is
the compiler behind numba. No knowledge of it is needed beyond this page.

Lanes. A processor applies one instruction to LANES float64 numbers at a time. Sets of equal size need the same
instructions, so each lane holds another set. `data.blocks` lays out the items of LANES sets side by side; that is a
block. A `Lanes` stands for LANES numbers that will exist at run time. Its operators do not compute anything: they
append an instruction to the program that is being written. Ordinary Python code with `Lanes` therefore reads like the
formula.

Sizes. Indices are numbers where the size of the sets is known when the program is written, and otherwise run-time
values. `each` then unrolls a loop or writes one. Symmetric minors of up to SMALL items have a function per size, in
which all numbers stay in registers or on the stack. All other sizes share a function.

Guards. A symmetric C has a unit diagonal, so pivots lie between 0 and 1; those of a border at the end of every set lie
between −1 and 0. A pivot whose size is below `smallest` cannot be distinguished from 0: the set is left out, with a
determinant of 0. Lanes cannot branch one by one, so the computation continues in all of them; `alive` masks the result.
Items that cannot occur have rows of NaN, and comparisons with NaN are false, which also leaves the set out. If C is not
symmetric, its symmetric part is at least I, and so are the pivots. Determinants are products m 2ᵉ, which neither
underflow nor overflow. The caller takes the logarithms.

Formulas. Symmetric C_Y = l D lᵀ with l unit lower triangular, and C_Y⁻¹ = Tᵀ D⁻¹ T with T = −l⁻¹. Any other C_Y is
inverted in place by Gauss–Jordan elimination.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from dpplearn.data import blocks
from dpplearn.distributions.compiled.signatures import GROUPS, ITEMS, MATRIX, NUMBERS, OUT_MATRIX, OUT_NUMBERS

LANES = 4
# numba compiles again when this file changes, but not when a constant of another file does.
assert LANES == blocks.LANES

INT = ir.IntType(64)
ITEM = ir.IntType(32)
NUMBER = ir.DoubleType()
VECTOR = ir.VectorType(NUMBER, LANES)

# a multiplication and an addition may become one instruction; NaN and infinity keep their meaning
CONTRACT = ("contract",)

SMALL = 10  # symmetric minors up to this size have code of their own; beyond, it would take long to compile
WIDTH = 4  # columns that share the loads of a row
SCALE = 500  # mantissas of determinants are between 2⁻⁵⁰⁰ and 2⁵⁰⁰


class Lanes:
    """Four float64, with the arithmetic of one."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def __add__(self, other: Lanes) -> Lanes:
        return Lanes(self.builder, self.builder.fadd(self.value, other.value, flags=CONTRACT))

    def __sub__(self, other: Lanes) -> Lanes:
        return Lanes(self.builder, self.builder.fsub(self.value, other.value, flags=CONTRACT))

    def __mul__(self, other: Lanes) -> Lanes:
        return Lanes(self.builder, self.builder.fmul(self.value, other.value, flags=CONTRACT))

    def __truediv__(self, other: Lanes) -> Lanes:
        return Lanes(self.builder, self.builder.fdiv(self.value, other.value))

    def __ge__(self, other: Lanes) -> Any:
        """Return a mask, false where a lane is NaN."""
        return self.builder.fcmp_ordered(">=", self.value, other.value)

    def where(self, mask: Any, other: Lanes) -> Lanes:
        """Return these lanes where the mask is true, and the others elsewhere."""
        return Lanes(self.builder, self.builder.select(mask, self.value, other.value))

    def each(self) -> list[Any]:
        """Return the four numbers."""
        return [self.builder.extract_element(self.value, ITEM(lane)) for lane in range(LANES)]


def constant(builder: Any, number: float) -> Lanes:
    return Lanes(builder, ir.Constant(VECTOR, [float(number)] * LANES))


def from_each(builder: Any, numbers: Sequence[Any]) -> Lanes:
    value = ir.Constant(VECTOR, ir.Undefined)
    for lane, number in enumerate(numbers):
        value = builder.insert_element(value, number, ITEM(lane))
    return Lanes(builder, value)


def load(builder: Any, array: Any, index: Any) -> Lanes:
    """Load the numbers LANES · index to LANES · index + LANES − 1 of an array."""
    return Lanes(builder, builder.load(_four(builder, array, index), align=8))


def store(builder: Any, array: Any, index: Any, lanes: Lanes) -> None:
    builder.store(lanes.value, _four(builder, array, index), align=8)


def _four(builder: Any, array: Any, index: Any) -> Any:
    return builder.gep(builder.bitcast(array, VECTOR.as_pointer()), [index])


def on_stack(builder: Any, kind: Any) -> Any:
    return cgutils.alloca_once(builder, kind)  # type: ignore[no-untyped-call]


class Variable:
    """Lanes that a loop changes."""

    def __init__(self, start: Lanes) -> None:
        self.builder = start.builder
        self.place = on_stack(self.builder, VECTOR)
        self.set(start)

    def set(self, lanes: Lanes) -> None:
        self.builder.store(lanes.value, self.place)

    def get(self) -> Lanes:
        return Lanes(self.builder, self.builder.load(self.place))


@contextmanager
def loop(builder: Any, start: Any, stop: Any, step: int = 1) -> Iterator[Any]:
    """Write a loop over start, start + step, ... below stop; its body is what is written within."""
    with cgutils.for_range_slice(builder, start, stop, INT(step), INT) as (index, _):
        yield index


# The arguments of a function for all blocks of sets of one size, as LLVM values; arrays are pointers.
Arguments = namedtuple(
    "Arguments", "C n_rows n_symmetric items weights k smallest start stop delta mantissas exponents work"
)


class Program:
    """The code for one block: LANES sets of k items, where k is a number or a run-time value.

    `work` has k + 2 rows of lanes: a matrix, the inverse pivots, and a row that is being computed.
    """

    def __init__(self, builder: Any, arguments: Arguments, k: Any) -> None:
        self.builder, self.arguments, self.k = builder, arguments, k
        self.zero, self.one = constant(builder, 0), constant(builder, 1)
        self.known = isinstance(k, int)
        # odd, so that a column does not crowd into few cache sets
        self.pitch = k if self.known else builder.or_(k, INT(1))
        self.inverses, self.row = k, self.plus(k, 1)
        self.work = on_stack(builder, ir.ArrayType(VECTOR, k * (k + 2))) if self.known else arguments.work

    def plus(self, i: Any, number: int) -> Any:
        return i + number if isinstance(i, int) else self.builder.add(i, INT(number))

    def value(self, i: Any) -> Any:
        return INT(i) if isinstance(i, int) else i

    def each(self, start: Any, stop: Any) -> Iterator[Any]:
        """Loop over start, ..., stop − 1, unrolled where these are numbers."""
        if isinstance(start, int) and isinstance(stop, int):
            yield from range(start, stop)
        else:
            with loop(self.builder, self.value(start), self.value(stop)) as i:
                yield i

    def columns(self, start: Any, stop: Any) -> Iterator[list[Any]]:
        """Loop over start, ..., stop − 1, in a run-time loop WIDTH at a time and then one by one."""
        if isinstance(start, int) and isinstance(stop, int):
            yield from ([j] for j in range(start, stop))
        else:
            start, stop, builder = self.value(start), self.value(stop), self.builder
            rest = builder.add(start, builder.and_(builder.sub(stop, start), INT(-WIDTH)))
            with loop(builder, start, rest, WIDTH) as j:
                yield [self.plus(j, c) for c in range(WIDTH)]
            with loop(builder, rest, stop) as j:
                yield [j]

    def _place(self, i: Any, j: Any) -> Any:
        if self.known:
            return INT(i * self.pitch + j)
        return self.builder.add(self.builder.mul(self.value(i), self.pitch), self.value(j))

    def __getitem__(self, place: tuple[Any, Any]) -> Lanes:
        return load(self.builder, self.work, self._place(*place))

    def __setitem__(self, place: tuple[Any, Any], lanes: Lanes) -> None:
        store(self.builder, self.work, self._place(*place), lanes)

    def write(self, symmetric: bool, want_delta: bool) -> None:
        """Write the code for all blocks."""
        given = self.arguments
        if symmetric and want_delta:  # −1 on the diagonal of T and 0 above, which nothing overwrites
            for i in self.each(0, self.k):
                self[i, i] = self.zero - self.one
                for j in self.each(self.plus(i, 1), self.k):
                    self[i, j] = self.zero
        with loop(self.builder, given.start, given.stop) as block:
            self.first = self.builder.gep(
                given.items, [self.builder.mul(block, self.builder.mul(self.value(self.k), INT(LANES)))]
            )
            self.weights = load(self.builder, given.weights, block)
            self.mantissa, self.exponent = Variable(self.one), Variable(self.zero)
            if symmetric:
                alive = self.factor()
                mantissa = self.mantissa.get().where(alive, self.zero)
                if want_delta:
                    self.add_inverse(alive)
            else:
                self.eliminate(want_delta)
                mantissa = self.mantissa.get()
            store(self.builder, given.mantissas, block, mantissa)
            store(self.builder, given.exponents, block, self.exponent.get())

    def items(self, i: Any) -> list[Any]:
        """Return y_i of every set."""
        builder, first = self.builder, self.builder.mul(self.value(i), INT(LANES))
        places = [builder.gep(self.first, [builder.add(first, INT(lane))]) for lane in range(LANES)]
        return [builder.zext(builder.load(place), INT) for place in places]

    def rows(self, matrix: Any, i: Any) -> list[Any]:
        """Return the address of row y_i of a matrix for every set."""
        n_rows = self.arguments.n_rows
        return [self.builder.gep(matrix, [self.builder.mul(item, n_rows)]) for item in self.items(i)]

    def gather(self, rows: list[Any], j: Any) -> Lanes:
        """Return entry y_j of those rows."""
        places = [self.builder.gep(row, [item]) for row, item in zip(rows, self.items(j), strict=True)]
        return from_each(self.builder, [self.builder.load(place) for place in places])

    def add(self, rows: list[Any], j: Any, lanes: Lanes) -> None:
        """Add to entry y_j of those rows, one set after the other: two may hold the same pair."""
        for row, item, value in zip(rows, self.items(j), lanes.each(), strict=True):
            place = self.builder.gep(row, [item])
            self.builder.store(self.builder.fadd(self.builder.load(place), value), place)

    def multiply(self, pivot: Lanes) -> None:
        """Multiply the determinant by a pivot."""
        product, exponent = self.mantissa.get() * pivot, self.exponent.get()
        if not self.known:  # SMALL pivots of 1e-15 multiply to more than 1e-150
            up, down, change = (constant(self.builder, x) for x in (2.0**SCALE, 2.0**-SCALE, SCALE))
            large, fits = product >= up, product >= down
            product = (product * down).where(large, product.where(fits, product * up))
            self.exponent.set((exponent + change).where(large, exponent.where(fits, exponent - change)))
        self.mantissa.set(product)

    def factor(self) -> Any:
        """l into the lower triangle and 1/d; return a mask of the lanes that have no pivot below the smallest."""
        smallest = from_each(self.builder, [self.arguments.smallest] * LANES)
        lowest, d = Variable(self.one), Variable(self.one)
        for i in self.each(0, self.k):
            rows = self.rows(self.arguments.C, i)
            d.set(self.gather(rows, i))
            for js in self.columns(0, i):
                u = [Variable(self.gather(rows, j)) for j in js]
                for p in self.each(0, js[0]):
                    u_p = self[self.row, p]
                    for j, u_j in zip(js, u, strict=True):
                        u_j.set(u_j.get() - u_p * self[j, p])
                done: list[Lanes] = []
                for j, u_j in zip(js, u, strict=True):
                    value = u_j.get()
                    for p, u_p in zip(js, done, strict=False):
                        value = value - u_p * self[j, p]
                    done.append(value)
                    self[self.row, j] = value
                    l_j = value * self[self.inverses, j]
                    self[i, j] = l_j
                    d.set(d.get() - value * l_j)
            pivot = d.get()
            self[self.inverses, i] = self.one / pivot
            size = pivot * self.sign(i)
            possible = size >= smallest
            lowest.set(lowest.get().where(possible, self.zero))
            self.multiply(size.where(possible, self.one))
        return lowest.get() >= self.one

    def sign(self, i: Any) -> Lanes:
        """Return the sign that pivot i must have: −1 for the border."""
        in_border = self.builder.icmp_unsigned(">=", self.items(i)[0], self.arguments.n_symmetric)
        return (self.zero - self.one).where(in_border, self.one)

    def add_inverse(self, alive: Any) -> None:
        """Add w (C_Y)⁻¹ = w TᵀD⁻¹T to the upper triangle of delta; T = −l⁻¹ takes the place of l, row by row."""
        for i in self.each(1, self.k):
            for js in self.columns(0, i):
                t = [Variable(self.zero) for _ in js]
                for p in self.each(js[0], i):
                    l_p = self[i, p]
                    for j, t_j in zip(js, t, strict=True):
                        t_j.set(t_j.get() - l_p * self[p, j])
                for j, t_j in zip(js, t, strict=True):
                    self[i, j] = t_j.get()
        for i in self.each(0, self.k):
            rows = self.rows(self.arguments.delta, i)
            for p in self.each(i, self.k):
                self[self.row, p] = self[p, i] * (self[self.inverses, p] * self.weights)
            for js in self.columns(i, self.k):
                sums = [Variable(self.zero) for _ in js]
                for p in self.each(js[0], self.k):
                    z = self[self.row, p]
                    for j, entry in zip(js, sums, strict=True):
                        entry.set(entry.get() + z * self[p, j])
                for j, entry in zip(js, sums, strict=True):
                    self.add(rows, j, entry.get().where(alive, self.zero))

    def eliminate(self, want_delta: bool) -> None:
        """Add w C_Y⁻ᵀ to delta if it is wanted."""
        for i in self.each(0, self.k):
            rows = self.rows(self.arguments.C, i)
            for j in self.each(0, self.k):
                self[i, j] = self.gather(rows, j)
        for p in self.each(0, self.k):
            pivot, after = self[p, p], self.plus(p, 1)
            self.multiply(pivot)
            self[p, p] = self.one
            for j in self.each(0, self.k):
                self[p, j] = self[p, j] / pivot
            for start, stop in ((0, p), (after, self.k)) if want_delta else ((after, self.k),):
                for i in self.each(start, stop):
                    factor = self[i, p]
                    self[i, p] = self.zero
                    for j in self.each(0, self.k):
                        self[i, j] = self[i, j] - factor * self[p, j]
        for i in self.each(0, self.k if want_delta else 0):
            rows = self.rows(self.arguments.delta, i)
            for j in self.each(0, self.k):
                self.add(rows, j, self[j, i] * self.weights)


def _function(module: Any, kind: Any, symmetric: bool, want_delta: bool, k: int) -> Any:
    """Return a function for all blocks of sets of k items; for k = 0, of any size."""
    function = ir.Function(module, kind, module.get_unique_name("minors"))
    function.linkage = "internal"
    function.attributes.add("noinline")  # so that its registers and its frame are its own
    function.attributes.alignstack = 8 * LANES
    builder, arguments = ir.IRBuilder(function.append_basic_block()), Arguments(*function.args)
    Program(builder, arguments, k or arguments.k).write(symmetric, want_delta)
    builder.ret_void()
    return function


def _sets_of_one_size(symmetric: bool, want_delta: bool) -> Any:
    """Return the intrinsic for the blocks from start to stop of sets of k items."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds = signature.args[0].types
        llvm_values = [builder.extract_value(values[0], i) for i in range(len(kinds))]
        arguments = [
            context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
            for kind, value in zip(kinds, llvm_values, strict=True)
        ]
        kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        done, other = builder.append_basic_block("done"), builder.append_basic_block("other")
        switch = builder.switch(Arguments(*arguments).k, other)
        for k in range(SMALL + 1 if symmetric else 1):  # 0 stands for the other sizes
            block = builder.append_basic_block(f"size_{k}") if k else other
            if k:
                switch.add_case(INT(k), block)
            builder.position_at_end(block)
            builder.call(_function(builder.module, kind, symmetric, want_delta, k), arguments)
            builder.branch(done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return intrinsic(lambda typing, arguments: (types.void(arguments), emit))


_symmetric_inverses = _sets_of_one_size(symmetric=True, want_delta=True)
_symmetric_determinants = _sets_of_one_size(symmetric=True, want_delta=False)
_inverses = _sets_of_one_size(symmetric=False, want_delta=True)
_determinants = _sets_of_one_size(symmetric=False, want_delta=False)

# contraction allows fused multiply-add; the flags that assume away NaN and infinity stay off
OPTIONS: Any = {"nogil": True, "cache": True, "fastmath": {"contract"}, "error_model": "numpy"}


@njit(
    types.void(
        *(MATRIX, types.int64, ITEMS, NUMBERS, GROUPS, NUMBERS, types.int64, types.int64),
        *(OUT_MATRIX, OUT_NUMBERS, OUT_NUMBERS, OUT_NUMBERS),
    ),
    **OPTIONS,
)
def minors_of(  # type: ignore[no-untyped-def]
    C, n_symmetric, items, weights, groups, smallest, thread, threads, delta, mantissas, exponents, work
):
    """Write a thread's part of the determinants |m| 2ᵉ of C_Y. Unless `delta` is empty, add Σ w C_Y⁻ᵀ to it.

    C is symmetric unless n_symmetric is 0; items from that on are the border. Then only the upper triangle is added,
    and sets of k items with a pivot below smallest[k] are left out. `work` holds one block of the largest size.
    """
    for group in range(len(groups)):
        k, item, place, n_blocks = groups[group, 0], groups[group, 1], groups[group, 2], groups[group, 3]
        start, stop = n_blocks * thread // threads, n_blocks * (thread + 1) // threads
        if k == 0:
            mantissas[place + LANES * start : place + LANES * stop] = 1.0
        if k == 0 or smallest[k] == np.inf:
            continue
        given = (C, len(C), n_symmetric, items[item:], weights[place:], k, smallest[k], start, stop)
        arguments = (*given, delta, mantissas[place:], exponents[place:], work)
        if n_symmetric and len(delta):
            _symmetric_inverses(arguments)
        elif n_symmetric:
            _symmetric_determinants(arguments)
        elif len(delta):
            _inverses(arguments)
        else:
            _determinants(arguments)

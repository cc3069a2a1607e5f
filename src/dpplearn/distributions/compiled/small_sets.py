"""Straight-line code for every small size, in which everything is a register or a slot of the stack."""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils

from dpplearn.data.blocks import LANES
from dpplearn.distributions.compiled.lanes import INT, ITEM, Lanes, broadcast, constant, load, loop, split, store
from dpplearn.distributions.compiled.sets import Arrays, Block, Totals

SMALL = 10  # sizes up to this have code of their own; beyond, it would take long to compile
CHUNK = 64  # blocks between two rounds of logarithms, which run faster together than one by one


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
        store(builder, arrays.determinants, builder.sub(number, arrays.start), factor.det.where(factor.alive, 0.0))
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


def small_sets(builder: Any, arrays: Arrays, want_delta: bool) -> None:
    """All blocks of sets of k ≤ SMALL items; every k has straight-line code."""
    numbers = ir.ArrayType(ir.DoubleType(), CHUNK * LANES)
    place = cgutils.alloca_once(builder, numbers)  # type: ignore[no-untyped-call]
    determinants = builder.bitcast(place, ir.DoubleType().as_pointer())
    with loop(builder, arrays.start, arrays.stop, CHUNK) as chunk:
        end = builder.add(chunk, INT(CHUNK))
        end = builder.select(builder.icmp_signed("<", end, arrays.stop), end, arrays.stop)
        read = (arrays.C, arrays.n_items, arrays.items, arrays.weights)
        given = (*read, arrays.out, arrays.smallest, chunk, end, determinants)
        done = builder.append_basic_block("done")
        switch = builder.switch(arrays.k, done)
        for k in range(2, SMALL + 1):
            switch.add_case(INT(k), builder.append_basic_block(f"size_{k}"))
            builder.position_at_end(switch.cases[-1][1])
            builder.call(_small_function(builder.module, k, want_delta), given)
            builder.branch(done)
        builder.position_at_end(done)
        totals = Totals(builder)
        with loop(builder, chunk, end) as number:
            det, alive = _determinant(builder, determinants, builder.sub(number, chunk))
            totals.count(*split(det), alive, load(builder, arrays.weights, number))
        totals.add_to(arrays.sums)
        if not want_delta:
            with builder.if_then(arrays.each_wanted), loop(builder, chunk, end) as number:
                det, alive = _determinant(builder, determinants, builder.sub(number, chunk))
                arrays.store_logarithm(number, *split(det), alive)


def _determinant(builder: Any, determinants: Any, number: Any) -> tuple[Lanes, Any]:
    """The determinants of a block, 1 where it is zero; a product of at most SMALL pivots is above 1e-150."""
    det = load(builder, determinants, number)
    alive = det.at_least(1e-300)
    return det.where(alive, 1.0), alive

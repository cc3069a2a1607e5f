"""One set of loops for all larger sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpplearn.distributions.compiled.lanes import INT, Lanes, Sum, broadcast, constant, load, loop, split, store
from dpplearn.distributions.compiled.sets import Arrays, Block, Totals

WIDTH = 4  # columns that share the loads of a row


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


def any_sets(builder: Any, arrays: Arrays, want_delta: bool) -> None:
    """All blocks of sets of any one size."""
    work = Work(builder, arrays)
    work.clear()
    with loop(builder, arrays.start, arrays.stop) as number:
        block = Block(builder, arrays, number, arrays.k)
        mantissa, exponent, alive = _any_factor(block, work, arrays)
        totals = Totals(builder)
        totals.count(mantissa, exponent, alive, block.weights)
        totals.add_to(arrays.sums)
        if want_delta:
            _any_inverse(block, work, alive, arrays.out)
        else:
            with builder.if_then(arrays.each_wanted):
                arrays.store_logarithm(number, mantissa, exponent, alive)

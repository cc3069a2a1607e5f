"""What code for sets of any size shares: reading their items, gathering, adding, and the sums over them."""

from __future__ import annotations

import math
from typing import Any

from numba import types

from dpplearn.data.blocks import LANES
from dpplearn.distributions.compiled.lanes import INT, Lanes, Sum, constant, from_each, load, log, split, store


class Block:
    """LANES sets of k items, four of a kind side by side: what an intrinsic reads of them and adds for them."""

    def __init__(self, builder: Any, arrays: Any, block: Any, k: Any) -> None:
        self.builder = builder
        self.n_items = arrays.n_items
        self.first = builder.gep(arrays.items, [builder.mul(builder.mul(block, k), INT(LANES))])
        self.weights = load(builder, arrays.weights, block)
        self.read: dict[int, list[Any]] = {}

    def items(self, i: Any) -> list[Any]:
        """y_i of every set; straight-line code, where i is a number, reads it once."""
        if not isinstance(i, int):
            start = self.builder.mul(i, INT(LANES))
            return self._items([self.builder.add(start, INT(lane)) for lane in range(LANES)])
        if i not in self.read:
            self.read[i] = self._items([INT(i * LANES + lane) for lane in range(LANES)])
        return self.read[i]

    def _items(self, places: list[Any]) -> list[Any]:
        return [self.builder.zext(self.builder.load(self.builder.gep(self.first, [place])), INT) for place in places]

    def rows(self, matrix: Any, i: Any) -> list[Any]:
        """Where row y_i of a matrix begins, for every set."""
        return [self.builder.gep(matrix, [self.builder.mul(item, self.n_items)]) for item in self.items(i)]

    def gather(self, rows: list[Any], j: Any) -> Lanes:
        """Entry y_j of those rows."""
        places = [self.builder.gep(row, [item]) for row, item in zip(rows, self.items(j), strict=True)]
        return from_each(self.builder, [self.builder.load(place) for place in places])

    def add(self, rows: list[Any], j: Any, lanes: Lanes) -> None:
        """Add to entry y_j of those rows, one set after the other: two may hold the same pair."""
        for row, item, value in zip(rows, self.items(j), lanes.each(), strict=True):
            place = self.builder.gep(row, [item])
            self.builder.store(self.builder.fadd(self.builder.load(place), value), place)


class Arrays:
    """What an intrinsic is given, as LLVM values."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any, out_is_each: bool) -> None:
        values = [
            context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
            for kind, value in zip(signature.args, arguments, strict=True)
        ]
        C, items, first_item, weights, first_place, self.k, self.smallest, self.start, self.stop, out, work = values
        self.builder, self.n_items = builder, builder.extract_value(C.shape, 0)
        self.C = C.data
        self.items = builder.gep(items.data, [first_item])
        self.weights = builder.gep(weights.data, [first_place])
        self.out = builder.gep(out.data, [first_place]) if out_is_each else out.data
        self.each_wanted = builder.icmp_signed("!=", out.nitems, INT(0))
        self.sums = work.data
        self.work = builder.gep(work.data, [INT(2 * LANES)])

    def store_logarithm(self, block: Any, mantissa: Lanes, exponent: Lanes, alive: Any) -> None:
        """log det of a block's sets, −inf where a pivot was too small, where `out` is for them."""
        store(self.builder, self.out, block, log(mantissa, exponent).where(alive, -math.inf))


class Totals:
    """Σ w log det over the possible sets of at most CHUNK blocks, and Σ w over the others.

    As long as the weights stay the same, determinants are multiplied, and one logarithm serves them all. Their
    mantissas lie between √½ and √2, so the product of CHUNK of them stays within the range of a float.
    """

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        zero, one = constant(builder, 0.0), constant(builder, 1.0)
        self.logdet, self.impossible = Sum(zero), Sum(zero)
        self.mantissa, self.exponent, self.weights = Sum(one), Sum(zero), Sum(zero)

    def count(self, mantissa: Lanes, exponent: Lanes, alive: Any, weights: Lanes) -> None:
        possible = weights.where(alive, 0.0)
        self.impossible.set(self.impossible.get() + (weights - possible))
        with self.builder.if_then(possible.differs(self.weights.get())):
            self._take_logarithm()
            self.weights.set(possible)
        self.mantissa.set(self.mantissa.get() * mantissa)
        self.exponent.set(self.exponent.get() + exponent)

    def _take_logarithm(self) -> None:
        m, e = split(self.mantissa.get())
        self.logdet.set(self.logdet.get() + self.weights.get() * log(m, e + self.exponent.get()))
        self.mantissa.set(constant(self.builder, 1.0))
        self.exponent.set(constant(self.builder, 0.0))

    def add_to(self, sums: Any) -> None:
        self._take_logarithm()
        for number, part in enumerate((self.logdet, self.impossible)):
            store(self.builder, sums, INT(number), load(self.builder, sums, INT(number)) + part.get())

"""`Components`, a batch of DPPs over the same items, with the queries that it answers; and `Stack`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from dpplearn.arrays import Bools, Floats, Ints, Items, row_slices
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.errors import InputError

Arrays = Mapping[str, npt.NDArray[Any]]

# For candidates (n_users, n), a function from one candidate of each user, (n_users,), to its row and its column of
# every interaction, scaled to a unit diagonal; both (n_interactions, n_users, n).
Similarity = Callable[[Ints], tuple[Floats, Floats]]


# log P_c(A), (s, m); log scales, (s,); and x, (s, n_items) or one per candidate
NextItems = tuple[Floats, Floats, Floats]

MAX_NUMBERS = 1_000_000  # that a query over many sets holds in memory at a time


@lru_cache(maxsize=64)
def _numbered(n_items: int) -> Catalogue:
    return Catalogue(tuple(range(n_items)))


def sets_of(sets: Sequence[npt.NDArray[Any]], n_items: int) -> Baskets:
    """Return sets of items as baskets without names."""
    offsets = np.array([0, *accumulate(map(len, sets))], np.int64)
    indices = np.empty(offsets[-1], np.int32)
    for each, (start, stop) in zip(sets, pairwise(offsets.tolist()), strict=True):
        indices[start:stop] = each
        indices[start:stop].sort()
    return Baskets(indices, offsets, np.ones(len(sets)), _numbered(n_items))


def batches(sets: Baskets, numbers: int) -> Iterator[tuple[Ints, Items]]:
    """Yield rows and sets of one size, so few that arrays of `numbers` per item of each set are not too large."""
    for group in sets.by_size:
        for rows in row_slices(len(group.rows), (group.sets.shape[1] + 1) * (numbers + 1), MAX_NUMBERS):
            yield group.rows[rows], group.sets[rows]


class TopQuery(NamedTuple):
    """A query for the best next items of sets."""

    log_mass: Floats  # (m,)
    sets: Baskets
    k: int
    candidate: Bools | None = None  # (n_items,) by default all items
    inclusion: bool = False  # whether probabilities are wanted too
    threads: int | None = None


class Best(NamedTuple):
    """The k best next items of each of s sets, best first. Missing items are −1 at the end of a row, with NaN."""

    items: Ints  # (s, k)
    log_p: Floats  # (s,) log Σ_c exp(log_mass_c) P_c(A)
    log_x: Floats  # (s, k) the same of A ∪ i
    log_q: Floats  # (s,) log Σ_c exp(log_mass_c) P_c(A ⊆ Y); undefined, as is log_y, if not asked for
    log_y: Floats  # (s, k) the same of A ∪ i ⊆ Y

    @classmethod
    def unfilled(cls, s: int, k: int) -> Best:
        """Return arrays to be filled."""
        return cls(np.empty((s, k), np.int64), np.empty(s), np.empty((s, k)), np.empty(s), np.empty((s, k)))


class Components(Protocol):
    """A batch of m DPPs P_c over the same items. A value: no method changes it.

    Queries take s sets at a time. Log-probabilities are absolute; −inf is the logarithm of 0. A new kind of component
    is one subclass that defines the methods without a body here.
    """

    @property
    def m(self) -> int:
        """The number of components."""

    @property
    def n_items(self) -> int:
        """The number of items."""

    @property
    def groups(self) -> Ints:
        """The segment of each component, (m,): each its own, or in a stack, each batch of components."""
        return np.arange(self.m)

    @property
    def size_range(self) -> range:
        """Sizes that some component gives a positive probability."""

    def log_empty(self) -> Floats:
        """Return log P_c(∅), (m,)."""

    def marginals(self) -> Floats:
        """Return P_c(i ∈ Y), (m, n_items)."""

    def pair_marginals(self, weights: Floats, rows: Ints, columns: Ints) -> Floats:
        """Return Σ_c weights_c P_c(i, j ∈ Y) for i in rows and j in columns. Entries with i = j are undefined."""

    def log_prob(self, sets: Baskets, threads: int | None = None) -> Floats:
        """Return log P_c(Y), (s, m)."""

    def log_mixture(self, log_mass: Floats, sets: Baskets, threads: int | None = None) -> Floats:
        """Return log Σ_c exp(log_mass_c) P_c(Y), (s,)."""
        return logsumexp(log_mass + self.log_prob(sets, threads))

    def log_inclusion(self, sets: Baskets) -> Floats:
        """Return log P_c(A ⊆ Y), (s, m)."""

    def next(self, inclusion: bool, log_mass: Floats, sets: Baskets, items: Ints | None = None) -> NextItems:
        """Return log P_c(A), log scales, and x with exp(scale) x_i = Σ_c exp(log_mass_c) P_c(A ∪ i), 0 for i ∈ A.

        The scale of a set is such that its x neither overflow nor underflow. With `inclusion`, return the same of
        P_c(A ⊆ Y) and P_c(A ∪ i ⊆ Y). `items` are the candidates of each set, (s, j), by default all items. Candidates
        of −1 have x = 0.
        """

    def top(self, query: TopQuery) -> Best:
        """Return the k candidates with the largest x > 0 of `next`, best first; equal ones by position."""
        from dpplearn.distributions.ranking import top_of_all

        return top_of_all(self, query)

    def condition(self, include: Ints, exclude: Ints) -> tuple[Floats, Components]:
        """Return log P_c(include ⊆ Y, exclude ∩ Y = ∅), (m,), and the components of the other items, ascending."""

    def tilt(self, log_odds: Floats) -> tuple[Floats, Components]:
        """Return log Σ_Y P_c(Y) exp(g · x_Y), (m,), and P'_c(Y) ∝ P_c(Y) exp(g · x_Y). g_i = −inf excludes an item."""

    def restrict(self, items: Ints) -> Components:
        """Return the components of Y ∩ S, over the items of S in the order given."""

    def extend(self, p: Floats) -> tuple[Floats, Components]:
        """Return log P_c(no new item | no old item), (m,), and components with further independent items."""

    def with_copy(self, item: int) -> tuple[Floats, Components]:
        """Return the same for one further item that has the marginal and the interactions of `item`."""

    def log_sizes(self) -> Floats:
        """Return log P_c(|Y| = k), (m, n_items + 1)."""

    def log_rare_size(self, k: int) -> Floats:
        """Return log P_c(|Y| = k), (m,), for 0 < k < n_items, with correct digits however small it is."""
        return self.log_sizes()[:, k]

    def sample(
        self, which: Ints, rng: Generator, k: int | None = None, nonempty: bool = False, threads: int | None = None
    ) -> list[Ints]:
        """Draw one set, ascending, from each of the components `which`: of k > 0 items, or nonempty ones.

        These components must have such sets.
        """

    def similarity(self, weights: Floats, items: Ints) -> tuple[Floats, Similarity]:
        """Return the weight of each interaction, given those of the components, and the interactions among items."""

    def take(self, which: Ints) -> Components:
        """Return some of the components."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the parameters by name, as a model file stores them."""


def float_array(arrays: Arrays, name: str) -> npt.NDArray[Any]:
    """Return an array of floats of a model file."""
    found = arrays.get(name)
    if found is None or found.dtype.kind != "f":
        raise InputError(f"{name} must be an array of floats, got {'none' if found is None else found.dtype}")
    return found


def logsumexp(values: Floats) -> Floats:
    """Return log Σ exp along the last axis; −inf where all values are."""
    if values.shape[-1] == 1:  # one component; a sum over 10,000 sets takes as long as their determinants
        return values.squeeze(-1)
    return np.asarray(np.logaddexp.reduce(values, axis=-1))


def log1mexp(values: Floats) -> Floats:
    """Return log(1 − e^v) for v ≤ 0 without cancellation."""
    with np.errstate(divide="ignore"):
        return np.where(values > -np.log(2), np.log(-np.expm1(values)), np.log1p(-np.exp(values)))


def sigmoid(values: Floats) -> Floats:
    """Return 1/(1 + e^−v), which is 0 where e^−v overflows."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-values)))


def softmax(values: Floats) -> Floats:
    """Return exp(values), scaled to sum to 1 along the last axis."""
    p = np.exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


def relative(log_weights: Floats) -> tuple[Floats, Floats]:
    """Return the largest of each row, (s,), or 0 where it is −inf; and exp(log_weights − largest), (s, m)."""
    largest = log_weights.max(axis=1)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    return largest, np.exp(log_weights - largest[:, None])


@dataclass(frozen=True, eq=False)
class Stack(Components):
    """The components of several batches, one batch after the other."""

    parts: tuple[Components, ...]

    @classmethod
    def of(cls, parts: Sequence[Components]) -> Components:
        """Return a stack without stacks inside, or the batch itself if there is only one."""
        flat = [inner for part in parts for inner in (part.parts if isinstance(part, Stack) else (part,))]
        return flat[0] if len(flat) == 1 else cls(tuple(flat))

    @cached_property
    def _slices(self) -> list[tuple[Components, slice]]:
        """Each part with the places of its components."""
        ends = np.cumsum([0, *(part.m for part in self.parts)]).tolist()
        return [(part, slice(*each)) for part, each in zip(self.parts, pairwise(ends), strict=True)]

    @property
    def m(self) -> int:
        return sum(part.m for part in self.parts)

    @property
    def n_items(self) -> int:
        return self.parts[0].n_items

    @property
    def groups(self) -> Ints:
        return np.repeat(np.arange(len(self.parts)), [part.m for part in self.parts])

    @property
    def size_range(self) -> range:
        ranges = [part.size_range for part in self.parts]
        return range(min(each.start for each in ranges), max(each.stop for each in ranges))

    def _joined(self, name: str, *arguments: Any, axis: int = 0) -> Floats:
        """Call a method of every part and concatenate the results along the axis of components."""
        return np.concatenate([getattr(part, name)(*arguments) for part in self.parts], axis=axis)

    def _stacked(self, name: str, *arguments: Any) -> tuple[Floats, Components]:
        """Call a method that returns logarithms and components of every part, and join both."""
        logs, parts = zip(*(getattr(part, name)(*arguments) for part in self.parts), strict=True)
        return np.concatenate(logs), Stack(parts)

    def log_empty(self) -> Floats:
        return self._joined("log_empty")

    def marginals(self) -> Floats:
        return self._joined("marginals")

    def log_sizes(self) -> Floats:
        return self._joined("log_sizes")

    def log_prob(self, sets: Baskets, threads: int | None = None) -> Floats:
        return self._joined("log_prob", sets, threads, axis=1)

    def log_inclusion(self, sets: Baskets) -> Floats:
        return self._joined("log_inclusion", sets, axis=1)

    def condition(self, include: Ints, exclude: Ints) -> tuple[Floats, Components]:
        return self._stacked("condition", include, exclude)

    def tilt(self, log_odds: Floats) -> tuple[Floats, Components]:
        return self._stacked("tilt", log_odds)

    def extend(self, p: Floats) -> tuple[Floats, Components]:
        return self._stacked("extend", p)

    def with_copy(self, item: int) -> tuple[Floats, Components]:
        return self._stacked("with_copy", item)

    def log_rare_size(self, k: int) -> Floats:
        return self._joined("log_rare_size", k)

    def pair_marginals(self, weights: Floats, rows: Ints, columns: Ints) -> Floats:
        return np.asarray(sum(part.pair_marginals(weights[own], rows, columns) for part, own in self._slices))

    def next(self, inclusion: bool, log_mass: Floats, sets: Baskets, items: Ints | None = None) -> NextItems:
        each = [part.next(inclusion, log_mass[own], sets, items) for part, own in self._slices]
        log_p, scales, x = zip(*each, strict=True)
        scale, weights = relative(np.stack(scales, axis=1))
        return np.concatenate(log_p, axis=1), scale, np.einsum("sp,psj->sj", weights, np.stack(x))

    def restrict(self, items: Ints) -> Components:
        return Stack(tuple(part.restrict(items) for part in self.parts))

    def sample(
        self, which: Ints, rng: Generator, k: int | None = None, nonempty: bool = False, threads: int | None = None
    ) -> list[Ints]:
        found: dict[int, Ints] = {}
        for part, own in self._slices:
            rows = np.flatnonzero((which >= own.start) & (which < own.stop))
            if len(rows):
                drawn = part.sample(which[rows] - own.start, rng, k, nonempty, threads)
                found.update(zip(rows.tolist(), drawn, strict=True))
        return [found[row] for row in range(len(which))]

    def similarity(self, weights: Floats, items: Ints) -> tuple[Floats, Similarity]:
        of_parts, each = zip(*(part.similarity(weights[own], items) for part, own in self._slices), strict=True)

        def rows_and_columns(chosen: Ints) -> tuple[Floats, Floats]:
            rows, columns = zip(*(similarity(chosen) for similarity in each), strict=True)
            return np.concatenate(rows), np.concatenate(columns)

        return np.concatenate(of_parts), rows_and_columns

    def take(self, which: Ints) -> Components:
        kept = [
            part.take(inside - own.start)
            for part, own in self._slices
            if len(inside := which[(which >= own.start) & (which < own.stop)])
        ]
        return Stack.of(kept)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        parts = enumerate(part.arrays() for part in self.parts)
        return {f"part.{number}.{name}": array for number, arrays in parts for name, array in arrays.items()}

"""`Components`, a batch of DPPs over the same items; `Sets`, the arguments of queries; and `Stack`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from dpplearn.arrays import Bools, Floats, Ints, Items, read_only
from dpplearn.data.blocks import Blocks, SizeGroup, grouped, in_blocks

Arrays = Mapping[str, npt.NDArray[Any]]

# For candidates (n_users, n), a function from one candidate of each user, (n_users,), to its row and its column of the
# similarity matrix of each component, both (m, n_users, n).
Similarity = Callable[[Ints], tuple[Floats, Floats]]


# log P_c(A), (s, m); log scales, (s,); and x, (s, n_items) or one per candidate
NextItems = tuple[Floats, Floats, Floats]


class Sets(Protocol):
    """Sets of items: set t has the items `indices[offsets[t]:offsets[t + 1]]`, ascending. `Baskets` are such sets."""

    @property
    def indices(self) -> Items: ...
    @property
    def offsets(self) -> Ints: ...
    @property
    def n_items(self) -> int: ...
    @property
    def sizes(self) -> Ints: ...
    @property
    def weights(self) -> Floats: ...
    @property
    def by_size(self) -> tuple[SizeGroup, ...]: ...
    @property
    def blocks(self) -> Blocks: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True, eq=False)
class PlainSets:
    """Sets without names and weights."""

    indices: Items
    offsets: Ints
    n_items: int

    @classmethod
    def of(cls, sets: Sequence[npt.NDArray[Any]], n_items: int) -> PlainSets:
        """Return the sets, each sorted."""
        offsets = np.array([0, *accumulate(map(len, sets))], np.int64)
        indices = np.empty(offsets[-1], np.int32)
        for each, (start, stop) in zip(sets, pairwise(offsets.tolist()), strict=True):
            indices[start:stop] = each
            indices[start:stop].sort()
        return cls(indices, offsets, n_items)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Ints:
        return np.asarray(self.offsets[1:] - self.offsets[:-1])

    @cached_property
    def weights(self) -> Floats:
        return read_only(np.ones(len(self)))

    @cached_property
    def by_size(self) -> tuple[SizeGroup, ...]:
        return grouped(self.indices, self.offsets)

    @cached_property
    def blocks(self) -> Blocks:
        return in_blocks(self.indices, self.offsets, self.weights, self.n_items)


def members(sets: Sets) -> list[Ints]:
    """Return the items of each set as an array."""
    return [sets.indices[start:stop].astype(np.int64) for start, stop in pairwise(sets.offsets.tolist())]


def subset(sets: Sets, rows: Ints) -> PlainSets:
    """Return some of the sets."""
    return PlainSets.of(
        [sets.indices[sets.offsets[row] : sets.offsets[row + 1]] for row in rows.tolist()], sets.n_items
    )


def rows_of(sets: Sets, start: int, stop: int) -> PlainSets:
    """Return some consecutive sets."""
    offsets = sets.offsets[start : stop + 1]
    return PlainSets(sets.indices[offsets[0] : offsets[-1]], offsets - offsets[0], sets.n_items)


class Best(NamedTuple):
    """The k best next items of each of s sets, best first. Missing items at the end of a row are −1, with x and y NaN.

    Scales, x and y are those of `Components.next` and `next_inclusion`.
    """

    items: Ints  # (s, k)
    log_p: Floats  # (s,) log Σ_c exp(log_mass_c) P_c(A)
    scale: Floats  # (s,)
    x: Floats  # (s, k)
    log_q: Floats  # (s,) the same of P_c(A ⊆ Y); this and the next two are undefined if not asked for
    scale_q: Floats  # (s,)
    y: Floats  # (s, k)

    @classmethod
    def unfilled(cls, s: int, k: int) -> Best:
        """Return arrays to be filled."""
        of_scores, of_probabilities = ((np.empty(s), np.empty(s), np.empty((s, k))) for _ in range(2))
        return cls(np.empty((s, k), np.int64), *of_scores, *of_probabilities)


class Components(ABC):
    """A batch of m DPPs P_c over the same items. A value: no method changes it.

    Queries take s sets at a time. Log-probabilities are absolute; −inf is the logarithm of 0. A new kind of component
    is one subclass that defines the abstract methods.
    """

    @property
    @abstractmethod
    def m(self) -> int:
        """The number of components."""

    @property
    @abstractmethod
    def n_items(self) -> int:
        """The number of items."""

    @property
    def groups(self) -> Ints:
        """The segment of each component, (m,): each its own, or in a stack, each batch of components."""
        return np.arange(self.m)

    @property
    def interaction_groups(self) -> Ints:
        """The matrix of `similarity` that belongs to each component, (m,)."""
        return np.arange(self.m)

    @property
    @abstractmethod
    def size_range(self) -> range:
        """Sizes that some component gives a positive probability."""

    @abstractmethod
    def log_empty(self) -> Floats:
        """Return log P_c(∅), (m,)."""

    @abstractmethod
    def marginals(self) -> Floats:
        """Return P_c(i ∈ Y), (m, n_items)."""

    @abstractmethod
    def pair_marginals(self, weights: Floats, rows: Ints, columns: Ints) -> Floats:
        """Return Σ_c weights_c P_c(i, j ∈ Y) for i in rows and j in columns. Entries with i = j are undefined."""

    @abstractmethod
    def log_prob(self, sets: Sets, threads: int | None = None) -> Floats:
        """Return log P_c(Y), (s, m)."""

    def log_mixture(self, log_mass: Floats, sets: Sets, threads: int | None = None) -> Floats:
        """Return log Σ_c exp(log_mass_c) P_c(Y), (s,)."""
        return logsumexp(log_mass + self.log_prob(sets, threads))

    @abstractmethod
    def log_inclusion(self, sets: Sets) -> Floats:
        """Return log P_c(A ⊆ Y), (s, m)."""

    def next(self, log_mass: Floats, sets: Sets, items: Ints | None = None, threads: int | None = None) -> NextItems:
        """Return log P_c(A), log scales, and x with exp(scale) x_i = Σ_c exp(log_mass_c) P_c(A ∪ i), 0 for i ∈ A.

        `items` are the candidates: by default all; (j,) for all sets, or (s, j). Entries of −1 have x = 0.
        """
        return self._next(False, log_mass, sets, items, threads)

    def next_inclusion(
        self, log_mass: Floats, sets: Sets, items: Ints | None = None, threads: int | None = None
    ) -> NextItems:
        """Return the same for P_c(A ⊆ Y) and P_c(A ∪ i ⊆ Y)."""
        return self._next(True, log_mass, sets, items, threads)

    @abstractmethod
    def _next(
        self, inclusion: bool, log_mass: Floats, sets: Sets, items: Ints | None, threads: int | None
    ) -> NextItems:
        """Implement `next` and `next_inclusion`."""

    def nested(self, inclusion: bool, items: Ints, orders: Ints) -> tuple[Floats, Floats]:
        """Return log P_c(A) and log P_c(A ∪ i), or the same of A ⊆ Y, for all prefixes A of orders of items[:-1] and
        for i = items[-1]; both (n_orders, len(items), m)."""
        prefixes = [items[order[:size]] for order in orders for size in range(len(items))]
        sets, shape = PlainSets.of(prefixes, self.n_items), (len(orders), len(items), self.m)
        log_p, log_next = np.empty(shape), np.empty(shape)
        for c in range(self.m):
            own, scale, x = self.take(np.array([c]))._next(inclusion, np.zeros(1), sets, items[-1:], None)
            with np.errstate(divide="ignore"):
                log_p[..., c], log_next[..., c] = own.reshape(shape[:2]), (scale + np.log(x[:, 0])).reshape(shape[:2])
        return log_p, log_next

    def top(
        self, log_mass: Floats, sets: Sets, k: int, candidate: Bools | None, inclusion: bool, threads: int | None = None
    ) -> Best:
        """Return the k candidates with the largest x > 0 of `next`, best first.

        Ties are broken by the x of `next_inclusion`, if `inclusion` is true, then by position.
        """
        from dpplearn.distributions.ranking import top_of_all

        return top_of_all(self, log_mass, sets, k, candidate, inclusion, threads)

    @abstractmethod
    def condition(self, include: Ints, exclude: Ints) -> tuple[Floats, Components]:
        """Return log P_c(include ⊆ Y, exclude ∩ Y = ∅), (m,), and the components of the other items, ascending."""

    @abstractmethod
    def tilt(self, log_odds: Floats) -> tuple[Floats, Components]:
        """Return log Σ_Y P_c(Y) exp(g · x_Y), (m,), and P'_c(Y) ∝ P_c(Y) exp(g · x_Y). g_i = −inf excludes an item."""

    @abstractmethod
    def restrict(self, items: Ints) -> Components:
        """Return the components of Y ∩ S, over the items of S in the order given."""

    @abstractmethod
    def extend(self, p: Floats) -> tuple[Floats, Components]:
        """Return log P_c(no new item | no old item), (m,), and components with further independent items."""

    @abstractmethod
    def with_copy(self, item: int) -> tuple[Floats, Components]:
        """Return the same for one further item that has the marginal and the interactions of `item`."""

    @abstractmethod
    def log_sizes(self) -> Floats:
        """Return log P_c(|Y| = k), (m, n_items + 1)."""

    @abstractmethod
    def marginals_given_size(self, k: int) -> tuple[Floats, Floats]:
        """Return log P_c(|Y| = k), (m,), and P_c(i ∈ Y | |Y| = k), (m, n_items), 0 < k < n_items."""

    @abstractmethod
    def sample(
        self, which: Ints, rng: Generator, k: int | None = None, nonempty: bool = False, threads: int | None = None
    ) -> list[Ints]:
        """Draw one set, ascending, from each of the components `which`: of k items, or nonempty ones."""

    @abstractmethod
    def similarity(self, items: Ints) -> Similarity:
        """Return the interaction of candidates (n_users, n), scaled to a unit diagonal."""

    @abstractmethod
    def take(self, which: Ints) -> Components:
        """Return some of the components."""

    @abstractmethod
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the parameters by name, as a model file stores them."""


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


def weighted_sum(log_weights: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Return log scales, (s,), and Σ_c exp(log_weights_c − scale) x_c for log_weights (s, m) and x (s, m, j)."""
    scale = log_weights.max(axis=1)
    scale = np.where(np.isfinite(scale), scale, 0.0)
    return scale, np.einsum("sm,smj->sj", np.exp(log_weights - scale[:, None]), x)


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
    def _starts(self) -> Ints:
        return np.cumsum([0, *(part.m for part in self.parts)])

    def _slices(self) -> list[tuple[Components, slice]]:
        return [(part, slice(*ends)) for part, ends in zip(self.parts, pairwise(self._starts.tolist()), strict=True)]

    @property
    def m(self) -> int:
        return int(self._starts[-1])

    @property
    def n_items(self) -> int:
        return self.parts[0].n_items

    @property
    def groups(self) -> Ints:
        return np.repeat(np.arange(len(self.parts)), [part.m for part in self.parts])

    @property
    def interaction_groups(self) -> Ints:
        found: list[Ints] = []
        for part in self.parts:
            found.append(part.interaction_groups + (found[-1].max() + 1 if found else 0))
        return np.concatenate(found)

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

    def log_prob(self, sets: Sets, threads: int | None = None) -> Floats:
        return self._joined("log_prob", sets, threads, axis=1)

    def log_inclusion(self, sets: Sets) -> Floats:
        return self._joined("log_inclusion", sets, axis=1)

    def condition(self, include: Ints, exclude: Ints) -> tuple[Floats, Components]:
        return self._stacked("condition", include, exclude)

    def tilt(self, log_odds: Floats) -> tuple[Floats, Components]:
        return self._stacked("tilt", log_odds)

    def extend(self, p: Floats) -> tuple[Floats, Components]:
        return self._stacked("extend", p)

    def with_copy(self, item: int) -> tuple[Floats, Components]:
        return self._stacked("with_copy", item)

    def marginals_given_size(self, k: int) -> tuple[Floats, Floats]:
        log_p, marginals = zip(*(part.marginals_given_size(k) for part in self.parts), strict=True)
        return np.concatenate(log_p), np.concatenate(marginals)

    def pair_marginals(self, weights: Floats, rows: Ints, columns: Ints) -> Floats:
        return np.asarray(sum(part.pair_marginals(weights[own], rows, columns) for part, own in self._slices()))

    def _next(
        self, inclusion: bool, log_mass: Floats, sets: Sets, items: Ints | None, threads: int | None
    ) -> NextItems:
        each = [part._next(inclusion, log_mass[own], sets, items, threads) for part, own in self._slices()]
        log_p, scales, x = zip(*each, strict=True)
        return np.concatenate(log_p, axis=1), *weighted_sum(np.stack(scales, axis=1), np.stack(x, axis=1))

    def restrict(self, items: Ints) -> Components:
        return Stack(tuple(part.restrict(items) for part in self.parts))

    def sample(
        self, which: Ints, rng: Generator, k: int | None = None, nonempty: bool = False, threads: int | None = None
    ) -> list[Ints]:
        found: list[Ints] = [which] * len(which)  # replaced below
        for part, own in self._slices():
            rows = np.flatnonzero((which >= own.start) & (which < own.stop))
            if len(rows):
                drawn = part.sample(which[rows] - own.start, rng, k, nonempty, threads)
                for row, each in zip(rows.tolist(), drawn, strict=True):
                    found[row] = each
        return found

    def similarity(self, items: Ints) -> Similarity:
        each = [part.similarity(items) for part in self.parts]

        def rows_and_columns(chosen: Ints) -> tuple[Floats, Floats]:
            rows, columns = zip(*(similarity(chosen) for similarity in each), strict=True)
            return np.concatenate(rows), np.concatenate(columns)

        return rows_and_columns

    def take(self, which: Ints) -> Components:
        kept = [
            part.take(inside - own.start)
            for part, own in self._slices()
            if len(inside := which[(which >= own.start) & (which < own.stop)])
        ]
        return Stack.of(kept)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        parts = enumerate(part.arrays() for part in self.parts)
        return {f"part.{number}.{name}": array for number, arrays in parts for name, array in arrays.items()}

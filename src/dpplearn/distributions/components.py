"""`Components`, the protocol of a batch of DPPs over the same items; `Sets`, the arguments of queries; and `Stack`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Bools, Floats, Ints, Items, read_only
from dpplearn.data.blocks import Blocks, SizeGroup, grouped, in_blocks

Arrays = Mapping[str, npt.NDArray[Any]]

# For candidates (n_users, n), a function from one candidate of each user, (n_users,), to its row and its column of the
# similarity matrix of each component, both (m, n_users, n).
Similarity = Callable[[Ints], tuple[Floats, Floats]]


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
        offsets = np.cumsum([0, *(len(each) for each in sets)])
        indices = np.concatenate([np.zeros(0, np.int32), *(np.sort(each) for each in sets)])
        return cls(indices.astype(np.int32), offsets, n_items)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def sizes(self) -> Ints:
        return np.diff(self.offsets)

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
    """The best next items of each of s sets, best first. Missing items at the end of a row are −1, with NaN."""

    log_set: Floats  # (s,) log Σ_c exp(log_mass_c) P_c(A)
    log_event: Floats  # (s,) log Σ_c exp(log_mass_c) P_c(A ⊆ Y); NaN if not asked for
    items: Ints  # (s, k)
    scores: Floats  # (s, k) Σ_c exp(log_mass_c) P_c(A ∪ i), divided by the same sum for A
    probabilities: Floats  # (s, k) the same for P_c(A ∪ i ⊆ Y) and P_c(A ⊆ Y); NaN if not asked for

    @classmethod
    def nothing(cls, s: int, k: int) -> Best:
        """Return lists without items, to be filled."""
        return cls(np.full(s, -np.inf), np.full(s, np.nan), np.full((s, k), -1), *np.full((2, s, k), np.nan))


class Components(Protocol):
    """A batch of m DPPs P_c over the same items. A value: no method changes it.

    Queries take s sets at a time. Log-probabilities are absolute; −inf is the logarithm of 0.
    """

    @property
    def m(self) -> int: ...

    @property
    def n_items(self) -> int: ...

    @property
    def groups(self) -> Ints:
        """The segment of each component, (m,): each its own, or in a stack, each batch of components."""
        ...

    @property
    def interaction_groups(self) -> Ints:
        """The matrix of `similarity` that belongs to each component, (m,)."""
        ...

    @property
    def size_range(self) -> range:
        """Sizes that some component gives a positive probability."""
        ...

    def log_empty(self) -> Floats:
        """Return log P_c(∅), (m,)."""
        ...

    def marginals(self) -> Floats:
        """Return P_c(i ∈ Y), (m, n_items)."""
        ...

    def pair_marginals(self, weights: Floats, rows: Ints, columns: Ints) -> Floats:
        """Return Σ_c weights_c P_c(i, j ∈ Y) for i in rows and j in columns. Entries with i = j are undefined."""
        ...

    def log_prob(self, sets: Sets, threads: int | None = None) -> Floats:
        """Return log P_c(Y), (s, m)."""
        ...

    def log_mixture(self, log_mass: Floats, sets: Sets, threads: int | None = None) -> Floats:
        """Return log Σ_c exp(log_mass_c) P_c(Y), (s,)."""
        ...

    def log_inclusion(self, sets: Sets) -> Floats:
        """Return log P_c(A ⊆ Y), (s, m)."""
        ...

    def next(
        self, log_mass: Floats, sets: Sets, items: Ints | None = None, threads: int | None = None
    ) -> tuple[Floats, Floats, Floats]:
        """Return log P_c(A), (s, m); log scales, (s,); and x, (s, n_items) or as `items`, with
        exp(scale) x_i = Σ_c exp(log_mass_c) P_c(A ∪ i), and 0 for the items of A.

        `items` are the candidates: (j,) for all sets, or (s, j). Entries of −1 have x = 0.
        """
        ...

    def next_inclusion(
        self, log_mass: Floats, sets: Sets, items: Ints | None = None, threads: int | None = None
    ) -> tuple[Floats, Floats, Floats]:
        """Return the same for P_c(A ⊆ Y) and P_c(A ∪ i ⊆ Y)."""
        ...

    def top(
        self,
        log_mass: Floats,
        sets: Sets,
        k: int,
        candidate: Bools | None,
        inclusion: bool = True,
        threads: int | None = None,
    ) -> Best:
        """Return the k candidates with the largest x > 0 of `next`, best first. Ties are broken by the x of
        `next_inclusion`, if `inclusion` asks for it, then by position."""
        ...

    def condition(self, include: Ints, exclude: Ints) -> tuple[Floats, Components]:
        """Return log P_c(include ⊆ Y, exclude ∩ Y = ∅), (m,), and the components of the other items, ascending."""
        ...

    def tilt(self, log_odds: Floats) -> tuple[Floats, Components]:
        """Return log Σ_Y P_c(Y) exp(g · x_Y), (m,), and P'_c(Y) ∝ P_c(Y) exp(g · x_Y). g_i = −inf excludes an item."""
        ...

    def restrict(self, items: Ints) -> Components:
        """Return the components of Y ∩ S, over the items of S in the order given."""
        ...

    def extend(self, p: Floats) -> tuple[Floats, Components]:
        """Return log P_c(no new item | no old item), (m,), and components with further independent items."""
        ...

    def with_copy(self, item: int) -> tuple[Floats, Components]:
        """Return the same for one further item that has the marginal and the interactions of `item`."""
        ...

    def log_sizes(self) -> Floats:
        """Return log P_c(|Y| = k), (m, n_items + 1)."""
        ...

    def marginals_given_size(self, k: int) -> tuple[Floats, Floats]:
        """Return log P_c(|Y| = k), (m,), and P_c(i ∈ Y | |Y| = k), (m, n_items), 0 < k < n_items."""
        ...

    def sample(
        self,
        which: Ints,
        rng: np.random.Generator,
        k: int | None = None,
        nonempty: bool = False,
        threads: int | None = None,
    ) -> list[Ints]:
        """Draw one set, ascending, from each of the components `which`: of k items, or nonempty ones."""
        ...

    def similarity(self, items: Ints) -> Similarity:
        """Return the interaction of candidates (n_users, n), scaled to a unit diagonal."""
        ...

    def take(self, which: Ints) -> Components:
        """Return some of the components."""
        ...

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the parameters by name, as a model file stores them."""
        ...


def logsumexp(values: Floats, axis: int = -1) -> Floats:
    """Return log Σ exp along an axis; −inf where all values are."""
    return np.asarray(np.logaddexp.reduce(values, axis=axis))


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
class Stack:
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

    def log_empty(self) -> Floats:
        return np.concatenate([part.log_empty() for part in self.parts])

    def marginals(self) -> Floats:
        return np.concatenate([part.marginals() for part in self.parts])

    def pair_marginals(self, weights: Floats, rows: Ints, columns: Ints) -> Floats:
        return np.asarray(sum(part.pair_marginals(weights[own], rows, columns) for part, own in self._slices()))

    def log_prob(self, sets: Sets, threads: int | None = None) -> Floats:
        return np.concatenate([part.log_prob(sets, threads) for part in self.parts], axis=1)

    def log_mixture(self, log_mass: Floats, sets: Sets, threads: int | None = None) -> Floats:
        each = [part.log_mixture(log_mass[own], sets, threads) for part, own in self._slices()]
        return logsumexp(np.array(each), axis=0)

    def log_inclusion(self, sets: Sets) -> Floats:
        return np.concatenate([part.log_inclusion(sets) for part in self.parts], axis=1)

    def next(
        self, log_mass: Floats, sets: Sets, items: Ints | None = None, threads: int | None = None
    ) -> tuple[Floats, Floats, Floats]:
        return self._added([part.next(log_mass[own], sets, items, threads) for part, own in self._slices()])

    def next_inclusion(
        self, log_mass: Floats, sets: Sets, items: Ints | None = None, threads: int | None = None
    ) -> tuple[Floats, Floats, Floats]:
        return self._added([part.next_inclusion(log_mass[own], sets, items, threads) for part, own in self._slices()])

    def _added(self, each: list[tuple[Floats, Floats, Floats]]) -> tuple[Floats, Floats, Floats]:
        log_p, scales, x = zip(*each, strict=True)
        return np.concatenate(log_p, axis=1), *weighted_sum(np.stack(scales, axis=1), np.stack(x, axis=1))

    def top(
        self,
        log_mass: Floats,
        sets: Sets,
        k: int,
        candidate: Bools | None,
        inclusion: bool = True,
        threads: int | None = None,
    ) -> Best:
        from dpplearn.distributions.ranking import top_of_all

        return top_of_all(self, log_mass, sets, k, candidate, inclusion, threads)

    def condition(self, include: Ints, exclude: Ints) -> tuple[Floats, Components]:
        return self._each([part.condition(include, exclude) for part in self.parts])

    def tilt(self, log_odds: Floats) -> tuple[Floats, Components]:
        return self._each([part.tilt(log_odds) for part in self.parts])

    def extend(self, p: Floats) -> tuple[Floats, Components]:
        return self._each([part.extend(p) for part in self.parts])

    def with_copy(self, item: int) -> tuple[Floats, Components]:
        return self._each([part.with_copy(item) for part in self.parts])

    def _each(self, found: list[tuple[Floats, Components]]) -> tuple[Floats, Components]:
        return np.concatenate([log_p for log_p, _ in found]), Stack(tuple(part for _, part in found))

    def restrict(self, items: Ints) -> Components:
        return Stack(tuple(part.restrict(items) for part in self.parts))

    def log_sizes(self) -> Floats:
        return np.concatenate([part.log_sizes() for part in self.parts])

    def marginals_given_size(self, k: int) -> tuple[Floats, Floats]:
        log_p, marginals = zip(*(part.marginals_given_size(k) for part in self.parts), strict=True)
        return np.concatenate(log_p), np.concatenate(marginals)

    def sample(
        self,
        which: Ints,
        rng: np.random.Generator,
        k: int | None = None,
        nonempty: bool = False,
        threads: int | None = None,
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
        kept = []
        for part, own in self._slices():
            inside = which[(which >= own.start) & (which < own.stop)] - own.start
            if len(inside):
                kept.append(part.take(inside))
        return Stack.of(kept)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {
            f"part.{number}.{name}": array
            for number, part in enumerate(self.parts)
            for name, array in part.arrays().items()
        }

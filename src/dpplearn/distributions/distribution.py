"""SetDistribution: a mixture of DPPs, with a treatment of the empty set of its own. Every query is written here, once.

P(Y) = Σ_c exp(log_mass_c) P_c(Y) for Y ≠ ∅, and P(∅) = Σ_c exp(log_empty_c). For a plain mixture with weights π, mass_c
is π_c and empty_c is π_c P_c(∅). Given Y ≠ ∅, mass_c is proportional to π_c and empty_c is 0. Every empty_c is
stored, because it need not be mass_c P_c(∅), and after `restrict` no single number describes the difference.

`_log_set` and `_log_event` combine the two; every query to which Y = ∅ can contribute goes through them. Marginals need
only mass_c, since a set that contains an item is not empty. `sample` draws Y = ∅ or a nonempty set. Operations that
return another distribution compute its two vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import NO_ITEMS, Bools, Floats, Ints, Seed, read_only, row_slices
from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets, summed
from dpplearn.distributions.components import (
    MAX_NUMBERS,
    Components,
    Similarity,
    Stack,
    TopQuery,
    float_array,
    log1mexp,
    logsumexp,
    sets_of,
    softmax,
)
from dpplearn.distributions.minors import check_items, weighted_sum
from dpplearn.distributions.ranking import chosen, highest
from dpplearn.distributions.scaled import ScaledDPPs
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.errors import InputError

WEIGHT_ROUNDING = 1e-9  # by which weights may miss a sum of 1

TOTAL_ROUNDING = 1e-6  # by which stored probabilities may miss a sum of 1, which other processors compute otherwise
MAX_LOG_MASS = 700.0  # exp overflows above 709
LOG_RARE_SIZE = np.log(1e-4)
EMPTY = np.array(0)  # the size of the set A = ∅, for events that do not depend on items

IMPOSSIBLE = "the condition has probability zero under this model; leave out one of the items"


class Top(NamedTuple):
    """The best next items of each of s sets, best first. Missing items at the end of a row are −1, with NaN."""

    items: Ints  # (s, k)
    scores: Floats  # (s, k)
    probabilities: Floats  # (s, k)
    possible: Bools  # (s,) whether P(A ⊆ Y) > 0


@dataclass(frozen=True, eq=False)
class SetDistribution:
    """A distribution over the subsets of n_items items. A value: no method changes it.

    Examples
    --------
    >>> dpp = SpectralDPP.from_K([[0.5, 0.3], [0.3, 0.4]])
    >>> distribution = SetDistribution.mixture([1.0], dpp, p_empty=0.0)
    >>> np.exp(distribution.log_prob(Baskets.from_lists([[0], [0, 1]]))).round(3).tolist()
    [0.494, 0.139]
    """

    components: Components
    log_mass: Floats  # (m,)
    log_empty: Floats  # (m,) log P(c, ∅)

    @classmethod
    def mixture(cls, weights: npt.ArrayLike, components: Components, p_empty: float | None = None) -> SetDistribution:
        """Return the mixture of components.

        Parameters
        ----------
        weights : array-like of shape (m,)
            P(c), or with `p_empty`, P(c | Y ≠ ∅).
        components : Components
        p_empty : float, optional
            P(∅). By default the empty set has the probability that the components give it.
        """
        w = np.asarray(weights, float)
        if w.shape != (components.m,) or not np.all(w >= 0) or not abs(w.sum() - 1) <= WEIGHT_ROUNDING:
            raise InputError(f"weights must be {components.m} nonnegative numbers that sum to 1, got {weights!r}")
        with np.errstate(divide="ignore"):
            log_w, of_components = np.log(w / w.sum()), components.log_empty()
            if p_empty is None:
                return cls(components, log_w, log_w + of_components)
            if not 0 <= p_empty < 1:
                raise InputError(f"p_empty must be between 0 and 1, got {p_empty!r}")
            if np.any((of_components == 0) & (w > 0)):
                raise InputError("a component gives every nonempty set probability zero")
            log_mass = log_w + np.log1p(-p_empty) - log1mexp(of_components)
            return cls(components, log_mass, log_w + np.log(p_empty))

    @classmethod
    def truncated(cls, weights: npt.ArrayLike, components: Components) -> SetDistribution:
        """Return the mixture with weights P(c), conditioned on Y ≠ ∅."""
        nonempty = np.asarray(weights, float) * -np.expm1(components.log_empty())
        if not nonempty.sum() > 0:
            raise InputError("under this model every set is empty")
        return cls.mixture(nonempty / nonempty.sum(), components, p_empty=0.0)

    @classmethod
    def combined(cls, distributions: Sequence[SetDistribution], weights: Floats) -> SetDistribution:
        """Return the mixture Σ w P of distributions over the same items, with weights that sum to 1."""
        with np.errstate(divide="ignore"):
            log_w = np.log(weights)
        return cls(
            Stack.of([each.components for each in distributions]),
            np.concatenate([w + each.log_mass for w, each in zip(log_w, distributions, strict=True)]),
            np.concatenate([w + each.log_empty for w, each in zip(log_w, distributions, strict=True)]),
        )

    # Probabilities to which the empty set can contribute.

    def _log_set(self, sizes: Ints, log_p: Floats, *, summed: bool = False) -> Floats:
        """Return log P(c, Y = A), (..., m), for sets A of some sizes (...) from log P_c(A).

        With `summed`, return log P(Y = A), (...), from log Σ_c mass_c P_c(A).
        """
        if summed:
            return np.where(sizes, log_p, self._log_p_empty)
        return np.where(sizes[..., None], self.log_mass + log_p, self.log_empty)

    def _log_event(self, sizes: Ints, log_p: Floats, *, summed: bool = False) -> Floats:
        """Return log P(c, A ⊆ Y, E), (..., m), for sets A of some sizes (...) from log P_c(A ⊆ Y, E).

        E is any further event that is true of the empty set, such as that Y has none of the excluded items. For A = ∅
        the result is the logarithm of mass_c (P_c(E) − P_c(∅)) + P(c, ∅). With `summed`, return log P(A ⊆ Y), (...),
        from log Σ_c mass_c P_c(A ⊆ Y).
        """
        if summed:
            return np.where(sizes, log_p, 0.0)
        if sizes.all():
            return self.log_mass + log_p
        possible = log_p > -np.inf
        ratio = np.minimum(self.components.log_empty() - np.where(possible, log_p, 0), 0)  # log P_c(∅)/P_c(E)
        log_some = np.where(possible, self.log_mass + log_p + log1mexp(ratio), -np.inf)
        return np.where(sizes[..., None], self.log_mass + log_p, np.logaddexp(log_some, self.log_empty))

    @cached_property
    def _log_nonempty(self) -> Floats:
        """log P(c, Y ≠ ∅), (m,)."""
        return read_only(self.log_mass + log1mexp(self.components.log_empty()))

    # Sizes and weights.

    @property
    def n_items(self) -> int:
        return self.components.n_items

    @property
    def m(self) -> int:
        """The number of components."""
        return self.components.m

    @cached_property
    def _log_p_empty(self) -> float:
        return float(logsumexp(self.log_empty))

    @cached_property
    def p_empty(self) -> float:
        """P(∅)."""
        return float(np.exp(self._log_p_empty))

    @property
    def nonempty(self) -> bool:
        """Whether P(∅) = 0 although the components give the empty set a positive probability."""
        return self._log_p_empty == -np.inf and bool(np.isfinite(self.components.log_empty()).any())

    @cached_property
    def weights(self) -> Floats:
        """P(c), (m,)."""
        return read_only(np.exp(self._log_event(EMPTY, np.zeros(self.m))))

    @cached_property
    def segment_weights(self) -> Floats:
        """P(segment), (n_segments,); see `Components.groups`."""
        return read_only(np.bincount(self.components.groups, self.weights).astype(float))

    @property
    def size_range(self) -> range:
        """Sizes with a positive probability, and those between."""
        sizes = self.components.size_range
        return range(0 if self._log_p_empty > -np.inf else max(sizes.start, 1), sizes.stop)

    @property
    def expected_size(self) -> float:
        return float(self.marginals().sum())

    def log_sizes(self) -> Floats:
        """Return log P(|Y| = k) for k = 0..n_items."""
        return logsumexp(self._log_set(np.arange(self.n_items + 1), self.components.log_sizes().T))

    # Probabilities.

    def log_prob(self, sets: Baskets, threads: int | None = None) -> Floats:
        """Return log P(Y) of each set."""
        check_items(self.n_items, sets)
        return self._log_set(sets.sizes, self.components.log_mixture(self.log_mass, sets, threads), summed=True)

    def mean_log_likelihood(self, baskets: AnyBaskets, threads: int | None = None) -> float:
        """Return the weighted mean of log P(Y) over baskets, which may be in parts."""
        self.components.log_empty()  # computed here, once for all parts
        return summed(_sum_of_logs, self, baskets=baskets, threads=threads) / baskets.total_weight

    def marginals(self) -> Floats:
        """Return P(i ∈ Y) of each item."""
        return np.minimum(np.exp(self.log_mass) @ self.components.marginals(), 1)

    def segment_marginals(self) -> Floats:
        """Return P(i ∈ Y | segment), (n_segments, n_items)."""
        joint = np.zeros((len(self.segment_weights), self.n_items))
        np.add.at(joint, self.components.groups, np.exp(self.log_mass)[:, None] * self.components.marginals())
        weights = np.where(self.segment_weights > 0, self.segment_weights, 1)
        return np.asarray(np.minimum(joint / weights[:, None], 1))

    def pair_marginals(self, rows: Ints | None = None, columns: Ints | None = None) -> Floats:
        """Return P(i, j ∈ Y) for i in rows and j in columns, by default all. Entries with i = j are P(i ∈ Y)."""
        rows, columns = (np.arange(self.n_items) if each is None else each for each in (rows, columns))
        both = self.components.pair_marginals(np.exp(self.log_mass), rows, columns)
        same = rows[:, None] == columns
        return np.where(same, self.marginals()[rows][:, None], np.clip(both, 0, 1))

    def log_inclusion(self, sets: Baskets) -> Floats:
        """Return log P(A ⊆ Y) of each set."""
        return np.minimum(logsumexp(self._log_event(sets.sizes, self.components.log_inclusion(sets))), 0)

    def segment_posterior(self, items: Ints) -> Floats:
        """Return P(segment | A ⊆ Y), (n_segments,)."""
        one = self._one(items)
        log_joint = self._log_event(one.sizes, self.components.log_inclusion(one))[0]
        _check_possible(logsumexp(log_joint))
        return np.bincount(self.components.groups, softmax(log_joint)).astype(float)

    # The next item.

    def next_item_along(self, basket: Ints, orders: Ints, item: int) -> tuple[Floats, Floats]:
        """Return score and probability of one item given each prefix of each order, (n_orders, len(basket) + 1).

        `orders` holds positions within the basket, (n_orders, len(basket)).
        """
        sizes = np.arange(len(basket) + 1)
        if not isinstance(self.components, ScaledDPPs):
            prefixes = sets_of([basket[order[:size]] for order in orders for size in sizes], self.n_items)
            found = self.next_items(prefixes, np.full((len(prefixes), 1), item))
            return found[0].reshape(len(orders), -1), found[1].reshape(len(orders), -1)
        items = np.append(basket, item)
        log_p, log_next = self.components.along(False, items, orders)
        log_q, log_next_q = self.components.along(True, items, orders)
        scores = _ratio(logsumexp(self.log_mass + log_next), logsumexp(self._log_set(sizes, log_p)))
        probabilities = _ratio(logsumexp(self.log_mass + log_next_q), logsumexp(self._log_event(sizes, log_q)))
        return scores, np.minimum(probabilities, 1)

    def next_items(self, sets: Baskets, items: Ints | None = None) -> tuple[Floats, Floats]:
        """Return scores P(A ∪ i)/P(A) and probabilities P(i ∈ Y | A ⊆ Y), (s, n_items); 0 for i ∈ A.

        `items` are the candidates of each set, (s, j), by default all items. Scores are NaN where P(A) = 0,
        probabilities where P(A ⊆ Y) = 0.
        """
        return self.next_scores(sets, items), self.next_probabilities(sets, items)

    def next_scores(self, sets: Baskets, items: Ints | None = None) -> Floats:
        """Return the scores of `next_items`."""
        log_p, scale, x = self.components.next(False, self.log_mass, sets, items)
        return x * _ratio(scale, logsumexp(self._log_set(sets.sizes, log_p)))[:, None]

    def next_probabilities(self, sets: Baskets, items: Ints | None = None) -> Floats:
        """Return the probabilities of `next_items`."""
        log_p, scale, x = self.components.next(True, self.log_mass, sets, items)
        return np.minimum(x * _ratio(scale, logsumexp(self._log_event(sets.sizes, log_p)))[:, None], 1)

    def top_next(self, sets: Baskets, k: int, candidate: Bools | None = None, threads: int | None = None) -> Top:
        """Return the k items with the highest score for each set, among the candidates that have a positive score.

        Equal items are ordered by position. Where P(A) = 0, items are ranked by probability, and scores are NaN.
        """
        check_items(self.n_items, sets)
        found = self.components.top(TopQuery(self.log_mass, sets, k, candidate, True, threads))
        sizes = sets.sizes
        log_set = self._log_set(sizes, found.log_p, summed=True)
        log_event = self._log_event(sizes, found.log_q, summed=True)
        with np.errstate(invalid="ignore", over="ignore"):
            scores = np.exp(found.log_x - log_set[:, None])
            probabilities = np.minimum(np.exp(found.log_y - log_event[:, None]), 1)
        top = Top(found.items, scores, probabilities, log_event > -np.inf)
        impossible = (log_set == -np.inf).nonzero()[0]
        for some in row_slices(len(impossible), self.n_items, MAX_NUMBERS):
            rows = impossible[some]
            y = np.nan_to_num(self.next_probabilities(sets.subset(rows)))
            top.items[rows], top.scores[rows] = highest(y, k, candidate), np.nan
            top.probabilities[rows] = chosen(y, top.items[rows])
        return top

    def greedy(self, k: int | None, include: Ints = NO_ITEMS) -> tuple[Ints, Floats, float]:
        """Grow a set from `include` by the best next item, to k items, or without k while P(Y) increases.

        Returns
        -------
        items : array of int
            In the order in which they were added, those of `include` first.
        gains : array of float
            The factor by which each multiplied P(Y); NaN where it was 0 before.
        log_prob : float
            log P(Y) of the set.
        """
        items, one = include.tolist(), self._one(include)
        prefixes = sets_of([include[:size] for size in range(len(include))], self.n_items)
        found = self.components.top(TopQuery(self.log_mass, prefixes, 0))  # much faster than `log_prob` of a few sets
        log_p = self._log_set(prefixes.sizes, found.log_p, summed=True)  # log P(Y) of every prefix of the items
        while True:
            best = self.components.top(TopQuery(self.log_mass, one, 1))
            log_p = np.append(log_p, self._log_set(one.sizes, best.log_p, summed=True))
            if len(items) == len(include) and log_p[-1] == -np.inf:
                _check_possible(self.log_inclusion(one)[0])
            if len(items) >= (self.n_items if k is None else k):
                break
            item = int(best.items[0, 0])
            if item < 0:  # no larger set is possible: add the most probable item
                item = int(self.top_next(one, 1).items[0, 0])
            if item < 0 or (k is None and best.log_x[0, 0] <= log_p[-1]):
                break
            items.append(item)
            one = self._one(np.array(items, np.int64))
        return np.array(items, np.int64), _ratio(log_p[1:], log_p[:-1]), float(log_p[-1])

    # Other distributions.

    def condition(self, include: Ints = NO_ITEMS, exclude: Ints = NO_ITEMS) -> tuple[SetDistribution, Ints]:
        """Return the distribution of the other items given include ⊆ Y and exclude ∩ Y = ∅, and which these are."""
        evidence, components = self.components.condition(include, exclude)
        remaining = np.setdiff1d(np.arange(self.n_items), np.concatenate([include, exclude]))
        # Of the other items there is none if Y = include.
        log_empty = self._log_set(np.array(len(include)), evidence + components.log_empty())
        return SetDistribution(components, self.log_mass + evidence, log_empty)._normalised(), remaining

    def tilt(self, log_odds: Floats) -> SetDistribution:
        """Return the distribution P'(Y) ∝ P(Y) exp(g · x_Y); g_i = −inf excludes an item."""
        evidence, components = self.components.tilt(log_odds)
        return SetDistribution(components, self.log_mass + evidence, self.log_empty)._normalised()

    def restrict(self, items: Ints) -> SetDistribution:
        """Return the distribution of Y ∩ S, over the items of S in the order given."""
        components = self.components.restrict(items)
        return SetDistribution(components, self.log_mass, self._log_event(EMPTY, components.log_empty()))

    def extend(self, p: Floats) -> SetDistribution:
        """Return the distribution with further items at the end, independent of all others.

        Given that Y contains an old item, the distribution of old items does not change. If the empty set is excluded,
        Y may now consist of new items alone.
        """
        log_none, components = self.components.extend(p)
        return SetDistribution(components, self.log_mass, self.log_empty + log_none)._normalised()

    def with_copy(self, item: int) -> SetDistribution:
        """Return the distribution with one further item that has the marginal and the interactions of `item`.

        Within a component, sets without the copy keep their proportions, the empty set included.
        """
        components = self.components.with_copy(item)[1]
        log_empty = self.log_empty + components.log_empty() - self.components.log_empty()
        return SetDistribution(components, self.log_mass, log_empty)._normalised()

    def with_p_empty(self, p_empty: float) -> SetDistribution:
        """Return the distribution with P(∅) = p_empty and the same probabilities given Y ≠ ∅."""
        total = logsumexp(self._log_nonempty)
        _check_possible(total)
        with np.errstate(divide="ignore"):
            log_mass = self.log_mass - total + np.log1p(-p_empty)
            return SetDistribution(self.components, log_mass, self._log_nonempty - total + np.log(p_empty))

    def reorder(self, order: Ints) -> SetDistribution:
        """Return the same distribution with its items in another order."""
        return replace(self, components=self.components.restrict(order))

    def _normalised(self) -> SetDistribution:
        """Scale probabilities to sum to 1 and drop components of probability 0."""
        log_c = self._log_event(EMPTY, np.zeros(self.m))
        total = logsumexp(log_c)
        _check_possible(total)
        kept = np.flatnonzero(log_c > -np.inf)
        components = self.components if len(kept) == self.m else self.components.take(kept)
        return SetDistribution(components, self.log_mass[kept] - total, self.log_empty[kept] - total)

    # Draws.

    def sample(self, n: int, k: int | None = None, rng: Seed = None, threads: int | None = None) -> list[Ints]:
        """Draw n independent sets, each ascending; with k, from the distribution given |Y| = k."""
        stream = np.random.default_rng(rng)
        if k is not None:
            self.check_size(k)
            if k == 0:
                return [NO_ITEMS] * n
            log_p = self.log_mass + self._log_size(k) if self.m > 1 else self.log_mass
            return self.components.sample(self._choose(n, log_p, stream), stream, k, False, threads)
        of_components = self.log_mass + self.components.log_empty()
        if np.allclose(self.log_empty, of_components, rtol=0, atol=1e-12):  # nothing special about the empty set
            which = self._choose(n, self.log_mass, stream)
            return self.components.sample(which, stream, None, False, threads)
        found = [NO_ITEMS] * n
        rows = np.flatnonzero(stream.random(n) >= self.p_empty)
        if len(rows):
            which = self._choose(len(rows), self._log_nonempty, stream)
            drawn = self.components.sample(which, stream, None, True, threads)
            for row, each in zip(rows.tolist(), drawn, strict=True):
                found[row] = each
        return found

    def _choose(self, n: int, log_p: Floats, rng: np.random.Generator) -> Ints:
        """Draw n components with probabilities proportional to exp(log_p)."""
        return rng.choice(self.m, n, p=softmax(log_p)) if self.m > 1 else np.zeros(n, dtype=np.int64)

    def log_size(self, k: int) -> float:
        """Return log P(|Y| = k). For rare sizes of low-rank components it is more accurate than `log_sizes`."""
        return float(logsumexp(self._log_set(np.array(k), self._log_size(k))))

    def _log_size(self, k: int) -> Floats:
        """Return log P_c(|Y| = k), (m,)."""
        if k == self.n_items:  # low-rank components give this size no probability if it is below their rounding
            return np.asarray(self.components.log_prob(self._one(np.arange(k)))[0])
        found = self.components.log_sizes()[:, k]
        # Low-rank components give sizes with an absolute error; rare sizes need a tilt.
        if 0 < k < self.n_items and logsumexp(self.log_mass + found) < LOG_RARE_SIZE:
            return self.components.log_rare_size(k)
        return np.asarray(found)

    def check_size(self, k: int) -> None:
        """Raise `InputError` if no set has k items."""
        sizes = self.size_range
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k not in sizes:
            raise InputError(f"k must be between {sizes[0]} and {sizes[-1]}, the possible set sizes, got {k!r}")

    # Re-ranking, files.

    def similarity(self, items: Ints) -> tuple[Floats, Similarity]:
        """Return the weight of each interaction, and the interactions among the candidates of users, (n_users, n)."""
        return self.components.similarity(self.weights, items)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the parameters by name, as a model file stores them."""
        return {"log_mass": self.log_mass, "log_empty": self.log_empty, **self.components.arrays()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> SetDistribution:
        """Return the distribution that `arrays` gave. Every array is validated."""
        components = components_from(arrays)
        log_mass = _checked_logs(arrays, "log_mass", components.m, MAX_LOG_MASS)
        log_empty = _checked_logs(arrays, "log_empty", components.m, WEIGHT_ROUNDING)
        found = cls(components, log_mass, log_empty)
        total = float(found.weights.sum())
        if not abs(total - 1) <= TOTAL_ROUNDING:
            raise InputError(f"log_mass and log_empty must give a total probability of 1, got {total:g}")
        return found

    def _one(self, items: Ints) -> Baskets:
        return sets_of([items], self.n_items)


def components_from(arrays: Mapping[str, npt.NDArray[Any]], prefix: str = "") -> Components:
    """Return the components that arrays with a prefix describe."""
    own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    if "part.0.log_odds" in own or "part.0.eigenvalues" in own:
        numbers = range(1 + max(int(name.split(".")[1]) for name in own if name.startswith("part.")))
        parts = [components_from(own, f"part.{number}.") for number in numbers]
        if len({part.n_items for part in parts}) > 1:
            raise InputError(f"parts must have the same number of items, got {[part.n_items for part in parts]}")
        return Stack.of(parts)
    return SpectralDPP.from_arrays(own) if "eigenvalues" in own else ScaledDPPs.from_arrays(own)


def _checked_logs(arrays: Mapping[str, npt.NDArray[Any]], name: str, m: int, most: float) -> Floats:
    values = float_array(arrays, name).astype(float)
    if values.shape != (m,) or not np.all(values <= most):
        raise InputError(f"{name} must be {m} numbers of at most {most:g}, got {values!r}")
    return values


def _sum_of_logs(distribution: SetDistribution, baskets: Baskets, threads: int | None) -> float:
    return weighted_sum(baskets.weights, distribution.log_prob(baskets, threads))


def _ratio(log_x: Floats, log_total: Floats) -> Floats:
    """Return exp(log_x − log_total), NaN where log_total is −inf."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(log_x - np.where(log_total > -np.inf, log_total, np.nan)))


def _check_possible(log_p: float | Floats) -> None:
    if not log_p > -np.inf:
        raise InputError(IMPOSSIBLE)

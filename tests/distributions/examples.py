"""Distributions of every kind over a few items, and the queries of a distribution for one basket at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.distributions.components import PlainSets, Stack
from dpplearn.distributions.distribution import SetDistribution, Top
from dpplearn.distributions.interaction import Dense, LowRank, repelling_and_attracting
from dpplearn.distributions.scaled import ScaledDPPs
from dpplearn.distributions.spectral import SpectralDPP

N = 5


@dataclass(frozen=True)
class Law:
    """A distribution, asked about one basket at a time."""

    distribution: SetDistribution

    def __getattr__(self, name: str) -> Any:
        return getattr(self.distribution, name)

    @property
    def possible_sizes(self) -> range:
        return self.distribution.size_range

    def log_prob(self, baskets: Any, threads: int | None = None) -> Floats:
        return self.distribution.log_prob(baskets, threads)

    def log_empty(self) -> float:
        with np.errstate(divide="ignore"):
            return float(np.log(self.distribution.p_empty))

    def pairs(self) -> Floats:
        return self.distribution.pair_marginals()

    def pairs_with(self, item: int) -> Floats:
        return self.distribution.pair_marginals(np.array([item]))[0]

    def inclusion(self, items: Ints) -> float:
        return float(np.exp(self.distribution.log_inclusion(self._sets([items]))[0]))

    def next_item(self, basket: Ints) -> tuple[Floats, Floats]:
        score, probability = self.distribution.next_items(self._sets([basket]))
        return score[0], probability[0]

    def scores(self, basket: Ints) -> Floats:
        return self.next_item(basket)[0]

    def next_of(self, item: int, baskets: Sequence[Ints]) -> tuple[Floats, Floats]:
        score, probability = self.distribution.next_items(self._sets(baskets), np.array([item]))
        return score[:, 0], probability[:, 0]

    def best_next(self, basket: Ints, k: int, candidate: Bools | None = None) -> tuple[Ints, Floats, Floats]:
        found = self.distribution.top_next(self._sets([basket]), k, candidate)
        n = int((found.items[0] >= 0).sum())
        return found.items[0, :n], found.scores[0, :n], found.probabilities[0, :n]

    def best_next_of_many(self, baskets: Any, k: int, threads: int | None = None) -> Top:
        return self.distribution.top_next(baskets, k, None, threads)

    def given(self, include: Ints, exclude: Ints) -> tuple[Law, Ints]:
        rest, remaining = self.distribution.condition(include, exclude)
        return Law(rest), remaining

    def restricted(self, items: Ints) -> Law:
        return Law(self.distribution.restrict(items))

    def _sets(self, baskets: Sequence[Ints]) -> PlainSets:
        return PlainSets.of(baskets, self.distribution.n_items)


def from_arrays(arrays: dict[str, Any]) -> Law:
    return Law(SetDistribution.from_arrays(arrays))


def _spectral(seed: int, ones: int = 0) -> SpectralDPP:
    X = np.random.default_rng(seed).standard_normal((N, N))
    dpp = SpectralDPP.from_L(X @ X.T / N)
    return SpectralDPP(np.append(dpp.eigenvalues[: N - ones], np.ones(ones)), dpp.eigenvectors)


def _dense(seed: int) -> ScaledDPPs:
    """One, two, three components; the last with an interaction each."""
    rng, m = np.random.default_rng(seed), 1 + seed % 3
    g = 3 if m == 3 else 1
    U, A = rng.standard_normal((g, N, 2)) / 2, rng.standard_normal((g, N, N)) / 2
    X = U @ U.transpose(0, 2, 1) + A - A.transpose(0, 2, 1)
    return ScaledDPPs.checked(rng.standard_normal((m, N)) - 0.5, Dense.checked(X))


def _low_rank(seed: int) -> ScaledDPPs:
    """One, two, three components; the last with an interaction each. One item does not interact."""
    rng, m = np.random.default_rng(seed), 1 + seed % 3
    Z = rng.standard_normal((N, 5)) / 1.5
    Z[3] = 0
    twisted = rng.standard_normal((m if m == 3 else 1, 5, 5)) / 3
    core = repelling_and_attracting(1, 2) + twisted - twisted.transpose(0, 2, 1)
    log_odds = (rng.standard_normal((m, N)) - 0.5).astype(np.float32)
    return ScaledDPPs.checked(log_odds, LowRank.checked(Z, core))


def _without_interaction(seed: int) -> ScaledDPPs:
    """Rank 0, and rows that are all 0."""
    rng, r = np.random.default_rng(seed), 3 * (seed % 2)
    core = repelling_and_attracting(r // 3, r // 3)[None]
    return ScaledDPPs.checked(rng.standard_normal((2, N)), LowRank.checked(np.zeros((N, r)), core))


def _stack(seed: int) -> Stack:
    return Stack((_spectral(seed), _spectral(seed, ones=1), _dense(seed + 1), _low_rank(seed)))


def _certain(seed: int) -> Stack:
    """One and two certain items: a set that is possible under one DPP may be too small for the other."""
    return Stack((_spectral(seed, ones=1), _spectral(seed, ones=2)))


KINDS: dict[str, Callable[[int], Any]] = {
    "symmetric": _spectral,
    "dense": _dense,
    "low-rank": _low_rank,
    "without interaction": _without_interaction,
    "stack": _stack,
    "certain items": _certain,
}


def _law(kind: str, p_empty: float | None, seed: int) -> Law:
    components = KINDS[kind](seed)
    weights = np.random.default_rng(seed).dirichlet(np.ones(components.m))
    return Law(SetDistribution.mixture(weights, components, p_empty))


def _restricted(kind: str, seed: int) -> Law:
    """Y ∩ S of a larger nonempty set: P(∅) differs between components."""
    components, more = KINDS[kind](seed), np.array([0.3, 0.8])
    extended = SetDistribution.truncated(np.full(components.m, 1 / components.m), components.extend(more)[1])
    return Law(extended.restrict(np.arange(N)))


EXAMPLES: dict[str, Callable[[int], Law]] = {
    f"{kind}, {name}": (lambda seed, kind=kind, p_empty=p_empty: _law(kind, p_empty, seed))
    for kind in KINDS
    for name, p_empty in (("as is", None), ("never empty", 0.0), ("seldom empty", 0.05))
    if not (kind == "certain items" and name != "as is")
}
EXAMPLES |= {f"{kind}, restricted": (lambda seed, kind=kind: _restricted(kind, seed)) for kind in KINDS}

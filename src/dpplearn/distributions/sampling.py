"""Exact draws. Nonempty sets need no rejection; draws of k items may repeat until the size is k.

Symmetric: choose eigenvector j with probability λ_j, independently, then as many items from the span of those chosen
[KT12]. So |Y| is distributed as a sum of independent Bernoulli variables. These functions work with logarithms and with
λ_j = 1, for which elementary symmetric polynomials do not exist.

Dense: item after item is in or out [Poulson20, Launay20].

Low-rank, without a matrix of size n_items × n_items:
det(D² + A)_Y = Σ_S det A_S Π_{Y∖S} d² with A = D Z Ω Zᵀ D. So Y is the union of T, in which items are independent with
probabilities p, and S, a draw from the DPP with L = B Ω Bᵀ, b_i = √p_i z_i. Once items X have been decided,

    P(S ∩ X = A) = det(I + S_R Ω)/det(I + S Ω) · det(B_A Ω_R B_Aᵀ),   S_R = B_Rᵀ B_R over the other items R,

with Ω_R = Ω (I + S_R Ω)⁻¹. Ω_R is stored for blocks of items. Most blocks are passed over at once: a binary search
finds the next block that S enters. Within it, halves that S does not enter are excluded, with probability
det(I − B_Hᵀ B_H Ω') given the decisions so far, until a few items are left, which are decided one by one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import EPSILON, Bools, Floats, Ints
from dpplearn.distributions.compiled import loops
from dpplearn.distributions.components import sigmoid
from dpplearn.distributions.interaction import LowRank, absorbed_core
from dpplearn.utils.threads import map_over_threads

MAX_SEQUENTIAL = 64  # items that are decided one by one
MAX_BLOCKS = 64
MAX_BYTES = 2**28  # for the Ω_R of all components
TINY = 1e-300  # for probabilities that rounding makes 0
STREAM_LENGTH = 32  # draws from one random stream; fixed, so that draws do not depend on the number of threads


def in_streams(
    some: Callable[[slice, np.random.Generator], list[Ints]], n: int, rng: np.random.Generator, threads: int | None
) -> list[Ints]:
    """Return n draws. `some` returns those of some rows; it is called over threads, with a random stream each time."""
    seeds = rng.integers(2**63, size=-(-n // STREAM_LENGTH)).tolist()

    def stream(number: int) -> list[Ints]:
        start = number * STREAM_LENGTH
        return some(slice(start, min(start + STREAM_LENGTH, n)), np.random.default_rng(seeds[number]))

    return [drawn for part in map_over_threads(stream, range(len(seeds)), threads) for drawn in part]


@dataclass(frozen=True, eq=False)
class DenseSampler:
    """A sampler of the DPP with marginal kernel K."""

    K: Floats
    p_nonempty: float = 1.0

    def draw(self, rng: np.random.Generator, k: int | None = None, nonempty: bool = False) -> Ints:
        """Draw a set: of k items, for which E|Y| should be about k, or a nonempty one."""
        taken = np.empty(len(self.K), np.int64)
        some = self.p_nonempty if nonempty else 0.0
        size = loops("sampling").draw(self.K, -1 if k is None else k, some, rng, np.empty(self.K.shape), taken)
        return taken[:size]


def log_size_table(lam: Floats, largest: int) -> Floats:
    """Return log P(k of the first n eigenvectors are chosen), for n = 0..N and k = 0..largest."""
    table = np.full((len(lam) + 1, largest + 1), -np.inf)
    table[0, 0] = 0
    with np.errstate(divide="ignore"):
        log_in, log_out = np.log(lam), np.log1p(-lam)
    for n in range(len(lam)):
        table[n + 1] = table[n] + log_out[n]
        table[n + 1, 1:] = np.logaddexp(table[n + 1, 1:], table[n, :-1] + log_in[n])
    return table


def choose(lam: Floats, nonempty: bool, draws: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Choose each eigenvector with probability λ_j [KT12, Algorithm 1], or given that at least one is chosen.

    Then the first one is j with probability ∝ λ_j Π_{i<j} (1 − λ_i), and those after it stay independent. Like
    `choose_k`, return the choices of all draws as one list, and the offsets of the draws in it.
    """
    if not nonempty:
        return _listed(rng.random((draws, len(lam))) < lam)
    with np.errstate(divide="ignore"):
        log_none_before = np.concatenate([[0.0], np.cumsum(np.log1p(-lam[:-1]))])
    cumulative = np.cumsum(lam * np.exp(log_none_before))
    first = np.searchsorted(cumulative, rng.random((draws, 1)) * cumulative[-1], side="right")
    # Rounding can put the product at the total itself, which is past the last eigenvector that can be chosen.
    first = np.minimum(first, np.flatnonzero(lam)[-1])
    place = np.arange(len(lam))
    return _listed((place == first) | ((place > first) & (rng.random((draws, len(lam))) < lam)))


def choose_k(inclusion: Floats, draws: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Choose k eigenvectors by the probabilities of `inclusion_table`. [KT12, Algorithm 8]"""
    n, k = inclusion.shape[0], inclusion.shape[1] - 1
    chosen = np.empty((draws, k), dtype=np.int64)
    loops("sampling").choose_k(inclusion, rng.random((draws, n)), chosen)
    return chosen.reshape(-1), np.arange(draws + 1, dtype=np.int64) * k


def inclusion_table(lam: Floats, k: int) -> Floats:
    """Return P(eigenvector n is chosen | l of the eigenvectors 0..n are): λ_n P_n(l − 1) / P_{n+1}(l), l = 0..k."""
    table = log_size_table(lam, k)
    inclusion = np.zeros((len(lam), k + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(lam)[:, None] + table[:-1, :-1] - table[1:, 1:]
    inclusion[:, 1:] = np.exp(np.where(np.isnan(logs), -np.inf, logs))
    # Where all that can still be chosen are needed, rounding must not skip one.
    possible = np.cumsum(lam > 0)[:, None]
    inclusion[(np.arange(k + 1) >= possible) & (lam > 0)[:, None]] = 1
    inclusion[:, 0] = 0
    return inclusion


def _listed(chosen: Bools) -> tuple[Ints, Ints]:
    rows, columns = np.nonzero(chosen)
    counts = np.bincount(rows, minlength=len(chosen))
    return np.ascontiguousarray(columns), np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


class LowRankSampler:
    """A sampler of one low-rank component. Items with the most interaction come first.

    The memory of several samplers is limited.
    """

    def __init__(self, log_odds: Floats, interaction: LowRank, n_samplers: int) -> None:
        active, core = interaction.active, interaction.core[0]
        p = sigmoid(log_odds[active])
        strength = p * np.einsum("ij,ij->i", interaction.Z[active], interaction.Z[active])
        by_strength = np.argsort(-strength, kind="stable")
        # the items with interaction, and √p of these
        self.Z, self.order, self.roots = interaction.Z, active[by_strength], np.sqrt(p[by_strength])
        # cumulative rates of a Poisson process that has a point at item i with probability p_i
        self.rates = np.cumsum(np.logaddexp(0, log_odds))
        # where blocks start in the order, and where the last one ends
        n_blocks = int(np.clip(MAX_BYTES // (8 * n_samplers * max(core.size, 1)), 4, MAX_BLOCKS))
        self.starts = _block_starts(strength[by_strength], n_blocks)
        # log det(I + S_R Ω) and Ω_R at these places
        n, S = len(self.starts), np.zeros(core.shape)
        self.log_left, self.left = np.empty(n), np.empty((n, *core.shape))
        for at in range(n - 1, -1, -1):
            if at < n - 1:
                S += _gram(self._rows(np.arange(self.starts[at], self.starts[at + 1])))
            self.log_left[at], self.left[at] = absorbed_core(core, S)

    def draw(self, rng: np.random.Generator, k: int | None = None, nonempty: bool = False) -> Ints:
        """Draw a set: of k items, for which E|Y| should be about k, or a nonempty one."""
        rate, log_no_S = self.rates[-1], self.log_left[-1] - self.log_left[0]
        while True:  # with k, about one draw in 2.5 times the standard deviation of |Y| has k items
            # Points of T come at times up to `rate`, and S takes the time −log P(S = ∅) after it. The first event is at
            # the time at which the probability of none has fallen to a uniform number; the last one without an event
            # for a nonempty set.
            most = -np.expm1(log_no_S - rate) if nonempty else 1.0
            first, points = -np.log1p(-most * rng.random()), np.zeros(0)
            if first < rate:
                points = np.append(rng.uniform(first, rate, rng.poisson(rate - first)), first)
                first = rng.standard_exponential()
            else:
                first -= rate
            T = np.minimum(np.searchsorted(self.rates, points, side="right"), len(self.rates) - 1)
            drawn = np.asarray(np.union1d(T, self.order[self._interacting(first, rng)]))
            if len(drawn) == k or (k is None and (len(drawn) or not nonempty)):
                return drawn

    def _interacting(self, first: float, rng: np.random.Generator) -> Ints:
        """Draw S, as places in the order, given the time −log P(no item before) of its first item."""
        taken, at, last, time = np.zeros(0, dtype=np.int64), 0, len(self.starts) - 1, first
        while at < last:
            B = self._rows(taken)
            least = self._log_probability(at, B) - time
            if self._log_probability(last, B) >= least:
                break
            # the first block at whose end the probability of no further item is below `least`
            ends = range(at + 1, last)
            at += 1 + bisect_left(ends, True, key=lambda end: self._log_probability(end, B) < least)
            places, before = np.arange(self.starts[at - 1], self.starts[at]), self.left[at - 1]
            taken = np.append(taken, self._within(places, _given(before, B, B @ before @ B.T), rng))
            time = rng.standard_exponential()
        return taken

    def _rows(self, places: Ints) -> Floats:
        return np.asarray(self.Z[self.order[places]] * self.roots[places, None])

    def _log_probability(self, at: int, B: Floats) -> float:
        """Return log P(S has exactly these items in the blocks before), up to a constant."""
        sign, log_det = np.linalg.slogdet(B @ self.left[at] @ B.T)
        return float(self.log_left[at] + log_det) if sign > 0 else -np.inf

    def _within(self, places: Ints, core: Floats, rng: np.random.Generator) -> Ints:
        """Draw the items of S in a block that S enters; `core` is Ω' given the decisions before the block."""
        found = np.zeros(0, dtype=np.int64)
        while True:
            few, core = self._narrow(places, core, rng)
            B = self._rows(few)
            K = B @ core @ B.T
            log_none = np.linalg.slogdet(np.eye(len(few)) - K)[1]
            inside = DenseSampler(K, max(-np.expm1(log_none), TINY)).draw(rng, nonempty=True)
            found, places = np.append(found, few[inside]), places[places > few[-1]]
            if not len(places):
                return found
            K[np.arange(len(few)), np.arange(len(few))] -= ~np.isin(np.arange(len(few)), inside)
            core = _given(core, B, K)
            if rng.random() < _probability_of_none(_gram(self._rows(places)), core):
                return found

    def _narrow(self, places: Ints, core: Floats, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Return the first few places that S enters, given that it enters some, and Ω' given that it skips those
        before."""
        of_all = _gram(self._rows(places))
        while len(places) > MAX_SEQUENTIAL:
            half = len(places) // 2
            of_half = _gram(self._rows(places[:half]))
            none, none_of_half = _probability_of_none(of_all, core), _probability_of_none(of_half, core)
            if rng.random() * (1 - none) < none_of_half - none:
                core = np.asarray(np.linalg.solve((np.eye(len(core)) - of_half @ core).T, core.T).T, dtype=float)
                places, of_all = places[half:], of_all - of_half
            else:
                places, of_all = places[:half], of_half
        return places, core


def _block_starts(strength: Floats, n_blocks: int) -> Ints:
    """Return the starts of blocks with similar sums of strength and number of items."""
    n = len(strength)
    share = np.cumsum(strength / max(strength.sum(), EPSILON) + 1 / max(n, 1)) / 2
    inner = np.searchsorted(share, np.arange(1, n_blocks) / n_blocks)
    return np.unique(np.concatenate([[0], inner, [n]]))


def _gram(rows: Floats) -> Floats:
    return np.asarray(rows.T @ rows)


def _probability_of_none(S: Floats, core: Floats) -> float:
    """Return the probability that S has no item of a block with gram matrix B_Hᵀ B_H: det(I − B_Hᵀ B_H Ω')."""
    return float(np.linalg.det(np.eye(len(S)) - S @ core))


def _given(core: Floats, B: Floats, K: Floats) -> Floats:
    """Return Ω' given the decisions on items with rows B: K is B Ω' Bᵀ, less 1 on the diagonal of items not in S."""
    return np.asarray(core - core @ B.T @ np.linalg.solve(K, B @ core))

"""The k best items to add to a set: the three implementations of `Components.top`.

- `top_of_all` scores every item with numpy and keeps the first k.
- `top_compiled` does the same in compiled loops, for dense matrices.
- `top_pruned` skips most items by bounds on their scores, for low-rank interactions and more than 1,000 items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.distributions.compiled import loops
from dpplearn.distributions.components import Best, Components, Sets, logsumexp, members, rows_of
from dpplearn.distributions.interaction import LowRank, Singles
from dpplearn.distributions.minors import Share, over_threads

MAX_SCORES = 4_000_000  # scores held in memory at a time
NEXT_COST = 10_000  # nanoseconds per set, about; decides how many threads share the work
MIN_PRUNED_ITEMS = 1000  # below, scoring every item is faster

# Relative error of a step in single precision, and the number of steps of a bound beyond the sum over components.
SINGLE_ERROR, N_STEPS = 1e-7, 20
MIN_LOG_ODDS = -1e3  # for the order of items that a component excludes
TINY = np.float32(1e-37)  # larger than what underflows
BLOCK_SIZE = 32  # items with a common bound
MIN_SCORED, SCORED_PER_RESULT = 64, 16  # items scored before the other blocks are compared with the best of them


def highest(x: Floats, k: int, candidate: Bools | None = None) -> tuple[Ints, Floats]:
    """Return the k candidates with the highest x > 0 in each row, and all that tie with the last, padded with −1."""
    if candidate is not None:
        x = np.where(candidate, x, 0.0)
    n = x.shape[1]
    last: Floats | float = 0.0 if k else np.inf
    if 0 < k <= n:
        last = np.partition(x, n - k, axis=1)[:, n - k, None]
    rows, columns = np.nonzero((x >= last) & (x > 0))
    counts = np.bincount(rows, minlength=len(x))
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = (len(x), counts.max(initial=0))
    items, values = np.full(shape, -1), np.zeros(shape)
    items[rows, place], values[rows, place] = columns, x[rows, columns]
    return items, values


def top_of_all(
    components: Components,
    log_mass: Floats,
    sets: Sets,
    k: int,
    candidate: Bools | None,
    inclusion: bool,
    threads: int | None,
) -> Best:
    """Implement `Components.top` by scoring every item."""
    step = max(MAX_SCORES // components.n_items, 1)
    chosen = None if candidate is None else np.flatnonzero(candidate)
    found = []
    for start in range(0, len(sets), step):
        part = sets if step >= len(sets) else rows_of(sets, start, min(start + step, len(sets)))
        log_p, scale, x = components.next(log_mass, part, chosen, threads)
        items, x = highest(x, k)
        found.append((log_p, scale, items if chosen is None else np.where(items >= 0, chosen[items], -1), x))
    return ranked(components, log_mass, sets, k, found, inclusion, threads)


def top_compiled(
    for_scores: tuple[Floats, ...],
    for_probabilities: tuple[Floats, ...] | None,
    log_mass: Floats,
    sets: Sets,
    k: int,
    candidate: Bools | None,
    least: Floats,
    threads: int | None,
) -> Best:
    """Implement `Components.top` for L_c = √q_c M_c √q_c, given M, log q, q and −log Z; for K_c with 0."""
    found, compiled = Best.unfilled(len(sets), k), loops("next_items")
    candidate = np.ones(sets.n_items, bool) if candidate is None else candidate
    inclusion = for_probabilities is not None
    given = (for_scores, for_probabilities or for_scores, log_mass, sets.indices, sets.offsets, candidate, inclusion)

    def part(share: Share) -> None:
        rows = share.among(len(sets))
        compiled.top_items(*given, rows.start, rows.stop, least, tuple(found))

    over_threads(part, NEXT_COST * len(sets), threads, with_blas=False)
    return found


def ranked(
    components: Components,
    log_mass: Floats,
    sets: Sets,
    k: int,
    parts: list[tuple[Floats, Floats, Ints, Floats]],
    inclusion: bool,
    threads: int | None,
) -> Best:
    """Order candidates by x and keep the first k.

    Each part gives log P_c(A), log scales, items and x of some consecutive sets; missing items are −1, with x = 0.
    """
    found, width = Best.unfilled(len(sets), k), max((items.shape[1] for _, _, items, _ in parts), default=0)
    items, x, y, start = np.full((len(sets), width), -1), np.zeros((len(sets), width)), np.zeros((len(sets), width)), 0
    for log_p, scale, of_part, values in parts:
        rows = slice(start, start + len(of_part))
        found.log_p[rows], found.scale[rows] = logsumexp(log_mass + log_p), scale
        items[rows, : of_part.shape[1]], x[rows, : of_part.shape[1]] = of_part, values
        start = rows.stop
    if inclusion:
        log_q, found.scale_q[:], y = components.next_inclusion(log_mass, sets, items, threads)
        found.log_q[:] = logsumexp(log_mass + log_q)
    order = np.lexsort((items, -y, -x))[:, :k]
    row, width = np.arange(len(sets))[:, None], order.shape[1]
    for to, values in ((found.items, items), (found.x, x), (found.y, y)):
        to[:, :width] = values[row, order]
    found.items[:, width:] = -1
    found.x[found.items < 0] = found.y[found.items < 0] = np.nan
    return found


def ratio(x: Floats, scale: Floats, log_total: Floats) -> Floats:
    """Return exp(scale − log_total) x for rows of x; NaN where log_total is −inf."""
    with np.errstate(invalid="ignore", over="ignore"):
        factor = np.exp(scale - log_total)
        factor[log_total == -np.inf] = np.nan
        return np.asarray(factor[:, None] * x)


class BoundTerms(NamedTuple):
    """The terms of bounds, of items or the largest of a block of items, in single precision."""

    odds: Singles  # (m, n)
    diagonal: Singles  # C_ii, the largest of any interaction
    squares: Singles  # |z_i|²

    def of(self, items: Ints) -> BoundTerms:
        return BoundTerms(*(each[..., items] for each in self))


@dataclass(frozen=True, eq=False)
class Bounds:
    """Upper bounds on scores under components with a low-rank interaction. `top` finds the best items of one set.

    Given a set, the score Σ_c w_c o_ci C'_ii is at most Σ_c w_c o_ci (C_ii + λ |z_i|²), with C' the Schur complement of
    C = I + Z Ω Zᵀ and λ the largest eigenvalue of the symmetric part of what the set changes in Ω. Similar items form a
    block with a common bound. Only the items of blocks that reach the best scores found so far are scored. Bounds are
    in single precision, rounded up by more than that loses; scores are in double precision.
    """

    log_odds: Floats  # (m, n_items)
    interaction: LowRank
    log_Z: Floats  # (m,)
    items: BoundTerms
    blocks: BoundTerms
    order: Ints  # the items, block after block

    @classmethod
    def of(cls, log_odds: Floats, interaction: LowRank, log_Z: Floats) -> Bounds:
        with np.errstate(over="ignore"):
            odds = np.exp(log_odds).astype(np.float32) + TINY
        squares = np.square(interaction.Z.astype(float)).sum(axis=1).astype(np.float32)
        items = BoundTerms(odds, (1 + interaction.diagonal().max(axis=0)).astype(np.float32), squares)
        order = _similar_order(log_odds)
        starts = np.arange(0, len(order), BLOCK_SIZE)
        blocks = BoundTerms(*(np.maximum.reduceat(each, starts, axis=-1) for each in items.of(order)))
        return cls(log_odds, interaction, log_Z, items, blocks, order)

    def members(self, blocks: Ints, free: Bools) -> Ints:
        """Return the free items of some blocks."""
        places = (blocks[:, None] * BLOCK_SIZE + np.arange(BLOCK_SIZE)).ravel()
        items = self.order[places[places < len(self.order)]]
        return np.asarray(items[free[items]])

    def top(self, log_mass: Floats, basket: Ints, k: int, free: Bools) -> tuple[Floats, np.float64, Ints, Floats]:
        """Return log P_c(A), the log scale, and the best items with their scores, for one set."""
        interaction, Z = self.interaction, self.interaction.Z[basket].astype(float)
        V = interaction.core @ Z.T
        inside = np.eye(len(basket)) + Z @ V
        W = np.linalg.solve(inside, Z @ interaction.core)
        log_p = self.log_odds[:, basket].sum(axis=1) + np.linalg.slogdet(inside)[1] - self.log_Z
        scale = (log_mass + log_p).max()
        scale = scale if np.isfinite(scale) else np.float64(0)
        weights = np.exp(log_mass + log_p - scale)
        largest = max(0.0, *(_largest_eigenvalue(*pair) for pair in zip(V, W, strict=True)))

        def score(items: Ints) -> Floats:
            rows = interaction.Z[items].astype(float)
            taken = [((rows @ v) * (rows @ w.T)).sum(axis=1) for v, w in zip(V, W, strict=True)]
            left = np.maximum(1 + interaction.diagonal()[:, items] - np.array(taken), 0)
            odds = np.exp(self.log_odds[:, items])
            if len(left) == 1:
                return np.asarray(weights @ odds * left[0])
            return np.asarray(np.einsum("c,ci,ci->i", weights, odds, left))

        def bound(terms: BoundTerms) -> Singles:
            margin = np.float32(1 + SINGLE_ERROR * (len(weights) + N_STEPS))
            with np.errstate(over="ignore"):
                found = np.maximum(weights, TINY).astype(np.float32) @ terms.odds
                found *= terms.diagonal + np.float32(largest) * margin * terms.squares
                return np.asarray(found * margin + TINY)

        of_blocks = bound(self.blocks)
        order = np.argsort(-of_blocks, kind="stable")
        first, rest = np.split(order, [-(-max(MIN_SCORED, SCORED_PER_RESULT * k) // BLOCK_SIZE)])
        items = self.members(first, free)
        x = score(items)
        more = self.members(rest[of_blocks[rest] >= _kth(x, k)], free)
        more = more[bound(self.items.of(more)) >= _kth(x, k)]
        items, x = np.concatenate([items, more]), np.concatenate([x, score(more)])
        wanted = (x > 0) & (x >= _kth(x, k))
        return log_p, scale, items[wanted], x[wanted]


def top_pruned(
    components: Components,
    bounds: Bounds,
    log_mass: Floats,
    sets: Sets,
    k: int,
    candidate: Bools | None,
    inclusion: bool,
    threads: int | None,
) -> Best:
    """Implement `Components.top` by scoring only items whose bound reaches the best scores."""
    found = []
    for basket in members(sets):
        free = np.ones(sets.n_items, bool) if candidate is None else candidate.copy()
        free[basket] = False
        log_p, scale, items, x = bounds.top(log_mass, basket, k, free)
        found.append((log_p[None], np.array([scale]), items[None], x[None]))
    return ranked(components, log_mass, sets, k, found, inclusion, threads)


def _similar_order(log_odds: Floats) -> Ints:
    """Order items by the component in which they are most popular relative to the others, then by popularity there."""
    log_odds = np.maximum(log_odds, MIN_LOG_ODDS)
    component = np.argmax(log_odds - log_odds.mean(axis=0), axis=0)
    return np.lexsort((-log_odds[component, np.arange(log_odds.shape[1])], component))


def _kth(x: Floats, k: int) -> np.float64:
    """Return the k-th highest value; 0 if there are fewer, inf for k = 0."""
    if not k:
        return np.float64(np.inf)
    return np.float64(np.partition(x, len(x) - k)[len(x) - k] if k <= len(x) else 0)


def _largest_eigenvalue(V: Floats, W: Floats) -> float:
    """Return the largest eigenvalue of the symmetric part of −V W."""
    if not W.size:
        return 0.0
    triangle = np.asarray(np.linalg.qr(np.hstack([V, W.T]), mode="r"))
    small = triangle[:, : len(W)] @ triangle[:, len(W) :].T
    return float(-np.linalg.eigvalsh(small + small.T)[0] / 2)

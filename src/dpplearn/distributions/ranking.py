"""The k best items to add to a set: the three implementations of `Components.top`.

- `top_of_all` scores every item with numpy and keeps the first k.
- `top_compiled` does the same in compiled loops, for dense matrices.
- `top_pruned` skips most items by bounds on their scores, for low-rank interactions and more than 1,000 items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpplearn.arrays import NO_ITEMS, Bools, Floats, Ints, Items
from dpplearn.distributions.compiled import loops
from dpplearn.distributions.components import MAX_NUMBERS, Best, Components, TopQuery, logsumexp, relative
from dpplearn.distributions.interaction import LowRank, Singles
from dpplearn.distributions.minors import Share, over_threads

if TYPE_CHECKING:
    from dpplearn.distributions.scaled import Form

NEXT_COST = 10_000  # nanoseconds per set, about; decides how many threads share the work
MIN_PRUNED_ITEMS = 1000  # below, scoring every item is faster
MIN_SCORED, SCORED_PER_RESULT = 64, 2  # items scored before the bounds of the others are compared with the best of them
MARGIN = np.float32(1.0001)  # more than rounding in single precision takes from a sum over 1,000 components
TINY = np.float32(1e-37)  # more than what underflows
EVERY_ITEM = np.empty(0, bool)  # the mask of candidates that leaves none out


def highest(x: Floats, k: int, candidate: Bools | None = None) -> Ints:
    """Return the k candidates with the largest x > 0 of each row, best first, padded with −1; ties by position."""
    if candidate is not None:
        x = np.where(candidate, x, 0.0)
    found = np.full((len(x), k), -1)
    order = np.argsort(-x, axis=1, kind="stable")[:, :k]
    found[:, : order.shape[1]] = np.where(np.take_along_axis(x, order, axis=1) > 0, order, -1)
    return found


def chosen(x: Floats, items: Ints) -> Floats:
    """Return the entries of x of some items of each row, NaN for items of −1."""
    return np.where(items >= 0, np.take_along_axis(x, np.maximum(items, 0), axis=1), np.nan)


def top_of_all(components: Components, query: TopQuery) -> Best:
    """Implement `Components.top` by scoring every item."""
    s, step, found = len(query.sets), max(MAX_NUMBERS // components.n_items, 1), Best.unfilled(len(query.sets), query.k)
    for start in range(0, s, step):
        rows = np.arange(start, min(start + step, s))
        some = query.sets if step >= s else query.sets.subset(rows)
        log_p, scale, x = components.next(False, query.log_mass, some)
        items = highest(x, query.k, query.candidate)
        found.items[rows], found.log_p[rows] = items, logsumexp(query.log_mass + log_p)
        found.log_x[rows] = scale[:, None] + np.log(chosen(x, items))
    return with_probabilities(components, query, found)


def with_probabilities(components: Components, query: TopQuery, found: Best) -> Best:
    """Fill in log_q and log_y of the items found, if they are wanted."""
    if query.inclusion:
        log_q, scale, y = components.next(True, query.log_mass, query.sets, found.items)
        with np.errstate(divide="ignore"):
            found.log_q[:] = logsumexp(query.log_mass + log_q)
            found.log_y[:] = np.where(found.items >= 0, scale[:, None] + np.log(y), np.nan)
    return found


def top_compiled(
    for_scores: tuple[Floats, ...], for_probabilities: tuple[Floats, ...], query: TopQuery, least: Floats
) -> Best:
    """Implement `Components.top` for L_c = √q_c M_c √q_c, given M, log q, q and −log Z; for K_c with 0."""
    sets, found = query.sets, Best.unfilled(len(query.sets), query.k)
    candidate = EVERY_ITEM if query.candidate is None else query.candidate
    given = (for_scores, for_probabilities, query.log_mass, sets.indices, sets.offsets, candidate, query.inclusion)

    def part(share: Share) -> None:
        rows = share.among(len(sets))
        loops("next_items").top_items(*given, rows.start, rows.stop, least, tuple(found))

    over_threads(part, NEXT_COST * len(sets), query.threads, with_blas=False)
    return found


class Bounds:
    """Upper bounds on scores under components with a low-rank interaction.

    Given a set A, scores are Σ_c w_c o_ci C'_ii with C' the Schur complement of C_A in C = I + Z Ω Zᵀ. This is C with
    Ω − VᵀW in the place of Ω. With λ the largest eigenvalue of the symmetric part of −VᵀW, or 0 if that is negative,
    C'_ii is at most C_ii + λ |z_i|². Bounds are in single precision, rounded up by more than it loses; scores are in
    double precision.
    """

    def __init__(self, odds: Floats, interaction: LowRank) -> None:
        with np.errstate(over="ignore"):
            self.odds = odds.astype(np.float32) + TINY  # (m, n_items)
            # the largest C_ii over the interactions, (n_items,)
            self.diagonal = (1 + interaction.diagonal().max(axis=0)).astype(np.float32)
        self.squares = np.square(interaction.Z).sum(axis=1)  # |z_i|², (n_items,)

    def __call__(self, weights: Floats, V: Floats, W: Floats) -> Singles:
        """Return the bounds of all items, given Ω Z_Aᵀ as the rows of V and (C_A)⁻¹ Z_A Ω, both (g, k, r)."""
        largest = np.float32(max(0.0, *(_largest_eigenvalue(*pair) for pair in zip(V, W, strict=True))))
        with np.errstate(over="ignore"):
            found = (weights.astype(np.float32) + TINY) @ self.odds
            found *= MARGIN * self.diagonal + MARGIN**2 * largest * self.squares
        return np.asarray(found)


def top_pruned(components: Components, form: Form, bounds: Bounds, query: TopQuery) -> Best:
    """Implement `Components.top` by scoring only items whose bound reaches the best scores."""
    found = Best.unfilled(len(query.sets), query.k)
    for row in range(len(query.sets)):
        free = np.ones(components.n_items, bool) if query.candidate is None else query.candidate.copy()
        free[query.sets.positions(row)] = False
        each = _top_of_one(form, bounds, query.log_mass, query.sets.positions(row), query.k, free)
        found.log_p[row], found.items[row], found.log_x[row] = each
    return with_probabilities(components, query, found)


def _top_of_one(
    form: Form, bounds: Bounds, log_mass: Floats, A: Items, k: int, free: Bools
) -> tuple[Floats, Ints, Floats]:
    """Return log Σ_c mass_c P_c(A), and the best items with the logarithms of their x, for one set."""
    interaction = form.interaction
    assert isinstance(interaction, LowRank)
    log_det, V, W = interaction.eliminate(A[None])
    log_joint = (log_mass + form.bias + form.log_q[:, A].sum(axis=1) + log_det[:, 0])[None]
    if not k:
        return logsumexp(log_joint)[0], NO_ITEMS, np.empty(0)
    scale, weights = relative(log_joint)

    def score(items: Ints) -> Floats:
        left = np.maximum(interaction.schur(V, W, items[None]), 0)
        return np.asarray(form.mixed(weights, left, items[None])[0])

    bound = np.where(free, bounds(weights[0], V[:, 0], W[:, 0]), -1)
    n_first = min(max(MIN_SCORED, SCORED_PER_RESULT * k), len(bound))
    first = np.argpartition(-bound, n_first - 1)[:n_first]
    x = np.where(free[first], score(first), 0)
    kth = np.partition(x, len(x) - k)[len(x) - k] if 0 < k <= len(x) else 0.0
    items = np.flatnonzero(bound >= kth)
    x = score(items)
    best = highest(x[None], k)[0]
    return logsumexp(log_joint)[0], np.append(items, -1)[best], scale[0] + np.log(np.append(x, np.nan)[best])


def _largest_eigenvalue(V: Floats, W: Floats) -> float:
    """Return the largest eigenvalue of the symmetric part of −Vᵀ W."""
    if not W.size:
        return 0.0
    triangle = np.asarray(np.linalg.qr(np.hstack([V.T, W.T]), mode="r"))
    small = triangle[:, : len(W)] @ triangle[:, len(W) :].T
    return float(-np.linalg.eigvalsh(small + small.T)[0] / 2)

"""What a mixture says once some items are known to be in, or out. The symmetric parts stay at least I all along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.errors import InputError
from dpplearn.kernels.compiling import loops, worth_loading
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.passes import Share, over_threads
from dpplearn.kernels.ranking import BestOfMany, best_of

BEST = 10_000  # nanoseconds that the best next items of a basket take, about
IMPOSSIBLE = "the items of the basket together are so unlikely under this model that no number is left; leave one out"


def conditioned(kernel: MixtureKernel, include: Ints, exclude: Ints) -> tuple[MixtureKernel, Ints]:
    """The law of the remaining items given that Y holds all of `include` and none of `exclude`; and which remain.

    det (L_c)_{A ∪ R} = exp(log_odds_c · x_A) det C_A · det (D_c C' D_c)_R with C' the Schur complement of C on what
    remains: segments that share a C share C'. Their weights become π_c exp(log_odds_c · x_A) det C_A Z'_c / Z_c.
    """
    remaining = np.setdiff1d(np.arange(kernel.n_items), np.concatenate([include, exclude]))
    left = kernel.interaction[:, remaining[:, None], remaining]
    log_weights = kernel.log_weights - kernel.log_normalisers + kernel.log_odds[:, include].sum(axis=1)
    if len(include):
        inside = kernel.interaction[:, include[:, None], include]
        solved = np.linalg.solve(inside, kernel.interaction[:, include[:, None], remaining])
        left = left - kernel.interaction[:, remaining[:, None], include] @ solved
        log_weights = log_weights + np.linalg.slogdet(inside)[1]
    log_odds = kernel.log_odds[:, remaining]
    even = MixtureKernel(np.full(kernel.n_segments, 1 / kernel.n_segments), log_odds, left)
    log_weights = log_weights + even.log_normalisers
    return MixtureKernel(_shares(log_weights), log_odds, left), remaining


def restricted(kernel: MixtureKernel, items: Ints) -> MixtureKernel:
    """The law of Y ∩ S: L'_c = L_S − L_SR (I + L_R)⁻¹ L_RS with R the other items, D_S C'_c D_S with a C' of its own
    for every segment."""
    others = np.setdiff1d(np.arange(kernel.n_items), items)
    log_odds = kernel.log_odds[:, items]
    interaction = np.empty((kernel.n_segments, len(items), len(items)))
    for c in range(kernel.n_segments):
        L, d = kernel.L(c), np.exp(log_odds[c] / 2)
        solved = np.linalg.solve(L[np.ix_(others, others)] + np.eye(len(others)), L[np.ix_(others, items)])
        interaction[c] = (L[np.ix_(items, items)] - L[np.ix_(items, others)] @ solved) / np.outer(d, d)
    return MixtureKernel(kernel.weights, log_odds, interaction)


def inclusion_probability(kernel: MixtureKernel, items: Ints) -> float:
    """P(A ⊆ Y) = Σ_c π_c det (K_c)_A."""
    return float(kernel.weights @ np.linalg.det(kernel.K[:, items[:, None], items]))


def next_item(kernel: MixtureKernel, basket: Ints) -> tuple[Floats, Floats]:
    """For every item i the score P(A ∪ i)/P(A) and the probability P(i ∈ Y given A ⊆ Y); zero for those of A.

    The score is (C_ii − C_iA C_A⁻¹ C_Ai) Σ_c ρ_c exp(log_odds_ci), ρ_c how likely segment c is given Y = A; the
    probability Σ_c ρ'_c (K_ii − K_iA K_A⁻¹ K_Ai)_c, ρ'_c how likely it is given A ⊆ Y.
    """
    if not worth_loading():
        return _next_item_by_numpy(kernel, basket)
    score, probability = np.empty(kernel.n_items), np.empty(kernel.n_items)
    given = (kernel.interaction, kernel.K, kernel.log_odds, kernel.log_weights, kernel.log_normalisers)
    members = np.asarray(basket, dtype=np.int64)
    if not loops("nonsymmetric", "next_item").next_item(*given, members, score, probability):
        raise InputError(IMPOSSIBLE)
    return score, probability


def _next_item_by_numpy(kernel: MixtureKernel, basket: Ints) -> tuple[Floats, Floats]:
    left, logdet = _complement(kernel.interaction, basket)
    alone = _shares(kernel.log_weights - kernel.log_normalisers + kernel.log_odds[:, basket].sum(axis=1) + logdet)
    inside, logdet = _complement(kernel.K, basket)
    if not np.isfinite(kernel.log_weights + logdet).any():
        raise InputError(IMPOSSIBLE)
    likely = _shares(kernel.log_weights + logdet)
    score, probability = alone @ (kernel.odds * left), np.clip(likely[likely > 0] @ inside[likely > 0], 0, 1)
    score[basket] = probability[basket] = 0
    return score, probability


def _complement(matrices: Floats, basket: Ints) -> tuple[Floats, Floats]:
    """M_ii − M_iA M_A⁻¹ M_Ai of every matrix and item i, and log det M_A; −inf where that is not above 0."""
    inside = matrices[:, basket[:, None], basket]
    sign, logdet = np.linalg.slogdet(inside)
    possible = sign > 0
    left = np.diagonal(matrices, axis1=1, axis2=2).copy()
    solved = np.linalg.solve(inside[possible], matrices[possible][:, basket])
    left[possible] -= (matrices[possible][:, :, basket].transpose(0, 2, 1) * solved).sum(axis=1)
    return left, np.where(possible, logdet, -np.inf)


def best_next(
    kernel: MixtureKernel,
    indices: npt.NDArray[np.integer[Any]],
    offsets: Ints,
    k: int,
    candidate: Bools | None,
    threads: int | None = None,
) -> BestOfMany:
    """The k items of the highest score beside every basket; of no others the probability, which is most of the work.
    Baskets lie one behind the other in `indices`."""
    n_baskets = len(offsets) - 1
    found = BestOfMany.nothing(n_baskets, k)
    if n_baskets == 1 and not worth_loading():
        basket = np.asarray(indices, np.int64)
        found.put(0, best_of(*_next_item_by_numpy(kernel, basket), basket, k, candidate))
        return found
    given = (kernel.interaction, kernel.K, kernel.log_odds, kernel.odds, kernel.log_weights, kernel.log_normalisers)
    sets = (np.ascontiguousarray(indices, np.int64), np.asarray(offsets, np.int64))
    free = np.ones(kernel.n_items, bool) if candidate is None else np.asarray(candidate, bool)
    compiled = loops("nonsymmetric", "best_next")

    def part(share: Share) -> None:
        rows = share.among(n_baskets)
        compiled.best_next(*given, *sets, rows.start, rows.stop, free, *found)

    over_threads(part, BEST * n_baskets, threads, with_blas=False)
    return found


def next_of(kernel: MixtureKernel, item: int, baskets: Sequence[Ints]) -> tuple[Floats, Floats]:
    """The same of one item, beside each of some baskets that do not hold it: no other item is looked at."""
    given = (kernel.interaction, kernel.K, kernel.log_odds, kernel.log_weights, kernel.log_normalisers)
    if not worth_loading():
        each = [_next_item_by_numpy(kernel, np.asarray(basket, np.int64)) for basket in baskets]
        return np.array([score[item] for score, _ in each]), np.array([probability[item] for _, probability in each])
    members = np.concatenate([np.append(basket, item) for basket in baskets]).astype(np.int64)
    offsets = np.cumsum([0, *(len(basket) + 1 for basket in baskets)])
    score, probability = np.empty(len(baskets)), np.empty(len(baskets))
    loops("nonsymmetric", "next_item").next_of(*given, members, offsets, score, probability)
    if np.isnan(probability).any():
        raise InputError(IMPOSSIBLE)
    return score, probability


def segment_probabilities(kernel: MixtureKernel, basket: Ints) -> Floats:
    """How likely each segment is given that Y holds all of the basket."""
    with np.errstate(divide="ignore"):
        return _shares(kernel.log_weights + np.linalg.slogdet(kernel.K[:, basket[:, None], basket])[1])


def _shares(log_weights: Floats) -> Floats:
    p = np.exp(log_weights - log_weights.max())
    return np.asarray(p / p.sum())

"""fit_slates: how strongly to diversify the lists of a recommender, learned from slates and what was chosen of them.

The chosen items of a slate are a draw from a DPP over its candidates,

    L = D S D,   D² = exp(intercept + slope · score),   S = (1 − α) I + α exp(−(1 − s)/ρ²),

with α the strength and ρ the reach of repulsion, and s the similarity of candidates.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpplearn.arrays import Bools, Floats, central_differences, row_slices
from dpplearn.data.similarity import read_similarity
from dpplearn.data.slates import Slates, read_slates
from dpplearn.errors import InputError, InputWarning
from dpplearn.learners.standard_errors import standard_errors
from dpplearn.models.model import SetModel
from dpplearn.models.reranking import PARAMETERS, Interaction, SlateNumber, SlatesFit, of_matrix, similarities_among

BATCH_SIZE = 4_000_000  # numbers in the matrices of the slates that are computed together
# Strengths and reaches beyond which nothing changes. S is singular at a strength of 1 if candidates are exactly alike.
MAX_STRENGTH, MIN_REACH, MAX_REACH = 1 - 1e-6, 1e-2, 1e2
MAX_ITERATIONS = 500
GRADIENT_TOL = 1e-7  # nats per slate
MIN_SPREAD = 1e-12  # of scores relative to the largest; below, they are all the same
MIN_INFORMATION = 1e-6  # in all slates; below, it is rounding
DIFFERENCE = 1e-4  # of parameters, for the Hessian by differences


def fit_slates(slates: Any, similarity: Any) -> SlatesFit:
    """Learn from slates how strongly to diversify another recommender's lists.

    What was chosen of a slate is modelled as a draw from a DPP over its candidates with four parameters: intercept and
    slope of quality in the score of a candidate, and strength and reach of the repulsion between similar candidates.
    The likelihood is exact.

    Parameters
    ----------
    slates : Slates, table or list of tuples
        A table with the columns slate, item, score and chosen, or a list of (candidates, scores, chosen).
    similarity : DPP, Mixture or similarity
        Similarity of items: a model, whose `rerank` then takes the result, or what `read_similarity` takes.

    Returns
    -------
    SlatesFit
        The four parameters with standard errors, and a test of repulsion.

    Raises
    ------
    InputError
        If nothing is chosen of any slate, or the model lacks a candidate.

    Examples
    --------
    >>> rng, items = np.random.default_rng(0), [f"item {i}" for i in range(8)]
    >>> kinds = {item: f"kind {i // 2}" for i, item in enumerate(items)}
    >>> slates = []
    >>> for _ in range(300):  # of two items of a kind, nobody takes both
    ...     scores = rng.standard_normal(8)
    ...     likes = scores + rng.standard_normal(8) > 0.5
    ...     chosen = [items[i] for i in range(8) if likes[i] and not (i % 2 and likes[i - 1])]
    ...     slates.append((items, scores, chosen))
    >>> found = fit_slates(slates, kinds)
    >>> found.shown, found.strength.value > 0.9
    (True, True)
    >>> found.rerank(["item 0", "item 1", "item 2"], [1.0, 0.9, 0.2], k=2)
    ['item 0', 'item 2']
    """
    from scipy.stats import chi2

    read = read_slates(slates)
    if not read.chosen.any():
        raise InputError("nothing is chosen of any slate; check the column chosen")
    base, own, places = _interaction(similarity, read)
    # Standardised scores; first divided by the largest, whose square may be too large for a number.
    unit = float(np.abs(read.scores).max()) or 1.0
    known = read.scores[read.there] / unit
    centre, spread = unit * float(known.mean()), float(known.std())
    scale = unit * spread if spread > MIN_SPREAD else 1.0
    problem = SlatesProblem((read.scores - centre) / scale, read.chosen, read.there, similarities_among(base, places))
    share = float(np.clip(read.chosen[read.there].mean(), 1e-6, 1 - 1e-6))
    # Without repulsion this is a logistic regression of what is chosen on the scores.
    without, _ = _maximise(problem, np.array([np.log(share / (1 - share)), 0.0, 0.0, 1.0]), repulsion=False)
    distance = float(np.median(1 - problem.alike[read.there]))  # so that the reach covers half of the pairs well
    start = np.array([*without[:2], 0.5, max(distance, 1e-2) ** 0.5])
    best, converged = _maximise(problem, start, repulsion=True)
    # Where scores determine all choices, a steeper slope is always better: compare at equal slopes.
    ratio = best[1] / without[1] if without[1] else 1.0
    without = max(without, without * [ratio, ratio, 1, 1], key=problem.log_likelihood)
    best = max(best, without, key=problem.log_likelihood)
    if not converged:
        warnings.warn("the fit of the slates did not converge; the best parameters found are returned", InputWarning, 2)
    value, baseline = problem.log_likelihood(best), problem.log_likelihood(without)
    J = np.diag([1.0, 1 / scale, 1.0, 1.0])  # to the parameters for scores in their own unit
    J[0, 1] = -centre / scale
    H = central_differences(lambda x: problem.with_gradient(x)[1], best, np.full(4, DIFFERENCE))
    errors = standard_errors(-H * len(read), MIN_INFORMATION, J)
    if not DIFFERENCE < best[2] < 1 - DIFFERENCE:
        errors[2] = np.nan
    pairs = map(SlateNumber, (J @ best).tolist(), errors.tolist())
    numbers: dict[str, Any] = dict(zip(PARAMETERS, pairs, strict=True))
    return SlatesFit(
        **numbers,
        log_likelihood=value,
        independent_log_likelihood=baseline,
        p=float(chi2.sf(2 * len(read) * max(value - baseline, 0.0), 2)),  # likelihood-ratio test of two parameters
        n_slates=len(read),
        n_chosen=int(read.chosen.sum()),
        converged=converged,
        catalogue=read.catalogue,
        similarity=own,
    )


@dataclass(frozen=True, eq=False)
class SlatesProblem:
    """The mean log-likelihood of the choices, log det L_Y − log det(I + L) over the candidates of each slate."""

    scores: Floats  # (n_slates, n)
    chosen: Bools  # (n_slates, n)
    there: Bools  # (n_slates, n)
    alike: Floats  # (n_slates, n, n)

    def log_likelihood(self, x: Floats) -> float:
        return self.with_gradient(x)[0]

    def with_gradient(self, x: Floats) -> tuple[float, Floats]:
        """Return the mean log-likelihood and its gradient; x has intercept, slope, strength and reach."""
        n_slates, n = self.scores.shape
        parts = [self._part(x, rows) for rows in row_slices(n_slates, n * n, BATCH_SIZE)]
        values, gradients = zip(*parts, strict=True)
        return sum(values) / n_slates, np.sum(gradients, axis=0) / n_slates

    def _part(self, x: Floats, rows: slice) -> tuple[float, Floats]:
        """Return the sums over some slates.

        ∂ log det L_Y = tr(L_Y⁻¹ ∂L_Y) and ∂ log det(I + L) = tr((I + L)⁻¹ ∂L). Candidates that are not there have
        L = 0, and the identity is outside Y. I + L = E M E with E = max(1, D), so that M is finite.
        """
        scores, Y, there, alike = self.scores[rows], self.chosen[rows], self.there[rows], self.alike[rows]
        intercept, slope, strength, reach = x.tolist()
        one = np.eye(scores.shape[1])
        closeness = np.exp((alike - 1) / reach**2) * (1 - one)
        quality = np.where(there, intercept + slope * scores, -np.inf)
        log_E2 = np.maximum(quality, 0)
        d = np.exp(np.minimum(quality, 0) / 2)  # D over E
        both = d[:, :, None] * d[:, None, :]
        S = one + strength * closeness
        inside = Y[:, :, None] & Y[:, None, :]
        S_Y, M = np.where(inside, S, one), both * S + one * np.exp(-log_E2)[:, :, None]
        value = np.linalg.slogdet(S_Y)[1].sum() - np.linalg.slogdet(M)[1].sum() + quality[Y].sum() - log_E2.sum()
        inverse = np.linalg.inv(M)
        outside = np.diagonal(inverse, axis1=1, axis2=2) * np.exp(-log_E2)  # diagonal of (I + L)⁻¹
        by_quality = np.where(there, Y - (1 - outside), 0)
        by_S = (np.where(inside, np.linalg.inv(S_Y), 0) - both * inverse) * closeness
        by_reach = strength * (by_S * 2 * (1 - alike)).sum() / reach**3
        return float(value), np.array([by_quality.sum(), (by_quality * scores).sum(), by_S.sum(), by_reach])


def _interaction(similarity: Any, slates: Slates) -> tuple[Interaction, Interaction | None, Any]:
    """Return the interaction, the same if it is not that of a model, and the positions of the candidates in it."""
    if isinstance(similarity, SetModel):
        here = similarity.catalogue.translation(slates.catalogue)[slates.items]
        unknown = slates.items[slates.there & (here < 0)]
        if len(unknown):
            raise InputError(similarity.catalogue.unknown(slates.catalogue.labels[unknown[0]]))
        return similarity.distribution.similarity, None, np.where(slates.there, here, 0)
    S = read_similarity(similarity, slates.catalogue)
    own = of_matrix(S)
    return own, own, slates.items


def _maximise(problem: SlatesProblem, start: Floats, *, repulsion: bool) -> tuple[Floats, bool]:
    """Return the maximum and whether the search converged. Without repulsion, strength and reach stay as they are."""
    from scipy.optimize import minimize

    def negative(x: Floats) -> tuple[float, Floats]:
        value, gradient = problem.with_gradient(x)
        return -value, -gradient

    of_repulsion = [(0.0, MAX_STRENGTH), (MIN_REACH, MAX_REACH)] if repulsion else [(each, each) for each in start[2:]]
    bounds = [(None, None), (None, None), *of_repulsion]
    options: Any = {"maxiter": MAX_ITERATIONS, "gtol": GRADIENT_TOL, "ftol": 1e-13}
    end = minimize(negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return end.x, bool(end.success)

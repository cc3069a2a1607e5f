"""fit_slates: how strongly to diversify, from slates and what was chosen of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.similarity import read_similarity
from dpplearn.data.slates import Slates, read_slates
from dpplearn.errors import InputError, InputWarning
from dpplearn.kernels.interaction import DenseInteraction, Interaction, likeness_among
from dpplearn.learners.slates import NUMBERS, Choice, SlatesProblem
from dpplearn.models.model import SetModel
from dpplearn.models.slates import SlateNumber, SlatesFit

MOST_ITERATIONS = 200
TOLERANCE = 1e-6  # of the gradient, in nats per slate and standard error of the free numbers, about
LEAST = 1e-6  # information in all slates that is none but rounding
EDGE = 1e-4  # strengths nearer to 0 or 1 have no error that the curvature tells
WEAKEST = 1e-6  # strength, at which there is no repulsion


def fit_slates(slates: Any, similarity: Any) -> SlatesFit:
    """Learn from slates how strongly to diversify another recommender's lists.

    What was chosen of a slate is taken as a set drawn from a DPP over its candidates, of four numbers: how the quality
    of a candidate grows with its score (intercept and slope), and how strongly candidates that are alike repel each
    other, and how far that reaches. The likelihood is exact.

    Parameters
    ----------
    slates
        `Slates`, or what `read_slates` takes: a table with the columns slate, item, score and chosen, or a list of
        (candidates, scores, chosen).
    similarity
        How alike items are: a DPP or Mixture, for whose `rerank` the result then is; or what `read_similarity` takes.

    Returns
    -------
    SlatesFit
        The four numbers with standard errors, and whether repulsion is shown. Printed, it is a summary.

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
    read = read_slates(slates)
    if not read.chosen.any():
        raise InputError("nothing is chosen of any slate, so that nothing can be learned; look at the column chosen")
    base, own, places = _base(similarity, read)
    alike = likeness_among(base, places)
    middle, spread = _middle_and_spread(read.scores[read.there])
    problem = SlatesProblem((read.scores - middle) / spread, read.chosen, read.there, alike)
    alone = _scores_alone(problem)
    best, evaluations, converged = _climb(problem, _start(problem, alone))
    value, without = problem.log_likelihood(best), problem.log_likelihood(alone)
    steeper = _as_steep(alone, best)
    if problem.log_likelihood(steeper) > without:
        alone, without = steeper, problem.log_likelihood(steeper)
    if value < without:
        best, value = alone, without
    return _result(read, problem, best, (middle, spread), value, without, (evaluations, converged), own)


def _base(similarity: Any, slates: Slates) -> tuple[Interaction, DenseInteraction | None, Any]:
    """How items act on each other, whether that is the slates' own, and where their candidates stand in it."""
    if isinstance(similarity, SetModel):
        here = similarity.catalogue.translation(slates.catalogue)[slates.items]
        unknown = slates.items[slates.there & (here < 0)]
        if len(unknown):
            raise InputError(similarity.catalogue.unknown(slates.catalogue.labels[unknown[0]]))
        return similarity.law.interaction(), None, np.where(slates.there, here, 0)
    S = read_similarity(similarity, slates.catalogue)
    own = DenseInteraction(np.ones(1), S[None])
    return own, own, slates.items


def _middle_and_spread(scores: Floats) -> tuple[float, float]:
    """The mean and the standard deviation, of numbers of any unit; 1 where all are the same."""
    unit = float(np.abs(scores).max(initial=0.0)) or 1.0
    middle, spread = float((scores / unit).mean()), float((scores / unit).std())
    return unit * middle, unit * spread if spread > 1e-12 else 1.0


def _scores_alone(problem: SlatesProblem) -> Choice:
    """Without repulsion: a logistic regression of what is chosen on the scores, by Newton's method."""
    x, y = problem.scores[problem.there], problem.chosen[problem.there].astype(float)
    X = np.column_stack([np.ones_like(x), x])
    mean = np.clip(y.mean(), 1e-6, 1 - 1e-6)
    beta = np.array([np.log(mean / (1 - mean)), 0.0])
    for _ in range(50):
        p = np.exp(-np.logaddexp(0, -X @ beta))
        H = X.T @ ((p * (1 - p))[:, None] * X) + 1e-9 * np.eye(2)
        step = np.linalg.solve(H, X.T @ (y - p))
        beta = beta + step * min(1.0, 4.0 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-10:
            break
    return Choice(float(beta[0]), float(beta[1]), WEAKEST, 1.0)


def _as_steep(alone: Choice, best: Choice) -> Choice:
    """Without repulsion, but as steep as with it: where scores tell all that is chosen, steeper is always better."""
    times = best.slope / alone.slope if alone.slope else 1.0
    return alone._replace(intercept=times * alone.intercept, slope=times * alone.slope)


def _start(problem: SlatesProblem, alone: Choice) -> Choice:
    """Half of the strength, and the reach at which half of the pairs are well within it."""
    pairs = problem.there[:, :, None] & problem.there[:, None, :] & ~np.eye(problem.scores.shape[1], dtype=bool)
    apart = float(np.median(1 - problem.alike[pairs])) if pairs.any() else 1.0
    return alone._replace(strength=0.5, reach=max(apart, 1e-2) ** 0.5)


def _climb(problem: SlatesProblem, start: Choice) -> tuple[Choice, int, bool]:
    from scipy.optimize import minimize

    n_chosen = max(float(problem.chosen.sum()), 1.0) / len(problem.scores)
    scale = np.sqrt(np.array([n_chosen, n_chosen, n_chosen / 10, n_chosen / 10]))

    def down(y: Floats) -> tuple[float, Floats]:
        value, gradient = problem.with_gradient(Choice.of(y / scale))
        return -value, -gradient / scale

    options: Any = {"maxiter": MOST_ITERATIONS, "gtol": TOLERANCE, "ftol": 1e-12}
    end = minimize(down, start.free * scale, jac=True, method="L-BFGS-B", options=options)
    return Choice.of(end.x / scale), int(end.nfev), bool(end.success)


def _result(
    slates: Slates,
    problem: SlatesProblem,
    best: Choice,
    scaled: tuple[float, float],
    value: float,
    without: float,
    effort: tuple[int, bool],
    own: DenseInteraction | None,
) -> SlatesFit:
    from scipy.stats import chi2

    n = len(slates)
    p = float(chi2.sf(2 * n * max(value - without, 0.0), 2))
    errors = _standard_errors(problem, best, scaled)
    middle, spread = scaled
    slope = best.slope / spread
    values = (best.intercept - slope * middle, slope, best.strength, best.reach)
    numbers = {
        name: SlateNumber(float(each), float(error)) for name, each, error in zip(NUMBERS, values, errors, strict=True)
    }
    found = SlatesFit(
        **numbers,
        log_likelihood=value,
        independent_log_likelihood=without,
        p=p,
        n_slates=n,
        n_chosen=int(slates.chosen.sum()),
        evaluations=effort[0],
        converged=effort[1],
        catalogue=slates.catalogue,
        similarity=own,
    )
    if not effort[1]:
        warnings.warn(
            "the fit of the slates did not converge; its numbers are the best found", InputWarning, stacklevel=3
        )
    return found


def _standard_errors(problem: SlatesProblem, best: Choice, scaled: tuple[float, float]) -> Floats:
    """Of intercept, slope, strength and reach as they are told, by the curvature at the optimum."""
    middle, spread = scaled
    H = problem.information(best) * len(problem.scores)
    told = np.diag([1.0, 1 / spread, best.strength * (1 - best.strength), best.reach])  # by the free numbers
    told[0, 1] = -middle / spread
    try:
        np.linalg.cholesky(H)
    except np.linalg.LinAlgError:  # at an edge, where some of them are not told
        errors = np.full(4, np.nan)
        known = np.flatnonzero(H.diagonal()[:2] > LEAST)
        inner = told[:2, known] @ np.linalg.pinv(H[np.ix_(known, known)]) @ told[:2, known].T
        errors[known] = np.sqrt(np.maximum(np.diagonal(inner)[known], 0))
        return errors
    errors = np.sqrt(np.diagonal(told @ np.linalg.inv(H) @ told.T))
    return np.where([False, False, not EDGE < best.strength < 1 - EDGE, False], np.nan, errors)

"""fit_quality: the quality of items in a DPP whose similarity is known.

L = D S D with D² = exp(F θ) and S = (1 − τ)(w₀ I + Σ_g w_g S_g) + τ 11ᵀ. For given strengths τ and w, the best weights
θ are found by Newton's method. The strengths maximise the profile likelihood, the likelihood at these best weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Real
from typing import Any

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints, central_differences
from dpplearn.data.features import as_features
from dpplearn.data.parts import AnyBaskets
from dpplearn.data.similarity import read_similarity
from dpplearn.distributions.independent import SMOOTHING
from dpplearn.distributions.spectral import BORDER, SpectralDPP
from dpplearn.distributions.statistics import sums_under_L
from dpplearn.errors import InputError
from dpplearn.learners.checkpoint import Callback
from dpplearn.learners.data import checked_baskets, resolve_nonempty
from dpplearn.learners.loop import Step, Stop, never
from dpplearn.learners.problem import Finished, Learner
from dpplearn.learners.quality.distribution import Optimum, Target, best_weights
from dpplearn.learners.quality.weights import QualityWeights
from dpplearn.learners.result import FitResult
from dpplearn.learners.settings import Settings
from dpplearn.learners.symmetric.problem import SymmetricProblem
from dpplearn.learners.train import fit_task
from dpplearn.models.dpp import DPP

LEARNER = "quality"
UNIFORM, EVIDENCE = "uniform", "evidence"
START = "frequencies"  # what the weights start from
INTERCEPT = "(all items)"

MAX_STRENGTH = 1 - 1e-4  # the remainder, the weight of I, keeps S positive definite
LOW, MEDIUM, HIGH = 0.02, 0.3, 0.6  # strengths to start from
STRENGTH_PENALTY = 1.0  # nats in all baskets together for a strength of 1: towards 0 where the data say nothing
MAX_STEPS, GRADIENT_TOL = 200, 1e-9  # of the search for the strengths
MIN_RIDGE, MAX_RIDGE = 1e-6, 1e8
RIDGE_ROUNDS, RIDGE_TOL = 100, 1e-4  # of the evidence: rounds, and the relative change that ends them
DIFFERENCE = 1e-4  # of strengths, for derivatives by differences
MIN_INFORMATION = 1e-13  # per basket on one weight; below, it is rounding
MIN_EIGENVALUE = 1e-9  # of the information relative to that of single weights
MIN_STRENGTH_CURVATURE = 1e-6  # in a strength
MIN_LOADING = 1e-4  # of a weight on a direction without information, from which on its error is unknown


def fit_quality(
    baskets: AnyBaskets | Iterable[Iterable[Any]],
    *,
    features: Any = None,
    similarity: Any = UNIFORM,
    ridge: float | str = EVIDENCE,
    smooth: bool = True,
    nonempty: bool | str = "auto",
    tol: float = 1e-12,
    max_iter: int = 1000,
    max_seconds: float | None = None,
    threads: int | None = None,
    callback: Callback | Sequence[Callback] | None = None,
) -> FitResult[DPP]:
    """Fit the quality of items, or the weights of item features, where the similarity of items is known.

    The model is the DPP with L = D S D, D² = exp(quality). The log-likelihood is concave in the quality. With features
    the model can be worse than independent items.

    Parameters
    ----------
    baskets : Baskets, Parts or list of lists
        Training sets.
    features : table, optional
        One row per item, as `read_features` takes it. Quality is then a weighted sum of features. By default every item
        has a weight of its own.
    similarity : "uniform", similarity or dict, default "uniform"
        Similarity matrix S. "uniform": the same for all pairs, with a strength that is learned. A similarity as
        `read_similarity` takes it is used as it is. Several by name, in a dict, are blended with learned strengths.
    ridge : "evidence" or float, default "evidence"
        Ridge penalty on the weights of features; "evidence" maximises the marginal likelihood.
    smooth : bool, default True
        Whether, with one weight per item, item counts are smoothed by half a basket with and half a basket without each
        item. Without it, items that never occur have probability zero.
    nonempty : bool or "auto", default "auto"
        Whether the distribution is conditioned on nonempty sets. By default it is if no basket is empty.
    tol : float, default 1e-12
        Stop when a step in the strengths gains less, in nats per basket.
    max_iter : int, default 1000
        Maximum number of iterations.
    max_seconds : float, optional
        Time limit, checked after every iteration.
    threads : int, optional
        Number of threads. By default all cores.
    callback : callable or list of callables, optional
        Called with a `FitProgress` after every iteration. A true return value stops the fit.

    Returns
    -------
    FitResult
        The model, and the weights with standard errors as `quality`.

    Raises
    ------
    InputError
        If a basket is impossible under a given similarity, or an argument is invalid.

    Examples
    --------
    >>> result = fit_quality([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10)
    >>> [each.name for each in result.quality.rows]
    ['bib', 'cot', 'crib']
    """
    settings = Settings(tol=tol, max_iter=max_iter, max_seconds=max_seconds, threads=threads)
    if ridge != EVIDENCE and not (isinstance(ridge, Real) and 0 <= float(ridge) < np.inf):
        raise InputError(f"ridge must be {EVIDENCE!r} or a number, 0 or more, got {ridge!r}")
    given = checked_baskets(baskets)
    encoded = None if features is None else as_features(features, given.catalogue)
    problem = QualityProblem(
        given,
        threads,
        resolve_nonempty(nonempty, given),
        _blend(similarity, given),
        None if encoded is None else np.column_stack([np.ones(given.n_items), encoded.matrix]),
        () if encoded is None else (INTERCEPT, *encoded.names),
        ridge=0.0 if ridge == EVIDENCE else float(ridge),
        by_evidence=ridge == EVIDENCE and encoded is not None,
        smooth=smooth and encoded is None,
        tol=tol,
        notes=() if encoded is None else encoded.notes,
    )
    problem.check_possible()
    learner = Learner(LEARNER, quality, never, at_end=Stop.TOLERANCE)
    return fit_task(settings.task_of(learner, problem, START), callback=callback)


def _blend(similarity: Any, baskets: AnyBaskets) -> Blend:
    """Return one similarity as it is, named ones together with a uniform one, or the uniform one alone."""
    if isinstance(similarity, str) and similarity == UNIFORM:
        return Blend()
    if isinstance(similarity, Mapping):
        if not similarity or UNIFORM in similarity:
            raise InputError(
                f"similarity names {', '.join(map(str, similarity)) or 'nothing'}; expected one or more names other "
                f"than {UNIFORM!r}, which is always included"
            )
        read = tuple(read_similarity(each, baskets.catalogue, str(name)) for name, each in similarity.items())
        return Blend(read, tuple(map(str, similarity)))
    return Blend((read_similarity(similarity, baskets.catalogue),), fixed=True)


@dataclass(frozen=True, eq=False)
class Blend:
    """The similarity matrix as a function of φ, from 0 to 1: the uniform similarity τ, then one φ per similarity.

    The weights are those of a broken stick: w_1 = φ_1, w_2 = (1 − φ_1) φ_2 and so on, and the rest is w₀. So any φ
    gives a similarity, and a strength can be exactly 0. With `fixed`, S is the one similarity given, and φ is empty.

    Examples
    --------
    >>> Blend().matrix(np.array([0.3]), 2).round(2).tolist()
    [[1.0, 0.3], [0.3, 1.0]]
    """

    similarities: tuple[Floats, ...] = ()
    names: tuple[str, ...] = ()
    fixed: bool = False

    @property
    def strength_names(self) -> tuple[str, ...]:
        """Names of the strengths: τ first, then those of the similarities."""
        return () if self.fixed else (UNIFORM, *self.names)

    def starts(self) -> list[Floats]:
        """Return several starts: where no items are alike all derivatives are zero, which is a saddle.

        The first has no similarity. The others have, for each τ, all similarities to a medium extent, or one of them to
        a high and the others to a low extent.
        """
        if self.fixed:
            return [np.zeros(0)]
        n = len(self.similarities)
        mixes = [np.full(n, MEDIUM / max(n, 1)), *(np.where(np.arange(n) == g, HIGH, LOW) for g in range(n))]
        return [np.zeros(1 + n), *(np.array([tau, *mix]) for tau in (LOW, MEDIUM) for mix in mixes)]

    def strengths(self, phi: Floats) -> tuple[Floats, Floats]:
        """Return τ and w, and their Jacobian in φ."""
        left = np.concatenate([[1.0], np.cumprod(1 - phi[1:])])  # of the stick, before each break
        w, jacobian = phi[1:] * left[:-1], np.eye(len(phi))
        for g in range(len(w)):
            jacobian[1 + g, 1 : 1 + g] = -w[g] / (1 - phi[1 : 1 + g])
            jacobian[1 + g, 1 + g] = left[g]
        return np.concatenate([phi[:1], w]), jacobian

    def matrix(self, phi: Floats, n_items: int) -> Floats:
        """Return S."""
        if self.fixed:
            return self.similarities[0]
        (tau, *w), _ = self.strengths(phi)
        S = np.eye(n_items) * (1 - sum(w))
        for weight, each in zip(w, self.similarities, strict=True):
            S += weight * each
        return np.asarray((1 - tau) * S + tau)

    def gradient(self, phi: Floats, G: Floats) -> Floats:
        """Return ⟨G, ∂S/∂φ⟩ for every strength; G covers all items."""
        (tau, *w), jacobian = self.strengths(phi)
        of_unit = float(np.trace(G))
        of_each = np.array([float(np.vdot(G, S)) - of_unit for S in self.similarities])
        of_tau = float(G.sum()) - of_unit - float(np.array(w) @ of_each)
        return np.asarray(np.concatenate([[of_tau], (1 - tau) * of_each]) @ jacobian)


@dataclass(frozen=True, eq=False)
class Profile:
    """The best weights for given strengths, and the gradient of their value in the strengths."""

    phi: Floats
    optimum: Optimum
    value: float  # mean log-likelihood per basket minus penalties
    gradient: Floats


@dataclass(frozen=True, eq=False)
class QualityProblem(SymmetricProblem):
    """Problem of `fit_quality`: learn the weights θ of log-qualities u = F θ, and the strengths φ of similarities.

    With one weight per item, only items that occur are learned; the others have probability zero.
    """

    blend: Blend = Blend()
    features: Floats | None = None  # F, (n_items, n_weights), a constant first; None: one weight per item
    names: tuple[str, ...] = ()  # of the weights of features
    ridge: float = 0.0  # on the weights of features, for all baskets together
    by_evidence: bool = False  # whether the ridge is the one of largest evidence
    smooth: bool = False  # whether the returned weights are those of smoothed frequencies
    tol: float = 1e-12
    notes: tuple[str, ...] = ()  # on the features

    @cached_property
    def number(self) -> float:
        """Number of baskets that the weights stand for."""
        return self.baskets.totals.effective_number

    def items(self, *, smoothed: bool = False) -> Ints:
        """Return the items whose quality is learned."""
        if self.features is None and not smoothed:
            return np.flatnonzero(self.baskets.frequencies() > 0)
        return np.arange(self.baskets.n_items)

    def similarity(self, phi: Floats) -> Floats:
        """Return S over all items."""
        return self.blend.matrix(phi, self.baskets.n_items)

    def target(self, phi: Floats, *, smoothed: bool = False) -> Target:
        """Return the objective of the weights, given the strengths."""
        items, m = self.items(smoothed=smoothed), self.baskets.frequencies()
        m = (m * self.number + SMOOTHING) / (self.number + 2 * SMOOTHING) if smoothed else np.minimum(m, 1 - BORDER)
        m = m[items] / (min(float(m.sum()), 1.0) if self.nonempty else 1.0)  # nonempty sets have at least one item
        F = np.eye(len(items)) if self.features is None else self.features
        penalty = np.full(F.shape[1], 0.0 if self.features is None else self.ridge / self.number)
        penalty[0] = 0  # of the constant
        return Target(self.similarity(phi)[np.ix_(items, items)], m, F, penalty, self.nonempty)

    def profile(self, phi: Floats, theta: Floats | None = None) -> Profile:
        """Return the best weights, found from θ, and the gradient of their value in the strengths.

        By the envelope theorem the derivative in S is Δ_S/n − D (L + I)⁻¹ D/c at the best weights.
        """
        total, items = self.baskets.total_weight, self.items()
        logdet, delta = sums_under_L(self.similarity(phi), self.baskets, self.threads)
        optimum = best_weights(self.target(phi), theta)
        value = optimum.value + logdet / total
        if self.blend.fixed:
            return Profile(phi, optimum, value, np.zeros(0))
        G = np.zeros_like(delta)
        inside = np.ix_(items, items)
        G[inside] = delta[inside] / total - optimum.distribution.by_similarity
        strengths, jacobian = self.blend.strengths(phi)
        penalty = np.array([0.0, *[STRENGTH_PENALTY / self.number] * (len(phi) - 1)])  # none on the uniform similarity
        gradient = self.blend.gradient(phi, G) - penalty @ jacobian
        return Profile(phi, optimum, value - float(penalty @ strengths), gradient)

    def kernel(self, phi: Floats, theta: Floats, *, smoothed: bool = False) -> SpectralDPP:
        """Return L = D S D; items that are not learned are in no set."""
        d = np.zeros(self.baskets.n_items)
        u = theta if self.features is None else self.features @ theta
        d[self.items(smoothed=smoothed)] = np.exp(u / 2)
        return SpectralDPP.from_L(d[:, None] * self.similarity(phi) * d)

    def with_ridge(self, phi: Floats) -> QualityProblem:
        """Return the problem with the ridge ρ of largest evidence, for weights with prior variance 1/ρ. [MacKay92]

        ρ = γ/|θ|² with γ = Σ 1 − ρ [H⁻¹]_jj, the number of weights that the data determine. A given ridge is kept.
        """
        if not self.by_evidence:
            return self
        ridge, theta = 1.0, None
        for _ in range(RIDGE_ROUNDS):
            target = replace(self, ridge=ridge).target(phi)
            best = best_weights(target, theta)
            theta = best.theta
            variance = np.linalg.inv(self.number * target.information(best.distribution)).diagonal()[1:]
            determined = float((1 - ridge * variance).sum())
            before, ridge = ridge, determined / max(float(theta[1:] @ theta[1:]), 1e-12)
            ridge = float(np.clip(ridge, MIN_RIDGE, MAX_RIDGE))
            if abs(ridge / before - 1) < RIDGE_TOL:
                break
        return replace(self, ridge=ridge)

    def baseline(self) -> Any:
        """Promise nothing: with features, independent items can be more likely."""
        return None

    def initial(self, name: str, rng: np.random.Generator) -> Any:
        """Return strengths to start from. The weights need no start: they have one optimum."""
        return self.blend.starts()

    def finished(self, step: Step) -> Finished:
        """Return the best weights at the strengths of the step, with standard errors."""
        problem = self.with_ridge(step.parameters["phi"])
        last = problem.profile(step.parameters["phi"], step.parameters["theta"])
        # The strengths were learned from plain frequencies: smoothing would bias them.
        best = best_weights(problem.target(last.phi, smoothed=True)) if self.smooth else last.optimum
        of_weights, of_strengths = standard_errors(problem, last, best.theta, smoothed=self.smooth)
        of_items = self.features is None
        labels = (str(self.baskets.items[i]) for i in self.items(smoothed=self.smooth))
        weights = QualityWeights(
            tuple(labels) if of_items else self.names,
            best.theta,
            of_weights,
            self.blend.strength_names,
            np.zeros(0) if self.blend.fixed else self.blend.strengths(last.phi)[0],
            of_strengths,
            None if of_items else problem.ridge,
            of_items,
            self.notes,
        )
        return Finished(problem.kernel(last.phi, best.theta, smoothed=self.smooth), quality=weights)

    def check_possible(self) -> None:
        """Raise an error if a given similarity makes some basket impossible."""
        if self.blend.fixed and sums_under_L(self.similarity(np.zeros(0)), self.baskets, self.threads)[0] == -np.inf:
            raise InputError(
                "the similarity makes some basket impossible: it contains items that are exactly alike; give it a "
                "name, similarity={'name': S}, and its strength is learned"
            )


def quality(starts: Sequence[Floats], problem: QualityProblem) -> Iterator[Step]:
    """Yield the best of some starts, and then the steps of L-BFGS-B in the strengths from there."""
    from scipy.optimize import minimize

    problem = problem.with_ridge(starts[0])
    latest = max((problem.profile(phi) for phi in starts), key=lambda profile: profile.value)
    yield _step(problem, latest, 0.0, len(starts))
    path: list[tuple[Profile, int]] = []  # the point after each step, and the evaluations so far
    evaluations = 0

    def negative(phi: Floats) -> tuple[float, Floats]:
        nonlocal latest, evaluations
        latest, evaluations = problem.profile(phi.copy(), latest.optimum.theta), evaluations + 1
        return -latest.value, -latest.gradient

    if len(latest.phi):
        options: Any = {"maxiter": MAX_STEPS, "ftol": problem.tol, "gtol": GRADIENT_TOL}
        bounds = [(0.0, MAX_STRENGTH)] * len(latest.phi)
        # A step of L-BFGS-B ends at the point that it evaluated last.
        minimize(
            negative,
            latest.phi,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options=options,
            callback=lambda _: path.append((latest, evaluations)),
        )
    before = 0
    for profile, so_far in path:
        yield _step(problem, profile, 1.0, so_far - before)
        before = so_far


def _step(problem: QualityProblem, at: Profile, step_size: float, evaluations: int) -> Step:
    kernel, found = partial(problem.kernel, at.phi, at.optimum.theta), {"phi": at.phi, "theta": at.optimum.theta}
    return Step(kernel, at.value, step_size, evaluations, parameters=found)


def standard_errors(
    problem: QualityProblem, end: Profile, theta: Floats, *, smoothed: bool = False
) -> tuple[Floats, Floats]:
    """Return the covariance matrices of the weights and of the strengths: the inverse of the information by blocks.

    NaN for a strength at a bound, for weights that the data do not determine, and for all weights where τ is at its
    upper bound, which then determines their level.

    For the weights that is H⁻¹/n plus (∂θ/∂φ) V (∂θ/∂φ)ᵀ with V = (−∂²profile)⁻¹/n, the variance of the strengths. The
    weights θ may be those of smoothed frequencies; the strengths are not.
    """
    n, phi = problem.number, end.phi
    target = problem.target(phi, smoothed=smoothed)
    of_weights = _inverse(target.information(target.distribution(theta))) / n
    inside = (phi > 0) & (phi < MAX_STRENGTH)
    of_strengths = np.full((len(phi), len(phi)), np.nan)
    if inside.any():
        H, J = _derivatives(problem, end, theta, inside, smoothed=smoothed)
        values, vectors = np.linalg.eigh(-H)
        flat = values <= MIN_STRENGTH_CURVATURE
        V = (vectors[:, ~flat] / (n * values[~flat])) @ vectors[:, ~flat].T
        change = problem.blend.strengths(phi)[1][:, inside]
        of_weights = _unless(J @ vectors[:, flat], of_weights + J @ V @ J.T)
        of_strengths = _unless(change @ vectors[:, flat], change @ V @ change.T)
        of_strengths[~inside] = of_strengths[:, ~inside] = np.nan
    if len(phi) and phi[0] >= MAX_STRENGTH:
        of_weights = np.full_like(of_weights, np.nan)
    return np.asarray(of_weights), of_strengths


def _derivatives(
    problem: QualityProblem, end: Profile, theta: Floats, inside: Bools, *, smoothed: bool
) -> tuple[Floats, Floats]:
    """Return the Hessian of the profile, and ∂θ/∂φ of the best weights, in strengths inside their bounds."""

    def at(strengths: Floats) -> Floats:
        phi = end.phi.copy()
        phi[inside] = strengths
        return phi

    def slope(strengths: Floats) -> Floats:
        return problem.profile(at(strengths), end.optimum.theta).gradient[inside]

    def weights(strengths: Floats) -> Floats:
        return best_weights(problem.target(at(strengths), smoothed=smoothed), theta).theta

    phi = end.phi[inside]
    steps = np.minimum(DIFFERENCE, np.minimum(phi, MAX_STRENGTH - phi))
    H = central_differences(slope, phi, steps)
    return np.asarray((H + H.T) / 2), central_differences(weights, phi, steps).T


def _unless(moved: Floats, covariance: Floats) -> Floats:
    """Return the covariance with NaN for what moves in a direction without information."""
    free = (np.abs(moved) > MIN_LOADING).any(axis=1)
    covariance[free] = covariance[:, free] = np.nan
    return covariance


def _inverse(H: Floats) -> Floats:
    """Return H⁻¹, with NaN for weights that can change together without changing the likelihood."""
    known = H.diagonal() > MIN_INFORMATION
    unit = np.where(known, np.sqrt(np.where(known, H.diagonal(), 1)), 1)
    values, vectors = np.linalg.eigh(H / np.outer(unit, unit) * np.outer(known, known))
    flat = values <= MIN_EIGENVALUE
    inverse = (vectors / np.where(flat, 1, values)) @ np.where(flat[:, None], 0, vectors.T) / np.outer(unit, unit)
    return _unless(vectors[:, flat], np.asarray(inverse))

"""fit_quality: the quality of items in a DPP whose similarity is known.

L = D S D with D² = exp(F θ) and S = (1 − τ)(w₀ I + Σ_g w_g S_g) + τ 11ᵀ. For given strengths τ and w, the best weights
θ are found by Newton's method. The strengths maximise the profile likelihood, the likelihood at these best weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from dpplearn.arrays import Floats, Ints, central_differences
from dpplearn.data.features import Features, as_features
from dpplearn.data.parts import AnyBaskets
from dpplearn.data.similarity import read_similarity
from dpplearn.distributions.independent import SMOOTHING
from dpplearn.distributions.spectral import BORDER, SpectralDPP
from dpplearn.distributions.statistics import sums_under_L
from dpplearn.errors import InputError
from dpplearn.learners.checkpoint import Callbacks
from dpplearn.learners.data import checked_baskets, resolve_nonempty
from dpplearn.learners.fit import fit_task
from dpplearn.learners.loop import Step, Stop, never
from dpplearn.learners.problem import Learner
from dpplearn.learners.quality.distribution import QualityDistribution, Target, best_weights
from dpplearn.learners.quality.weights import QualityWeights
from dpplearn.learners.result import FitResult
from dpplearn.learners.settings import Settings
from dpplearn.learners.standard_errors import standard_errors
from dpplearn.learners.symmetric.problem import SymmetricProblem
from dpplearn.models.dpp import DPP

LEARNER = "quality"
UNIFORM, EVIDENCE = "uniform", "evidence"
START = "frequencies"  # what the weights start from
INTERCEPT = "(all items)"

MAX_STRENGTH = 1 - 1e-4  # the remainder, the weight of I, keeps S positive definite
START_UNIFORM, START_STRENGTH = 0.02, 0.3  # on 13 registries no other start led to a better optimum
STRENGTH_PENALTY = 1.0  # nats in all baskets together for a strength of 1: towards 0 where the data say nothing
MAX_STEPS, GRADIENT_TOL = 200, 1e-9  # of the search for the strengths
MIN_RIDGE, MAX_RIDGE = 1e-6, 1e8
RIDGE_ROUNDS, RIDGE_TOL = 100, 1e-4  # of the evidence: rounds, and the relative change that ends them
DIFFERENCE = 1e-4  # of strengths, for derivatives by differences
ROUNDING = 1e-9  # of the sum of the frequencies
MIN_INFORMATION = 1e-13  # per basket; below, it is rounding


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
    callback: Callbacks = None,
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
    learner = Learner(LEARNER, quality, never, at_end=Stop.TOLERANCE)
    settings.task_of(learner, SymmetricProblem(given, threads), START).check_memory()  # before any matrix is made
    problem = QualityProblem(
        given,
        threads,
        resolve_nonempty(nonempty, given),
        blend=_blend(similarity, given),
        features=None if features is None else as_features(features, given.catalogue),
        ridge=None if ridge == EVIDENCE else float(ridge),
        smooth=smooth,
        tol=tol,
    )
    return fit_task(settings.task_of(learner, problem, START), callback=callback)


def _blend(similarity: Any, baskets: AnyBaskets) -> Blend:
    """Return one similarity as it is, named ones together with a uniform one, or the uniform one alone."""
    n = baskets.n_items
    if isinstance(similarity, str) and similarity == UNIFORM:
        similarity = {}
    if not isinstance(similarity, Mapping):
        return Blend(read_similarity(similarity, baskets.catalogue))
    if UNIFORM in similarity:
        raise InputError(f"similarity must have names other than {UNIFORM!r}, which is always included")
    read = [read_similarity(each, baskets.catalogue, str(name)) for name, each in similarity.items()]
    return Blend(np.eye(n), (np.ones((n, n)), *read), (UNIFORM, *map(str, similarity)))


@dataclass(frozen=True, eq=False)
class Blend:
    """The similarity matrix S = φ_0 S_0 + (1 − φ_0)(φ_1 S_1 + (1 − φ_1)(… S_base)), with strengths φ from 0 to 1.

    So any φ gives a similarity, and a strength can be exactly 0. S_0 = 11ᵀ is the uniform similarity and S_base = I.
    A similarity that is used as it is has no strengths: it is S_base.

    Examples
    --------
    >>> Blend(np.eye(2), (np.ones((2, 2)),), ("uniform",)).matrix(np.array([0.3])).round(2).tolist()
    [[1.0, 0.3], [0.3, 1.0]]
    """

    base: Floats  # (n_items, n_items)
    similarities: tuple[Floats, ...] = ()
    names: tuple[str, ...] = ()

    def strengths(self, phi: Floats) -> Floats:
        """Return τ = φ_0, and the shares w_1 = φ_1, w_2 = (1 − φ_1) φ_2, … of the other similarities in the rest."""
        left = np.cumprod(1 - phi[1:])
        return np.concatenate([phi[:2], phi[2:] * left[:-1]])

    def matrix(self, phi: Floats) -> Floats:
        """Return S."""
        S = self.base
        for share, each in zip(phi[::-1], self.similarities[::-1], strict=True):
            S = share * each + (1 - share) * S
        return S


class Profile(NamedTuple):
    """The best weights for given strengths, and the gradient of their value in the strengths."""

    phi: Floats
    theta: Floats
    value: float  # mean log-likelihood per basket minus penalties
    gradient: Floats


@dataclass(frozen=True, eq=False)
class QualityProblem(SymmetricProblem):
    """Problem of `fit_quality`: learn the weights θ of log-qualities u = F θ, and the strengths φ of similarities.

    With one weight per item, only items that occur are learned; the others have probability zero.
    """

    blend: Blend = field(kw_only=True)
    features: Features | None = None  # None: one weight per item
    ridge: float | None = 0.0  # on the weights of features, for all baskets together; None: that of largest evidence
    smooth: bool = False  # whether the weights of items that are returned are those of smoothed frequencies
    smoothed: bool = False  # whether frequencies are smoothed, and so all items learned
    tol: float = 1e-12

    @cached_property
    def F(self) -> Floats:
        """The features of the items that are learned, a constant first, (n_learned, n_weights)."""
        n = len(self.items)
        return np.eye(n) if self.features is None else np.column_stack([np.ones(n), self.features.matrix])

    @cached_property
    def items(self) -> Ints:
        """The items whose quality is learned."""
        every = self.smoothed or self.features is not None
        return np.arange(self.baskets.n_items) if every else np.flatnonzero(self.baskets.frequencies() > 0)

    def target(self, phi: Floats) -> Target:
        """Return the objective of the weights, given the strengths."""
        m, n = self.baskets.frequencies(), self.baskets.total_weight
        m = (m * n + SMOOTHING) / (n + 2 * SMOOTHING) if self.smoothed else np.minimum(m, 1 - BORDER)
        m = m[self.items] / (min(float(m.sum()), 1.0) if self.nonempty else 1.0)  # nonempty sets have at least one item
        penalty = np.full(self.F.shape[1], 0.0 if self.features is None else (self.ridge or 0.0) / n)
        penalty[:1] = 0  # of the constant
        S = self.blend.matrix(phi)[np.ix_(self.items, self.items)]
        return Target(S, m, self.F, penalty, self.nonempty)

    def profile(self, phi: Floats, theta: Floats | None = None) -> Profile:
        """Return the best weights, found from θ. By the envelope theorem, their own change has no effect."""
        theta, distribution, of_weights = best_weights(self.target(phi), theta)
        value, gradient = self.by_strengths(phi, distribution)
        return Profile(phi, theta, of_weights + value, gradient)

    def by_strengths(self, phi: Floats, distribution: QualityDistribution) -> tuple[float, Floats]:
        """Return what is added to the objective of the weights, and the derivatives of the sum in the strengths.

        The derivative in S is Δ_S/n − D (L + I)⁻¹ D/c. The penalty is on all strengths but that of "uniform".
        """
        n = self.baskets.total_weight
        penalty = STRENGTH_PENALTY / n
        logdet, delta = sums_under_L(self.blend.matrix(phi), self.baskets, self.threads)
        G = delta / n
        G[np.ix_(self.items, self.items)] -= distribution.by_similarity

        def linear(at: Floats) -> float:
            return float(np.vdot(G, self.blend.matrix(at))) - penalty * float(self.blend.strengths(at)[1:].sum())

        value = logdet / n - penalty * float(self.blend.strengths(phi)[1:].sum())
        return value, central_differences(linear, phi, np.ones(len(phi)))  # exact: S and w are linear in every φ

    def kernel(self, phi: Floats, theta: Floats) -> SpectralDPP:
        """Return L = D S D; items that are not learned are in no set."""
        d = np.zeros(self.baskets.n_items)
        d[self.items] = np.exp(self.F @ theta / 2)
        return SpectralDPP.from_L(d[:, None] * self.blend.matrix(phi) * d)

    def with_ridge(self, phi: Floats) -> QualityProblem:
        """Return the problem with the ridge ρ of largest evidence, for weights with prior variance 1/ρ. [MacKay92]

        ρ = γ/|θ|² with γ = Σ 1 − ρ [H⁻¹]_jj, the number of weights that the data determine. A given ridge is kept.
        """
        if self.ridge is not None or self.features is None:
            return self
        ridge, theta = 1.0, None
        for _ in range(RIDGE_ROUNDS):
            target = replace(self, ridge=ridge).target(phi)
            theta, distribution, _ = best_weights(target, theta)
            variance = np.linalg.inv(self.baskets.total_weight * target.information(distribution)).diagonal()[1:]
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
        """Return strengths to start from. Where no items are alike, all derivatives are zero, which is a saddle.

        The weights need no start: they have one optimum.
        """
        return np.where([each == UNIFORM for each in self.blend.names], START_UNIFORM, START_STRENGTH)

    def finished(self, step: Step) -> tuple[SpectralDPP, QualityWeights]:
        """Return the best weights at the strengths of the step, with standard errors."""
        phi = step.parameters["phi"]
        # The strengths were learned from plain frequencies: smoothing would bias them.
        smoothed = self.smooth and self.features is None
        problem = replace(self.with_ridge(phi), smoothed=smoothed)
        theta, _, _ = best_weights(problem.target(phi), None if smoothed else step.parameters["theta"])
        errors, of_strengths = errors_of(problem, phi, theta)
        strengths = (self.blend.names, self.blend.strengths(phi), of_strengths)
        if self.features is None:
            names, ridge = tuple(str(self.baskets.items[i]) for i in problem.items), None
        else:
            names, ridge = (INTERCEPT, *self.features.names), problem.ridge
        weights = QualityWeights(names, theta, errors, *strengths, ridge)
        return problem.kernel(phi, theta), weights


def quality(start: Floats, problem: QualityProblem) -> Iterator[Step]:
    """Yield the start, and then the steps of L-BFGS-B in the strengths from there."""
    from scipy.optimize import minimize

    problem = problem.with_ridge(np.zeros(len(start)))
    seen = [problem.profile(start)]
    if seen[0].value == -np.inf:
        raise InputError(
            "a basket has items that are exactly alike; pass similarity={'name': ...} to learn its strength"
        )
    ends = [0]  # where in `seen` each step ends: at the point that L-BFGS-B evaluated last

    def negative(phi: Floats) -> tuple[float, Floats]:
        seen.append(problem.profile(phi.copy(), seen[-1].theta))
        return -seen[-1].value, -seen[-1].gradient

    def step(at: Profile, step_size: float, evaluations: int) -> Step:
        found = {"phi": at.phi, "theta": at.theta}
        return Step(partial(problem.kernel, **found), at.value, step_size, evaluations, parameters=found)

    yield step(seen[0], 0.0, 1)
    if len(start):
        minimize(
            negative,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, MAX_STRENGTH)] * len(start),
            options={"maxiter": MAX_STEPS, "ftol": problem.tol, "gtol": GRADIENT_TOL},
            callback=lambda _: ends.append(len(seen) - 1),
        )
    for before, end in pairwise(ends):
        yield step(seen[end], 1.0, end - before)


def errors_of(problem: QualityProblem, phi: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """Return the standard errors of the weights and of the strengths, from the information on both together.

    NaN for a strength at a bound, for what the data do not determine, and for all weights if τ is at its upper bound,
    which then determines their level.
    """
    inside, p = (phi > 0) & (phi < MAX_STRENGTH), len(theta)
    target = problem.target(phi)
    H = np.zeros((p + inside.sum(), p + inside.sum()))
    H[:p, :p] = target.information(target.at(theta)[0])
    J = np.eye(p + len(phi), len(H))

    def slopes(strengths: Floats) -> Floats:
        there = phi.copy()
        there[inside] = strengths
        target = problem.target(there)
        distribution, _ = target.at(theta)
        by_strengths = problem.by_strengths(there, distribution)[1]
        return np.concatenate([target.gradient(theta, distribution), by_strengths[inside]])

    if inside.any():
        steps = np.minimum(DIFFERENCE, np.minimum(phi, MAX_STRENGTH - phi))[inside]
        H[p:] = -central_differences(slopes, phi[inside], steps)
        H[:p, p:] = H[p:, :p].T
        J[p:, p:] = central_differences(problem.blend.strengths, phi, np.ones(len(phi)))[inside].T
    n = problem.baskets.total_weight
    errors = standard_errors(n * H, n * MIN_INFORMATION, J)
    errors[p:][~inside] = np.nan
    # Given Y ≠ ∅, sets of one item each become more likely as all weights fall together, without limit.
    if problem.nonempty and problem.baskets.frequencies().sum() <= 1 + ROUNDING:
        errors[:] = np.nan
    if len(phi) and phi[0] >= MAX_STRENGTH:
        errors[:p] = np.nan
    return errors[:p], errors[p:]

"""Learning the strengths of similarities, with the best item quality for each, and standard errors.

S = (1 − τ)(w₀ I + Σ_g w_g S_g) + τ 11ᵀ. The strengths τ and w are found by Newton's method on the profile likelihood,
the likelihood at the best quality for given strengths. The same second derivatives give the standard errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.distributions.independent import SMOOTHING
from dpplearn.distributions.spectral import BORDER, SpectralDPP
from dpplearn.distributions.statistics import sums_under_L
from dpplearn.errors import InputError
from dpplearn.learners.loop import Step
from dpplearn.learners.problem import Finished
from dpplearn.learners.quality.distribution import Design, Optimum, Target, best_weights
from dpplearn.learners.quality.weights import QualityWeights
from dpplearn.learners.symmetric.problem import SymmetricProblem

MAX_STRENGTH = 1 - 1e-4  # the rest of the stick, the weight of I, keeps S definite
LOW, MEDIUM, HIGH = 0.02, 0.3, 0.6  # strengths to start from

STRENGTH_PENALTY = 1.0  # nats in all baskets together for a strength of 1: towards 0 where the data say nothing
MIN_RIDGE, MAX_RIDGE = 1e-6, 1e8
RIDGE_ROUNDS, RIDGE_TOL = 100, 1e-4  # of the evidence: rounds, and the relative change that ends them
DIFFERENCE = 1e-4  # of strengths, for the curvature by differences of gradients
MIN_CURVATURE = 1e-10
MIN_STEP_SIZE = 2.0**-20
MAX_CHANGE = 0.2  # of a strength in a step: a longer one may end at the saddle where no items are alike
MIN_INFORMATION = 1e-13  # per basket on one weight; below, it is rounding
MIN_EIGENVALUE = 1e-9  # of the information relative to that of single weights
MIN_STRENGTH_CURVATURE = 1e-6  # in a strength
MIN_LOADING = 1e-4  # of a weight on a direction without information, from which on its error is unknown


@dataclass(frozen=True, eq=False)
class Blend:
    """Similarities, and whether all items also share a uniform similarity τ.

    The weights are those of a broken stick: w_1 = s_1, w_2 = (1 − s_1) s_2 and so on, and the rest is w₀. So any s and
    τ between 0 and 1 give a similarity, and a strength can be exactly 0. With `fixed`, S is the one similarity given.

    Examples
    --------
    >>> Blend((), uniform=True).matrix(np.array([0.3]), 2).round(2).tolist()
    [[1.0, 0.3], [0.3, 1.0]]
    """

    similarities: tuple[Floats, ...]
    uniform: bool
    fixed: bool = False  # the one similarity is S itself, and there is nothing to learn
    names: tuple[str, ...] = ()

    @property
    def n_strengths(self) -> int:
        return 0 if self.fixed else len(self.similarities) + self.uniform

    @property
    def strength_names(self) -> tuple[str, ...]:
        """Names of the strengths: τ first, then those of the similarities."""
        return () if self.fixed else (*(("uniform",) if self.uniform else ()), *self.names)

    def starts(self) -> list[Floats]:
        """Return several starts: where no items are alike all derivatives are zero, which is a saddle.

        The first has no similarity. The others have, for each τ, all similarities to a medium extent, or one of them to
        a high and the others to a low extent.
        """
        if self.fixed:
            return [np.zeros(0)]
        n = len(self.similarities)
        mixes = [np.full(n, MEDIUM / max(n, 1)), *(np.where(np.arange(n) == g, HIGH, LOW) for g in range(n))]
        taus = ([LOW], [MEDIUM]) if self.uniform else ([],)
        return [np.zeros(self.n_strengths), *(np.array([*tau, *mix]) for tau in taus for mix in mixes)]

    def among(self, items: Ints) -> Blend:
        """Return the blend of some of the items."""
        some = tuple(S[np.ix_(items, items)] for S in self.similarities)
        return Blend(some, self.uniform, self.fixed, self.names)

    def _broken(self, phi: Floats) -> tuple[float, Floats, Floats]:
        """Return τ, w and ∂w_g/∂s_h."""
        tau, s = (float(phi[0]), phi[1:]) if self.uniform else (0.0, phi)
        left = np.concatenate([[1.0], np.cumprod(1 - s)])  # before each break
        w = s * left[:-1]
        slopes = np.diag(left[:-1])
        for g in range(len(s)):
            slopes[g, :g] = -w[g] / (1 - s[:g])
        return tau, w, slopes

    def strengths(self, phi: Floats) -> tuple[Floats, Floats]:
        """Return τ and w, and their Jacobian in φ."""
        tau, w, slopes = self._broken(phi)
        if not self.uniform:
            return w, slopes
        change = np.eye(len(phi))
        change[1:, 1:] = slopes
        return np.concatenate([[tau], w]), change

    def matrix(self, phi: Floats, n_items: int) -> Floats:
        """Return S."""
        if self.fixed:
            return self.similarities[0]
        tau, w, _ = self._broken(phi)
        S = np.eye(n_items) * (1 - w.sum())
        for weight, each in zip(w, self.similarities, strict=True):
            S += weight * each
        return np.asarray((1 - tau) * S + tau)

    def gradient(self, phi: Floats, G: Floats) -> Floats:
        """Return ⟨G, ∂S/∂φ⟩ for every strength."""
        if self.fixed:
            return np.zeros(0)
        tau, w, slopes = self._broken(phi)
        of_unit = float(np.trace(G))
        of_each = np.array([float(np.vdot(G, S)) for S in self.similarities])
        of_weights = (1 - tau) * ((of_each - of_unit) @ slopes) if len(w) else np.zeros(0)
        if not self.uniform:
            return np.asarray(of_weights)
        of_base = (1 - w.sum()) * of_unit + float(w @ of_each)
        return np.concatenate([[float(G.sum()) - of_base], of_weights])


@dataclass(frozen=True, eq=False)
class Profile:
    """The best weights for given strengths, and the gradient of their value in the strengths."""

    phi: Floats
    optimum: Optimum
    value: float  # mean log-likelihood per basket minus penalties
    gradient: Floats


@dataclass(frozen=True, eq=False)
class QualityProblem(SymmetricProblem):
    """The weights θ of u = F θ and the strengths φ of the similarities.

    With one weight per item, only items that occur are learned; the others have probability zero.
    """

    design: Design | None = None  # None: one weight per item
    blend: Blend = Blend((), uniform=True)
    ridge: float = 0.0  # on the weights of features, for all baskets together
    smoothed: bool = False  # whether half a basket with and half a basket without each item are added
    by_evidence: bool = False  # whether the ridge is the one of largest evidence
    smooth: bool = False  # whether the final weights are smoothed
    notes: tuple[str, ...] = ()  # on the features

    @cached_property
    def number(self) -> float:
        """Number of baskets that the weights stand for."""
        return self.baskets.totals.effective_number

    @cached_property
    def whole_design(self) -> Design:
        return self.design or Design.of_items(self.baskets.items)

    @cached_property
    def items(self) -> Ints:
        """Items whose quality is learned."""
        if self.whole_design.free and not self.smoothed:
            return np.flatnonzero(self.baskets.frequencies() > 0)
        return np.arange(self.baskets.n_items)

    @cached_property
    def m(self) -> Floats:
        """Frequencies of these items, below 1."""
        if self.smoothed:
            return np.asarray((self.baskets.frequencies() * self.number + SMOOTHING) / (self.number + 2 * SMOOTHING))
        return np.minimum(self.baskets.frequencies()[self.items], 1 - BORDER)

    def similarity(self, phi: Floats) -> Floats:
        """Return S over all items."""
        return self.blend.matrix(phi, self.baskets.n_items)

    def target(self, phi: Floats) -> Target:
        """Return the objective of the weights, given the strengths."""
        S = self.similarity(phi)[np.ix_(self.items, self.items)]
        m = self.m / min(float(self.m.sum()), 1.0) if self.nonempty else self.m  # nonempty sets have at least one item
        return Target(S, m, self.whole_design.among(self.items), self.nonempty, self.ridge / self.number)

    def profile(self, phi: Floats, theta: Floats | None = None) -> Profile:
        """Return the best weights, found from θ, and the gradient of their value in the strengths.

        By the envelope theorem the derivative in S is Δ_S/n − D (L + I)⁻¹ D/c at the best weights.
        """
        S, total = self.similarity(phi), self.baskets.total_weight
        logdet, delta = sums_under_L(S, self.baskets, self.threads)
        optimum = best_weights(self.target(phi), theta)
        if self.blend.fixed:
            return Profile(phi, optimum, optimum.value + logdet / total, np.zeros(0))
        G = delta[np.ix_(self.items, self.items)] / total - optimum.distribution.by_similarity
        strengths, jacobian = self.blend.strengths(phi)
        named = np.array([name != "uniform" for name in self.blend.strength_names])
        penalty = named * (STRENGTH_PENALTY / self.number)
        gradient = self.blend.among(self.items).gradient(phi, G) - penalty @ jacobian
        return Profile(phi, optimum, optimum.value + logdet / total - float(penalty @ strengths), gradient)

    def kernel(self, phi: Floats, theta: Floats) -> SpectralDPP:
        """Return L = D S D; items that are not learned are in no set."""
        d = np.zeros(self.baskets.n_items)
        d[self.items] = np.exp(self.whole_design.among(self.items).quality(theta) / 2)
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
            theta, shrunk = best.theta, target.design.shrunk
            variance = np.linalg.inv(self.number * target.information(best.distribution)).diagonal()[shrunk]
            determined = float((1 - ridge * variance).sum())
            before, ridge = ridge, determined / max(float(theta[shrunk] @ theta[shrunk]), 1e-12)
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
        # Smoothing before the strengths are learned would bias them.
        final = replace(problem, smoothed=self.smooth)
        best = best_weights(final.target(last.phi)) if final.smoothed else last.optimum
        of_weights, of_strengths = standard_errors(problem, final, last, best.theta)
        blend = self.blend
        weights = QualityWeights(
            final.whole_design.among(final.items).names,
            best.theta,
            of_weights,
            blend.strength_names,
            blend.strengths(last.phi)[0] if len(last.phi) else np.zeros(0),
            of_strengths,
            None if self.design is None else problem.ridge,
            self.design is None,
            self.notes,
        )
        return Finished(final.kernel(last.phi, best.theta), quality=weights)

    def check_possible(self) -> None:
        """Raise an error if a given similarity makes some basket impossible."""
        if self.blend.fixed and sums_under_L(self.similarity(np.zeros(0)), self.baskets, self.threads)[0] == -np.inf:
            raise InputError(
                "the similarity makes some basket impossible: it contains items that are exactly alike; give it a "
                "name, similarity={'name': S}, and its strength is learned"
            )


def quality(starts: Sequence[Floats], problem: QualityProblem) -> Iterator[Step]:
    """Yield steps in the strengths from the best of some starts. The weights need no start: they have one optimum."""
    problem = problem.with_ridge(starts[0])
    now = max((problem.profile(phi) for phi in starts), key=lambda profile: profile.value)
    step_size, evaluations = 0.0, float(len(starts))
    while True:
        found = {"phi": now.phi, "theta": now.optimum.theta}
        kernel = partial(problem.kernel, now.phi, now.optimum.theta)
        yield Step(kernel, now.value, step_size, evaluations, parameters=found)
        now, step_size, evaluations = _next(now, problem)


def _next(now: Profile, problem: QualityProblem) -> tuple[Profile, float, float]:
    """Return the end of a step along the Newton direction, clipped at the bounds and halved until it ascends."""
    free = _free(now)
    if not free.any():
        return now, 0.0, 0.0
    direction = np.zeros(len(now.phi))
    H = curvature(now, problem, free)
    direction[free] = _ascent(H, now.gradient[free])
    direction /= max(1.0, float(np.abs(direction).max()) / MAX_CHANGE)
    tried, t = float(free.sum()), 1.0
    while t >= MIN_STEP_SIZE:
        there = problem.profile(np.clip(now.phi + t * direction, 0, MAX_STRENGTH), now.optimum.theta)
        tried += 1
        if there.value > now.value:
            return there, t, tried
        t /= 2
    return now, 0.0, tried


def _free(now: Profile) -> Bools:
    """Return the strengths that are not at a bound that the gradient points across."""
    return ~(((now.phi <= 0) & (now.gradient <= 0)) | ((now.phi >= MAX_STRENGTH) & (now.gradient >= 0)))


def curvature(now: Profile, problem: QualityProblem, free: Bools, *, central: bool = False) -> Floats:
    """Return the Hessian of the profile in some strengths, by differences of gradients; one-sided at a bound."""
    places = np.flatnonzero(free).tolist()
    rows = []
    for place in places:
        ahead = DIFFERENCE if now.phi[place] + DIFFERENCE <= MAX_STRENGTH else -DIFFERENCE
        one = _moved(now, problem, place, ahead)
        other, apart = now, ahead
        if central and 0 <= now.phi[place] - ahead <= MAX_STRENGTH:
            other, apart = _moved(now, problem, place, -ahead), 2 * ahead
        rows.append((one.gradient - other.gradient)[places] / apart)
    H = np.array(rows).reshape(len(places), len(places))
    return np.asarray((H + H.T) / 2)


def _moved(now: Profile, problem: QualityProblem, place: int, by: float) -> Profile:
    phi = now.phi.copy()
    phi[place] += by
    return problem.profile(phi, now.optimum.theta)


def _ascent(H: Floats, g: Floats) -> Floats:
    """Return −H⁻¹ g, with the eigenvalues of H taken as negative."""
    values, vectors = np.linalg.eigh(H)
    size = np.maximum(np.abs(values), max(MIN_CURVATURE, 1e-6 * float(np.abs(values).max())))
    return np.asarray(vectors @ ((vectors.T @ g) / size))


def standard_errors(
    learned: QualityProblem, final: QualityProblem, end: Profile, theta: Floats
) -> tuple[Floats, Floats]:
    """Return the covariance matrices of the weights and of the strengths: the inverse of the information by blocks.

    NaN for a strength at a bound, for weights that the data do not determine, and for all weights where τ is at its
    upper bound, which then determines their level.

    For the weights that is H⁻¹/n plus (∂θ/∂φ) V (∂θ/∂φ)ᵀ with V = (−∂²profile)⁻¹/n, the variance of the strengths. The
    strengths were `learned` from plain frequencies; the weights θ are `final`, perhaps from smoothed ones.
    """
    n, phi = learned.number, end.phi
    target = final.target(phi)
    of_weights = _inverse(target.information(target.distribution(theta))) / n
    inside = (phi > 0) & (phi < MAX_STRENGTH)
    of_strengths = np.full((len(phi), len(phi)), np.nan)
    if inside.any():
        values, vectors = np.linalg.eigh(-curvature(end, learned, inside, central=True))
        flat = values <= MIN_STRENGTH_CURVATURE
        V = (vectors[:, ~flat] / (n * values[~flat])) @ vectors[:, ~flat].T
        J, change = _moves(final, phi, theta)[:, inside], learned.blend.strengths(phi)[1][:, inside]
        of_weights = _unless(J @ vectors[:, flat], of_weights + J @ V @ J.T)
        of_strengths = _unless(change @ vectors[:, flat], change @ V @ change.T)
        of_strengths[~inside] = of_strengths[:, ~inside] = np.nan
    if learned.blend.uniform and phi[0] >= MAX_STRENGTH:
        of_weights = np.full_like(of_weights, np.nan)
    return np.asarray(of_weights), of_strengths


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


def _moves(problem: QualityProblem, phi: Floats, theta: Floats) -> Floats:
    """Return ∂θ/∂φ of the best weights."""
    columns = []
    for place in range(len(phi)):
        ahead = np.zeros(len(phi))
        ahead[place] = DIFFERENCE if phi[place] + DIFFERENCE <= MAX_STRENGTH else -DIFFERENCE
        columns.append((best_weights(problem.target(phi + ahead), theta).theta - theta) / ahead[place])
    return np.column_stack(columns)

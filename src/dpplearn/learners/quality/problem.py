"""QualityProblem: fitting L = D S D with log D² = F θ, where S is a blend of given similarities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.distributions.independent import SMOOTHING
from dpplearn.distributions.spectral import BORDER, SpectralDPP
from dpplearn.distributions.statistics import sums_under_L
from dpplearn.errors import InputError
from dpplearn.learners.quality.blend import Blend
from dpplearn.learners.quality.target import Design, Optimum, Target, best_weights
from dpplearn.learners.symmetric.problem import SymmetricProblem

STRENGTH_PENALTY = 1.0  # nats in all baskets together for a strength of 1: towards 0 where the data say nothing
MIN_RIDGE, MAX_RIDGE = 1e-6, 1e8
RIDGE_ROUNDS, RIDGE_TOL = 100, 1e-4  # of the evidence: rounds, and the relative change that ends them


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
    blend: Blend = Blend((), uniform=True)  # noqa: RUF009
    ridge: float = 0.0  # on the weights of features, for all baskets together
    smoothed: bool = False  # whether half a basket with and half a basket without each item are added

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
        G = delta[np.ix_(self.items, self.items)] / total - optimum.law.by_similarity
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

    def with_evidence(self, phi: Floats) -> QualityProblem:
        """Return the problem with the ridge ρ of largest evidence, for weights with prior variance 1/ρ. [MacKay92]

        ρ = γ/|θ|² with γ = Σ 1 − ρ [H⁻¹]_jj, the number of weights that the data determine.
        """
        ridge, theta = 1.0, None
        for _ in range(RIDGE_ROUNDS):
            target = replace(self, ridge=ridge).target(phi)
            best = best_weights(target, theta)
            theta, shrunk = best.theta, target.design.shrunk
            variance = np.linalg.inv(self.number * target.information(best.law)).diagonal()[shrunk]
            determined = float((1 - ridge * variance).sum())
            before, ridge = ridge, determined / max(float(theta[shrunk] @ theta[shrunk]), 1e-12)
            ridge = float(np.clip(ridge, MIN_RIDGE, MAX_RIDGE))
            if abs(ridge / before - 1) < RIDGE_TOL:
                break
        return replace(self, ridge=ridge)

    def check_possible(self) -> None:
        """Raise an error if a given similarity makes some basket impossible."""
        if self.blend.fixed and sums_under_L(self.similarity(np.zeros(0)), self.baskets, self.threads)[0] == -np.inf:
            raise InputError(
                "the similarity makes some basket impossible: it contains items that are exactly alike; give it a "
                "name, similarity={'name': S}, and its strength is learned"
            )

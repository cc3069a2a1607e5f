"""QualityProblem: baskets, how quality comes from weights, and what is known of similarity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.parts import AnyBaskets
from dpplearn.errors import InputError
from dpplearn.kernels.symmetric.kernel import BORDER, Kernel
from dpplearn.kernels.symmetric.statistics import sums_under_L
from dpplearn.learners.problem import Problem
from dpplearn.learners.quality.blend import Blend
from dpplearn.learners.quality.design import Design
from dpplearn.learners.quality.newton import Optimum, Target, best_weights

DOUBT = 1.0  # nats that a strength of 1 costs all baskets together: towards 0 where the data say nothing


@dataclass(frozen=True, eq=False)
class Profile:
    """The best weights for given strengths, and the slopes of what they are worth in these."""

    phi: Floats
    optimum: Optimum
    value: float  # the mean log-likelihood per basket, less the ridge and the doubt
    gradient: Floats


@dataclass(frozen=True, eq=False)
class QualityProblem(Problem):
    """What is learned: the weights θ of u = F θ, and the strengths φ of similarities.

    A weight per item is learned of the items that occur; the others are not there, and have probability zero.
    """

    design: Design | None = None  # None: a weight per item
    blend: Blend = Blend((), uniform=True)  # noqa: RUF009
    ridge: float = 0.0  # on the weights of features, in all baskets together

    @cached_property
    def number(self) -> float:
        """How many baskets the weights are worth."""
        return self.baskets.totals.effective_number

    @cached_property
    def items(self) -> Ints:
        """Those whose quality is learned."""
        if self.of_all.free:
            return np.flatnonzero(self.baskets.frequencies() > 0)
        return np.arange(self.baskets.n_items)

    @cached_property
    def of_all(self) -> Design:
        return self.design or Design.of_items(self.baskets.items)

    @cached_property
    def m(self) -> Floats:
        """How often those items occur; none is certain, as none is where learning starts."""
        return np.minimum(self.baskets.frequencies()[self.items], 1 - BORDER)

    def similarity(self, phi: Floats) -> Floats:
        """S, of all items."""
        return self.blend.matrix(phi, self.baskets.n_items)

    def target(self, phi: Floats) -> Target:
        """What the weights are to bring about, given the strengths."""
        S = self.similarity(phi)[np.ix_(self.items, self.items)]
        m = self.m / min(float(self.m.sum()), 1.0) if self.nonempty else self.m  # such sets have one item at least
        return Target(S, m, self.of_all.among(self.items), self.nonempty, self.ridge / self.number)

    def profile(self, phi: Floats, theta: Floats | None = None) -> Profile:
        """By the envelope theorem: ∂/∂S of the whole is ⟨Δ_S/n − D (L + I)⁻¹ D/c, dS⟩, the weights being the best."""
        S, total = self.similarity(phi), self.baskets.total_weight
        logdet, delta = sums_under_L(S, self.baskets, self.threads)
        optimum = best_weights(self.target(phi), theta)
        G = delta[np.ix_(self.items, self.items)] / total - optimum.law.by_similarity
        if self.blend.fixed:
            return Profile(phi, optimum, optimum.value + logdet / total, np.zeros(0))
        strengths, slopes = self.blend.strengths(phi)
        doubted = np.array([name != "uniform" for name in self.blend.strength_names]) * (DOUBT / self.number)
        gradient = self.blend.among(self.items).gradient(phi, G) - doubted @ slopes
        return Profile(phi, optimum, optimum.value + logdet / total - float(doubted @ strengths), gradient)

    def kernel(self, phi: Floats, theta: Floats) -> Kernel:
        """L = D S D; items that are not learned are in no set."""
        d = np.zeros(self.baskets.n_items)
        d[self.items] = np.exp(self.target_quality(theta) / 2)
        return Kernel.from_L(d[:, None] * self.similarity(phi) * d)

    def target_quality(self, theta: Floats) -> Floats:
        """u of the items that are learned."""
        return self.of_all.among(self.items).quality(theta)

    def smoothed(self, phi: Floats, m: Floats) -> tuple[QualityProblem, Optimum]:
        """The weights of all items that these smoothed frequencies give; the strengths stay as they are."""
        whole = _Smoothed(self.baskets, self.threads, self.nonempty, self.design, self.blend, self.ridge, frequencies=m)
        return whole, best_weights(whole.target(phi))

    def with_ridge(self, ridge: float) -> QualityProblem:
        return replace(self, ridge=ridge)


@dataclass(frozen=True, eq=False)
class _Smoothed(QualityProblem):
    """With frequencies of its own, in which every item occurs."""

    frequencies: Floats | None = None

    @cached_property
    def items(self) -> Ints:
        return np.arange(self.baskets.n_items)

    @cached_property
    def m(self) -> Floats:
        assert self.frequencies is not None
        return self.frequencies


def check_possible(problem: QualityProblem, baskets: AnyBaskets) -> None:
    """Refuse a similarity, given as it is to be, under which some basket is impossible."""
    if problem.blend.fixed and sums_under_L(problem.similarity(np.zeros(0)), baskets, problem.threads)[0] == -np.inf:
        raise InputError(
            "the similarity makes some basket impossible, as it holds items that are exactly alike; give it a name, "
            "similarity={'name': S}, and its strength is learned"
        )

"""The default learner: L-BFGS on the factor B of L = B Bᵀ.

Columns are scaled so that eigenvalues near 1 do not slow the search down, and columns whose eigenvalues go to zero are
dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from dpplearn.arrays import EPSILON, Floats
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.spectral import BORDER, SpectralDPP
from dpplearn.learners.lbfgs import Objective, Point, ascend
from dpplearn.learners.loop import Step
from dpplearn.learners.starts import prepared
from dpplearn.learners.symmetric.problem import FactorLikelihood, SymmetricProblem, factor

FIRST_SCALE = 0.5  # times the gradient: the first direction
DROP_EVERY = 20  # steps, after which columns are dropped
SMALL_ODDS = 1e-4  # of an eigenvector that may be dropped
RANK_FACTOR, MIN_RANK = 2, 20  # the rank stays at least twice the size of the largest basket, and at least 20

DropColumns = Callable[[Floats, Floats], tuple[Floats, Floats] | None]


def lbfgs(kernel: SpectralDPP, problem: SymmetricProblem) -> Iterator[Step]:
    """L-BFGS in Z where B = Z diag(1/√(1 − λ)) with the λ of the initial kernel, so that Z Zᵀ begins as K."""
    kernel = initial_kernel(prepared(kernel, problem.baskets), problem)
    B, columns = factor(kernel), column_scale(kernel.eigenvalues)
    min_rank = max(RANK_FACTOR * problem.baskets.totals.largest, MIN_RANK)
    return search(FactorLikelihood(problem), B / columns, columns, partial(without_small_columns, min_rank=min_rank))


def search(
    likelihood: Objective, Z: Floats, columns: Floats, drop_columns: DropColumns = lambda B, gradient: None
) -> Iterator[Step]:
    """Yield steps in Z where B = Z diag(columns): the scale of the columns is the geometry of the search.

    Every 20 steps `drop_columns` may return a smaller Z, which is used unless the likelihood falls.
    """
    objective = scaled(likelihood, columns)
    at = Point(Z, *objective(Z))
    further, number, extra = _ascend(objective, at, columns), 0, 0
    while True:
        yield Step(partial(SpectralDPP.from_factor, at.x, columns), at.value, at.step_size, at.evaluations + extra)
        number, extra = number + 1, 0
        smaller = drop_columns(at.x * columns, at.gradient / columns) if number % DROP_EVERY == 0 else None
        if smaller is not None:
            extra, of_smaller = 1, scaled(likelihood, smaller[1])
            there = Point(smaller[0], *of_smaller(smaller[0]))
            if there.value >= at.value:
                at, columns, objective = there, smaller[1], of_smaller
                further = _ascend(objective, at, columns)
        found = next(further, None)
        if found is None:
            return
        at = found


def scaled(likelihood: Objective, columns: Floats) -> Objective:
    """Return the likelihood as a function of Z."""

    def of_Z(Z: Floats) -> tuple[float, Floats]:
        value, gradient = likelihood(Z * columns)
        gradient *= columns
        return value, gradient

    return of_Z


def _ascend(objective: Objective, at: Point, columns: Floats) -> Iterator[Point]:
    def rounding(at: Point) -> float:
        # a value is known to its own rounding, and to that of L, whose large eigenvalues hide the small ones
        B = at.x * columns
        return EPSILON * (1e3 * max(1, abs(at.value)) + 10 * float(np.vdot(B, B)))

    return ascend(objective, at, lambda gradient: FIRST_SCALE * gradient, rounding)


def initial_kernel(kernel: SpectralDPP, problem: SymmetricProblem) -> SpectralDPP:
    """Return the more likely of the kernel and the kernel with the data's probability of the empty set.

    The latter saves iterations on data without empty baskets, but where items attract each other, its eigenvalue near 1
    leads to a worse optimum.
    """
    if problem.nonempty:  # given Y ≠ ∅, the likelihood does not depend on the probability of the empty set
        return kernel
    return max(with_empty_probability(kernel, problem.baskets), kernel, key=problem.log_likelihood)


def column_scale(lam: Floats) -> Floats:
    """Return 1/√(1 − λ), the odds being r² = λ/(1 − λ): column j of Z then has the length √λ_j."""
    return np.asarray(1 / np.sqrt(np.maximum(1 - lam, BORDER)))


def without_small_columns(B: Floats, gradient: Floats, min_rank: int) -> tuple[Floats, Floats] | None:
    """Return Z and its column scale, rotated to the principal axes of B, without columns that go to zero.

    The best kernels have few eigenvalues above 0. A small one that the gradient reduces further is dropped. The
    `min_rank` largest stay, so that baskets somewhat larger than those of the data are unlikely but not impossible.
    """
    odds, Q = np.linalg.eigh(B.T @ B)
    B = B @ Q
    wanted = (odds > SMALL_ODDS) | ((gradient @ Q * B).sum(axis=0) >= 0)
    wanted[max(len(odds) - min_rank, 0) :] = True
    if wanted.all():
        return None
    columns = column_scale((odds / (1 + odds))[wanted])
    return B[:, wanted] / columns, columns


def with_empty_probability(kernel: SpectralDPP, baskets: AnyBaskets) -> SpectralDPP:
    """Return the kernel with the largest eigenvalue raised, up to 1 − 1e-5, until P(∅) is at most that of the data.

    P(∅) = Π (1 − λ_j). In data without empty baskets an eigenvalue goes to 1, which a search in B is slow to find.
    """
    lam = kernel.eigenvalues.copy()
    largest = int(lam.argmax())
    empty = baskets.totals.empty_weight
    log_others = float(np.log1p(-np.delete(lam, largest)).sum())  # the product itself may underflow
    log_left = math.log(empty / baskets.total_weight) - log_others if empty else -math.inf
    lam[largest] = max(lam[largest], 1 - max(math.exp(min(log_left, 0.0)), BORDER))
    return SpectralDPP(np.minimum(lam, 1 - BORDER), kernel.eigenvectors)

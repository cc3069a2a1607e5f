"""Searches in the factor B of L = B Bᵀ: L-BFGS, the default learner, and Adam. [KB15]

A search in B has no constraints and needs no eigenvectors. For L-BFGS, columns are scaled so that eigenvalues near 1 do
not slow the search down, and columns whose eigenvalues go to zero are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

import numpy as np

from dpplearn.arrays import EPSILON, Floats
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.spectral import BORDER, SpectralDPP
from dpplearn.distributions.statistics import sums_under_L
from dpplearn.learners.lbfgs import Objective, Point, ascend
from dpplearn.learners.loop import Step
from dpplearn.learners.starts import prepared
from dpplearn.learners.symmetric.problem import SymmetricProblem, normaliser

FIRST_SCALE = 0.5  # times the gradient: the first direction
DROP_EVERY = 20  # steps, after which columns are dropped
SMALL_ODDS = 1e-4  # of an eigenvector that may be dropped
RANK_FACTOR, MIN_RANK = 2, 20  # the rank stays at least twice the size of the largest basket, and at least 20

MIN_NONEMPTY = 1e-8  # P(Y ≠ ∅); below, det(I+L) − 1 is rounding
Sums = Callable[[Floats, AnyBaskets, int | None], tuple[float, Floats]]

RATE = 0.05
MEAN_DECAY, SQUARE_DECAY = 0.9, 0.999
TINY = 1e-8


def factor_likelihood(problem: SymmetricProblem, B: Floats, sums: Sums = sums_under_L) -> tuple[float, Floats]:
    """Return the mean log-likelihood of the baskets and its gradient in B, 2 (Delta − (I+L)⁻¹) B.

    The value is −inf where a basket is impossible. Given Y ≠ ∅, P(Y) = det L_Y / (det(I+L) − 1). B has one row per item
    and as many columns as the rank may be. `sums` returns Σ w log det L_Y and Σ w B (L_Y)⁻¹ Bᵀ.
    """
    L: Floats = B @ B.T
    logdet, delta = sums(L, problem.baskets, problem.threads)
    log_normaliser, inverse_times_B = normaliser(B, L)
    if problem.nonempty:  # log(Z − 1), whose derivative is that of log Z over P(Y ≠ ∅)
        nonempty = -math.expm1(-log_normaliser)
        log_normaliser += math.log(nonempty) if nonempty > MIN_NONEMPTY else math.inf
        inverse_times_B /= max(nonempty, MIN_NONEMPTY)
    total = problem.baskets.total_weight
    gradient = delta @ B
    gradient *= 2 / total
    gradient -= 2 * inverse_times_B
    return logdet / total - log_normaliser, gradient


def factor(kernel: SpectralDPP) -> Floats:
    """Return B = V diag(r), for a kernel without eigenvalues at 1."""
    return np.asarray(kernel.eigenvectors * np.sqrt(kernel.odds))


def lbfgs(kernel: SpectralDPP, problem: SymmetricProblem) -> Iterator[Step]:
    """L-BFGS in Z where B = Z diag(1/√(1 − λ)) with the λ of the initial kernel, so that Z Zᵀ begins as K."""
    kernel = initial_kernel(prepared(kernel, problem.baskets), problem)
    min_rank = max(RANK_FACTOR * problem.baskets.totals.largest, MIN_RANK)
    likelihood, columns = partial(factor_likelihood, problem), column_scale(kernel.eigenvalues)
    return search(likelihood, factor(kernel) / columns, columns, min_rank)


def search(likelihood: Objective, Z: Floats, columns: Floats, min_rank: int) -> Iterator[Step]:
    """Yield steps in Z where B = Z diag(columns): the scale of the columns is the geometry of the search.

    Every 20 steps, columns that go to zero are dropped unless the likelihood falls, but for `min_rank`.
    """
    at, further = _ascent(likelihood, Z, columns)
    extra = 0
    for number in count(1):
        yield Step(partial(SpectralDPP.from_factor, at.x, columns), at.value, at.step_size, at.evaluations + extra)
        smaller, extra = None, 0
        if number % DROP_EVERY == 0:
            smaller = without_small_columns(at.x * columns, at.gradient / columns, min_rank)
        if smaller is not None:
            extra = 1
            there, from_there = _ascent(likelihood, *smaller)
            if there.value >= at.value:
                further, columns = from_there, smaller[1]
        found = next(further, None)
        if found is None:
            return
        at = found


def _ascent(likelihood: Objective, Z: Floats, columns: Floats) -> tuple[Point, Iterator[Point]]:
    """Return the point Z, and the points of a search that begins there."""

    def objective(Z: Floats) -> tuple[float, Floats]:
        value, gradient = likelihood(Z * columns)
        gradient *= columns
        return value, gradient

    def rounding(at: Point) -> float:
        # a value is known to its own rounding, and to that of L, whose large eigenvalues hide the small ones
        B = at.x * columns
        return EPSILON * (1e3 * max(1, abs(at.value)) + 10 * float(np.vdot(B, B)))

    at = Point(Z, *objective(Z))
    return at, ascend(objective, at, lambda gradient: FIRST_SCALE * gradient, rounding)


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


def adam(kernel: SpectralDPP, problem: SymmetricProblem) -> Iterator[Step]:
    """Yield the best point so far after every step, because steps of a fixed rate do not always ascend."""
    B = best = factor(prepared(kernel, problem.baskets))
    mean, square, step, highest = np.zeros_like(B), np.zeros_like(B), 0, -np.inf
    while True:
        value, gradient = factor_likelihood(problem, B)
        if value > highest:
            highest, best = value, B
        yield Step(partial(SpectralDPP.from_factor, best), highest, RATE if step else 0.0, 1)
        step += 1
        mean = MEAN_DECAY * mean + (1 - MEAN_DECAY) * gradient
        square = SQUARE_DECAY * square + (1 - SQUARE_DECAY) * gradient**2
        unbiased = np.sqrt(square / (1 - SQUARE_DECAY**step)) + TINY
        B = B + RATE * mean / (1 - MEAN_DECAY**step) / unbiased

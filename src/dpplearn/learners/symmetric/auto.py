"""The learner that `fit` uses unless told otherwise: the one that reached the best kernels soonest in our benchmark.

L-BFGS on the factor, from a start that already gives the empty set the data's share; with columns scaled so that the
eigenvalues near 1 that this needs do not spoil the geometry; and with ever fewer columns as eigenvalues go to zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.parts import AnyBaskets
from dpplearn.kernels.symmetric.kernel import BORDER, Kernel
from dpplearn.learners.loop import NO_MEMORY, Memory, Step
from dpplearn.learners.problem import Problem
from dpplearn.learners.quasi_newton import Curvature
from dpplearn.learners.race import of_each, race
from dpplearn.learners.saddles import prepared
from dpplearn.learners.symmetric.factor import FactorLikelihood, factor
from dpplearn.learners.symmetric.lbfgs import ascend

SMALL = 1e-4  # odds of an eigenvector that may be given up
ROOM, FEWEST = 2, 20  # the rank that is always left: twice the size of the largest basket, and at least this
NEGLIGIBLE = 0.01  # change of an eigenvalue that makes no other start
RACE = 12  # steps; which start is ahead then was so after 30 on all data tried, and after 8 on some was not


def auto(kernel: Kernel, problem: Problem, memory: Memory = NO_MEMORY) -> Iterator[Step]:
    """L-BFGS in Z where B = Z diag(1/√(1 − λ)) with the λ of the start, so that Z Zᵀ begins as K.

    An eigenvalue at 1 may be a basin of its own, of which no step leads out. Where it takes much to give the empty set
    the data's share, a start that does and the start as it is race.
    """
    likelihood = FactorLikelihood(problem)
    fewest = max(ROOM * problem.baskets.totals.largest, FEWEST)
    fewer_columns = partial(without_lost_columns, fewest=fewest)

    def from_memory(memory: Memory) -> Iterator[Step]:
        curvature, step = Curvature.remembered(memory), int(memory["step"][0])
        return ascend(likelihood, memory["Z"], memory["columns"], curvature, fewer_columns, step)

    def from_kernel(kernel: Kernel) -> Iterator[Step]:
        B, columns = factor(kernel), column_scale(kernel.eigenvalues)
        return ascend(likelihood, B / columns, columns, Curvature.unknown(B.size), fewer_columns)

    if "race" in memory:
        return race([from_memory(each) for each in of_each(memory)], RACE, int(memory["race"][0]))
    if memory:
        return from_memory(memory)
    kernel = prepared(kernel, problem.baskets)
    if problem.nonempty:  # the likelihood does not ask how likely the empty set is
        return from_kernel(kernel)
    shared = with_empty_share(kernel, problem.baskets)
    if np.abs(shared.eigenvalues - kernel.eigenvalues).max() <= NEGLIGIBLE:
        return from_kernel(shared)
    return race([from_kernel(shared), from_kernel(kernel)], RACE)


def column_scale(lam: Floats) -> Floats:
    """1/√(1 − λ), the odds being r² = λ/(1 − λ): column j of Z then has the length √λ_j."""
    return np.asarray(1 / np.sqrt(np.maximum(1 - lam, BORDER)))


def without_lost_columns(B: Floats, gradient: Floats, fewest: int) -> tuple[Floats, Floats] | None:
    """Z and the scale of its columns, turned to the principal axes of B, without those that are on their way to zero.

    The best kernels have few eigenvalues above 0. One that is small, and of which the likelihood wants less, is lost.
    The `fewest` largest stay, so that baskets somewhat larger than those of the data are unlikely but not impossible.
    """
    odds, Q = np.linalg.eigh(B.T @ B)
    B = B @ Q
    wanted = (odds > SMALL) | ((gradient @ Q * B).sum(axis=0) >= 0)
    wanted[max(len(odds) - fewest, 0) :] = True
    if wanted.all():
        return None
    columns = column_scale((odds / (1 + odds))[wanted])
    return B[:, wanted] / columns, columns


def with_empty_share(kernel: Kernel, baskets: AnyBaskets) -> Kernel:
    """The largest eigenvalue raised until the empty set is no likelier than in the data, up to 1 − 1e-5.

    P(∅) = Π (1 − λ_j). In data without empty baskets an eigenvalue goes to 1, and a search in B takes long to see it.
    """
    lam = kernel.eigenvalues.copy()
    largest = int(lam.argmax())
    empty = baskets.totals.empty_weight
    log_others = float(np.log1p(-np.delete(lam, largest)).sum())  # the product itself may be too small for a number
    log_left = math.log(empty / baskets.total_weight) - log_others if empty else -math.inf
    lam[largest] = max(lam[largest], 1 - max(math.exp(min(log_left, 0.0)), BORDER))
    return Kernel(np.minimum(lam, 1 - BORDER), kernel.eigenvectors)

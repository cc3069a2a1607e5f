"""The default learner of a symmetric DPP: L-BFGS on the factor of L.

Columns are scaled so that eigenvalues near 1 do not slow the search down, and columns whose eigenvalues go to zero are
dropped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.parts import AnyBaskets
from dpplearn.kernels.symmetric.kernel import BORDER, Kernel
from dpplearn.learners.loop import Step
from dpplearn.learners.problem import Problem
from dpplearn.learners.starts import prepared
from dpplearn.learners.symmetric.factor import FactorLikelihood, factor
from dpplearn.learners.symmetric.lbfgs import ascend

SMALL = 1e-4  # odds of an eigenvector that may be given up
ROOM, FEWEST = 2, 20  # the rank that is always left: twice the size of the largest basket, and at least this


def auto(kernel: Kernel, problem: Problem) -> Iterator[Step]:
    """L-BFGS in Z where B = Z diag(1/√(1 − λ)) with the λ of the initial kernel, so that Z Zᵀ begins as K."""
    kernel = initial_kernel(prepared(kernel, problem.baskets), problem)
    B, columns = factor(kernel), column_scale(kernel.eigenvalues)
    fewest = max(ROOM * problem.baskets.totals.largest, FEWEST)
    return ascend(FactorLikelihood(problem), B / columns, columns, partial(without_lost_columns, fewest=fewest))


def initial_kernel(kernel: Kernel, problem: Problem) -> Kernel:
    """Return the more likely of the kernel and the kernel with the data's probability of the empty set.

    The latter saves iterations on data without empty baskets, but where items attract each other, its eigenvalue near 1
    leads to a worse optimum.
    """
    if problem.nonempty:  # given Y ≠ ∅, the likelihood does not depend on the probability of the empty set
        return kernel
    return max(with_empty_share(kernel, problem.baskets), kernel, key=problem.log_likelihood)


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

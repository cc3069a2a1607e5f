"""Ways out of where no gradient leads: items held independent, eigenvalues at 0, blocks that do not know each other."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.parts import AnyBaskets
from dpplearn.kernels.symmetric.kernel import BORDER, Kernel, eigh_apart
from dpplearn.learners.starts import CAP, FLOOR, repelling, small_rotation

ZERO = 1e-12  # an eigenvalue so small is taken for lost
JOINING = 0.3  # about how much: of an eigenvalue, and in radians
NEARLY_ALONE = 1e-4  # share of an item's variance in the off-diagonal of K, below which it counts as independent


def prepared(kernel: Kernel, baskets: AnyBaskets) -> Kernel:
    """A start from which the best kernel can be reached, where the given one has lost a way to it for good.

    Items that never occur are marginalised out: no basket becomes less likely. Eigenvalues at 0 would stay there and
    are raised to 0.001. Items that the kernel holds independent of all others, a saddle that no gradient leaves, are
    coupled to those that they repel in the data. Eigenvalues come down to 1 − 1e-5, where L is well behaved.
    A kernel without such a lack is returned as it is.
    """
    kernel = _coupled(_occurring(kernel, baskets), baskets)
    lam, V = kernel.eigenvalues, kernel.eigenvectors
    of_occurring = (V[baskets.frequencies() > 0] != 0).any(axis=0)
    raised = np.minimum(np.where(of_occurring & (lam <= ZERO), FLOOR, lam), 1 - BORDER)
    return kernel if np.array_equal(raised, lam) else Kernel(raised, V)


def _occurring(kernel: Kernel, baskets: AnyBaskets) -> Kernel:
    never = baskets.frequencies() == 0
    if not never.any() or not kernel.eigenvectors[never][:, kernel.eigenvalues > 0].any():
        return kernel
    K = np.where(np.logical_or.outer(never, never), 0, kernel.K)
    return _decomposed(K)


def _coupled(kernel: Kernel, baskets: AnyBaskets) -> Kernel:
    """Items whose row of K is nearly diagonal get the off-diagonals of the moments start."""
    variance = kernel.K.diagonal() * (1 - kernel.K.diagonal())
    off_diagonal = kernel.K - np.diag(kernel.K.diagonal())
    alone = (off_diagonal**2).sum(axis=1) <= NEARLY_ALONE * variance
    if not alone.any():
        return kernel
    coupling = np.where(np.logical_or.outer(alone, alone), repelling(baskets.pair_frequencies()), 0)
    return _decomposed(kernel.K + coupling) if coupling.any() else kernel


def joined(kernel: Kernel, baskets: AnyBaskets) -> Kernel | None:
    """The kernel somewhat changed at random, if it falls into blocks of items independent of each other.

    Such a kernel is a saddle or an optimum: from within no gradient tells which. None if it is in one piece.
    """
    from scipy.sparse.csgraph import connected_components

    occurring = baskets.frequencies() > 0
    K = kernel.K[np.ix_(occurring, occurring)]
    chance = np.outer(K.diagonal(), K.diagonal())
    if len(K) < 2 or connected_components(NEARLY_ALONE * chance < K**2, directed=False)[0] == 1:
        return None
    rng = np.random.default_rng(0)
    lam, V = eigh_apart(K)
    lam = np.clip(lam * rng.uniform(1 - JOINING, 1 + JOINING, len(lam)), 0, CAP)  # equal ones have no axes to turn
    turned = np.zeros_like(kernel.K)
    turned[np.ix_(occurring, occurring)] = Kernel(lam, small_rotation(len(lam), 0, rng, JOINING) @ V).K
    return _decomposed(turned)


def _decomposed(K: Floats) -> Kernel:
    lam, V = eigh_apart(K)
    return Kernel(np.clip(lam, 0, 1), V)

"""Starting kernels: a random one, one from the data's moments, one from another model."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.baskets import Baskets
from dpplearn.catalogue import Catalogue
from dpplearn.errors import InputError, InputWarning
from dpplearn.kernel import BORDER, Kernel, eigh_apart

CAP = 0.999  # the largest eigenvalue that the authors' program lets K have
FLOOR = 0.001  # what it gives the eigenvalues that sets as large as the data's need
RAREST = 1e-6  # the least share of sets that are not empty
ZERO = 1e-12  # an eigenvalue so small is taken for lost
JOINING = 0.3  # about how much: of an eigenvalue, and in radians
NEARLY_ALONE = 1e-4  # share of an item's variance in the off-diagonal of K, below which it counts as independent


def wishart(baskets: Baskets, rng: np.random.Generator) -> Kernel:
    """L = X Xᵀ/N with standard normal X. [GKFT14, section 5.1]"""
    n = baskets.n_items
    X = rng.standard_normal((n, n))
    return Kernel.from_L(X @ X.T / n)


def moments(baskets: Baskets, rng: np.random.Generator) -> Kernel:
    """K_ii = m_i and K_ij = sqrt(max(m_i m_j − m_ij, 0)), made a kernel. [GKFT14, section 5.2]

    Eigenvalues are clipped to [0, 0.999]; where fewer are positive than the largest basket has items, the
    missing ones are raised from zero to 0.001. Pairs that attract get zero, so it is diagonal if none repels.
    """
    kernel = moments_kernel(baskets)
    if np.count_nonzero(kernel.K) == np.count_nonzero(kernel.K.diagonal()) > 1:
        warnings.warn(
            "no pair of items occurs together less often than by chance, so the moments start is diagonal, "
            "where the gradient is zero in every off-diagonal direction: learning will not leave the "
            "independent model; try init='wishart'",
            InputWarning,
            stacklevel=3,
        )
    return kernel


def moments_kernel(baskets: Baskets) -> Kernel:
    """The moments start, without a word about whether it is of any use."""
    m = baskets.pair_frequencies()
    item = m.diagonal()
    K = _repelling(m)
    np.fill_diagonal(K, item)
    lam, V = eigh_apart(K)
    lam = np.clip(lam, 0, CAP)
    lam[lam <= 4 * len(lam) * np.finfo(float).eps] = 0
    missing = int(baskets.sizes.max(initial=0)) - np.count_nonzero(lam)
    if missing > 0:
        of_occurring = (V[item > 0] != 0).any(axis=0)  # those of other items would not make room for the largest basket
        zeros = np.flatnonzero((lam == 0) & of_occurring)
        lam[zeros[len(zeros) - missing :]] = FLOOR
    return Kernel(lam, V)


INITIALISERS: dict[str, Callable[[Baskets, np.random.Generator], Kernel]] = {"wishart": wishart, "moments": moments}
DETERMINISTIC = {"moments"}


def independent(baskets: Baskets, *, smoothing: float = 0.0, nonempty: bool = False) -> Kernel:
    """The model of independent items with the data's frequencies: a diagonal K. A yardstick, not a start."""
    p = chances(baskets.frequencies(), baskets.total_weight, smoothing=smoothing, nonempty=nonempty)
    return Kernel(p, np.eye(baskets.n_items))


def chances(frequencies: Floats, weight: float, *, smoothing: float = 0.0, nonempty: bool = False) -> Floats:
    """Of each item, were it independent of the others, from its frequency in baskets of some weight.

    `smoothing` is how many baskets with and how many without each item are counted beside the data: with ½, it is
    (count + ½)/(n + 1). With `nonempty`, the frequencies are those of the sets that are not empty.
    """
    m = np.minimum((frequencies * weight + smoothing) / (weight + 2 * smoothing), 1)
    return before_truncation(m) if nonempty else m


def before_truncation(frequencies: Floats) -> Floats:
    """The chances p of independent items whose sets, given that they are not empty, have these frequencies m.

    p_i = m_i q with q = P(Y ≠ ∅) = 1 − Π(1 − m_i q), by Newton's method from q = 1, from where it falls to the root.
    That is 0 for frequencies that add up to 1 or less, as in data of single items: ever rarer items fit ever better.
    """
    q = 1 - ZERO
    for _ in range(100):
        out = 1 - frequencies * q
        none = float(np.prod(out))
        slope = 1 - none * float((frequencies / out).sum())
        step = (q - 1 + none) / slope if slope > 0 else q
        q = max(q - step, RAREST)
        if abs(step) < ZERO or q == RAREST:
            break
    return np.asarray(frequencies * q)


def prepared(kernel: Kernel, baskets: Baskets) -> Kernel:
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


def _occurring(kernel: Kernel, baskets: Baskets) -> Kernel:
    never = baskets.frequencies() == 0
    if not never.any() or not kernel.eigenvectors[never][:, kernel.eigenvalues > 0].any():
        return kernel
    K = np.where(np.logical_or.outer(never, never), 0, kernel.K)
    return _decomposed(K)


def _coupled(kernel: Kernel, baskets: Baskets) -> Kernel:
    """Items whose row of K is nearly diagonal get the off-diagonals of the moments start."""
    variance = kernel.K.diagonal() * (1 - kernel.K.diagonal())
    off_diagonal = kernel.K - np.diag(kernel.K.diagonal())
    alone = (off_diagonal**2).sum(axis=1) <= NEARLY_ALONE * variance
    if not alone.any():
        return kernel
    coupling = np.where(np.logical_or.outer(alone, alone), _repelling(baskets.pair_frequencies()), 0)
    return _decomposed(kernel.K + coupling) if coupling.any() else kernel


def joined(kernel: Kernel, baskets: Baskets) -> Kernel | None:
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
    turned[np.ix_(occurring, occurring)] = Kernel(lam, _small_rotation(len(lam), 0, rng, JOINING) @ V).K
    return _decomposed(turned)


def _repelling(m: Floats) -> Floats:
    """sqrt(max(m_i m_j − m_ij, 0)) off the diagonal: |K_ij| of pairs that occur together less often than by chance."""
    K = np.sqrt(np.maximum(np.outer(m.diagonal(), m.diagonal()) - m, 0))
    np.fill_diagonal(K, 0)
    return np.asarray(K)


def _decomposed(K: Floats) -> Kernel:
    lam, V = eigh_apart(K)
    return Kernel(np.clip(lam, 0, 1), V)


def adapted(kernel: Kernel, catalogue: Catalogue, baskets: Baskets, rng: np.random.Generator) -> Kernel:
    """A kernel over one catalogue as a start for baskets over another, matched by label.

    Items that the baskets lack are marginalised out (K_S); new ones start at their frequency, nearly
    independent of all others. Nearly: exact independence is a saddle that no learner leaves.
    """
    here = catalogue.translation(baskets.catalogue)
    known = here >= 0
    if not known.any():
        raise InputError(
            f"the start knows none of the {baskets.n_items} items of the baskets (it has {len(catalogue)}, "
            f"such as {catalogue.labels[0]!r}; they have items such as {baskets.items[0]!r}); leave start= out"
        )
    if known.all() and len(catalogue) == baskets.n_items:
        return _permuted(kernel, here)
    old = Kernel.from_K(kernel.K[np.ix_(here[known], here[known])])
    n_old, n = old.n_items, baskets.n_items
    places = np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)])
    frequencies = np.clip(baskets.frequencies()[~known], FLOOR, CAP)
    V = np.zeros((n, n))
    V[np.ix_(places[:n_old], np.arange(n_old))] = old.eigenvectors
    V[places[n_old:], np.arange(n_old, n)] = 1
    lam = np.concatenate([old.eigenvalues, frequencies])
    return Kernel(lam, V @ _small_rotation(n, n_old, rng))


def _permuted(kernel: Kernel, order: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Kernel:
    return Kernel(kernel.eigenvalues, kernel.eigenvectors[order])


def _small_rotation(n: int, n_old: int, rng: np.random.Generator, angle: float = 0.1) -> Floats:
    """A random rotation by about that angle of the new directions against all others."""
    from scipy.linalg import expm

    S = np.zeros((n, n))
    S[:, n_old:] = rng.standard_normal((n, n - n_old)) * (angle / np.sqrt(n))
    rotation: Floats = expm(S - S.T)
    return rotation

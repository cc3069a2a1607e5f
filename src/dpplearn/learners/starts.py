"""Initial kernels: random, from the moments of the data, or from another model."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.catalogue import Catalogue
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.determinants import eigh_apart
from dpplearn.distributions.spectral import BORDER, SpectralDPP
from dpplearn.errors import InputError, InputWarning
from dpplearn.utils.text import count

CAP = 0.999  # the largest eigenvalue that the authors' program lets K have
FLOOR = 0.001  # what it gives the eigenvalues that sets as large as the data's need
SMALL_ANGLE = 0.1  # radians, by which directions of new items are rotated
ZERO = 1e-12  # eigenvalues up to this count as 0
NEARLY_ALONE = 1e-4  # share of an item's variance in the off-diagonal of K, below which it counts as independent


def wishart(baskets: AnyBaskets, rng: np.random.Generator) -> SpectralDPP:
    """L = X Xᵀ/N with standard normal X. [GKFT14, section 5.1]"""
    n = baskets.n_items
    X = rng.standard_normal((n, n))
    return SpectralDPP.from_L(X @ X.T / n)


def moments(baskets: AnyBaskets, rng: np.random.Generator) -> SpectralDPP:
    """K_ii = m_i and K_ij = sqrt(max(m_i m_j − m_ij, 0)), made a kernel. [GKFT14, section 5.2]

    Eigenvalues are clipped to [0, 0.999]; where fewer are positive than the largest basket has items, the
    missing ones are raised from zero to 0.001. Pairs that attract get zero, so it is diagonal if none repels.
    """
    kernel = moments_kernel(baskets)
    if np.count_nonzero(kernel.K) == np.count_nonzero(kernel.K.diagonal()) > 1:
        warnings.warn(
            "no pair of items occurs together less often than expected under independence, so the moments start is "
            "diagonal, where the gradient is zero in every off-diagonal direction: learning will not leave the "
            "independent model; try init='wishart'",
            InputWarning,
            stacklevel=3,
        )
    return kernel


def moments_kernel(baskets: AnyBaskets) -> SpectralDPP:
    """Return the moments start, without a warning if it is diagonal."""
    m = baskets.pair_frequencies()
    item = m.diagonal()
    K = repelling(m)
    np.fill_diagonal(K, item)
    lam, V = eigh_apart(K)
    lam = np.clip(lam, 0, CAP)
    lam[lam <= 4 * len(lam) * np.finfo(float).eps] = 0
    missing = baskets.totals.largest - np.count_nonzero(lam)
    if missing > 0:
        of_occurring = (V[item > 0] != 0).any(axis=0)  # those of other items would not make room for the largest basket
        zeros = np.flatnonzero((lam == 0) & of_occurring)
        lam[zeros[len(zeros) - missing :]] = FLOOR
    return SpectralDPP(lam, V)


INITIALISERS: dict[str, Callable[[AnyBaskets, np.random.Generator], SpectralDPP]] = {
    "wishart": wishart,
    "moments": moments,
}


def repelling(m: Floats) -> Floats:
    """sqrt(max(m_i m_j − m_ij, 0)) off the diagonal: |K_ij| of pairs that co-occur less often than expected."""
    K = np.sqrt(np.maximum(np.outer(m.diagonal(), m.diagonal()) - m, 0))
    np.fill_diagonal(K, 0)
    return np.asarray(K)


def adapted(kernel: SpectralDPP, catalogue: Catalogue, baskets: AnyBaskets, rng: np.random.Generator) -> SpectralDPP:
    """Return a kernel over one catalogue as a start for baskets over another, matched by label.

    Items that the baskets lack are marginalised out (K_S). New items start at their frequency, nearly independent of
    all others: exact independence is a saddle that no learner leaves.
    """
    here = positions_in(catalogue, baskets)
    known = here >= 0
    if known.all() and len(catalogue) == baskets.n_items:
        return _permuted(kernel, here)
    old = SpectralDPP.from_K(kernel.K[np.ix_(here[known], here[known])])
    n_old, n = old.n_items, baskets.n_items
    places = np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)])
    frequencies = np.clip(baskets.frequencies()[~known], FLOOR, CAP)
    V = np.zeros((n, n))
    V[np.ix_(places[:n_old], np.arange(n_old))] = old.eigenvectors
    V[places[n_old:], np.arange(n_old, n)] = 1
    lam = np.concatenate([old.eigenvalues, frequencies])
    return SpectralDPP(lam, V @ small_rotation(n, n_old, rng))


def positions_in(catalogue: Catalogue, baskets: AnyBaskets) -> Ints:
    """Return the position of each item of the baskets in the catalogue of a start, or −1; not all may be −1."""
    here: Ints = catalogue.translation(baskets.catalogue)
    if not (here >= 0).any():
        raise InputError(
            f"the start knows none of the {count(baskets.n_items, 'item')} of the baskets (it has {len(catalogue)}, "
            f"such as {catalogue.labels[0]!r}; they have items such as {baskets.items[0]!r}); leave start= out"
        )
    return here


def _permuted(kernel: SpectralDPP, order: np.ndarray[tuple[int], np.dtype[np.int64]]) -> SpectralDPP:
    return SpectralDPP(kernel.eigenvalues, kernel.eigenvectors[order])


def small_rotation(n: int, n_old: int, rng: np.random.Generator) -> Floats:
    """A random rotation, by about `SMALL_ANGLE` radians, of the new directions against all others."""
    from scipy.linalg import expm

    S = np.zeros((n, n))
    S[:, n_old:] = rng.standard_normal((n, n - n_old)) * (SMALL_ANGLE / np.sqrt(n))
    rotation: Floats = expm(S - S.T)
    return rotation


def prepared(kernel: SpectralDPP, baskets: AnyBaskets) -> SpectralDPP:
    """Return an initial kernel from which every direction can be learned.

    Items that never occur are marginalised out. Eigenvalues of 0 are raised to 0.001, because the updates would leave
    them at 0. Items that are independent of all others in the kernel get the off-diagonals of the moments
    initialisation, because the gradient in these directions is zero. Eigenvalues are capped at 1 − 1e-5. A kernel that
    needs none of this is returned unchanged.
    """
    kernel = _coupled(_occurring(kernel, baskets), baskets)
    lam, V = kernel.eigenvalues, kernel.eigenvectors
    of_occurring = (V[baskets.frequencies() > 0] != 0).any(axis=0)
    raised = np.minimum(np.where(of_occurring & (lam <= ZERO), FLOOR, lam), 1 - BORDER)
    return kernel if np.array_equal(raised, lam) else SpectralDPP(raised, V)


def _occurring(kernel: SpectralDPP, baskets: AnyBaskets) -> SpectralDPP:
    never = baskets.frequencies() == 0
    if not never.any() or not kernel.eigenvectors[never][:, kernel.eigenvalues > 0].any():
        return kernel
    K = np.where(np.logical_or.outer(never, never), 0, kernel.K)
    return _decomposed(K)


def _coupled(kernel: SpectralDPP, baskets: AnyBaskets) -> SpectralDPP:
    """Add the off-diagonals of the moments initialisation for items whose row of K is nearly diagonal."""
    variance = kernel.K.diagonal() * (1 - kernel.K.diagonal())
    off_diagonal = kernel.K - np.diag(kernel.K.diagonal())
    alone = (off_diagonal**2).sum(axis=1) <= NEARLY_ALONE * variance
    if not alone.any():
        return kernel
    coupling = np.where(np.logical_or.outer(alone, alone), repelling(baskets.pair_frequencies()), 0)
    return _decomposed(kernel.K + coupling) if coupling.any() else kernel


def _decomposed(K: Floats) -> SpectralDPP:
    lam, V = eigh_apart(K)
    return SpectralDPP(np.clip(lam, 0, 1), V)

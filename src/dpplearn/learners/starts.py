"""Initial kernels: random, from the moments of the data, or from another model."""

from __future__ import annotations

import warnings

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.catalogue import Catalogue
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.determinants import decomposition_error, eigh_apart
from dpplearn.distributions.spectral import BORDER, SpectralDPP
from dpplearn.errors import InputError, InputWarning
from dpplearn.utils.text import count

CAP = 0.999  # the largest eigenvalue that the authors' program lets K have
FLOOR = 0.001  # what it gives the eigenvalues that sets as large as the data's need
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
            "diagonal and learning will not leave the independent model; try init='wishart'",
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
    kernel = nearest_kernel(K, most=CAP)
    lam, V = kernel.eigenvalues.copy(), kernel.eigenvectors
    lam[lam <= decomposition_error(len(lam))] = 0
    missing = baskets.totals.largest - np.count_nonzero(lam)
    if missing > 0:
        of_occurring = (V[item > 0] != 0).any(axis=0)  # those of other items would not make room for the largest basket
        zeros = np.flatnonzero((lam == 0) & of_occurring)
        lam[zeros[len(zeros) - missing :]] = FLOOR
    return SpectralDPP(lam, V)


INITIALISERS = {"wishart": wishart, "moments": moments}


def repelling(m: Floats) -> Floats:
    """sqrt(max(m_i m_j − m_ij, 0)) off the diagonal: |K_ij| of pairs that co-occur less often than expected."""
    K = np.sqrt(np.maximum(np.outer(m.diagonal(), m.diagonal()) - m, 0))
    np.fill_diagonal(K, 0)
    return np.asarray(K)


def adapted(kernel: SpectralDPP, catalogue: Catalogue, baskets: AnyBaskets) -> SpectralDPP:
    """Return a kernel over one catalogue as a start for baskets over another, matched by label.

    Items that the baskets lack are marginalised out (K_S). New items start at their frequency, with the couplings of
    the moments initialisation.
    """
    here = positions_in(catalogue, baskets)
    known = here >= 0
    old = kernel.restrict(here[known])
    if known.all():
        return old
    _, both = old.extend(np.clip(baskets.frequencies()[~known], FLOOR, CAP))
    order = np.argsort(np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)]))
    coupled = _coupled(both.restrict(order), baskets)
    return SpectralDPP(np.clip(coupled.eigenvalues, FLOOR, 1 - BORDER), coupled.eigenvectors)


def positions_in(catalogue: Catalogue, baskets: AnyBaskets) -> Ints:
    """Return the position of each item of the baskets in the catalogue of a start, or −1; not all may be −1."""
    here: Ints = catalogue.translation(baskets.catalogue)
    if not (here >= 0).any():
        raise InputError(
            f"the start knows none of the {count(baskets.n_items, 'item')} of the baskets: "
            f"it has items such as {catalogue.labels[0]!r}, they have items such as {baskets.items[0]!r}"
        )
    return here


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
    return nearest_kernel(np.where(np.logical_or.outer(never, never), 0, kernel.K))


def _coupled(kernel: SpectralDPP, baskets: AnyBaskets) -> SpectralDPP:
    """Add the off-diagonals of the moments initialisation for items whose row of K is nearly diagonal."""
    p = kernel.K.diagonal()
    alone = (kernel.K**2).sum(axis=1) - p**2 <= NEARLY_ALONE * p * (1 - p)
    coupling = np.where(np.logical_or.outer(alone, alone), repelling(baskets.pair_frequencies()), 0)
    return nearest_kernel(kernel.K + coupling) if coupling.any() else kernel


def nearest_kernel(K: Floats, least: float = 0.0, most: float = 1.0) -> SpectralDPP:
    """Return the DPP of a symmetric matrix with its eigenvalues clipped to [least, most]."""
    lam, V = eigh_apart(K)
    return SpectralDPP(np.clip(lam, least, most), V)

"""Kernel: the frozen spectral form K = V diag(λ) Vᵀ of a DPP's marginal kernel; L, K and back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Bools, Floats, read_only
from dpplearn.errors import InputError
from dpplearn.kernels.symmetric.decomposition import checked_eigh, eigh_apart, svd_apart, symmetric_product, with_ones
from dpplearn.tools.words import count

__all__ = ["BORDER", "Bordered", "Kernel", "eigh_apart"]

ORTHONORMAL = 1e-8  # how far VᵀV may be from I
BORDER = 1e-5  # eigenvalues closer than this to 1 are kept out of L, where they would swamp the others


@dataclass(frozen=True)
class Bordered:
    """The matrix E = [[A, U], [Uᵀ, −D]] whose minors give probabilities for every eigenvalue up to and including 1.

    U has the eigenvectors near 1, D = (1 − λ)/λ of those, A is the L of the others. Then
    log P(Y) = log|det E_{Y ∪ border}| + log_normaliser, and without such eigenvalues E is L.
    """

    matrix: Floats  # (n_items + n_border, n_items + n_border)
    n_border: int
    log_normaliser: float
    possible_sizes: range  # of the sets that have a probability; rounding alone may hide that others have none

    @cached_property
    def scale(self) -> Floats:
        """The square root of A_ii + |U_i|²: what an item's pivots are measured against."""
        n_items = len(self.matrix) - self.n_border
        squares = self.matrix.diagonal()[:n_items] + (self.matrix[:n_items, n_items:] ** 2).sum(axis=1)
        return np.asarray(np.sqrt(squares))


@dataclass(frozen=True, eq=False, repr=False)
class Kernel:
    """A symmetric DPP's marginal kernel, as its eigenvalues and eigenvectors: K = V diag(λ) Vᵀ.

    Parameters
    ----------
    eigenvalues
        From 0 to 1, one per item.
    eigenvectors
        Orthonormal, one per column.

    Examples
    --------
    >>> kernel = Kernel([0.25, 0.5], [[1, 0], [0, 1]])
    >>> kernel
    Kernel(2 items, rank 2, expected size 0.75)
    >>> kernel.L.diagonal().round(3).tolist()
    [0.333, 1.0]
    """

    eigenvalues: Floats  # (n_items,)
    eigenvectors: Floats  # (n_items, n_items)

    def __post_init__(self) -> None:
        lam, V = np.array(self.eigenvalues, float, order="C"), np.array(self.eigenvectors, float, order="C")
        if lam.ndim != 1 or V.shape != (len(lam), len(lam)) or not len(lam):
            raise InputError(f"{lam.shape} eigenvalues with eigenvectors of shape {V.shape}; expected (n,) and (n, n)")
        if not (np.all(lam >= 0) and np.all(lam <= 1)):
            raise InputError(f"eigenvalues of K reach from {lam.min():g} to {lam.max():g}; expected 0 to 1")
        probe = _probe(len(lam))
        if not np.abs(V.T @ (V @ probe) - probe).max() < ORTHONORMAL:
            raise InputError("the eigenvectors are not orthonormal; expected VᵀV = I (from_K and from_L find them)")
        for name, array in (("eigenvalues", lam), ("eigenvectors", V)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def from_K(cls, K: npt.ArrayLike) -> Kernel:
        """From the marginal kernel, P(A ⊆ Y) = det K_A.

        Parameters
        ----------
        K
            Symmetric, with eigenvalues from 0 to 1; those beyond by no more than 1e-9 are taken as 0 and 1, and of
            numbers with fewer digits, such as float32, by no more than those leave.

        Returns
        -------
        Kernel

        Examples
        --------
        >>> Kernel.from_K([[0.5, 0.2], [0.2, 0.5]])
        Kernel(2 items, rank 2, expected size 1.00)
        """
        lam, V, rounding = checked_eigh(K, "K")
        if lam[-1] > 1 + rounding:
            raise InputError(
                f"the largest eigenvalue of K is {lam[-1]:.12g}, above 1 by {lam[-1] - 1:.3g}; "
                "a marginal kernel has eigenvalues from 0 to 1 (if this matrix is L, use from_L)"
            )
        return cls(with_ones(lam), V)

    @classmethod
    def from_L(cls, L: npt.ArrayLike) -> Kernel:
        """From the L-ensemble kernel, P(Y) = det L_Y / det(L + I).

        Parameters
        ----------
        L
            Symmetric and positive semidefinite, up to rounding of the numbers that came, float32 or float64.

        Returns
        -------
        Kernel

        Examples
        --------
        >>> Kernel.from_L([[1.0, 0.5], [0.5, 1.0]]).K.diagonal().round(3).tolist()
        [0.467, 0.467]
        """
        odds, V, _ = checked_eigh(L, "L")
        lam = odds / (1 + odds)
        if lam[-1] == 1:
            raise InputError(
                f"the largest eigenvalue of L is {odds[-1]:.3g}, which cannot be told from infinity; "
                "use from_K, where the eigenvalue is 1"
            )
        return cls(lam, V)

    @classmethod
    def from_factor(cls, B: Floats, columns: Floats | float = 1.0) -> Kernel:
        """From a factor of L = B diag(columns²) Bᵀ, which keeps small eigenvalues more exact than L does.

        Parameters
        ----------
        B
            One row per item.
        columns
            What each column is multiplied by.

        Returns
        -------
        Kernel

        Examples
        --------
        >>> Kernel.from_factor(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
        Kernel(3 items, rank 2, expected size 1.17)
        """
        singular, V = svd_apart(B * columns)
        odds = singular**2
        return cls(odds / (1 + odds), V)

    @classmethod
    def from_K_factor(cls, F: Floats) -> Kernel:
        """From a factor of K = F Fᵀ.

        Parameters
        ----------
        F
            One row per item; what its rounding leaves above 1 is taken as 1.

        Returns
        -------
        Kernel

        Examples
        --------
        >>> Kernel.from_K_factor(np.array([[0.6], [0.8]]))
        Kernel(2 items, rank 1, expected size 1.00, 1 eigenvalues at 1)
        """
        singular, V = svd_apart(F)
        return cls(with_ones(singular**2), V)

    def __repr__(self) -> str:
        ones = f", {np.count_nonzero(self.at_one)} eigenvalues at 1" if self.at_one.any() else ""
        return (
            f"Kernel({count(self.n_items, 'item')}, rank {self.rank}, expected size {self.eigenvalues.sum():.2f}{ones})"
        )

    @property
    def n_items(self) -> int:
        """How many items sets are drawn from."""
        return len(self.eigenvalues)

    @property
    def rank(self) -> int:
        """The number of positive eigenvalues, and the size of the largest possible set."""
        return int(np.count_nonzero(self.eigenvalues))

    @property
    def possible_sizes(self) -> range:
        """From the number of eigenvalues at 1 to the rank."""
        return range(int(np.count_nonzero(self.at_one)), self.rank + 1)

    @property
    def at_one(self) -> Bools:
        """Which eigenvalues are exactly 1."""
        return np.asarray(self.eigenvalues == 1)

    @cached_property
    def K(self) -> Floats:
        """The marginal kernel, whose diagonal has the probability of each item."""
        return read_only(symmetric_product(self.eigenvectors, self.eigenvalues))

    @cached_property
    def L(self) -> Floats:
        """The L-ensemble kernel, which exists unless an eigenvalue of K is exactly 1."""
        if self.at_one.any():
            raise InputError(
                f"L does not exist: {np.count_nonzero(self.at_one)} of {self.n_items} eigenvalues of K are exactly 1 "
                "(the empty set has probability zero); K, probabilities, samples and conditionals do"
            )
        return read_only(symmetric_product(self.eigenvectors, self.odds))

    @property
    def odds(self) -> Floats:
        """r²_j = λ_j / (1 − λ_j); infinite where λ_j is 1."""
        with np.errstate(divide="ignore"):
            return self.eigenvalues / (1 - self.eigenvalues)

    @cached_property
    def repulsion(self) -> Floats:
        """K_ij²/(K_ii K_jj) = 1 − P(i, j ∈ Y)/(P(i ∈ Y) P(j ∈ Y)), how alike two items are to the kernel; zero on the
        diagonal, and where an item has probability zero. How far items stand in for each other is `DPP.together`, which
        does not hold against them that no set is empty."""
        chance = np.outer(self.K.diagonal(), self.K.diagonal())
        share = np.minimum(np.divide(self.K**2, chance, out=np.zeros_like(chance), where=chance > 0), 1)
        np.fill_diagonal(share, 0)
        return read_only(share)

    @cached_property
    def factor(self) -> Floats:
        """F = V diag(√λ), one row per item, K = F Fᵀ."""
        return read_only(np.asarray(self.eigenvectors * np.sqrt(self.eigenvalues)))

    @cached_property
    def squared_eigenvectors(self) -> Floats:
        """One row per eigenvector: the law of an item drawn from it."""
        return np.ascontiguousarray((self.eigenvectors**2).T)

    @cached_property
    def near_one(self) -> Bools:
        """Which eigenvalues belong to the border."""
        return self.eigenvalues > 1 - BORDER

    @cached_property
    def bordered(self) -> Bordered:
        """The matrix of which probabilities are minors."""
        near = self.near_one
        rest, border = self.eigenvalues[~near], self.eigenvalues[near]
        normaliser = float(np.log1p(-rest).sum() + np.log(border).sum())
        if not near.any():
            return Bordered(self.L, 0, normaliser, self.possible_sizes)
        A = symmetric_product(self.eigenvectors[:, ~near], rest / (1 - rest))
        U = self.eigenvectors[:, near]
        E = np.block([[A, U], [U.T, -np.diag((1 - border) / border)]])
        return Bordered(E, len(border), normaliser, self.possible_sizes)


@lru_cache(maxsize=8)
def _probe(n: int) -> Floats:
    """A vector that VᵀV leaves as it is only if V is orthonormal: in O(N²) what VᵀV = I takes O(N³) to say."""
    return np.random.default_rng(0).standard_normal(n)

"""Kernel: the frozen spectral form K = V diag(λ) Vᵀ of a DPP's marginal kernel; L, K and back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import EPSILON, Bools, Floats, read_only
from dpplearn.errors import InputError
from dpplearn.tools.memory import NUMBER, check_memory

ROUNDING = 1e-9  # what a user's own arithmetic may leave beyond symmetry, 0 and 1
COARSEST = 0.01  # what that may be at most, of numbers with few digits
ORTHONORMAL = 1e-8  # how far VᵀV may be from I
MATRICES = 4  # as large as a kernel, that finding its eigenvectors takes
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
    """Eigenvalues in [0, 1] and orthonormal eigenvectors (columns) of the marginal kernel K."""

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

        Eigenvalues beyond 0 and 1 by no more than 1e-9 are taken as 0 and 1; of numbers with fewer digits, such as
        float32, by no more than those leave.
        """
        lam, V, rounding = _eigh(K, "K")
        if lam[-1] > 1 + rounding:
            raise InputError(
                f"the largest eigenvalue of K is {lam[-1]:.12g}, above 1 by {lam[-1] - 1:.3g}; "
                "a marginal kernel has eigenvalues from 0 to 1 (if this matrix is L, use from_L)"
            )
        return cls(_with_ones(lam), V)

    @classmethod
    def from_L(cls, L: npt.ArrayLike) -> Kernel:
        """From the L-ensemble kernel, P(Y) = det L_Y / det(L + I), positive semidefinite up to rounding: that of the
        numbers that came, float32 or float64."""
        odds, V, _ = _eigh(L, "L")
        lam = odds / (1 + odds)
        if lam[-1] == 1:
            raise InputError(
                f"the largest eigenvalue of L is {odds[-1]:.3g}, which cannot be told from infinity; "
                "use from_K, where the eigenvalue is 1"
            )
        return cls(lam, V)

    @classmethod
    def from_factor(cls, B: Floats, columns: Floats | float = 1.0) -> Kernel:
        """From a factor of L = B diag(columns²) Bᵀ. Small eigenvalues are more exact than through L."""
        singular, V = _svd_apart(B * columns)
        odds = singular**2
        return cls(odds / (1 + odds), V)

    @classmethod
    def from_K_factor(cls, F: Floats) -> Kernel:
        """From a factor of K = F Fᵀ; what its rounding leaves above 1 is taken as 1."""
        singular, V = _svd_apart(F)
        return cls(_with_ones(singular**2), V)

    def __repr__(self) -> str:
        ones = f", {np.count_nonzero(self.at_one)} eigenvalues at 1" if self.at_one.any() else ""
        return f"Kernel({self.n_items} items, rank {self.rank}, expected size {self.eigenvalues.sum():.2f}{ones})"

    @property
    def n_items(self) -> int:
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
        """The marginal kernel."""
        return read_only(_symmetric_product(self.eigenvectors, self.eigenvalues))

    @cached_property
    def L(self) -> Floats:
        """The L-ensemble kernel, which exists unless an eigenvalue of K is exactly 1."""
        if self.at_one.any():
            raise InputError(
                f"L does not exist: {np.count_nonzero(self.at_one)} of {self.n_items} eigenvalues of K are exactly 1 "
                "(the empty set has probability zero); K, probabilities, samples and conditionals do"
            )
        return read_only(_symmetric_product(self.eigenvectors, self.odds))

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
        """F = V diag(√λ), one row an item, K = F Fᵀ."""
        return read_only(np.asarray(self.eigenvectors * np.sqrt(self.eigenvalues)))

    @cached_property
    def squared_eigenvectors(self) -> Floats:
        """One row an eigenvector: the law of an item drawn from it."""
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
        A = _symmetric_product(self.eigenvectors[:, ~near], rest / (1 - rest))
        U = self.eigenvectors[:, near]
        E = np.block([[A, U], [U.T, -np.diag((1 - border) / border)]])
        return Bordered(E, len(border), normaliser, self.possible_sizes)


@lru_cache(maxsize=8)
def _probe(n: int) -> Floats:
    """A vector that VᵀV leaves as it is only if V is orthonormal: in O(N²) what VᵀV = I takes O(N³) to say."""
    return np.random.default_rng(0).standard_normal(n)


def _as_real(matrix: Any, name: str) -> npt.NDArray[Any]:
    """Numbers that are no coarser than they came."""
    if hasattr(matrix, "toarray"):  # scipy sparse
        check_memory(
            MATRICES * NUMBER * math.prod(matrix.shape), f"{name} of {matrix.shape[0]:,} items", "use fewer items"
        )
        matrix = matrix.toarray()
    try:
        found = np.asarray(matrix)
        if not np.iscomplexobj(found):
            return found if found.dtype.kind == "f" else np.asarray(found, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name} cannot be read as a matrix; expected rows of numbers, all of one length") from None
    raise InputError(f"{name} is complex; expected real numbers")


def _eigh(matrix: npt.ArrayLike, name: str) -> tuple[Floats, Floats, float]:
    """The decomposition of a matrix that must be symmetric and positive semidefinite up to rounding; and how much that
    is, of the largest entry.

    Entries that are off by ε/2 each move an eigenvalue by up to Nε/2, and a product of factors is off by a few times
    that.
    """
    came = _as_real(matrix, name)
    if came.ndim != 2 or came.shape[0] != came.shape[1] or not came.size:
        raise InputError(f"{name} has shape {came.shape}; expected a square matrix")
    rounding = max(ROUNDING, min(4 * len(came) * float(np.finfo(came.dtype).eps), COARSEST))
    matrix = came.astype(float)
    if not np.all(np.isfinite(matrix)):
        raise InputError(f"{name} holds NaN or infinity; expected finite numbers")
    size = np.abs(matrix).max()
    asymmetry = np.abs(matrix - matrix.T)
    if asymmetry.max() > rounding * size:
        i, j = np.unravel_index(asymmetry.argmax(), matrix.shape)
        raise InputError(
            f"{name} is not symmetric: entries ({i}, {j}) and ({j}, {i}) differ by {asymmetry[i, j]:.3g}; "
            f"use ({name} + {name}.T) / 2 if that is rounding"
        )
    values, vectors = eigh_apart((matrix + matrix.T) / 2)
    if values.min() < -rounding * size:
        raise InputError(
            f"{name} is not positive semidefinite: its smallest eigenvalue is below 0 by {-values.min():.3g}"
        )
    values[values <= 4 * len(values) * EPSILON * size] = 0  # as far as a decomposition can tell
    return values, vectors, rounding


def _with_ones(lam: Floats) -> Floats:
    """Eigenvalues of K, those at 1 as far as a decomposition can tell exactly there."""
    return np.where(lam >= 1 - 4 * len(lam) * EPSILON, 1, lam)


def _svd_apart(B: Floats) -> tuple[Floats, Floats]:
    """As many singular values as rows, and left singular vectors; rows of zeros are kept apart, as in `eigh_apart`."""
    coupled, apart = np.flatnonzero(B.any(axis=1)), np.flatnonzero(~B.any(axis=1))
    V, values = np.zeros((len(B), len(B))), np.zeros(len(B))
    V[apart, np.arange(len(apart))] = 1
    if len(coupled):
        U, singular, _ = np.linalg.svd(B[coupled], full_matrices=True)
        V[coupled, len(apart) :] = U
        singular[singular <= 4 * len(B) * EPSILON * singular[0]] = 0  # as far as a decomposition can tell
        values[len(apart) : len(apart) + len(singular)] = singular
    return values, V


def eigh_apart(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, ascending, and eigenvectors, with indices whose row is zero off the diagonal kept apart.

    Decomposed with the others, an item that never occurs would get a probability, of rounding size.
    """
    n = len(matrix)
    coupled = np.count_nonzero(matrix, axis=1) > (matrix.diagonal() != 0)
    apart, rest = np.flatnonzero(~coupled), np.flatnonzero(coupled)
    values, vectors = matrix.diagonal()[np.concatenate([apart, rest])], np.zeros((n, n))
    vectors[apart, np.arange(len(apart))] = 1
    if len(rest):
        values[len(apart) :], vectors[rest, len(apart) :] = np.linalg.eigh(matrix[np.ix_(rest, rest)])
    order = np.argsort(values, kind="stable")
    return values[order], vectors[:, order]


def _symmetric_product(V: Floats, values: Floats) -> Floats:
    """V diag(values) Vᵀ, symmetric to the last bit; read-only, because it is kept."""
    half = V * np.sqrt(values)
    of_independent = np.count_nonzero(V, axis=0).max(initial=0) <= 1  # O(N³) would be spent on zeros
    product: Floats = np.diag((half**2).sum(axis=1)) if of_independent else half @ half.T
    product.flags.writeable = False
    return product

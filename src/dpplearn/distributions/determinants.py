"""Determinants of many sets at a time, from the rows of a factor or from minors, and a bound that decides what is zero.

For K = F Fᵀ with one row of F per item, det K_A is the product of the squared distances of the rows of A from those
before them. A squared distance below `zero_pivot` times the squared length of the row counts as zero. Distances have an
error of some eps times that length, so the square of one that should be 0 is far below the bound.

Minors of K have the size of the sets and are faster, but their small pivots are lost in rounding. `SetMinors` reports
sets with such pivots, and the caller recomputes them from the factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import EPSILON, Bools, Floats, Ints, Items, row_slices
from dpplearn.distributions.components import MAX_NUMBERS
from dpplearn.errors import InputError
from dpplearn.utils.memory import NUMBER, check_memory
from dpplearn.utils.text import count

SMALL_PIVOT = 1e-6  # smaller pivots of a minor are taken from the factor; larger ones have a relative error below 1e-9
ROUNDING = 1e-9  # relative error allowed in symmetry and in the bounds 0 and 1 of eigenvalues
COARSEST = 0.01  # the largest such error, for types with few digits
MATRICES = 9  # of the size of a kernel at the peak of `checked_eigh`, by its resident memory at N = 2500


def doubtful_pivot(n_items: int, k: Any) -> Any:
    """Return the pivot below which a minor of k items, scaled to a unit diagonal, has too few correct digits; k may be
    an array.

    Entries have an error of δ = (2N + 4k) eps. Division by a pivot of √δ magnifies it to √δ.
    """
    return np.sqrt((2 * n_items + 4 * k) * EPSILON)


def zero_pivot(n_items: int, k: Any) -> Any:
    """Return the squared distance below which a row depends on those of k items, relative to its squared length."""
    return (2 * math.sqrt(n_items) + 4 * k) * EPSILON


def log_gram(F: Floats, sets: Items | Ints) -> Floats:
    """Return log det(F_A F_Aᵀ) of sets of one size (s, k), −inf where the rows of F_A are dependent."""
    n, r = F.shape
    k = sets.shape[1]
    values = np.zeros(len(sets))
    if k > r:
        values[:] = -np.inf
    elif k:
        for some in row_slices(len(sets), k * r, MAX_NUMBERS):
            rows = F[sets[some]]
            length = np.sqrt((rows**2).sum(axis=2, keepdims=True))
            np.divide(rows, length, out=rows, where=length > 0)
            distances = singular_values(rows)
            distances[distances**2 < zero_pivot(n, k)] = 0
            with np.errstate(divide="ignore"):
                values[some] = 2 * (np.log(distances) + np.log(length[:, :, 0])).sum(axis=1)
    return values


def singular_values(matrices: Floats) -> Floats:
    """Return the singular values of one or more matrices, in descending order."""
    return np.asarray(np.linalg.svd(matrices, compute_uv=False))


def split_space(rows: Floats) -> tuple[Floats, Floats]:
    """Return orthonormal bases of the span of k independent rows (k, r), and of its orthogonal complement."""
    Q = np.linalg.qr(rows.T, mode="complete")[0]
    return Q[:, : len(rows)], Q[:, len(rows) :]


def adjoin_rows(F: Floats, A: Ints) -> tuple[float, Floats]:
    """Return log det(F_A F_Aᵀ), and the squared distance of each row from the span of those of A.

    The distance is 0 for the items of A, and for all items if the rows of A are dependent.
    """
    squares = (F**2).sum(axis=1)
    if len(A) > F.shape[1] or not np.all(squares[A] > 0):
        return -math.inf, np.zeros(len(F))
    Q, R = np.linalg.qr((F[A] / np.sqrt(squares[A])[:, None]).T)
    pivots = R.diagonal() ** 2
    if np.any(pivots < zero_pivot(len(F), len(A))):
        return -math.inf, np.zeros(len(F))
    left = F
    for _ in range(2):  # once leaves rounding along the rows of A, twice does not
        left = left - (left @ Q) @ Q.T
    found = (left**2).sum(axis=1)
    found[found < zero_pivot(len(F), len(A) + 1) * squares] = 0
    found[A] = 0
    return float(np.log(pivots).sum() + np.log(squares[A]).sum()), found


def orthonormalised(F: Floats, H: Floats, *, graded: bool = False) -> tuple[Floats, Floats, Floats]:
    """Return the diagonal of |R|, (r,), and F R⁻¹ and H R⁻¹, where RᵀR = FᵀF + HᵀH is a Cholesky decomposition.

    With `graded`, rows may have very different lengths: with the longest rows first and pivoted columns, the error of
    QR is relative to the length of each row [CH98].
    """
    stack, order = np.vstack([F, H]), np.arange(len(F) + len(H))
    if graded:
        from scipy.linalg import qr

        order = np.argsort(-np.abs(stack).max(axis=1, initial=0), kind="stable")
        Q, R, _ = qr(stack[order], mode="economic", pivoting=True)
    else:
        Q, R = np.linalg.qr(stack)
    stack[order] = Q
    top, bottom = stack[: len(F)], stack[len(F) :]
    top[~F.any(axis=1)] = 0  # exactly
    return np.asarray(np.abs(R.diagonal()), dtype=np.float64), top, bottom


@dataclass(frozen=True)
class SetMinors:
    """e^log_constant |det M_{A ∪ border}| of sets A and of A ∪ i, where M is K, L or the bordered matrix.

    The border consists of the last rows and columns of M, those after the items.
    """

    matrix: Floats  # M
    unit: Floats  # (n_items,) lengths with which an item's pivots are compared; M_ii is at most unit²
    log_constant: float

    @cached_property
    def inverse(self) -> Floats:
        """1/unit, 0 for items that cannot occur, and 1 for the border."""
        inverse, n = np.ones(len(self.matrix)), len(self.unit)
        inverse[:n] = 0
        np.divide(1, self.unit, out=inverse[:n], where=(self.unit > 0) & (self.unit < np.inf))
        return inverse

    @cached_property
    def scaled(self) -> Floats:
        """M / (unit unitᵀ)."""
        with np.errstate(invalid="ignore"):
            scaled = self.matrix * self.inverse[:, None]
            scaled *= self.inverse
        return scaled

    @cached_property
    def log_squares(self) -> Floats:
        """log unit², (n_items,), −inf for items that cannot occur."""
        possible = self.inverse[: len(self.unit)] > 0
        return 2 * np.log(self.unit, out=np.full(len(self.unit), -np.inf), where=possible)

    @cached_property
    def components(self) -> tuple[Floats, Floats, Floats, Floats]:
        """M, log q, q and log_constant of a matrix √q M √q without a border, for `top_compiled`."""
        return self.scaled[None], self.log_squares[None], self.unit[None] ** 2, np.array([self.log_constant])

    @property
    def n_border(self) -> int:
        """The number of rows of the border."""
        return len(self.matrix) - len(self.unit)

    def adjoin(self, sets: Items, singular: bool = False) -> tuple[Floats, Floats, Floats, Bools]:
        """Return the log of the value of A (s,), scale (s,) and x (s, n), where A ∪ i has the value e^scale x_i, and
        whether the pivots of a set are large enough.

        Let w_0 be the smallest eigenvalue of the minor of A, and c the products of the eigenvectors with column i. Then
        det M_{A ∪ i} / Π_{j>0} w_j = w_0 (M_ii − Σ_{j>0} c_j²/w_j) − c_0². This also holds for w_0 = 0, which is known
        to be so if `singular`.
        """
        (s, k), n, C = sets.shape, len(self.unit), self.scaled
        diagonal, squares = C.diagonal()[:n], self.unit**2
        if not k and not self.n_border:
            x = np.broadcast_to(diagonal * squares, (s, len(squares)))
            return np.full(s, self.log_constant), np.full(s, self.log_constant), x, np.ones(s, dtype=bool)
        w, W, members = self._eigenvectors(sets)
        first, rest = (np.zeros(s) if singular else w[:, 0]), w[:, 1:]
        products = W.transpose(0, 2, 1) @ C[members, :n]  # c, (s, b, n)
        products *= products
        zero = np.broadcast_to(squares == 0, (s, n)).copy()
        zero[np.arange(s)[:, None], sets] = True
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = np.ones((s, 1, w.shape[1]))
            np.divide(first[:, None], rest, out=weights[:, 0, 1:])
            x = np.abs(first[:, None] * diagonal - (weights @ products)[:, 0])
            scale = np.log(np.abs(rest)).sum(axis=1) + self.log_squares[sets].sum(axis=1) + self.log_constant
            log_value = np.log(np.abs(first)) + scale
        x[zero] = 0
        if not k:  # the minor is the border, a diagonal without rounding
            return log_value, scale, x * squares, np.ones(s, dtype=bool)
        # The error of x is some eps divided by the second eigenvalue, that of the first eigenvalue some eps.
        second = np.minimum(np.abs(rest[:, :1]), 1) if rest.shape[1] else 1
        trusted = np.all((x * second >= SMALL_PIVOT) | zero, axis=1)
        if not singular:
            trusted &= np.abs(first) >= SMALL_PIVOT
        return log_value, scale, x * squares, trusted

    def _eigenvectors(self, sets: Items) -> tuple[Floats, Floats, Items]:
        """Return eigenvalues (s, b) and eigenvectors (s, b, b) of minors, the smallest modulus first; their indices."""
        n, b = len(self.unit), self.n_border
        members = sets if not b else np.hstack([sets, np.broadcast_to(np.arange(n, n + b), (len(sets), b))])
        w, W = np.linalg.eigh(self.scaled[members[:, :, None], members[:, None, :]])
        if b:  # otherwise all are positive, or so small that they are not trusted
            order = np.argsort(np.abs(w), axis=1)
            w, W = np.take_along_axis(w, order, axis=1), np.take_along_axis(W, order[:, None, :], axis=2)
        return w, W, members


def _as_real(matrix: Any, name: str) -> npt.NDArray[Any]:
    """Return a matrix of real numbers, in double precision unless it was of another floating-point type."""
    if hasattr(matrix, "toarray"):  # scipy sparse
        size = MATRICES * NUMBER * math.prod(matrix.shape)
        check_memory(size, f"{name} of {count(matrix.shape[0], 'item')}", "use fewer items")
        matrix = matrix.toarray()
    try:
        found = np.asarray(matrix)
        return found if found.dtype.kind == "f" else found.astype(float, casting="same_kind")
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a matrix of real numbers, with rows of one length") from None


def checked_eigh(matrix: npt.ArrayLike, name: str) -> tuple[Floats, Floats, float]:
    """Return eigenvalues and eigenvectors of a symmetric positive semidefinite matrix, and its relative rounding error.

    Errors of ε/2 in each entry move an eigenvalue by up to Nε/2; a product of factors has a few times that error.
    """
    given = _as_real(matrix, name)
    if given.ndim != 2 or given.shape[0] != given.shape[1] or not given.size:
        raise InputError(f"{name} has shape {given.shape}; expected a square matrix")
    rounding = max(ROUNDING, min(4 * len(given) * float(np.finfo(given.dtype).eps), COARSEST))
    matrix = given.astype(float)
    if not np.all(np.isfinite(matrix)):
        raise InputError(f"{name} holds NaN or infinity; expected finite numbers")
    size, difference = np.abs(matrix).max(), np.abs(matrix - matrix.T)
    if difference.max() > rounding * size:
        i, j = np.unravel_index(difference.argmax(), matrix.shape)
        raise InputError(f"{name} is not symmetric: [{i}, {j}] and [{j}, {i}] differ by {difference[i, j]:.3g}")
    values, vectors = eigh_apart((matrix + matrix.T) / 2)
    if values.min() < -rounding * size:
        raise InputError(f"{name} is not positive semidefinite: an eigenvalue is below 0 by {-values.min():.3g}")
    values[values <= decomposition_error(len(values)) * size] = 0
    return values, vectors, rounding


def decomposition_error(n: int) -> float:
    """Return a bound of the rounding errors of eigenvalues and singular values, relative to the largest."""
    return 4 * n * EPSILON


def svd_apart(B: Floats) -> tuple[Floats, Floats]:
    """Return as many singular values as rows, and left singular vectors; zero rows are separated as in `eigh_apart`."""
    coupled = np.asarray(B.any(axis=1))
    U, singular, _ = np.linalg.svd(B[coupled], full_matrices=True)
    singular[singular <= decomposition_error(len(B)) * singular.max(initial=0)] = 0
    return _with_apart(coupled, np.zeros(len(B)), np.pad(singular, (0, len(U) - len(singular))), U)


def eigh_apart(matrix: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues, ascending, and eigenvectors; indices without off-diagonal entries are separated.

    Decomposed with the others, an item that never occurs would get a probability of rounding size.
    """
    coupled = np.count_nonzero(matrix, axis=1) > (matrix.diagonal() != 0)
    found = np.linalg.eigh(matrix[np.ix_(coupled, coupled)])
    values, vectors = _with_apart(coupled, matrix.diagonal(), *found)
    order = np.argsort(values, kind="stable")
    return values[order], vectors[:, order]


def _with_apart(coupled: Bools, diagonal: Floats, values: Floats, vectors: Floats) -> tuple[Floats, Floats]:
    """Return the decomposition of a matrix from that of its coupled rows and columns."""
    apart, n_apart = np.flatnonzero(~coupled), int(np.count_nonzero(~coupled))
    V = np.zeros((len(coupled), len(coupled)))
    V[apart, np.arange(n_apart)] = 1
    V[coupled, n_apart:] = vectors
    return np.concatenate([diagonal[apart], values]), V


def symmetric_product(V: Floats, values: Floats) -> Floats:
    """Return V diag(values) Vᵀ, exactly symmetric."""
    half = V * np.sqrt(values)
    return np.asarray(half @ half.T)

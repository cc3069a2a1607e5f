"""Eigenvalues and eigenvectors, as far as a decomposition can tell: of what users bring, and of products of factors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import EPSILON, Floats
from dpplearn.errors import InputError
from dpplearn.utils.memory import NUMBER, check_memory
from dpplearn.utils.text import count

ROUNDING = 1e-9  # what a user's own arithmetic may leave beyond symmetry, 0 and 1
COARSEST = 0.01  # what that may be at most, of numbers with few digits
MATRICES = 4  # as large as a kernel, that finding its eigenvectors takes


def _as_real(matrix: Any, name: str) -> npt.NDArray[Any]:
    """Numbers that are no coarser than they came."""
    if hasattr(matrix, "toarray"):  # scipy sparse
        check_memory(
            MATRICES * NUMBER * math.prod(matrix.shape),
            f"{name} of {count(matrix.shape[0], 'item')}",
            "use fewer items",
        )
        matrix = matrix.toarray()
    try:
        found = np.asarray(matrix)
        if not np.iscomplexobj(found):
            return found if found.dtype.kind == "f" else np.asarray(found, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name} cannot be read as a matrix; expected rows of numbers, all of one length") from None
    raise InputError(f"{name} is complex; expected real numbers")


def checked_eigh(matrix: npt.ArrayLike, name: str) -> tuple[Floats, Floats, float]:
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


def with_ones(lam: Floats) -> Floats:
    """Eigenvalues of K, those at 1 as far as a decomposition can tell exactly there."""
    return np.where(lam >= 1 - 4 * len(lam) * EPSILON, 1, lam)


def svd_apart(B: Floats) -> tuple[Floats, Floats]:
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


def symmetric_product(V: Floats, values: Floats) -> Floats:
    """V diag(values) Vᵀ, symmetric to the last bit; read-only, because it is kept."""
    half = V * np.sqrt(values)
    of_independent = np.count_nonzero(V, axis=0).max(initial=0) <= 1  # O(N³) would be spent on zeros
    product: Floats = np.diag((half**2).sum(axis=1)) if of_independent else half @ half.T
    product.flags.writeable = False
    return product

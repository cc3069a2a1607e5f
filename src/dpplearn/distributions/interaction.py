"""The interaction X of scaled DPPs, L_c = D_c (I + X) D_c: dense, or low-rank for large catalogues.

The symmetric part of X is positive semidefinite and makes items repel each other; the skew part makes them attract.
One operation serves conditioning, marginalisation and normalisation:

    absorb(w) = X (I + W X)⁻¹  with  log det(I + W X),  W = diag(w)

This is the interaction left among the other items after conditioning on i ∈ Y, for w_i = 1, or after summing over both
cases, for w_i = p_i; absorb(v) after absorb(w) is absorb(v + w). For w ≥ 0 every pivot of I + √W X √W is at least 1, so
elimination needs no pivoting.

X is shared by all components (g = 1) or there is one for each (g = m). Arrays below have g as their first axis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import EPSILON, Floats, Ints, Items, read_only, row_slices
from dpplearn.data.baskets import Baskets
from dpplearn.distributions.components import Similarity, batches
from dpplearn.errors import InputError

SLACK = 1e-6  # relative rounding error allowed in the smallest eigenvalue of a symmetric part
CACHED = 100_000  # numbers of a product that stay in the cache of a core

Singles = npt.NDArray[Any]  # float32


@dataclass(frozen=True, eq=False)
class Dense:
    """X as a matrix."""

    X: Floats  # (g, n_items, n_items)

    @classmethod
    def checked(cls, X: npt.ArrayLike) -> Dense:
        """Return the interaction if it is finite and its symmetric part is positive semidefinite."""
        X = np.array(X, float, order="C")
        _check_matrices("interaction", X)
        return cls(read_only(X))

    @property
    def g(self) -> int:
        return len(self.X)

    @property
    def n_items(self) -> int:
        return int(self.X.shape[1])

    def log_det(self, w: Floats) -> Floats:
        """Return log det(I + W_c X), (m,), for weights w ≥ 0, (m, n_items)."""
        X, one = np.broadcast_to(self.X, (len(w), *self.X.shape[1:])), np.eye(self.n_items)
        # one matrix at a time stays in the cache
        return np.array([_positive_logdet(one + w_c[:, None] * X_c) for w_c, X_c in zip(w, X, strict=True)])

    def absorb(self, w: Floats) -> tuple[Floats, Dense]:
        """Return log det(I + W_c X), (m,), and X (I + W_c X)⁻¹ for weights w ≥ 0, (m, n_items)."""
        X = np.broadcast_to(self.X, (len(w), *self.X.shape[1:]))
        plus_one = np.eye(self.n_items) + w[:, :, None] * X
        # X (I + W X)⁻¹ = ((I + W X)⁻ᵀ Xᵀ)ᵀ
        solved = np.linalg.solve(plus_one.transpose(0, 2, 1), X.transpose(0, 2, 1)).transpose(0, 2, 1)
        return _positive_logdet(plus_one), Dense(np.ascontiguousarray(solved))

    def include(self, items: Ints) -> tuple[Floats, Dense]:
        """Return log det(I + X)_A, (g,), and absorb(w) with w = 1 on A and 0 elsewhere."""
        inside = np.eye(len(items)) + self.X[:, items[:, None], items]
        solved = np.linalg.solve(inside, self.X[:, items])
        return _positive_logdet(inside), Dense(self.X - self.X[:, :, items] @ solved)

    def keep(self, items: Ints) -> Dense:
        """Return the rows and columns of some items; an item may occur more than once."""
        return Dense(np.ascontiguousarray(self.X[:, items[:, None], items]))

    def extend(self, n: int) -> Dense:
        """Return X with n further items that do not interact."""
        return Dense(np.pad(self.X, ((0, 0), (0, n), (0, n))))

    def take(self, which: Ints) -> Dense:
        """Return the matrices of some components."""
        return self if self.g == 1 else Dense(self.X[which])

    def diagonal(self) -> Floats:
        """Return X_ii, (g, n_items)."""
        return np.diagonal(self.X, axis1=1, axis2=2)

    def block(self, rows: Ints, columns: Ints) -> Floats:
        """Return the entries in some rows and columns, (g, rows, columns)."""
        return np.asarray(self.X[:, rows[:, None], columns])

    @cached_property
    def C(self) -> Floats:
        """I + X."""
        return read_only(self.X + np.eye(self.n_items))

    def log_minors(self, sets: Baskets, threads: int | None = None) -> Floats:
        """Return log det(I + X)_Y, (s, g)."""
        from dpplearn.distributions.statistics import log_minors

        return np.stack([log_minors(C, sets, threads) for C in self.C], axis=1)

    def similarity(self, items: Ints) -> Similarity:
        """Return the rows and columns of I + X, scaled to a unit diagonal, among candidates (n_users, n)."""
        return similarity_of(self.C, items)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"interaction": self.X}


@dataclass(frozen=True, eq=False)
class LowRank:
    """X = Z Ω Zᵀ, with Z shared and nothing of size n_items × n_items. Z is single precision, exact as it is."""

    Z: Singles  # (n_items, r)
    core: Floats  # Ω, (g, r, r)

    @classmethod
    def checked(cls, Z: npt.ArrayLike, core: npt.ArrayLike) -> LowRank:
        """Return the interaction if it is finite and the symmetric part of the core is positive semidefinite."""
        Z = np.ascontiguousarray(Z, dtype=np.float32)
        core = np.array(core, float, order="C")
        _check_matrices("core", core)
        if Z.ndim != 2 or Z.shape[1] != core.shape[1] or not np.isfinite(Z).all():
            raise InputError(f"factors must be finite and of shape (n, {core.shape[1]}), got shape {Z.shape}")
        return cls(read_only(Z), read_only(core))

    @property
    def g(self) -> int:
        return len(self.core)

    @property
    def n_items(self) -> int:
        return len(self.Z)

    @property
    def rank(self) -> int:
        return int(self.Z.shape[1])

    @cached_property
    def active(self) -> Ints:
        """Items whose row of Z is not 0. The others are independent within a component."""
        return np.flatnonzero(self.Z.any(axis=1))

    @cached_property
    def rows(self) -> Floats:
        """The rows of Z of the active items."""
        return self.Z[self.active].astype(float)

    @cached_property
    def _symmetric(self) -> Floats:
        """The symmetric part of Ω, which gives the diagonal; the skew part would add only rounding errors."""
        return read_only((self.core + np.swapaxes(self.core, 1, 2)) / 2)

    @cached_property
    def _diagonal(self) -> Floats:
        found = np.zeros((self.g, self.n_items))
        found[:, self.active] = [np.einsum("ij,ij->i", self.rows @ core, self.rows) for core in self._symmetric]
        return read_only(found)

    def diagonal(self) -> Floats:
        return self._diagonal

    def absorb(self, w: Floats) -> tuple[Floats, LowRank]:
        """Ω (I + S Ω)⁻¹ with S = Zᵀ W Z."""
        log_det, core = absorbed_core(
            self.core, np.array([weighted_gram(self.rows, each) for each in w[:, self.active]])
        )
        return log_det, LowRank(self.Z, core)

    def include(self, items: Ints) -> tuple[Floats, LowRank]:
        w = np.zeros((1, self.n_items))
        w[:, items] = 1
        return self.absorb(w)

    def keep(self, items: Ints) -> LowRank:
        return LowRank(self.Z[items], self.core)

    def extend(self, n: int) -> LowRank:
        return LowRank(np.pad(self.Z, ((0, n), (0, 0))), self.core)

    def take(self, which: Ints) -> LowRank:
        return self if self.g == 1 else LowRank(self.Z, self.core[which])

    def block(self, rows: Ints, columns: Ints) -> Floats:
        return np.asarray(self.Z[rows].astype(float) @ self.core @ self.Z[columns].astype(float).T)

    @property
    def X(self) -> Floats:
        """X as dense matrices, (g, n_items, n_items)."""
        return self.block(np.arange(self.n_items), np.arange(self.n_items))

    def log_minors(self, sets: Baskets, threads: int | None = None) -> Floats:
        # a product with the rows of all items takes milliseconds in large catalogues
        used, found = np.unique(sets.indices), np.empty((len(sets), self.g))
        left = np.zeros(self.Z.shape)
        for c, core in enumerate(self.core):
            left[used] = self.Z[used].astype(float) @ core
            for rows, A in batches(sets, self.rank):
                right = np.swapaxes(self.Z[A].astype(float), 1, 2)  # products of mixed precision take twice as long
                found[rows, c] = np.linalg.slogdet(np.eye(A.shape[1]) + left[A] @ right)[1]
        return found

    def eliminate(self, sets: Items, scale: Floats | None = None) -> tuple[Floats, Floats, Floats]:
        """Return log det M_A, (g, s), V = (Ω Z_Aᵀ S)ᵀ and W = M_A⁻¹ S Z_A Ω, (g, s, k, r), for sets of one size.

        M = I + S Z Ω Zᵀ S with S = diag(scale), by default 1. The logarithm is −inf where M_A is singular up to
        rounding.
        """
        Z = self.Z[sets].astype(float)[None]
        Z = Z if scale is None else scale[:, sets, None] * Z
        V, across = products(Z, np.swapaxes(self.core, 1, 2)), products(Z, self.core)
        log_det, M = checked_minors(np.eye(sets.shape[1]) + Z @ np.swapaxes(V, 2, 3))
        return log_det, V, np.asarray(np.linalg.solve(M, across), dtype=float)

    def schur(self, V: Floats, W: Floats, items: Ints | None, scale: Floats | None = None) -> Floats:
        """Return M_ii − M_iA M_A⁻¹ M_Ai of candidates, (g, s, j), after `eliminate`."""
        if items is None:
            left = np.repeat(self.diagonal()[:, None], V.shape[1], axis=1)
            left[..., self.active] -= row_products(self.rows, V, W)
        else:
            rows = self.Z[items].astype(float)  # (s, j, r)
            taken = (rows @ np.swapaxes(V, 2, 3)) * (rows @ np.swapaxes(W, 2, 3))
            # The diagonal of X is cached; T has one for every component, which would take seconds in large catalogues.
            own = self.diagonal()[:, items] if scale is None else ((rows @ self._symmetric[:, None]) * rows).sum(axis=3)
            left = own - taken.sum(axis=3)
        if scale is not None:
            left *= (scale[:, None] if items is None else scale[:, items]) ** 2
        return left + 1

    def similarity(self, items: Ints) -> Similarity:
        users = np.arange(len(items))
        Z = self.Z[items].astype(float)  # (n_users, n, r)
        both = np.concatenate([self.core, self.core.transpose(0, 2, 1)])
        root = np.sqrt(1 + np.array([np.einsum("unr,unr->un", Z @ core, Z) for core in self.core]))

        def rows_and_columns(chosen: Ints) -> tuple[Floats, Floats]:
            ahead = Z[users, chosen] @ both  # (2 g, n_users, r)
            found = np.matmul(Z, ahead.transpose(1, 2, 0)).transpose(2, 0, 1).reshape(2, *root.shape)
            row, column = found / (root * root[:, users, chosen][:, :, None])
            return row, column

        return rows_and_columns

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"factors": self.Z, "core": self.core}


Interaction = Dense | LowRank


def minor_gradient(Z: Singles, core: Floats, sets: Baskets) -> Singles:
    """Return the gradient of Σ w log det C_Y, C = I + Z Ω Zᵀ, in Z: Σ w (B Z Ω + Bᵀ Z Ωᵀ) with B = C_Y⁻¹."""
    from scipy.sparse import csr_matrix

    core = core.astype(np.float32)
    right, left = Z @ core, Z @ core.T
    items, gradients = [np.zeros(0, np.int32)], [np.zeros_like(Z[:0])]
    for rows, A in batches(sets, Z.shape[1]):
        B = np.linalg.inv(np.eye(A.shape[1]) + right[A] @ np.swapaxes(Z[A], 1, 2))
        B = (B * sets.weights[rows, None, None]).astype(np.float32)
        items.append(A.ravel())
        gradients.append((B @ right[A] + np.swapaxes(B, 1, 2) @ left[A]).reshape(-1, Z.shape[1]))
    row = np.concatenate(items)
    # a sparse product adds the rows of each item in a quarter of the time of `np.add.at`
    scatter = csr_matrix((np.ones(len(row), np.float32), row, np.arange(len(row) + 1)), (len(row), len(Z)))
    return np.asarray(scatter.T @ np.concatenate(gradients))


def similarity_of(matrices: Floats, items: Ints) -> Similarity:
    """Return matrices (g, n_items, n_items), scaled to a unit diagonal, among candidates (n_users, n).

    An item whose diagonal entry is 0 up to rounding is independent of all others.
    """
    root = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
    rounding = matrices.shape[1] * EPSILON * root.max(axis=1, keepdims=True)
    root = np.where(root > rounding, root, np.inf)
    scaled, users = matrices / root[:, :, None] / root[:, None, :], np.arange(len(items))

    def rows_and_columns(chosen: Ints) -> tuple[Floats, Floats]:
        one = items[users, chosen][:, None]
        return scaled[:, one, items], scaled[:, items, one]

    return rows_and_columns


def products(Z: Floats, core: Floats) -> Floats:
    """Return Z Ω for Z (1 or m, s, k, r) and Ω (g, r, r), by one product for all sets."""
    m, s, k, r = Z.shape
    return np.asarray((Z.reshape(m, s * k, r) @ core).reshape(max(m, len(core)), s, k, r))


def row_products(rows: Floats, V: Floats, W: Floats) -> Floats:
    """Return Σ_k (z V_k)(z W_k) for each row z and matrices V and W (g, s, k, r), as (g, s, n_rows).

    One product for all pairs, in parts that fit into the cache, takes 15 to 65 % of the time of one product per pair.
    """
    *shape, r = W.shape
    found = np.empty((*shape[:2], len(rows)))
    for some in row_slices(len(rows), math.prod(shape), CACHED):
        part = rows[some].T
        both = (V.reshape(-1, r) @ part) * (W.reshape(-1, r) @ part)
        found[..., some] = both.reshape(*shape, part.shape[1]).sum(axis=2)
    return found


def weighted_gram(rows: Floats, weights: Floats) -> Floats:
    """Return Zᵀ diag(weights) Z for weights ≥ 0. A symmetric product takes half of the time of others."""
    scaled = rows * np.sqrt(weights)[:, None]
    return np.asarray(scaled.T @ scaled)


def absorbed_core(core: Floats, S: Floats) -> tuple[Floats, Floats]:
    """Return log det(I + S Ω) and Ω (I + S Ω)⁻¹ of one or several S."""
    plus_one = np.eye(S.shape[-1]) + S @ core
    solved = np.linalg.solve(np.swapaxes(plus_one, -1, -2), np.swapaxes(core, -1, -2))
    return _positive_logdet(plus_one), np.asarray(np.swapaxes(solved, -1, -2), dtype=float)


def repelling_and_attracting(n_repelling: int, n_attracting: int) -> Floats:
    """Return Ω with Z Ω Zᵀ = W Wᵀ + U Vᵀ − V Uᵀ for Z = [W | U | V]."""
    r = n_repelling + 2 * n_attracting
    core = np.zeros((r, r))
    core[:n_repelling, :n_repelling] = np.eye(n_repelling)
    U = np.arange(n_repelling, n_repelling + n_attracting)
    core[U, U + n_attracting], core[U + n_attracting, U] = 1, -1
    return core


def schur_complements(M: Floats, sets: Items, items: Ints | None) -> tuple[Floats, Floats]:
    """Return log det M_A, (g, s), and M_ii − M_iA M_A⁻¹ M_Ai for candidates i, (g, s, j), for sets of one size.

    The logarithm is −inf where the computed determinant is not positive.
    """
    log_det, minors = checked_minors(M[:, sets[:, :, None], sets[:, None, :]])
    transposed, diagonal = np.swapaxes(M, 1, 2), np.diagonal(M, axis1=1, axis2=2)
    if items is None:
        rows, columns, own = M[:, sets], transposed[:, sets], diagonal[:, None]
    else:
        among = (slice(None), sets[:, :, None], items[:, None, :])
        rows, columns, own = M[among], transposed[among], diagonal[:, items]
    solved = np.linalg.inv(minors) @ rows  # half the time of `solve`
    return log_det, own - np.einsum("gsaj,gsaj->gsj", solved, columns)


def checked_minors(minors: Floats) -> tuple[Floats, Floats]:
    """Return the logarithms of determinants, −inf where they are not positive, and I in place of those minors."""
    sign, log_det = np.linalg.slogdet(minors)
    if np.all(sign > 0):
        return log_det, minors
    return np.where(sign > 0, log_det, -np.inf), np.where(sign[..., None, None] > 0, minors, np.eye(minors.shape[-1]))


def _positive_logdet(M: Floats) -> Floats:
    """Return log det M of matrices whose determinant is positive in exact arithmetic."""
    sign, log_det = np.linalg.slogdet(M)
    if not np.all(sign > 0):
        raise InputError("the interaction is too close to singular for double precision; use smaller parameters")
    return np.asarray(log_det)


def _check_matrices(name: str, matrices: Floats) -> None:
    """Raise `InputError` unless matrices are finite and their symmetric parts positive semidefinite."""
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2] or not len(matrices):
        raise InputError(f"{name} must have shape (1 or m, n, n), got {matrices.shape}")
    if not np.isfinite(matrices).all():
        raise InputError(f"{name} must be finite, got NaN or infinite entries")
    for each in matrices:
        least = np.linalg.eigvalsh((each + each.T) / 2).min(initial=0.0)
        if least < -SLACK * max(np.abs(each).max(initial=0.0), 1.0):
            raise InputError(f"the symmetric part of {name} must be positive semidefinite, got an eigenvalue {least:g}")

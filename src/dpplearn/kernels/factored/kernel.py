"""FactoredKernel: segments that share how items interact, by a few numbers per item."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, Ints, read_only
from dpplearn.errors import InputError
from dpplearn.kernels.nonsymmetric.kernel import ROUNDING, MixtureKernel

SLACK = 1e-6  # what rounding may take from the least eigenvalue of a symmetric part, which is 0 or more

Singles = npt.NDArray[Any]  # float32


@dataclass(frozen=True, eq=False, repr=False)
class FactoredKernel:
    """P(Y) = Σ_c π_c det (L_c)_Y / det(I + L_c), with L_c = D_c (I + Z Ω Zᵀ) D_c and D_c² = diag(exp(log_odds_c)).

    The symmetric part of Ω is at least 0: that part of it repels, and the skew part attracts. All segments share one Ω,
    or have one each, as what is seen of some items alone has. Items whose row of Z is 0 are independent of all others
    within a segment. Log-odds and Z are single precision, exact as they are; all that follows from them is double.

    With p_c the chances that log-odds alone would give and S_c = Zᵀ diag(p_c) Z, det(I + L_c) is det(I + S_c Ω) over
    Π(1 − p_c), and K_c = diag(p_c) + U_c Z T_c Zᵀ U_c with T_c = Ω (I + S_c Ω)⁻¹ and U_c² = diag(p_c (1 − p_c)).

    Examples
    --------
    >>> factors = np.array([[1, 0], [0, 2]])
    >>> FactoredKernel(np.ones(1), np.zeros((1, 2)), factors, coupling(0, 1)[None])
    FactoredKernel(2 items, 1 segment, 2 columns)
    """

    weights: Floats  # (n_segments,)
    log_odds: Singles  # (n_segments, n_items)
    factors: Singles  # Z, (n_items, n_columns)
    coupling: Floats  # Ω, (1 or n_segments, n_columns, n_columns)

    def __post_init__(self) -> None:
        pi, omega = (np.array(each, float, order="C") for each in (self.weights, self.coupling))
        log_odds, Z = (np.ascontiguousarray(each, dtype=np.float32) for each in (self.log_odds, self.factors))
        if not (pi.ndim == 1 and len(pi) and log_odds.ndim == 2 and len(log_odds) == len(pi) and log_odds.size):
            raise InputError(f"{pi.shape} weights with log-odds of shape {log_odds.shape}; expected (m,) and (m, n)")
        n = log_odds.shape[1]
        if Z.ndim != 2 or len(Z) != n:
            raise InputError(f"factors of shape {Z.shape}; expected one row for each of {n} items")
        r = Z.shape[1]
        if omega.ndim != 3 or len(omega) not in (1, len(pi)) or omega.shape[1:] != (r, r):
            raise InputError(f"a coupling of shape {omega.shape}; expected (1, {r}, {r}) or ({len(pi)}, {r}, {r})")
        if not (np.all(pi >= 0) and abs(pi.sum() - 1) <= ROUNDING):
            raise InputError(
                f"weights of segments from {pi.min():g}, which add up to {pi.sum():g}; expected shares of 1"
            )
        if not all(np.isfinite(each).all() for each in (log_odds, Z, omega)):
            raise InputError("log-odds, factors or a coupling are not finite numbers")
        _check_definite(omega)
        for name, array in (("weights", pi / pi.sum()), ("log_odds", log_odds), ("factors", Z), ("coupling", omega)):
            object.__setattr__(self, name, read_only(array))

    @classmethod
    def of_items(cls, log_odds: npt.ArrayLike) -> FactoredKernel:
        """Independent items.

        Parameters
        ----------
        log_odds
            The logarithm of p/(1 − p), of every item.

        Returns
        -------
        FactoredKernel
            Of one segment and no columns.

        Examples
        --------
        >>> FactoredKernel.of_items([0.0, 0.0]).marginals.tolist()
        [[0.5, 0.5]]
        """
        log_odds = np.atleast_2d(np.asarray(log_odds, dtype=float))
        return cls(np.ones(1), log_odds, np.zeros((log_odds.shape[1], 0)), np.zeros((1, 0, 0)))

    def __repr__(self) -> str:
        segments = "1 segment" if self.n_segments == 1 else f"{self.n_segments} segments"
        return f"FactoredKernel({self.n_items} items, {segments}, {self.n_columns} columns)"

    @property
    def n_items(self) -> int:
        return int(self.log_odds.shape[1])

    @property
    def n_segments(self) -> int:
        return len(self.weights)

    @property
    def n_columns(self) -> int:
        return int(self.factors.shape[1])

    @property
    def log_weights(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.weights)

    def coupling_of(self, segment: int) -> Floats:
        """Ω of a segment.

        Parameters
        ----------
        segment
            Its number.

        Returns
        -------
        array of float
            (n_columns, n_columns).

        Examples
        --------
        >>> FactoredKernel.of_items([0.0, 0.0]).coupling_of(0).shape
        (0, 0)
        """
        return np.asarray(self.coupling[segment if len(self.coupling) > 1 else 0])

    @cached_property
    def active(self) -> Ints:
        """The items whose row of Z is not 0."""
        return np.flatnonzero(self.factors.any(axis=1))

    @cached_property
    def rows(self) -> Floats:
        """The rows of Z of the active items."""
        return self.factors[self.active].astype(float)

    @cached_property
    def odds(self) -> Floats:
        """exp(log_odds), (n_segments, n_items)."""
        return read_only(np.exp(self.log_odds.astype(float)))

    @cached_property
    def diagonal(self) -> Floats:
        """Of C, (1 or n_segments, n_items)."""
        found = np.ones((len(self.coupling), self.n_items))
        for each, omega in zip(found, self.coupling, strict=True):
            each[self.active] += quadratic(self.rows, (omega + omega.T) / 2)  # what is skew adds nothing but rounding
        return read_only(found)

    def chances(self, segment: int) -> Floats:
        """p_c: those that the log-odds alone would give.

        Parameters
        ----------
        segment
            Its number.

        Returns
        -------
        array of float
            (n_items,).

        Examples
        --------
        >>> FactoredKernel.of_items([0.0, 0.0]).chances(0).tolist()
        [0.5, 0.5]
        """
        return np.asarray(1 / (1 + np.exp(-self.log_odds[segment].astype(float))))

    @cached_property
    def _solved(self) -> tuple[Floats, Floats]:
        """log det(I + L_c) and T_c of every segment."""
        m, r = self.n_segments, self.n_columns
        log_Z, T = np.empty(m), np.empty((m, r, r))
        for c in range(m):
            S = weighted_gram(self.rows, self.chances(c)[self.active])
            log_Z[c] = np.logaddexp(0, self.log_odds[c].astype(float)).sum()
            more, T[c] = coupled(self.coupling_of(c), S)
            log_Z[c] += more
        return read_only(log_Z), read_only(T)

    @property
    def log_normalisers(self) -> Floats:
        """log det(I + L_c) of every segment."""
        return self._solved[0]

    @property
    def cores(self) -> Floats:
        """T_c, (n_segments, n_columns, n_columns): K_c = diag(p_c) + U_c Z T_c Zᵀ U_c."""
        return self._solved[1]

    @cached_property
    def marginals(self) -> Floats:
        """P(i ∈ Y given segment c), (n_segments, n_items)."""
        found = np.empty((self.n_segments, self.n_items))
        for c, T in enumerate(self.cores):
            found[c] = p = self.chances(c)
            found[c, self.active] += (p * (1 - p))[self.active] * quadratic(self.rows, T)
        return read_only(found)

    @cached_property
    def log_empty(self) -> float:
        """log P(∅)."""
        return float(np.logaddexp.reduce(self.log_weights - self.log_normalisers))

    def dense(self) -> MixtureKernel:
        """The same law with all of C, for small catalogues.

        Returns
        -------
        MixtureKernel

        Examples
        --------
        >>> FactoredKernel.of_items([0.0, 0.0]).dense()
        MixtureKernel(2 items, 1 segment)
        """
        Z = self.factors.astype(float)
        return MixtureKernel(self.weights, self.log_odds, np.eye(self.n_items) + Z @ self.coupling @ Z.T)


def coupling(repelling: int, attracting: int) -> Floats:
    """Ω of Z = [W | X | Y] with I + Z Ω Zᵀ = I + W Wᵀ + X Yᵀ − Y Xᵀ.

    Parameters
    ----------
    repelling, attracting
        The columns of W, and of each of X and Y.

    Returns
    -------
    array of float
        Square.

    Examples
    --------
    >>> coupling(1, 1).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]
    """
    r = repelling + 2 * attracting
    omega = np.zeros((r, r))
    omega[:repelling, :repelling] = np.eye(repelling)
    X, Y = np.arange(repelling, repelling + attracting), np.arange(repelling + attracting, r)
    omega[X, Y], omega[Y, X] = 1, -1
    return omega


def weighted_gram(rows: Floats, p: Floats) -> Floats:
    """Zᵀ diag(p) Z."""
    scaled = rows * np.sqrt(p)[:, None]
    return np.asarray(scaled.T @ scaled)


def coupled(omega: Floats, S: Floats) -> tuple[float, Floats]:
    """log det(I + S Ω) and Ω (I + S Ω)⁻¹: what Ω becomes once items of this S are summed over."""
    if not len(omega):
        return 0.0, omega
    plus_one = np.eye(len(S)) + S @ omega
    return float(np.linalg.slogdet(plus_one)[1]), np.asarray(np.linalg.solve(plus_one.T, omega.T).T, dtype=float)


def quadratic(rows: Floats, matrix: Floats) -> Floats:
    """z M zᵀ of every row z."""
    return np.asarray(np.einsum("ij,ij->i", rows @ matrix, rows))


def _check_definite(omega: Floats) -> None:
    for each in omega:
        least = np.linalg.eigvalsh((each + each.T) / 2)[0] if len(each) else 0.0
        if least < -SLACK * np.abs(each).max(initial=1):
            raise InputError(
                f"the symmetric part of a coupling has an eigenvalue of {least:g}; expected none below 0, as Ω is "
                "of C = I + Z Ω Zᵀ"
            )

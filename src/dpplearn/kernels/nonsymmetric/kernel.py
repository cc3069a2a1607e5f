"""MixtureKernel: segments of people that share how items interact and differ in how much they like each item."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, read_only
from dpplearn.errors import InputError
from dpplearn.tools.words import count

ROUNDING = 1e-9  # of weights that add up to 1
SLACK = 1e-6  # what rounding may take from the least eigenvalue of a symmetric part, which is 1 or more


@dataclass(frozen=True, eq=False, repr=False)
class MixtureKernel:
    """P(Y) = Σ_c π_c det (L_c)_Y / det(I + L_c), with L_c = D_c C D_c and D_c² = diag(exp(log_odds_c)).

    The symmetric part of C is at least I: what it has beyond I repels, and the skew part attracts. All segments share
    one C, or have one each, as what is seen of some items alone has. Every pivot of elimination in a minor of C is at
    least 1: no set is impossible, and nothing needs pivoting.

    Examples
    --------
    >>> attracts = np.array([[1.0, 2.0], [-2.0, 1.0]])
    >>> MixtureKernel(np.ones(1), np.zeros((1, 2)), attracts[None])
    MixtureKernel(2 items, 1 segment)
    """

    weights: Floats  # (n_segments,)
    log_odds: Floats  # (n_segments, n_items)
    interaction: Floats  # (1 or n_segments, n_items, n_items)

    def __post_init__(self) -> None:
        pi, log_odds, C = (np.array(each, float, order="C") for each in (self.weights, self.log_odds, self.interaction))
        if not (pi.ndim == 1 and len(pi) and log_odds.ndim == 2 and len(log_odds) == len(pi) and log_odds.size):
            raise InputError(f"{pi.shape} weights with log-odds of shape {log_odds.shape}; expected (m,) and (m, n)")
        n = log_odds.shape[1]
        if C.ndim != 3 or len(C) not in (1, len(pi)) or C.shape[1:] != (n, n):
            raise InputError(f"an interaction of shape {C.shape}; expected (1, {n}, {n}) or ({len(pi)}, {n}, {n})")
        if not (np.all(pi >= 0) and abs(pi.sum() - 1) <= ROUNDING):
            raise InputError(
                f"weights of segments from {pi.min():g}, which add up to {pi.sum():g}; expected shares of 1"
            )
        if not (np.isfinite(log_odds).all() and np.isfinite(C).all()):
            raise InputError("log-odds or an interaction are not finite numbers")
        _check_definite(C)
        for name, array in (("weights", pi / pi.sum()), ("log_odds", log_odds), ("interaction", C)):
            object.__setattr__(self, name, read_only(array))

    @classmethod
    def of_items(cls, log_odds: npt.ArrayLike) -> MixtureKernel:
        """Independent items.

        Parameters
        ----------
        log_odds
            The logarithm of p/(1 − p), of every item.

        Returns
        -------
        MixtureKernel
            Of one segment.

        Examples
        --------
        >>> MixtureKernel.of_items([0.0, 0.0]).K[0].diagonal().tolist()
        [0.5, 0.5]
        """
        log_odds = np.atleast_2d(np.asarray(log_odds, dtype=float))
        return cls(np.ones(1), log_odds, np.eye(log_odds.shape[1])[None])

    def __repr__(self) -> str:
        segments = "1 segment" if self.n_segments == 1 else f"{self.n_segments} segments"
        return f"MixtureKernel({count(self.n_items, 'item')}, {segments})"

    @property
    def n_items(self) -> int:
        return int(self.log_odds.shape[1])

    @property
    def n_segments(self) -> int:
        return len(self.weights)

    @property
    def log_weights(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.weights)

    def L(self, segment: int) -> Floats:
        """L_c = D_c C D_c.

        Parameters
        ----------
        segment
            Its number.

        Returns
        -------
        array of float
            (n_items, n_items).

        Examples
        --------
        >>> MixtureKernel.of_items([0.0, 0.0]).L(0).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        d = np.exp(self.log_odds[segment] / 2)
        C: Floats = self.interaction[segment if len(self.interaction) > 1 else 0]
        return np.asarray(d[:, None] * C * d)

    @cached_property
    def odds(self) -> Floats:
        """exp(log_odds), (n_segments, n_items)."""
        return read_only(np.exp(self.log_odds))

    @cached_property
    def log_normalisers(self) -> Floats:
        """log det(I + L_c) of every segment."""
        one = np.eye(self.n_items)
        return read_only(np.array([np.linalg.slogdet(self.L(c) + one)[1] for c in range(self.n_segments)]))

    @cached_property
    def K(self) -> Floats:
        """K_c = L_c (I + L_c)⁻¹, (n_segments, n_items, n_items): P(A ⊆ Y given segment c) = det (K_c)_A."""
        found = np.empty((self.n_segments, self.n_items, self.n_items))
        one = np.eye(self.n_items)
        for c, K in enumerate(found):
            L = self.L(c)
            K[:] = np.linalg.solve(L + one, L)  # they commute
        return read_only(found)

    @cached_property
    def log_empty(self) -> float:
        """log P(∅)."""
        return float(np.logaddexp.reduce(self.log_weights - self.log_normalisers))

    @cached_property
    def eigenvalues(self) -> npt.NDArray[np.complex128]:
        """Of every L_c, (n_segments, n_items). Their real parts are positive."""
        found = np.array([np.linalg.eigvals(self.L(c)) for c in range(self.n_segments)], dtype=complex)
        return np.asarray(np.maximum(found.real, 0) + 1j * found.imag)


def _check_definite(C: Floats) -> None:
    one = np.eye(C.shape[1])
    for each in C:
        try:
            np.linalg.cholesky((each + each.T) / 2 - (1 - SLACK) * one + SLACK * np.abs(each).max() * one)
        except np.linalg.LinAlgError:
            raise InputError(
                "the symmetric part of an interaction has an eigenvalue below 1; expected I + U Uᵀ + A, A skew"
            ) from None

"""Blend: S = (1 − τ)(w₀ I + Σ_g w_g S_g) + τ 11ᵀ with strengths τ and w that are learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats, Ints

MAX_STRENGTH = 1 - 1e-4  # the rest of the stick, the weight of I, keeps S definite
LOW, MEDIUM, HIGH = 0.02, 0.3, 0.6  # strengths to start from


@dataclass(frozen=True, eq=False)
class Blend:
    """Similarities, and whether all items also share a uniform similarity τ.

    The weights are those of a broken stick: w_1 = s_1, w_2 = (1 − s_1) s_2 and so on, and the rest is w₀. So any s and
    τ between 0 and 1 give a similarity, and a strength can be exactly 0. With `fixed`, S is the one similarity given.

    Examples
    --------
    >>> Blend((), uniform=True).matrix(np.array([0.3]), 2).round(2).tolist()
    [[1.0, 0.3], [0.3, 1.0]]
    """

    similarities: tuple[Floats, ...]
    uniform: bool
    fixed: bool = False  # the one similarity is S itself, and there is nothing to learn
    names: tuple[str, ...] = ()

    @property
    def n_strengths(self) -> int:
        return 0 if self.fixed else len(self.similarities) + self.uniform

    @property
    def strength_names(self) -> tuple[str, ...]:
        """Names of the strengths: τ first, then those of the similarities."""
        return () if self.fixed else (*(("uniform",) if self.uniform else ()), *self.names)

    def starts(self) -> list[Floats]:
        """Return several starts: where no items are alike all derivatives are zero, which is a saddle.

        The first has no similarity. The others have, for each τ, all similarities to a medium extent, or one of them to
        a high and the others to a low extent.
        """
        if self.fixed:
            return [np.zeros(0)]
        n = len(self.similarities)
        mixes = [np.full(n, MEDIUM / max(n, 1)), *(np.where(np.arange(n) == g, HIGH, LOW) for g in range(n))]
        taus = ([LOW], [MEDIUM]) if self.uniform else ([],)
        return [np.zeros(self.n_strengths), *(np.array([*tau, *mix]) for tau in taus for mix in mixes)]

    def among(self, items: Ints) -> Blend:
        """Return the blend of some of the items."""
        some = tuple(S[np.ix_(items, items)] for S in self.similarities)
        return Blend(some, self.uniform, self.fixed, self.names)

    def _broken(self, phi: Floats) -> tuple[float, Floats, Floats]:
        """Return τ, w and ∂w_g/∂s_h."""
        tau, s = (float(phi[0]), phi[1:]) if self.uniform else (0.0, phi)
        left = np.concatenate([[1.0], np.cumprod(1 - s)])  # before each break
        w = s * left[:-1]
        slopes = np.diag(left[:-1])
        for g in range(len(s)):
            slopes[g, :g] = -w[g] / (1 - s[:g])
        return tau, w, slopes

    def strengths(self, phi: Floats) -> tuple[Floats, Floats]:
        """Return τ and w, and their Jacobian in φ."""
        tau, w, slopes = self._broken(phi)
        if not self.uniform:
            return w, slopes
        change = np.eye(len(phi))
        change[1:, 1:] = slopes
        return np.concatenate([[tau], w]), change

    def matrix(self, phi: Floats, n_items: int) -> Floats:
        """Return S."""
        if self.fixed:
            return self.similarities[0]
        tau, w, _ = self._broken(phi)
        S = np.eye(n_items) * (1 - w.sum())
        for weight, each in zip(w, self.similarities, strict=True):
            S += weight * each
        return np.asarray((1 - tau) * S + tau)

    def gradient(self, phi: Floats, G: Floats) -> Floats:
        """Return ⟨G, ∂S/∂φ⟩ for every strength."""
        if self.fixed:
            return np.zeros(0)
        tau, w, slopes = self._broken(phi)
        of_unit = float(np.trace(G))
        of_each = np.array([float(np.vdot(G, S)) for S in self.similarities])
        of_weights = (1 - tau) * ((of_each - of_unit) @ slopes) if len(w) else np.zeros(0)
        if not self.uniform:
            return np.asarray(of_weights)
        of_base = (1 - w.sum()) * of_unit + float(w @ of_each)
        return np.concatenate([[float(G.sum()) - of_base], of_weights])

"""How similarities are blended: S = (1 − τ)(w₀ I + Σ_g w_g S_g) + τ 11ᵀ, the strengths τ and w to be learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats, Ints

MOST = 1 - 1e-4  # the largest share that a breaking of the stick may have: of the rest, I keeps S definite
LITTLE, SOME, MUCH = 0.02, 0.3, 0.6  # strengths to start from


@dataclass(frozen=True, eq=False)
class Blend:
    """The similarities, one after the other, and whether all items are also alike in one way, to an extent τ.

    The weights are what a stick is broken into: w_1 = s_1, w_2 = (1 − s_1) s_2 and so on, and what is left is w₀. So
    any of s and τ between 0 and 1 gives a similarity, and a strength can be exactly 0. Without either, S is as given.

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
        """What the strengths are called: τ first, then those of the similarities."""
        return () if self.fixed else (*(("uniform",) if self.uniform else ()), *self.names)

    def starts(self) -> list[Floats]:
        """Several: where no items are alike the slopes in all strengths are zero, and nothing leads away from there.

        None at all, and of each τ, all similarities to some extent, or one of them much and the others little.
        """
        if self.fixed:
            return [np.zeros(0)]
        n = len(self.similarities)
        mixes = [np.full(n, SOME / max(n, 1)), *(np.where(np.arange(n) == g, MUCH, LITTLE) for g in range(n))]
        taus = ([LITTLE], [SOME]) if self.uniform else ([],)
        return [np.zeros(self.n_strengths), *(np.array([*tau, *mix]) for tau in taus for mix in mixes)]

    def among(self, items: Ints) -> Blend:
        """Of some items alone."""
        some = tuple(S[np.ix_(items, items)] for S in self.similarities)
        return Blend(some, self.uniform, self.fixed, self.names)

    def _broken(self, phi: Floats) -> tuple[float, Floats, Floats]:
        """τ, w and ∂w_g/∂s_h."""
        tau, s = (float(phi[0]), phi[1:]) if self.uniform else (0.0, phi)
        left = np.concatenate([[1.0], np.cumprod(1 - s)])  # before each break
        w = s * left[:-1]
        slopes = np.diag(left[:-1])
        for g in range(len(s)):
            slopes[g, :g] = -w[g] / (1 - s[:g])
        return tau, w, slopes

    def strengths(self, phi: Floats) -> tuple[Floats, Floats]:
        """τ and w, and how they change with φ."""
        tau, w, slopes = self._broken(phi)
        if not self.uniform:
            return w, slopes
        change = np.eye(len(phi))
        change[1:, 1:] = slopes
        return np.concatenate([[tau], w]), change

    def matrix(self, phi: Floats, n_items: int) -> Floats:
        """S."""
        if self.fixed:
            return self.similarities[0]
        tau, w, _ = self._broken(phi)
        S = np.eye(n_items) * (1 - w.sum())
        for weight, each in zip(w, self.similarities, strict=True):
            S += weight * each
        return np.asarray((1 - tau) * S + tau)

    def gradient(self, phi: Floats, G: Floats) -> Floats:
        """⟨G, ∂S/∂φ⟩ for every strength."""
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

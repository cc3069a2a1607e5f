"""How people choose from slates: a DPP over the candidates of each, by four numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Bools, Floats

NUMBERS = ("intercept", "slope", "strength", "reach")
AT_ONCE = 4_000_000  # numbers, of as many slates as are looked at together
FAR = 30.0  # logits and logarithms beyond which nothing changes


class Choice(NamedTuple):
    """L = D S D over the candidates of a slate, D² = exp(intercept + slope · score), S = (1 − α) I + α exp(−(1 − s)/ρ²)
    with α the strength and ρ the reach of repulsion, s how alike candidates are."""

    intercept: float
    slope: float
    strength: float  # α, from 0 to 1
    reach: float  # ρ, above 0

    @property
    def free(self) -> Floats:
        """As numbers without bounds: of the strength the logit, of the reach the logarithm."""
        return np.array([self.intercept, self.slope, np.log(self.strength / (1 - self.strength)), np.log(self.reach)])

    @classmethod
    def of(cls, free: Floats) -> Choice:
        logit, log_reach = np.clip(free[2:], -FAR, FAR)
        return cls(float(free[0]), float(free[1]), float(1 / (1 + np.exp(-logit))), float(np.exp(log_reach)))


@dataclass(frozen=True, eq=False)
class SlatesProblem:
    """The mean log-likelihood of what was chosen, exactly: log det L_Y − log det(I + L) over the candidates."""

    scores: Floats  # (n_slates, n)
    chosen: Bools  # (n_slates, n)
    there: Bools  # (n_slates, n)
    alike: Floats  # (n_slates, n, n)

    def log_likelihood(self, choice: Choice) -> float:
        return self.with_gradient(choice)[0]

    def with_gradient(self, choice: Choice) -> tuple[float, Floats]:
        """And its gradient in the free numbers."""
        n_slates, n = self.scores.shape
        at_once = max(AT_ONCE // (n * n), 1)
        total, gradient = 0.0, np.zeros(4)
        for first in range(0, n_slates, at_once):
            value, part = self._part(choice, slice(first, first + at_once))
            total, gradient = total + value, gradient + part
        return total / n_slates, gradient / n_slates

    def _part(self, choice: Choice, rows: slice) -> tuple[float, Floats]:
        """∂ log det L_Y = tr(L_Y⁻¹ ∂L_Y) and ∂ log det(I + L) = tr((I + L)⁻¹ ∂L); candidates that are not there have an
        L of 0, and outside Y stands the identity. I + L is E M E with E the larger of 1 and D, so that M is a number
        whatever the worth."""
        scores, Y, there, alike = self.scores[rows], self.chosen[rows], self.there[rows], self.alike[rows]
        n = scores.shape[1]
        one, off = np.eye(n), 1 - np.eye(n)
        closeness = np.exp((alike - 1) / choice.reach**2) * off
        worth = np.where(there, choice.intercept + choice.slope * scores, -np.inf)
        log_E2 = np.maximum(worth, 0)
        d = np.exp(np.minimum(worth, 0) / 2)  # D over E
        both = d[:, :, None] * d[:, None, :]
        S = one + choice.strength * closeness
        inside = Y[:, :, None] & Y[:, None, :]
        S_Y, M = np.where(inside, S, one), both * S + one * np.exp(-log_E2)[:, :, None]
        value = np.linalg.slogdet(S_Y)[1].sum() - np.linalg.slogdet(M)[1].sum() + worth[Y].sum() - log_E2.sum()
        inverse = np.linalg.inv(M)
        outside = np.diagonal(inverse, axis1=1, axis2=2) * np.exp(-log_E2)  # of (I + L)⁻¹
        by_worth = np.where(there, Y - (1 - outside), 0)
        by_S = (np.where(inside, np.linalg.inv(S_Y), 0) - both * inverse) * closeness
        strength = choice.strength
        by_strength = strength * (1 - strength) * by_S.sum()
        by_reach = strength * (by_S * 2 * (1 - alike)).sum() / choice.reach**2
        return float(value), np.array([by_worth.sum(), (by_worth * scores).sum(), by_strength, by_reach])

    def information(self, choice: Choice, step: float = 1e-4) -> Floats:
        """Minus the second derivatives in the free numbers, from differences of gradients."""
        at, found = choice.free, np.empty((4, 4))
        for number in range(4):
            shift = step * np.eye(4)[number]
            ahead, behind = (self.with_gradient(Choice.of(at + side * shift))[1] for side in (1, -1))
            found[number] = (behind - ahead) / (2 * step)
        return np.asarray((found + found.T) / 2)

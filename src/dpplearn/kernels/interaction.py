"""How items act on each other in a set, apart from how much each is worth; and greedy sets by both, of many users at
once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import EPSILON, Floats, Ints

FLOOR = 1e-10  # what is left of an item at least: less is rounding, and the set impossible
LOWEST = -1e300  # the logarithm of a quality of 0, so that such items come last, and in their order
AT_ONCE = 4_000_000  # numbers, of as many users as are looked at together

# From the place of one candidate of each user, (n_users,), its row and its column of every S_c, (m, n_users, n).
Acting = Callable[[Ints], tuple[Floats, Floats]]


class Interaction(Protocol):
    """Matrices S_c of unit diagonal, one for all segments of people or one for each, whose shares are `weights`.

    A set Y of items of the qualities q has a probability in proportion to Π q_i · Σ_c weights_c det (S_c)_Y.
    """

    @property
    def weights(self) -> Floats: ...

    def among(self, items: Ints) -> Acting:
        """Of the candidates of every user, (n_users, n)."""
        ...


@dataclass(frozen=True, eq=False)
class DenseInteraction:
    """By all of S_c."""

    weights: Floats  # (m,)
    matrices: Floats  # (m, n_items, n_items)

    @classmethod
    def of(cls, weights: Floats, matrices: Floats) -> DenseInteraction:
        """Of matrices with any diagonal. An item that has 0 there, up to rounding, is independent of all others."""
        if len(matrices) == 1:
            weights = np.ones(1)
        scale = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
        rounding = matrices.shape[1] * EPSILON * scale.max(axis=1, keepdims=True)
        scale = np.where(scale > rounding, scale, np.inf)
        return cls(weights, matrices / scale[:, :, None] / scale[:, None, :])

    def among(self, items: Ints) -> Acting:
        users = np.arange(len(items))

        def acting(taken: Ints) -> tuple[Floats, Floats]:
            one = items[users, taken][:, None]
            return self.matrices[:, one, items], self.matrices[:, items, one]

        return acting


@dataclass(frozen=True, eq=False)
class FactoredInteraction:
    """By a few numbers per item, S_c in proportion to I + Z Ω_c Zᵀ."""

    weights: Floats  # (m,)
    factors: npt.NDArray[Any]  # Z, (n_items, n_columns)
    coupling: Floats  # Ω, (m, n_columns, n_columns)

    def among(self, items: Ints) -> Acting:
        users = np.arange(len(items))
        Z = self.factors[items].astype(float)  # (n_users, n, n_columns)
        omega = np.concatenate([self.coupling, self.coupling.transpose(0, 2, 1)])
        diagonal = 1 + np.array([np.einsum("unr,unr->un", Z @ each, Z) for each in self.coupling])
        scale = np.sqrt(diagonal)  # (m, n_users, n)

        def acting(taken: Ints) -> tuple[Floats, Floats]:
            ahead = Z[users, taken] @ omega  # (2 m, n_users, n_columns)
            both = np.matmul(Z, ahead.transpose(1, 2, 0)).transpose(2, 0, 1)
            row, column = both.reshape(2, *scale.shape) / (scale * scale[:, users, taken][:, :, None])
            return row, column

        return acting


@dataclass(frozen=True, eq=False)
class JoinedInteraction:
    """Those of several laws, each by its share."""

    weights: Floats  # (m,) of all of them, one behind the other
    parts: tuple[Interaction, ...]

    @classmethod
    def of(cls, shares: Floats, parts: Sequence[Interaction]) -> JoinedInteraction:
        weights = [share * part.weights for share, part in zip(shares, parts, strict=True)]
        return cls(np.concatenate(weights), tuple(parts))

    def among(self, items: Ints) -> Acting:
        each = [part.among(items) for part in self.parts]

        def acting(taken: Ints) -> tuple[Floats, Floats]:
            rows, columns = zip(*(act(taken) for act in each), strict=True)
            return np.concatenate(rows), np.concatenate(columns)

        return acting


@dataclass(frozen=True, eq=False)
class TunedInteraction:
    """Repulsion by how alike items are under another interaction: (1 − α) I + α exp(−(1 − s)/ρ²), with s the symmetric
    part of S, averaged over segments. As s are products of unit vectors, and 2 (1 − s) squared distances between them,
    it is positive semidefinite for α from 0 to 1, the strength, and any reach ρ. [WRBCJG18]"""

    base: Interaction
    strength: float
    reach: float

    @property
    def weights(self) -> Floats:
        return np.ones(1)

    def among(self, items: Ints) -> Acting:
        acting_there, users = self.base.among(items), np.arange(len(items))

        def acting(taken: Ints) -> tuple[Floats, Floats]:
            alike = likeness(self.base.weights, *acting_there(taken))
            row = self.strength * np.exp((alike - 1) / self.reach**2)
            row[users, taken] = 1
            return row[None], row[None]

        return acting


def likeness(weights: Floats, row: Floats, column: Floats) -> Floats:
    """How alike one candidate of each user is to all of them, (n_users, n), from its row and column of every S_c."""
    return np.asarray(np.einsum("m,mun->un", weights / weights.sum(), (row + column) / 2))


def likeness_among(interaction: Interaction, items: Ints) -> Floats:
    """How alike every two candidates of every user are, (n_users, n, n)."""
    acting, users = interaction.among(items), np.arange(len(items))
    n = items.shape[1]
    found = np.empty((len(items), n, n))
    for place in range(n):
        found[:, place] = likeness(interaction.weights, *acting(np.full(len(items), place)))
        found[users, place, place] = 1
    return np.minimum(found, 1)


def greedy_by_worth(interaction: Interaction, items: Ints, worth: Floats, k: int, strength: float) -> Ints:
    """For every user a set of k candidates, grown by the one that raises Σ worth + strength · log Σ_c weights_c det
    (S_c)_Y most; of those that do, by the first. Worth is the logarithm of quality. [CZZ18, WRBCJG18]

    Items and their worth are (n_users, n); a worth of −inf is no candidate. The places of the items as they were taken,
    (n_users, k); −1 where there are no more.
    """
    found = np.full((len(items), k), -1)
    k = min(k, items.shape[1])
    at_once = max(AT_ONCE // max(len(interaction.weights) * k * items.shape[1], 1), 1)
    for first in range(0, len(items), at_once):
        part = slice(first, first + at_once)
        found[part, :k] = _grown(interaction, items[part], worth[part], k, strength)
    return found


def _grown(interaction: Interaction, items: Ints, worth: Floats, k: int, strength: float) -> Ints:
    """With l_t and u_t the columns and rows of elimination, what is left of item j is 1 − Σ_t l_t(j) u_t(j)."""
    acting, users, m = interaction.among(items), np.arange(len(items)), len(interaction.weights)
    found, worth, left = np.full((len(items), k), -1), worth.copy(), np.ones((m, *items.shape))
    lower, upper = np.empty((2, m, len(items), k, items.shape[1]))
    share = np.repeat(interaction.weights[:, None], len(items), axis=1)
    for t in range(k):
        gain = np.einsum("mu,mun->un", share, left)
        best = np.argmax(worth + strength * np.log(np.maximum(gain, FLOOR)), axis=1)
        found[:, t] = np.where(worth[users, best] > -np.inf, best, -1)
        worth[users, best] = -np.inf
        pivot = np.maximum(left[:, users, best], FLOOR)  # (m, n_users)
        row, column = acting(best)
        row = row - _product(lower[:, users, :t, best], upper[:, :, :t])
        column = column - _product(upper[:, users, :t, best], lower[:, :, :t])
        upper[:, :, t], lower[:, :, t] = row, column / pivot[:, :, None]
        left -= upper[:, :, t] * lower[:, :, t]
        share = share * pivot
        share /= share.sum(axis=0)
    return found


def _product(at_taken: Floats, rows: Floats) -> Floats:
    """Σ_t of what each step left at the item that is taken, (n_users, m, t) as numpy picks it, times its row."""
    return np.asarray(np.einsum("umt,mutn->mun", at_taken, rows))

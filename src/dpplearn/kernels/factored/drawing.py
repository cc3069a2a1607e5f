"""Exact draws from one segment, with nothing N × N.

det(D² + A)_Y = Σ_S det A_S Π_{Y∖S} d² with A = D Z Ω Zᵀ D: Y is the union of T, in which items are independent with
chances p, and of S, from the DPP with L = B Ω Bᵀ, b_i = √p_i z_i. Where items X have been decided, P(S ∩ X = A) is
det(I + S_R Ω)/det(I + S Ω) · det(B_A Ω_R B_Aᵀ), with S_R = B_Rᵀ B_R of the others and Ω_R = Ω (I + S_R Ω)⁻¹. So with
Ω_R kept for blocks of items, most of them passed over at once, it takes little to find the next block that S enters.
Within it, halves are empty with probability det(I − B_Hᵀ B_H Ω'), Ω' given what has been decided, down to a few items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import EPSILON, Floats, Ints
from dpplearn.kernels.compiling import loops
from dpplearn.kernels.factored.kernel import Singles, coupled

FEW = 64  # items that are decided one by one
BLOCKS = 64
MEMORY = 2**28  # bytes for the Ω_R of all segments


@dataclass(frozen=True)
class Segment:
    """What draws from one segment need. The items that matter most come first, in blocks of a like share of them."""

    factors: Singles
    rates: Floats  # of a Poisson process with a point at an item or more with probability p, added up
    order: Ints  # the items with interaction
    roots: Floats  # √p of these
    starts: Ints  # where in the order blocks start, and where the last one ends
    log_left: Floats  # log det(I + S_R Ω) at these places
    left: Floats  # Ω_R there

    def draw(self, rng: np.random.Generator) -> Ints:
        """A set, ascending."""
        return np.asarray(np.union1d(self._independent(rng), self.order[self._interacting(rng)]))

    def draw_nonempty(self, rng: np.random.Generator) -> Ints:
        """Draw from the distribution given Y ≠ ∅: T ≠ ∅ and any S, or T = ∅ and S ≠ ∅."""
        log_no_S = self.log_left[-1] - self.log_left[0]
        some_T, some_Y = -np.expm1(-self.rates[-1]), -np.expm1(-self.rates[-1] + log_no_S)
        if rng.random() * some_Y < some_T or not log_no_S < 0:
            return np.asarray(np.union1d(self._some_independent(rng), self.order[self._interacting(rng)]))
        return np.sort(self.order[self._interacting(rng, some=True)])

    def _independent(self, rng: np.random.Generator) -> Ints:
        return self._items_at(rng.random(rng.poisson(self.rates[-1])) * self.rates[-1])

    def _some_independent(self, rng: np.random.Generator) -> Ints:
        """Draw T given T ≠ ∅: its first point is distributed as that of the process given that there is one."""
        rate = self.rates[-1]
        first = -np.log1p(rng.random() * np.expm1(-rate))
        others = first + rng.random(rng.poisson(max(rate - first, 0.0))) * (rate - first)
        return self._items_at(np.append(others, first))

    def _items_at(self, points: Floats) -> Ints:
        return np.asarray(np.minimum(np.searchsorted(self.rates, points, side="right"), len(self.rates) - 1))

    def _interacting(self, rng: np.random.Generator, some: bool = False) -> Ints:
        """Draw S, as places in the order; with `some`, given S ≠ ∅."""
        taken, at, last = np.zeros(0, dtype=np.int64), 0, len(self.starts) - 1
        while at < last:
            B = self.rows(taken)
            now, end = self._log_chance(at, B), self._log_chance(last, B)
            if some and not len(taken):
                least = now + np.log1p(rng.random() * np.expm1(end - now))
            else:
                least = now + np.log(1 - rng.random())
                if end >= least:
                    break
            at = self._entered(at, least, B)
            places = np.arange(self.starts[at - 1], self.starts[at])
            taken = np.append(taken, self._within(places, given_in(self.left[at - 1], B), rng))
        return taken

    def rows(self, places: Ints) -> Floats:
        """b_i of some places."""
        return np.asarray(self.factors[self.order[places]] * self.roots[places, None])

    def _log_chance(self, at: int, B: Floats) -> float:
        """log P(S has these alone among the blocks before), but for a number that is always the same."""
        sign, logdet = np.linalg.slogdet(B @ self.left[at] @ B.T)
        return float(self.log_left[at] + logdet) if sign > 0 else -np.inf

    def _entered(self, at: int, least: float, B: Floats) -> int:
        """The end of the first block at which the chance of nothing more falls below `least`."""
        low, high = at, len(self.starts) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._log_chance(middle, B) < least:
                high = middle
            else:
                low = middle
        return high

    def _within(self, places: Ints, core: Floats, rng: np.random.Generator) -> Ints:
        """What S has of a block of which it has some; `core` is Ω' given what has been decided before."""
        found = np.zeros(0, dtype=np.int64)
        while True:
            few, core = self._entered_few(places, core, rng)
            B = self.rows(few)
            K = B @ core @ B.T
            inside = np.empty(len(few), dtype=np.int64)
            inside = inside[: loops("factored", "drawing").draw(K, True, rng, inside)]
            found, places = np.append(found, few[inside]), places[places > few[-1]]
            if not len(places):
                return found
            K[np.arange(len(few)), np.arange(len(few))] -= ~np.isin(np.arange(len(few)), inside)
            core = core - core @ B.T @ np.linalg.solve(K, B @ core)
            if rng.random() < chance_of_none(gram(self.rows(places)), core):
                return found

    def _entered_few(self, places: Ints, core: Floats, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """The first few places of which S has some, where it has some of all; and Ω' given that it has none before."""
        if len(places) <= FEW:
            return places, core
        of_all = gram(self.rows(places))
        while len(places) > FEW:
            half = len(places) // 2
            of_half = gram(self.rows(places[:half]))
            none, none_of_half = chance_of_none(of_all, core), chance_of_none(of_half, core)
            if rng.random() * (1 - none) < none_of_half - none:
                core = np.asarray(np.linalg.solve((np.eye(len(core)) - of_half @ core).T, core.T).T, dtype=float)
                places, of_all = places[half:], of_all - of_half
            else:
                places, of_all = places[:half], of_half
        return places, core


def segment(factors: Singles, active: Ints, log_odds: Floats, omega: Floats, blocks: int = BLOCKS) -> Segment:
    """Of log-odds in double precision; `active` are the items whose row of the factors is not 0."""
    p = 1 / (1 + np.exp(-log_odds[active]))
    mass = p * np.einsum("ij,ij->i", factors[active], factors[active])
    by_mass = np.argsort(-mass, kind="stable")
    order, roots = active[by_mass], np.sqrt(p[by_mass])
    starts = _starts(mass[by_mass], blocks)
    r, last = len(omega), len(starts) - 1
    S, log_left, left = np.zeros((r, r)), np.empty(last + 1), np.empty((last + 1, r, r))
    for at in range(last, -1, -1):
        if at < last:
            inside = slice(starts[at], starts[at + 1])
            S += gram(factors[order[inside]] * roots[inside, None])
        log_left[at], left[at] = coupled(omega, S)
    rates = np.cumsum(np.logaddexp(0, log_odds))
    return Segment(factors, rates, order, roots, starts, log_left, left)


def blocks_for(segments: int, columns: int) -> int:
    """How many blocks, so that what is kept of all segments fits."""
    return int(np.clip(MEMORY // (8 * segments * max(columns, 1) ** 2), 4, BLOCKS))


def _starts(mass: Floats, blocks: int) -> Ints:
    """Of blocks that are alike in the sum of their share of the mass and of the items."""
    n = len(mass)
    share = np.cumsum(mass / max(mass.sum(), EPSILON) + 1 / max(n, 1)) / 2
    inner = np.searchsorted(share, np.arange(1, blocks) / blocks)
    return np.unique(np.concatenate([[0], inner, [n]]))


def gram(rows: Floats) -> Floats:
    """Bᵀ B."""
    return np.asarray(rows.T @ rows)


def chance_of_none(S: Floats, core: Floats) -> float:
    """That a set of the DPP has none of the items of S = Bᵀ B: det(I − S Ω')."""
    return float(np.linalg.det(np.eye(len(S)) - S @ core))


def given_in(core: Floats, B: Floats) -> Floats:
    """Ω' once items of these rows are in."""
    return np.asarray(core - core @ B.T @ np.linalg.solve(B @ core @ B.T, B @ core)) if len(B) else core

"""Baskets of a known mixture over a large catalogue, drawn exactly and many at a time.

The items of a group A_q attract those of a group B_q: the interaction is U Vᵀ − V Uᵀ, where column q of U has u_i for
the items of A_q, and column q of V has v_j for those of B_q. Then

    det (I + X)_Y = Π_q (1 + Σ_{i ∈ Y ∩ A_q} u_i² Σ_{j ∈ Y ∩ B_q} v_j²).

To draw a set, draw independent items, and for each q, with probability w_q/(1 + w_q), add a pair drawn in proportion to
p_i u_i² and p_j v_j². w_q is the product of the sums of these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import dpplearn as dl
from dpplearn.arrays import Floats, Ints, Seed
from dpplearn.data.catalogue import Catalogue
from dpplearn.distributions.interaction import repelling_and_attracting
from dpplearn.learners.kernels import Segments

PAIRED = 0.04  # w_q of a group, about
OF_GROUP = 250  # items on either side
TASTE = 1.0  # standard deviation of how much segments like an item, in logarithms


@dataclass(frozen=True)
class KnownMixture:
    segments: Segments
    Z: Floats  # [U | V], (n_items, 2 n_groups)
    sides: Ints  # (n_groups, 2, items of a side)

    @classmethod
    def of(cls, n_items: int, segments: int, groups: int, mean_size: float, rng: Seed = None) -> KnownMixture:
        """Popularity falls like 1/rank, and groups are of items from the more popular fifth."""
        stream = np.random.default_rng(rng)
        popular = 1 / (10 + np.arange(n_items))
        likes = popular * np.exp(TASTE * stream.standard_normal((segments, n_items)))
        alone = mean_size - 2 * groups * PAIRED / (1 + PAIRED)
        p = np.minimum(likes * alone / likes.sum(axis=1, keepdims=True), 0.3)
        side = min(OF_GROUP, n_items // 5 // (2 * groups))
        sides = stream.permutation(n_items // 5)[: 2 * groups * side].reshape(groups, 2, side)
        Z = np.zeros((n_items, 2 * groups))
        for q, (A, B) in enumerate(sides):
            Z[A, q] = np.sqrt(np.sqrt(PAIRED) / p[:, A].sum(axis=1).mean())
            Z[B, groups + q] = np.sqrt(np.sqrt(PAIRED) / p[:, B].sum(axis=1).mean())
        weights = stream.dirichlet(np.full(segments, 5.0))
        core = repelling_and_attracting(0, groups)
        return cls(Segments.low_rank(weights, np.log(p / (1 - p)), Z, core), Z, sides)

    def draw(self, n: int, rng: Seed = None) -> dl.Baskets:
        """Draw n baskets and return those that are not empty."""
        stream = np.random.default_rng(rng)
        sizes = stream.multinomial(n, self.segments.weights)
        rows, items = [], []
        first = 0
        for c, size in enumerate(sizes.tolist()):
            for row, item in (_independent(self.segments.components.p[c], size, stream), *self._pairs(c, size, stream)):
                rows.append(first + row)
                items.append(item)
            first += size
        pairs = np.unique(np.concatenate(rows) * self.segments.n_items + np.concatenate(items))
        row, item = np.divmod(pairs, self.segments.n_items)
        _, row = np.unique(row, return_inverse=True)  # without the empty ones
        return dl.Baskets.from_pairs(row, item, int(row.max()) + 1, Catalogue.numbered(self.segments.n_items))

    def _pairs(self, c: int, n: int, rng: np.random.Generator) -> list[tuple[Ints, Ints]]:
        p, groups = self.segments.components.p[c], len(self.sides)
        found = []
        for q, (A, B) in enumerate(self.sides):
            of_A, of_B = p[A] * self.Z[A, q] ** 2, p[B] * self.Z[B, groups + q] ** 2
            w = of_A.sum() * of_B.sum()
            rows = np.flatnonzero(rng.random(n) < w / (1 + w))
            found += [(rows, rng.choice(side, len(rows), p=part / part.sum())) for side, part in ((A, of_A), (B, of_B))]
        return found


def _independent(p: Floats, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw independent items for n baskets, as pairs of a basket and an item that may be repeated.

    A basket gets a Poisson number of copies of an item, with mean −log(1 − p). It has none with probability 1 − p.
    """
    counts = rng.poisson(-n * np.log1p(-p))
    return rng.integers(n, size=counts.sum()), np.repeat(np.arange(len(p)), counts)

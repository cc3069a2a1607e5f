"""The minors of baskets where eigenvalues are near 1: of the indefinite bordered matrix, by LU with row pivots."""

from __future__ import annotations

from functools import cached_property, partial, reduce
from operator import add
from typing import TYPE_CHECKING

import numpy as np

from dpplearn.arrays import Floats, Items
from dpplearn.distributions.compiled import loops
from dpplearn.distributions.components import Sets
from dpplearn.distributions.determinants import doubtful_pivot, two_smallest
from dpplearn.distributions.passes import NO_DELTA, Share, check_items, one_by_one, over_threads

if TYPE_CHECKING:
    from dpplearn.distributions.spectral import Bordered

LARGE = 32  # sets of more items go through LAPACK: few of them fill a processor


class BorderedMinors:
    """E scaled to A_ii + |U_i|² = 1, so that a pivot is compared with 1, and the minors Y ∪ border of baskets.

    Left out are the sets whose two smallest pivots are doubtful, and those of a size that is not possible.
    """

    def __init__(self, bordered: Bordered, baskets: Sets, threads: int | None) -> None:
        check_items(len(bordered.scale), baskets)
        self.baskets, self.threads, self.loop = baskets, threads, loops("bordered").bordered
        self.possible_sizes = bordered.possible_sizes
        E, scale = bordered.matrix, bordered.scale
        self.n_items, self.border = len(scale), np.arange(len(scale), len(E))
        self.inverse = np.ones(len(E))
        with np.errstate(divide="ignore"):
            self.inverse[: self.n_items] = np.where(scale > 0, 1 / scale, 0)
            self.log_scale = 2 * np.log(scale)  # what scaling took from log det, per item
            self.log_empty = float(np.log(-E[self.border, self.border]).sum())
        self.C = E * self.inverse[:, None]
        self.C *= self.inverse

    def sums(self) -> tuple[float, float, Floats]:
        """Σ w log|det|, the weight of the sets left out, and Delta without them, with the border last."""
        values, parts = self._pass(want_delta=True)
        upper = reduce(add, parts)
        delta = upper + upper.T
        np.fill_diagonal(delta, upper.diagonal())
        delta *= self.inverse[:, None]
        delta *= self.inverse
        return *self._summed(values), delta

    def logdet(self) -> tuple[float, float]:
        """The same without Delta."""
        return self._summed(self._values)

    def each(self) -> Floats:
        """log|det| of every basket, −inf where it is left out."""
        return self._values.copy()

    @cached_property
    def _values(self) -> Floats:
        return self._pass(want_delta=False)[0]

    def _summed(self, values: Floats) -> tuple[float, float]:
        weights, trusted = self.baskets.weights, ~np.isneginf(values)
        return float(weights[trusted] @ values[trusted]), float(weights[~trusted].sum())

    def _pass(self, *, want_delta: bool) -> tuple[Floats, list[Floats]]:
        """log|det| of every basket, and from each thread an upper triangle of the sum of inverses."""
        values, groups = np.empty(len(self.baskets)), self.baskets.by_size

        def part(share: Share) -> Floats:
            delta = np.zeros(self.C.shape) if want_delta else NO_DELTA
            for group in groups:
                mine = share.among(len(group.rows))
                rows = group.rows[mine]
                values[rows] = self._sets_of_one_size(group.sets[mine], self.baskets.weights[rows], delta)
            return delta

        work = sum(len(group.rows) * (group.sets.shape[1] + len(self.border)) ** 3 for group in groups)
        large = any(group.sets.shape[1] > LARGE for group in groups)
        return values, over_threads(part, work, self.threads, with_blas=large)

    def _sets_of_one_size(self, sets: Items, weights: Floats, delta: Floats) -> Floats:
        """log|det| of each, whose weighted inverses are added into delta unless it is empty."""
        n, k = sets.shape
        if k not in self.possible_sizes:
            return np.full(n, -np.inf)
        if k == 0:
            if delta.size:  # the inverse of the border alone, −D⁻¹
                delta[self.border, self.border] += float(weights.sum()) / self.C[self.border, self.border]
            return np.full(n, self.log_empty)
        smallest = doubtful_pivot(self.n_items, len(self.border) + k)
        if k > LARGE:
            values = one_by_one(self.C, sets, self.border, weights, delta, partial(_lu, smallest))
            return np.asarray(values + self.log_scale[sets].sum(axis=1))
        values = np.empty(n)
        self.loop(self.C, self.log_scale, sets, weights, smallest, values, delta, delta.size > 0)
        return values


def _lu(smallest: float, minor: Floats, want_inverse: bool) -> tuple[float, Floats]:
    """log|det| and the upper triangle of the inverse; −inf and nothing where two pivots leave it in doubt."""
    from scipy.linalg import lapack

    factor, swaps, info = lapack.dgetrf(minor)
    pivots = np.abs(np.diag(factor))
    if info != 0 or not two_smallest(pivots) >= smallest:
        return -np.inf, NO_DELTA
    return np.log(pivots).sum(), np.triu(lapack.dgetri(factor, swaps)[0]) if want_inverse else NO_DELTA

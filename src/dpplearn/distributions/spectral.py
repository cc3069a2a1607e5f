"""SpectralDPP: a symmetric DPP, given by the eigenvalues and eigenvectors of its marginal kernel K = V diag(λ) Vᵀ.

Eigenvalues of exactly 0 and exactly 1 are allowed, so L = V diag(λ/(1 − λ)) Vᵀ need not exist and sets can be
impossible. Probabilities of sets are minors of K or of the bordered matrix (see `SpectralDPP.bordered`). Conditioning
and tilting act on the factors F = V √λ and H = √(1 − λ), for which K = F Fᵀ and FᵀF + HᵀH = I. Sets of nearly identical
items, whose minors are lost in rounding, are computed from F as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import NO_ITEMS, Bools, Floats, Ints, Items, Seed, read_only
from dpplearn.data.baskets import Baskets
from dpplearn.distributions import sampling, sizes
from dpplearn.distributions.compiled import loops, worth_loading
from dpplearn.distributions.components import Best, Components, NextItems, Similarity, TopQuery, batches, float_array
from dpplearn.distributions.determinants import (
    SMALL_PIVOT,
    SetMinors,
    adjoin_rows,
    checked_eigh,
    decomposition_error,
    log_gram,
    orthonormalised,
    singular_values,
    split_space,
    svd_apart,
    symmetric_product,
    zero_pivot,
)
from dpplearn.distributions.interaction import similarity_of
from dpplearn.distributions.minors import symmetric_sums
from dpplearn.distributions.ranking import top_compiled
from dpplearn.errors import InputError
from dpplearn.utils.text import count

ORTHONORMAL = 1e-8  # how far VᵀV may be from I
BORDER = 1e-5  # eigenvalues closer than this to 1 are kept out of L, where they would swamp the others


@dataclass(frozen=True, eq=False, repr=False)
class SpectralDPP(Components):
    """A symmetric DPP as components of a distribution (m = 1): P(A ⊆ Y) = det K_A with K = V diag(λ) Vᵀ.

    Parameters
    ----------
    eigenvalues : array (n,)
        From 0 to 1.
    eigenvectors : array (n, n)
        Orthonormal, one per column.

    Examples
    --------
    >>> dpp = SpectralDPP([0.25, 0.5], [[1, 0], [0, 1]])
    >>> dpp
    SpectralDPP(2 items, rank 2, expected size 0.75)
    >>> dpp.L.diagonal().round(3).tolist()
    [0.333, 1.0]
    """

    eigenvalues: Floats  # (n_items,)
    eigenvectors: Floats  # (n_items, n_items)

    def __post_init__(self) -> None:
        lam, V = np.array(self.eigenvalues, float, order="C"), np.array(self.eigenvectors, float, order="C")
        if lam.ndim != 1 or V.shape != (len(lam), len(lam)):
            raise InputError(f"{lam.shape} eigenvalues with eigenvectors of shape {V.shape}; expected (n,) and (n, n)")
        if not (np.all(lam >= 0) and np.all(lam <= 1)):
            raise InputError(f"eigenvalues of K reach from {lam.min():g} to {lam.max():g}; expected 0 to 1")
        # VᵀV = I is O(N³) to check, and that VᵀV keeps one vector is O(N²)
        probe = np.sin(np.arange(1.0, len(lam) + 1))
        with np.errstate(over="ignore", invalid="ignore"):
            error = np.abs(V.T @ (V @ probe) - probe).max(initial=0)
        if not error < ORTHONORMAL:
            raise InputError("the eigenvectors are not orthonormal; expected VᵀV = I (from_K and from_L find them)")
        object.__setattr__(self, "eigenvalues", read_only(lam))
        object.__setattr__(self, "eigenvectors", read_only(V))

    @classmethod
    def from_K(cls, K: npt.ArrayLike) -> SpectralDPP:
        """Return the DPP of a marginal kernel, P(A ⊆ Y) = det K_A.

        K must be symmetric with eigenvalues from 0 to 1. Eigenvalues outside by at most 1e-9, or by the rounding of the
        type of the numbers (such as float32), are moved to 0 and 1.
        """
        lam, V, rounding = checked_eigh(K, "K")
        if lam[-1] > 1 + rounding:
            above = f"{lam[-1] - 1:.3g}"
            raise InputError(f"the largest eigenvalue of K is above 1 by {above}; if this matrix is L, use from_L")
        return cls(np.where(lam >= 1 - decomposition_error(len(lam)), 1, lam), V)

    @classmethod
    def from_L(cls, L: npt.ArrayLike) -> SpectralDPP:
        """Return the DPP of an L-ensemble kernel, P(Y) = det L_Y / det(L + I).

        L must be symmetric and positive semidefinite, up to the rounding of the type of the numbers.
        """
        odds, V, _ = checked_eigh(L, "L")
        lam = odds / (1 + odds)
        if lam[-1] == 1:
            raise InputError(f"the largest eigenvalue of L is {odds[-1]:.3g}, too close to infinity; use from_K")
        return cls(lam, V)

    @classmethod
    def from_factor(cls, B: Floats, columns: Floats | float = 1.0) -> SpectralDPP:
        """Return the DPP of L = B diag(columns²) Bᵀ, with one row of B per item.

        Small eigenvalues are more accurate than those found from L.
        """
        singular, V = svd_apart(B * columns)
        odds = singular**2
        return cls(odds / (1 + odds), V)

    @classmethod
    def from_K_factor(cls, F: Floats, n_ones: int | None = None) -> SpectralDPP:
        """Return the DPP of K = F Fᵀ, with one row of F per item. Singular values above 1 must be rounding.

        If the number of eigenvalues of exactly 1 is known, `n_ones` says so. Otherwise those within rounding are 1.
        """
        if F.shape[1] > len(F):
            F = np.asarray(np.linalg.qr(F.T, mode="r")).T
        singular, V = svd_apart(F)
        if n_ones is None:
            n_ones = int(np.count_nonzero(singular**2 >= 1 - decomposition_error(len(F))))
        lam = np.minimum(singular**2, np.nextafter(1, 0))
        lam[np.argsort(-singular, kind="stable")[:n_ones]] = 1
        return cls(lam, V)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> SpectralDPP:
        """Return the DPP of stored arrays, which are checked."""
        return cls(float_array(arrays, "eigenvalues"), float_array(arrays, "eigenvectors"))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that `from_arrays` takes."""
        return {"eigenvalues": self.eigenvalues, "eigenvectors": self.eigenvectors}

    def __repr__(self) -> str:
        ones = f", {np.count_nonzero(self.at_one)} eigenvalues at 1" if self.at_one.any() else ""
        items = count(self.n_items, "item")
        return f"SpectralDPP({items}, rank {self.rank}, expected size {self.eigenvalues.sum():.2f}{ones})"

    @property
    def m(self) -> int:
        """The number of components."""
        return 1

    @property
    def n_items(self) -> int:
        """The number of items."""
        return len(self.eigenvalues)

    @property
    def rank(self) -> int:
        """The number of positive eigenvalues, which is the size of the largest possible set."""
        return int(np.count_nonzero(self.eigenvalues))

    @property
    def size_range(self) -> range:
        """The possible sizes of a set: from the number of eigenvalues at 1 to the rank."""
        return range(int(np.count_nonzero(self.at_one)), self.rank + 1)

    @property
    def at_one(self) -> Bools:
        """A mask of the eigenvalues that are exactly 1."""
        return np.asarray(self.eigenvalues == 1)

    @cached_property
    def near_one(self) -> Bools:
        """A mask of the eigenvalues that belong to the border."""
        return self.eigenvalues > 1 - BORDER

    @property
    def odds(self) -> Floats:
        """r²_j = λ_j / (1 − λ_j), infinite where λ_j is 1."""
        with np.errstate(divide="ignore"):
            return self.eigenvalues / (1 - self.eigenvalues)

    @cached_property
    def K(self) -> Floats:
        """The marginal kernel, whose diagonal has the probability of each item."""
        return read_only(symmetric_product(self.eigenvectors, self.eigenvalues))

    @cached_property
    def L(self) -> Floats:
        """The L-ensemble kernel. It exists unless an eigenvalue of K is exactly 1."""
        if self.at_one.any():
            n_ones = self.size_range.start
            raise InputError(f"L does not exist: {n_ones} of {self.n_items} eigenvalues of K are exactly 1; use K")
        return read_only(symmetric_product(self.eigenvectors, self.odds))

    @cached_property
    def factor(self) -> Floats:
        """F = V √λ without the columns of λ_j = 0, one row per item, K = F Fᵀ."""
        positive = self.eigenvalues > 0
        return read_only(self.eigenvectors[:, positive] * np.sqrt(self.eigenvalues[positive]))

    @cached_property
    def bordered(self) -> SetMinors:
        """The minors of E = [[A + UUᵀ − UDUᵀ/4, U − UD/2], [·ᵀ, −D]], which also exists for eigenvalues of 1.

        U has the eigenvectors near 1, D = (1 − λ)/λ of those, A is the L of the others. Then
        log P(Y) = log|det E_{Y ∪ border}| + log_constant, and without such eigenvalues E is L. For E is congruent to
        [[A, U], [Uᵀ, −D]], with unit determinant, and its minors can be factored without row pivots: the pivots of
        items are those of a positive semidefinite matrix, and those of the border are negative.
        """
        near = self.near_one
        rest, border = self.eigenvalues[~near], self.eigenvalues[near]
        log_constant = float(np.log1p(-rest).sum() + np.log(border).sum())
        if not near.any():
            return SetMinors(self.L, np.sqrt(self.L.diagonal()), log_constant)
        U, D = self.eigenvectors[:, near], (1 - border) / border
        A = symmetric_product(self.eigenvectors[:, ~near], rest / (1 - rest)) + symmetric_product(U, 1 - D / 4)
        E = np.block([[A, U * (1 - D / 2)], [(U * (1 - D / 2)).T, -np.diag(D)]])
        return SetMinors(E, np.sqrt(A.diagonal()), log_constant)

    def log_empty(self) -> Floats:
        """Return log P(∅), (1,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log1p(-self.eigenvalues).sum(keepdims=True))

    def marginals(self) -> Floats:
        """Return P(i ∈ Y), (1, n)."""
        return self.K.diagonal()[None].copy()

    def pair_marginals(self, weights: Floats, rows: Ints, columns: Ints) -> Floats:
        """Return weights_0 P(i, j ∈ Y) for i in rows and j in columns. Entries with i = j are undefined."""
        p = self.K.diagonal()
        independent = np.outer(p[rows], p[columns])
        pairs = independent - self.K[np.ix_(rows, columns)] ** 2
        return np.asarray(weights[0] * np.where(pairs >= zero_pivot(self.n_items, 2) * independent, pairs, 0))

    def log_prob(self, sets: Baskets, threads: int | None = None) -> Floats:
        """Return log P(Y) of each set, (s, 1)."""
        sums = symmetric_sums(self.bordered, self.size_range, sets, threads, want_delta=False)
        return self.log_prob_by_minors(sums.each(), sets)[:, None]

    def log_prob_by_minors(self, log_det: Floats, sets: Baskets) -> Floats:
        """Return log P(Y) of each set, (s,), from the logarithms of its minors, which are −inf for sets in doubt."""
        values = log_det + self.bordered.log_constant
        if np.isneginf(log_det).any():
            for group in sets.by_size:
                doubtful = np.isneginf(log_det[group.rows])
                values[group.rows[doubtful]] = self.log_prob_by_factor(group.sets[doubtful])
        return values

    def log_prob_by_factor(self, sets: Items | Ints) -> Floats:
        """Return log P(A) of sets of one size, (s,), where minors have too few digits.

        P(A) = P(A ⊆ Y) P(no other item | A ⊆ Y) = det(F_A F_Aᵀ) det(Wᵀ HᵀH W), where W is an orthonormal basis of the
        vectors orthogonal to the rows of F_A. Where L exists this is det(L_A) Π(1 − λ), with L = B Bᵀ.
        """
        if sets.shape[1] not in self.size_range:
            return np.full(len(sets), -np.inf)
        if not sets.shape[1]:
            return np.repeat(self.log_empty(), len(sets))
        if not self.near_one.any():
            return log_gram(self._odds_factor, sets) + self.log_empty()
        values = log_gram(self.factor, sets)
        for row in np.flatnonzero(np.isfinite(values)):
            Q, W = split_space(self.factor[sets[row]])
            if self._ones_outside(Q):
                values[row] = -np.inf
            else:
                values[row] += 2 * np.log(singular_values(self._rest_factor @ W)).sum()
        return values

    def log_inclusion(self, sets: Baskets) -> Floats:
        """Return log P(A ⊆ Y) = log det K_A of each set, (s, 1)."""
        values = np.empty((len(sets.sizes), 1))
        for group in sets.by_size:
            values[group.rows, 0] = log_gram(self.factor, group.sets)
        return values

    def next(self, inclusion: bool, log_mass: Floats, sets: Baskets, items: Ints | None = None) -> NextItems:
        minors = self._inclusion if inclusion else self.bordered
        s, n, n_certain = len(sets), self.n_items, 0 if inclusion else self.size_range.start
        log_prob, scale, x = np.full(s, -np.inf), np.zeros(s), np.zeros((s, n))
        for rows, group in batches(sets, n):
            k = group.shape[1]
            if k > self.rank or k + 1 < n_certain:  # neither A nor any A ∪ i is possible
                continue
            log_prob[rows], scale[rows], x[rows], trusted = minors.adjoin(group, singular=k < n_certain)
            for row, A in zip(rows[~trusted], group[~trusted].astype(np.int64), strict=True):
                log_prob[row], scale[row], x[row] = self._next_of_one(inclusion, A)
        if items is not None:
            x = np.where(items >= 0, np.take_along_axis(x, np.maximum(items, 0), axis=1), 0)
        return log_prob[:, None], scale + log_mass[0], x

    def _next_of_one(self, inclusion: bool, A: Ints) -> tuple[float, float, Floats]:
        """Return log P(A), scale and x of `next` without minors.

        They come from the factor of K or L. With eigenvalues near 1, where no L exists, x has the probabilities of
        single items under the DPP of the other items given A ⊆ Y.
        """
        if inclusion or not self.near_one.any():
            log_det, distances = adjoin_rows(self.factor if inclusion else self._odds_factor, A)
            log_det += 0.0 if inclusion else self.bordered.log_constant
            return log_det, log_det if distances.any() else 0.0, distances
        (evidence,), rest = self.condition(A, NO_ITEMS)
        x, n_certain = np.zeros(self.n_items), rest.size_range.start
        if evidence == -math.inf or n_certain > 1:
            return -math.inf, 0.0, x
        _, scale, single, _ = rest.bordered.adjoin(np.zeros((1, 0), np.int32), singular=n_certain == 1)
        x[np.delete(np.arange(self.n_items), A)] = single[0]
        return float(self.log_prob_by_factor(A[None])[0]), float(scale[0] + evidence), x

    def top(self, query: TopQuery) -> Best:
        if self.bordered.n_border or not worth_loading():
            return super().top(query)
        least = np.empty(len(query.sets))
        of_scores = self.bordered.components
        of_probabilities = self._inclusion.components if query.inclusion else of_scores
        found = top_compiled(of_scores, of_probabilities, query, least)
        doubtful = np.flatnonzero(~(least >= SMALL_PIVOT))
        if len(doubtful):
            again = super().top(query._replace(sets=query.sets.subset(doubtful)))
            for to, values in zip(found, again, strict=True):
                to[doubtful] = values
        return found

    def condition(self, include: Ints, exclude: Ints) -> tuple[Floats, SpectralDPP]:
        """Return log P(include ⊆ Y, exclude ∩ Y = ∅), (1,), and the DPP of the other items given that.

        The rows of `include` are projected out of the factor. With L = B Bᵀ this gives the L of the others, and
        P(include ⊆ Y ⊆ include ∪ others) = det L_A det(I + L') / det(I + L). With eigenvalues near 1, F and H take the
        place of B. Then the rows of `exclude` are removed from F, which divides P by the determinant of FᵀF + HᵀH; see
        `tilt`.
        """
        others = np.setdiff1d(np.arange(self.n_items), np.concatenate([include, exclude]))
        has_L, k, n_ones = not self.near_one.any(), len(include), self.size_range.start
        F = self._odds_factor if has_L else self.factor
        evidence, W = log_gram(F, include[None]), np.eye(F.shape[1])  # (1,)
        if k and evidence[0] > -math.inf:
            Q, W = split_space(F[include])
            before = (F**2).sum(axis=1)
            F = F @ W
            F[(F**2).sum(axis=1) < zero_pivot(self.n_items, k + 1) * before] = 0
            n_ones = self._ones_outside(Q)
        F = F[others]
        if len(exclude) and not has_L:
            R, F, _ = orthonormalised(F, self._rest_factor @ W)
            possible = not R.min(initial=1) ** 2 < zero_pivot(self.n_items, len(exclude))
            evidence += 2 * np.log(R).sum() if possible else -math.inf
        if evidence[0] == -math.inf:  # any DPP will do: that under which every set is empty
            return evidence, SpectralDPP(np.zeros(len(others)), np.eye(len(others)))
        if has_L:
            rest = SpectralDPP.from_factor(F)
            return evidence + self.log_empty() - rest.log_empty(), rest
        return evidence, SpectralDPP.from_K_factor(F, n_ones)

    def _ones_outside(self, Q: Floats) -> int:
        """Return how many eigenvalues are still 1 given A ⊆ Y, where Q is an orthonormal basis of the rows of F_A.

        It is the number of directions in the span of the eigenvectors at 1 that are orthogonal to Q.
        """
        at_one = Q[self.at_one[self.eigenvalues > 0]]
        cosines = singular_values(at_one) if at_one.size else np.zeros(0)
        return len(at_one) - int(np.count_nonzero(cosines**2 >= zero_pivot(self.n_items, Q.shape[1])))

    def tilt(self, log_odds: Floats) -> tuple[Floats, SpectralDPP]:
        """Return log Σ_Y P(Y) exp(g·x_Y), (1,), and the DPP P'(Y) ∝ P(Y) exp(g·x_Y); g_i = −inf excludes an item.

        With D = diag(exp(g/2)) and the decomposition Q R = [D F; H], the sum is det(RᵀR) and the new factor is the top
        block of Q.
        """
        F, H, log_sum, excluded = self.factor, self._rest_factor, 0.0, np.isneginf(log_odds)
        if excluded.any():
            R, F, H = orthonormalised(np.where(excluded[:, None], 0, F), H)
            if R.min(initial=1) ** 2 < zero_pivot(self.n_items, int(excluded.sum())):
                return np.array([-np.inf]), self
            log_sum = 2 * float(np.log(R).sum())
        top = max(float(log_odds.max(initial=0)), 0.0)  # all rows are divided by exp(top/2), so that none overflows
        D = np.exp((log_odds - top) / 2)
        R, F, _ = orthonormalised(D[:, None] * F, H * math.exp(-top / 2), graded=True)
        log_sum += 2 * float(np.log(R).sum()) + len(R) * top
        return np.array([log_sum]), SpectralDPP.from_K_factor(F, self.size_range.start)

    def restrict(self, items: Ints) -> SpectralDPP:
        """Return the DPP of Y ∩ items, in the order of `items`."""
        if len(items) == self.n_items:
            return SpectralDPP(self.eigenvalues, self.eigenvectors[items])
        return SpectralDPP.from_K_factor(self.factor[items])

    def extend(self, p: Floats) -> tuple[Floats, SpectralDPP]:
        """Return log P(no new item | no old item), (1,), and the DPP with further independent items."""
        n, both = self.n_items, np.eye(self.n_items + len(p))
        both[:n, :n] = self.eigenvectors
        with np.errstate(divide="ignore"):
            return np.log1p(-p).sum(keepdims=True), SpectralDPP(np.append(self.eigenvalues, p), both)

    def with_copy(self, item: int) -> tuple[Floats, SpectralDPP]:
        """Return log P(no copy | no old item), (1,), and the DPP with a copy of an item at the end.

        With L = B Bᵀ, the row of the copy has the projection of the item's row onto the rows of the other items, and a
        further column with the remaining length. So the copy and the item repel each other by what they share with
        other items, and are independent if the item is independent of all others.
        """
        if self.at_one.any():
            raise InputError("with certain items (eigenvalues of K that are 1), new items must be independent")
        B = self._odds_factor
        others, zero = np.delete(B, item, axis=0), zero_pivot(self.n_items, self.n_items)
        explained = others.T @ np.linalg.lstsq(others.T, B[item], rcond=math.sqrt(zero))[0]
        own = float(np.linalg.norm(B[item] - explained))
        own = own if own**2 >= zero * float(B[item] @ B[item]) else 0.0
        wider = np.block([[B, np.zeros((self.n_items, 1))], [explained, np.array([own])]])
        return -np.log1p((wider[-1:] ** 2).sum(axis=1)), SpectralDPP.from_factor(wider)

    def log_sizes(self) -> Floats:
        """Return log P(|Y| = k) for k = 0..n, (1, n + 1)."""
        return sampling.log_size_table(self.eigenvalues, self.n_items)[-1:]

    def with_mean_size(self, k: int) -> SpectralDPP:
        """Return the DPP of t L with t such that E|Y| = k. Its distribution given |Y| = k is that of L."""
        certain = int(np.count_nonzero(self.at_one))
        free = ~self.at_one & (self.eigenvalues > 0)
        lam, wanted = self.eigenvalues.copy(), k - certain
        if 0 < wanted < np.count_nonzero(free):
            odds = sizes.tilt_to_size(self.odds[free], wanted) * self.odds[free]
            lam[free] = odds / (1 + odds)
        else:
            lam[free] = float(wanted > 0)
        return SpectralDPP(lam, self.eigenvectors)

    def sample(
        self, which: Ints, rng: Seed, k: int | None = None, nonempty: bool = False, threads: int | None = None
    ) -> list[Ints]:
        """Draw a set (ascending positions) per entry of `which`; of k items, or given that it is not empty.

        Eigenvectors are chosen first, then as many items from their span [KT12].
        """
        draw_eigenvectors: Callable[[int, np.random.Generator], tuple[Ints, Ints]]
        if k is not None:
            draw_eigenvectors = partial(sampling.choose_k, sampling.inclusion_table(self.eigenvalues, k))
        else:
            draw_eigenvectors = partial(sampling.choose, self.eigenvalues, nonempty)

        def some(rows: slice, stream: np.random.Generator) -> list[Ints]:
            chosen, offsets = draw_eigenvectors(rows.stop - rows.start, stream)
            items = np.empty(len(chosen), dtype=np.int64)
            given = (self.eigenvectors, self._squared_eigenvectors, chosen, offsets, stream, items)
            loops("sampling").draw_items(*given)
            return [np.sort(items[start:stop]) for start, stop in pairwise(offsets)]

        return sampling.in_streams(some, len(which), np.random.default_rng(rng), threads)

    def take(self, which: Ints) -> SpectralDPP:
        """Return the components `which`; there is one, number 0."""
        return self

    def similarity(self, weights: Floats, items: Ints) -> tuple[Floats, Similarity]:
        """Return the weight, and L, with eigenvalues near 1 lowered to 1 − BORDER, scaled to a unit diagonal."""
        return weights, similarity_of(self._lowered_L[None], items)

    @cached_property
    def _lowered_L(self) -> Floats:
        lam = np.minimum(self.eigenvalues, 1 - BORDER)
        return symmetric_product(self.eigenvectors, lam / (1 - lam))

    @cached_property
    def _inclusion(self) -> SetMinors:
        """The minors of K."""
        return SetMinors(self.K, np.sqrt(self.K.diagonal()), 0.0)

    @cached_property
    def _squared_eigenvectors(self) -> Floats:
        """One row per eigenvector: the distribution of an item drawn from it."""
        return np.ascontiguousarray((self.eigenvectors**2).T)

    @property
    def _rest_factor(self) -> Floats:
        """H = √(1 − λ) without the columns of λ_j = 0, so that FᵀF + HᵀH = I."""
        return np.diag(np.sqrt(1 - self.eigenvalues[self.eigenvalues > 0]))

    @cached_property
    def _odds_factor(self) -> Floats:
        """B = V √(λ/(1 − λ)) without the columns of λ_j = 0, so that L = B Bᵀ."""
        positive = self.eigenvalues > 0
        return np.asarray(self.eigenvectors[:, positive] * np.sqrt(self.odds[positive]))

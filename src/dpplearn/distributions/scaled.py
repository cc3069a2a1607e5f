"""ScaledDPPs: DPPs that share an interaction and differ in item qualities, L_c = D_c (I + X) D_c, D_c² = diag(o_c).

With p = o/(1 + o), e = 1/(1 + o) and T = absorb(p) of the interaction X:

    L = √o (I + X) √o        K = √p (I + √e T √e) √p        log Z = log det(I + L) = Σ log(1 + o) + log det(I + P X)

L and K have the same form √q (I + M) √q, so one function serves P(A ∪ i)/P(A), with q = o and M = X, and
P(A ∪ i ⊆ Y)/P(A ⊆ Y), with q = p and M = √e T √e.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from dpplearn.arrays import Bools, Floats, Ints, read_only
from dpplearn.distributions import ranking, sampling, sizes
from dpplearn.distributions.compiled import loops, worth_loading
from dpplearn.distributions.components import (
    Best,
    Components,
    NextItems,
    Sets,
    Similarity,
    members,
    sigmoid,
    weighted_sum,
)
from dpplearn.distributions.interaction import Dense, Interaction, LowRank
from dpplearn.distributions.minors import Share, over_threads
from dpplearn.errors import InputError

MAX_LOG_ODDS = 700.0  # exp overflows above 709
SMALL = 150  # items of a low-rank catalogue for which dense algorithms are faster


@dataclass(frozen=True, eq=False)
class ScaledDPPs(Components):
    """m DPPs with log-odds of their own and an interaction that is shared, or one for each.

    Examples
    --------
    >>> attracts = Dense(np.array([[[0.0, 2.0], [-2.0, 0.0]]]))
    >>> pair = ScaledDPPs(np.array([[-2.0, -2.0]]), attracts)
    >>> pair.marginals().round(3).tolist()
    [[0.167, 0.167]]
    """

    log_odds: npt.NDArray[Any]  # (m, n_items); learned low-rank ones are in single precision
    interaction: Interaction

    @classmethod
    def checked(cls, log_odds: npt.ArrayLike, interaction: Interaction) -> ScaledDPPs:
        """Return the components if shapes match and log-odds are finite or −inf."""
        log_odds = np.array(log_odds, order="C")
        if log_odds.dtype != np.float32:
            log_odds = log_odds.astype(float)
        if log_odds.ndim != 2 or not log_odds.size or log_odds.shape[1] != interaction.n_items:
            raise InputError(f"log_odds must have shape (m, {interaction.n_items}), got {log_odds.shape}")
        if interaction.g not in (1, len(log_odds)):
            raise InputError(
                f"expected 1 interaction matrix, or {len(log_odds)} (one per component), got {interaction.g}"
            )
        if not np.all(log_odds <= MAX_LOG_ODDS):
            raise InputError(f"log_odds must be at most {MAX_LOG_ODDS:g}, got {log_odds.max():g}")
        return cls(read_only(log_odds), interaction)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> ScaledDPPs:
        """Return the components that `arrays` describes."""
        for name in ("log_odds", *(("interaction",) if "interaction" in arrays else ("factors", "core"))):
            if arrays[name].dtype.kind != "f":
                raise InputError(f"{name} must be an array of floats, got {arrays[name].dtype}")
        interaction: Interaction
        if "interaction" in arrays:
            interaction = Dense.checked(arrays["interaction"])
        else:
            interaction = LowRank.checked(arrays["factors"], arrays["core"])
        return cls.checked(arrays["log_odds"], interaction)

    @property
    def m(self) -> int:
        return len(self.log_odds)

    @property
    def n_items(self) -> int:
        return int(self.log_odds.shape[1])

    @property
    def interaction_groups(self) -> Ints:
        return np.arange(self.m) if self.interaction.g > 1 else np.zeros(self.m, np.int64)

    @property
    def size_range(self) -> range:
        return range(int(np.isfinite(self.log_odds).sum(axis=1).max()) + 1)

    @cached_property
    def _log_odds(self) -> Floats:
        return read_only(np.array(self.log_odds, float, order="C"))

    @cached_property
    def odds(self) -> Floats:
        return read_only(np.exp(self._log_odds))

    @cached_property
    def p(self) -> Floats:
        """o/(1 + o), the marginals without interaction."""
        return read_only(sigmoid(self._log_odds))

    @cached_property
    def _log_p(self) -> Floats:
        return read_only(-np.logaddexp(0, -self._log_odds))

    @cached_property
    def _e(self) -> Floats:
        """1/(1 + o), which 1 − p would round to 0 for large odds."""
        return read_only(1 / (1 + self.odds))

    @cached_property
    def _root_e(self) -> Floats:
        return read_only(np.sqrt(self._e))

    @cached_property
    def _absorbed(self) -> tuple[Floats, Interaction]:
        """log det(I + P X) and T."""
        return self.interaction.absorb(self.p)

    @cached_property
    def log_Z(self) -> Floats:
        """log det(I + L_c), (m,)."""
        of_items = np.logaddexp(0, self._log_odds).sum(axis=1)
        if isinstance(self.interaction, Dense):  # a determinant takes a quarter of the time of T
            return read_only(of_items + self.interaction.log_det(self.p))
        return read_only(of_items + self._absorbed[0])

    @property
    def T(self) -> Interaction:
        return self._absorbed[1]

    def log_empty(self) -> Floats:
        return -self.log_Z

    @cached_property
    def _marginals(self) -> Floats:
        return read_only(self.p * (1 + self._e * self.T.diagonal()))

    def marginals(self) -> Floats:
        return self._marginals

    def pair_marginals(self, weights: Floats, rows: Ints, columns: Ints) -> Floats:
        """Return Σ_c weights_c (K_ii K_jj − K_ij K_ji) for i in rows and j in columns; undefined where i = j."""
        u, own = self.p * self._e, self._marginals
        found = np.zeros((len(rows), len(columns)))
        for c in np.flatnonzero(weights):
            T = self.T.take(np.array([c]))
            crossed = T.block(rows, columns)[0] * T.block(columns, rows)[0].T
            found += weights[c] * (
                np.outer(own[c, rows], own[c, columns]) - np.outer(u[c, rows], u[c, columns]) * crossed
            )
        return found

    def log_prob(self, sets: Sets, threads: int | None = None) -> Floats:
        of_items = np.zeros((len(sets), self.m))
        rows = np.repeat(np.arange(len(sets)), sets.sizes)
        for c, log_odds in enumerate(self._log_odds):
            of_items[:, c] = np.bincount(rows, log_odds[sets.indices], len(sets))
        return of_items + self.interaction.log_minors(sets, threads) - self.log_Z

    def log_mixture(self, log_mass: Floats, sets: Sets, threads: int | None = None) -> Floats:
        from dpplearn.distributions.statistics import log_segments

        if self.interaction.g > 1:
            return super().log_mixture(log_mass, sets, threads)
        minors = self.interaction.log_minors(sets, threads)[:, 0]  # det C_Y is a factor of every component
        return np.asarray(minors + log_segments(self._log_odds, log_mass - self.log_Z, sets, threads))

    def log_inclusion(self, sets: Sets) -> Floats:
        none = np.zeros(0, dtype=np.int64)
        return np.array([self._schur(True, basket, none)[0] for basket in members(sets)]).reshape(-1, self.m)

    def _schur(self, inclusion: bool, basket: Ints, items: Ints | None) -> tuple[Floats, Floats]:
        """Return log P_c(A) or log P_c(A ⊆ Y), (m,), and the factor by which each item multiplies it, (m, j)."""
        if inclusion:
            log_det, left = self.T.schur(basket, items, self._root_e)
            log_p, q = self._log_p[:, basket].sum(axis=1) + log_det, self.p
        else:
            log_det, left = self.interaction.schur(basket, items)
            log_p, q = self._log_odds[:, basket].sum(axis=1) + log_det - self.log_Z, self.odds
        q = q if items is None else q[:, items]
        return log_p, q * np.maximum(left, 0)

    def _next(
        self, inclusion: bool, log_mass: Floats, sets: Sets, items: Ints | None, threads: int | None
    ) -> NextItems:
        if isinstance(self.interaction, Dense) and worth_loading():
            return self._next_compiled(inclusion, log_mass, sets, items, threads)
        j = self.n_items if items is None else items.shape[-1]
        log_p, scale, x = np.empty((len(sets), self.m)), np.empty(len(sets)), np.empty((len(sets), j))
        for row, basket in enumerate(members(sets)):
            of_row = items if items is None or items.ndim == 1 else items[row]
            log_p[row], scale[row], x[row] = self._next_of_one(inclusion, log_mass, basket, of_row)
        return log_p, scale, x

    def _next_of_one(
        self, inclusion: bool, log_mass: Floats, basket: Ints, items: Ints | None
    ) -> tuple[Floats, np.float64, Floats]:
        log_p, factors = self._schur(inclusion, basket, items)
        scale, x = weighted_sum((log_mass + log_p)[None], factors[None])
        if items is None:
            x[0, basket] = 0
        else:
            x[0, (items < 0) | np.isin(items, basket)] = 0
        return log_p, scale[0], x[0]

    @cached_property
    def _scaled_T(self) -> Floats:
        """I + √e T √e as dense matrices, (m, n_items, n_items)."""
        assert isinstance(self.T, Dense)
        root = self._root_e
        return read_only(np.eye(self.n_items) + root[:, :, None] * self.T.X * root[:, None, :])

    def _terms(self, inclusion: bool) -> tuple[Floats, Floats, Floats, Floats]:
        """Return M, log q, q and b with log P_c(A), or log P_c(A ⊆ Y), = b + log det M_A + Σ_A log q; X is dense.

        M is (1 or m, n_items, n_items), q (m, n_items) and b (m,).
        """
        if inclusion:
            return self._scaled_T, self._log_p, self.p, np.zeros(self.m)
        assert isinstance(self.interaction, Dense)
        return self.interaction.C, self._log_odds, self.odds, -self.log_Z

    def _next_compiled(
        self, inclusion: bool, log_mass: Floats, sets: Sets, items: Ints | None, threads: int | None
    ) -> NextItems:
        s, n, terms = len(sets), self.n_items, self._terms(inclusion)
        candidates = np.zeros((0, 0), np.int64) if items is None else np.broadcast_to(items, (s, items.shape[-1]))
        candidates = np.ascontiguousarray(candidates, np.int64)
        log_p, scale, x = np.empty((s, self.m)), np.empty(s), np.empty((s, n if items is None else items.shape[-1]))
        compiled = loops("next_items")

        def part(share: Share) -> None:
            rows = share.among(s)
            given = (*terms, log_mass, sets.indices, sets.offsets, candidates, items is None)
            compiled.next_items(*given, rows.start, rows.stop, log_p, scale, x)

        over_threads(part, ranking.NEXT_COST * s, threads, with_blas=False)
        return log_p, scale, x

    def nested(self, inclusion: bool, items: Ints, orders: Ints) -> tuple[Floats, Floats]:
        # Only the minors of these items are needed, so the cost does not depend on the size of the catalogue.
        minors = (self.T if inclusion else self.interaction).block(items, items)  # (g or m, k + 1, k + 1)
        if inclusion:
            root = self._root_e[:, items]
            minors = root[:, :, None] * minors * root[:, None, :]
        minors = np.ascontiguousarray(minors + np.eye(len(items)))
        log_dets, left = (np.empty((len(orders), len(items), len(minors))) for _ in range(2))
        loops("next_items").nested_minors(minors, np.ascontiguousarray(orders, np.int64), log_dets, left)
        log_q = (self._log_p if inclusion else self._log_odds)[:, items]  # (m, k + 1)
        added = np.cumsum(log_q.T[orders], axis=1)  # (n_orders, k, m)
        log_p = np.concatenate([np.zeros((len(orders), 1, self.m)), added], axis=1) + log_dets
        log_p = log_p if inclusion else log_p - self.log_Z
        with np.errstate(divide="ignore"):
            return log_p, log_p + np.log(left) + log_q[:, -1]

    def top(
        self, log_mass: Floats, sets: Sets, k: int, candidate: Bools | None, inclusion: bool, threads: int | None = None
    ) -> Best:
        if isinstance(self.interaction, LowRank) and self.n_items > ranking.MIN_PRUNED_ITEMS:
            return ranking.top_pruned(self, self._bounds, log_mass, sets, k, candidate, inclusion, threads)
        if not isinstance(self.interaction, Dense) or not worth_loading():
            return super().top(log_mass, sets, k, candidate, inclusion, threads)
        of_K = self._terms(True) if inclusion else None
        return ranking.top_compiled(self._terms(False), of_K, log_mass, sets, k, candidate, np.empty(0), threads)

    @cached_property
    def _bounds(self) -> ranking.Bounds:
        assert isinstance(self.interaction, LowRank)
        return ranking.Bounds.of(self._log_odds, self.interaction, self.log_Z)

    def condition(self, include: Ints, exclude: Ints) -> tuple[Floats, ScaledDPPs]:
        remaining = np.setdiff1d(np.arange(self.n_items), np.concatenate([include, exclude]))
        log_det, interaction = self.interaction.include(include) if len(include) else (0.0, self.interaction)
        rest = ScaledDPPs(self.log_odds[:, remaining], interaction.keep(remaining))
        log_Z = rest.log_Z if len(remaining) else 0.0
        return self._log_odds[:, include].sum(axis=1) + log_det + log_Z - self.log_Z, rest

    def tilt(self, log_odds: Floats) -> tuple[Floats, ScaledDPPs]:
        tilted = ScaledDPPs(self._log_odds + log_odds, self.interaction)
        return tilted.log_Z - self.log_Z, tilted

    def restrict(self, items: Ints) -> ScaledDPPs:
        log_odds, p = self.log_odds[:, items], self.p
        if len(items) == self.n_items:
            return ScaledDPPs(log_odds, self.interaction.keep(items))
        if 2 * len(items) < self.n_items:  # cheaper: sum over all items and take those of S out again
            return ScaledDPPs(log_odds, self.T.keep(items).absorb(-p[:, items])[1])
        return ScaledDPPs(log_odds, self.interaction.sum_out_others(p, items))

    def extend(self, p: Floats) -> tuple[Floats, ScaledDPPs]:
        with np.errstate(divide="ignore"):
            new = np.tile(np.log(p) - np.log1p(-p), (self.m, 1))
            none = np.full(self.m, np.log1p(-p).sum())
        log_odds = np.hstack([self.log_odds, new])
        return none, ScaledDPPs(log_odds, self.interaction.extend(len(p)))

    def with_copy(self, item: int) -> tuple[Floats, ScaledDPPs]:
        """The copy repels the item by what both share with other items."""
        places = np.append(np.arange(self.n_items), item)
        own = self.odds[:, item] * (1 + self.interaction.diagonal()[:, item])
        return -np.log1p(own), ScaledDPPs(self.log_odds[:, places], self.interaction.keep(places))

    def dense(self) -> ScaledDPPs:
        """Return the same components with a dense interaction."""
        return ScaledDPPs(self._log_odds, self.interaction.dense()) if isinstance(self.interaction, LowRank) else self

    def L(self, c: int) -> Floats:
        """Return the kernel of one component as a matrix."""
        root, everything = np.sqrt(self.odds[c]), np.arange(self.n_items)
        X = self.interaction.take(np.array([c])).block(everything, everything)[0]
        return np.asarray(root[:, None] * (np.eye(self.n_items) + X) * root)

    def K(self, c: int) -> Floats:
        """Return the marginal kernel of one component as a matrix."""
        root, everything = np.sqrt(self.p[c] * self._e[c]), np.arange(self.n_items)
        T = self.T.take(np.array([c])).block(everything, everything)[0]
        return np.asarray(np.diag(self.p[c]) + root[:, None] * T * root)

    @cached_property
    def _eigenvalues(self) -> npt.NDArray[np.complex128]:
        """Eigenvalues of each L_c, (m, n_items). Their real parts are nonnegative."""
        found = np.array([np.linalg.eigvals(self.L(c)) for c in range(self.m)], dtype=complex)
        return np.asarray(np.maximum(found.real, 0) + 1j * found.imag)

    @property
    def _large_low_rank(self) -> LowRank | None:
        """The interaction if it is low-rank and the catalogue too large for dense algorithms."""
        return self.interaction if isinstance(self.interaction, LowRank) and self.n_items > SMALL else None

    def log_sizes(self) -> Floats:
        if (low_rank := self._large_low_rank) is not None:
            each = [sizes.LowRankSizes.of(log_odds, low_rank, c) for c, log_odds in enumerate(self._log_odds)]
            return np.array([of_component.log_sizes() for of_component in each])
        return np.array([sizes.log_sizes_of_eigenvalues(mu) for mu in self.dense()._eigenvalues])

    def marginals_given_size(self, k: int) -> tuple[Floats, Floats]:
        if k in (0, self.n_items):
            return self.log_sizes()[:, k], np.full((self.m, self.n_items), float(k > 0))
        if (low_rank := self._large_low_rank) is not None:
            each = [sizes.low_rank_marginals(log_odds, low_rank, c, k) for c, log_odds in enumerate(self._log_odds)]
        else:
            dense = self.dense()
            each = [sizes.dense_marginals(dense.L(c), dense._eigenvalues[c], k) for c in range(self.m)]
        log_p, marginals = zip(*each, strict=True)
        return np.array(log_p), np.array(marginals)

    @cached_property
    def _samplers(self) -> dict[int, sampling.Sampler]:
        """The samplers made so far."""
        return {}

    def sample(
        self, which: Ints, rng: Generator, k: int | None = None, nonempty: bool = False, threads: int | None = None
    ) -> list[Ints]:
        low_rank, needed = self._large_low_rank, np.unique(which)
        if k in (0, self.n_items) and np.isfinite(self.log_odds[needed]).all():
            return [np.arange(k) for _ in which]
        if nonempty and k is None and not np.all(self.log_Z[needed] > 0):
            raise InputError("under this model every set is empty, so there is no nonempty set to draw")
        # Given |Y| = k the distribution does not depend on a tilt by t, so draw from the tilt with mean size k.
        if low_rank is not None:
            of_size = {c: sizes.low_rank_tilt(self._log_odds[c], low_rank, c, k) for c in needed} if k else {}
            missing = of_size if k else {c: 0.0 for c in needed if c not in self._samplers}
            found = sampling.samplers(self._log_odds, low_rank, missing)
            if not k:
                self._samplers.update(found)
            return sampling.sample_low_rank(found if k else self._samplers, which, rng, k, nonempty, threads)
        dense = self.dense()
        if k is None:
            K = {c: dense.K(c) for c in needed}
        else:
            mu = {c: dense._eigenvalues[c] for c in needed}
            K = {c: sampling.marginal_kernel(dense.L(c), sizes.tilt_to_size(mu[c], k)) for c in needed}
        p_nonempty = {c: -np.expm1(-self.log_Z[c]) for c in needed} if nonempty and k is None else None
        return sampling.sample_dense(K, p_nonempty, which, rng, k, threads)

    def similarity(self, items: Ints) -> Similarity:
        return self.interaction.similarity(items)

    def take(self, which: Ints) -> ScaledDPPs:
        return ScaledDPPs(self.log_odds[which], self.interaction.take(which))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"log_odds": self.log_odds, **self.interaction.arrays()}

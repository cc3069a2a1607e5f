"""ScaledDPPs: DPPs that share an interaction and differ in item qualities, L_c = D_c (I + X) D_c, D_c² = diag(o_c).

With p = o/(1 + o), e = 1/(1 + o) and T = absorb(p) of the interaction X:

    L = √o (I + X) √o        K = √p (I + √e T √e) √p        log Z = log det(I + L) = Σ log(1 + o) + log det(I + P X)

L and K have the same form √q M √q, so one function serves P(A ∪ i)/P(A), with q = o and M = I + X, and
P(A ∪ i ⊆ Y)/P(A ⊆ Y), with q = p and M = I + √e T √e.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from dpplearn.arrays import Floats, Ints, Items, read_only
from dpplearn.data.baskets import Baskets
from dpplearn.distributions import ranking, sampling, sizes
from dpplearn.distributions.compiled import worth_loading
from dpplearn.distributions.components import (
    Best,
    Components,
    NextItems,
    Similarity,
    TopQuery,
    batches,
    float_array,
    relative,
    sigmoid,
)
from dpplearn.distributions.interaction import Dense, Interaction, LowRank, schur_complements
from dpplearn.errors import InputError
from dpplearn.utils.threads import one_blas_thread

MAX_LOG_ODDS = 700.0  # exp overflows above 709
SMALL = 150  # items of a low-rank catalogue for which dense algorithms are faster


@dataclass(frozen=True, eq=False)
class Form:
    """Matrices √q M √q with M = I + S X S: L_c, whose minors give P_c(A), or K_c, whose minors give P_c(A ⊆ Y)."""

    log_q: Floats  # (m, n_items)
    q: Floats  # (m, n_items)
    bias: Floats  # (m,) log P − log det (√q M √q)_A: −log Z for L, 0 for K
    interaction: Interaction
    scale: Floats | None = None  # (m, n_items) the diagonal of S, by default 1

    @cached_property
    def M(self) -> Floats:
        """M as dense matrices, (g, n_items, n_items)."""
        X = self.interaction.X
        if self.scale is not None:
            X = self.scale[:, :, None] * X * self.scale[:, None]
        return read_only(np.eye(self.q.shape[1]) + X)

    @property
    def terms(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The arguments of compiled loops."""
        return self.M, self.log_q, self.q, self.bias

    def matrix(self, c: int) -> Floats:
        """Return the matrix of one component."""
        root, M = np.sqrt(self.q[c]), self.M[c if self.interaction.g > 1 else 0]
        return np.asarray(root[:, None] * M * root)

    def adjoin(self, A: Items, items: Ints | None) -> tuple[Floats, Floats]:
        """Return log P_c for sets of one size, (s, m), and M_ii − M_iA M_A⁻¹ M_Ai of candidates, (g, s, j)."""
        if isinstance(self.interaction, Dense):
            log_det, left = schur_complements(self.M, A, items)
        else:
            log_det, V, W = self.interaction.eliminate(A, self.scale)
            left = self.interaction.schur(V, W, items, self.scale)
        return self.bias + (self.log_q[:, A].sum(axis=2) + log_det).T, np.maximum(left, 0)

    def along(self, items: Ints, orders: Ints) -> tuple[Floats, Floats]:
        """Return log P_c(A) and log P_c(A ∪ i) for all prefixes A of orders of items[:-1], with i = items[-1].

        Both are (n_orders, len(items), m). `orders` is (n_orders, len(items) - 1). One elimination per order serves all
        prefixes: after p steps, the last diagonal entry is the Schur complement of the first p items.
        """
        k, X = len(items) - 1, self.interaction.block(items, items)
        if self.scale is not None:
            X = self.scale[:, items, None] * X * self.scale[:, None, items]
        orders = np.column_stack([orders, np.full(len(orders), k)])
        M = (np.eye(k + 1) + X)[:, orders[:, :, None], orders[:, None, :]]  # (g, n_orders, k + 1, k + 1)
        left, log_q = np.empty((len(orders), k + 1, len(X))), self.log_q[:, items].T  # (k + 1, m)
        log_p = np.tile(self.bias, (len(orders), k + 1, 1))
        for p in range(k + 1):
            left[:, p] = M[..., k, k].T
            log_p[:, p + 1 :] += (np.log(M[..., p, p]).T + log_q[orders[:, p]])[:, None]
            rest = M[..., p + 1 :, p + 1 :]
            rest -= M[..., p + 1 :, p, None] * (M[..., p, None, p + 1 :] / M[..., p, p, None, None])
        with np.errstate(divide="ignore"):
            return log_p, log_p + log_q[k] + np.log(np.maximum(left, 0))

    def mixed(self, weights: Floats, left: Floats, items: Ints | None) -> Floats:
        """Return Σ_c w_c q_ci left_ci of candidates i, (s, j), for weights (s, m)."""
        q = self.q[:, None] if items is None else self.q[:, items]  # (m, 1 or s, j)
        if len(left) == 1:
            return np.asarray((weights[:, None] @ np.swapaxes(q, 0, 1))[:, 0] * left[0])
        return np.asarray(np.einsum("sm,msj->sj", weights, q * left))


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
            raise InputError(f"the interaction must have 1 or {len(log_odds)} matrices, got {interaction.g}")
        if not np.all(log_odds <= MAX_LOG_ODDS):
            raise InputError(f"log_odds must be at most {MAX_LOG_ODDS:g}, got {log_odds.max():g}")
        return cls(read_only(log_odds), interaction)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> ScaledDPPs:
        """Return the components that `arrays` describes."""
        if "interaction" in arrays:
            interaction: Interaction = Dense.checked(float_array(arrays, "interaction"))
        else:
            interaction = LowRank.checked(float_array(arrays, "factors"), float_array(arrays, "core"))
        return cls.checked(float_array(arrays, "log_odds"), interaction)

    @property
    def m(self) -> int:
        return len(self.log_odds)

    @property
    def n_items(self) -> int:
        return int(self.log_odds.shape[1])

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
    def _e(self) -> Floats:
        """1/(1 + o), which 1 − p would round to 0 for large odds."""
        return read_only(1 / (1 + self.odds))

    @cached_property
    def _absorbed(self) -> tuple[Floats, Interaction]:
        """log det(I + P X) and T."""
        return self.interaction.absorb(self.p)

    @cached_property
    def log_Z(self) -> Floats:
        """log det(I + L_c), (m,)."""
        X = self.interaction
        log_det = X.log_det(self.p) if isinstance(X, Dense) else self._absorbed[0]  # without T, half the time
        return read_only(np.logaddexp(0, self._log_odds).sum(axis=1) + log_det)

    @property
    def T(self) -> Interaction:
        return self._absorbed[1]

    @cached_property
    def _of_sets(self) -> Form:
        """L_c, whose minors give P_c(A)."""
        return Form(self._log_odds, self.odds, -self.log_Z, self.interaction)

    @cached_property
    def _of_inclusion(self) -> Form:
        """K_c, whose minors give P_c(A ⊆ Y)."""
        log_p = -np.logaddexp(0, -self._log_odds)
        return Form(log_p, self.p, np.zeros(self.m), self.T, np.sqrt(self._e))

    def log_empty(self) -> Floats:
        return -self.log_Z

    def marginals(self) -> Floats:
        return np.asarray(self.p * (1 + self._e * self.T.diagonal()))

    def pair_marginals(self, weights: Floats, rows: Ints, columns: Ints) -> Floats:
        """Return Σ_c weights_c (K_ii K_jj − K_ij K_ji) for i in rows and j in columns; undefined where i = j."""
        u, own = self.p * self._e, self.marginals()
        found = np.zeros((len(rows), len(columns)))
        for c in np.flatnonzero(weights):
            T = self.T.take(np.array([c]))
            crossed = T.block(rows, columns)[0] * T.block(columns, rows)[0].T
            found += weights[c] * (
                np.outer(own[c, rows], own[c, columns]) - np.outer(u[c, rows], u[c, columns]) * crossed
            )
        return found

    def log_prob(self, sets: Baskets, threads: int | None = None) -> Floats:
        of_items = np.zeros((len(sets), self.m))
        rows = np.repeat(np.arange(len(sets)), sets.sizes)
        for c, log_odds in enumerate(self._log_odds):
            of_items[:, c] = np.bincount(rows, log_odds[sets.indices], len(sets))
        return of_items + self.interaction.log_minors(sets, threads) - self.log_Z

    def log_mixture(self, log_mass: Floats, sets: Baskets, threads: int | None = None) -> Floats:
        from dpplearn.distributions.statistics import log_segments

        if self.interaction.g > 1:
            return super().log_mixture(log_mass, sets, threads)
        minors = self.interaction.log_minors(sets, threads)[:, 0]  # det C_Y is a factor of every component
        return np.asarray(minors + log_segments(self._log_odds, log_mass - self.log_Z, sets, threads))

    def log_inclusion(self, sets: Baskets) -> Floats:
        return self.next(True, np.zeros(self.m), sets, np.empty((len(sets), 0), np.int64))[0]

    def along(self, inclusion: bool, items: Ints, orders: Ints) -> tuple[Floats, Floats]:
        return (self._of_inclusion if inclusion else self._of_sets).along(items, orders)

    def next(self, inclusion: bool, log_mass: Floats, sets: Baskets, items: Ints | None = None) -> NextItems:
        form, j = self._of_inclusion if inclusion else self._of_sets, self.n_items if items is None else items.shape[1]
        log_p, scale, x = np.empty((len(sets), self.m)), np.empty(len(sets)), np.empty((len(sets), j))
        for rows, A in batches(sets, j * self.m):
            some = None if items is None else items[rows]
            log_p[rows], left = form.adjoin(A, some)
            scale[rows], weights = relative(log_mass + log_p[rows])
            x[rows] = form.mixed(weights, left, some)
            if some is None:
                x[rows[:, None], A] = 0
            else:
                x[rows] *= (some >= 0) & ~(some[:, :, None] == A[:, None, :]).any(axis=2)
        return log_p, scale, x

    def top(self, query: TopQuery) -> Best:
        if isinstance(self.interaction, LowRank) and self.n_items > ranking.MIN_PRUNED_ITEMS:
            return ranking.top_pruned(self, self._of_sets, self._bounds, query)
        if isinstance(self.interaction, LowRank) or not worth_loading():
            return super().top(query)
        probabilities = self._of_inclusion if query.inclusion else self._of_sets
        return ranking.top_compiled(self._of_sets.terms, probabilities.terms, query, np.empty(0))

    @cached_property
    def _bounds(self) -> ranking.Bounds:
        assert isinstance(self.interaction, LowRank)
        return ranking.Bounds(self.odds, self.interaction)

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
        interaction = self.interaction
        if len(items) < self.n_items:  # sum over the other items
            w = self.p.copy()
            w[:, items] = 0
            interaction = interaction.absorb(w)[1]
        return ScaledDPPs(self.log_odds[:, items], interaction.keep(items))

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

    def L(self, c: int) -> Floats:
        """Return the kernel of one component as a matrix."""
        return self._of_sets.matrix(c)

    @cached_property
    def _eigenvalues(self) -> npt.NDArray[np.complex128]:
        """Eigenvalues of each L_c, (m, n_items). Their real parts are nonnegative."""
        found = np.array([np.linalg.eigvals(self.L(c)) for c in range(self.m)], dtype=complex)
        return np.asarray(np.maximum(found.real, 0) + 1j * found.imag)

    @property
    def _large(self) -> bool:
        """Whether the components are low-rank and too large for dense algorithms."""
        return isinstance(self.interaction, LowRank) and self.n_items > SMALL

    def _low_rank(self, c: int) -> tuple[Floats, LowRank]:
        """Return log-odds and interaction of a component. Once used, the latter holds a copy of the factors."""
        assert isinstance(self.interaction, LowRank)
        return self._log_odds[c], self.interaction.take(np.array([c]))

    def log_sizes(self) -> Floats:
        if not self._large:
            return np.array([sizes.log_sizes_of_eigenvalues(mu) for mu in self._eigenvalues])
        return np.array([sizes.low_rank_log_sizes(*self._low_rank(c)) for c in range(self.m)])

    def log_rare_size(self, k: int) -> Floats:
        if not self._large:
            return super().log_rare_size(k)
        return np.array([sizes.low_rank_log_size(*self._low_rank(c), k) for c in range(self.m)])

    @cached_property
    def _samplers(self) -> dict[int, sampling.LowRankSampler]:
        """The samplers made so far, which take longer to make than to use."""
        return {}

    def _sampler(self, c: int, k: int | None) -> sampling.DenseSampler | sampling.LowRankSampler:
        """Return a sampler of one component, tilted to mean size k, which changes nothing given |Y| = k."""
        if not self._large:
            if k is None:
                return sampling.DenseSampler(self._of_inclusion.matrix(c), -np.expm1(-self.log_Z[c]))
            t = sizes.tilt_to_size(self._eigenvalues[c], k)
            identity = np.eye(self.n_items)
            return sampling.DenseSampler(identity - np.linalg.inv(identity + t * self.L(c)))
        if k is None and c in self._samplers:
            return self._samplers[c]
        log_odds, of_c = self._low_rank(c)
        if k is not None:
            return sampling.LowRankSampler(log_odds + sizes.low_rank_tilt(log_odds, of_c, k), of_c, self.m)
        return self._samplers.setdefault(c, sampling.LowRankSampler(log_odds, of_c, self.m))

    def sample(
        self, which: Ints, rng: Generator, k: int | None = None, nonempty: bool = False, threads: int | None = None
    ) -> list[Ints]:
        if k == self.n_items:  # the components `which` have sets of this size
            return [np.arange(k) for _ in which]
        with one_blas_thread():
            samplers = {c: self._sampler(c, k) for c in np.unique(which).tolist()}

            def some(rows: slice, stream: Generator) -> list[Ints]:
                return [samplers[c].draw(stream, k, nonempty) for c in which[rows].tolist()]

            return sampling.in_streams(some, len(which), rng, threads)

    def similarity(self, weights: Floats, items: Ints) -> tuple[Floats, Similarity]:
        own = weights if self.interaction.g > 1 else weights.sum(keepdims=True)
        return own, self.interaction.similarity(items)

    def take(self, which: Ints) -> ScaledDPPs:
        return ScaledDPPs(self.log_odds[which], self.interaction.take(which))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"log_odds": self.log_odds, **self.interaction.arrays()}

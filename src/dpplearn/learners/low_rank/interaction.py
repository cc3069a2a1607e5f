"""One batch of the low-rank learner, and the log-odds that an E-step asks for.

A batch is a step of Adam on Z in single precision, and damped steps of the segments' log-odds. The gradient of the mean
log-likelihood in Z is that of the batch's minors, Σ w (B + Bᵀ) W and so on with B the inverse of a minor, minus
Σ_c π_c times that of log Z_c, p_c Z (T_c + T_cᵀ), here of some segments in turn. The latter also gives the segments'
marginals, from which their log-odds move towards their targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from dpplearn.arrays import Floats, Ints, Items
from dpplearn.data.baskets import Baskets
from dpplearn.distributions.compiled import loops
from dpplearn.distributions.interaction import Singles, absorbed_core
from dpplearn.distributions.passes import Share, over_threads

RATE, DECAY, SQUARE_DECAY = 0.06, 0.9, 0.99  # of Adam; the rate falls to 0 along half a cosine
RIDGE = 5.0  # baskets: weight of the ridge penalty on Z
DAMPING, MAX_CHANGE = (
    0.7,
    1.0,
)  # fraction of the way to their targets that log-odds go in a step, and the largest change
MIN_PROBABILITY = 1e-9  # distance from 0 and 1 of marginals, which rounding may leave there
NO_LOG_MINORS = np.empty(0)  # for a pass that needs only the gradient
ALWAYS = 10**9  # nanoseconds of work: a step is always worth all threads

PRIOR_COUNT = 1.0  # baskets with an item, as frequent as in all segments together, added to those of each segment


class Active(NamedTuple):
    """The baskets restricted to the items that interact, as rows of Z."""

    items: Ints  # which they are
    indices: Items
    offsets: Ints

    @classmethod
    def of(cls, baskets: Baskets, items: Ints) -> Active:
        row = np.full(baskets.n_items, -1, dtype=np.int32)
        row[items] = np.arange(len(items))
        rows = row[baskets.indices]
        before = np.concatenate([[0], np.cumsum(rows >= 0)])
        return cls(items, rows[rows >= 0], before[baskets.offsets])


@dataclass(frozen=True)
class Moments:
    """Z and the moments of its gradients in Adam."""

    Z: Singles
    mean: Singles
    square: Singles

    NAMES: ClassVar[tuple[str, ...]] = ("Z", "mean", "square")

    @classmethod
    def first(cls, Z: Singles) -> Moments:
        return cls(Z, np.zeros_like(Z), np.zeros_like(Z))

    @property
    def arrays(self) -> dict[str, Singles]:
        return {name: getattr(self, name) for name in self.NAMES}


class Batch(NamedTuple):
    """The baskets of a batch, and the weight in the batch of every basket."""

    chosen: Ints
    weights: Floats

    @classmethod
    def of(cls, weights: Floats, number: int, of: int, rng: np.random.Generator) -> Batch:
        """Return one of several batches, between which the weight of every basket is divided evenly.

        Each batch gets ⌊weight/of⌋; the remainder goes to batches drawn at random. `rng` must be in the same state for
        all batches of an epoch.
        """
        to_all = np.floor(weights / of)
        place = (number - rng.integers(of, size=len(weights))) % of
        part = to_all + np.clip(weights - of * to_all - place, 0, 1)
        return cls(np.flatnonzero(part), part)


class Segment(NamedTuple):
    """A segment of the batch: its log-odds on the active items, and its weight in the sum."""

    log_odds: Floats
    weight: float


class Gradient(NamedTuple):
    """The gradient in Z as a sum of parts, and the marginals."""

    parts: list[Singles]  # one per thread
    marginals: list[Floats]  # of the active items, one array per segment


def gradient(
    Z: Singles,
    omega: Floats,
    repelling: int,
    active: Active,
    batch: Batch,
    segments: list[Segment],
    threads: int | None,
) -> Gradient:
    """Return the gradient of the batch mean of log det C_Y minus the weighted sum over the segments of log Z_c."""
    total = float(batch.weights.sum())

    def part(share: Share) -> tuple[Singles, list[Floats]]:
        into, rows = np.zeros_like(Z), share.among(len(batch.chosen))
        given = (active.indices, active.offsets, *batch[::-1], rows.start, rows.stop, into, NO_LOG_MINORS)
        loops("low_rank_minors").minors_of(Z, repelling, *given)
        into /= total
        return into, [_subtract(into, Z, omega, each) for each in segments[share.thread :: share.of]]

    parts = over_threads(part, ALWAYS, threads, with_blas=True)
    marginals: list[Floats] = [np.empty(0)] * len(segments)
    for thread, (_, found) in enumerate(parts):
        marginals[thread :: len(parts)] = found
    return Gradient([into for into, _ in parts], marginals)


def _subtract(into: Singles, Z: Singles, omega: Floats, segment: Segment) -> Floats:
    """Subtract the gradient of log Z_c and return the marginals of the segment."""
    p = 1 / (1 + np.exp(-segment.log_odds))
    _, T = absorbed_core(omega, single_gram(Z, p))
    Q = Z @ (T + T.T).astype(np.float32)
    along = np.einsum("ij,ij->i", Q, Z) / 2
    Q *= (segment.weight * p).astype(np.float32)[:, None]
    into -= Q
    return np.asarray(p + p * (1 - p) * along)


def single_gram(Z: Singles, p: Floats) -> Floats:
    """Return Zᵀ diag(p) Z, summed in single precision."""
    from scipy.linalg import blas

    lower = blas.ssyrk(1.0, (Z * np.sqrt(p).astype(np.float32)[:, None]).T, lower=1)
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T, dtype=float)


def adam(at: Moments, found: Gradient, ridge: float, step: int, steps: int) -> float:
    """Change Z in place by one step of Adam; return the learning rate."""
    rate = RATE * (1 + np.cos(np.pi * step / steps)) / 2
    of_mean, of_square = 1 - DECAY ** (step + 1), 1 - SQUARE_DECAY ** (step + 1)
    total = found.parts[0]
    for other in found.parts[1:]:
        total += other
    numbers = np.array([ridge, DECAY, SQUARE_DECAY, rate / of_mean, 1 / of_square], dtype=np.float32)
    loops("adam").adam(*(each.ravel() for each in (at.Z, at.mean, at.square, total)), numbers)
    return float(rate)


def damped_step(log_odds: Floats, marginals: Floats, targets: Floats) -> Floats:
    """Return the log-odds moved so that the marginals come nearer to those of the targets."""
    kept = np.clip(marginals, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    far = targets - (np.log(kept) - np.log1p(-kept))
    return np.asarray(log_odds + DAMPING * np.clip(far, -MAX_CHANGE, MAX_CHANGE))


def shrunk_log_odds(counts: Floats, shares: Floats, p: Floats) -> Floats:
    """Return the log-odds of t_ci = p_i (N_ci + s)/(n_c p_i + s/m_c), m_c the relative basket size of segment c."""
    size = np.maximum(counts.sum(axis=1) / np.maximum(shares * p.sum(), np.finfo(float).tiny), 1e-6)
    with_item = counts + PRIOR_COUNT
    without = shares[:, None] + PRIOR_COUNT / (size[:, None] * p) - with_item
    return np.asarray(np.log(with_item) - np.log(np.maximum(without, PRIOR_COUNT)))

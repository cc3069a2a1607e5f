"""What baskets say of a mixture kernel: their log-probabilities, and the sums that its learner needs. Sums, so they add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.data.blocks import LANES
from dpplearn.errors import InputError
from dpplearn.kernels.compiling import loops
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.tools.threads import pool, thread_count

NO_NUMBERS, NO_MATRIX = np.empty(0), np.empty((0, 0))
WORTH_A_THREAD = 100_000  # nanoseconds, about; below, handing over costs more than it saves
MINOR, SEGMENT = 8, 12  # times `Blocks.work`, and nanoseconds per basket and segment

Part = TypeVar("Part")


@dataclass(frozen=True)
class MinorSums:
    """Σ w log det C_Y and Δ = Σ w C_Y⁻ᵀ, scattered to (n_items, n_items)."""

    logdet: float
    delta: Floats


@dataclass(frozen=True)
class SegmentSums:
    """Σ w log Σ_c exp(bias_c + log_odds_c·x_Y); and with r_c how likely segment c is given a basket, Σ w r_c and
    Σ w r_c x_Y."""

    log_sum: float
    shares: Floats  # (n_segments,)
    counts: Floats  # (n_segments, n_items)


def minor_sums(C: Floats, baskets: Baskets, threads: int | None = None) -> MinorSums:
    """Sums over the minors of one matrix."""

    def share(thread: int, of: int) -> tuple[float, Floats]:
        delta = np.zeros(C.shape)
        return _minors(C, baskets, thread, of, delta, NO_NUMBERS), delta

    parts = _over_threads(share, MINOR * baskets.blocks.work, threads)
    delta = parts[0][1]
    for _, other in parts[1:]:
        delta += other
    return MinorSums(sum(logdet for logdet, _ in parts), delta)


def log_minors(C: Floats, baskets: Baskets, threads: int | None = None) -> Floats:
    """log det C_Y of every basket."""
    each = np.zeros(len(baskets.blocks.weights))
    _over_threads(
        lambda thread, of: _minors(C, baskets, thread, of, NO_MATRIX, each), MINOR * baskets.blocks.work, threads
    )
    return each[baskets.blocks.places]


def segment_sums(log_odds: Floats, bias: Floats, baskets: Baskets, threads: int | None = None) -> SegmentSums:
    """How the baskets divide among segments."""
    table, n, m = np.ascontiguousarray(log_odds.T), len(baskets), len(bias)

    def share(thread: int, of: int) -> tuple[float, Floats, Floats]:
        counts, shares = np.zeros(table.shape), np.zeros(m)
        given = (baskets.indices, baskets.offsets, baskets.weights, table, bias)
        start, stop = n * thread // of, n * (thread + 1) // of
        return (
            loops("nonsymmetric", "segments").responsibilities(*given, start, stop, counts, shares, NO_NUMBERS),
            shares,
            counts,
        )

    parts = _over_threads(share, SEGMENT * n * m, threads)
    log_sum, shares, counts = parts[0]
    for other in parts[1:]:
        log_sum, shares, counts = log_sum + other[0], shares + other[1], counts + other[2]
    return SegmentSums(log_sum, shares, counts.T)


def log_segments(log_odds: Floats, bias: Floats, baskets: Baskets, threads: int | None = None) -> Floats:
    """log Σ_c exp(bias_c + log_odds_c·x_Y) of every basket."""
    table, n, each = np.ascontiguousarray(log_odds.T), len(baskets), np.empty(len(baskets))

    def share(thread: int, of: int) -> None:
        given = (baskets.indices, baskets.offsets, baskets.weights, table, bias)
        start, stop = n * thread // of, n * (thread + 1) // of
        loops("nonsymmetric", "segments").responsibilities(*given, start, stop, NO_MATRIX, NO_NUMBERS, each)

    _over_threads(share, SEGMENT * n * len(bias), threads)
    return each


def log_probabilities(kernel: MixtureKernel, baskets: Baskets, threads: int | None = None) -> Floats:
    """log P(Y) of every basket."""
    check_items(kernel.n_items, baskets)
    bias = kernel.log_weights - kernel.log_normalisers
    if len(kernel.interaction) == 1:
        shared = log_minors(kernel.interaction[0], baskets, threads)
        return shared + log_segments(kernel.log_odds, bias, baskets, threads)
    each = [
        log_minors(C, baskets, threads) + log_segments(kernel.log_odds[c : c + 1], bias[c : c + 1], baskets, threads)
        for c, C in enumerate(kernel.interaction)
    ]
    return np.asarray(np.logaddexp.reduce(each, axis=0))


def check_items(n_items: int, baskets: Baskets) -> None:
    if baskets.n_items != n_items:
        raise InputError(
            f"the kernel has {n_items} items, but the baskets have {baskets.n_items}; "
            "a model matches them by label (log_prob), a kernel cannot"
        )


def _minors(C: Floats, baskets: Baskets, thread: int, of: int, delta: Floats, each: Floats) -> float:
    blocks = baskets.blocks
    work, logdet = np.empty(LANES * max(blocks.largest, 1) ** 2), np.empty(LANES)
    given = (C, blocks.items, blocks.weights, blocks.groups)
    return float(loops("nonsymmetric", "minors").minors_of(*given, thread, of, delta, each, work, logdet))


def _over_threads(share: Callable[[int, int], Part], work: float, threads: int | None) -> list[Part]:
    most = min(1 + int(work) // WORTH_A_THREAD, thread_count(threads))
    if most == 1:
        return [share(0, 1)]
    others = [pool(most).submit(share, thread, most) for thread in range(1, most)]
    return [share(0, most), *(other.result() for other in others)]

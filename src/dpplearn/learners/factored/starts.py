"""Where a mixture in factors starts: segments at random, or another mixture."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.kernels.factored.kernel import FactoredKernel, Singles, coupling
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel

NOISE, SPREAD = 0.5, 0.8  # of the segments' log-odds: at random, and from those who take little to those who take much
FIRST = 0.1  # the length of a first row of Z, about
LIKE = 0.3  # standard deviation of what a segment that is made of another differs by


def random_segments(p: Floats, segments: int, rng: np.random.Generator) -> FactoredKernel:
    """Independent items of these frequencies in each segment, differing at random."""
    log_odds = np.tile(np.log(p / (1 - p)), (segments, 1))
    if segments > 1:
        log_odds += NOISE * rng.standard_normal(log_odds.shape) + np.linspace(-SPREAD, SPREAD, segments)[:, None]
    return FactoredKernel(np.full(segments, 1 / segments), log_odds, np.zeros((len(p), 0)), np.zeros((1, 0, 0)))


def random_rows(n: int, columns: int, rng: np.random.Generator) -> Singles:
    """Small random numbers: rows of Z of items whose interaction is not known yet."""
    small = FIRST / np.sqrt(max(columns / 2, 1))
    return np.asarray(small * rng.standard_normal((n, columns)), dtype=np.float32)


def over_items(kernel: MixtureKernel | FactoredKernel, here: Ints, p: Floats) -> FactoredKernel:
    """A kernel over other items: `here` says where each of the new ones stands in it, or −1 for those that it lacks.
    These start independent of all others, with frequencies p in every segment.

    Of a kernel that is not in factors the segments alone are kept.
    """
    known = here >= 0
    log_odds = np.tile(np.log(p / (1 - p)), (kernel.n_segments, 1))
    log_odds[:, known] = kernel.log_odds[:, here[known]]
    if isinstance(kernel, MixtureKernel) or len(kernel.coupling) > 1:
        return FactoredKernel(kernel.weights, log_odds, np.zeros((len(here), 0)), np.zeros((1, 0, 0)))
    Z = np.zeros((len(here), kernel.n_columns), dtype=np.float32)
    Z[known] = kernel.factors[here[known]]
    return FactoredKernel(kernel.weights, log_odds, Z, kernel.coupling)


def columns_of(kernel: FactoredKernel) -> tuple[int, int] | None:
    """How many columns repel and how many pairs of them attract, if its coupling is one that learning leaves."""
    repelling = int(np.count_nonzero(kernel.coupling[0].diagonal()))
    attracting = (kernel.n_columns - repelling) // 2
    usual = coupling(repelling, attracting)
    return (repelling, attracting) if np.array_equal(kernel.coupling, usual[None]) else None


def fitted(
    kernel: FactoredKernel, segments: int, omega: Floats, active: Ints, rng: np.random.Generator
) -> FactoredKernel:
    """With as many segments as asked for, those of largest weight or some like them; and with this coupling, where it
    has another with rows of Z at random."""
    enough = kernel.n_segments == segments
    order = np.arange(segments) if enough else np.argsort(-kernel.weights, kind="stable")
    chosen = order[np.arange(segments) % len(order)]
    log_odds = kernel.log_odds[chosen].astype(float)
    new = np.arange(segments) >= len(order)
    log_odds[new] += LIKE * rng.standard_normal((np.count_nonzero(new), kernel.n_items))
    share = kernel.weights[chosen] / np.bincount(chosen, minlength=len(order))[chosen]
    Z = kernel.factors
    if not np.array_equal(kernel.coupling, omega[None]):
        Z = np.zeros((kernel.n_items, len(omega)), dtype=np.float32)
        Z[active] = random_rows(len(active), len(omega), rng)
    return FactoredKernel(share / share.sum(), log_odds, Z, omega[None])

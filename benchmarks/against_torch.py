"""The learner of mixtures beside Adam in PyTorch on the same objective: `python -m benchmarks.against_torch`.

The figure is the time until what is maximised is within 0.01 nats per basket of the best that ours found. Adam starts
from the random numbers that ours begins with, and once more from the start that ours makes of them, whose time is then
not counted for Adam and is for ours. PyTorch is for this alone: pip install torch.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import islice

import numpy as np

import dpplearn as dl
from benchmarks.models import FIRST_SEED, TRAIN_SHARE, baskets_of
from dpplearn.learners.mixture.mixture import mixture
from dpplearn.learners.mixture.parameters import Parameters
from dpplearn.learners.mixture.problem import MixtureProblem
from dpplearn.learners.mixture.starts import random_numbers
from dpplearn.tools.threads import suitable_blas

DATA = ("apparel", "groceries")
WITHIN = 0.01
STEPS, RATES = 300, (0.1, 0.05, 0.02, 0.001)  # the last is the default of PyTorch
PATIENCE = 240.0  # seconds for each rate

Trace = list[tuple[float, float]]  # seconds and what is maximised, in nats per basket


def ours(problem: MixtureProblem) -> Trace:
    """From the random numbers on: making the start of them is a part of it."""
    next(mixture(made_start(problem), problem))  # compiles
    began, trace = time.perf_counter(), []
    with suitable_blas(problem.baskets.n_items, None):
        for step in islice(mixture(made_start(problem), problem), STEPS):
            trace.append((time.perf_counter() - began, step.log_likelihood))
    return trace


def made_start(problem: MixtureProblem) -> dl.MixtureKernel:
    return problem.start("random", np.random.default_rng(0))


def random_start(problem: MixtureProblem) -> dl.MixtureKernel:
    numbers = random_numbers(problem.shape, problem.independent_items(), np.random.default_rng(0))
    return numbers.kernel(problem.shape)


def theirs(problem: MixtureProblem, start: dl.MixtureKernel, rate: float) -> Iterator[tuple[float, float]]:
    """Adam on all baskets at once, minors of one size in one call; all cores."""
    import torch

    baskets, shape, penalty = problem.baskets, problem.shape, problem.penalty
    n, N = baskets.total_weight, shape.n_items
    groups = [
        (torch.tensor(group.sets.astype(np.int64)), torch.tensor(baskets.weights[group.rows]))
        for group in baskets.by_size
        if group.sets.shape[1]
    ]
    X = torch.zeros(len(baskets), N, dtype=torch.float64)
    for row in range(len(baskets)):
        X[row, torch.tensor(baskets.positions(row).astype(np.int64))] = 1
    w = torch.tensor(baskets.weights.copy())
    at = Parameters.from_kernel(start, shape, penalty)
    gamma, theta, U, A, logits = (
        torch.tensor(each.copy(), requires_grad=True) for each in (at.gamma, at.theta, at.U, at.A, at.logits)
    )
    rows, columns = (torch.tensor(each) for each in shape.below)
    one = torch.eye(N, dtype=torch.float64)
    optimiser = torch.optim.Adam([gamma, theta, U, A, logits], lr=rate)
    began = time.perf_counter()
    while True:
        optimiser.zero_grad()
        skew = torch.zeros(N, N, dtype=torch.float64).index_put((rows, columns), A)
        C = one + U @ U.T + skew - skew.T
        logdet = sum(
            (weights @ torch.linalg.slogdet(C[sets[:, :, None], sets[:, None, :]])[1]) for sets, weights in groups
        )
        log_odds = 2 * gamma + theta
        d = torch.exp(log_odds / 2)
        log_Z = torch.linalg.slogdet(one + d[:, :, None] * C * d[:, None, :])[1]
        log_pi = torch.log_softmax(logits, 0)
        log_sum = w @ torch.logsumexp(X @ log_odds.T + log_pi - log_Z, 1)
        empty = torch.logsumexp(log_pi - log_Z, 0)
        value = logdet + log_sum - (n * torch.log1p(-torch.exp(empty)) if problem.nonempty else 0)
        value = value - penalty.repulsion * (U**2).sum() - penalty.attraction * (A**2).sum()
        value = (
            value - penalty.segments / 2 * (theta**2).sum() + (gamma - torch.nn.functional.softplus(2 * gamma)).sum()
        )
        loss = -value / n
        yield time.perf_counter() - began, -loss.item()
        loss.backward()
        optimiser.step()


def reached(trace: Trace, target: float) -> float:
    return next((seconds for seconds, value in trace if value >= target), np.inf)


def main() -> None:
    for name in sys.argv[1:] or DATA:
        train = baskets_of(name).split(TRAIN_SHARE, rng=FIRST_SEED)[0].deduplicated()
        problem = MixtureProblem(train, None, True)
        mine = ours(problem)
        best = mine[-1][1]
        print(f"{name}: ours {reached(mine, best - WITHIN):.2f} s to within {WITHIN} of {best:.4f}", flush=True)
        for start, rate in [(random_start, rate) for rate in RATES] + [(made_start, rate) for rate in RATES[:2]]:
            trace: Trace = []
            for seconds, value in theirs(problem, start(problem), rate):
                trace.append((seconds, value))
                if value >= best - WITHIN or seconds > PATIENCE:
                    break
            ratio = reached(trace, best - WITHIN) / reached(mine, best - WITHIN)
            took = f"{len(trace)} steps, {trace[-1][0]:.1f} s, {max(value for _, value in trace):.4f}"
            print(f"  Adam, {start.__name__}, rate {rate:g}: {ratio:.0f} times as long ({took})", flush=True)


if __name__ == "__main__":
    main()

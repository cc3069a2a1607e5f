"""Recovery of kernels that are known: baskets drawn from them, and how far the models learned end up from the truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.spatial.distance import cdist

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.experiments.registries import Source
from dpplearn.experiments.trials.trial import Job, Row, both
from dpplearn.kernels.independent import independent
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.kernels.symmetric.sampling import sample_sets
from dpplearn.learners.starts import wishart
from dpplearn.models.dpp import DPP

N_DRAWS = 10_000  # from the truth, to measure the divergence with
SHARE = 0.2  # of the items that a set of the truth has on average
CLUSTER_SIZE, SPREAD, WIDTH = 5, 4.0, 0.5  # items per cluster; of the centres; of a cluster. The RBF's length is 1


def recovery(job: Job, source: Source) -> Row:
    """EM and K-Ascent from one Wishart start, and independent items, against the kernel the baskets come from.

    KL(truth ‖ model) = E log P_truth(Y) − log P_model(Y), over draws from the truth that learning did not see.
    """
    assert job.n_items is not None
    assert job.n_train is not None
    rng = source.rng("recovery", job.category, job.n_items, job.n_train, job.trial)
    truth = KERNELS[job.category](job.n_items, rng)
    train, test = (_drawn(truth, n, rng) for n in (job.n_train, N_DRAWS))
    fits = both(train, wishart(train, rng))
    models = {name: each.kernel for name, each in fits.items()} | {"independent": independent(train)}
    best = DPP(truth).log_prob(test)
    row: Row = {
        "n_items": job.n_items,
        "n_train": job.n_train,
        "n_test": N_DRAWS,
        "mean_size": float(truth.eigenvalues.sum()),
        "truth_test": float(best.mean()),
    }
    for name, kernel in models.items():
        values = DPP(kernel).log_prob(test)
        row[f"{name}_test"] = float(values.mean())
        row[f"{name}_kl"], row[f"{name}_kl_error"] = _mean_and_error(best - values)
    for name, each in fits.items():
        row |= {f"{name}_iterations": each.n_iter, f"{name}_stop": each.stop.name}
    return row


def _mean_and_error(values: Floats) -> tuple[float, float]:
    """The mean and its standard error; infinite, without an error, where a draw is impossible under the model."""
    if not np.isfinite(values).all():
        return float("inf"), float("nan")
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def _drawn(kernel: Kernel, n: int, rng: np.random.Generator) -> Baskets:
    sets = sample_sets(kernel, n, rng=rng, threads=1)
    return Baskets.from_lists([each.tolist() for each in sets], n_items=kernel.n_items)


def wishart_kernel(n_items: int, rng: np.random.Generator) -> Kernel:
    """L = X Xᵀ with standard normal X."""
    X = rng.standard_normal((n_items, n_items))
    return _scaled(X @ X.T)


def clustered_kernel(n_items: int, rng: np.random.Generator) -> Kernel:
    """L_ij = exp(−‖x_i − x_j‖²/2), the points from a Gaussian mixture in the plane: items of a cluster are alike."""
    n_clusters = n_items // CLUSTER_SIZE
    centres = SPREAD * rng.standard_normal((n_clusters, 2))
    points = centres[rng.integers(n_clusters, size=n_items)] + WIDTH * rng.standard_normal((n_items, 2))
    return _scaled(np.exp(-cdist(points, points, "sqeuclidean") / 2))


KERNELS: dict[str, Callable[[int, np.random.Generator], Kernel]] = {
    "wishart": wishart_kernel,
    "clustered": clustered_kernel,
}


def _scaled(L: Floats) -> Kernel:
    """cL, with c such that a set has a fifth of the items on average."""
    odds = np.maximum(np.linalg.eigvalsh(L), 0)

    def excess(log_c: float) -> float:
        scaled = np.exp(log_c) * odds
        return float((scaled / (1 + scaled)).sum() - SHARE * len(odds))

    return Kernel.from_L(np.exp(brentq(excess, -50, 50)) * L)

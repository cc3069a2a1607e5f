"""Recovery: the truth has the size it should, and divergences from it are those that enumeration gives."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpplearn import Baskets, FitResult, Kernel
from dpplearn.experiments.registries import Source
from dpplearn.experiments.trials import recovery as module
from dpplearn.experiments.trials.recovery import KERNELS, N_DRAWS, recovery
from dpplearn.experiments.trials.trial import Job, Row, both
from dpplearn.kernels.independent import independent
from helpers import oracle

SOURCE = Source(None, seed=0)
MODELS = ("em", "ka", "independent")
each_kind = pytest.mark.parametrize("kind", KERNELS)


def job_of(kind: str, trial: int = 0, n_items: int = 6, n_train: int = 300) -> Job:
    return Job("recovery", kind, trial, n_items, n_train)


def truth_of(job: Job) -> Kernel:
    """The kernel is the first thing that the job's stream gives."""
    assert job.n_items is not None
    assert job.n_train is not None
    rng = SOURCE.rng("recovery", job.category, job.n_items, job.n_train, job.trial)
    return KERNELS[job.category](job.n_items, rng)


def watched(job: Job, monkeypatch: pytest.MonkeyPatch) -> tuple[Row, dict[str, Kernel]]:
    """The row, and the models that were held against the truth."""
    models: dict[str, Kernel] = {}

    def watched_both(train: Baskets, start: Kernel) -> dict[str, FitResult]:
        fits = both(train, start)
        models.update({name: each.kernel for name, each in fits.items()})
        return fits

    def watched_independent(train: Baskets) -> Kernel:
        models["independent"] = independent(train)
        return models["independent"]

    monkeypatch.setattr(module, "both", watched_both)
    monkeypatch.setattr(module, "independent", watched_independent)
    return recovery(job, SOURCE), models


@each_kind
@pytest.mark.parametrize("n_items", [6, 20, 50])
def test_a_set_of_the_truth_has_a_fifth_of_the_items_on_average(kind: str, n_items: int) -> None:
    kernel = KERNELS[kind](n_items, np.random.default_rng(1))
    assert kernel.eigenvalues.sum() == pytest.approx(n_items / 5)


def test_items_of_a_cluster_are_alike() -> None:
    clustered, wishart = (KERNELS[kind](50, np.random.default_rng(0)).repulsion for kind in ("clustered", "wishart"))
    assert np.median(clustered.max(axis=1)) > 0.5 > wishart.max()


@each_kind
def test_divergences_and_their_errors_are_those_of_all_subsets(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row, models = watched(job_of(kind), monkeypatch)
    P = oracle.probabilities_from_K(truth_of(job_of(kind)).K)
    drawn = P > 1e-6  # the draws hold none of the others, which may be impossible under a model
    assert N_DRAWS * P[~drawn].sum() < 0.1
    P = P[drawn]
    for name in MODELS:
        logs = np.log(P) - np.log(oracle.probabilities_from_K(models[name].K)[drawn])
        exact = P @ logs
        exact_error = np.sqrt(P @ (logs - exact) ** 2 / N_DRAWS)
        assert abs(row[f"{name}_kl"] - exact) < 5 * exact_error < exact
        assert row[f"{name}_kl_error"] == pytest.approx(exact_error, rel=0.3)


def test_divergence_is_what_the_test_likelihood_lacks() -> None:
    row = recovery(job_of("wishart"), SOURCE)
    for name in MODELS:
        assert row[f"{name}_kl"] == pytest.approx(row["truth_test"] - row[f"{name}_test"], rel=1e-9)
    assert row["n_test"] == N_DRAWS


def test_the_truth_is_at_no_distance_from_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_of("wishart")
    monkeypatch.setattr(module, "independent", lambda train: truth_of(job))
    row = recovery(job, SOURCE)
    assert (row["independent_kl"], row["independent_kl_error"]) == (0.0, 0.0)


def test_divergence_is_infinite_where_a_draw_is_impossible_under_the_model() -> None:
    row = recovery(job_of("wishart", n_train=2), SOURCE)  # two sets cannot show six items
    assert row["independent_kl"] == math.inf
    assert math.isnan(row["independent_kl_error"])
    assert row["independent_test"] == -math.inf


@each_kind
def test_no_draw_is_impossible_under_the_truth(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "N_DRAWS", 2000)
    assert math.isfinite(recovery(job_of(kind, n_items=40, n_train=80), SOURCE)["truth_test"])


def test_a_trial_has_the_same_truth_every_time_and_another_trial_another() -> None:
    first, again, other = (recovery(job_of("wishart", trial), SOURCE) for trial in (0, 0, 1))
    assert first == again
    assert first["truth_test"] != other["truth_test"]

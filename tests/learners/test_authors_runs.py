"""Our learners follow the authors' own program, iteration by iteration, on the real registries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.learners.starts import CAP, moments
from helpers.registries import authors_run

RUNS = [
    f"{category}_{start}"
    for category in ("carseats", "furniture", "safety", "strollers")
    for start in ("wishart_0", "wishart_1", "moments_0")
]


def test_every_run_that_is_there_is_tested(shared: Path) -> None:
    there = {path.stem for path in (shared / "reference" / "authors_runs").glob("*.npz")}
    assert there == set(RUNS)


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize(("learner", "prefix", "rtol"), [("em", "em", 1e-12), ("k-ascent", "ka", 1e-9)])
def test_every_iteration_is_the_authors(shared: Path, name: str, learner: str, prefix: str, rtol: float) -> None:
    run = authors_run(shared, name)
    fit = dl.fit_dpp(run.train, learner, start=dl.DPP(run.start, run.train.items))
    objective = run.arrays[f"{prefix}_objective"]
    assert len(fit.history) == len(objective)
    np.testing.assert_allclose(fit.history.log_likelihood, objective, rtol=rtol)
    kernel = fit.model.kernel
    if learner == "em":  # the authors' program raises capped eigenvalues at the end
        kernel = SpectralDPP(np.where(kernel.eigenvalues >= CAP, 1.0, kernel.eigenvalues), kernel.eigenvectors)
    else:
        np.testing.assert_allclose(kernel.K, run.arrays["ka_K"], atol=1e-9)
    final = dl.DPP(kernel, run.train.items)
    assert final.log_likelihood(run.test) == pytest.approx(float(run.arrays[f"{prefix}_test"]), abs=1e-6)
    if learner == "em":
        assert final.log_likelihood(run.train) == pytest.approx(float(run.arrays["em_train"]), abs=1e-6)


@pytest.mark.parametrize("name", [name for name in RUNS if "moments" in name])
def test_the_moments_start_is_the_authors(shared: Path, name: str) -> None:
    run = authors_run(shared, name)
    ours = moments(run.train, np.random.default_rng(0))
    np.testing.assert_allclose(ours.K, run.arrays["K_start"], atol=1e-12)

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
def test_em_follows_every_iteration(shared: Path, name: str) -> None:
    run = authors_run(shared, name)
    fit = dl.fit_dpp(run.train, "em", start=dl.DPP(run.start, run.train.items))
    assert len(fit.history) == len(run.arrays["em_objective"])
    np.testing.assert_allclose(fit.history.log_likelihood, run.arrays["em_objective"], rtol=1e-12)
    raised = np.where(
        fit.model.kernel.eigenvalues >= CAP, 1.0, fit.model.kernel.eigenvalues
    )  # as their program does at the end
    final = dl.DPP(SpectralDPP(raised, fit.model.kernel.eigenvectors), run.train.items)
    assert final.log_likelihood(run.test) == pytest.approx(float(run.arrays["em_test"]), abs=1e-6)
    assert final.log_likelihood(run.train) == pytest.approx(float(run.arrays["em_train"]), abs=1e-6)


@pytest.mark.parametrize("name", RUNS)
def test_k_ascent_follows_every_iteration(shared: Path, name: str) -> None:
    run = authors_run(shared, name)
    fit = dl.fit_dpp(run.train, "k-ascent", start=dl.DPP(run.start, run.train.items))
    assert len(fit.history) == len(run.arrays["ka_objective"])
    np.testing.assert_allclose(fit.history.log_likelihood, run.arrays["ka_objective"], rtol=1e-9)
    assert fit.model.log_likelihood(run.test) == pytest.approx(float(run.arrays["ka_test"]), abs=1e-6)
    np.testing.assert_allclose(fit.model.kernel.K, run.arrays["ka_K"], atol=1e-9)


@pytest.mark.parametrize("name", [name for name in RUNS if "moments" in name])
def test_the_moments_start_is_the_authors(shared: Path, name: str) -> None:
    run = authors_run(shared, name)
    ours = moments(run.train, np.random.default_rng(0))
    np.testing.assert_allclose(ours.K, run.arrays["K_start"], atol=1e-12)

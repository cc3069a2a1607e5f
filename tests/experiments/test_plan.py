"""Which trials a reproduction plans: every experiment, no trial twice, and no more than were asked for."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest

from dpplearn.experiments.plan import EXPERIMENTS, FULL, QUICK, Scale, plan
from dpplearn.experiments.registries import Source
from dpplearn.experiments.results import job_name
from helpers.registry_files import shoppers, write_registry


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    runs = tmp_path / "authors_runs"
    runs.mkdir()
    for name in ("safety_wishart_0", "carseats_moments_0"):
        (runs / f"{name}.npz").touch()
    write_registry(tmp_path / "registries", "safety", shoppers(75, 25), 25)
    return tmp_path


@pytest.mark.parametrize("scale", [FULL, QUICK])
def test_a_plan_has_every_experiment_and_no_trial_twice(scale: Scale, reference: Path) -> None:
    source = Source(reference / "registries", 0, reference)
    jobs = plan(source, source.categories, scale)
    assert {job.experiment for job in jobs} == set(EXPERIMENTS)
    assert len({job_name(job) for job in jobs}) == len(jobs)


def test_the_full_plan_has_25_trials_of_every_category_from_each_kind_of_start() -> None:
    source = Source(None, 0)
    found = Counter((job.experiment, job.category) for job in plan(source, source.categories, FULL))
    for experiment in ("wishart", "moments", "moments of 2N"):
        assert {found[experiment, category] for category in source.categories} == {25}


def test_no_experiment_has_more_trials_than_asked_for() -> None:
    jobs = plan(Source(None, 0), ["safety"], Scale(1, 10, 10, 10, 10, (20,), (2,), 0))
    assert {job.trial for job in jobs} == {0}


def growth_work(limit: float) -> list[int]:
    """n N³ of every size that is timed."""
    jobs = plan(Source(None, 0), [], Scale(1, 0, 0, 0, 0, (), (), limit))
    return [(job.n_train or 0) * (job.n_items or 0) ** 3 for job in jobs if job.experiment == "growth"]


def test_growth_is_timed_up_to_the_size_asked_for() -> None:
    every = growth_work(math.inf)
    limit = sorted(every)[len(every) // 2]
    assert growth_work(limit) == [work for work in every if work <= limit] != every


def test_only_the_authors_runs_on_chosen_categories_of_the_original_registries_are_planned(reference: Path) -> None:
    for folder, expected in ((reference / "registries", ["safety_wishart_0"]), (None, [])):
        jobs = plan(Source(folder, 0, reference), ["safety", "bath"], QUICK)
        assert [job.category for job in jobs if job.experiment == "authors"] == expected


def test_categories_that_were_not_chosen_are_prepared_too() -> None:
    source = Source(None, 0)
    prepared = [job.category for job in plan(source, ["safety"], QUICK) if job.experiment == "preparation"]
    assert prepared == list(source.categories)

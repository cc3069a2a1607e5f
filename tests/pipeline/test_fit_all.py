"""Fit a model per category: what is fitted, what is kept, and what happens to categories that fail."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.models.store import open_for_writing
from dpplearn.pipeline.fit_all import Job
from dpplearn.pipeline.prepared import write_prepared
from dpplearn.utils.parallel import Failure
from helpers.order_files import random_orders, write_csv
from helpers.stores import QUICK, fitted, in_turn

COLUMNS = ("basket", "item", "category")
RULES = {"min_count": 3, "min_items": 2}
pytestmark = pytest.mark.slow
SLUGS = ("category-0", "category-1", "category-2", "category-3")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepared once."""
    folder = tmp_path_factory.mktemp("made")
    dl.prepare(write_csv(folder / "orders.csv", COLUMNS, random_orders(150)), folder / "prepared", **RULES)
    return folder


@pytest.fixture
def prepared(made: Path, tmp_path: Path) -> dl.Prepared:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return dl.Prepared.open(tmp_path / "prepared")


def prepared_again(prepared: dl.Prepared, rows: list[tuple[str, str, str]], **changes: Any) -> dl.Prepared:
    orders = write_csv(prepared.folder.parent / "orders.csv", COLUMNS, rows)
    return dl.prepare(orders, prepared.folder, **RULES, **changes)


def failing(*slugs: str) -> Any:
    def over(jobs: Sequence[Job], run: Callable[[Job], Any]) -> Iterator[tuple[Job, Any]]:
        for job in jobs:
            yield job, Failure("it was not to be", 3) if job.slug in slugs else run(job)

    return over


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_every_category_gets_the_model_of_fit_and_the_metrics_of_evaluate(
    prepared: dl.Prepared, tmp_path: Path
) -> None:
    store = dl.fit_all(prepared, tmp_path / "store", seed=3, processes=2, **QUICK)
    assert store.fitted == tuple(store) == SLUGS
    for slug in SLUGS[:2]:
        alone = dl.fit(prepared.train(slug), rng=3, threads=1, **QUICK).model
        test, result = prepared.test(slug), store.results[slug]
        assert test is not None
        np.testing.assert_allclose(store[slug].log_prob(test), alone.log_prob(test), rtol=1e-9)
        found = dl.evaluate(alone, test)
        expected = {
            "log_likelihood": found.estimate("model").value,
            "gain": found.difference("model", "independent items").value,
            "percentile_rank": found.estimate("model", "percentile_rank").value,
        }
        assert {name: result[name] for name in expected} == pytest.approx(expected, rel=1e-9)
        assert (result["on"], result["n_baskets"], result["last"]) == ("test", len(test), None)
    again = dl.ModelStore.open(tmp_path / "store")
    assert (again.verify() == [], again.fitted, again.versions) == (True, (), store.versions)
    with pytest.raises(dl.InputError, match="start"):
        dl.fit_all(prepared, tmp_path / "other", start=store["category-0"])
    kept = prepared.manifest["account"][-1]["baskets"]
    for each in prepared.categories:
        assert store.entry(each.slug).share == pytest.approx(sum(each.n_baskets.values()) / kept, abs=1 / kept)


def test_only_what_changed_is_refitted_or_evaluated_again(prepared: dl.Prepared) -> None:
    first = fitted(prepared)
    before, slug = state(first.folder), SLUGS[0]
    assert fitted(prepared).fitted == ()
    assert state(first.folder) == before
    less = without_test_baskets(prepared)
    store = fitted(less)
    assert (store.fitted, store.versions) == ((), first.versions)
    result = store.results[slug]
    assert (result["on"], result["n_baskets"]) == ("train", len(prepared.train(slug)))
    assert result["log_likelihood"] == pytest.approx(store[slug].log_likelihood(prepared.train(slug)))
    assert fitted(less, max_iter=4).fitted == SLUGS
    changed = fitted(less, max_iter=4, fresh=True)
    assert changed.fitted == SLUGS
    for file in (changed.folder / "models").glob(f"{SLUGS[1]}-*"):  # of the last two runs
        file.write_bytes(b"damaged")
    assert fitted(less, max_iter=4).fitted == (SLUGS[1],)


def test_categories_whose_baskets_changed_are_refitted_and_compared_with_the_last_model(prepared: dl.Prepared) -> None:
    first = fitted(prepared)
    swapped = {"thing 2-0": "thing 2-1", "thing 2-1": "thing 2-0"}
    rows = [(basket, swapped.get(item, item), category) for basket, item, category in random_orders(150)]
    now = prepared_again(prepared, rows)
    store = fitted(now)
    assert store.fitted == ("category-2",)
    result, test = store.results["category-2"], now.test("category-2")
    assert test is not None
    assert result["last"]["log_likelihood"] == pytest.approx(first["category-2"].log_likelihood(test))
    assert result["last"]["difference"] == pytest.approx(result["log_likelihood"] - result["last"]["log_likelihood"])
    assert store.manifest["generation"] == 2


def without_test_baskets(prepared: dl.Prepared) -> dl.Prepared:
    """Remove the test baskets of the first category from the manifest."""
    first, *others = prepared.manifest["categories"]
    first = {**first, "files": {"train": first["files"]["train"]}}
    write_prepared(prepared.folder, prepared.manifest | {"categories": [first, *others]})
    return dl.Prepared.open(prepared.folder)


def test_added_items_stay_until_the_category_is_refitted(prepared: dl.Prepared) -> None:
    first, slug = fitted(prepared), SLUGS[0]
    n = len(first[slug].items)
    added = first.replace(slug, first[slug].with_items(["new"]))
    kept = fitted(prepared)
    assert (kept.fitted, kept.versions) == ((), added.versions)
    less = without_test_baskets(prepared)
    measured = fitted(less)
    assert (measured.fitted, measured.versions) == ((), added.versions)
    again = fitted(less, fresh=True)
    counted = [store.manifest["categories"][0]["n_items"] for store in (first, added, kept, measured, again)]
    assert counted == [n, n + 1, n + 1, n + 1, n]
    assert len(again[slug].items) == n


def test_models_are_compared_on_their_common_items(prepared: dl.Prepared) -> None:
    first = fitted(prepared)
    now = prepared_again(prepared, random_orders(150), top_items=9)
    store = fitted(now)
    slug = SLUGS[0]
    test, common = now.test(slug), [item for item in store[slug].items if item in first[slug].catalogue]
    assert test is not None
    assert len(common) == len(store[slug].items) < len(first[slug].items)
    last = store.results[slug]["last"]
    assert last["n_items"] == len(common)
    before = first[slug].restrict(common)  # both are judged given that a basket is not empty
    given = before.log_likelihood(test) - np.log1p(-before.size_distribution[0])
    assert last["log_likelihood"] == pytest.approx(given)
    assert last["difference"] == pytest.approx(store.results[slug]["log_likelihood"] - given)


def test_a_category_that_fails_is_left_out_or_keeps_its_last_model(prepared: dl.Prepared) -> None:
    with pytest.raises(dl.InputError):
        fitted(prepared, failing(*SLUGS))
    assert not (prepared.folder.parent / "store").exists()
    assert tuple(fitted(prepared, failing(SLUGS[3]))) == SLUGS[:3]
    first = fitted(prepared)
    store = fitted(prepared, failing(SLUGS[1]), seed=1)
    assert store.failed == {SLUGS[1]: "it was not to be"}
    assert store.manifest["failed"][0]["attempts"] == 3
    assert store.versions[SLUGS[1]] == first.versions[SLUGS[1]]
    assert [store.entry(slug).old for slug in store] == ["", "it was not to be", "", ""]
    assert set(store.fitted) == {*SLUGS} - {SLUGS[1]}
    assert store.verify() == []
    healed = fitted(prepared, seed=1)
    assert (healed.fitted, healed.failed, healed.entry(SLUGS[1]).old) == ((SLUGS[1],), {}, "")


def test_an_interrupted_fresh_run_resumes(prepared: dl.Prepared) -> None:
    def cut_off(jobs: Sequence[Job], run: Callable[[Job], Any]) -> Iterator[tuple[Job, Any]]:
        yield from in_turn(jobs[:2], run)
        raise KeyboardInterrupt

    store = fitted(prepared)
    with pytest.raises(KeyboardInterrupt):
        fitted(prepared, cut_off, fresh=True)
    assert dl.ModelStore.open(store.folder).versions == store.versions
    assert len(fitted(prepared, fresh=True).fitted) == 2


def test_a_model_file_with_the_key_of_the_settings_is_not_fitted_again(prepared: dl.Prepared) -> None:
    """Files are found by their names alone: the manifest of the first run is replaced, and then lost."""
    first, other = fitted(prepared), fitted(prepared, seed=1)
    again = fitted(prepared)
    assert (again.fitted, again.versions) == ((), first.versions)
    assert again.results[SLUGS[0]]["last"]["log_likelihood"] == pytest.approx(other.results[SLUGS[0]]["log_likelihood"])
    (first.folder / "manifest.json").unlink()
    (first.folder / first.entry(SLUGS[2]).file).write_bytes(b"damaged")
    found = fitted(prepared)
    assert (found.fitted, found.verify()) == ((SLUGS[2],), [])
    assert {**found.versions, SLUGS[2]: ""} == {**first.versions, SLUGS[2]: ""}
    seconds = [[each["seconds"] for each in store.manifest["categories"][:2]] for store in (first, found)]
    assert seconds[0] == seconds[1]


def test_old_models_stay_for_readers_until_the_run_after_the_next(prepared: dl.Prepared) -> None:
    old = fitted(prepared)
    fitted(prepared, seed=1)
    fitted(prepared, seed=1)  # does nothing
    assert old.verify() == []
    assert old[SLUGS[0]].learned.n_baskets == len(prepared.train(SLUGS[0]))
    (old.folder / "models" / ".dpplearn-0123456789abcdef.tmp").write_text("what a killed worker left")
    (old.folder / "models" / "notes.txt").write_text("somebody's")
    fitted(prepared, seed=2)
    assert old.verify() != []
    others = [path.name for path in (old.folder / "models").iterdir() if path.suffix != ".safetensors"]
    assert others == ["notes.txt"]
    assert len(list((old.folder / "models").iterdir())) == 2 * len(SLUGS) + 1
    with pytest.raises(dl.InputError):
        old[SLUGS[1]]


def test_a_warm_start_starts_from_the_last_model(prepared: dl.Prepared) -> None:
    first = fitted(prepared, max_iter=50)
    warm = fitted(prepared, max_iter=0, warm_start=True)
    for slug in SLUGS:
        test = prepared.test(slug)
        assert test is not None
        np.testing.assert_allclose(warm[slug].log_prob(test), first[slug].log_prob(test), rtol=1e-6)
    dpps = fitted(prepared, learner="em", segments=None, max_iter=2, warm_start=True)
    assert isinstance(dpps[SLUGS[0]], dl.DPP)


def test_changed_baskets_and_folders_that_are_not_ours_are_rejected(prepared: dl.Prepared, tmp_path: Path) -> None:
    def late(jobs: Sequence[Job], run: Callable[[Job], Any]) -> Iterator[tuple[Job, Any]]:
        prepared_again(prepared, random_orders(140))
        yield from in_turn(jobs, run)

    with pytest.raises(dl.InputError):  # prepared again during the run
        fitted(prepared, late)
    before = state(prepared.folder)
    for force in (False, True):  # what is read is never replaced
        with pytest.raises(dl.InputError, match=str(prepared.folder)):
            dl.fit_all(prepared, prepared.folder, force=force)
    with pytest.raises(dl.InputError):
        dl.fit_all(prepared, tmp_path / "orders.csv")
    assert state(prepared.folder) == before
    with open_for_writing(tmp_path / "store"), pytest.raises(dl.InputError):  # another run is writing to it
        fitted(prepared)


def test_workers_of_a_cluster_fit_the_same_models(prepared: dl.Prepared, tmp_path: Path) -> None:
    here = fitted(prepared, output=tmp_path / "here")
    there = dl.fit_all(prepared, tmp_path / "there", cluster="local:1", **QUICK)
    assert there.fitted == here.fitted
    for slug in SLUGS:
        train = prepared.train(slug)
        np.testing.assert_allclose(there[slug].log_prob(train), here[slug].log_prob(train), rtol=1e-9)
    with pytest.raises(dl.InputError):
        dl.fit_all(prepared, tmp_path / "both", cluster="local:2", processes=2)

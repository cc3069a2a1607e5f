"""The commands with a mixture, the default model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.models.describe import describe, describe_item
from dpplearn.utils.files import json_safe
from helpers.command import answer, both, parsed, run
from helpers.stores import SHARES, three_categories, write_models

ITEM = "Willow video monitor"


def test_fit_learns_a_nonempty_mixture_by_default(shop: Path, mixture: dl.Mixture, orders: dl.Baskets) -> None:
    report = parsed((shop / "mixture.json").read_text())
    same = dl.fit(orders, rng=5)
    assert isinstance(mixture, dl.Mixture)
    assert mixture.nonempty
    np.testing.assert_allclose(mixture.marginals(), same.model.marginals(), rtol=1e-12)
    assert (report["kind"], report["segments"], report["rank"], report["attraction"]) == ("mixture", 10, 20, True)
    assert (report["shrinkage"], report["shrinkage_chosen"], report["nonempty"]) == (None, None, True)
    assert report["train"]["log_likelihood"] == pytest.approx(mixture.log_likelihood(orders), abs=1e-9)
    assert (report["stop"], report["n_iter"], report["seed"]) == (same.stop.name, same.n_iter, 5)


def test_a_start_decides_the_kind_of_model_and_the_segments(
    shop: Path, mixture_file: Path, model: Path, tmp_path: Path
) -> None:
    two = tmp_path / "two"
    call = ("fit", shop / "orders.csv", "--max-iter", 20, "-o")
    assert not answer(*call, two, "--segments", 2, "--seed", 0, "--may-be-empty")["nonempty"]
    assert not dl.load(two).nonempty
    again = (*call, tmp_path / "m", "--start")
    assert [answer(*again, start)["segments"] for start in (mixture_file, two)] == [10, 2]
    assert answer(*again, two, "--segments", 3)["segments"] == 3
    assert answer(*again, model)["kind"] == "dpp"


def test_describe_gives_what_the_library_gives(mixture_file: Path, mixture: dl.Mixture) -> None:
    for options, same in (((), describe(mixture, 3)), (("--item", ITEM), describe_item(mixture, ITEM, 3))):
        report, out = both("describe", mixture_file, *options, "--top", 3)
        expected = parsed(json.dumps(json_safe(same.to_dict())))
        assert {name: report[name] for name in expected} == expected
        assert str(same).splitlines()[:5] == out.splitlines()[:5]


def test_recommend_complete_and_explain_give_what_the_library_gives(mixture_file: Path, mixture: dl.Mixture) -> None:
    best = mixture.recommend([ITEM], 4)
    allow = [option for each in best for option in ("--allow", each.item)]
    report, out = both("recommend", mixture_file, ITEM, "-k", 5, "--deny", best[0].item, *allow)
    # The command answers one basket without compiled code, so numbers differ by rounding.
    for found, (item, *numbers) in zip(report["recommendations"], best[1:], strict=True):
        assert found["item"] == item
        assert [found["score"], found["probability"]] == pytest.approx(numbers, rel=1e-9)
    assert "3 instead of 5" in report["note"]
    assert all(str(each.item) in out and f"{each.probability:.4f}" in out for each in best[1:])
    report, _ = both("recommend", mixture_file, "-k", 1)
    assert report["recommendations"][0]["score"] is None  # P(∅) is zero
    report, _ = both("complete", mixture_file, ITEM, "-k", 3)
    assert [each["item"] for each in report["items"]] == list(mixture.complete([ITEM], 3))
    report, _ = both("complete", mixture_file)
    assert [each["item"] for each in report["items"]] == list(mixture.greedy_map())
    partner = mixture.complements(ITEM, 1, level=None)[0].item
    report, _ = both("explain", mixture_file, partner, ITEM)
    assert report["influences"][0]["factor"] == pytest.approx(mixture.explain([ITEM], partner).influences[0].factor)
    assert report["influences"][0]["factor"] > 1


def test_sample_draws_what_the_library_draws(mixture_file: Path, mixture: dl.Mixture) -> None:
    drawn = mixture.sample(3250, rng=4)
    assert answer("sample", mixture_file, "-n", 3250, "--seed", 4)["samples"] == drawn
    assert min(map(len, drawn)) == 1
    report = answer("sample", mixture_file, "-n", 2, "-k", 4)  # without --seed, a new one is reported
    assert report["samples"] == mixture.sample(2, k=4, rng=report["seed"])


def test_items_are_added_to_a_model(mixture_file: Path, mixture: dl.Mixture, tmp_path: Path) -> None:
    more = tmp_path / "more.safetensors"
    report = answer("add-items", mixture_file, "Moon cot", "Moon pram", "--like", ITEM, "-o", more)
    found = dl.load(more)
    same = mixture.with_items(["Moon cot", "Moon pram"], like=ITEM)
    assert found.items == same.items
    assert report["added"] == [
        {"item": each, "probability": p} for each, p in zip(same.items[-2:], same.marginals()[-2:], strict=True)
    ]
    assert answer("add-items", mixture_file, "toy", "-o", more)["note"]
    other = tmp_path / "other.safetensors"
    assert run("add-items", mixture_file, "toy", "--like", ITEM, "--features", "f.csv", "-o", other).returncode == 2
    assert run("add-items", mixture_file, "toy", " ", "-o", other).returncode != 0
    assert not other.exists()


def test_items_are_added_to_a_model_in_a_store(tmp_path: Path) -> None:
    folder = write_models(tmp_path / "store", three_categories(), SHARES)
    before = dl.ModelStore.open(folder)
    call = ("add-items", folder, "hammock", "--category", "sleep")
    assert answer(*call)["n_items"] == 4
    now = dl.ModelStore.open(folder)
    assert now.verify() == []
    assert now["sleep"].items == (*before["sleep"].items, "hammock")
    assert {slug for slug in now if now.versions[slug] != before.versions[slug]} == {"sleep"}
    again = run(*call)
    assert (again.returncode, "'hammock'" in again.stderr) == (1, True)
    assert run("add-items", folder, "toy", "--category", "sleep", "-o", tmp_path / "m").returncode == 2
    assert run("add-items", folder, "toy", "--category", "sleeep").returncode == 1

"""The commands with a mixture, the default model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.models.relations import related_pairs
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


def test_fit_takes_segments_and_rank(shop: Path, orders: dl.Baskets) -> None:
    how = ["--segments", 2, "--rank", 3, "--max-iter", 4, "--seed", 1, "--threads", 1]
    call = ("fit", shop / "orders.csv", "-o", shop / "two.safetensors")
    report = answer(*call, *how)
    found = dl.load(shop / "two.safetensors")
    same = dl.fit(orders, segments=2, rank=3, max_iter=4, rng=1, threads=1)
    np.testing.assert_allclose(found.lift, same.model.lift, rtol=1e-12)
    assert (report["segments"], report["rank"], report["attraction"]) == (2, 3, True)


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


def test_describe_shows_segments_and_significant_pairs(mixture_file: Path, mixture: dl.Mixture) -> None:
    report, out = both("describe", mixture_file, "--top", 3)
    assert (report["kind"], report["nonempty"], len(report["segments"])) == ("mixture", True, 10)
    assert report["size"]["expected"] == pytest.approx(mixture.expected_size)
    assert report["size"]["probability_empty"] == 0
    for line, segment in zip(report["segments"], mixture.segments(10), strict=True):
        assert line["weight"] == pytest.approx(segment.weight)
        assert [(each["item"], each["times_as_likely"]) for each in line["likes"]] == list(segment.likes)
    pairs = related_pairs(mixture, 3)
    for name, found in (("substitutes", pairs.substitutes), ("complements", pairs.complements)):
        assert [(line["first"], line["second"]) for line in report[name]] == [pair[:2] for pair in found]
        assert [line["lift"] for line in report[name]] == [pair.lift for pair in found]
    assert f"{report['complements'][0]['lift']:.2f}" in out


def test_describe_an_item_gives_its_substitutes_and_complements(mixture_file: Path, mixture: dl.Mixture) -> None:
    report, _ = both("describe", mixture_file, "--item", ITEM, "--top", 2)
    assert report["probability"] == pytest.approx(mixture.inclusion_prob([ITEM]))
    assert report["substitutes"] == [each._asdict() for each in mixture.substitutes(ITEM, 2)]
    assert report["complements"] == [each._asdict() for each in mixture.complements(ITEM, 2)]
    unsure = len(mixture.complements(ITEM, 99, level=None)) - len(mixture.complements(ITEM, 99))
    assert report["not_significant"]["complements"] == unsure > 0


def test_recommend_complete_and_explain_give_what_the_library_gives(mixture_file: Path, mixture: dl.Mixture) -> None:
    report, _ = both("recommend", mixture_file, ITEM, "-k", 3)
    found = [pytest.approx(each._asdict()) for each in mixture.recommend([ITEM], 3)]  # by the loops, and not by numpy
    assert report["recommendations"] == found
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


def test_added_items_are_recommended(mixture_file: Path, mixture: dl.Mixture, tmp_path: Path) -> None:
    more = tmp_path / "more.safetensors"
    report = answer("add-items", mixture_file, "Moon cot", "Moon pram", "--like", ITEM, "-o", more)
    found = dl.load(more)
    same = mixture.with_items(["Moon cot", "Moon pram"], like=ITEM)
    assert found.items == same.items
    assert report["added"] == [
        {"item": each, "probability": p} for each, p in zip(same.items[-2:], same.marginals()[-2:], strict=True)
    ]
    listed = answer("recommend", more, mixture.items[0], "-k", 500)["recommendations"]
    assert {"Moon cot", "Moon pram"} < {each["item"] for each in listed}
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

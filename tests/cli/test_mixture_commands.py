"""What the commands do with a mixture, which is what the program learns unless asked for something else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.analysis.relations import related_pairs
from dpplearn.cli.commands.describe_mixture import mixture_item_tables, relations_tables
from dpplearn.kernels.families import law_of
from dpplearn.kernels.independent import independent
from dpplearn.models.mixture import Mixture
from helpers.command import answer, both, parsed, run, table
from helpers.shelves import SHARES, three_categories, write_shelf

ITEM = "Willow video monitor"


def words(text: str) -> str:
    return " ".join(text.split())


def test_fit_learns_a_mixture_given_that_no_basket_is_empty_and_reports_on_it(
    shop: Path, mixture: Mixture, orders: dl.Baskets
) -> None:
    report = parsed((shop / "mixture.json").read_text())
    same = dl.fit(orders, rng=5)
    assert isinstance(mixture, Mixture)
    assert mixture.nonempty
    np.testing.assert_array_equal(mixture.kernel.log_odds, same.model.kernel.log_odds)
    assert (report["kind"], report["segments"], report["rank"], report["attraction"]) == ("mixture", 10, 20, True)
    assert (report["shrinkage"], report["shrinkage_chosen"], report["nonempty"]) == (None, None, True)
    assert report["train"]["log_likelihood"] == pytest.approx(mixture.log_likelihood(orders), abs=1e-9)
    assert (report["stop"], report["n_iter"], report["seed"]) == (same.stop.name, same.n_iter, 5)


def test_fit_takes_segments_rank_and_attraction_and_compares_under_the_law_of_the_model(
    shop: Path, orders: dl.Baskets
) -> None:
    how = ["--segments", 2, "--rank", 3, "--no-attraction", "--max-iter", 4, "--seed", 1, "--threads", 1]
    call = ("fit", shop / "orders.csv", "-o", shop / "two.safetensors", "--test", shop / "orders.csv")
    report, out = both(*call, *how)
    found = dl.load(shop / "two.safetensors")
    same = dl.fit(orders, segments=2, rank=3, attraction=False, max_iter=4, rng=1, threads=1)
    np.testing.assert_array_equal(found.kernel.interaction, same.model.kernel.interaction)
    assert (report["segments"], report["rank"], report["attraction"]) == (2, 3, False)
    items = law_of(independent(orders, smoothing=0.5, nonempty=True), nonempty=True).mean_log_likelihood(orders)
    for part in ("train", "test"):  # independent items given that a basket is not empty, too
        assert report[part]["independent_log_likelihood"] == pytest.approx(items, abs=1e-9)
        assert report[part]["log_likelihood"] == pytest.approx(found.log_likelihood(orders), abs=1e-9)
    assert "mixture of 2 segments; items repel each other (rank 3)" in words(out)
    assert "shrinkage" not in out
    assert "given that it is not empty" in words(out)


def test_a_mixture_may_be_told_that_baskets_can_be_empty(shop: Path, tmp_path: Path) -> None:
    call = ("fit", shop / "orders.csv", "-o", tmp_path / "m.safetensors", "--max-iter", 2, "--segments", 1)
    assert not answer(*call, "--may-be-empty")["nonempty"]
    assert not dl.load(tmp_path / "m.safetensors").nonempty
    assert answer(*call, "--nonempty")["nonempty"]


def test_a_start_decides_the_kind_of_model_and_the_segments(
    shop: Path, mixture_file: Path, model: Path, tmp_path: Path
) -> None:
    two = shop / "start_of_two.safetensors"
    answer("fit", shop / "orders.csv", "-o", two, "--segments", 2, "--seed", 0)
    call = ("fit", shop / "orders.csv", "-o", tmp_path / "m.safetensors", "--max-iter", 1)
    assert [answer(*call, "--start", start)["segments"] for start in (mixture_file, two)] == [10, 2]
    assert answer(*call, "--start", two, "--segments", 3)["segments"] == 3
    assert answer(*call, "--start", model)["kind"] == "dpp"


def test_a_mixture_below_independent_items_is_told_what_to_try(shop: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.txt"
    few.write_text("a,b\nc\n" * 30)
    (tmp_path / "test.txt").write_text("a,c\nb,c\n")
    call = ("fit", few, "-o", tmp_path / "m.safetensors", "--test", tmp_path / "test.txt", "--seed", 0)
    out = words(table(*call))
    assert "test: the model is BELOW independent items" in out
    assert "--segments 1" in out
    assert "--init" not in out


def test_describe_shows_segments_and_pairs_that_the_baskets_are_sure_of(mixture_file: Path, mixture: Mixture) -> None:
    report, out = both("describe", mixture_file, "--top", 3)
    assert (report["kind"], report["nonempty"], report["n_segments"]) == ("mixture", True, 10)
    assert report["size"]["expected"] == pytest.approx(mixture.expected_size)
    assert report["size"]["probability_empty"] == 0
    for line, segment in zip(report["segments"], mixture.segments(10), strict=True):
        assert line["weight"] == pytest.approx(segment.weight)
        assert [(each["item"], each["times_as_likely"]) for each in line["likes"]] == list(segment.likes)
    pairs = related_pairs(mixture, 3)
    for name, found in (("substitutes", pairs.substitutes), ("complements", pairs.complements)):
        assert [line["items"] for line in report[name]] == [[pair.first, pair.second] for pair in found]
        assert [line["lift"] for line in report[name]] == [pair.lift for pair in found]
    first = report["complements"][0]
    assert f"{first['lift']:.2f} {first['low']:.2f} to {first['high']:.2f}" in words(out)
    assert "impossible: all is given that a set is not empty" in words(out)
    assert "shrinkage" not in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(("lift", "told"), [(2.0, False), (5.0, True), (1.2, True)])
def test_describe_says_why_a_lift_lies_outside_its_interval(lift: float, told: bool) -> None:
    line = {"items": ["a", "b"], "item": "a", "lift": lift, "low": 1.5, "high": 2.5, "met": 20.0, "expected": 10.0}
    report = {"intervals_known": True, "substitutes": [], "complements": [line], "segments": [{"weight": 1.0}]}
    report["by_chance"] = {"substitutes": 0, "complements": 0}
    for shown in (relations_tables(report), mixture_item_tables({**report, "item": "b", "probability": 0.5})):
        assert any("draws lifts towards 1" in each for each in shown if isinstance(each, str)) == told


def test_segments_that_hardly_anyone_is_in_are_counted_and_not_shown(tmp_path: Path) -> None:
    from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel

    likes = np.array([[2.0, -2.0], [-2.0, 2.0], [1.0, 1.0]])
    model = Mixture(MixtureKernel(np.array([0.6, 0.398, 0.002]), likes, np.eye(2)[None]), ["tea", "coffee"])
    model.save(tmp_path / "m.safetensors")
    report, out = both("describe", tmp_path / "m.safetensors")
    assert len(report["segments"]) == 3
    assert "1 more segment of less than 0.5%" in words(out)
    assert "How sure this is is not known" in words(out)  # it does not tell what it was learned from
    assert report["substitutes"][0]["items"] == ["tea", "coffee"]
    assert report["substitutes"][0]["low"] is None


def test_names_in_the_table_of_segments_fit_on_a_line(tmp_path: Path) -> None:
    from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel

    likes = np.array([[2.0, -2.0], [-2.0, 2.0]])
    names = ["A very long name of a thing that is sold, in blue", "A very long name of a thing that is sold, in red"]
    Mixture(MixtureKernel(np.array([0.6, 0.4]), likes, np.eye(2)[None]), names).save(tmp_path / "m.safetensors")
    lines = table("describe", tmp_path / "m.safetensors").splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith(" 1     60%"))
    assert "d, in blue " in lines[first]
    assert "d, in red " in lines[first + 1]


def test_describe_an_item_gives_what_stands_in_for_it_and_what_goes_with_it(
    mixture_file: Path, mixture: Mixture
) -> None:
    report, out = both("describe", mixture_file, "--item", ITEM, "--top", 2)
    assert report["probability"] == pytest.approx(mixture.inclusion_prob([ITEM]))
    assert report["substitutes"] == [each._asdict() for each in mixture.substitutes(ITEM, 2)]
    assert report["complements"] == [each._asdict() for each in mixture.complements(ITEM, 2)]
    assert report["substitutes"][0]["item"] in out
    unsure = len(mixture.complements(ITEM, 99, level=None)) - len(mixture.complements(ITEM, 99))
    assert report["by_chance"]["complements"] == unsure > 0
    assert f"Left out: {unsure} more items" in words(out)


def test_recommend_complete_and_explain_give_what_the_library_gives(mixture_file: Path, mixture: Mixture) -> None:
    report, _ = both("recommend", mixture_file, ITEM, "-k", 3)
    found = [pytest.approx(each._asdict()) for each in mixture.recommend([ITEM], 3)]  # by the loops, and not by numpy
    assert report["recommendations"] == found
    report, out = both("recommend", mixture_file, "-k", 1)  # P(∅) is zero
    assert report["recommendations"][0]["score"] is None
    assert "Scores do not exist beside the empty basket" in words(out)
    report, out = both("complete", mixture_file, ITEM, "-k", 3)
    assert [each["item"] for each in report["items"]] == list(mixture.complete([ITEM], 3))
    assert "The first item has none" in words(out)
    report, _ = both("complete", mixture_file)
    assert [each["item"] for each in report["items"]] == list(mixture.greedy_map())
    partner = mixture.complements(ITEM, 1, level=None)[0].item
    report, _ = both("explain", mixture_file, partner, ITEM)
    assert report["influences"][0]["factor"] == pytest.approx(mixture.explain([ITEM], partner).influences[0].factor)
    assert report["influences"][0]["factor"] > 1


def test_sample_draws_what_the_library_draws_in_parts_and_never_nothing(mixture_file: Path, mixture: Mixture) -> None:
    rng = np.random.default_rng(4)
    drawn = [*mixture.sample(3200, rng=rng), *mixture.sample(50, rng=rng)]
    assert answer("sample", mixture_file, "-n", 3250, "--seed", 4)["samples"] == drawn
    assert min(map(len, drawn)) == 1
    assert {len(each) for each in answer("sample", mixture_file, "-k", 4)["samples"]} == {4}


def test_items_that_no_basket_held_are_added_and_recommended(
    mixture_file: Path, mixture: Mixture, tmp_path: Path
) -> None:
    more = tmp_path / "more.safetensors"
    report, out = both("add-items", mixture_file, "Moon cot", "Moon pram", "--like", ITEM, "-o", more)
    found = dl.load(more)
    same = mixture.with_items(["Moon cot", "Moon pram"], like=ITEM)
    assert found.items == same.items
    assert report["added"] == [
        {"item": each, "probability": p} for each, p in zip(same.items[-2:], same.marginals()[-2:], strict=True)
    ]
    assert f"2 items added, like {ITEM!r}" in words(out)
    listed = answer("recommend", more, mixture.items[0], "-k", 500)["recommendations"]
    assert {"Moon cot", "Moon pram"} < {each["item"] for each in listed}
    assert answer("add-items", mixture_file, "toy", "-o", more)["note"].endswith("at their average probability")


def test_items_are_added_to_a_model_on_a_shelf(tmp_path: Path) -> None:
    folder = write_shelf(tmp_path / "shelf", three_categories(), SHARES)
    before = dl.Shelf.open(folder)
    call = ("add-items", folder, "hammock", "--category", "sleep")
    assert answer(*call)["n_items"] == 4
    now = dl.Shelf.open(folder)
    assert now.is_whole()
    assert now["sleep"].items == (*before["sleep"].items, "hammock")
    assert {slug for slug in now if now.versions[slug] != before.versions[slug]} == {"sleep"}
    again = run(*call)
    assert (again.returncode, "in the catalogue already" in again.stderr) == (1, True)
    assert run("add-items", folder, "toy", "--category", "sleep", "-o", tmp_path / "m").returncode == 2
    assert run("add-items", folder, "toy", "--category", "sleeep").returncode == 1


def test_an_item_cannot_be_added_by_likeness_and_by_features(mixture_file: Path, tmp_path: Path) -> None:
    call = ("add-items", mixture_file, "toy", "--like", ITEM, "--features", "f.csv", "-o", tmp_path / "m")
    assert run(*call)[0] == 2


def test_an_item_without_a_name_cannot_be_added(mixture_file: Path, tmp_path: Path) -> None:
    assert "an ITEM is empty" in run("add-items", mixture_file, "toy", " ", "-o", tmp_path / "m").stderr


def test_all_plots_of_a_mixture_are_those_that_it_has(shop: Path, mixture_file: Path, tmp_path: Path) -> None:
    how = ("-o", tmp_path / "all", "--data", shop / "orders.csv")
    report = answer("plot", mixture_file, "all", *how)
    kinds = "curve lift segments sizes reliability".split()
    assert report["files"] == [str(tmp_path / "all" / f"{kind}.png") for kind in kinds]
    assert report["notes"] == []
    answer("fit", shop / "orders.csv", "-o", tmp_path / "one.safetensors", "--segments", 1, "--max-iter", 2)
    report = answer("plot", tmp_path / "one.safetensors", "all", *how)
    assert report["notes"] == ["no segments: the mixture has a single one"]
    done = run("plot", tmp_path / "one.safetensors", "segments", "-o", tmp_path / "s.png")
    assert (done.returncode, "single segment" in done.stderr) == (1, True)


def test_plot_all_of_a_single_item_leaves_out_what_takes_two(tmp_path: Path) -> None:
    dl.fit(dl.Baskets.from_lists([["a"], ["a"]]), rng=0).model.save(tmp_path / "one.safetensors")
    report = answer("plot", tmp_path / "one.safetensors", "all", "-o", tmp_path / "plots")
    assert sorted(each.name for each in (tmp_path / "plots").iterdir()) == ["curve.png", "sizes.png"]
    assert "no segments: all like all items equally" in report["notes"]
    assert "no lift: it is of two items, and the model has a single one" in report["notes"]

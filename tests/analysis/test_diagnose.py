"""The diagnosis of data whose generating process is known."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets, Diagnosis, diagnose
from dpplearn.analysis.diagnose import FITS, is_clear, size_ratio
from dpplearn.evaluation.protocol import Outcomes
from dpplearn.models.mixture import Mixture
from helpers.command import both
from helpers.problems import sampled
from helpers.registries import registry


def independent(n: int, *, nonempty: bool = False) -> Baskets:
    """Return baskets of ten items, by themselves."""
    rng = np.random.default_rng(0)
    X = rng.random((n, 10)) < rng.uniform(0.05, 0.3, 10)
    return Baskets.from_matrix(X[X.any(axis=1)] if nonempty else X)


def test_sets_drawn_from_a_symmetric_dpp_call_for_one() -> None:
    drawn = diagnose(sampled(0, n=3000))
    assert (drawn.verdict, is_clear(drawn.repulsion), is_clear(drawn.attraction)) == ("dpp", True, False)
    assert drawn.pairs.fewer.sum() > drawn.pairs.more.sum()
    assert drawn.summary.size_ratio.high < 1
    assert len(drawn.substitute_groups()) > 0


@pytest.fixture(scope="module")
def of_independent_items() -> Diagnosis:
    found = diagnose(independent(500))
    assert found.verdict == "independent items"
    return found


@pytest.mark.slow
def test_sets_drawn_from_a_mixture_or_a_nonsymmetric_dpp_call_for_one() -> None:
    rng = np.random.default_rng(0)
    A, U = rng.standard_normal((10, 10)), rng.standard_normal((10, 2))
    likes = np.where(np.arange(10) < 5, 1.5, -1.5) * np.array([[1], [-1]]) - 2.5  # two segments
    model = Mixture.from_arrays([0.6, 0.4], likes, U @ U.T + A - A.T)
    lists = [basket for basket in model.sample(1500, rng=0) if basket]
    drawn = diagnose(Baskets.from_lists(lists, n_items=10))
    assert (drawn.pairs.nonempty, drawn.verdict, is_clear(drawn.segments)) == (True, "mixture", True)
    A = np.zeros((10, 10))
    A[range(0, 10, 2), range(1, 10, 2)] = 2.5  # five pairs that attract, no segments
    model = Mixture.from_arrays([1.0], np.full((1, 10), -2.5), A - A.T)
    drawn = diagnose(Baskets.from_lists(model.sample(1500, rng=0), n_items=10))
    assert (drawn.verdict, is_clear(drawn.attraction)) == ("segments=1", True)


@pytest.mark.slow
def test_few_baskets_and_pairs_that_cannot_vary_are_too_little_data() -> None:
    assert diagnose(independent(25)).verdict == "too little data"
    with pytest.raises(dl.InputError):
        diagnose([["a"]])
    for baskets in ([["a"], ["b"], ["b"], ["a"]] * 30, [["a", "b"]] * 50, [["a"], []], [[], []]):
        assert diagnose(Baskets.from_lists(baskets, ["a", "b", "c"])).verdict == "too little data"


@pytest.mark.slow
def test_that_no_basket_is_empty_is_neither_repulsion_nor_gain() -> None:
    """The negative control: without knowing it a DPP seems to gain, and pairs seem to repel."""
    baskets = independent(1500, nonempty=True)
    knowing = diagnose(baskets)
    assert knowing.verdict == "independent items"
    gains = [gain.value for gain in knowing.gains.values()]
    assert -0.03 < min(gains) <= max(gains) < 0.005
    with_empty = Baskets.from_lists([*baskets, []], items=baskets.items)  # one empty basket: P(empty) is not excluded
    assert diagnose(with_empty).repulsion.value > 0.02


def judged(found: Diagnosis, **gains: tuple[float, float]) -> Diagnosis:
    """Replace the log-likelihoods so that models have these gains and standard errors; the others gain nothing."""
    up_and_down = np.resize([1.0, -1.0], 100)
    names = {name: name.split()[0] for name in (*FITS, "independent items")}
    answers = {}
    for name, model in names.items():
        mean, error = gains.get(model, (0.0, 0.0))
        answers[name] = Outcomes({"log_likelihood": mean + np.sqrt(99) * error * up_and_down}, 0, {}, None)
    baskets = Baskets.from_lists([[0]] * 100)
    return replace(found, evaluation=replace(found.evaluation, answers=answers, baskets=baskets))


def test_the_simplest_model_that_is_not_clearly_worse_is_chosen(of_independent_items: Diagnosis) -> None:
    def verdict(**gains: tuple[float, float]) -> str:
        return judged(of_independent_items, **gains).verdict

    best = (0.2, 0.01)
    assert verdict() == "independent items"
    assert verdict(symmetric=(0.011, 0.005)) == "dpp"
    assert verdict(symmetric=(0.011, 0.006)) == "independent items"  # not significant
    assert verdict(symmetric=(0.009, 0.001)) == "independent items"  # too small
    assert verdict(symmetric=(0.195, 0.01), mixture=best) == "dpp"
    assert verdict(symmetric=(0.1, 0.01), nonsymmetric=(0.195, 0.01), mixture=best) == "segments=1"
    assert verdict(nonsymmetric=(0.185, 0.01), mixture=best) == "mixture"
    assert verdict(nonsymmetric=(0.1, 0.01), segments=best) == "mixture"
    assert verdict(mixture=best) == "mixture"
    assert verdict(mixture=(0.0, 0.06)) == "too little data"  # a gain is not excluded
    assert verdict(mixture=(0.0, 0.04)) == "independent items"
    found = judged(of_independent_items, mixture=best)
    assert (found.gains["mixture"].value, found.gains["mixture"].standard_error) == pytest.approx(best)
    plain = judged(of_independent_items)
    one = np.arange(len(plain.pairs.pairs)) == 0  # a significant pair that no model explains
    assert replace(plain, pairs=replace(plain.pairs, significant=one)).verdict == "too little data"


def test_the_answer_about_a_large_catalogue_fits_on_a_screen(of_independent_items: Diagnosis) -> None:
    summary = replace(of_independent_items.summary, n_baskets=88_162, n_items=16_470, n_rare=15_482, n_modelled=200)
    found = judged(replace(of_independent_items, summary=summary), nonsymmetric=(0.681, 0.017), mixture=(0.859, 0.024))
    lines = str(found).splitlines()
    assert len(lines) + 7 + 2 <= 25  # with the strongest pairs, which these data do not have, and the seed
    assert max(map(len, lines)) <= 80


def test_sizes_and_sparsity_are_counted() -> None:
    lists = [["a", "b"], ["a"], [], ["a", "c", "d"]]
    baskets = Baskets.from_lists(lists, ["a", "b", "c", "d", "e"], weights=[2, 1, 1, 6])
    found = diagnose(baskets).summary
    assert (found.n_baskets, found.weight, found.n_empty) == (4, 10, 1)
    assert (found.mean_size, found.max_size) == (2.3, 3)
    assert (found.n_items, found.n_modelled, found.n_rare) == (5, 4, 2)


def test_of_a_large_catalogue_models_are_of_the_most_frequent_items() -> None:
    baskets = Baskets.from_lists([["c", "b"], ["c"], ["b", "a", "d"], ["d"], ["c", "d"]], ["a", "b", "c", "d"])
    found = diagnose(baskets, most_items=2)
    assert (found.summary.n_items, found.summary.n_modelled) == (4, 2)
    assert found.pairs.n_possible == 6
    with pytest.raises(dl.InputError, match=r"most_items.*1"):
        diagnose(baskets, most_items=1)


@pytest.mark.slow
def test_registries_have_monitors_that_compete_and_segments_that_a_dpp_misses(shared: Path) -> None:
    found = diagnose(registry(shared, "safety"))
    assert found.verdict == "mixture"
    assert is_clear(found.repulsion)
    for pair in found.strongest_pairs(3, above=False):
        assert all("Monitor" in str(item) for item in pair[:2])
    assert len(str(found).splitlines()) <= 25
    assert any("Additional Camera" in str(item) for item in found.strongest_pairs(1, above=True)[0][:2])


@pytest.mark.slow
def test_the_program_reports_what_the_library_finds(tmp_path: Path) -> None:
    rows = [f"{number},item {item}" for number, basket in enumerate(sampled(0, n=500)) for item in basket]
    (tmp_path / "orders.csv").write_text("\n".join(["order,product", *rows]))
    columns = ["--columns", "basket=order,item=product"]
    report, out = both("diagnose", tmp_path / "orders.csv", *columns, "--top", 2)
    expected = diagnose(dl.read_baskets(tmp_path / "orders.csv", basket="order", item="product"))
    assert (report["verdict"], report["sentence"]) == (expected.verdict, expected.sentence)
    strongest = expected.strongest_pairs(2, above=False)
    assert [each["first"] for each in report["less_often"]] == [each.first for each in strongest]
    assert report["gains"]["mixture"]["value"] == pytest.approx(expected.gains["mixture"].value)
    assert f"{strongest[0].first} " in " ".join(out.split())


def some_rich(n: int, seed: int = 0, n_items: int = 12) -> Baskets:
    """Return baskets of independent items from two segments, one with many items per basket and one with few."""
    rng = np.random.default_rng(seed)
    return Baskets.from_matrix(rng.random((n, n_items)) < rng.choice([0.05, 0.7], (n, 1)))


def test_the_ratio_of_sizes_and_its_standard_error_are_those_of_repeated_samples() -> None:
    baskets = some_rich(400)
    found = size_ratio(baskets)
    assert found.value == pytest.approx(baskets.sizes.var() / baskets.sizes.mean())
    again = [size_ratio(some_rich(400, seed)).value for seed in range(200)]
    assert found.standard_error == pytest.approx(np.std(again), rel=0.2)
    for other in (baskets.deduplicated(), baskets.reweighted(0.3)):
        assert size_ratio(other).standard_error == pytest.approx(found.standard_error)


def test_two_segments_exceed_the_bound_of_a_single_dpp_and_draws_of_a_dpp_do_not() -> None:
    assert size_ratio(some_rich(400, n_items=24)).low > 2
    for seed in range(5):
        assert size_ratio(sampled(seed, n=2000)).low < 1
    for sets in ([["a"]], [["a", "b"]] * 5, [["a"], ["b"]]):
        assert size_ratio(Baskets.from_lists(sets, ["a", "b"])).value == 0
    assert math.isnan(size_ratio(Baskets.from_lists([[], []], ["a", "b"])).value)

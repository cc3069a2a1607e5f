"""The diagnosis of data whose generating process is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets, Diagnosis, Verdict, diagnose
from dpplearn.analysis.bounds import bounds
from dpplearn.analysis.cooccurrence import Strength
from dpplearn.analysis.gains import CASES, INDEPENDENT, Unseen, predicted
from dpplearn.arrays import Bools
from dpplearn.models.mixture import Mixture
from helpers.command import both, run
from helpers.problems import sampled
from helpers.registries import registry

Rng = np.random.Generator


def independent(n: int, rng: Rng, n_items: int = 10) -> Bools:
    return np.asarray(rng.random((n, n_items)) < rng.uniform(0.05, 0.3, n_items))


def kinds(n: int, rng: Rng, n_kinds: int = 3) -> Bools:
    """Some kinds are wanted, and of each one of four items."""
    X = np.zeros((n, n_kinds, 4), bool)
    shopper, kind = np.nonzero(rng.random((n, n_kinds)) < 0.4)
    X[shopper, kind, rng.integers(4, size=len(kind))] = True
    return X.reshape(n, -1)


def bundles(n: int, rng: Rng, n_bundles: int = 3) -> Bools:
    """Three items that come together, mostly."""
    wanted = np.repeat(rng.random((n, n_bundles)) < 0.2, 3, axis=1)
    return np.asarray(wanted & (rng.random(wanted.shape) < 0.7))


def people(n: int, rng: Rng, n_people: int = 3) -> Bools:
    """Each likes four items that the others do not care for."""
    likes = np.where(np.arange(n_people)[:, None] == np.arange(4 * n_people) // 4, 0.5, 0.06)
    return np.asarray(rng.random((n, 4 * n_people)) < likes[rng.integers(n_people, size=n)])


def beside(one: Callable[[int, Rng], Bools], other: Callable[[int, Rng], Bools]) -> Callable[[int, Rng], Bools]:
    return lambda n, rng: np.hstack([one(n, rng), other(n, rng)])


SORTS: dict[str, tuple[Callable[[int, Rng], Bools], Verdict]] = {
    "independent": (independent, Verdict.INDEPENDENT),
    "kinds": (kinds, Verdict.DPP),
    "bundles": (bundles, Verdict.MIXTURE),
    "people": (people, Verdict.MIXTURE),
    "kinds and independent": (beside(kinds, independent), Verdict.DPP),
}


def made(sort: str, n: int, seed: int = 0, *, nonempty: bool = False) -> Baskets:
    X = SORTS[sort][0](n, np.random.default_rng(seed))
    return Baskets.from_matrix(X[X.any(axis=1)] if nonempty else X)


@pytest.fixture(scope="module")
def of_independent_items() -> Diagnosis:
    return diagnose(made("independent", 500))


@pytest.mark.slow
def test_data_of_every_sort_have_their_verdict() -> None:
    for sort, (_, verdict) in SORTS.items():
        found = diagnose(made(sort, 500))
        assert found.verdict is verdict, found.sentence
    groups = found.substitute_groups()  # of the last sort
    assert sorted(sorted(group.items) for group in groups) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_sets_drawn_from_a_symmetric_dpp_call_for_one() -> None:
    drawn = diagnose(sampled(0, n=3000))
    assert drawn.verdict is Verdict.DPP
    assert drawn.repulsion.clear
    assert not drawn.attraction.clear
    assert drawn.pairs.attracting.nats < drawn.pairs.repelling.nats / 10
    assert not drawn.bounds.sizes_beyond


@pytest.mark.slow
def test_sets_drawn_from_a_mixture_or_a_nonsymmetric_dpp_call_for_one() -> None:
    rng = np.random.default_rng(0)
    A, U = rng.standard_normal((10, 10)), rng.standard_normal((10, 2))
    likes = np.where(np.arange(10) < 5, 1.5, -1.5) * np.array([[1], [-1]]) - 2.5  # two segments
    model = Mixture.from_arrays([0.6, 0.4], likes, U @ U.T + A - A.T)
    lists = [basket for basket in model.sample(1500, rng=0) if basket]
    drawn = diagnose(Baskets.from_lists(lists, n_items=10))
    assert drawn.pairs.nonempty
    assert drawn.verdict is Verdict.MIXTURE
    assert drawn.segments.clear
    A = np.zeros((10, 10))
    A[range(0, 10, 2), range(1, 10, 2)] = 2.5  # five pairs that attract, no segments
    model = Mixture.from_arrays([1.0], np.full((1, 10), -2.5), A - A.T)
    drawn = diagnose(Baskets.from_lists(model.sample(1500, rng=0), n_items=10))
    assert drawn.verdict is Verdict.NONSYMMETRIC
    assert drawn.attraction.clear


@pytest.mark.slow
def test_few_baskets_and_pairs_that_cannot_vary_are_too_little_data() -> None:
    assert diagnose(made("people", 25)).verdict is Verdict.TOO_LITTLE
    for baskets in ([["a"]], [["a"], ["b"], ["b"], ["a"]] * 30, [["a", "b"]] * 50, [["a"], []], [[], []]):
        assert diagnose(Baskets.from_lists(baskets, ["a", "b", "c"])).verdict is Verdict.TOO_LITTLE


@pytest.mark.slow
def test_that_no_basket_is_empty_is_neither_repulsion_nor_gain() -> None:
    """The negative control: without knowing it a DPP seems to gain, and pairs seem to repel."""
    baskets = made("independent", 1500, nonempty=True)
    knowing = diagnose(baskets)
    assert knowing.verdict is Verdict.INDEPENDENT
    means = [gain.mean for gain in knowing.gains.values()]
    assert -0.03 < min(means) <= max(means) < 0.005  # all are judged by the same law
    assert predicted(baskets, nonempty=False).gain("symmetric").mean > 0.02


def judged(**gains: tuple[float, float]) -> Unseen:
    """Baskets on which the cases gain so much, with such standard errors; the others nothing."""
    up_and_down = np.resize([1.0, -1.0], 100)
    found = {case: np.zeros(100) for case in (INDEPENDENT, *CASES)}
    found |= {case: mean + 10 * error * up_and_down for case, (mean, error) in gains.items()}
    return Unseen(found, np.ones(100))


def test_the_simplest_model_is_taken_that_is_not_significantly_worse_than_the_best(
    of_independent_items: Diagnosis,
) -> None:
    def verdict(**gains: tuple[float, float]) -> Verdict:
        return replace(of_independent_items, unseen=judged(**gains)).verdict

    best = (0.2, 0.01)
    assert verdict() is Verdict.INDEPENDENT
    assert verdict(symmetric=(0.011, 0.005)) is Verdict.DPP
    assert verdict(symmetric=(0.011, 0.006)) is Verdict.INDEPENDENT  # within two standard errors
    assert verdict(symmetric=(0.009, 0.001)) is Verdict.INDEPENDENT  # not worth having
    assert verdict(symmetric=(0.195, 0.01), mixture=best) is Verdict.DPP
    assert verdict(symmetric=(0.1, 0.01), nonsymmetric=(0.195, 0.01), mixture=best) is Verdict.NONSYMMETRIC
    assert verdict(nonsymmetric=(0.185, 0.01), mixture=best) is Verdict.MIXTURE
    assert verdict(nonsymmetric=(0.1, 0.01), segments=best) is Verdict.MIXTURE
    assert verdict(mixture=best) is Verdict.MIXTURE


def test_where_no_model_gains_but_pairs_clearly_lean_one_way_the_data_are_too_little(
    of_independent_items: Diagnosis,
) -> None:
    plain = replace(of_independent_items, unseen=judged())
    for side in ("repelling", "attracting"):
        open_ = replace(plain, pairs=replace(plain.pairs, **{side: Strength(0.05, 0.01)}))
        assert open_.verdict is Verdict.TOO_LITTLE
        weak = replace(plain, pairs=replace(plain.pairs, **{side: Strength(0.019, 0.001)}))
        assert weak.verdict is Verdict.INDEPENDENT


def test_a_gain_is_a_mean_over_baskets_one_by_one() -> None:
    unseen = Unseen(
        {"independent": np.array([-5.0, -1, -1]), "mixture": np.array([-4.0, -1, -2])}, np.array([2.0, 1, 1])
    )
    gain = unseen.gain("mixture")
    assert gain.mean == pytest.approx((2 * 1 + 0 - 1) / 4)
    assert gain.standard_error == pytest.approx(np.std([1, 1, 0, -1]) / 2)
    assert gain.percent == pytest.approx(100 * (np.exp(0.25) - 1))
    back = unseen.gain("independent", "mixture")
    assert (back.mean, back.standard_error) == (-gain.mean, gain.standard_error)


@pytest.mark.slow
def test_gains_depend_on_the_seed_and_not_on_the_number_of_threads() -> None:
    baskets = made("kinds", 100)
    one, two, other = (
        [gain.mean for gain in diagnose(baskets, threads=threads, rng=seed).gains.values()]
        for threads, seed in ((1, 0), (2, 0), (2, 1))
    )
    assert one == pytest.approx(two, abs=1e-6)
    assert one != pytest.approx(other, abs=1e-3)


def test_sizes_and_sparsity_are_counted() -> None:
    baskets = Baskets.from_lists(
        [["a", "b"], ["a"], [], ["a", "c", "d"]], ["a", "b", "c", "d", "e"], weights=[2, 1, 1, 6]
    )
    overview = diagnose(baskets).overview
    assert (overview.n_baskets, overview.weight, overview.n_empty, overview.n_single) == (4, 10, 1, 1)
    assert (overview.mean_size, overview.median_size, overview.largest_size) == (2.3, 1.5, 3)
    assert (overview.n_items, overview.n_looked_at, overview.n_never, overview.n_rare) == (5, 4, 1, 1)
    assert overview.density == pytest.approx(2.3 / 5)
    assert overview.share_looked_at == 1


def test_of_a_large_catalogue_all_pairs_are_tested_and_models_are_of_the_most_frequent_items() -> None:
    baskets = Baskets.from_lists([["c", "b"], ["c"], ["b", "a", "d"], ["d"], ["c", "d"]], ["a", "b", "c", "d"])
    found = diagnose(baskets, most_items=2)
    overview = found.overview
    assert (overview.n_items, overview.n_looked_at, overview.share_looked_at) == (4, 2, pytest.approx(6 / 9))
    assert len(found.pairs) == 6
    with pytest.raises(dl.InputError, match=r"most_items.*1"):
        diagnose(baskets, most_items=1)


@pytest.mark.slow
def test_registries_have_monitors_that_compete_and_segments_that_a_dpp_misses(shared: Path) -> None:
    told = diagnose(registry(shared, "safety"))
    assert told.verdict is Verdict.MIXTURE
    assert told.repulsion.clear
    for pair in told.pairs.strongest(told.pairs.repels, 3):
        assert "Monitor" in str(pair.first)
        assert "Monitor" in str(pair.second)
    camera = told.pairs.strongest(told.pairs.attracts, 1)[0]
    assert "Additional Camera" in f"{camera.first} {camera.second}"


@pytest.mark.slow
def test_the_program_reports_what_the_library_finds(tmp_path: Path) -> None:
    rows = [f"{number},item {item}" for number, basket in enumerate(made("bundles", 150)) for item in basket]
    (tmp_path / "orders.csv").write_text("\n".join(["order,product", *rows]))
    columns = ["--columns", "basket=order,item=product"]
    report, out = both("diagnose", tmp_path / "orders.csv", *columns, "--top", 2)
    expected = diagnose(dl.read_baskets(tmp_path / "orders.csv", basket="order", item="product"))
    assert (report["verdict"], report["sentence"]) == (str(expected.verdict), expected.sentence)
    assert report["pairs"]["repel"] == expected.pairs.repels.sum()
    strongest = expected.pairs.strongest(expected.pairs.attracts, 2)
    assert [each["first"] for each in report["attracting_pairs"]] == [each.first for each in strongest]
    assert report["gains"]["mixture"]["mean"] == pytest.approx(expected.gains["mixture"].mean)
    assert report["attraction"]["mean"] == pytest.approx(expected.attraction.mean)
    assert report["bounds"]["size_ratio"] == pytest.approx(expected.bounds.size_ratio)
    assert f"{strongest[0].first} " in " ".join(out.split())
    assert len(str(expected).splitlines()) <= 25
    assert max(map(len, str(expected).splitlines())) <= 80
    assert run("diagnose", tmp_path / "none.csv").returncode == 1


def some_rich(n: int, seed: int = 0, n_items: int = 12) -> Baskets:
    """Return baskets of independent items from two segments, one with many items per basket and one with few."""
    rng = np.random.default_rng(seed)
    return Baskets.from_matrix(rng.random((n, n_items)) < rng.choice([0.05, 0.7], (n, 1)))


def test_the_ratio_and_its_standard_error_are_those_of_repeated_samples() -> None:
    baskets = some_rich(400)
    found = bounds(baskets)
    assert found.size_ratio == pytest.approx(baskets.sizes.var() / baskets.sizes.mean())
    again = [bounds(some_rich(400, seed)).size_ratio for seed in range(200)]
    assert found.standard_error == pytest.approx(np.std(again), rel=0.2)


def test_two_segments_exceed_the_bound_of_a_single_dpp_and_draws_of_a_dpp_do_not() -> None:
    assert bounds(some_rich(400, n_items=24)).sizes_beyond
    for seed in range(5):
        assert not bounds(sampled(seed, n=2000)).sizes_beyond_symmetric


def test_weights_count_as_copies() -> None:
    baskets = some_rich(200)
    for other in (baskets.deduplicated(), baskets.reweighted(0.3)):
        assert bounds(other) == pytest.approx(bounds(baskets))


@pytest.mark.parametrize("sets", [[[], []], [["a"]], [["a", "b"]] * 5, [["a"], ["b"]]])
def test_without_variance_nothing_exceeds_the_bound(sets: list[list[str]]) -> None:
    found = bounds(Baskets.from_lists(sets, ["a", "b"]))
    assert not found.sizes_beyond_symmetric
    assert math.isnan(found.size_ratio) == (not any(sets))

"""The diagnosis against the truth: on data of every sort it must say what they are."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import current_thread
from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets, Verdict, diagnose
from dpplearn.analysis.cooccurrence import Strength
from dpplearn.analysis.diagnosis import SENTENCES, Diagnosis, Gain, measured_gain, most_frequent
from dpplearn.arrays import Bools
from dpplearn.fitting.runs import Method
from dpplearn.learners.loop import Run
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


def beside(one: Callable[[int, Rng], Bools], other: Callable[[int, Rng], Bools]) -> Callable[[int, Rng], Bools]:
    return lambda n, rng: np.hstack([one(n, rng), other(n, rng)])


SORTS: dict[str, tuple[Callable[[int, Rng], Bools], Verdict]] = {
    "independent": (independent, Verdict.INDEPENDENT),
    "kinds": (kinds, Verdict.REPULSION),
    "bundles": (bundles, Verdict.ATTRACTION),
    "kinds and bundles": (beside(kinds, bundles), Verdict.MIXED),
    "kinds and independent": (beside(kinds, independent), Verdict.REPULSION),
    "bundles and independent": (beside(bundles, independent), Verdict.ATTRACTION),
}


def made(sort: str, n: int, seed: int = 0, *, nonempty: bool = False) -> Baskets:
    X = SORTS[sort][0](n, np.random.default_rng(seed))
    return Baskets.from_matrix(X[X.any(axis=1)] if nonempty else X)


@pytest.fixture(scope="module")
def found() -> dict[str, Diagnosis]:
    return {sort: diagnose(made(sort, 500)) for sort in SORTS}


@pytest.mark.parametrize("sort", SORTS)
def test_data_of_every_sort_are_told_for_what_they_are(found: dict[str, Diagnosis], sort: str) -> None:
    assert found[sort].verdict is SORTS[sort][1], found[sort].sentence


def test_a_sample_of_a_dpp_is_told_to_repel() -> None:
    drawn = diagnose(sampled(0, n=3000))
    assert drawn.verdict is Verdict.REPULSION
    assert drawn.pairs.attracting.nats < drawn.pairs.repelling.nats / 10


@pytest.mark.parametrize("sort", SORTS)
def test_a_handful_of_baskets_leaves_it_open_unless_items_clearly_go_together(sort: str) -> None:
    verdict = diagnose(made(sort, 25)).verdict
    clear = {"bundles": Verdict.ATTRACTION, "kinds": Verdict.REPULSION}
    assert verdict in {Verdict.TOO_LITTLE, *(clear[name] for name in clear if name in sort)}


def test_that_no_basket_is_empty_is_neither_repulsion_nor_gain() -> None:
    """The negative control: without knowing it a DPP seems to gain, and pairs seem to repel."""
    baskets = made("independent", 1500, nonempty=True)
    knowing = diagnose(baskets)
    assert knowing.verdict is Verdict.INDEPENDENT
    assert knowing.gain.mean < 0.005
    assert measured_gain(baskets, nonempty=False).mean > 0.02


@pytest.mark.parametrize("factor", [1, 0.3])  # counts, and weights that are none
def test_the_gain_is_that_of_the_prior_that_a_fit_would_choose(factor: float) -> None:
    baskets = made("kinds", 100).reweighted(factor)
    choice = dl.fit(baskets, prior="auto", rng=7, nonempty=False).prior_choice
    assert choice is not None
    assert measured_gain(baskets, 7, nonempty=False) == pytest.approx((*choice.gain, choice.strength))


def test_nothing_is_learned_but_from_the_folds_of_the_cross_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    run, threads = Method.run, []

    def seen(*given: Any, **options: Any) -> Run:
        threads.append(current_thread().name)
        return run(*given, **options)

    monkeypatch.setattr(Method, "run", seen)
    assert diagnose(made("kinds", 300)).gain.strength < np.inf
    assert threads
    assert [name for name in threads if not name.startswith("dpplearn-fold")] == []


def test_an_interrupt_while_folds_are_learned_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dpplearn.fitting.prior_choice.wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        diagnose(made("kinds", 50))


@pytest.mark.parametrize("baskets", [[["a"]], [["a"], ["b"], ["b"], ["a"]] * 30, [["a"], []], [[], []]])
def test_where_pairs_have_no_room_nothing_can_be_told(baskets: list[list[str]]) -> None:
    told = diagnose(Baskets.from_lists(baskets, ["a", "b", "c"]))
    assert told.verdict is Verdict.TOO_LITTLE
    assert "no room" in told.sentence


def test_a_verdict_follows_from_the_gain_and_from_which_side_is_larger(found: dict[str, Diagnosis]) -> None:
    def verdict(sort: str, gain: float, error: float) -> Verdict:
        return replace(found[sort], gain=Gain(gain, error, 1.0)).verdict

    assert verdict("kinds", 0.011, 0.005) is Verdict.REPULSION
    assert verdict("kinds", 0.011, 0.006) is Verdict.TOO_LITTLE  # within two standard errors: not learned
    assert verdict("kinds", 0.009, 0.001) is Verdict.TOO_LITTLE
    assert verdict("kinds", float("nan"), float("nan")) is Verdict.TOO_LITTLE
    assert verdict("bundles", 0.2, 0.01) is Verdict.MIXED
    assert verdict("independent", 0.2, 0.01) is Verdict.REPULSION
    assert verdict("independent", 0.009, 0.001) is Verdict.INDEPENDENT
    pairs = replace(found["independent"].pairs, repelling=Strength(0, 0.002), attracting=Strength(0.003, 0.002))
    assert replace(found["independent"], pairs=pairs).verdict is Verdict.INDEPENDENT  # chance alone may show as much
    pairs = replace(pairs, attracting=Strength(0.005, 0.002))
    assert replace(found["independent"], pairs=pairs).verdict is Verdict.ATTRACTION


def test_a_sentence_has_the_numbers_it_rests_on(found: dict[str, Diagnosis]) -> None:
    assert set(SENTENCES) == set(Verdict)
    for each in found.values():
        assert f"{each.gain.mean:.3f} nats per basket" in each.sentence
        assert f"± {2 * each.gain.standard_error:.3f}" in each.sentence
        assert f"{max(each.pairs.attracting.nats, 0):.3f}" in each.sentence
        assert each.sentence in str(each)
    kinds = replace(found["kinds"], gain=Gain(0.7, 0.01, 0.0))
    assert "2.0 times likelier" in kinds.sentence
    assert "wrong tool" in found["bundles"].sentence
    assert "nonsymmetric DPP" in found["kinds and bundles"].sentence


def test_the_gain_is_that_of_unseen_baskets(found: dict[str, Diagnosis]) -> None:
    """A fit to one half gains about as much on the other."""
    train, test = made("kinds", 2000).split(0.5, rng=0)
    learned = dl.fit(train, prior=0.0, nonempty=False).dpp.log_prob(test)
    m = (train.frequencies() * 1000 + 0.5) / 1001
    popular = dl.DPP(dl.Kernel(m, np.eye(len(m)))).log_prob(test)
    gain = found["kinds"].gain
    assert gain.mean == pytest.approx((learned - popular).mean(), abs=6 * gain.standard_error)
    assert found["bundles"].gain == (0, 0, np.inf)


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


def test_of_a_large_catalogue_the_most_frequent_items_are_looked_at() -> None:
    baskets = Baskets.from_lists([["c", "b"], ["c"], ["b", "a", "d"], ["d"], ["c", "d"]], ["a", "b", "c", "d"])
    kept = most_frequent(baskets, 2)
    assert kept.items == ("c", "d")
    assert list(kept) == [("c",), ("c",), ("d",), ("d",), ("c", "d")]
    overview = diagnose(baskets, most_items=2).overview
    assert (overview.n_items, overview.n_looked_at, overview.share_looked_at) == (4, 2, pytest.approx(6 / 9))
    with pytest.raises(dl.InputError, match="most_items is 1"):
        diagnose(baskets, most_items=1)


def test_the_same_seed_gives_the_same_diagnosis() -> None:
    baskets = made("kinds", 200)
    assert diagnose(baskets).gain == diagnose(baskets).gain != diagnose(baskets, rng=1).gain


def test_registries_have_monitors_that_compete_and_attraction_that_a_dpp_misses(shared: Path) -> None:
    told = diagnose(registry(shared, "safety"))
    assert told.verdict is Verdict.MIXED
    for pair in told.pairs.strongest(told.pairs.repels, 3):
        assert "Monitor" in str(pair.first)
        assert "Monitor" in str(pair.second)
    camera = told.pairs.strongest(told.pairs.attracts, 1)[0]
    assert "Additional Camera" in f"{camera.first} {camera.second}"


def test_the_program_tells_what_the_library_tells(tmp_path: Path) -> None:
    baskets = made("bundles", 150)
    with open(tmp_path / "orders.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["order", "product"])
        rows.writerows((number, f"item {item}") for number, basket in enumerate(baskets) for item in basket)
    columns = ["--basket", "order", "--item", "product"]
    report, out = both("diagnose", tmp_path / "orders.csv", *columns, "--top", 2)
    told = diagnose(dl.read_baskets(tmp_path / "orders.csv", basket="order", item="product"))
    assert (report["verdict"], report["sentence"]) == (str(told.verdict), told.sentence)
    assert report["pairs"]["repel"] == told.pairs.repels.sum()
    strongest = told.pairs.strongest(told.pairs.attracts, 2)
    assert [each["first"] for each in report["attracting_pairs"]] == [each.first for each in strongest]
    assert report["attracting_pairs"][0]["ratio"] == pytest.approx(strongest[0].ratio)
    plain = " ".join(out.split())
    assert plain.endswith(told.sentence)
    assert "No basket is empty, so chance is that of independent items given that" in plain
    assert f"{strongest[0].first} " in plain
    assert run("diagnose", tmp_path / "none.csv").returncode == 1


def test_no_negative_repulsion_is_shown_without_a_word_on_what_it_means(tmp_path: Path) -> None:
    """Where all go together, even fewer pairs seem to avoid each other than by chance."""
    rng = np.random.default_rng(0)
    held = rng.random((100, 8)) < rng.choice([0.1, 0.8], (100, 1))  # some baskets are larger than others
    lines = [",".join(f"item {item}" for item in np.flatnonzero(row)) for row in held if row.any()]
    (tmp_path / "orders.txt").write_text("\n".join(lines))
    report, out = both("diagnose", tmp_path / "orders.txt", "--format", "lines")
    less = -report["pairs"]["repelling"]["nats"]
    assert less > 0
    plain = " ".join(out.split())
    assert f"repulsion none: {less:.3f} ± " in plain
    assert "less than chance alone shows" in plain
    assert "pairs of independent items seem to avoid each other a little" in plain
    assert f"-{less:.3f}" not in plain
    assert f"−{less:.3f}" not in plain


@pytest.mark.parametrize("baskets", [[[str(i % 7)] for i in range(100)], [["a", "b"]] * 50, [[], [], []]])
def test_where_pairs_have_no_room_nothing_is_promised(baskets: list[list[str]]) -> None:
    found = diagnose(Baskets.from_lists(baskets, items=[*"0123456ab"]))
    assert found.verdict is Verdict.TOO_LITTLE
    assert "no room" in found.sentence


def test_weights_that_are_no_counts_say_the_same_whatever_their_scale() -> None:
    baskets = made("kinds", 300)
    plain = diagnose(baskets)
    for scale in (1.1, 1 / 300):
        scaled = diagnose(baskets.reweighted(scale))
        assert scaled.verdict is plain.verdict
        assert scaled.gain.mean == pytest.approx(plain.gain.mean, abs=3 * plain.gain.standard_error)

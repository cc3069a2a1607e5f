"""Drift checks: no false alarm, and one for every kind of shift."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

import dpplearn as dl
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.lifecycle.check import LEVEL, _count_p_values
from dpplearn.models.record import Training
from helpers.command import parsed, run


def baskets_of(p: list[float] | np.ndarray, n: int, seed: int) -> dl.Baskets:
    """Return baskets of independent items."""
    held = np.random.default_rng(seed).random((n, len(p))) < p
    return dl.Baskets.from_matrix(held, [f"item {number}" for number in range(len(p))])


P = np.linspace(0.05, 0.4, 12)
TRAIN = baskets_of(P, 2000, 0)
MODEL = dl.DPP(SpectralDPP.from_K(np.diag(TRAIN.frequencies())), TRAIN.items, training=Training.of(TRAIN))


def test_baskets_of_the_same_distribution_raise_no_alarm() -> None:
    found = [dl.check(MODEL, baskets_of(P, 1000, seed)) for seed in range(1, 11)]
    assert [each.alarms for each in found] == [()] * 10


def test_significant_but_negligible_differences_raise_no_alarm() -> None:
    """With so many baskets, 4 % more of every item is significant."""
    known = MODEL.training
    many = Training(1e7, known.frequencies * 1e7, known.pairs, known.pair_weights)
    sure = dl.DPP(MODEL.kernel, MODEL.items, training=many)
    found = dl.check(sure, baskets_of(1.04 * known.frequencies, 30_000, 1))
    assert found.size.p < LEVEL
    assert not found.drifted


def test_few_training_baskets_are_part_of_the_comparison() -> None:
    """Without the sampling error of its 60 training baskets, the model would raise an alarm every time."""
    alarms = {"known": 0, "unknown": 0}
    for seed in range(10):
        train, recent = baskets_of(P, 60, seed), baskets_of(P, 3000, 100 + seed)
        kernel = SpectralDPP.from_K(np.diag(np.clip(train.frequencies(), 0.01, 0.99)))
        alarms["known"] += dl.check(dl.DPP(kernel, train.items, training=Training.of(train)), recent).drifted
        alarms["unknown"] += dl.check(dl.DPP(kernel, train.items), recent).drifted
    assert alarms["known"] == 0
    assert alarms["unknown"] >= 8


def test_items_that_moved_are_named_the_largest_shift_first() -> None:
    shifted = P.copy()
    shifted[3], shifted[8] = 2.5 * P[3], 0.4 * P[8]
    found = dl.check(MODEL, baskets_of(shifted, 1000, 1))
    assert found.alarms == ("items",)
    assert [each.item for each in found.moved] == ["item 3", "item 8"]
    assert "size" in dl.check(MODEL, baskets_of(1.2 * P, 1000, 1)).alarms


def test_a_change_of_pairs_is_detected_if_all_items_are_as_frequent_as_before() -> None:
    repels = dl.DPP.from_K([[0.5, 0.45], [0.45, 0.5]], ["cot", "crib"])
    found = dl.check(repels, dl.Baskets.from_lists([[], ["cot"], ["crib"], ["cot", "crib"]] * 50))
    assert found.alarms == ("likelihood",)


def test_unknown_items_are_counted_and_many_raise_an_alarm() -> None:
    known = list(baskets_of(P, 600, 1))
    few, many = ([[*each, "new"] if row % every == 0 else each for row, each in enumerate(known)] for every in (50, 8))
    assert dl.check(MODEL, few).alarms == ()
    found = dl.check(MODEL, many)
    assert found.alarms == ("unknown",)
    assert found.unknown.found == pytest.approx(1 / 8)
    assert "new" in str(found)


def test_impossible_baskets_raise_an_alarm_and_are_not_in_the_mean() -> None:
    never_both = dl.DPP.from_K([[0.5, 0.5], [0.5, 0.5]], ["cot", "crib"])
    found = dl.check(never_both, [["cot"], ["crib"]] * 100 + [["cot", "crib"]] * 20)
    assert "impossible" in found.alarms
    assert found.likelihood.found == pytest.approx(np.log(0.5))
    assert dl.check(never_both, [["cot", "crib"]] * 20).drifted
    merged = dl.Baskets.from_lists([["cot"], ["crib"], ["cot", "crib"]], weights=[450, 450, 100])
    assert "impossible" in dl.check(never_both, merged).alarms


def test_a_check_needs_a_model_and_baskets_of_its_items() -> None:
    with pytest.raises(dl.InputError):
        dl.check(MODEL, [["new"]] * 5)
    with pytest.raises(dl.InputError):
        dl.check("model.safetensors", [["item 3"]])


def test_weights_count_like_repeated_baskets() -> None:
    """A tenth of the baskets has an unknown item, in separate rows or merged."""
    recent = [list(each) for each in baskets_of(P, 400, 1)]
    recent = [[*each, "unknown"] if row % 10 == 0 else each for row, each in enumerate(recent)]
    rows = dl.Baskets.from_lists(recent)
    merged, nothing = rows.deduplicated(), dl.Baskets.from_lists([["unknown", "item 1"]] * 900, weights=[0] * 900)
    found = [dl.check(MODEL, each) for each in (rows, merged, dl.Baskets.together([rows, nothing]))]
    assert [each.unknown.found for each in found] == pytest.approx([0.1] * 3)
    assert [each.alarms for each in found] == [found[0].alarms] * 3
    assert found[1].n_baskets == 400


def test_p_values_are_those_of_an_exact_test() -> None:
    """Conditional on the count of an item in 300 recent and 100 training baskets together."""
    found = _count_p_values(np.array([12, 0, 0]) / 300, 300, np.array([1, 9, 0]) / 100, 100)
    exact = [2 * binomtest(k, n, 0.75, alternative=tail).pvalue for k, n, tail in ((12, 13, "greater"), (0, 9, "less"))]
    np.testing.assert_allclose(found, [*exact, 1])
    certain = _count_p_values(np.array([0.1]), 100, np.array([0.05]), np.inf)
    np.testing.assert_allclose(certain, 2 * binomtest(10, 100, 0.05, alternative="greater").pvalue)


def test_the_program_reports_drift_by_its_exit_code(tmp_path: Path) -> None:
    names = [each.replace(" ", "_") for each in MODEL.items]
    dl.DPP(MODEL.kernel, names, training=MODEL.training).save(tmp_path / "model")
    for name, share in (("same", P), ("other", P[::-1])):
        lines = (" ".join(each).replace("item ", "item_") for each in baskets_of(share, 500, 1))
        (tmp_path / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    assert run("check", tmp_path / "model", tmp_path / "same.txt").returncode == 0
    done = run("check", tmp_path / "model", tmp_path / "other.txt", "--json")
    report = parsed(done.stdout)
    assert (done.returncode, done.stderr, report["drifted"]) == (3, "", True)
    assert "items" in report["alarms"]
    assert len(report["moved"]) > 3
    assert run("check", tmp_path / "model", tmp_path / "none.txt").returncode == 1

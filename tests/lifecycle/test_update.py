"""Updates of a model with new baskets: what it keeps, what it learns, and the reported changes."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pandas
import pytest

import dpplearn as dl
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.lifecycle.update import (
    changed_items,
    draw_training_sets,
    likelihoods,
    moved_recommendations,
    with_frequencies,
)
from dpplearn.models.record import Training
from helpers import program
from helpers.command import answer, run, table

ITEMS = ["bib", "cot", "crib", "cup", "gate"]
OLD = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"], ["cup", "gate"], ["cup", "gate", "bib"]] * 25
NEW = [["cot", "mobile"], ["crib", "mobile"], ["cup", "gate"]] * 20


@pytest.fixture(scope="module", params=["dpp", "mixture"])
def model(request: pytest.FixtureRequest) -> dl.DPP | dl.Mixture:
    baskets = dl.Baskets.from_lists(OLD, ITEMS)
    if request.param == "dpp":
        return dl.fit_dpp(baskets, shrinkage=0.1, rng=0, threads=1).model
    return dl.fit(baskets, segments=2, rank=2, rng=0, threads=1).model


def test_drawn_sets_have_the_weight_and_item_frequencies_of_the_training_baskets() -> None:
    """Even if the model itself is wrong."""
    known = dl.datasets.make_registries("feeding", 1000, rng=0).most_frequent(40)
    wrong = np.clip(2 * known.frequencies(), 0.01, 0.9)
    model = dl.DPP(SpectralDPP.from_K(np.diag(wrong)), known.items, training=Training.of(known))
    drawn = draw_training_sets(model, rng=0, threads=1)
    assert drawn.total_weight == pytest.approx(known.total_weight)
    # Rounds stop once no factor is further from 1 than 1e-6; a later item of the same round may undo that much.
    np.testing.assert_allclose(drawn.frequencies(), known.frequencies(), rtol=1e-4)


def test_reweighting_keeps_odds_ratios_and_rare_items_and_reaches_0_and_1() -> None:
    """Iterative proportional fitting multiplies by one factor per item, which odds ratios of pairs do not contain."""
    every = [[], ["a"], ["b"], ["a", "b"]] * 20
    weights = np.tile([9.0, 12.0, 7.0, 8.0], 20)
    found = with_frequencies(dl.Baskets.from_lists(every, weights=weights), np.array([0.2, 0.7]))
    np.testing.assert_allclose(found.frequencies(), [0.2, 0.7], rtol=1e-5)
    none, a, b, both = found.weights[:4]
    assert none * both / (a * b) == pytest.approx(9 * 8 / (12 * 7))
    for frequencies in ([0.0, 0.5], [1.0, 0.5]):
        found = with_frequencies(dl.Baskets.from_lists(every), np.array(frequencies))
        np.testing.assert_allclose(found.frequencies(), frequencies, atol=2e-6)
    # To change the frequency of a rare item, a few sets would get very large weights.
    with_rare = dl.Baskets.from_lists([["a"], ["b"], []] * 50 + [["c"]])
    found = with_frequencies(with_rare, np.array([0.3, 0.4, 0.2]))
    assert found.weights.max() < 2 * found.weights.min() + 1e-9
    empty = dl.Baskets.from_lists([[]] * 3, ["a"])  # as from a model of rare items
    assert with_frequencies(empty, np.array([1e-6])).weights.tolist() == pytest.approx([1 / 3] * 3)


def test_an_update_learns_the_new_and_keeps_the_old(model: dl.DPP | dl.Mixture) -> None:
    found = dl.update(model, NEW, rng=0, threads=1)
    assert type(found.model) is type(model)
    assert found.model.items == (*ITEMS, "mobile")
    both = dl.Baskets.together([dl.Baskets.from_lists(OLD, ITEMS), dl.Baskets.from_lists(NEW)])
    np.testing.assert_allclose(found.model.marginals(), both.frequencies(), atol=0.02)
    alone = dl.fit_dpp(dl.Baskets.from_lists(NEW, (*ITEMS, "mobile")), shrinkage=0.1, threads=1).model
    assert found.model.log_likelihood(OLD) > alone.log_likelihood(OLD) + 0.5
    assert found.model.nonempty == model.nonempty


def test_an_update_without_the_old_baskets_forgets_little_of_them() -> None:
    """Drawn sets follow the penalties of the model; penalised again, it would lose 0.03 nats."""
    old = dl.datasets.make_registries("feeding", 1000, rng=0).most_frequent(50)
    test = dl.datasets.make_registries("feeding", 4000, rng=1).of_items(old.items)
    before = dl.fit(old, rng=0, threads=1).model
    updated = dl.update(before, test[:20], rng=0, threads=1).model
    assert updated.log_likelihood(test) > before.log_likelihood(test) - 0.018


def test_the_training_record_counts_old_and_new_baskets_and_no_drawn_sets(model: dl.DPP | dl.Mixture) -> None:
    updated = dl.update(model, NEW, forget=0.5, rng=0, threads=1).model
    both = dl.Baskets.together([dl.Baskets.from_lists(OLD, ITEMS).reweighted(0.5), dl.Baskets.from_lists(NEW)])
    assert updated.training is not None
    assert updated.training.weight == updated.learned.weight == pytest.approx(len(OLD) / 2 + len(NEW))
    np.testing.assert_allclose(updated.training.frequencies, both.frequencies())
    pairs = updated.training.pair_counts_among(np.arange(6)) / updated.training.weight
    np.testing.assert_allclose(pairs, both.pair_frequencies())
    assert updated.learned.n_distinct is None  # unknown for drawn sets
    again = dl.update(updated, NEW, rng=0, threads=1)
    assert again.changes.past_weight == pytest.approx(len(OLD) / 2 + len(NEW))


def test_the_past_can_be_given_or_forgotten(model: dl.DPP | dl.Mixture) -> None:
    given = dl.update(model, NEW, old=OLD, rng=0, threads=1)
    assert (given.changes.drawn, given.changes.past_weight) == (None, len(OLD))
    np.testing.assert_allclose(given.model.training.weight, len(OLD) + len(NEW))
    forgotten = dl.update(model, NEW, forget=1, rng=0, threads=1)
    assert forgotten.changes.past_weight == 0
    assert forgotten.model.marginals()[ITEMS.index("bib")] < 0.05


def test_a_low_rank_mixture_is_updated_without_a_validation_set_and_keeps_its_blend() -> None:
    """Held-out training baskets would favour the old model."""
    baskets = dl.datasets.make_registries("safety", 600, rng=0)
    before = dl.fit(baskets[:400], attraction=2, rank=1, segments=2, rng=0, threads=1).model
    updated = dl.update(before, baskets[400:], old=baskets[:400], rng=0, threads=1).model
    assert (before.learned.validation is None, updated.learned.validation is None) == (False, True)
    assert updated.learned.learner == "low-rank"
    assert updated.training.blend == before.training.blend is not None


def test_shrinkage_depends_on_the_total_weight_and_not_on_the_number_of_drawn_sets() -> None:
    """The shrinkage of a mixture decreases with the weight of its baskets; drawn sets are many of small weight."""
    old, new = dl.Baskets.from_lists(OLD, ITEMS), dl.Baskets.from_lists(NEW)
    before = dl.fit(old, segments=2, rank=2, rng=0, threads=1).model
    more, less = (
        dl.update(before, new.reweighted(weight), old=old.reweighted(weight), rng=0, threads=1).model
        for weight in (0.999, 0.0499)
    )
    assert more.log_likelihood(OLD) > less.log_likelihood(OLD) + 0.1


def test_weights_decay_with_time(model: dl.DPP | dl.Mixture) -> None:
    days = ["2026-01-01"] * 30 + ["2026-01-11"] * 30
    new = dl.Baskets.from_lists(NEW, times=days)
    found = dl.update(model, new, half_life="10d", rng=0, threads=1).changes
    assert found.new_weight == pytest.approx(30 / 2 + 30)
    assert found.past_weight == pytest.approx(len(OLD) / 2)  # as old as the oldest new basket
    old = dl.Baskets.from_lists(OLD, times=["2025-12-22"] * len(OLD))
    assert dl.update(model, new, old=old, half_life=10, rng=0, threads=1).changes.past_weight == pytest.approx(37.5)


def test_both_models_are_compared_on_the_items_of_the_old_one() -> None:
    """Of independent items that is the product over those, given that there is something."""
    before = dl.DPP.from_K(np.diag([0.5, 0.2]), ["bib", "cot"], nonempty=True)
    after = dl.DPP.from_K(np.diag([0.4, 0.3, 0.5]), ["bib", "cot", "mobile"], nonempty=True)
    found = likelihoods(before, after, dl.Baskets.from_lists([["bib", "mobile"], ["mobile"]]), in_sample=True)
    assert found.n_baskets == 1
    assert found.before == pytest.approx(np.log(0.5 * 0.8 / (1 - 0.5 * 0.8)))
    assert found.after == pytest.approx(np.log(0.4 * 0.7 / (1 - 0.6 * 0.7)))


def test_changed_recommendations_are_listed_by_item_and_vanished_items_only_if_expected() -> None:
    names = [f"product {number}" for number in range(8)]
    two = [dl.DPP.from_K(np.diag(share), names) for share in (np.arange(2, 10) / 20, np.arange(9, 1, -1) / 20)]
    found = moved_recommendations(*two, dl.Baskets.from_lists([names[:1]] * 3 + [names[7:]], names))
    assert [(each.item, set(each.entered), set(each.left)) for each in found[:2]] == [
        (names[0], {names[1], names[2]}, {names[6], names[7]}),
        (names[7], {names[0], names[1]}, {names[5], names[6]}),
    ]
    before = dl.DPP.from_K(np.diag([0.5, 0.2, 0.01]), ["bib", "cot", "gate"])
    new_items, vanished = changed_items(before, dl.Baskets.from_lists([["bib"], ["bib", "mobile"]] * 20))
    assert vanished == ("cot",)
    assert [(each.item, each.n_baskets) for each in new_items] == [("mobile", 20)]


def test_invalid_updates_are_rejected() -> None:
    model = dl.fit_dpp(dl.Baskets.from_lists(OLD, ITEMS), shrinkage=0.1, rng=0, threads=1).model
    for baskets, options, value in (
        ([["mobile"]] * 5, {}, "test="),  # no basket to compare both models on
        (NEW, {"test": [["rug"]]}, "test="),
        (NEW, {"old": [*OLD, ["rug", "cot"]]}, "rug"),
        ([*NEW, []], {}, "1 of 61"),
        *((NEW, {"forget": forget}, "forget") for forget in ("half", 2, None)),
        (NEW, {"half_life": "10d"}, None),  # without times
    ):
        with pytest.raises(dl.InputError, match=value):
            dl.update(model, baskets, rng=0, threads=1, **options)
    assert "mobile" in dl.update(model, [["mobile"]] * 5, test=OLD, rng=0, threads=1).model.items
    old = dl.Baskets.from_lists(OLD)
    for unsupported in (dl.fit_weights(old, [model] * 2), dl.fit_quality(old, similarity=np.eye(5)), "model.file"):
        with pytest.raises(dl.InputError):
            dl.update(unsupported, NEW)
    unknown_past = dl.DPP.from_K(np.diag([0.5, 0.2]), ["bib", "cot"])
    with pytest.raises(dl.InputError, match="old="):
        dl.update(unknown_past, [["bib"]])
    assert dl.update(unknown_past, [["bib"]] * 5, old=[["cot"]] * 5, rng=0, threads=1).model.items == ("bib", "cot")


def test_an_item_that_was_impossible_before_becomes_possible() -> None:
    before = dl.fit_dpp(dl.Baskets.from_lists(OLD, [*ITEMS, "mobile"]), shrinkage=0.0, rng=0, threads=1).model
    assert before.marginals()[-1] == 0
    found = dl.update(before, NEW, rng=0, threads=1)
    assert found.model.marginals()[-1] > 0.1
    assert "mobile" not in [each.item for each in found.changes.moved]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    for name, lists in (("old", OLD), ("new", NEW)):
        times = (np.datetime64("2026-01-01") + np.arange(len(lists))).astype(str).tolist()
        baskets = dl.Baskets.from_lists(lists, times=times)
        pandas.DataFrame(baskets.to_table()).to_csv(tmp_path / f"{name}.csv", index=False)
    model = dl.fit_dpp(OLD, shrinkage=0.1, threads=1).model
    model.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors", tmp_path / "new.csv", tmp_path / "old.csv"


@pytest.mark.slow
def test_the_program_updates_a_model_and_overwrites_none(files: tuple[Path, Path, Path]) -> None:
    model, new, old = files
    call = ("update", model, new, "-o", model.with_name("next.safetensors"), "--seed", 0, "--holdout", 0.2)
    assert "mobile" in table(*call)
    report = answer(*call, "--old", old, "--columns", "time=time", "--half-life", "30d")
    assert report["drawn"] is None
    assert report["past_weight"] < 150
    assert dl.load(model.with_name("next.safetensors")).items[-1] == "mobile"
    before = model.read_bytes()
    assert run("update", model, new, "-o", model).returncode == 2
    assert model.read_bytes() == before
    assert run("update", model, new, "-o", model.with_name("b"), "--holdout", 2).returncode == 2


@pytest.mark.slow
def test_an_update_that_is_killed_leaves_the_old_or_the_new_file(files: tuple[Path, Path, Path]) -> None:
    model, new, _ = files
    output = model.with_name("next.safetensors")
    shutil.copy(model, output)
    old = output.read_bytes()
    call = (program.PROGRAM, "update", model, new, "-o", output, "--seed", 0, "--quiet")
    began = time.monotonic()
    subprocess.run(list(map(str, call)), check=True, timeout=300)
    seconds = time.monotonic() - began
    assert output.read_bytes() != old
    for after in np.linspace(0.3, 1.1, 6) * seconds:  # some during the imports, some near the write
        shutil.copy(model, output)
        with subprocess.Popen(list(map(str, call))) as process:
            time.sleep(after)
            process.kill()
        assert output.read_bytes() == old or dl.load(output).items[-1] == "mobile"  # a part cannot be loaded
    subprocess.run(list(map(str, call)), check=True, timeout=300)
    assert {path.name for path in model.parent.iterdir()} == {"model.safetensors", output.name, "new.csv", "old.csv"}

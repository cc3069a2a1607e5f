"""Substitutes: what the model keeps apart against enumeration, groups against the kinds they were generated from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import DPP, Baskets, InputError, Kernel, Stability, stability, substitute_groups, substitute_pairs
from dpplearn.analysis.relations import related_pairs
from dpplearn.analysis.stability import resampled
from dpplearn.kernels.independent import before_truncation
from dpplearn.models.mixture import Mixture
from helpers import oracle
from helpers.command import both, table
from helpers.problems import random_kernel
from helpers.registries import registry

KINDS = [{"a1", "a2", "a3"}, {"b1", "b2"}]


def shop(n: int, seed: int, *, nonempty: bool = False) -> Baskets:
    """Two kinds, of which one item is taken, and two items that have nothing to do with anything."""
    rng = np.random.default_rng(seed)
    names = ["a1", "a2", "a3", "b1", "b2", "c", "d"]
    X = np.zeros((n, 7), bool)
    for first, last, chance in ((0, 3, 0.6), (3, 5, 0.5)):
        wanted = np.flatnonzero(rng.random(n) < chance)
        X[wanted, rng.integers(first, last, len(wanted))] = True
    X[:, 5:] = rng.random((n, 2)) < 0.3
    return Baskets.from_matrix(X[X.any(axis=1)] if nonempty else X, names)


def learned(baskets: Baskets, **how: object) -> DPP:
    return dl.fit(baskets, **{"prior": 0.0, **how}).dpp  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def dpp() -> DPP:
    return learned(shop(800, 0))


@pytest.fixture(scope="module")
def relied_on(dpp: DPP) -> Stability:
    return stability(dpp, resamples=10)


def enumerated(kernel: Kernel) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return oracle.probabilities_from_K(kernel.K)


def test_apart_is_against_chance_and_chance_is_independence() -> None:
    kernel = random_kernel(np.random.default_rng(0), 5)
    P, law = enumerated(kernel), DPP(kernel).together
    for i, j in ((0, 1), (2, 4), (3, 1)):
        both_in, chance = oracle.marginal(P, [i, j]), oracle.marginal(P, [i]) * oracle.marginal(P, [j])
        assert law.both[i, j] == pytest.approx(both_in)
        assert law.substitution[i, j] == pytest.approx(1 - both_in / chance)
    assert not law.substitution.diagonal().any()


def test_of_a_model_learned_given_that_sets_are_not_empty_it_is_against_chance_given_the_same() -> None:
    kernel = random_kernel(np.random.default_rng(1), 5)
    P = enumerated(kernel)
    P[0] = 0
    P /= P.sum()
    m = oracle.item_marginals(P)
    p = before_truncation(m)
    law = DPP(kernel, nonempty=True).together
    for i, j in ((0, 1), (2, 4), (3, 1)):
        chance = p[i] * p[j] / (1 - np.prod(1 - p))  # of independent items, given that they are not all absent
        assert law.both[i, j] == pytest.approx(oracle.marginal(P, [i, j]))
        assert law.substitution[i, j] == pytest.approx(1 - oracle.marginal(P, [i, j]) / chance)


def test_independent_items_are_no_substitutes_even_if_no_set_is_empty() -> None:
    """A DPP must keep all items apart to say that no set is empty; that is not held against them."""
    rng = np.random.default_rng(0)
    X = rng.random((20000, 6)) < np.linspace(0.1, 0.3, 6)
    model = learned(Baskets.from_matrix(X[X.any(axis=1)]), nonempty=False)
    apart = np.triu_indices(6, 1)
    assert model.kernel.repulsion[apart].min() > 0.15
    assert np.abs(model.together.substitution[apart]).max() < 0.12
    assert substitute_groups(model, 0.2) == ()


def test_where_sets_hold_hardly_more_than_one_item_it_is_against_plain_chance() -> None:
    V = np.linalg.qr(np.array([[0.8, 1, 0], [0.5, 0, 1], [0.3, 0, 0]]))[0]
    for second in (0, 0.01):
        kernel = Kernel(np.array([1, second, 0]), V)
        np.testing.assert_allclose(DPP(kernel).together.substitution, kernel.repulsion, atol=1e-12)


def test_groups_are_the_kinds_that_the_data_were_made_from(dpp: DPP) -> None:
    groups = substitute_groups(dpp)
    assert [set(group.items) for group in groups] == KINDS  # the one that misses more comes first
    position = {item: i for i, item in enumerate(dpp.items)}
    for group in groups:
        marginals = [dpp.marginals()[position[item]] for item in group.items]
        assert marginals == sorted(marginals, reverse=True)
        pairs = [(a, b) for a in group.items for b in group.items if a < b]
        observed = sum({a, b} <= set(basket) for basket in shop(800, 0) for a, b in pairs)
        assert group.met == observed
        chance = sum(dpp.inclusion_prob([a]) * dpp.inclusion_prob([b]) for a, b in pairs)
        together_in = sum(dpp.inclusion_prob([a, b]) for a, b in pairs)
        assert group.expected == pytest.approx(800 * chance)
        assert group.missing == pytest.approx(chance - together_in)


@pytest.mark.parametrize("at_least", [0.05, 0.4, 0.8])
def test_a_group_is_apart_at_least_so_much(at_least: float) -> None:
    model = DPP(random_kernel(np.random.default_rng(5), 30))
    found = model.together.substitution
    groups = substitute_groups(model, at_least)
    for group in groups:
        members = model.catalogue.positions(group.items)
        inside = found[np.ix_(members, members)][np.triu_indices(len(members), 1)].mean()
        assert inside == pytest.approx(group.substitution)
        assert inside >= at_least - 1e-12
    assert len({item for group in groups for item in group.items}) == sum(len(group.items) for group in groups)
    assert (len(groups) > 0) == (found.max() >= at_least)


def test_generated_registries_fall_into_their_kinds() -> None:
    """Of the kinds that sell, at least."""
    model = learned(dl.datasets.make_registries("safety", 5000, rng=0))
    (first, *_), kinds = substitute_groups(model), dl.datasets.items_by_kind("safety")
    assert set(first.items) == set(max(kinds, key=len))


def test_pairs_come_by_how_far_apart_they_are(dpp: DPP) -> None:
    pairs = substitute_pairs(dpp, 4)
    assert all(any({pair.first, pair.second} <= kind for kind in KINDS) for pair in pairs)
    assert [pair.substitution for pair in pairs] == sorted((pair.substitution for pair in pairs), reverse=True)
    assert pairs[0].probability == pytest.approx(dpp.inclusion_prob([pairs[0].first, pairs[0].second]), abs=1e-12)
    assert all(pair.met == 0 for pair in pairs)
    everything = [frozenset((pair.first, pair.second)) for pair in substitute_pairs(dpp, 1000)]
    assert len(everything) == len(set(everything))  # none a second time, the other way round
    assert np.isnan(substitute_pairs(DPP(dpp.kernel, dpp.items), 1)[0].met)


def test_a_pair_is_apart_by_one_figure_wherever_it_is_shown(tmp_path: Path) -> None:
    """In data without empty baskets too, where the similarity K_ij²/(K_ii K_jj) of a median pair is 0.65."""
    model = learned(shop(800, 0, nonempty=True))
    model.save(tmp_path / "m")
    first, second, apart, *_ = substitute_pairs(model, 1)[0]
    assert model.substitutes(first, 1)[0][:2] == (second, pytest.approx(apart))
    everything = both("describe", tmp_path / "m", "--resamples", 0)
    of_one = both("describe", tmp_path / "m", "--item", first)
    assert everything[0]["repelling_pairs"][0]["substitution"] == pytest.approx(apart)
    assert "repulsion" not in everything[0]["repelling_pairs"][0]
    assert of_one[0]["substitutes"][0]["item"] == second
    assert of_one[0]["substitutes"][0]["substitution"] == pytest.approx(apart)
    for out in (everything[1], of_one[1]):
        assert f"{100 * apart:.0f}%" in out
        assert "of the sets that would hold both items by chance, the share" in " ".join(out.split())


def test_what_is_there_comes_back_and_what_is_not_does_not(dpp: DPP, relied_on: Stability) -> None:
    assert relied_on.parametric
    assert len(relied_on) == 10
    for kind in KINDS:
        assert relied_on.in_one_group(kind) > 0.9
    assert relied_on.in_one_group(["a1", "b1", "c"]) < 0.2
    assert relied_on.in_one_group(["c", "d"]) < 0.2  # in no group is not in one
    assert relied_on.again("a1", "a2") == 1
    low, high = relied_on.interval("a1", "a2")
    assert 0.7 < low < high <= 1
    low, high = relied_on.interval("c", "d")
    assert low < 0.1
    surest = substitute_pairs(dpp, 4, relied_on)
    lows = [relied_on.interval(pair.first, pair.second)[0] for pair in surest]
    assert lows == sorted(lows, reverse=True)


def test_the_interval_is_about_as_wide_as_new_data_would_stray(dpp: DPP, relied_on: Stability) -> None:
    fresh = [learned(shop(800, seed)).together.substitution for seed in range(1, 11)]
    i, j = dpp.catalogue.position("c"), dpp.catalogue.position("a1")
    spread = np.std([each[i, j] for each in fresh])
    assert 0.4 < relied_on.found[:, i, j].std() / spread < 2.5


def straying(found: Stability) -> float:
    """How far models stray, over all pairs: of a single pair that is hardly kept apart, five say little."""
    return float(found.found.std(axis=0).mean())


def test_resamples_of_the_baskets_are_drawn_from_the_baskets(dpp: DPP) -> None:
    baskets = shop(800, 0)
    found = stability(dpp, baskets, resamples=5)
    assert not found.parametric
    assert found.again("a1", "a2") == 1
    assert straying(found) > 0
    merged = stability(dpp, baskets.deduplicated(), resamples=5)
    assert 0.3 < straying(merged) / straying(found) < 3
    # Weights that are no counts are importances: where a few carry everything, models stray further.
    few = Baskets(baskets.indices, baskets.offsets, np.where(np.arange(800) < 60, 1.5, 1e-3), baskets.catalogue)
    assert straying(stability(dpp, few, resamples=5)) > straying(found)
    assert stability(dpp, list(baskets), resamples=1).found.shape == (1, 7, 7)


def test_the_same_seed_gives_the_same_resamples(dpp: DPP) -> None:
    once, again, other = (stability(dpp, resamples=2, rng=seed).found for seed in (3, 3, 4))
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(once, other)


def test_a_model_is_learned_again_as_it_was_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given that sets are not empty, so none of those drawn may be."""
    model = learned(shop(300, 0, nonempty=True), learner="lbfgs", nonempty=True, prior=0.5)
    calls: list[dict[str, object]] = []

    def spy(baskets: Baskets, learner: str, **options: object) -> dl.FitResult:
        calls.append({"learner": learner, "n": len(baskets), "smallest": baskets.sizes.min(), **options})
        return dl.fit(baskets, learner, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("dpplearn.analysis.stability.fit", spy)
    done: list[int] = []
    stability(model, resamples=2, done=done.append)
    assert done == [1, 1]
    n = model.training.weight if model.training is not None else 0
    for call in calls:
        assert (call["learner"], call["prior"], call["nonempty"], call["start"]) == ("lbfgs", 0.5, True, model)
        assert (call["n"], call["smallest"]) == (n, 1)


def test_weights_that_are_counts_are_drawn_as_counts() -> None:
    baskets = Baskets.from_lists([["a"], ["b"], ["c"]], weights=[900, 90, 10])
    drawn = resampled(baskets, np.random.default_rng(0))
    assert drawn.total_weight == 1000
    np.testing.assert_allclose(drawn.frequencies(), [0.9, 0.09, 0.01], atol=0.03)


@pytest.fixture(scope="module")
def mixture() -> Mixture:
    """Of the same shop, where who takes c takes d as well."""
    baskets = [[*basket, "d"] if "c" in basket and "d" not in basket else basket for basket in shop(800, 0)]
    return dl.fit([basket for basket in baskets if basket], segments=2, rng=0).model  # type: ignore[return-value]


def test_pairs_of_a_mixture_come_by_how_surely_the_lift_is_below_one(mixture: Mixture) -> None:
    pairs = substitute_pairs(mixture, 4)
    assert all(any({pair.first, pair.second} <= kind for kind in KINDS) for pair in pairs)
    ends = []
    for pair in pairs:
        relation = {each.item: each for each in mixture.substitutes(pair.first)}[pair.second]
        assert pair.substitution == pytest.approx(1 - relation.lift)
        assert pair.met == relation.met == 0
        assert pair.probability == pytest.approx(mixture.inclusion_prob([pair.first, pair.second]))
        assert relation.high < 1
        ends.append(max(relation.lift, relation.high))
    assert ends == sorted(ends)


def test_related_pairs_leave_out_what_the_baskets_are_not_sure_of(mixture: Mixture) -> None:
    found = related_pairs(mixture, 100)
    for pair in found.substitutes:
        assert max(pair.lift, pair.high) < 1
    for pair in found.complements:
        assert min(pair.lift, pair.low) > 1
    ends = [max(pair.lift, pair.high) for pair in found.substitutes]
    assert ends == sorted(ends)
    assert {found.complements[0].first, found.complements[0].second} == {"c", "d"}
    named = {frozenset((pair.first, pair.second)) for pair in (*found.substitutes, *found.complements)}
    unsure = [
        (item, each)
        for item in mixture.items
        for each in (*mixture.substitutes(item, level=None), *mixture.complements(item, level=None))
        if each.low <= 1 <= each.high
    ]
    assert unsure
    assert not [each for item, each in unsure if frozenset((item, each.item)) in named]
    assert len(related_pairs(mixture, 1).substitutes) == 1


def test_without_training_data_the_lift_alone_counts(mixture: Mixture) -> None:
    bare = Mixture(mixture.kernel, mixture.items, nonempty=True)
    found = related_pairs(bare, 1000)
    lifts = bare.lift[np.triu_indices(len(bare.items), 1)]
    assert (len(found.substitutes), len(found.complements)) == ((lifts < 1).sum(), (lifts > 1).sum())
    assert found.substitutes[0].lift == lifts.min()
    assert found.complements[0].lift == lifts.max()
    assert np.isnan(found.substitutes[0].low)
    assert len(substitute_pairs(bare, 1000)) == len(found.substitutes)


def test_groups_and_resamples_are_for_dpps_and_say_what_to_use(mixture: Mixture) -> None:
    with pytest.raises(InputError, match=r"got a Mixture.*use substitute_pairs"):
        substitute_groups(mixture)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"got a Mixture.*low and high"):
        stability(mixture)  # type: ignore[arg-type]


def test_mistakes_are_told(dpp: DPP) -> None:
    unknown = DPP(dpp.kernel, dpp.items)
    with pytest.raises(InputError, match="does not tell what it was learned from"):
        stability(unknown)
    assert len(stability(unknown, shop(100, 0), resamples=1)) == 1
    with pytest.raises(InputError, match="at_least is 0"):
        substitute_groups(dpp, 0)
    with pytest.raises(InputError, match="resamples is 0"):
        stability(dpp, resamples=0)


def test_registries_fall_into_kinds_of_product(shared: Path) -> None:
    safety = substitute_groups(learned(registry(shared, "safety")))[0]
    assert len(safety.items) > 10
    assert all("Monitor" in str(item) for item in safety.items)
    racks = substitute_groups(learned(registry(shared, "feeding")))[0]
    assert len(racks.items) >= 4
    assert all("Drying Rack" in str(item) for item in racks.items)


def test_the_program_shows_groups_and_how_far_to_rely_on_them(dpp: DPP, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    dpp.save(path)
    report, out = both("describe", path, "--resamples", 3, "--seed", 2)
    relied_on = stability(dpp, resamples=3, rng=2)
    assert [set(group["items"]) for group in report["groups"]] == KINDS
    for group in report["groups"]:
        assert group["again"] == pytest.approx(relied_on.in_one_group(group["items"]))
    pair = report["repelling_pairs"][0]
    assert pair["interval"] == pytest.approx(relied_on.interval(*pair["items"]))
    assert pair["again"] == 1
    assert (report["resamples"]["n"], report["resamples"]["of"]) == (3, "the model")
    plain = " ".join(out.split())
    assert "Learned again 3 times, from baskets drawn from the model" in plain
    assert "· a1" in plain or "· a2" in plain


def test_the_program_resamples_the_data_and_says_when_it_did_not_look(dpp: DPP, tmp_path: Path) -> None:
    path, data = tmp_path / "m.safetensors", tmp_path / "b.txt"
    DPP(dpp.kernel, dpp.items).save(path)
    data.write_text("".join(",".join(map(str, basket)) + "\n" for basket in shop(300, 0)))
    assert "resampled from" in " ".join(table("describe", path, "--data", data, "--resamples", 2).split())
    out = " ".join(table("describe", path).split())  # it does not tell what it was learned from
    assert "was not looked into: --resamples 20" in out
    assert "missing" in out

"""cross_validate: every basket tested once, by models that did not see it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import DPP, Baskets, Evaluation, InputError
from dpplearn.distributions.independent import independent
from helpers.problems import sampled

QUICK: dict[str, Any] = {"max_iter": 10, "shrinkage": 0}
BASKETS = sampled(0, 301, 7)


@pytest.fixture(scope="module")
def found() -> Evaluation:
    return dl.cross_validate(BASKETS, {"em": {"learner": "em"}, "lbfgs": {}}, folds=4, **QUICK)


def test_every_basket_is_tested_once_by_a_model_that_did_not_see_it(found: Evaluation) -> None:
    assert found.folds is not None
    assert sorted(np.bincount(found.folds)) == [75, 75, 75, 76]
    differs = False
    for fold in range(4):
        train, rows = BASKETS.subset(found.folds != fold), found.folds == fold
        models = {learner: dl.fit_dpp(train, learner, **QUICK).model for learner in ("em", "lbfgs")}
        models["independent items"] = DPP(independent(train, smoothing=0.5))
        for name, model in models.items():
            log_p = found.outcomes[name]["log_likelihood"][rows]
            np.testing.assert_allclose(log_p, model.log_prob(BASKETS.subset(rows)), atol=1e-9)
        seen = dl.fit_dpp(BASKETS, "em", **QUICK).model.log_prob(BASKETS.subset(rows))
        differs |= not np.allclose(found.outcomes["em"]["log_likelihood"][rows], seen, atol=1e-3)
    assert differs


def test_all_baskets_together_are_summed_up_and_so_is_every_fold(found: Evaluation) -> None:
    assert found.models == ("em", "lbfgs")
    assert found.folds is not None
    means = found.fold_means("em")
    assert means[1] == pytest.approx(found.outcomes["em"]["log_likelihood"][found.folds == 1].mean())
    assert means @ np.bincount(found.folds) / len(BASKETS) == pytest.approx(found.estimate("em").value)
    ranked = (BASKETS.sizes >= 2) & (BASKETS.sizes < 7)
    assert found.n_ranked == np.count_nonzero(ranked)
    np.testing.assert_array_equal(~np.isnan(found.outcomes["em"]["percentile_rank_given_half"]), ranked)
    here = BASKETS.sizes < 7
    assert sum(row.weight for row in found.reliability["em"]["given_one"].rows) == 6 * BASKETS.sizes[here].sum()
    fits = [dl.fit_dpp(BASKETS.subset(found.folds != fold), "em", **QUICK) for fold in range(4)]
    predicted = np.array([fit.model.size_distribution for fit in fits])[found.folds].mean(axis=0)
    shares = np.bincount(BASKETS.sizes, minlength=8) / len(BASKETS)
    assert found.size_distance["em"] == pytest.approx(np.abs(predicted - shares).sum() / 2, abs=1e-9)
    assert found.to_dict()["rows"][0]["folds"] == means.tolist()


def test_the_seed_makes_the_folds() -> None:
    first, again, other = (dl.cross_validate(BASKETS, folds=2, rng=seed, **QUICK) for seed in (0, 0, 1))
    assert first.to_dict() == again.to_dict()
    assert (first.folds != other.folds).any()
    some = dl.cross_validate(BASKETS, folds=4, tested_folds=2, max_baskets=50, tasks=(), **QUICK)
    assert (some.n_baskets, np.bincount(some.folds).tolist()) == (50, [25, 25])
    assert some.measures("model") == ("log_likelihood",)


def test_impossible_baskets_keep_their_place() -> None:
    """The item of the last basket is in no other one, so that no model that did not see it allows it."""
    baskets = Baskets.from_lists([*([[0], [1], [0], [1], [0, 1], []] * 5), [2]], n_items=3)
    found = dl.cross_validate(baskets, folds=3, **QUICK)
    assert np.flatnonzero(found.impossible("model")).tolist() == [30]
    assert found.estimate("model").value == -np.inf
    assert np.isfinite(found.estimate("independent items").value)


def test_each_of_the_baskets_that_a_weight_counts_is_tested_by_itself(found: Evaluation) -> None:
    counts = BASKETS.deduplicated()
    assert len(counts) < len(BASKETS) / 3
    weights = np.append(counts.weights, 0)  # a basket of weight 0 is not tested
    baskets = Baskets.from_lists([*counts, [0]], n_items=7, weights=weights)
    weighted = dl.cross_validate(baskets, {"em": {"learner": "em"}}, folds=4, **QUICK)
    assert weighted.folds is not None
    np.testing.assert_array_equal(np.bincount(weighted.rows, weighted.weights), counts.weights)
    assert sorted(np.bincount(weighted.folds, weighted.weights)) == [75, 75, 75, 76]
    assert len(set(weighted.folds[weighted.rows == counts.weights.argmax()])) > 1
    first, here = weighted.outcomes["independent items"]["log_likelihood"][0], weighted.folds == weighted.folds[0]
    unseen = np.bincount(weighted.rows[here], weighted.weights[here], len(counts))
    items = DPP(independent(counts.weighted(counts.weights - unseen), smoothing=0.5))
    assert first == pytest.approx(items.log_prob(list(counts[weighted.rows[0]])), abs=1e-9)
    assert weighted.estimate("em").value == pytest.approx(found.estimate("em").value, abs=0.05)
    assert weighted.to_dict()["weight"] == len(BASKETS)


def test_options_of_a_model_replace_those_of_all_and_invalid_folds_are_rejected() -> None:
    found = dl.cross_validate(BASKETS, {"all": {}, "own": {"max_iter": 0}}, folds=2, learner="em", init="wishart")
    assert found.estimate("all").value > found.estimate("own").value + 0.1
    with pytest.raises(InputError, match=r"\b3\b.*\b5\b"):
        dl.cross_validate([[0], [1], [0, 1]])
    with pytest.raises(InputError, match=r"folds.*\b1\b"):
        dl.cross_validate(BASKETS, folds=1)


def test_whether_baskets_can_be_empty_is_the_same_for_all_models_and_folds() -> None:
    """The fold that tests the only empty basket learns from baskets none of which is empty."""
    kinds = {"symmetric": {"model": "dpp", "shrinkage": 0}, "mixture": {"segments": 2}}
    filled = BASKETS.subset(BASKETS.sizes > 0)
    found = dl.cross_validate(filled, kinds, folds=2, max_iter=3)
    assert found.nonempty
    assert set(found.size_distance) == {*kinds, "independent items"}
    assert found.folds is not None
    items = DPP(independent(filled.subset(found.folds != 0), smoothing=0.5, nonempty=True), nonempty=True)
    rows = found.folds == 0
    log_p = found.outcomes["independent items"]["log_likelihood"][rows]
    np.testing.assert_allclose(log_p, items.log_prob(filled.subset(rows)), atol=1e-9)
    one_empty = Baskets.from_lists([*filled, []], n_items=7)
    found = dl.cross_validate(one_empty, {"mixture": {"segments": 1}}, folds=2, max_iter=3)
    assert not found.nonempty
    assert np.isfinite(found.estimate("mixture").value)

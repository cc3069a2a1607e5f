"""Low-rank mixtures: the same results as the dense mixture, and limits for large catalogues."""

from __future__ import annotations

import numpy as np
import pytest
from dpplearn.kernels.among import alone_with, pairs_among, seen_of
from dpplearn.kernels.emptiness import WithEmptyShare

import dpplearn as dl
from dpplearn.analysis import relations
from dpplearn.analysis.relations import related_pairs
from dpplearn.learners.kernels import distribution_of
from dpplearn.models import mixture
from dpplearn.models.mixture import Mixture
from dpplearn.models.training import Training
from helpers.problems import random_low_rank

N = 9
BASKETS = dl.Baskets.from_lists(
    [np.flatnonzero(row) for row in np.random.default_rng(3).random((300, N)) < np.linspace(0.1, 0.6, N)], n_items=N
)


def both(nonempty: bool) -> tuple[Mixture, Mixture]:
    kernel, training = random_low_rank(3, N), Training.of(BASKETS)
    return Mixture(kernel, nonempty=nonempty, training=training), Mixture(
        kernel.dense(), nonempty=nonempty, training=training
    )


@pytest.mark.parametrize("nonempty", [False, True])
def test_low_rank_and_dense_mixtures_agree(nonempty: bool) -> None:
    factored, full = both(nonempty)
    np.testing.assert_allclose(factored.segment_marginals, full.segment_marginals, rtol=1e-9)
    np.testing.assert_allclose(factored.segment_of([1, 4]), full.segment_of([1, 4]), rtol=1e-9)
    np.testing.assert_allclose(factored.lift, full.lift, rtol=1e-9)
    assert [each.likes[0][0] for each in factored.segments()] == [each.likes[0][0] for each in full.segments()]
    for item in range(N):
        for ours, theirs in (
            (factored.substitutes(item), full.substitutes(item)),
            (factored.complements(item), full.complements(item)),
        ):
            ours = [each for each in ours if abs(each.lift - 1) > 1e-9]
            assert [each.item for each in ours] == [each.item for each in theirs[: len(ours)]]
            np.testing.assert_allclose([each[1:] for each in ours], [each[1:] for each in theirs[: len(ours)]])

    for basket in ([], [5, 0, 3]):
        one, other = (model.explain(basket, 2) for model in (factored, full))
        numbers = [(each.alone, each.given, each.score_alone, each.score) for each in (one, other)]
        np.testing.assert_allclose(*numbers, rtol=1e-9)
        for here, there in zip(one.influences, other.influences, strict=True):
            assert here.item == there.item
            np.testing.assert_allclose(here[1:], there[1:], rtol=1e-9)


@pytest.mark.parametrize("share", [None, 0.0, 0.2])
def test_pairs_of_some_items_are_those_of_the_whole_distribution(share: float | None) -> None:
    law = distribution_of(random_low_rank(2, N))
    law = law if share is None else WithEmptyShare(law, share)
    some, off = np.array([6, 1, 8]), ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(pairs_among(law, some)[off], law.pairs()[np.ix_(some, some)][off], rtol=1e-9)
    np.testing.assert_allclose(seen_of(law, some).pairs()[off], law.pairs()[np.ix_(some, some)][off], rtol=1e-9)
    few, order = alone_with(law, some)
    assert order.tolist() == [1, 6, 8]
    np.testing.assert_allclose(few.next_item(np.array([0]))[0], law.next_item(np.array([1]))[0][order], rtol=1e-9)


def test_large_catalogues_keep_only_significant_relations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, _ = both(nonempty=False)
    every = {
        item: (model.substitutes(item, N, level=None), model.complements(item, N, level=None)) for item in range(N)
    }
    monkeypatch.setattr(mixture, "LARGE", 3)
    for item, (below, above) in every.items():
        expected = {each.item: max(each.lift, each.high) for each in below if each.high < 1}
        found = model.substitutes(item, N, level=None)
        assert [each.item for each in found] == sorted(expected, key=expected.__getitem__)
        assert {each.item for each in model.complements(item, N, level=None)} == {
            each.item for each in above if each.low > 1 and each.met >= mixture.FEWEST_MET
        }


def test_the_top_pairs_of_a_large_catalogue_are_those_of_all_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, _ = both(nonempty=False)
    whole = related_pairs(model, 40)
    monkeypatch.setattr(relations, "LARGE", N - 1)
    monkeypatch.setattr(mixture, "LARGE", N - 1)
    monkeypatch.setattr(relations, "AT_ONCE", 2)
    for k in (1, 3, 40):
        found = related_pairs(model, k)
        frequent = set(np.argsort(-model.training.item_weights, kind="stable")[: N - 1])
        among = [each for each in whole.substitutes if {each.first, each.second} <= frequent]
        assert [each[:2] for each in found.substitutes] == [each[:2] for each in among[:k]]
        assert [each[:2] for each in found.complements] == [each[:2] for each in whole.complements[:k]]
        np.testing.assert_allclose([each[2:] for each in found.complements], [e[2:] for e in whole.complements[:k]])


def test_the_lift_matrix_of_a_large_catalogue_is_refused() -> None:
    model = Mixture(random_low_rank(1, mixture.MOST_IN_FULL + 1, rare=8))
    with pytest.raises(dl.InputError, match="5,001"):
        _ = model.lift
    assert len(model.complements(0, 3)) == 3

"""DPP: items by name in every query, recommendations and completions, invalid arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpplearn import DPP, Baskets, InputError, Mixture, Recommendation
from helpers import oracle
from helpers.spectra import exact

NAMES = ["crib", "cot", "monitor", "stroller", "bib", "bottle"]


def named(spectrum: str = "inside") -> DPP:
    return DPP(exact(spectrum).kernel, NAMES)


def test_queries_by_name_are_those_of_the_enumerated_distribution() -> None:
    truth, dpp = exact("inside"), named()
    baskets = Baskets.from_lists([[NAMES[i] for i in Y] for Y in truth.subsets], items=NAMES)
    np.testing.assert_allclose(np.exp(dpp.log_prob(baskets, 3)), oracle.k_dpp(truth.P, 3), rtol=1e-10)
    assert dpp.log_prob(baskets[3], 3) == dpp.log_prob(baskets, 3)[3]
    np.testing.assert_allclose(dpp.marginals(), oracle.item_marginals(truth.P), atol=1e-14)
    np.testing.assert_allclose(dpp.size_distribution, oracle.size_distribution(truth.P), atol=1e-14)
    assert dpp.inclusion_prob(["bib", "cot"]) == pytest.approx(oracle.marginal(truth.P, [1, 4]), rel=1e-10)
    assert dpp.given(include=["cot"], exclude=["bib"]).items == ("crib", "monitor", "stroller", "bottle")
    part = dpp.restrict(["bib", "cot"])
    assert part.items == ("bib", "cot")
    np.testing.assert_allclose(part.marginals(), dpp.marginals()[[4, 1]], atol=1e-12)
    for k in (-1, 7):
        with pytest.raises(InputError, match=f"k.*{k}"):
            dpp.log_prob(baskets, k)


def test_log_likelihood_without_weight_is_refused_and_with_an_impossible_basket_is_minus_infinity() -> None:
    for baskets in (Baskets.from_lists([["crib"]], items=NAMES, weights=[0]), Baskets.from_lists([], items=NAMES)):
        with pytest.raises(InputError):
            named().log_likelihood(baskets)
    dpp = named("two at 0")
    assert dpp.log_likelihood(Baskets.from_lists([["crib"], NAMES], items=NAMES)) == -np.inf
    assert dpp.log_prob(NAMES) == -np.inf


def test_given_refuses_contradictions_and_an_empty_rest() -> None:
    with pytest.raises(InputError):
        named().restrict([])
    with pytest.raises(InputError, match="'cot'"):
        named().given(include=["crib", "cot"], exclude=["cot"])
    with pytest.raises(InputError):
        named().given(include=NAMES[:3], exclude=NAMES[3:])


def test_without_names_the_original_integers_stay_through_every_condition() -> None:
    dpp = DPP(exact("inside").kernel)
    left = dpp.given(include=[0], exclude=[2])
    assert left.items == (1, 3, 4, 5)
    assert left.given(include=[3]).items == (1, 4, 5)
    assert left.restrict([5, 3]).items == (5, 3)
    assert {item for drawn in left.sample(200, rng=0) for item in drawn} == {1, 3, 4, 5}
    assert {item for item, _, _ in left.recommend([4])} == {1, 3, 5}
    assert set(left.complete([4], 4)) == {1, 3, 4, 5}
    assert {each.item for each in left.substitutes(5)} == {1, 3, 4}
    together = np.logaddexp.reduce([dpp.log_prob([0, *(left.items[j] for j in Y)]) for Y in oracle.subsets(4)])
    assert left.log_prob([3, 5]) == pytest.approx(dpp.log_prob([0, 3, 5]) - together, rel=1e-10)
    with pytest.raises(InputError, match=r"\b2\b"):
        left.log_prob([2])


def test_recommendations_for_many_baskets_are_those_for_each() -> None:
    baskets = Baskets.from_lists([["bib"], [], ["crib", "bottle"], ["cot", "bib", "crib"]], items=sorted(NAMES))
    together = named().recommend(baskets, 3, deny=["monitor"])
    assert together == [named().recommend(basket, 3, deny=["monitor"]) for basket in baskets]
    assert [len(each) for each in together] == [3, 3, 3, 2]
    assert all(isinstance(r, Recommendation) for each in together for r in each)


def test_recommendations_keep_to_what_is_allowed_and_not_denied() -> None:
    dpp = named()
    everything = dpp.recommend(["bib"], k=6)
    assert len(everything) == 5
    assert dpp.recommend(["bib"], k=2) == everything[:2]
    assert dpp.recommend(["bib"], k=0) == []
    deny = [everything[0].item, everything[3].item]
    assert dpp.recommend(["bib"], k=6, deny=deny) == [r for r in everything if r.item not in deny]
    allow = [everything[2].item, everything[1].item, "bib"]
    assert dpp.recommend(["bib"], k=6, allow=allow) == everything[1:3]
    assert dpp.recommend(["bib"], k=6, allow=np.array(allow), deny=np.array(deny[:1])) == everything[1:3]
    assert dpp.recommend(["bib"], k=6, deny=np.array(deny)) == dpp.recommend(["bib"], k=6, deny=deny)
    assert dpp.recommend(["bib"], k=6, allow=[]) == []
    assert dpp.recommend(["bib"], k=6, deny=None) == everything
    with pytest.raises(InputError, match=r"k.*-1"):
        dpp.recommend(["bib"], k=-1)


def test_what_cannot_be_added_is_not_recommended() -> None:
    X = np.random.default_rng(0).standard_normal((4, 6))
    X[3] = X[0]
    X[2] = 0
    dpp = DPP.from_L(X @ X.T, items=list("abcd"))
    assert [r.item for r in dpp.recommend(["a"])] == ["b"]
    with pytest.raises(InputError):
        dpp.recommend(["a", "d"])
    with pytest.raises(InputError, match=r"\b1\b"):  # the position of the impossible basket
        dpp.recommend(Baskets.from_lists([["b"], ["c"]], items=list("abcd")))


def test_a_completion_holds_its_basket_first_and_k_items_in_all() -> None:
    dpp = named()
    found = dpp.complete(["bottle", "crib"], 4)
    assert found.items[:2] == ("bottle", "crib")
    assert len(found) == len(set(found)) == 4
    assert found.log_prob == pytest.approx(dpp.log_prob(found.items), rel=1e-12)
    assert found.note == ""
    assert dpp.complete(["bottle", "crib"], 2).items == ("bottle", "crib")
    assert dpp.complete([], 3).items == dpp.greedy_map(3).items
    assert dpp.complete().items == dpp.greedy_map().items
    for basket, k in ((["bottle", "crib"], 1), ([], -2)):
        with pytest.raises(InputError, match=f"k.*{k}"):
            dpp.complete(basket, k)


def test_a_dpp_from_L_or_K_returns_these_matrices_and_keeps_the_names() -> None:
    L = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.5]])
    K = L @ np.linalg.inv(L + np.eye(3))
    for dpp in (DPP.from_L(L, NAMES[:3]), DPP.from_K(K.tolist(), NAMES[:3])):
        assert list(dpp.items) == NAMES[:3]
        assert not dpp.nonempty
        np.testing.assert_allclose(dpp.L, L, atol=1e-12)
        np.testing.assert_allclose(dpp.K, K, atol=1e-12)
    assert DPP.from_L(L).items == DPP.from_K(K).items == (0, 1, 2)
    truncated = DPP.from_K(K, NAMES[:3], nonempty=True)
    assert truncated.log_prob([]) == -np.inf
    np.testing.assert_allclose(truncated.K, K, atol=1e-12)
    np.testing.assert_allclose(DPP.from_L(L, nonempty=True).marginals(), truncated.marginals(), atol=1e-12)


def test_a_double_is_a_perfect_substitute_and_an_item_that_never_occurs_is_none() -> None:
    K = np.diag([0.5, 0.5, 0.0, 0.3])
    K[0, 1] = K[1, 0] = 0.5
    dpp = DPP.from_K(K, items=list("abcd"))
    (best,) = dpp.substitutes("a")  # and not "d", which is independent of it
    assert best.item == "b"
    assert best.lift == pytest.approx(0, abs=1e-14)
    assert best.lift >= 0
    with pytest.raises(InputError, match="'c'"):
        dpp.substitutes("c")


@pytest.mark.parametrize(
    "ask",
    [
        named().log_prob,
        named().inclusion_prob,
        named().given,
        lambda items: named().given(exclude=items),
        named().restrict,
        named().recommend,
        lambda items: named().recommend([], allow=items),
        lambda items: named().recommend([], deny=items),
        named().complete,
    ],
)
def test_unknown_and_repeated_names_and_a_single_string_are_refused(ask: Callable[[Any], object]) -> None:
    with pytest.raises(InputError, match=r"'cribb'.*'crib'"):  # the closest name
        ask(["bib", "cribb"])
    with pytest.raises(InputError, match=r"'crib'"):
        ask("crib")
    with pytest.raises(InputError, match="'bib'"):
        ask(["bib", "crib", "bib"])


def test_a_model_needs_a_kernel_and_a_name_for_every_item() -> None:
    with pytest.raises(InputError):
        DPP(np.eye(2))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"6.*2"):
        DPP(exact("inside").kernel, ["a", "b"])
    for make in (DPP.from_L, DPP.from_K):
        with pytest.raises(InputError, match="'a'"):
            make(np.eye(2) / 2, ["a", "a"])
        with pytest.raises(InputError, match=r"\b2\b"):
            make([[0.5]], ["crib", "cot"])


@pytest.mark.parametrize("interaction", [1.0, [1.0], ([[1.0]], 1.0)])
def test_a_mixture_needs_a_matrix_of_interactions(interaction: Any) -> None:
    with pytest.raises(InputError, match="n, n"):
        Mixture.from_arrays([1.0], [[0.0]], interaction)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning")
def test_dppy_gets_the_kernel_also_if_an_eigenvalue_is_one() -> None:
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    for top in (0.9, 1.0):
        K = (Q * [0.2, 0.5, 0.7, top]) @ Q.T
        found = DPP.from_K((K + K.T) / 2).to_dppy()
        found.compute_K()
        np.testing.assert_allclose(found.K, K, atol=1e-9)

"""DPP: probabilities, conditioning, recommendations and substitutes against enumeration; items by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given

from dpplearn import DPP, Baskets, InputError, Recommendation, Substitute
from dpplearn.distributions.independent import before_truncation
from dpplearn.distributions.spectral import SpectralDPP
from helpers import oracle
from helpers.spectra import every_spectrum, exact, law
from helpers.strategies import kernels

NAMES = ["crib", "cot", "monitor", "stroller", "bib", "bottle"]


def named(spectrum: str = "inside") -> DPP:
    return DPP(exact(spectrum).kernel, NAMES)


@given(kernels())
def test_probabilities_are_those_of_the_marginal_kernel(kernel: SpectralDPP) -> None:
    np.testing.assert_allclose(law(DPP(kernel)), oracle.probabilities_from_K(kernel.K), atol=1e-11)
    if not kernel.at_one.any():
        np.testing.assert_allclose(law(DPP(kernel)), oracle.probabilities_from_L(kernel.L), atol=1e-11)


@every_spectrum
def test_log_prob_is_the_same_for_one_basket_and_for_many(spectrum: str) -> None:
    truth, dpp = exact(spectrum), named(spectrum)
    sets = [[NAMES[i] for i in Y] for Y in truth.subsets]
    together = dpp.log_prob(Baskets.from_lists(sets, items=NAMES))
    np.testing.assert_allclose(np.exp(together), truth.P, rtol=0, atol=1e-14)
    for Y, log_p in zip(sets, together, strict=True):
        alone = dpp.log_prob(Y[::-1])
        assert isinstance(alone, float)
        assert alone == log_p


@every_spectrum
def test_log_prob_given_the_size_is_that_of_the_enumerated_k_dpp(spectrum: str) -> None:
    truth, dpp = exact(spectrum), named(spectrum)
    baskets = Baskets.from_lists([[NAMES[i] for i in Y] for Y in truth.subsets], items=NAMES)
    for k in truth.kernel.possible_sizes:
        if k >= truth.n_near:
            expected = oracle.k_dpp(truth.P, k)
            found = dpp.log_prob(baskets, k)
            np.testing.assert_allclose(np.exp(found), expected, rtol=1e-10)
            assert dpp.log_prob(baskets[3], k) == found[3]
    with pytest.raises(InputError, match=r"k.*7"):
        dpp.log_prob(baskets, 7)


@every_spectrum
def test_log_likelihood_is_the_weighted_mean(spectrum: str) -> None:
    truth, dpp = exact(spectrum), named(spectrum)
    sets = [Y for Y, p in zip(truth.subsets, truth.P, strict=True) if p > 1e-9]
    weights = np.random.default_rng(0).uniform(0, 3, len(sets))
    baskets = Baskets.from_lists([[NAMES[i] for i in Y] for Y in sets], items=NAMES, weights=weights)
    expected = oracle.log_likelihood(truth.P, sets, weights.tolist())
    assert dpp.log_likelihood(baskets) == pytest.approx(expected, rel=1e-12)


def test_log_likelihood_without_weight_is_refused_and_with_an_impossible_basket_is_minus_infinity() -> None:
    for baskets in (Baskets.from_lists([["crib"]], items=NAMES, weights=[0]), Baskets.from_lists([], items=NAMES)):
        with pytest.raises(InputError):
            named().log_likelihood(baskets)
    dpp = named("two at 0")
    assert dpp.log_likelihood(Baskets.from_lists([["crib"], NAMES], items=NAMES)) == -np.inf
    assert dpp.log_prob(NAMES) == -np.inf


@every_spectrum
def test_marginals_sizes_and_inclusion_probabilities_are_the_enumerated_ones(spectrum: str) -> None:
    truth, dpp = exact(spectrum), named(spectrum)
    np.testing.assert_allclose(dpp.marginals(), oracle.item_marginals(truth.P), atol=1e-14)
    sizes = oracle.size_distribution(truth.P)
    np.testing.assert_allclose(dpp.size_distribution, sizes, atol=1e-14)
    np.testing.assert_array_equal(dpp.size_distribution == 0, sizes == 0)
    assert dpp.expected_size == pytest.approx(sizes @ np.arange(7), rel=1e-14)
    for A in truth.subsets:
        expected = oracle.marginal(truth.P, A)
        assert dpp.inclusion_prob([NAMES[i] for i in A]) == pytest.approx(expected, rel=1e-10, abs=0)
    for k in truth.kernel.possible_sizes:
        marginals = dpp.marginals(k)
        np.testing.assert_allclose(marginals, oracle.item_marginals(oracle.k_dpp(truth.P, k)), atol=1e-10)
        assert marginals.sum() == pytest.approx(k, abs=1e-10)
    with pytest.raises(InputError, match=r"k.*-1"):
        dpp.marginals(-1)


@every_spectrum
def test_restrict_is_the_distribution_of_the_intersection_with_the_items(spectrum: str) -> None:
    truth, dpp = exact(spectrum), named(spectrum)
    for S in [(2,), (0, 5), (4, 1, 3), (5, 4, 3, 2, 1, 0)]:
        expected = np.zeros(2 ** len(S))
        for Y, p in zip(truth.subsets, truth.P, strict=True):
            expected[oracle.index([S.index(i) for i in Y if i in S])] += p
        part = dpp.restrict([NAMES[i] for i in S])
        assert part.items == tuple(NAMES[i] for i in S)
        np.testing.assert_allclose(law(part), expected, atol=1e-11)


def test_a_certain_item_is_certain_in_every_restriction() -> None:
    K = np.zeros((40, 40))
    K[0, 0] = 1
    X = np.random.default_rng(0).standard_normal((39, 50))
    K[1:, 1:] = 0.9 * X @ X.T / np.linalg.norm(X, 2) ** 2
    part = DPP.from_K(K).restrict([5, 0])
    assert part.log_prob([]) == part.log_prob([5]) == -np.inf
    assert part.kernel.possible_sizes == range(1, 3)


@every_spectrum
def test_given_keeps_the_names_of_what_remains(spectrum: str) -> None:
    truth, dpp = exact(spectrum), named(spectrum)
    if oracle.conditional(truth.P, [1], [4]).sum() > 0:
        left = dpp.given(include=["cot"], exclude=["bib"])
        assert left.items == ("crib", "monitor", "stroller", "bottle")
        C = oracle.conditional(truth.P, [1], [4])
        expected = np.array([C[oracle.index([1, *((0, 2, 3, 5)[j] for j in Y)])] for Y in oracle.subsets(4)])
        np.testing.assert_allclose(law(left), expected, atol=1e-11)


def test_given_refuses_contradictions_and_an_empty_rest() -> None:
    with pytest.raises(InputError):
        named().restrict([])
    with pytest.raises(InputError, match="'cot'"):
        named().given(include=["crib", "cot"], exclude=["cot"])
    with pytest.raises(InputError):
        named().given(include=NAMES[:3], exclude=NAMES[3:])


def test_without_names_the_original_integers_stay_through_every_condition() -> None:
    dpp = exact("inside").dpp
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


def test_integer_labels_that_are_not_positions_are_looked_up_as_labels() -> None:
    dpp = DPP(exact("inside").kernel, items=[10, 3, 7, 0, 5, 1])
    plain = exact("inside").dpp
    assert dpp.log_prob([3, 0]) == plain.log_prob([1, 3])
    assert dpp.greedy_map(3).items == tuple([10, 3, 7, 0, 5, 1][i] for i in plain.greedy_map(3))  # type: ignore[misc]
    with pytest.raises(InputError, match=r"\b2\b"):
        dpp.log_prob([2])


@every_spectrum
def test_recommendations_are_what_enumeration_says_best_first(spectrum: str) -> None:
    truth, dpp = exact(spectrum), named(spectrum)
    for A in truth.subsets:
        p = truth.P[oracle.index(A)]
        if len(A) < truth.n_near or p == 0:
            continue
        found = dpp.recommend([NAMES[i] for i in A], k=6)
        scores = {NAMES[i]: truth.P[oracle.index([*A, i])] / p for i in range(6) if i not in A}
        assert [r.item for r in found] == sorted((i for i in scores if scores[i] > 0), key=lambda i: -scores[i])
        marginals = oracle.item_marginals(oracle.conditional(truth.P, A))
        for item, score, probability in found:
            assert score == pytest.approx(scores[item], rel=1e-9)
            assert probability == pytest.approx(marginals[NAMES.index(str(item))], abs=1e-12)


@pytest.mark.parametrize("spectrum", ["two at 1", "all kinds"])
def test_recommendations_for_a_basket_of_probability_zero_are_ranked_by_inclusion_probability(spectrum: str) -> None:
    truth = exact(spectrum)
    found = named(spectrum).recommend([], k=6)
    marginals = oracle.item_marginals(truth.P)
    assert [r.item for r in found] == [NAMES[i] for i in np.argsort(-marginals)]
    assert all(math.isnan(r.score) for r in found)
    np.testing.assert_allclose([r.probability for r in found], np.sort(marginals)[::-1], atol=1e-12)


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
    assert dpp.recommend(["bib"], k=6, allow=allow, deny=deny[:1]) == everything[1:3]
    assert dpp.recommend(["bib"], k=6, allow=[]) == []
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


def test_of_equal_items_the_first_comes_first() -> None:
    dpp = DPP.from_K(np.diag([0.5, 0.25, 0.5, 0.5]))
    assert [r.item for r in dpp.recommend([])] == [0, 2, 3, 1]
    assert dpp.greedy_map(4).items == (0, 2, 3, 1)


def test_a_completion_holds_its_basket_first_and_k_items_in_all() -> None:
    dpp = named()
    found = dpp.complete(["bottle", "crib"], 4)
    assert found.items[:2] == ("bottle", "crib")
    assert len(found) == len(set(found)) == 4
    assert found.log_prob == dpp.log_prob(found.items)
    assert found.note == ""
    assert dpp.complete(["bottle", "crib"], 2).items == ("bottle", "crib")
    assert dpp.complete([], 3).items == dpp.greedy_map(3).items
    assert dpp.complete().items == dpp.greedy_map().items
    with pytest.raises(InputError, match=r"k.*1.*2"):
        dpp.complete(["bottle", "crib"], 1)
    with pytest.raises(InputError, match=r"k.*-2"):
        dpp.greedy_map(-2)


@every_spectrum
def test_a_completion_without_a_size_stops_when_no_item_raises_the_probability(spectrum: str) -> None:
    truth, dpp = exact(spectrum), named(spectrum)
    prob = {frozenset(Y): p for Y, p in zip(truth.subsets, truth.P, strict=True)}
    start = max((Y for Y in truth.subsets if len(Y) == 1), key=lambda Y: dpp.inclusion_prob([NAMES[i] for i in Y]))
    found = frozenset(NAMES.index(item) for item in dpp.complete([NAMES[i] for i in start]))
    assert found >= set(start)
    assert max((prob[found | {i}] for i in set(range(len(NAMES))) - found), default=0) <= prob[found] * (1 + 1e-12)


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
    assert truncated.log_prob([]) == -math.inf
    np.testing.assert_allclose(truncated.K, K, atol=1e-12)
    np.testing.assert_allclose(DPP.from_L(L, nonempty=True).marginals(), truncated.marginals(), atol=1e-12)


@pytest.mark.parametrize("make", [DPP.from_L, DPP.from_K])
@pytest.mark.parametrize(
    ("matrix", "value"),
    [
        ([[0.5, 0.1]], r"1.*2"),
        ([[0.5, 0.1], [0.2, 0.5]], r"0\.1"),
        ([[0.5, 0.7], [0.7, 0.5]], r"0\.2"),
        ([[0.5, math.nan], [math.nan, 0.5]], r"."),
    ],
)
def test_a_matrix_that_is_no_kernel_is_refused(make, matrix: list[list[float]], value: str) -> None:
    with pytest.raises(InputError, match=value):
        make(matrix)
    with pytest.raises(InputError, match=r"1\.5"):
        DPP.from_K([[1.5]])
    with pytest.raises(InputError, match=r"\b2\b"):
        make([[0.5]], ["crib", "cot"])


@every_spectrum
def test_substitutes_are_the_pairs_that_the_model_keeps_apart_most(spectrum: str) -> None:
    """The expected co-occurrence is conditional on nonempty sets if no set is empty."""
    truth, dpp = exact(spectrum), named(spectrum)
    marginals = oracle.item_marginals(truth.P)
    p = marginals if truth.P[0] > 0.25 * np.prod(1 - marginals) else before_truncation(marginals / (1 - truth.P[0]))
    for i in range(6):
        removed = {NAMES[j]: 1 - oracle.marginal(truth.P, [i, j]) / (marginals[i] * p[j]) for j in range(6) if j != i}
        found = dpp.substitutes(NAMES[i], k=6)
        assert all(isinstance(each, Substitute) for each in found)
        assert {each.item for each in found} == {item for item, share in removed.items() if share > 0}
        shares = [each.substitution for each in found]
        assert shares == sorted(shares, reverse=True)
        np.testing.assert_allclose(shares, [removed[str(each.item)] for each in found], atol=1e-12)
        assert str(dpp.substitutes(NAMES[i], k=2)) == str(found[:2])


def test_a_double_is_a_perfect_substitute_and_an_item_that_never_occurs_is_none() -> None:
    K = np.diag([0.5, 0.5, 0.0, 0.3])
    K[0, 1] = K[1, 0] = 0.5
    dpp = DPP.from_K(K, items=list("abcd"))
    (best,) = dpp.substitutes("a")  # and not "d", which is independent of it
    assert best.item == "b"
    assert best.substitution == pytest.approx(1, rel=1e-14)
    assert best.substitution <= 1
    with pytest.raises(InputError, match="'c'"):
        dpp.substitutes("c")


def test_draws_are_lists_of_names_in_the_order_of_the_catalogue() -> None:
    for drawn in named().sample(50, rng=0):
        assert drawn == sorted(drawn, key=lambda item: NAMES.index(str(item)))
        assert set(drawn) <= set(NAMES)


QUESTIONS: dict[str, Callable[[DPP, list[str]], object]] = {
    "log_prob": lambda dpp, items: dpp.log_prob(items),
    "inclusion_prob": lambda dpp, items: dpp.inclusion_prob(items),
    "include": lambda dpp, items: dpp.given(include=items),
    "exclude": lambda dpp, items: dpp.given(exclude=items),
    "restrict": lambda dpp, items: dpp.restrict(items),
    "recommend": lambda dpp, items: dpp.recommend(items),
    "allow": lambda dpp, items: dpp.recommend([], allow=items),
    "deny": lambda dpp, items: dpp.recommend([], deny=items),
    "complete": lambda dpp, items: dpp.complete(items, 4),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_unknown_and_repeated_names_and_a_single_string_are_refused(question: str) -> None:
    ask = QUESTIONS[question]
    with pytest.raises(InputError, match=r"'cribb'.*'crib'"):  # the closest name
        ask(named(), ["bib", "cribb"])
    with pytest.raises(InputError, match=r"'crib'"):
        ask(named(), "crib")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"'bib'.*2"):
        ask(named(), ["bib", "crib", "bib"])


def test_counts_that_are_no_whole_numbers_are_refused() -> None:
    dpp = DPP.from_K(np.eye(3) / 2)
    for ask in (dpp.sample, dpp.greedy_map, partial(dpp.recommend, [0]), partial(dpp.complete, [0])):
        with pytest.raises(InputError, match=r"2\.5"):
            ask(2.5)  # type: ignore[operator]
    with pytest.raises(InputError, match="-1"):
        dpp.substitutes(0, k=-1)


def test_unknown_names_are_refused_where_one_is_asked_for_and_in_many_baskets() -> None:
    with pytest.raises(InputError, match="'stroller'"):
        named().substitutes("stoller")
    strange = Baskets.from_lists([["bib"], ["bib", "bottel"]])
    for ask in (named().log_prob, named().log_likelihood, named().recommend):
        with pytest.raises(InputError, match=r"1.*'bottel'.*'bottle'"):
            ask(strange)


def test_baskets_over_a_catalogue_in_another_order_are_matched_by_name() -> None:
    sets = [["crib", "bib"], ["monitor"], []]
    ours, theirs = Baskets.from_lists(sets, items=NAMES), Baskets.from_lists(sets, items=["bib", "crib", "monitor"])
    np.testing.assert_array_equal(named().log_prob(theirs), named().log_prob(ours))
    assert named().log_likelihood(theirs) == named().log_likelihood(ours)


def test_a_model_needs_a_kernel_and_a_name_for_every_item() -> None:
    with pytest.raises(InputError):
        DPP(np.eye(2))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"6.*2"):
        DPP(exact("inside").kernel, ["a", "b"])
    with pytest.raises(InputError, match="'a'"):
        DPP.from_K(np.eye(2) / 2, ["a", "a"])

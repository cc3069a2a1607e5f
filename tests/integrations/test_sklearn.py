"""DPPEstimator keeps scikit-learn's conventions, and is `fit` underneath."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import SkipTest

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_matrix, csr_array, csr_matrix, issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MultiLabelBinarizer
from sklearn.utils.estimator_checks import check_dataframe_column_names_consistency, estimator_checks_generator

import dpplearn as dl
from dpplearn.integrations.sklearn import DPPEstimator
from dpplearn.learners.loop import Step, Stop
from dpplearn.learners.registry import LEARNERS, Learner
from dpplearn.learners.stopping import relative_change

Matrix = NDArray[np.int64]
Check = Callable[[Any], None]

N = 6
NAMES = ["bib", "cot", "crib", "cup", "mat", "pail"]

EXCLUDED = {
    "check_array_api_input": "skips itself unless SCIPY_ARRAY_API=1 was set before scipy was first imported; "
    "the learners are numpy and numba and make no use of other array libraries",
}


class OfRealNumbers(DPPEstimator):
    __doc__ = DPPEstimator.__doc__  # which a check reads

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """Real numbers made 0 and 1 after the estimator has validated them, for checks that feed such numbers."""
        return super()._validated(X, reset=reset) > 0.5


def estimator(**parameters: Any) -> DPPEstimator:
    """One that converges soon, from a random start."""
    return DPPEstimator(**{"learner": "em", "init": "wishart", "tol": 1e-3, "random_state": 0, **parameters})


def draws(n: int = 300, seed: int = 0) -> Matrix:
    """Rows drawn from a DPP over N items of clearly different marginals."""
    V, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((N, N)))
    dpp = dl.DPP(dl.Kernel(np.linspace(0.05, 0.95, N), V))
    X = np.zeros((n, N), dtype=np.int64)
    for row, basket in zip(X, dpp.sample(n, rng=seed), strict=True):
        row[basket] = 1
    return X


def lists(X: Matrix) -> list[list[str]]:
    return [[NAMES[i] for i in np.flatnonzero(row)] for row in X]


def checks(of: DPPEstimator, *, excluded: bool = False) -> list[Any]:
    """scikit-learn's checks for an estimator that are not excluded, or those that are."""
    found = [check for _, check in estimator_checks_generator(of)]
    return [check for check in found if (check.func.__name__ in EXCLUDED) == excluded]


def name_of(check: Any) -> str:
    return " ".join([check.func.__name__, *check.keywords])


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and the errors that it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def run(check: Check, on: DPPEstimator) -> None:
    """A check that skips itself has not passed."""
    try:
        check(on)
    except SkipTest as skipped:
        raise AssertionError("the check skipped itself") from skipped


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:no pair of items occurs together less often")
@pytest.mark.parametrize("check", checks(OfRealNumbers()), ids=name_of)
def test_every_check_of_scikit_learn_passes_once_its_numbers_are_made_0_and_1(check: Any) -> None:
    run(check, OfRealNumbers(shrinkage=0, max_iter=5))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("check", checks(DPPEstimator()), ids=name_of)
def test_every_check_of_scikit_learn_passes_or_feeds_numbers_that_are_not_0_and_1(check: Any) -> None:
    try:
        run(check, DPPEstimator(max_iter=5))
    except Exception as error:
        refusals = [cause for cause in chain(error) if isinstance(cause, dl.InputError)]
        if not any("expected 0 or 1" in str(refusal) for refusal in refusals):
            raise


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("check", checks(OfRealNumbers(), excluded=True), ids=name_of)
def test_an_excluded_check_would_not_pass(check: Any) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011
        run(check, OfRealNumbers(shrinkage=0, max_iter=5))


def test_an_excluded_check_exists() -> None:
    assert {check.func.__name__ for check in checks(OfRealNumbers(), excluded=True)} == set(EXCLUDED)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_column_names_are_checked_as_in_scikit_learns_own_estimators() -> None:
    check_dataframe_column_names_consistency("OfRealNumbers", OfRealNumbers(shrinkage=0, max_iter=5))


def test_without_choices_it_is_the_model_of_fit_without_choices() -> None:
    X = draws()
    there = dl.fit(dl.Baskets.from_matrix(X), rng=0)  # the parts for cross-validation are random
    here = DPPEstimator(random_state=0).fit(X).model_
    np.testing.assert_array_equal(here.kernel.log_odds, there.model.kernel.log_odds)


def test_what_is_learned_may_be_a_dpp_and_says_so_where_it_is_not() -> None:
    X = draws()
    assert isinstance(DPPEstimator(model="dpp", random_state=0, shrinkage=0, tol=1).fit(X).dpp_, dl.DPP)
    with pytest.raises(AttributeError, match="use model_, or learn a DPP with model='dpp'"):
        _ = DPPEstimator(random_state=0, segments=2, tol=1).fit(X).dpp_


def test_it_recommends_what_its_model_does_by_the_names_of_the_columns() -> None:
    frame = pd.DataFrame(draws(), columns=NAMES)
    model = DPPEstimator(random_state=0, segments=2, tol=1).fit(frame)
    row = pd.DataFrame([[1, 0, 0, 1, 0, 0]], columns=NAMES)
    assert model.recommend(row, 2) == [model.model_.recommend(["bib", "cup"], 2)]


@pytest.mark.parametrize(("learner", "init"), [("em", "wishart"), ("k-ascent", "moments"), ("auto", "wishart")])
def test_an_integer_random_state_gives_the_model_of_fit_with_that_seed(learner: str, init: str) -> None:
    X = draws()
    there = dl.fit(dl.Baskets.from_matrix(X), learner, init, restarts=2, tol=1e-3, max_iter=200, rng=3)
    here = estimator(learner=learner, init=init, restarts=2, max_iter=200, random_state=3).fit(X)
    np.testing.assert_array_equal(here.dpp_.kernel.K, there.kernel.K)
    assert here.dpp_.learned.restarts == 2
    assert (here.n_iter_, here.converged_, here.stop_) == (there.n_iter, there.converged, there.stop)
    assert here.log_likelihood_ == there.log_likelihood


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng], ids=["RandomState", "Generator"])
def test_a_random_state_object_is_drawn_from_and_so_moves_on(make: Callable[[int], Any]) -> None:
    X, state = draws(), make(1)
    first, second = (estimator(random_state=state).fit(X).dpp_.kernel.K for _ in range(2))
    again = estimator(random_state=make(1)).fit(X).dpp_.kernel.K
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, second)


def test_no_random_state_follows_numpys_global_seed_and_a_given_one_leaves_it_alone() -> None:
    model = estimator(random_state=None).fit(draws())
    before = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(5)  # noqa: NPY002
        first, second = model.sample(20), model.sample(20)
        np.random.seed(5)  # noqa: NPY002
        np.testing.assert_array_equal(model.sample(20), first)
        assert not np.array_equal(first, second)
        position = np.random.get_state()[2]  # noqa: NPY002
        estimator(random_state=0).fit(draws()).sample(3, random_state=0)
        assert np.random.get_state()[2] == position  # noqa: NPY002
    finally:
        np.random.set_state(before)  # noqa: NPY002


def test_an_impossible_random_state_is_refused_at_fit() -> None:
    with pytest.raises(ValueError, match="'seven' cannot be used to seed"):
        estimator(random_state="seven").fit(draws(10))


def test_the_score_is_the_weighted_mean_log_likelihood_of_the_model() -> None:
    X, test = draws(), draws(50, seed=1)
    weights = np.random.default_rng(0).uniform(size=50)
    model = estimator().fit(X)
    assert model.score(X) == pytest.approx(model.log_likelihood_, abs=1e-12)
    weighted = model.dpp_.log_likelihood(dl.Baskets.from_matrix(test, weights=weights))
    assert model.score(test, sample_weight=weights) == pytest.approx(weighted, abs=1e-12)
    mean = np.average(model.score_samples(test), weights=weights)
    assert model.score(test, sample_weight=weights) == pytest.approx(mean, abs=1e-12)
    assert model.score(test) != pytest.approx(weighted, abs=1e-3)


def test_score_samples_are_the_log_probabilities_of_the_rows_in_order() -> None:
    X = draws(20)
    model = estimator().fit(X)
    one_by_one = [model.dpp_.log_prob(np.flatnonzero(row).tolist()) for row in X]
    np.testing.assert_allclose(model.score_samples(X), one_by_one, atol=1e-12)


@pytest.mark.parametrize("init", ["wishart", "moments"])
def test_a_weight_is_as_good_as_that_many_repetitions(init: str) -> None:
    X = np.array([[1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])  # the first would raise the moments' rank
    weights = [0, 1, 2, 3, 1]
    weighted = estimator(init=init).fit(X, sample_weight=weights)
    repeated = estimator(init=init).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_array_equal(weighted.dpp_.kernel.K, repeated.dpp_.kernel.K)
    assert weighted.n_iter_ == repeated.n_iter_
    unweighted = estimator(init=init).fit(X[1:])
    assert not np.allclose(weighted.dpp_.kernel.K, unweighted.dpp_.kernel.K, atol=1e-3)


@pytest.mark.parametrize("given", ["fit", "score"])
def test_weights_that_are_all_zero_are_refused(given: str) -> None:
    X = draws(10)
    method = getattr(estimator().fit(X), given)
    with pytest.raises(dl.InputError, match="10"):
        method(X, sample_weight=np.zeros(10))


@pytest.mark.parametrize(
    "container",
    [
        csr_array,
        csr_matrix,
        csc_matrix,
        coo_array,
        np.ndarray.tolist,
        lambda X: X.astype(bool),
        lambda X: X.astype("f4"),
    ],
    ids=["csr_array", "csr_matrix", "csc_matrix", "coo_array", "lists", "bool", "float32"],
)
def test_whatever_holds_the_matrix_the_model_and_the_scores_are_the_same(container: Callable[[Matrix], Any]) -> None:
    X = draws()
    dense, other = estimator().fit(X), estimator().fit(container(X))
    np.testing.assert_array_equal(other.dpp_.kernel.K, dense.dpp_.kernel.K)
    assert other.score(container(X)) == dense.score(X)
    assert other.n_features_in_ == N
    assert not hasattr(other, "feature_names_in_")


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, lambda X, columns: pl.DataFrame(X, schema=columns)], ids=["pandas", "polars"]
)
def test_column_names_become_the_items(frame: Callable[..., Any]) -> None:
    X = frame(draws(), columns=NAMES)
    model = estimator().fit(X)
    assert model.dpp_.items == tuple(NAMES)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.score(X) == pytest.approx(model.log_likelihood_, abs=1e-12)


def test_integer_column_labels_become_the_items_and_without_labels_items_are_numbered() -> None:
    X = draws()
    numbers = [30, 10, 20, 60, 50, 40]
    model = estimator().fit(pd.DataFrame(X, columns=numbers))
    assert model.dpp_.items == tuple(numbers)
    assert model.score(X) == pytest.approx(model.log_likelihood_, abs=1e-12)
    assert model.fit(X).dpp_.items == tuple(range(N))


def test_names_of_an_earlier_fit_are_forgotten() -> None:
    model = estimator().fit(pd.DataFrame(draws(), columns=NAMES)).fit(draws())
    assert model.dpp_.items == tuple(range(N))


@pytest.mark.parametrize(
    ("factor", "shift", "came"),
    [
        (3, 0, "row 0, column . of the matrix holds 3"),
        (0.5, 0, "holds 0.5"),
        (2, -1, "Negative values .* least of them -1"),
    ],
    ids=["counts", "fractions", "negative"],
)
@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_a_matrix_that_is_not_0_and_1_is_refused_with_what_came_and_what_to_do(
    container: Callable[[Any], Any], factor: float, shift: int, came: str
) -> None:
    X = draws(20)
    wrong = container(X * factor + shift)
    model = estimator().fit(X)
    for method in (model.fit, model.score, model.score_samples):
        with pytest.raises(dl.InputError, match=f"{came}"):
            method(wrong)


def test_another_number_of_columns_is_refused_in_scikit_learns_words() -> None:
    model = estimator().fit(draws(20))
    for method in (model.score, model.score_samples):
        with pytest.raises(ValueError, match="X has 5 features, but DPPEstimator is expecting 6 features as input"):
            method(draws(20)[:, 1:])


@pytest.mark.parametrize("method", ["score", "score_samples", "sample"])
def test_nothing_but_fit_works_before_fit(method: str) -> None:
    argument: Any = 3 if method == "sample" else draws(3)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(estimator(), method)(argument)


def test_a_fit_that_did_not_converge_warns_says_why_and_what_to_do() -> None:
    message = "did not converge in 2 iterations: the limit on iterations .*; raise max_iter or tol .tol is 1e-09"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model = estimator(max_iter=2, tol=1e-9).fit(draws())
    assert caught[0].filename == __file__
    assert (model.n_iter_, model.converged_, model.stop_) == (2, False, Stop.MAX_ITER)


def test_a_time_limit_reaches_the_learner() -> None:
    with pytest.warns(ConvergenceWarning, match="raise max_seconds or tol"):
        model = estimator(max_seconds=1e-9).fit(draws())
    assert model.stop_ is Stop.MAX_SECONDS


def test_ctrl_c_ends_a_grid_search_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(kernel: dl.Kernel, *_: Any) -> Iterator[Step]:
        yield Step(kernel, -1.0, 0.0, 1)
        raise KeyboardInterrupt

    monkeypatch.setitem(LEARNERS, "em", Learner("em", interrupted, relative_change, as_published=True))
    with pytest.raises(KeyboardInterrupt):
        estimator().fit(draws())


def test_early_stopping_is_what_was_asked_for_and_no_reason_to_warn() -> None:
    there = dl.fit(dl.Baskets.from_matrix(draws(60)), shrinkage=0, validation=0.3, patience=4, rng=0, tol=1e-6)
    here = DPPEstimator(shrinkage=0, validation=0.3, patience=4, random_state=0, tol=1e-6).fit(draws(60))
    assert there.stop is Stop.VALIDATION
    assert (here.stop_, here.converged_, here.n_iter_) == (Stop.VALIDATION, False, there.n_iter)
    np.testing.assert_array_equal(here.dpp_.kernel.K, there.kernel.K)


@pytest.mark.parametrize("shrinkage", [0.5, 1, "auto"])
def test_the_shrinkage_reaches_the_learner(shrinkage: float | str) -> None:
    X = draws(40)
    there = dl.fit(dl.Baskets.from_matrix(X), shrinkage=shrinkage, rng=3)
    here = DPPEstimator(shrinkage=shrinkage, random_state=3).fit(X)
    np.testing.assert_array_equal(here.dpp_.kernel.K, there.kernel.K)
    assert here.log_likelihood_ == there.log_likelihood
    assert here.score(X) == pytest.approx(here.log_likelihood_, abs=1e-12)
    if shrinkage == 1:
        assert (here.stop_, here.converged_, here.n_iter_) == (Stop.CLOSED_FORM, True, 0)


def test_a_grid_search_can_choose_the_shrinkage() -> None:
    search = GridSearchCV(DPPEstimator(learner="em", tol=1e-3), {"shrinkage": [0.3, 1]}, cv=2).fit(draws(200))
    assert search.best_params_ == {"shrinkage": 0.3}


@pytest.mark.parametrize("shrinkage", [0.1, 1])
def test_learned_from_rows_that_are_not_empty_scores_are_given_that_they_are_not(shrinkage: float) -> None:
    X = np.vstack([np.eye(N, dtype=int)] * 3 + [np.tri(N, dtype=int)])
    model = DPPEstimator(nonempty=True, shrinkage=shrinkage).fit(X)
    baskets = dl.Baskets.from_matrix(X)
    np.testing.assert_allclose(model.score_samples(X), model.dpp_.log_prob(baskets), atol=1e-12)
    assert model.score(X) == pytest.approx(model.dpp_.log_likelihood(baskets), abs=1e-12)
    assert model.score(X) == pytest.approx(model.log_likelihood_, abs=1e-9)
    if shrinkage == 1:
        assert model.score(X) > dl.DPP(model.dpp_.kernel).log_likelihood(baskets) + 0.1
    assert model.score_samples(np.zeros((1, N), dtype=int))[0] == -np.inf
    with pytest.raises(dl.InputError):
        DPPEstimator(nonempty=True).fit(np.vstack([X, np.zeros(N, dtype=int)]))


def test_the_constructor_stores_its_parameters_and_leaves_checking_them_to_fit() -> None:
    parameters = {
        "model": None, "segments": None, "attraction": True, "rank": None, "learner": "guess",
        "init": "moments", "restarts": 3, "tol": 0.1, "max_iter": 7, "max_seconds": 5.0,
        "shrinkage": 0.5, "validation": 0.2, "patience": 3, "nonempty": True, "threads": 1,
        "random_state": np.random.default_rng(0),
    }  # fmt: skip
    model = DPPEstimator(**parameters)
    assert model.get_params() == parameters
    with pytest.raises(dl.InputError, match=r"learner.*'guess'"):
        model.fit(draws(10))


def test_a_clone_has_the_parameters_and_nothing_learned() -> None:
    fitted = estimator(init="moments").fit(draws())
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "dpp_")
    np.testing.assert_array_equal(copy.fit(draws()).dpp_.kernel.K, fitted.dpp_.kernel.K)


@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_a_pickled_estimator_scores_and_draws_as_before(container: Callable[[Matrix], Any]) -> None:
    X = container(draws())
    fitted = estimator().fit(X)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.score_samples(X), fitted.score_samples(X))
    before, after = (model.sample(5, random_state=1) for model in (fitted, copy))
    assert type(after) is type(before)
    np.testing.assert_array_equal(_dense(after), _dense(before))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_grid_search_prefers_the_better_learned_model_whatever_the_init() -> None:
    grid = {"init": ["wishart", "moments"], "max_iter": [0, 50]}
    search = GridSearchCV(estimator(), grid, cv=3, error_score="raise").fit(csr_array(draws()))
    scores = dict(zip(map(str, search.cv_results_["params"]), search.cv_results_["mean_test_score"], strict=True))
    assert len(scores) == 4
    for init in grid["init"]:
        unlearned, learned = (scores[str({"init": init, "max_iter": max_iter})] for max_iter in (0, 50))
        assert learned > unlearned
    assert search.best_score_ == max(scores.values())
    assert search.score(draws()) == search.best_estimator_.dpp_.log_likelihood(dl.Baskets.from_matrix(draws()))


@pytest.mark.parametrize("sparse", [False, True])
def test_a_pipeline_takes_lists_through_a_multi_label_binarizer(sparse: bool) -> None:
    X = draws()
    binarizer = MultiLabelBinarizer(sparse_output=sparse).fit([NAMES])
    pipeline = make_pipeline(FunctionTransformer(binarizer.transform), estimator())
    pipeline.fit(lists(X))
    assert pipeline.score(lists(X)) == estimator().fit(X).score(X)
    np.testing.assert_array_equal(pipeline.score_samples(lists(X)), estimator().fit(X).score_samples(X))
    drawn = pipeline[-1].sample(10, random_state=0)
    assert issparse(drawn) == sparse
    assert [sorted(basket) for basket in binarizer.inverse_transform(drawn)] == lists(_dense(drawn))
    assert np.all(np.isfinite(cross_val_score(pipeline, lists(X), cv=3)))


def test_draws_are_0_and_1_of_the_kind_and_the_width_of_the_training_matrix() -> None:
    for container, kind in ((np.asarray, np.ndarray), (csr_matrix, csr_array)):
        model = estimator().fit(container(draws()))
        drawn = model.sample(40, random_state=0)
        assert isinstance(drawn, kind)
        assert (drawn.shape, drawn.dtype) == ((40, N), np.int64)
        assert set(np.unique(_dense(drawn))) == {0, 1}
        np.testing.assert_array_equal(_dense(drawn), _dense(model.sample(40, random_state=0)))
        assert model.sample().shape == (1, N)
        assert model.sample(0).shape == (0, N)


def test_draws_are_the_sets_that_the_model_draws_with_that_seed() -> None:
    model = estimator().fit(draws())
    for k in (None, 3):
        rows = model.sample(70, k=k, random_state=4)
        assert [np.flatnonzero(row).tolist() for row in rows] == model.dpp_.sample(70, k=k, rng=4)


def test_the_share_of_draws_with_an_item_is_its_marginal() -> None:
    """Counts are binomial, so by Hoeffding and a union over items a share is off by more than the bound in fewer than
    one of a million runs. A sampler that mixed up two items would be off by far more."""
    n = 20_000
    bound = np.sqrt(np.log(2 * N / 1e-6) / (2 * n))
    model = estimator().fit(draws())
    for k in (None, 2):
        marginals = model.dpp_.marginals(k)
        counts = model.sample(n, k=k, random_state=0).sum(axis=0)
        assert np.abs(counts / n - marginals).max() < bound
        assert np.abs(np.roll(marginals, 1) - marginals).max() > 4 * bound


@pytest.mark.parametrize(("request_", "message"), [({"n_samples": -1}, r"n_samples.*-1"), ({"k": N + 1}, r"k.*7")])
def test_draws_that_cannot_be_made_are_refused(request_: dict[str, int], message: str) -> None:
    with pytest.raises(dl.InputError, match=message):
        estimator().fit(draws()).sample(**request_)


def test_without_scikit_learn_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "dpplearn.integrations.sklearn")
    with pytest.raises(ImportError, match=r'pip install "dpplearn\[sklearn\]"'):
        importlib.import_module("dpplearn.integrations.sklearn")


def _dense(X: Any) -> Matrix:
    dense: Matrix = X.toarray() if issparse(X) else X
    return dense

"""DPPEstimator follows the conventions of scikit-learn and gives the models of `fit`."""

from __future__ import annotations

import importlib
import sys
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_matrix, csr_array, csr_matrix
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MultiLabelBinarizer
from sklearn.utils.estimator_checks import check_dataframe_column_names_consistency, estimator_checks_generator

import dpplearn as dl
from dpplearn.integrations.sklearn import DPPEstimator
from dpplearn.learners.loop import Stop
from helpers.problems import sampled

Matrix = NDArray[np.int64]

N = 6
NAMES = ["bib", "cot", "crib", "cup", "mat", "pail"]


# This check skips itself unless SCIPY_ARRAY_API=1 was set before scipy was imported.
SKIPS_ITSELF = "check_array_api_input"


class OfRealNumbers(DPPEstimator):
    __doc__ = DPPEstimator.__doc__  # which a check reads

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """Binarise real numbers after validation, because the checks of scikit-learn use real numbers."""
        return super()._validated(X, reset=reset) > 0.5


def estimator(**parameters: Any) -> DPPEstimator:
    """Return an estimator that converges quickly from a random kernel."""
    return DPPEstimator(**{"learner": "em", "init": "wishart", "tol": 1e-3, "random_state": 0, **parameters})


def draws(n: int = 300, seed: int = 0) -> Matrix:
    """Return rows drawn from a DPP over N items."""
    return sampled(seed, n, N).to_matrix().toarray().astype(np.int64)


CHECKS = [check for _, check in estimator_checks_generator(OfRealNumbers()) if check.func.__name__ != SKIPS_ITSELF]
CHECKS.append(partial(check_dataframe_column_names_consistency, "OfRealNumbers"))


def lists(X: Matrix) -> list[list[str]]:
    return [[NAMES[i] for i in np.flatnonzero(row)] for row in X]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:no pair of items occurs together less often")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: " ".join([check.func.__name__, *check.keywords]))
def test_every_check_of_scikit_learn_passes_on_binarised_numbers(check: Any) -> None:
    check(OfRealNumbers(shrinkage=0, max_iter=5))


def test_a_matrix_that_is_not_binary_is_rejected() -> None:
    X = draws(20)
    model = estimator().fit(X)
    for wrong, value in ((3 * X, r"\b3\b"), (0.5 * X, r"0\.5"), (2 * X - 1, "-1")):
        for method in (model.fit, model.score, model.score_samples):
            for container in (np.asarray, csr_array):
                with pytest.raises(dl.InputError, match=value):
                    method(container(wrong))


def test_invalid_parameters_and_methods_before_fit_are_rejected() -> None:
    for wrong, value in (({"learner": "guess"}, "'guess'"), ({"random_state": "seven"}, "'seven'")):
        model = estimator(**wrong)  # which checks nothing
        with pytest.raises(ValueError, match=value):
            model.fit(draws(10))
    for method, argument in (("score", draws(3)), ("score_samples", draws(3)), ("sample", 3)):
        with pytest.raises(NotFittedError):
            getattr(estimator(), method)(argument)
    model = estimator().fit(draws())
    for request, value in (({"n_samples": -1}, r"n_samples.*-1"), ({"k": N + 1}, r"k.*7")):
        with pytest.raises(dl.InputError, match=value):
            model.sample(**request)


def test_the_default_model_and_its_recommendations_are_those_of_fit() -> None:
    frame = pd.DataFrame(draws(), columns=NAMES)
    there = dl.fit(dl.Baskets.from_matrix(frame.to_numpy(), NAMES), rng=0).model
    here = DPPEstimator(random_state=0).fit(frame)
    np.testing.assert_allclose(here.model_.marginals(), there.marginals(), atol=1e-9)
    row = pd.DataFrame([[1, 0, 0, 1, 0, 0]], columns=NAMES)
    (found,) = here.recommend(row, 2)
    assert [each.item for each in found] == [each.item for each in there.recommend(["bib", "cup"], 2)]


@pytest.mark.parametrize(
    "options",
    [
        {"learner": "em", "init": "wishart", "restarts": 2, "tol": 1e-3},
        {"learner": "lbfgs", "shrinkage": 0.5},
        {"learner": "lbfgs", "shrinkage": 0, "validation": 0.3, "tol": 1e-6},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_an_integer_random_state_gives_the_model_of_fit_with_that_seed(options: dict[str, Any]) -> None:
    X = draws(60)
    there = dl.fit_dpp(dl.Baskets.from_matrix(X), rng=3, **options)
    here = DPPEstimator(random_state=3, **options).fit(X)
    np.testing.assert_allclose(here.model_.kernel.K, there.model.K, atol=1e-9)
    assert here.model_.learned.restarts == options.get("restarts", 1)
    assert (here.n_iter_, here.converged_, here.stop_) == (there.n_iter, there.converged, there.stop)
    assert here.log_likelihood_ == pytest.approx(there.log_likelihood, abs=1e-9)


def test_no_random_state_follows_numpys_global_seed_and_a_given_one_leaves_it_alone() -> None:
    model = estimator(random_state=None).fit(draws())
    np.random.seed(5)  # noqa: NPY002
    first, second = model.sample(20), model.sample(20)
    np.random.seed(5)  # noqa: NPY002
    np.testing.assert_array_equal(model.sample(20), first)
    assert not np.array_equal(first, second)
    position = np.random.get_state()[2]  # noqa: NPY002
    estimator(random_state=0).fit(draws()).sample(3, random_state=0)
    assert np.random.get_state()[2] == position  # noqa: NPY002


def test_the_score_is_the_weighted_mean_log_likelihood_of_the_model() -> None:
    X, test = draws(), draws(50, seed=1)
    weights = np.random.default_rng(0).uniform(size=50)
    model = estimator().fit(X)
    assert model.score(X) == pytest.approx(model.log_likelihood_, abs=1e-12)
    weighted = model.model_.log_likelihood(dl.Baskets.from_matrix(test, weights=weights))
    assert model.score(test, sample_weight=weights) == pytest.approx(weighted, abs=1e-12)
    assert model.score(test) != pytest.approx(weighted, abs=1e-3)
    one_by_one = [model.model_.log_prob(np.flatnonzero(row).tolist()) for row in test]
    np.testing.assert_allclose(model.score_samples(test), one_by_one, atol=1e-12)
    for method in (model.fit, model.score):
        with pytest.raises(dl.InputError, match="50"):
            method(test, sample_weight=np.zeros(50))


def test_the_container_of_the_matrix_does_not_matter() -> None:
    X = draws()
    dense = estimator().fit(X)
    assert dense.model_.items == tuple(range(N))
    for other in (csr_array(X), csc_matrix(X), coo_array(X), X.tolist(), X.astype(bool), X.astype("f4")):
        model = estimator().fit(other)
        np.testing.assert_allclose(model.model_.kernel.K, dense.model_.kernel.K, atol=1e-9)
        assert model.score(other) == pytest.approx(dense.score(X))
        assert not hasattr(model, "feature_names_in_")


def test_column_names_become_the_items() -> None:
    X = draws()
    for frame in (pd.DataFrame(X, columns=NAMES), pl.DataFrame(X, schema=NAMES)):
        model = estimator().fit(frame)
        assert model.model_.items == tuple(NAMES)
        assert model.feature_names_in_.tolist() == NAMES
        assert model.score(frame) == pytest.approx(model.log_likelihood_, abs=1e-12)
    numbers = [30, 10, 20, 60, 50, 40]
    assert estimator().fit(pd.DataFrame(X, columns=numbers)).model_.items == tuple(numbers)


def test_a_fit_that_did_not_converge_warns_and_names_the_limit() -> None:
    with pytest.warns(ConvergenceWarning, match=r"max_iter.*1e-09") as caught:
        model = estimator(max_iter=2, tol=1e-9).fit(draws())
    assert caught[0].filename == __file__
    assert (model.n_iter_, model.converged_, model.stop_) == (2, False, Stop.MAX_ITER)


def test_a_pipeline_takes_lists_through_a_multi_label_binarizer() -> None:
    X = draws()
    binarizer = MultiLabelBinarizer(sparse_output=True).fit([NAMES])
    pipeline = make_pipeline(FunctionTransformer(binarizer.transform), estimator()).fit(lists(X))
    np.testing.assert_allclose(pipeline.score_samples(lists(X)), estimator().fit(X).score_samples(X), atol=1e-9)
    drawn = pipeline[-1].sample(10, random_state=0)
    assert [sorted(basket) for basket in binarizer.inverse_transform(drawn)] == lists(drawn.toarray())
    assert np.all(np.isfinite(cross_val_score(pipeline, lists(X), cv=3)))


def test_samples_are_binary_rows_with_the_sets_that_the_model_draws() -> None:
    for container, kind in ((np.asarray, np.ndarray), (csr_matrix, csr_array)):
        model = estimator().fit(container(draws()))
        for k in (None, 3):
            rows = model.sample(70, k=k, random_state=4)
            assert isinstance(rows, kind)
            assert (rows.shape, rows.dtype) == ((70, N), np.int64)
            dense = csr_array(rows).toarray()
            assert set(np.unique(dense)) == {0, 1}
            assert [np.flatnonzero(row).tolist() for row in dense] == model.model_.sample(70, k=k, rng=4)
        assert model.sample().shape == (1, N)
        assert model.sample(0).shape == (0, N)


def test_without_scikit_learn_the_import_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "dpplearn.integrations.sklearn")
    with pytest.raises(ImportError, match=r"dpplearn\[sklearn\]"):
        importlib.import_module("dpplearn.integrations.sklearn")

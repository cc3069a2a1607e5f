"""DPPEstimator: `fit` and `fit_dpp` with the conventions of scikit-learn; rows are baskets, columns are items."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError, whole_number
from dpplearn.learners.fit import fit_with
from dpplearn.learners.loop import Stop
from dpplearn.learners.settings import settings_of
from dpplearn.models.answers import Recommendation
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture

try:
    from sklearn.base import BaseEstimator, DensityMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as missing:
    raise ImportError(
        f'DPPEstimator needs scikit-learn 1.6 or later ({missing}); pip install "dpplearn[sklearn]"'
    ) from missing

RandomState = int | np.random.RandomState | np.random.Generator | None

NOT_CONVERGED = {Stop.MAX_ITER, Stop.NO_ASCENT, Stop.NOT_BETTER}


class DPPEstimator(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Estimator of a mixture or a DPP from a 0/1 matrix: one row per basket, one column per item.

    `MultiLabelBinarizer` converts lists of items to such a matrix. In a pipeline, use
    `make_pipeline(FunctionTransformer(MultiLabelBinarizer().fit(lists).transform), DPPEstimator())`, because the
    binarizer transforms targets and cannot be a step itself.

    Parameters
    ----------
    learner, init, shrinkage
        Options of `dpplearn.fit_dpp`. If one of them is given, a DPP is fitted, otherwise a mixture.
    segments, attraction, rank
        Options of `dpplearn.fit` for mixtures.
    restarts, tol, max_iter, validation, nonempty
        Options of both.
    threads : int or None
        Number of threads of `fit` and `sample`; None for all cores.
    random_state : int, RandomState, Generator or None
        Seed of random starts. An integer gives the same model as `rng` of `dpplearn.fit`; None draws from numpy's
        global state, as in scikit-learn.

    Attributes
    ----------
    model_ : Mixture or DPP
        The model. Its items are the column labels of a DataFrame (strings or integers), otherwise column numbers.
    log_likelihood_ : float
        Mean log-likelihood of the training baskets under `model_`.
    n_iter_ : int
        Iterations of the best run.
    converged_ : bool
        Whether the tolerance was met, or the shrinkage is 1.
    stop_ : Stop
        Why the fit stopped.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if all columns of X had names.

    Examples
    --------
    >>> import pandas
    >>> X = pandas.DataFrame([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]] * 10, columns=["cot", "crib", "bib"])
    >>> estimator = DPPEstimator(shrinkage=0.1).fit(X)
    >>> [each.item for each in estimator.model_.recommend(["cot"])]
    ['bib', 'crib']
    """

    model_: DPP | Mixture

    def __init__(
        self,
        learner: str | None = None,
        init: str | None = None,
        segments: int | None = None,
        attraction: bool | int = True,
        rank: int | None = None,
        restarts: int = 1,
        tol: float | None = None,
        max_iter: int = 1000,
        shrinkage: float | str | None = None,
        validation: float | None = None,
        nonempty: bool | str = "auto",
        threads: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.learner = learner
        self.init = init
        self.segments = segments
        self.attraction = attraction
        self.rank = rank
        self.restarts = restarts
        self.tol = tol
        self.max_iter = max_iter
        self.shrinkage = shrinkage
        self.validation = validation
        self.nonempty = nonempty
        self.threads = threads
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def fit(self, X: Any, y: None = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the model to the rows of X.

        Warns if the fit did not converge. Ctrl-C is raised again, so that it also ends a grid search; `model_` is then
        the best model so far.

        Parameters
        ----------
        X
            Dense or sparse, 0 and 1 or bool.
        y
            Ignored.
        sample_weight
            Weight of each row: 2 counts a row twice, and 0 leaves it out.

        Returns
        -------
        DPPEstimator
            The estimator itself.

        Examples
        --------
        >>> X = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]] * 10)  # cot, crib, bib
        >>> DPPEstimator(shrinkage=0.1).fit(X).converged_
        True
        """
        matrix = self._validated(X, reset=True)
        # scikit-learn keeps names of columns, but ignores integer labels.
        columns = getattr(self, "feature_names_in_", getattr(X, "columns", None))
        baskets = _baskets(matrix, None if columns is None else list(columns), sample_weight)
        options = {name: value for name, value in self.get_params().items() if name != "random_state"}
        if self.attraction is True:  # the default, which a DPP does not have
            del options["attraction"]
        result = fit_with(settings_of(**options), baskets, rng=_generator(self.random_state))
        self.model_ = result.model
        self.log_likelihood_ = result.log_likelihood
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.stop_ = result.stop
        self._fitted_on_sparse = issparse(matrix)
        if self.stop_ in NOT_CONVERGED:
            reason = f"the fit did not converge in {self.n_iter_} iterations: {self.stop_.value}"
            remedy = f"raise max_iter ({self.max_iter}) or tol ({self.tol}), or try another init or more restarts"
            warnings.warn(f"{reason}; {remedy}", ConvergenceWarning, stacklevel=2)
        return self

    def score(self, X: Any, y: None = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the weighted mean log-likelihood of the rows; of nonempty rows, if the model excludes the empty set.

        Parameters
        ----------
        X
            As in `fit`, with the same columns.
        y
            Ignored.
        sample_weight
            Weight of each row.

        Returns
        -------
        float
            −inf if one of the rows is impossible under the model.

        Examples
        --------
        >>> X = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]] * 10)  # cot, crib, bib
        >>> estimator = DPPEstimator(shrinkage=0.1).fit(X)
        >>> round(abs(estimator.score(X) - estimator.log_likelihood_), 6)
        0.0
        """
        baskets = self._known_baskets(X, sample_weight)
        return self.model_.log_likelihood(baskets)

    def score_samples(self, X: Any) -> Floats:
        """Return the log-probability of each row; of nonempty rows, if the model excludes the empty set.

        Parameters
        ----------
        X
            As in `fit`, with the same columns.

        Returns
        -------
        array of float
            −inf where the probability is zero.

        Examples
        --------
        >>> X = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]] * 10)  # cot, crib, bib
        >>> one, both = DPPEstimator(shrinkage=0.1).fit(X).score_samples([[1, 0, 0], [1, 1, 0]])
        >>> bool(one > both)  # a cot and a crib are hardly ever together
        True
        """
        baskets = self._known_baskets(X)
        return self.model_.log_prob(baskets)

    def sample(
        self, n_samples: int = 1, k: int | None = None, random_state: RandomState = None
    ) -> npt.NDArray[np.int64] | csr_array[np.int64]:
        """Draw independent sets from the model.

        Parameters
        ----------
        n_samples
            Number of draws.
        k
            Number of items of each; by default random.
        random_state
            A seed or a generator; None draws from numpy's global state, as in scikit-learn.

        Returns
        -------
        array or csr_array of int
            One 0/1 row per draw; sparse if the X given to `fit` was.

        Examples
        --------
        >>> X = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]] * 10)  # cot, crib, bib
        >>> DPPEstimator(shrinkage=0.1).fit(X).sample(4, k=2, random_state=0).sum(axis=1).tolist()
        [2, 2, 2, 2]
        """
        check_is_fitted(self)
        n = whole_number("n_samples", n_samples, 0)
        sets = self.model_.distribution.sample(n, k, _generator(random_state), self.threads)
        rows = Baskets.from_lists(sets, n_items=len(self.model_.items)).to_matrix()
        matrix = csr_array(rows.astype(np.int64))
        return matrix if self._fitted_on_sparse else matrix.toarray()

    def recommend(self, X: Any, k: int = 10) -> list[list[Recommendation]]:
        """Return the best items to add to each row.

        Parameters
        ----------
        X
            Partial baskets, one per row.
        k
            Maximum number of items.

        Returns
        -------
        list of list of Recommendation
            One list per row, best first. Items are the column names of the fit.

        Examples
        --------
        >>> X = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]] * 10)  # cot, crib, bib
        >>> estimator = DPPEstimator(shrinkage=0.1).fit(X)
        >>> [each.item for each in estimator.recommend([[1, 0, 0]])[0]]
        [2, 1]
        """
        baskets = self._known_baskets(X)
        return self.model_.recommend(baskets, k)

    def _known_baskets(self, X: Any, sample_weight: npt.ArrayLike | None = None) -> Baskets:
        check_is_fitted(self)
        return _baskets(self._validated(X, reset=False), self.model_.items, sample_weight)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """Return X as an array or CSR matrix of finite numbers, with the columns of the fit unless `reset`."""
        matrix = validate_data(self, X, accept_sparse="csr", reset=reset)
        if matrix.min() < 0:  # a check of scikit-learn expects the first words of the message
            raise InputError(f"Negative values in data passed to X ({matrix.min()}); expected 0 or 1, such as X > 0")
        return matrix


def _baskets(matrix: Any, items: Any, sample_weight: npt.ArrayLike | None) -> Baskets:
    baskets = Baskets.from_matrix(matrix, items, weights=sample_weight)
    if not baskets.weights.any():
        raise InputError(f"all {len(baskets)} values of sample_weight are zero; at least one must be positive")
    return baskets


def _generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator seeded from a random state of scikit-learn."""
    if isinstance(random_state, Integral | np.random.Generator):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**32, size=4, dtype=np.uint32))

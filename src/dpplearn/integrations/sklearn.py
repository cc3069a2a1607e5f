"""DPPEstimator: scikit-learn's conventions over `fit`; rows are baskets, columns are items."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse

from dpplearn.arrays import Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError, whole_number
from dpplearn.learners.loop import Stop
from dpplearn.learners.settings import settings_of
from dpplearn.learners.train import fit_with
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

REMEDIES = {
    Stop.MAX_ITER: "raise max_iter or tol",
    Stop.MAX_SECONDS: "raise max_seconds or tol",
    Stop.NO_ASCENT: "raise tol, or try another init or more restarts",
    Stop.NOT_BETTER: "try another init, or more restarts",
}


class DPPEstimator(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Learn a determinantal point process from a 0/1 matrix: one row per basket, one column per item.

    Lists of items become such a matrix by `MultiLabelBinarizer`, in a pipeline as
    `make_pipeline(FunctionTransformer(MultiLabelBinarizer().fit(lists).transform), DPPEstimator())`: scikit-learn
    does not take the binarizer itself as a step, for it transforms targets.

    Parameters
    ----------
    model, learner, init, segments, attraction, rank, restarts, tol, max_iter, max_seconds, shrinkage
        Options of `dpplearn.fit` and `dpplearn.fit_dpp`. A DPP is fitted if `model` is "dpp", or if `learner`, `init`
        or `shrinkage` is given; by default a mixture.
    validation, nonempty
        As `dpplearn.fit` takes them.
    threads : int or None
        How many threads `fit` and `sample` use; None for all cores.
    random_state : int, RandomState, Generator or None
        Of the random starts. An integer gives the model that `dpplearn.fit` gives with `rng` set to it; None draws
        from numpy's global state, as in scikit-learn.

    Attributes
    ----------
    model_ : Mixture or DPP
        The model. Column labels of a DataFrame (strings or integers) are its items; otherwise they are numbers.
    log_likelihood_ : float
        Of the training data under `model_`, the mean per basket.
    n_iter_ : int
        Iterations of the best run.
    converged_ : bool
        Whether the model is the optimum: the tolerance was met, or the shrinkage is 1.
    stop_ : Stop
        Why learning stopped.
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
    log_likelihood_: float
    n_iter_: int
    converged_: bool
    stop_: Stop

    def __init__(
        self,
        model: str | None = None,
        learner: str | None = None,
        init: str | None = None,
        segments: int | None = None,
        attraction: bool | int = True,
        rank: int | None = None,
        restarts: int = 1,
        tol: float | None = None,
        max_iter: int = 1000,
        max_seconds: float | None = None,
        shrinkage: float | str | None = None,
        validation: float | None = None,
        nonempty: bool | str = "auto",
        threads: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.model = model
        self.learner = learner
        self.init = init
        self.segments = segments
        self.attraction = attraction
        self.rank = rank
        self.restarts = restarts
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
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
        """Learn from the rows of X.

        Warns if learning stopped before it converged. Ctrl-C is raised again, so that it also ends a grid search;
        `model_` is then the best model so far.

        Parameters
        ----------
        X
            Dense or sparse, 0 and 1 or bool.
        y
            Not looked at.
        sample_weight
            One per row: 2 counts a row twice, and 0 leaves it out.

        Returns
        -------
        DPPEstimator
            Itself.

        Examples
        --------
        >>> X = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]] * 10)  # cot, crib, bib
        >>> DPPEstimator(shrinkage=0.1).fit(X).converged_
        True
        """
        matrix = self._validated(X, reset=True)
        baskets = _baskets(matrix, self._labels(X), sample_weight)
        options = {name: value for name, value in self.get_params().items() if name != "random_state"}
        settings = settings_of(**options)
        result = fit_with(settings, baskets, rng=_generator(self.random_state))
        self.model_ = result.model
        self.log_likelihood_ = result.log_likelihood
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.stop_ = result.stop
        self._tol = settings.task(baskets).limits.tol
        self._fitted_on_sparse = issparse(matrix)
        if self.stop_ in REMEDIES:
            warnings.warn(self._not_converged(), ConvergenceWarning, stacklevel=2)
        return self

    def score(self, X: Any, y: None = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """The weighted mean log-likelihood of the rows, given that they are not empty if it was learned so.

        Parameters
        ----------
        X
            As `fit` takes it, with the same columns.
        y
            Not looked at.
        sample_weight
            One per row.

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
        """log P of every row, given that it is not empty if learned so.

        Parameters
        ----------
        X
            As `fit` takes it, with the same columns.

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
        """Independent draws from the model.

        Parameters
        ----------
        n_samples
            How many.
        k
            How many items each has; by default as it comes.
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
        matrix = _indicator_matrix(sets, len(self.model_.items))
        return matrix if self._fitted_on_sparse else matrix.toarray()

    @property
    def dpp_(self) -> DPP:
        """The model, where it is a DPP."""
        check_is_fitted(self)
        if not isinstance(self.model_, DPP):
            raise AttributeError("the model learned is a Mixture: use model_, or learn a DPP with model='dpp'")
        return self.model_

    def recommend(self, X: Any, k: int = 10) -> list[list[Recommendation]]:
        """The best items to add to every row.

        Parameters
        ----------
        X
            Partial baskets, one per row.
        k
            How many items at most.

        Returns
        -------
        list of list of Recommendation
            One list per row, best first; items are the column names of the fit.

        Examples
        --------
        >>> X = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]] * 10)  # cot, crib, bib
        >>> estimator = DPPEstimator(shrinkage=0.1).fit(X)
        >>> [each.item for each in estimator.recommend([[1, 0, 0]])[0]]
        [2, 1]
        """
        return self.model_.recommend(self._known_baskets(X), k)

    def _known_baskets(self, X: Any, sample_weight: npt.ArrayLike | None = None) -> Baskets:
        check_is_fitted(self)
        return _baskets(self._validated(X, reset=False), self.model_.items, sample_weight)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """X as an array or CSR matrix of finite numbers, with the columns of the fit unless `reset`."""
        matrix = validate_data(self, X, accept_sparse="csr", reset=reset)
        if matrix.min() < 0:  # scikit-learn's words, and then what to do
            raise InputError(
                f"Negative values in data passed to X, the least of them {matrix.min()}; "
                "expected 0 or 1 (binarise first, for instance with X > 0)"
            )
        return matrix

    def _labels(self, X: Any) -> list[Any] | None:
        """The names that scikit-learn has found, else the integer column labels that it does not look at."""
        columns = getattr(self, "feature_names_in_", getattr(X, "columns", None))
        return None if columns is None else list(columns)

    def _not_converged(self) -> str:
        return (
            f"the fit did not converge in {self.n_iter_} iterations: {self.stop_.value}; "
            f"{REMEDIES[self.stop_]} (tol is {self._tol:g})"
        )


def _baskets(matrix: Any, items: Any, sample_weight: npt.ArrayLike | None) -> Baskets:
    baskets = Baskets.from_matrix(matrix, items, weights=sample_weight)
    if not baskets.weights.any():
        raise InputError(f"all {len(baskets)} values of sample_weight are zero; at least one row has to count")
    return baskets


def _generator(random_state: RandomState) -> np.random.Generator:
    """A generator seeded from what scikit-learn takes as a random state."""
    if isinstance(random_state, Integral | np.random.Generator):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**32, size=4, dtype=np.uint32))


def _indicator_matrix(sets: list[Ints], n_items: int) -> csr_array[np.int64]:
    indices = np.concatenate([np.zeros(0, dtype=np.int64), *sets])
    offsets = np.cumsum([0, *map(len, sets)])
    return csr_array((np.ones(len(indices), dtype=np.int64), indices, offsets), shape=(len(sets), n_items))

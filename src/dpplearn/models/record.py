"""The record of a fit that a model carries: History, Provenance, and Training, counts of the training baskets."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, Ints, Items, read_only
from dpplearn.data.baskets import Baskets
from dpplearn.data.pairs import MAX_PAIRS, pair_counts
from dpplearn.data.parts import AnyBaskets
from dpplearn.errors import InputError

MAX_FLOAT = sys.float_info.max
ROUNDING = 1e-9  # of sums of weights


@dataclass(frozen=True)
class History:
    """One entry per iteration; the first is the start.

    `log_likelihood` has one meaning for every learner: the mean over the training set, without penalties, under the
    model of that iteration. Learners of mixtures maximise a penalised likelihood, and may lower it in a step.

    Examples
    --------
    >>> import dpplearn as dl
    >>> baskets = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]]
    >>> history = dl.fit_dpp(baskets, "em", init="wishart", rng=0, max_iter=3).history
    >>> len(history), bool(history.log_likelihood[-1] > history.log_likelihood[0])
    (4, True)
    """

    log_likelihood: Floats
    seconds: Floats  # since the fit began
    step_size: Floats
    evaluations: Floats  # of the statistics, so far
    validation: Floats  # mean log-likelihood of the validation set; NaN without one

    def __len__(self) -> int:
        return len(self.log_likelihood)


@dataclass(frozen=True)
class Provenance:
    """Record of how a model was fitted. Unknown values are None; for a model that was not fitted, all are.

    Log-likelihoods are means per basket under the distribution that `nonempty` or `size` determines.

    Examples
    --------
    >>> import dpplearn as dl
    >>> learned = dl.fit_dpp([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]], "em", max_iter=3).model.learned
    >>> learned.learner, learned.n_baskets, learned.nonempty
    ('em', 4, False)
    """

    learner: str | None = None
    start: str | None = None  # of the best run
    restarts: int | None = None
    n_iter: int | None = None  # of the best run
    evaluations: float | None = None  # of the statistics
    stop: str | None = None  # the name of a `Stop`
    segments: int | None = None  # requested number of segments of a mixture
    rank: int | None = None  # of the repulsive part of the interaction of a mixture
    attraction: bool | None = None  # whether items of the mixture can attract each other
    shrinkage: float | None = None  # towards independent items, from 0 to 1
    shrinkage_chosen: bool | None = None  # by cross-validation
    nonempty: bool | None = None  # whether the likelihood was conditioned on nonempty sets
    size: int | None = None  # number of items that the likelihood was conditioned on
    to_gain: float | None = None  # upper bound in nats per basket on the gain by other weights of the same models
    log_likelihood: float | None = None
    independent_log_likelihood: float | None = None
    n_baskets: int | None = None
    n_distinct: int | None = None
    digest: str | None = None  # of the distinct training baskets
    weight: float | None = None  # effective number of baskets: the weight of the training statistics
    seconds: float | None = None
    validation: float | None = None  # fraction of the baskets that were held out
    validation_log_likelihood: float | None = None
    added: str | None = None  # describes items that were added later
    unseen_gain: float | None = None  # over independent items, on baskets that were used for nothing else
    unseen_error: float | None = None  # its standard error

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Provenance:
        """Return the record from the values that `to_dict` returned. Unknown names are ignored.

        Examples
        --------
        >>> Provenance.of({"learner": "em", "moon": "full"}) == Provenance(learner="em")
        True
        """
        if not isinstance(document, Mapping):
            raise InputError(f"learned must be a mapping, got {type(document).__name__}")
        for field in fields(cls):
            kind, value = str(field.type).split(" ")[0], document.get(field.name)
            if value is not None and not _has_type(value, kind):
                raise InputError(f"learned.{field.name} must be {kind}, got {value!r}")
        return cls(**{field.name: document.get(field.name) for field in fields(cls)})

    def to_dict(self) -> dict[str, Any]:
        """Return the values that are not None, by name.

        Examples
        --------
        >>> Provenance(learner="em", shrinkage=0.0).to_dict()
        {'learner': 'em', 'shrinkage': 0.0}
        """
        return {name: value for name, value in asdict(self).items() if value is not None}


def _has_type(value: Any, kind: str) -> bool:
    """Return whether a JSON value has a type; integers that a float can represent are floats, too."""
    if kind == "float" and type(value) is int:
        return abs(value) < MAX_FLOAT
    return type(value).__name__ == kind


@dataclass(frozen=True, eq=False, repr=False)
class Training:
    """Counts of the training baskets: in total, with each item, and with each pair of items; and the history.

    Weights that are not counts are scaled to the effective number of baskets. At most five million pairs are kept. If
    there are more, pairs of less weight than `least` are left out and treated as if they never co-occurred.

    `blend` is the weight of item-to-item in the ranking (`blend_weight`). `schedule` is the state of an unfinished fit
    of a low-rank mixture, in a checkpoint.

    Examples
    --------
    >>> training = Training.of(Baskets.from_lists([["bib", "crib"], ["crib"]]))
    >>> training.weight, training.item_weights.tolist(), training.pairs.tolist()
    (2.0, [1.0, 2.0], [[0, 1]])
    """

    weight: float
    item_weights: Floats  # (n_items,)
    pairs: Items  # (n_pairs, 2) pairs of items that co-occur, the first before the second
    pair_weights: Floats  # (n_pairs,)
    history: History | None = None
    blend: float | None = None  # from 0 to 1; None if it was not learned
    least: float = 0.0  # pairs of less weight are left out
    schedule: Mapping[str, npt.NDArray[Any]] | None = None

    def __post_init__(self) -> None:
        for array in (self.item_weights, self.pairs, self.pair_weights):
            read_only(array)

    @classmethod
    def of(cls, baskets: AnyBaskets, history: History | None = None, max_pairs: int = MAX_PAIRS) -> Training:
        """Return the counts of baskets. In parts, weights that are not counts must have been scaled before.

        Examples
        --------
        >>> Training.of(Baskets.from_lists([["bib", "crib"], ["crib"]])).frequencies.tolist()
        [0.5, 1.0]
        """
        if isinstance(baskets, Baskets):
            baskets = baskets.as_counts()
        total = baskets.total_weight
        pairs, weights, least = pair_counts(baskets, max_pairs)
        return cls(total, baskets.frequencies() * total, pairs, weights, history, least=least)

    @classmethod
    def sum(cls, parts: Sequence[tuple[Training, Ints, float]], n_items: int) -> Training:
        """Return the sum of counts over other items: each with the new positions of its items, and a factor.

        Examples
        --------
        >>> one = Training.of(Baskets.from_lists([["bib", "crib"], ["crib"]]))
        >>> Training.sum([(one, np.array([0, 1]), 1.0), (one, np.array([0, 2]), 0.5)], 3).item_weights.tolist()
        [1.5, 2.0, 1.0]
        """
        weight, least = (sum(share * getattr(each, name) for each, _, share in parts) for name in ("weight", "least"))
        items, pairs = np.zeros(n_items), np.concatenate([np.sort(there[each.pairs]) for each, there, _ in parts])
        for each, there, share in parts:
            items[there] += share * each.item_weights
        keys, which = np.unique(pairs @ [n_items, 1], return_inverse=True)
        pair_weights = np.bincount(which, np.concatenate([share * each.pair_weights for each, _, share in parts]))
        pairs = np.stack(np.divmod(keys, n_items), axis=1).astype(np.int32)
        return cls(weight, items, pairs, pair_weights.astype(float), least=least)

    def with_items(self, n: int) -> Training:
        """Return the counts with n further items that occur in no basket.

        Examples
        --------
        >>> Training.of(Baskets.from_lists([["bib", "crib"], ["crib"]])).with_items(1).item_weights.tolist()
        [1.0, 2.0, 0.0]
        """
        return replace(self, item_weights=np.append(self.item_weights, np.zeros(n)), schedule=None)

    @property
    def frequencies(self) -> Floats:
        """m_i, the fraction of baskets that contain item i."""
        return self.item_weights / self.weight

    @cached_property
    def _pair_matrix(self) -> Any:
        """Weights of all pairs as a symmetric sparse matrix, (n_items, n_items), with item weights on the diagonal."""
        from scipy.sparse import coo_array

        n, (first, second) = len(self.item_weights), self.pairs.T
        rows, columns = np.concatenate([first, second, np.arange(n)]), np.concatenate([second, first, np.arange(n)])
        weights = np.concatenate([self.pair_weights, self.pair_weights, self.item_weights])
        return coo_array((weights.astype(float), (rows, columns)), shape=(n, n)).tocsr()

    def pair_counts_among(self, rows: Ints, columns: Ints | None = None) -> Floats:
        """Return the weight of the baskets that contain both of two items, for items in rows with items in columns.

        Columns are by default those of the rows. For an item with itself, the weight of the baskets that contain it.
        """
        counts: Floats = self._pair_matrix[rows][:, rows if columns is None else columns].toarray()
        return counts

    def item_to_item(self, basket: Ints | Items) -> Floats:
        """Return the mean of m_ai/m_a over the items a of the basket, m_ai the frequency of baskets with a and i.

        The frequencies m_i replace the ratios of an item that never occurred; they are also the result for an empty
        basket.
        """
        known = basket[self.item_weights[basket] > 0]
        if not len(basket):
            return self.frequencies
        ratios = (1 / self.item_weights[known]) @ self._pair_matrix[known]
        return np.asarray((ratios + (len(basket) - len(known)) * self.frequencies) / len(basket))

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by name, as they are stored in a model file."""
        numbers = {"weight": self.weight, "blend": self.blend, "least": self.least or None}
        kept: dict[str, npt.NDArray[Any]]
        kept = {f"training.{name}": np.array([value]) for name, value in numbers.items() if value is not None}
        kept |= {f"training.{name}": getattr(self, name) for name in ("item_weights", "pairs", "pair_weights")}
        if self.history is not None:
            kept |= {f"history.{name}": column for name, column in vars(self.history).items()}
        if self.schedule is not None:
            kept |= {f"schedule.{name}": array for name, array in self.schedule.items()}
        return kept

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Training | None:
        """Return the record from the arrays of a model file, or None if it has none. Other arrays are ignored.

        Examples
        --------
        >>> training = Training.of(Baskets.from_lists([["bib", "crib"], ["crib"]]))
        >>> Training.from_arrays(training.arrays).weight
        2.0
        """
        if not any(name.startswith("training.") for name in arrays):
            return None
        read = partial(_checked, arrays)
        weight, n_pairs = read("training.weight", (1,), np.finfo(float).tiny).item(), arrays["training.pairs"].shape[0]
        most, n = weight * (1 + ROUNDING), arrays["training.item_weights"].size
        history = None
        if "history.log_likelihood" in arrays:
            n_steps = arrays["history.log_likelihood"].size
            history = History(*(read(f"history.{each.name}", (n_steps,)) for each in fields(History)))
        return cls(
            weight,
            read("training.item_weights", (n,), 0, most),
            read("training.pairs", (n_pairs, 2), 0, n - 1, kinds="iu"),
            read("training.pair_weights", (n_pairs,), 0, most),
            history,
            read("training.blend", (1,), 0, 1).item() if "training.blend" in arrays else None,
            read("training.least", (1,), 0).item() if "training.least" in arrays else 0.0,
            _checked_schedule(arrays, n) if "schedule.counts" in arrays else None,
        )


def _checked_schedule(arrays: Mapping[str, npt.NDArray[Any]], n_items: int) -> Mapping[str, npt.NDArray[Any]]:
    """Return the state of a schedule in a file, as `LowRankState` and the fit have written it."""
    m, of_Z = arrays["schedule.weights"].size, arrays["schedule.Z"].shape
    integers, floats = {"counts": 3, "columns": 2, "split_seed": 1}, {"weights": (m,), "log_odds": (m, n_items)}
    floats |= dict.fromkeys(("Z", "mean", "square"), of_Z)
    found = {name: _checked(arrays, f"schedule.{name}", (size,), 0, kinds="iu") for name, size in integers.items()}
    return found | {name: _checked(arrays, f"schedule.{name}", shape) for name, shape in floats.items()}


def _checked(
    arrays: Mapping[str, npt.NDArray[Any]],
    name: str,
    shape: tuple[int, ...],
    low: float | None = None,
    high: float = MAX_FLOAT,
    kinds: str = "f",
) -> npt.NDArray[Any]:
    """Return an array of a file that has the type and shape, and with `low` all of its values in the range."""
    array = arrays[name]
    if array.shape != shape or array.dtype.kind not in kinds:
        kind = "floats" if kinds == "f" else "integers"
        raise InputError(f"{name} must be {kind} of shape {shape}, got {array.dtype} of shape {array.shape}")
    if low is not None and not np.all((array >= low) & (array <= high)):
        raise InputError(f"{name} must be from {low:g} to {high:g}, got {array.min():g} to {array.max():g}")
    return array

"""What a model keeps of its training data and of how learning went, for baselines and learning curves later on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, Ints, Items, read_only
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.data.pair_counts import pair_counts
from dpplearn.data.parts import AnyBaskets
from dpplearn.errors import InputError
from dpplearn.models.history import History
from dpplearn.utils.memory import NUMBER, check_memory

ROUNDING = 1e-9  # of sums of weights
FEW_PAIRS = 100_000  # of which the file keeps weights in double precision, whatever they are
MOST_PAIRS = 5_000_000  # that are kept, in 12 bytes each


@dataclass(frozen=True, eq=False, repr=False)
class Training:
    """The weight of the baskets, of those that hold each item, and of those that hold each pair; and the history.

    Weights that are no counts are scaled to the number of baskets that they are worth. Of pairs, at most five million
    are kept: where there are more, those of less weight than `least` are left out, and count as never together.

    `blend` is how much of item-to-item is best mixed into the ranking of the model (`blend_weight`). `schedule` is the
    state of an unfinished fit of a low-rank mixture, in a checkpoint.

    Examples
    --------
    >>> training = Training.of(Baskets.from_lists([["bib", "crib"], ["crib"]]))
    >>> training.weight, training.item_weights.tolist(), training.pairs.tolist()
    (2.0, [1.0, 2.0], [[0, 1]])
    """

    weight: float
    item_weights: Floats  # (n_items,)
    pairs: Items  # (n_pairs, 2) the pairs of items that occur together, the first before the second
    pair_weights: Floats  # (n_pairs,)
    history: History | None = None
    blend: float | None = None  # from 0 to 1; None where it was not learned
    least: float = 0.0  # pairs of less weight are left out
    schedule: Mapping[str, npt.NDArray[Any]] | None = None

    def __post_init__(self) -> None:
        if not 0 < self.weight < np.inf:
            raise InputError(f"training.weight must be positive, got {self.weight:g}")
        for name in ("item_weights", "pair_weights"):
            weights = getattr(self, name)
            if weights.ndim != 1 or weights.dtype.kind != "f":
                raise InputError(
                    f"training.{name} must be one float each, got {weights.dtype} of shape {weights.shape}"
                )
            if not np.all((weights >= 0) & (weights <= self.weight * (1 + ROUNDING))):
                raise InputError(
                    f"training.{name} must be between 0 and {self.weight:g}, the weight of all baskets, got "
                    f"{weights.min():g} to {weights.max():g}"
                )
        self._check_pairs()
        if not (self.blend is None or 0 <= self.blend <= 1):
            raise InputError(f"training.blend must be between 0 and 1, got {self.blend}")
        if not 0 <= self.least < np.inf:
            raise InputError(f"training.least must be 0 or more, got {self.least}")
        for array in (self.item_weights, self.pairs, self.pair_weights):
            read_only(array)

    def _check_pairs(self) -> None:
        n_items, pairs = len(self.item_weights), self.pairs
        if pairs.shape != (len(self.pair_weights), 2) or pairs.dtype.kind not in "iu":
            raise InputError(
                f"training.pairs must be two integers for each of the {len(self.pair_weights)} training.pair_weights, "
                f"got {pairs.dtype} of shape {pairs.shape}"
            )
        if pairs.size and not (pairs.min() >= 0 and pairs.max() < n_items):
            raise InputError(
                f"training.pairs must be between 0 and {n_items - 1}, the positions of training.item_weights, got "
                f"{pairs.min()} to {pairs.max()}"
            )

    @classmethod
    def of(cls, baskets: AnyBaskets, history: History | None = None) -> Training:
        """What is kept of these baskets.

        Parameters
        ----------
        baskets
            The training data; of parts, weights that are no counts have been scaled before.
        history
            How learning from them went.

        Returns
        -------
        Training

        Examples
        --------
        >>> Training.of(Baskets.from_lists([["bib", "crib"], ["crib"]])).frequencies.tolist()
        [0.5, 1.0]
        """
        if isinstance(baskets, Baskets):
            baskets = baskets.as_counts()
        total = baskets.total_weight
        pairs, weights, least = pair_counts(baskets, MOST_PAIRS)
        return cls(total, baskets.frequencies() * total, pairs, weights, history, least=least)

    def over(self, catalogue: Catalogue, own: Catalogue, share: float = 1.0) -> Training:
        """The same with positions in a catalogue that has all items of its own, and with a share of the weights."""
        there = catalogue.translation(own)
        item_weights = np.zeros(len(catalogue))
        item_weights[there] = share * self.item_weights
        pairs = np.sort(there[self.pairs], axis=1).astype(np.int32)
        kept = share * self.weight, item_weights, pairs, share * self.pair_weights
        return Training(*kept, self.history, self.blend, share * self.least)

    def __add__(self, other: Training) -> Training:
        """What is kept of both, over one catalogue."""
        n = len(self.item_weights)
        pairs = np.concatenate([self.pairs, other.pairs]).astype(np.int64)
        keys, which = np.unique(pairs[:, 0] * n + pairs[:, 1], return_inverse=True)
        weights = np.bincount(which, np.concatenate([self.pair_weights, other.pair_weights]), len(keys)).astype(float)
        items = self.item_weights + other.item_weights
        both = np.stack(np.divmod(keys, n), axis=1).astype(np.int32)
        return Training(self.weight + other.weight, items, both, weights, least=self.least + other.least)

    def with_items(self, n: int) -> Training:
        """With n items more, which no basket held.

        Parameters
        ----------
        n
            How many.

        Returns
        -------
        Training

        Examples
        --------
        >>> Training.of(Baskets.from_lists([["bib", "crib"], ["crib"]])).with_items(1).item_weights.tolist()
        [1.0, 2.0, 0.0]
        """
        return replace(self, item_weights=np.append(self.item_weights, np.zeros(n)), schedule=None)

    @property
    def frequencies(self) -> Floats:
        """m_i, the share of baskets that hold item i."""
        return self.item_weights / self.weight

    @cached_property
    def _both_ways(self) -> tuple[Ints, Items, Floats]:
        """Where the pairs of each item begin, the other item of each, and its weight: every pair stands there twice."""
        first, second = self.pairs.T
        item, other = np.concatenate([first, second]), np.concatenate([second, first])
        order = np.argsort(item, kind="stable")
        starts = np.append(0, np.cumsum(np.bincount(item, minlength=len(self.item_weights))))
        return starts, other[order], np.tile(self.pair_weights, 2)[order]

    def met(self, item: int) -> tuple[Items, Floats]:
        """The other items that met this one, and the weight of the baskets that hold both."""
        starts, others, weights = self._both_ways
        rows = slice(starts[item], starts[item + 1])
        return others[rows], weights[rows]

    def pair_counts_of(self, item: int) -> Floats:
        """The weight of the baskets that hold both this item and each other one; its own on its own place."""
        counts = np.zeros(len(self.item_weights))
        others, weights = self.met(item)
        counts[others] = weights
        counts[item] = self.item_weights[item]
        return counts

    def pair_counts_among(self, items: Ints) -> Floats:
        """The same of every two of some items, (len(items), len(items))."""
        place = np.full(len(self.item_weights), -1)
        place[items] = np.arange(len(items))
        counts = np.diag(self.item_weights[items])
        first, second = place[self.pairs.T]
        inside = (first >= 0) & (second >= 0)
        first, second, weights = first[inside], second[inside], self.pair_weights[inside]
        counts[first, second] = counts[second, first] = weights
        return counts

    def item_to_item(self, basket: Ints) -> Floats:
        """The mean over the items a of the basket of m_ai/m_a: how often those who had one of them had i as well.

        An item that never occurred says nothing, and m_i stands in for its share, as it does beside an empty basket.
        """
        m = self.frequencies
        found, unknown = np.zeros(len(m)), 0
        for item in basket.tolist():
            if self.item_weights[item] > 0:
                others, weights = self.met(item)
                found[others] += weights / self.item_weights[item]
                found[item] += 1
            else:
                unknown += 1
        return m if not len(basket) else (found + unknown * m) / len(basket)

    def pair_frequencies(self) -> Floats:
        """m_ij, the share of baskets that hold both i and j.

        Returns
        -------
        array of float
            Square, with m_i on the diagonal.

        Examples
        --------
        >>> Training.of(Baskets.from_lists([["bib", "crib"], ["crib"]])).pair_frequencies().tolist()
        [[0.5, 0.5], [0.5, 1.0]]
        """
        n = len(self.item_weights)
        check_memory(NUMBER * n**2, f"a table of every two of {n:,} items", "ask for some of them (pair_counts_among)")
        return self.pair_counts_among(np.arange(n)) / self.weight

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of it by name, as a model file keeps it."""
        kept: dict[str, npt.NDArray[Any]] = {
            "training.weight": np.array([self.weight]),
            "training.item_weights": self.item_weights,
            "training.pairs": self.pairs,
            "training.pair_weights": _small(self.pair_weights),
        }
        if self.blend is not None:
            kept["training.blend"] = np.array([self.blend])
        if self.least:
            kept["training.least"] = np.array([self.least])
        if self.history is not None:
            kept |= {f"history.{name}": column for name, column in self.history.columns.items()}
        if self.schedule is not None:
            kept |= {f"schedule.{name}": array for name, array in self.schedule.items()}
        return kept

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]]) -> Training | None:
        """From what `arrays` gave.

        Parameters
        ----------
        arrays
            Arrays by name; those of other names are not looked at.

        Returns
        -------
        Training or None
            None where there is nothing of the sort.

        Examples
        --------
        >>> training = Training.of(Baskets.from_lists([["bib", "crib"], ["crib"]]))
        >>> Training.from_arrays(training.arrays).weight
        2.0
        """
        if not any(name.startswith(("training.", "history.", "schedule.")) for name in arrays):
            return None
        columns, schedule = (
            {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            for prefix in ("history.", "schedule.")
        )
        single = {
            name: arrays[f"training.{name}"] for name in ("weight", "blend", "least") if f"training.{name}" in arrays
        }
        for name, array in single.items():
            if array.shape != (1,) or array.dtype.kind != "f":
                raise InputError(f"training.{name} must be one float, got {array.dtype} of shape {array.shape}")
        _check_history(columns)
        return cls(
            float(arrays["training.weight"][0]),
            arrays["training.item_weights"],
            arrays["training.pairs"],
            arrays["training.pair_weights"],
            History(**columns) if columns else None,
            float(single["blend"][0]) if "blend" in single else None,
            float(single["least"][0]) if "least" in single else 0.0,
            schedule or None,
        )


def _check_history(columns: Mapping[str, npt.NDArray[Any]]) -> None:
    names = [field.name for field in fields(History)]
    odd = set(columns).symmetric_difference(names)
    if columns and odd:
        raise InputError(f"history must have the columns {', '.join(names)}; history.{min(odd)} is missing or unknown")
    for name, column in columns.items():
        if column.shape != (columns["log_likelihood"].size,) or column.dtype.kind != "f":
            raise InputError(
                f"history.{name} must be one float per iteration, as many as history.log_likelihood, got "
                f"{column.dtype} of shape {column.shape}"
            )


def _small(weights: Floats) -> npt.NDArray[Any]:
    """Counts of many pairs in half the space, where that keeps them as they are."""
    if len(weights) > FEW_PAIRS and np.all(weights == weights.astype(np.float32)):
        return weights.astype(np.float32)
    return weights

"""What a model keeps of its training data and of how learning went, for baselines and learning curves later on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, Items, read_only
from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError
from dpplearn.models.history import History

ROUNDING = 1e-9  # of sums of weights


@dataclass(frozen=True, eq=False, repr=False)
class Training:
    """The weight of the baskets, of those that hold each item, and of those that hold each pair; and the history.

    Weights that are no counts are scaled to the number of baskets that they are worth.

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

    def __post_init__(self) -> None:
        for what, weights in (("items", self.item_weights), ("pairs", self.pair_weights)):
            within = weights.ndim == 1 and weights.dtype.kind == "f" and np.all((weights >= 0) & (weights < np.inf))
            if not (within and 0 < self.weight < np.inf and np.all(weights <= self.weight * (1 + ROUNDING))):
                raise InputError(
                    f"training data of weight {self.weight:g} with {what} of weights {weights.dtype} of shape "
                    f"{weights.shape}; expected one number each, from 0 to that weight"
                )
        self._check_pairs()
        for array in (self.item_weights, self.pairs, self.pair_weights):
            read_only(array)

    def _check_pairs(self) -> None:
        n_items, pairs = len(self.item_weights), self.pairs
        if pairs.shape != (len(self.pair_weights), 2) or pairs.dtype.kind not in "iu":
            raise InputError(
                f"pairs are {pairs.dtype} of shape {pairs.shape}, of {len(self.pair_weights)} weights; "
                "expected two positions each"
            )
        if pairs.size and not (pairs.min() >= 0 and pairs.max() < n_items):
            raise InputError(f"pairs name items {pairs.min()} to {pairs.max()}, but there are {n_items}")

    @classmethod
    def of(cls, baskets: Baskets, history: History | None = None) -> Training:
        """What is kept of these baskets.

        Parameters
        ----------
        baskets
            The training data.
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
        baskets = baskets.as_counts()
        together = np.triu(baskets.pair_frequencies(), 1)
        first, second = np.nonzero(together)
        total = baskets.total_weight
        pairs = np.column_stack([first, second]).astype(np.int32)
        return cls(total, baskets.frequencies() * total, pairs, together[first, second] * total, history)

    @property
    def frequencies(self) -> Floats:
        """m_i, the share of baskets that hold item i."""
        return self.item_weights / self.weight

    def pair_counts_of(self, item: int) -> Floats:
        """The weight of the baskets that hold both this item and each other one; its own on its own place."""
        first, second = self.pairs.T
        counts = np.zeros(len(self.item_weights))
        counts[second[first == item]] = self.pair_weights[first == item]
        counts[first[second == item]] = self.pair_weights[second == item]
        counts[item] = self.item_weights[item]
        return counts

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
        m = np.diag(self.frequencies)
        first, second = self.pairs.T
        m[first, second] = m[second, first] = self.pair_weights / self.weight
        return m

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of it by name, as a model file keeps it."""
        kept: dict[str, npt.NDArray[Any]] = {
            "training.weight": np.array([self.weight]),
            "training.item_weights": self.item_weights,
            "training.pairs": self.pairs,
            "training.pair_weights": self.pair_weights,
        }
        if self.history is not None:
            kept |= {f"history.{name}": column for name, column in self.history.columns.items()}
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
        if "training.weight" not in arrays:
            return None
        columns = {
            name.removeprefix("history."): array for name, array in arrays.items() if name.startswith("history.")
        }
        if arrays["training.weight"].shape != (1,):
            raise InputError(f"the weight of the training data has shape {arrays['training.weight'].shape}")
        shapes = {column.shape for column in columns.values()}
        if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
            raise InputError(f"the columns of the history have shapes {sorted(shapes)}; expected one length")
        return cls(
            float(arrays["training.weight"][0]),
            arrays["training.item_weights"],
            arrays["training.pairs"],
            arrays["training.pair_weights"],
            History(**columns) if columns else None,
        )

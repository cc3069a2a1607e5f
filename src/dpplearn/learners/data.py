"""TrainingData: the baskets of a fit, deduplicated once, and the parts of them that are held out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.parts import AnyBaskets, Parts
from dpplearn.data.weights import are_counts
from dpplearn.errors import InputError


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The baskets of a fit.

    With weights that are not counts, weights are scaled to the effective number of baskets.
    """

    units: AnyBaskets  # of positive weight, not merged unless weights are counts: what splits and folds divide
    distinct: AnyBaskets  # equal baskets merged; with baskets in parts, those of one part
    validation: AnyBaskets | None = None  # held out, to choose the step and the blend weight
    test: AnyBaskets | None = None  # held out, to measure the model: chose nothing

    @classmethod
    def of(cls, baskets: AnyBaskets, *, as_weighed: bool = False) -> TrainingData:
        """Return the data of baskets. With `as_weighed`, weights that are not counts are used as they are."""
        if isinstance(baskets, Parts):
            whole = baskets.totals
            scale = 1.0 if whole.are_counts else whole.effective_number / whole.weight
            positive = baskets.changed(_positive, scale)
            distinct = positive.deduplicated()
            return cls(distinct if whole.are_counts else positive, distinct)
        units = baskets.subset(baskets.weights > 0) if as_weighed else units_of(baskets)
        return cls(units, units.deduplicated())

    def hold_out(self, fraction: float, seed: int) -> TrainingData:
        """Hold out a fraction of the baskets: half of it for validation, the other half for testing."""
        if not fraction:
            return self
        kept, held_out = self.units.split(1 - fraction, rng=seed)
        if not len(kept) or not len(held_out):
            left, validated = (round(each.totals.effective_number) if len(each) else 0 for each in (kept, held_out))
            raise InputError(
                f"validation={fraction:g} (--validation) leaves {left} baskets to learn from and {validated} to "
                "validate on; expected a fraction that leaves some of both"
            )
        validation, test = held_out.split(0.5, rng=seed)
        if not len(validation) or not len(test):
            return TrainingData(kept, kept.deduplicated(), held_out.deduplicated())
        return TrainingData(kept, kept.deduplicated(), validation.deduplicated(), test.deduplicated())


def checked_baskets(baskets: AnyBaskets | Iterable[Iterable[Any]]) -> AnyBaskets:
    """Return baskets with a positive total weight."""
    found = baskets if isinstance(baskets, Parts) else as_baskets(baskets)
    if not found.total_weight > 0:
        raise InputError(f"there is nothing to learn from: {len(found)} baskets of total weight {found.total_weight:g}")
    return found


def units_of(baskets: Baskets) -> Baskets:
    """Return the baskets of positive weight, equal ones merged where weights are counts."""
    positive = baskets.subset(baskets.weights > 0).as_counts()
    return positive.deduplicated() if are_counts(positive.weights) else positive


def _positive(scale: float, baskets: Baskets) -> Baskets:
    return baskets.weighted(baskets.weights if scale == 1 else scale * baskets.weights)


def resolve_nonempty(nonempty: bool | str, baskets: AnyBaskets, default: bool = True) -> bool:
    """Return whether the distribution is P(Y given Y ≠ ∅); "auto" means `default` if no basket is empty."""
    if not isinstance(nonempty, bool | np.bool_) and nonempty != "auto":
        raise InputError(f"nonempty must be True, False or 'auto', got {nonempty!r}")
    empty = baskets.totals.n_empty
    if nonempty == "auto":
        return default and not empty
    if nonempty and empty:
        raise InputError(
            f"nonempty=True (--nonempty), but {empty} of {len(baskets)} baskets are empty; leave them out "
            "(baskets.subset(baskets.sizes > 0))"
        )
    return bool(nonempty)

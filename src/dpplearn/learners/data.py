"""The baskets of a fit: checked, with weights that count baskets, and divided into those learned from and held out."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.parts import AnyBaskets, Parts
from dpplearn.errors import InputError
from dpplearn.learners.problem import Learner

B = TypeVar("B", Baskets, Parts, AnyBaskets)


def checked_baskets(baskets: AnyBaskets | Iterable[Iterable[Any]]) -> AnyBaskets:
    """Return baskets with a positive total weight."""
    found = baskets if isinstance(baskets, Parts) else as_baskets(baskets)
    if not found.total_weight > 0:
        raise InputError(f"there is nothing to learn from: {len(found)} baskets of total weight {found.total_weight:g}")
    return found


def units_of(baskets: B) -> B:
    """Return the baskets of positive weight, which splits and folds divide; equal ones merged where weights are counts.

    Weights that are not counts are scaled to the effective number of baskets.
    """
    scale = baskets.totals.count_scale
    found = baskets.changed(partial(_scaled, scale)) if isinstance(baskets, Parts) else _scaled(scale, baskets)
    return found.deduplicated() if found.totals.are_counts else found


def _scaled(scale: float, baskets: Baskets) -> Baskets:
    return baskets.weighted(scale * baskets.weights)


def hold_out(units: AnyBaskets, fraction: float, seed: int) -> tuple[AnyBaskets, AnyBaskets | None, AnyBaskets | None]:
    """Return the baskets to learn from, and half of the others for validation and half for testing.

    If there are too few for two halves, all of the others are for validation.
    """
    if not fraction:
        return units, None, None
    kept, held_out = units.split(1 - fraction, rng=seed)
    if not len(kept) or not len(held_out):
        raise InputError(
            f"validation={fraction:g} (--validation) leaves {len(kept)} of {len(units)} baskets to learn from; "
            "expected a fraction that leaves some for learning and some for validation"
        )
    validation, test = held_out.split(0.5, rng=seed)
    if not len(validation) or not len(test):
        return kept, held_out.deduplicated(), None
    return kept, validation.deduplicated(), test.deduplicated()


def resolve_nonempty(nonempty: bool | str, baskets: AnyBaskets, learner: Learner | None = None) -> bool:
    """Return whether the distribution is P(Y given Y ≠ ∅); with "auto" it is if no basket is empty.

    Not all learners can maximise it, and some do so only on request.
    """
    empty = baskets.totals.n_empty
    if isinstance(nonempty, str) and nonempty == "auto":
        return not empty and (learner is None or learner.nonempty_by_default)
    if not isinstance(nonempty, bool | np.bool_):
        raise InputError(f"nonempty must be True, False or 'auto', got {nonempty!r}")
    if nonempty and learner is not None and not learner.can_be_nonempty:
        raise InputError(f"nonempty=True (--nonempty) is not possible with learner {learner.name!r}; use lbfgs or adam")
    if nonempty and empty:
        raise InputError(
            f"{empty} of {len(baskets)} baskets are empty, which a distribution of nonempty sets (nonempty=True, "
            "--nonempty) makes impossible; leave them out (baskets.subset(baskets.sizes > 0))"
        )
    return bool(nonempty)

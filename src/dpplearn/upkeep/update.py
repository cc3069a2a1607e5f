"""update: a model learned on with new baskets, beside what it knows or the baskets that it knows it from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dpplearn.arrays import Seed
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.data.times import decay, known_times
from dpplearn.distributions.components import Stack
from dpplearn.distributions.interaction import Dense
from dpplearn.errors import InputError
from dpplearn.learners.checkpoint import ProgressBar
from dpplearn.learners.quality.fit_quality import LEARNER as QUALITY
from dpplearn.learners.result import FitResult
from dpplearn.learners.settings import settings_of
from dpplearn.learners.symmetric.table import LEARNERS
from dpplearn.learners.train import fit_with
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.training import Training
from dpplearn.tools.progress import shown_progress
from dpplearn.tools.words import contents, count
from dpplearn.upkeep.changes import (
    Changes,
    Likelihood,
    changed_items,
    check_comparable,
    likelihoods,
    moved_recommendations,
)
from dpplearn.upkeep.drawn_sets import draw_training_sets, training_weight

Model = DPP | Mixture


@dataclass(frozen=True, eq=False, repr=False)
class Update:
    """A model that was learned on, the one before it, and what changed. Printed, it is a summary.

    Examples
    --------
    >>> import dpplearn as dl
    >>> old = dl.fit_dpp([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10, shrinkage=0.1).model
    >>> dl.update(old, [["cot", "mobile"], ["crib"]] * 5, rng=0).model.items
    ('bib', 'cot', 'crib', 'mobile')
    """

    model: Model
    before: Model
    fit: FitResult[Any]
    changes: Changes

    def __repr__(self) -> str:
        return str(self.changes)


class Past(NamedTuple):
    """The old training baskets, or sets drawn from the model in place of them, and their stored counts."""

    baskets: Baskets
    training: Training | None  # None where it is that of the baskets
    drawn: bool


def update(
    model: Model | FitResult[Any],
    baskets: Baskets | Iterable[Iterable[Any]],
    *,
    old: Baskets | Iterable[Iterable[Any]] | None = None,
    forget: float = 0.0,
    half_life: Any = None,
    test: Baskets | Iterable[Iterable[Any]] | None = None,
    rng: Seed = None,
    threads: int | None = None,
    max_seconds: float | None = None,
    progress: bool = False,
) -> Update:
    """Learn on from a model with new baskets, and say what changed.

    A model does not store its training baskets. If you have them, pass them as `old`, which gives the best result.
    Otherwise sets drawn from the model replace them, with the same total weight and item frequencies, and the same pair
    frequencies if there are enough sets. New items start at their frequency, without interactions. See
    docs/guide/updating.md for a comparison with a new fit.

    Parameters
    ----------
    model
        A DPP, a Mixture or the result of a fit.
    baskets
        The new ones: `Baskets`, or a list of lists.
    old
        Those that the model was learned from.
    forget
        How much of the past no longer counts: 0 nothing, 0.5 half of it, 1 all.
    half_life
        After which time a basket counts half: "90d", "12w", "36h" or a number of days, or a number where times are
        numbers. New baskets, and `old` ones, then need times; sets that stand in for those are as old as the oldest new
        basket.
    test
        Baskets to compare both models on. By default they are compared on the new ones, from which one has learned.
    rng
        Seed or generator of the draws and of learning.
    threads, max_seconds, progress
        As in `fit`.

    Returns
    -------
    Update
        The model as `model`, over the items of both, and the `changes`.

    Examples
    --------
    >>> import dpplearn as dl
    >>> old = dl.fit_dpp([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10, shrinkage=0.1).model
    >>> found = update(old, [["cot", "mobile"], ["crib"]] * 5, rng=0)
    >>> [(each.item, each.n_baskets) for each in found.changes.new_items]
    [('mobile', 5.0)]
    """
    model = model.model if isinstance(model, FitResult) else model
    new = as_baskets(baskets)
    judged = new if test is None else as_baskets(test)
    _check(model, new, forget)
    check_comparable(model, judged)
    rng = np.random.default_rng(rng)
    catalogue = Catalogue.union([model.catalogue, new.catalogue])
    with shown_progress(progress and old is None, transient=True) as shown:
        shown.bar("drawing sets from the model")
        past = _past(model, old, catalogue, rng, threads)
    kept, fresh = _aged(past, new, 1 - forget, half_life)
    both = _joined([kept, fresh], catalogue)
    options: dict[str, Any] = {"threads": threads, "max_seconds": max_seconds, "nonempty": model.nonempty}
    share_not_shrunk = fresh.total_weight / both.total_weight if past.drawn else 1.0
    settings, seed = settings_of(**options, **_as_learned(model, share_not_shrunk)), int(rng.integers(2**63))
    with shown_progress(progress) as shown:
        found = fit_with(settings, both, start=model, rng=seed, callback=ProgressBar(shown), as_weighed=True)
    updated = _with_truth(found.model, model, past, kept, fresh)
    likelihood = likelihoods(model, updated, judged, in_sample=test is None)
    return Update(updated, model, found, _changes(model, updated, new, likelihood, past, kept, fresh))


def _check(model: Any, new: Baskets, forget: Any) -> None:
    """Before anything is learned."""
    if not isinstance(model, Model):
        raise InputError(f"got a {type(model).__name__} as the model; expected a DPP, a Mixture or the result of a fit")
    if model.learned.learner == QUALITY or isinstance(model.distribution.components, Stack):
        raise InputError(
            "models of `fit_weights` and `fit_quality` cannot be updated: refit them to old and new baskets"
        )
    if not new.total_weight > 0:
        raise InputError(f"{len(new)} new baskets of total weight {new.total_weight:g}: nothing to learn from")
    empty = int((new.sizes[new.weights > 0] == 0).sum())
    if empty and model.nonempty:
        raise InputError(
            f"{empty} of {len(new)} new baskets are empty, which under this model is impossible; leave them out "
            "(baskets.subset(baskets.sizes > 0)), or learn a model anew from all baskets"
        )
    if isinstance(forget, bool | str) or not 0 <= forget <= 1:
        raise InputError(f"forget is {forget!r}; expected a share from 0 (nothing) to 1 (all of the past)")


def _past(model: Model, old: Any, catalogue: Catalogue, rng: np.random.Generator, threads: int | None) -> Past:
    if old is None:
        return Past(draw_training_sets(model, rng, threads), model.training, drawn=True)
    known = as_baskets(old)
    _, left_out = known.known_to(catalogue)
    if left_out:
        raise InputError(
            f"{count(left_out.n_baskets, 'old basket')} of {count(len(known))} hold items that neither the model nor "
            f"the new baskets have (for instance {contents(left_out.examples)}); expected those that the model was "
            "learned from: leave such items out (old.of_items(model.items))"
        )
    return Past(known, None, drawn=False)


def _aged(past: Past, new: Baskets, share: float, half_life: Any) -> tuple[Baskets, Baskets]:
    """Both with what they still count."""
    if half_life is None:
        return past.baskets.reweighted(share), new
    times = known_times(new.times)
    of_past = times.min(keepdims=True) if past.drawn else known_times(past.baskets.times)
    now = max(times.max(), of_past.max())
    return (
        replace(past.baskets, weights=share * past.baskets.weights * decay(of_past, half_life, now)),
        replace(new, weights=new.weights * decay(times, half_life, now)),
    )


def _joined(parts: list[Baskets], catalogue: Catalogue) -> Baskets:
    """Those of some weight, over all items."""
    there = [replace(part, ids=None, times=None).subset(part.weights > 0).over(catalogue) for part in parts]
    return Baskets.together(there)


def _as_learned(model: Model, share: float) -> dict[str, Any]:
    """Return the options of `fit` with which the model was learned.

    Sets drawn from a shrunk DPP are already shrunk, so that only the share of the new baskets needs shrinkage. No
    baskets are held out from a low-rank mixture: drawn sets would always favour the model that they were drawn from.
    """
    if isinstance(model, DPP):
        known = model.learned.shrinkage
        learner = model.learned.learner if model.learned.learner in LEARNERS else "lbfgs"
        return {"learner": learner, "shrinkage": None if known is None else known * share}
    interaction = getattr(model.distribution.components, "interaction", None)
    if not isinstance(interaction, Dense):
        return {"validation": 0.0}
    return {"attraction": not np.allclose(interaction.X, interaction.X.swapaxes(1, 2))}


def _with_truth(updated: Model, before: Model, past: Past, kept: Baskets, fresh: Baskets) -> Model:
    """The model with what is known of the baskets themselves in place of the sets that stood in for them."""
    weight = kept.total_weight + fresh.total_weight
    n_past = training_weight(before) if past.drawn else len(past.baskets)
    learned = replace(updated.learned, start="update", n_baskets=round(n_past) + len(fresh), weight=weight)
    learned = replace(learned, n_distinct=None) if past.drawn else learned
    training = updated.training
    if past.drawn and past.training is not None and kept.total_weight > 0:
        share = kept.total_weight / past.training.weight
        of_new = Training.of(fresh.over(updated.catalogue))
        of_new = of_new.over(updated.catalogue, updated.catalogue, fresh.total_weight / of_new.weight)
        known = past.training.over(updated.catalogue, before.catalogue, share) + of_new
        training = replace(known, history=None if training is None else training.history)
    if training is not None and before.training is not None:
        training = replace(training, blend=before.training.blend)
    found: Model = updated.with_record(learned, training)
    return found


def _changes(
    before: Model, after: Model, new: Baskets, likelihood: Likelihood, past: Past, kept: Baskets, fresh: Baskets
) -> Changes:
    return Changes(
        n_new=len(new),
        past_weight=kept.total_weight,
        new_weight=fresh.total_weight,
        drawn=len(past.baskets) if past.drawn else None,
        likelihood=likelihood,
        **changed_items(before, new),
        moved=moved_recommendations(before, after, new),
    )

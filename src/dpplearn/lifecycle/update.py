"""update: fit a model again with new baskets, and report what changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from dpplearn.arrays import Floats, Seed
from dpplearn.data.baskets import Baskets, as_baskets, known_baskets
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.times import decay, known_times
from dpplearn.distributions.components import Stack
from dpplearn.distributions.interaction import Dense
from dpplearn.errors import InputError
from dpplearn.learners.checkpoint import ProgressBar
from dpplearn.learners.data import checked_baskets, resolve_nonempty
from dpplearn.learners.fit import Model, fit_task
from dpplearn.learners.mixture import MixtureProblem
from dpplearn.learners.problem import Task
from dpplearn.learners.quality.fit_quality import LEARNER as QUALITY
from dpplearn.learners.result import FitResult
from dpplearn.learners.settings import settings_of
from dpplearn.learners.symmetric.table import LEARNERS
from dpplearn.models.dpp import DPP
from dpplearn.models.record import Training
from dpplearn.utils.progress import shown_progress
from dpplearn.utils.text import Facts, Part, Result, TextTable, contents, count, number

SETS_PER_BASKET, MIN_SETS, MAX_SETS = 5, 40_000, 100_000  # with fewer sets an update would fit their sampling noise
MIN_HOLDERS = 20  # items in fewer drawn sets are left as they are: few sets would get very large weights
MIN_PENALTY = 0.1  # of the usual penalty of a mixture; with less, an update would fit the sampling noise of drawn sets
MAX_ROUNDS = 20  # over all items
FACTOR_TOL = 1e-6  # stop once no factor differs from 1 by more than this
MIN_EXPECTED = 5  # expected new baskets with an item that has vanished if there is none
N_COMPARED, K = 10, 5  # items whose recommendations are compared, and how many of each
MAX_NAMED = 5  # items in a sentence


def fitted_model(model: Any) -> Model:
    """Return a model, or that of the result of a fit."""
    model = model.model if isinstance(model, FitResult) else model
    if not isinstance(model, Model):
        raise InputError(f"model must be a DPP, a Mixture or the result of a fit, got a {type(model).__name__}")
    return model


def draw_sets(model: Model, n: int, rng: Seed = None, threads: int | None = None) -> Baskets:
    """Draw n sets from the model."""
    sets = model.distribution.sample(n, None, rng, threads)
    rows = np.repeat(np.arange(n), [len(each) for each in sets])
    return Baskets.from_pairs(rows, np.concatenate([*sets, np.zeros(0, np.int64)]), n, model.catalogue)


def recorded_weight(model: Model) -> float | None:
    """Return the total weight of the training baskets, None if it is not recorded."""
    return model.training.weight if model.training is not None else model.learned.weight


def draw_training_sets(model: Model, rng: Seed = None, threads: int | None = None) -> Baskets:
    """Draw sets with the total weight and the item frequencies of the training baskets."""
    weight = recorded_weight(model)
    if weight is None:
        raise InputError("the model does not record how many baskets it was fitted to; pass them as old= (--old)")
    drawn = draw_sets(model, int(np.clip(SETS_PER_BASKET * weight, MIN_SETS, MAX_SETS)), rng, threads)
    if model.training is not None:
        drawn = with_frequencies(drawn, model.training.frequencies)
    return drawn.reweighted(weight / drawn.total_weight)


def with_frequencies(baskets: Baskets, frequencies: Floats) -> Baskets:
    """Reweight the baskets until items have these frequencies, by iterative proportional fitting.

    Item after item, the baskets with the item and those without it are rescaled to the weights f and 1 − f. Only the
    ratio of the two factors matters, so only the baskets with the item change. Frequencies of 0 and 1 are replaced by
    nearby ones, as they would need infinite factors.
    """
    matrix = baskets.to_matrix().tocsc()
    held_by = np.split(matrix.indices, matrix.indptr[1:-1])  # the baskets with each item
    wanted = np.clip(frequencies, FACTOR_TOL, 1 - FACTOR_TOL).tolist()
    weights = baskets.weights
    for _ in range(MAX_ROUNDS):
        weights = weights / weights.sum()
        total, largest = 1.0, 0.0
        for holders, f in zip(held_by, wanted, strict=True):
            held = float(weights[holders].sum())
            if len(holders) < MIN_HOLDERS or not FACTOR_TOL * total < held < (1 - FACTOR_TOL) * total:
                continue  # all baskets hold it, or only baskets that other items exclude
            factor = f / (1 - f) * (total - held) / held
            weights[holders] *= factor
            total += (factor - 1) * held
            largest = max(largest, abs(factor - 1))
        if largest <= FACTOR_TOL:
            break
    return baskets.weighted(weights)


@dataclass(frozen=True)
class Counted:
    """An item and the number of new baskets that contain it."""

    item: Label
    n_baskets: float


@dataclass(frozen=True)
class Moved:
    """Recommendations for an item that entered or left the first five."""

    item: Label
    entered: tuple[Label, ...]
    left: tuple[Label, ...]


@dataclass(frozen=True)
class Likelihood:
    """Mean log-likelihood per basket under the old and the new model, over their common items."""

    n_baskets: int
    before: float
    after: float
    in_sample: bool  # whether the new model was fitted to these baskets

    def __str__(self) -> str:
        which = "the new baskets, to which it was fitted" if self.in_sample else count(self.n_baskets, "test basket")
        return f"{number(self.before)} before, {number(self.after)} after, per basket, on {which}"


@dataclass(frozen=True)
class Changes(Result):
    """Changes made by an update. Printed, it is a summary.

    Examples
    --------
    >>> likelihood = Likelihood(40, -3.0, -2.9, in_sample=False)
    >>> print(Changes(40, 200.0, 40.0, 10000, likelihood, (Counted("mobile", 7.0),), (), ()))
    Update
      new baskets     40 of weight 40.0
      old baskets     weight 200.0, replaced by 10,000 sets drawn from the model
      log-likelihood  -3.0000 before, -2.9000 after, per basket, on 40 test baskets
      new items       1: mobile (7)
      vanished items  none
    """

    n_new: int
    past_weight: float  # remaining weight of the old baskets
    new_weight: float
    drawn: int | None  # number of sets drawn in place of the old baskets; None if these were given
    likelihood: Likelihood
    new_items: tuple[Counted, ...]
    vanished: tuple[Label, ...]  # items expected in five or more of the new baskets that are in none
    moved: tuple[Moved, ...]

    def tables(self) -> Iterator[Part]:
        """Yield the summary and the recommendations that changed."""
        replaced = "" if self.drawn is None else f", replaced by {count(self.drawn, 'set')} drawn from the model"
        yield Facts(
            "Update",
            [
                ("new baskets", f"{count(self.n_new)} of weight {number(self.new_weight, 1)}"),
                ("old baskets", f"weight {number(self.past_weight, 1)}{replaced}"),
                ("log-likelihood", str(self.likelihood)),
                ("new items", _first([f"{each.item} ({count(each.n_baskets)})" for each in self.new_items])),
                ("vanished items", _first(self.vanished)),
            ],
        )
        rows = [(str(each.item), contents(each.entered), contents(each.left)) for each in self.moved]
        if rows:
            meaning = f"Items that entered or left the first {K} recommendations for the most frequent items."
            yield TextTable("Changed recommendations", meaning, ["given", "entered", "left"], rows)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON.

        Returns
        -------
        dict

        Examples
        --------
        >>> Changes(1, 2.0, 1.0, None, Likelihood(1, -1.0, -1.0, True), (), ("cot",), ()).to_dict()["vanished"]
        ('cot',)
        """
        return asdict(self)


def likelihoods(before: Model, after: Model, baskets: Baskets, *, in_sample: bool) -> Likelihood:
    """Return the log-likelihoods of the old items of baskets. If the old model has no empty baskets, baskets without
    old items are left out, and both models are conditioned on nonempty sets."""
    seen, _ = known_baskets(baskets, before.catalogue, "drop")
    common = after if after.catalogue == before.catalogue else after.restrict(before.items)
    both = [model.distribution for model in (before, common)]
    if before.nonempty:
        both = [each.with_p_empty(0.0) for each in both]
    then, now = (each.mean_log_likelihood(seen) for each in both)
    return Likelihood(len(seen), then, now, in_sample)


def changed_items(before: Model, new: Baskets) -> tuple[tuple[Counted, ...], tuple[Label, ...]]:
    """Return new items, most frequent first, and vanished items, most expected first."""
    counts = new.item_weights
    order = [place for place in np.argsort(-counts, kind="stable").tolist() if counts[place] > 0]
    unknown = [Counted(new.items[place], float(counts[place])) for place in order]
    here = new.catalogue.translation(before.catalogue)
    seen = np.where(here >= 0, counts[here], 0)
    expected = np.where(seen > 0, 0, before.marginals() * new.total_weight)
    gone = [place for place in np.argsort(-expected, kind="stable") if expected[place] >= MIN_EXPECTED]
    return tuple(each for each in unknown if each.item not in before.catalogue), before.catalogue.select(gone)


def moved_recommendations(before: Model, after: Model, new: Baskets) -> tuple[Moved, ...]:
    """Return the changed recommendations for the most frequent new items that are possible under both models."""
    order = new.catalogue.select(np.argsort(-new.item_weights, kind="stable"))
    possible = [{*model.catalogue.select(np.flatnonzero(model.marginals() > 0))} for model in (before, after)]
    found, both = [], set.intersection(*possible)
    for item in [item for item in order if item in both][:N_COMPARED]:
        then, now = ([each.item for each in model.recommend([item], K)] for model in (before, after))
        entered, left = (tuple(a for a in now if a not in then), tuple(a for a in then if a not in now))
        if entered or left:
            found.append(Moved(item, entered, left))
    return tuple(found)


def _first(items: Sequence[Label]) -> str:
    """Return the number of some items, and the first of them."""
    return f"{count(len(items))}: {contents(items[:MAX_NAMED])}" if items else "none"


@dataclass(frozen=True, eq=False, repr=False)
class Update(Result):
    """The updated model, the old one, and the changes. Printed, it is a summary.

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

    def tables(self) -> Iterator[Part]:
        """Yield the changes."""
        yield from self.changes.tables()

    def to_dict(self) -> dict[str, Any]:
        """Return the changes as plain data for JSON."""
        return {**self.changes.to_dict(), "n_items": len(self.model.items)}

    def __repr__(self) -> str:
        return str(self.changes)


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
    """Fit a model again with new baskets, starting from the old one, and report what changed.

    A model does not store its training baskets. If you have them, pass them as `old`, which gives the best result.
    Otherwise sets drawn from the model replace them, with the same total weight and item frequencies. New items start
    at their frequency, without interactions. See docs/guide/updating.md for a comparison with a new fit.

    Parameters
    ----------
    model
        A DPP, a Mixture or the result of a fit.
    baskets
        New baskets: `Baskets` or a list of lists.
    old
        The training baskets of the model.
    forget
        Fraction of the weight of old baskets to remove, from 0 to 1.
    half_life
        Time after which the weight of a basket halves: "90d", "12w", "36h" or a number of days. New baskets,
        and `old` ones, then need times; drawn sets are as old as the oldest new basket.
    test
        Baskets to compare both models on. Default: the new baskets, which favour the new model.
    rng
        Seed or generator of the draws and of the fit.
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
    model, new = fitted_model(model), as_baskets(baskets)
    _check(model, new, forget)
    judged = new if test is None else as_baskets(test)
    if not known_baskets(judged, model.catalogue, "drop")[0].total_weight > 0:
        raise InputError("no basket has an item of the model; pass other baskets for the comparison (test=)")
    rng = np.random.default_rng(rng)
    catalogue = Catalogue.union([model.catalogue, new.catalogue])
    with shown_progress(progress and old is None, transient=True) as shown:
        shown.bar("drawing sets from the model")
        past = draw_training_sets(model, rng, threads) if old is None else _given_past(old, catalogue)
    kept, fresh = _aged(past, new, 1 - forget, half_life, drawn=old is None)
    both = Baskets.together([part.weighted(part.weights).over(catalogue) for part in (kept, fresh)])
    task = _task(model, both, fresh.total_weight / both.total_weight if old is None else 1.0, threads, max_seconds)
    seed = int(rng.integers(2**63))
    with shown_progress(progress) as shown:
        found = fit_task(task, model, rng=seed, callback=ProgressBar(shown), as_weighed=True)
    updated = _with_truth(found.model, model, kept, fresh, drawn=old is None)
    changes = Changes(
        len(new),
        kept.total_weight,
        fresh.total_weight,
        len(past) if old is None else None,
        likelihoods(model, updated, judged, in_sample=test is None),
        *changed_items(model, new),
        moved_recommendations(model, updated, new),
    )
    return Update(updated, model, found, changes)


def _check(model: Model, new: Baskets, forget: Any) -> None:
    """Raise an error before fitting."""
    if model.learned.learner == QUALITY or isinstance(model.distribution.components, Stack):
        raise InputError("models of `fit_weights` and `fit_quality` cannot be updated; refit them to all baskets")
    checked_baskets(new)
    resolve_nonempty(model.nonempty, new)
    if not isinstance(forget, Real) or not 0 <= float(forget) <= 1:
        raise InputError(f"forget must be between 0 and 1, got {forget!r}")


def _given_past(old: Any, catalogue: Catalogue) -> Baskets:
    known = as_baskets(old)
    _, left_out = known.known_to(catalogue)
    if left_out:
        raise InputError(
            f"old baskets have items that neither the model nor the new baskets have, such as "
            f"{contents(left_out.examples)}; leave them out (old.of_items(model.items))"
        )
    return known


def _aged(past: Baskets, new: Baskets, share: float, half_life: Any, *, drawn: bool) -> tuple[Baskets, Baskets]:
    """Return old and new baskets with their remaining weights."""
    if half_life is None:
        return past.reweighted(share), new
    times = known_times(new.times)
    of_past = times.min(keepdims=True) if drawn else known_times(past.times)
    now = max(times.max(), of_past.max())
    kept = replace(past, weights=share * past.weights * decay(of_past, half_life, now))
    return kept, replace(new, weights=new.weights * decay(times, half_life, now))


def _task(model: Model, baskets: Baskets, real: float, threads: int | None, max_seconds: float | None) -> Task:
    """Return the task of fitting a model as it was fitted; `real` is the share of the baskets that were not drawn.

    Sets drawn from a shrunk or penalised model already follow the penalty, so that only the share of the real baskets
    is penalised. No baskets are held out from a low-rank mixture: drawn sets would always favour the model that they
    were drawn from.
    """
    options: dict[str, Any] = {"threads": threads, "max_seconds": max_seconds, "nonempty": model.nonempty}
    interaction = getattr(model.distribution.components, "interaction", None)
    if isinstance(model, DPP):
        known = model.learned.shrinkage
        options["shrinkage"] = None if known is None else known * real
        options["learner"] = model.learned.learner if model.learned.learner in LEARNERS else "lbfgs"
    elif isinstance(interaction, Dense):
        options["attraction"] = not np.allclose(interaction.X, interaction.X.swapaxes(1, 2))
    else:
        options["validation"] = 0.0
    task = settings_of(**options).like(model).task(baskets)
    if isinstance(task.problem, MixtureProblem):
        task = replace(task, problem=replace(task.problem, penalised=max(real, MIN_PENALTY)))
    return task


def _with_truth(updated: Model, before: Model, kept: Baskets, fresh: Baskets, *, drawn: bool) -> Model:
    """Return the model with the training record of the real baskets instead of the drawn sets."""
    weight, training, known = kept.total_weight + fresh.total_weight, updated.training, before.training
    n_past = recorded_weight(before) or 0.0 if drawn else len(kept)
    unknown: dict[str, Any] = {"n_distinct": None, "digest": None} if drawn else {}
    n = round(n_past) + len(fresh)
    learned = replace(updated.learned, start="update", n_baskets=n, weight=weight, **unknown)
    if drawn and known is not None and kept.total_weight > 0:
        n, of_new = len(updated.items), Training.of(fresh.over(updated.catalogue))
        of_past = known, updated.catalogue.translation(before.catalogue), kept.total_weight / known.weight
        both = Training.sum([of_past, (of_new, np.arange(n), fresh.total_weight / of_new.weight)], n)
        training = replace(both, history=None if training is None else training.history)
    if training is not None and known is not None:
        training = replace(training, blend=known.blend)
    return updated.with_record(learned, training)

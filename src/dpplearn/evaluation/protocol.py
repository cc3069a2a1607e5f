"""The evaluation protocol: which items of each basket are given, and one outcome per basket, task and measure.

Three ranking tasks are asked of each basket of at least two items. Its items are put in random order once. Given are
the first item (given one), the first half, rounded down (given half), or all but the last item (all but one). The other
items of the basket are held out and ranked among all items that are not given. All models get the same questions.

Calibration given one item is exact for a true model: P(i ∈ Y | a ∈ Y) refers to all baskets that contain a. Hence
baskets of a single item are included, and a basket of n items has n times its weight, as if each of its items were
given in turn. For the other tasks the given items depend on the size of the basket, so even a true model shows some
calibration error: `recommend` gives probabilities for complete baskets that contain the given items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints, row_slices
from dpplearn.data.baskets import Baskets
from dpplearn.data.weights import in_variance
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.independent import IndependentItems
from dpplearn.errors import InputError, whole_number
from dpplearn.evaluation.calibration import N_BINS, Calibration, bin_predictions
from dpplearn.evaluation.metrics import LOG_LIKELIHOOD, measure_ranks, rank, ranking_measures

GIVEN_ONE, GIVEN_HALF, ALL_BUT_ONE = TASKS = ("given_one", "given_half", "all_but_one")
N_GIVEN: Mapping[str, Callable[[int], int]] = {  # of a basket of n items
    GIVEN_ONE: lambda n: 1,
    GIVEN_HALF: lambda n: n // 2,
    ALL_BUT_ONE: lambda n: n - 1,
}
MAX_SCORES = 2_000_000  # numbers held at a time: partial baskets × items
# Probabilities of a low-rank mixture cost 12 times as much as scores (8 ms per partial basket with 2,233 items, 30
# segments and 200 columns), so that of large catalogues a part of the baskets is calibrated: baskets × items, and
# baskets.
MAX_CALIBRATED, MIN_CALIBRATED = 2_000_000, 500


@dataclass(frozen=True)
class Setting:
    """Settings of an evaluation, the same for all models and folds."""

    nonempty: bool
    k: tuple[int, ...]
    tasks: tuple[str, ...]

    @classmethod
    def of(cls, nonempty: bool, k: int | Sequence[int], tasks: Sequence[str]) -> Setting:
        """Check the arguments of `evaluate`."""
        ks = {whole_number("k", each, 1) for each in (k if isinstance(k, Iterable) else (k,))}
        tasks = [tasks] if isinstance(tasks, str) else tasks
        odd = [task for task in tasks if task not in TASKS]
        if odd or not ks:
            raise InputError(f"expected at least one k and tasks of {', '.join(TASKS)}, got k={k!r}, tasks={tasks!r}")
        return cls(nonempty, tuple(sorted(ks)), tuple(tasks))


@dataclass(frozen=True, eq=False)
class Predictor:
    """A model or a baseline.

    Both functions take partial baskets A and return (n_partial, n_items): scores to rank all items by, and
    P(i ∈ Y | A ⊆ Y). Rows are NaN where A is impossible. Some baselines have no probabilities.
    """

    scores: Callable[[Sequence[Ints]], Floats]
    probabilities: Callable[[Sequence[Ints]], Floats] | None = None
    distribution: SetDistribution | IndependentItems | None = None


@dataclass(frozen=True)
class Question:
    """One task for one basket."""

    task: str
    row: int  # of the basket
    held: Ints  # items of the basket that are not given


@dataclass(frozen=True)
class Questions:
    """All questions about some baskets, by what is given: different questions may share a partial basket."""

    baskets: Baskets
    tasks: tuple[str, ...]
    partial: tuple[Ints, ...]
    asked: tuple[tuple[Question, ...], ...]  # for each partial basket
    calibrated: Bools  # (n_baskets,) whether probabilities are checked, too


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of one predictor. Each column has one value per basket, NaN where there is none."""

    columns: Mapping[str, Floats]
    n_impossible: int  # questions whose partial basket is impossible under the model, so that all candidates are tied
    calibration: Mapping[str, Calibration]  # by task
    sizes: Floats | None  # (2, n_items + 1) expected and observed weight of the baskets of each size


def column_name(measure: str, task: str) -> str:
    return measure if measure == LOG_LIKELIHOOD else f"{measure}_{task}"


def can_be_ranked(baskets: Baskets) -> Bools:
    """Return which baskets have at least two items, and lack at least one."""
    return (baskets.sizes >= 2) & (baskets.sizes < baskets.n_items)


def ask(baskets: Baskets, rng: np.random.Generator, tasks: Sequence[str] = TASKS) -> Questions:
    """Draw the random order of the items of every basket and return the questions."""
    row_of = np.repeat(np.arange(len(baskets)), baskets.sizes)
    shuffled = baskets.indices[np.lexsort((rng.random(len(row_of)), row_of))].astype(np.int64)
    found: dict[bytes, list[Question]] = {}
    for row in np.flatnonzero((baskets.sizes >= 1) & (baskets.sizes < baskets.n_items)).tolist():
        items = shuffled[baskets.offsets[row] : baskets.offsets[row + 1]]
        for task in tasks if len(items) > 1 else {GIVEN_ONE} & {*tasks}:
            n = N_GIVEN[task](len(items))
            found.setdefault(np.sort(items[:n]).tobytes(), []).append(Question(task, row, items[n:]))
    partial = tuple(np.frombuffer(key, np.int64) for key in found)
    calibrated = np.zeros(len(baskets), bool)
    calibrated[rng.permutation(len(baskets))[: n_calibrated(len(baskets), baskets.n_items)]] = True
    return Questions(baskets, tuple(tasks), partial, tuple(map(tuple, found.values())), calibrated)


def n_calibrated(n_baskets: int, n_items: int) -> int:
    """Return for how many baskets probabilities are checked."""
    return min(n_baskets, max(MIN_CALIBRATED, MAX_CALIBRATED // n_items))


def answer(
    predictor: Predictor, questions: Questions, ks: Sequence[int], advance: Callable[[], None] = lambda: None
) -> Outcomes:
    """Return the outcomes of a predictor; `advance` is called after each partial basket."""
    baskets, measures = questions.baskets, ranking_measures(ks)
    # For each task, the rows of the baskets, the number of items that are not in them, and the ranks of their items.
    ranked: dict[str, list[tuple[int, int, Ints]]] = {task: [] for task in questions.tasks}
    n_impossible, partial = 0, questions.partial
    rows = _rows(predictor.scores, partial, baskets.n_items)
    for given, asked, scores in zip(partial, questions.asked, rows, strict=True):
        n_impossible += len(asked) * bool(np.isnan(scores).all())
        for each in asked:
            if len(each.held):
                n_negative = baskets.n_items - len(given) - len(each.held)
                ranked[each.task].append((each.row, n_negative, rank(scores, given, each.held)))
        advance()
    columns, sizes = dict[str, Floats](), None
    if predictor.distribution is not None:
        columns[LOG_LIKELIHOOD] = predictor.distribution.log_prob(baskets)
        observed = np.bincount(baskets.sizes, baskets.weights, baskets.n_items + 1)
        sizes = np.stack([baskets.total_weight * np.exp(predictor.distribution.log_sizes()), observed])
    for task, found in ranked.items():
        values = _measured(found, len(baskets), ks)
        columns |= {column_name(measure, task): values[:, place] for place, measure in enumerate(measures)}
    return Outcomes(columns, n_impossible, _calibration(predictor, questions), sizes)


def _rows(function: Callable[[Sequence[Ints]], Floats], partial: Sequence[Ints], n_items: int) -> Iterator[Floats]:
    """Yield what a function gives for each partial basket, computed for many at a time."""
    for rows in row_slices(len(partial), n_items, MAX_SCORES):
        yield from function(partial[rows])


def _calibration(predictor: Predictor, questions: Questions) -> dict[str, Calibration]:
    if predictor.probabilities is None:
        return {}
    baskets = questions.baskets
    rows: dict[str, list[int]] = {task: [] for task in questions.tasks}
    bins: dict[str, list[Floats]] = {task: [] for task in questions.tasks}
    chosen = [
        (given, [each for each in asked if questions.calibrated[each.row]])
        for given, asked in zip(questions.partial, questions.asked, strict=True)
    ]
    chosen = [(given, asked) for given, asked in chosen if asked]
    predicted = _rows(predictor.probabilities, [given for given, _ in chosen], baskets.n_items)
    for p, (given, asked) in zip(predicted, chosen, strict=True):
        for each in asked:
            rows[each.task].append(each.row)
            bins[each.task].append(bin_predictions(p, given, each.held))
    variances, found = in_variance(baskets.weights), {}
    for task, asked_rows in rows.items():
        # Given one: a basket counts as if each of its items were given in turn.
        copies = baskets.sizes[asked_rows] if task == GIVEN_ONE else np.ones(len(asked_rows))
        weights = copies * baskets.weights[asked_rows], copies**2 * variances[asked_rows]
        found[task] = Calibration(np.reshape(bins[task], (-1, 3, N_BINS)), *weights)
    return found


def _measured(ranked: Sequence[tuple[int, int, Ints]], n: int, ks: Sequence[int]) -> Floats:
    """Return the measures of one task for n baskets; NaN for baskets without a question."""
    found = np.full((n, len(ranking_measures(ks))), np.nan)
    if ranked:
        rows, n_negative, ranks = zip(*ranked, strict=True)
        question = np.repeat(np.arange(len(rows)), [each.shape[1] for each in ranks])
        found[list(rows)] = measure_ranks(np.concatenate(ranks, axis=1), question, np.array(n_negative), ks)
    return found


def size_distance(sizes: Floats) -> float:
    """Return ½ Σ_k |P(|Y| = k) − share of the baskets of k items|, the total variation distance."""
    expected, observed = sizes
    return float(np.abs(expected - observed).sum() / (2 * observed.sum()))


def joined(parts: Sequence[Outcomes], order: Ints) -> Outcomes:
    """Join the outcomes of several folds; `order` puts their baskets, one fold after another, in the final order."""
    columns = {name: np.concatenate([part.columns[name] for part in parts])[order] for name in parts[0].columns}
    tasks = parts[0].calibration
    calibration = {task: Calibration.joined([part.calibration[task] for part in parts]) for task in tasks}
    sizes = [part.sizes for part in parts if part.sizes is not None]
    n_impossible = sum(part.n_impossible for part in parts)
    return Outcomes(columns, n_impossible, calibration, np.sum(sizes, axis=0) if sizes else None)

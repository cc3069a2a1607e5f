"""An evaluation in tables of words: printed as plain text, or drawn by the command line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from textwrap import fill
from typing import TYPE_CHECKING

from dpplearn.evaluation.baselines import INDEPENDENT
from dpplearn.evaluation.intervals import Estimate
from dpplearn.evaluation.outcomes import AUC, LOG_LIKELIHOOD, PERCENTILE_RANK
from dpplearn.tools.tables import WIDTH, TextTable, as_plain_text
from dpplearn.tools.words import MISSING, count, likelier, listed, number, signed

if TYPE_CHECKING:
    from dpplearn.evaluation.result import Evaluation

DIGITS = {LOG_LIKELIHOOD: 4, PERCENTILE_RANK: 2}  # of all others three
WORDS = {LOG_LIKELIHOOD: "log-likelihood", PERCENTILE_RANK: "percentile rank"}
ABREAST = 3  # values of k that fit beside each other, twice
FOLDS_ABREAST = 5
RANKS = (
    "percentile rank: how far up the list an item held out comes, 100 for the first; AUC: how often an item of a "
    "basket is held likelier than one that is not."
)
HITS = (
    "recall: the share of the items held out that are among the first k; NDCG: the same, where first places count more."
)
VARY = "How much the figures depend on which part of the data is tested."
AHEAD = "Above 0 the first is better; undecided where the interval holds 0."
CALIBRATED = "The nearer to 0, the more the probabilities can be taken at their word."
CAME_TRUE = "Of the predictions of about the first figure, the share in the second came true."


def tables(found: Evaluation) -> Iterator[TextTable]:
    """What was measured, the most important first."""
    yield _means(found)
    if found.n_ranked:
        for part in _parts(found.k, ABREAST):
            yield _found(found, part)
    if found.folds is not None:
        yield from _folds(found)
    yield from _differences(found)
    yield _calibration(found)
    yield from _reliability(found)


def remarks(found: Evaluation) -> Iterator[str]:
    """What must be said beside the tables."""
    yield from found.notes
    if found.nonempty:
        yield "Log-likelihoods and sizes are given that a basket is not empty, of models and of independent items."
    if INDEPENDENT in found.names and found.n_ranked:
        yield "Independent items rank as popularity does."
    for name in found.names:
        yield from _impossible(found, name)


def as_text(found: Evaluation) -> str:
    """All of it in lines of up to 80 columns."""
    lines = [line for table in tables(found) for line in (*as_plain_text(table), "")]
    return "\n".join([*lines, *(fill(remark, WIDTH) for remark in remarks(found))])


def _in_words(found: Evaluation) -> str:
    """By how much each model makes a basket likelier."""
    gains = {
        name: found.difference(name, INDEPENDENT).value
        for name in found.models
        if INDEPENDENT in found.names and LOG_LIKELIHOOD in found.measures(name)
    }
    said = [
        f"{likelier(gain)} under {name} ({signed(gain)} nats)" for name, gain in gains.items() if math.isfinite(gain)
    ]
    return f"Compared with independent items, a basket is {listed(said)}. {RANKS}" if said else RANKS


def _means(found: Evaluation) -> TextTable:
    rows = [
        (
            name,
            _estimate(found, name, LOG_LIKELIHOOD),
            _estimate(found, name, PERCENTILE_RANK),
            _mean(found, name, AUC),
        )
        for name in found.names
    ]
    return TextTable(
        f"Means over {count(found.n_baskets, 'basket')} of {count(found.n_items, 'item')}, with 95% intervals",
        _in_words(found),
        ["", "log-likelihood>", "percentile rank>", "AUC>"],
        rows,
    )


def _found(found: Evaluation, ks: Sequence[int]) -> TextTable:
    measures = [f"{name}@{k}" for name in ("recall", "ndcg") for k in ks]
    rows = [(name, *(_mean(found, name, measure) for measure in measures)) for name in found.names]
    title = f"Items held out at random from {count(found.n_ranked, 'basket')}, found in the first k"
    headings = [f"{name if k == ks[0] else ''}@{k}>" for name in ("recall", "NDCG") for k in ks]
    return TextTable(title, HITS, ["", *headings], rows)


def _folds(found: Evaluation) -> Iterator[TextTable]:
    means = {name: found.fold_means(name) for name in found.names if LOG_LIKELIHOOD in found.measures(name)}
    n_folds = max(map(len, means.values()))
    for part in _parts(range(n_folds), FOLDS_ABREAST):
        rows = [(name, *(number(values[fold]) for fold in part)) for name, values in means.items()]
        yield TextTable("Mean log-likelihood in each fold", VARY, ["", *(f"fold {fold + 1}>" for fold in part)], rows)


def _differences(found: Evaluation) -> Iterator[TextTable]:
    """A table per measure: the log-likelihood, the percentile rank and, of a single model, one NDCG."""
    ranking = [PERCENTILE_RANK] if found.n_ranked else []
    if ranking and len(found.models) == 1:
        ranking.append(f"ndcg@{found.k[len(found.k) // 2]}")
    for measure in [LOG_LIKELIHOOD, *ranking]:
        word = WORDS.get(measure, measure.replace("ndcg", "NDCG"))
        title = f"Difference in {word}, with 95% intervals"
        yield TextTable(title, AHEAD, ["", "difference>", ""], list(_beside(found, measure)))


def _beside(found: Evaluation, measure: str) -> Iterator[Sequence[str]]:
    """By what is compared with. Independent items rank as popularity does, so that is left out."""
    pairs = [(model, opponent) for model, opponent, each in found.compared if each == measure]
    for opponent in dict.fromkeys(opponent for _, opponent in pairs):
        if opponent == INDEPENDENT and measure != LOG_LIKELIHOOD:
            continue
        models = [model for model, other in pairs if other == opponent]
        if len(found.models) > 1:
            yield (f"over {opponent}", "", "")
        for model in models:
            difference = found.difference(model, opponent, measure)
            interval = with_interval(difference, DIGITS.get(measure, 3), sign=True)
            line = f"  {model}" if len(found.models) > 1 else f"over {opponent}"
            yield (line, interval, difference.verdict)


def _calibration(found: Evaluation) -> TextTable:
    """Of all that have probabilities."""
    errors = {name: each.error for name, each in found.reliability.items()}
    rows = [
        (name, number(errors.get(name), 5), number(found.size_distance.get(name), 3))
        for name in found.names
        if name in errors or name in found.size_distance
    ]
    title = "Probabilities of other items given one, and of sizes, against what came true"
    return TextTable(title, CALIBRATED, ["", "calibration error>", "sizes off by>"], rows)


def _reliability(found: Evaluation) -> Iterator[TextTable]:
    """Of the first model."""
    first = found.models[0]
    rows = [
        (
            number(row.predicted),
            number(row.observed),
            f"[{number(row.low)}, {number(row.high)}]",
            count(row.weight),
        )
        for row in found.reliability[first].rows
    ]
    if rows:
        title = f"Calibration of {first}: other items, given one of a basket"
        yield TextTable(title, CAME_TRUE, ["predicted>", "observed>", "95% interval>", "predictions>"], rows)


def _impossible(found: Evaluation, name: str) -> Iterator[str]:
    n_impossible, unranked = int(found.impossible(name).sum()), found.unranked[name]
    if n_impossible:
        yield (
            f"{name}: {count(n_impossible, 'basket')} of probability zero, so the mean log-likelihood is minus "
            f"infinity; the mean of the other baskets is {number(found.mean_of_possible(name))}."
        )
    if unranked:
        yield (
            f"{name}: {count(unranked, 'partial basket')} impossible under it; there all candidates are tied, at "
            "percentile rank 50."
        )
    if name in found.reliability and found.reliability[name].left_out:
        yield (
            f"{name}: its calibration leaves out {count(found.reliability[name].left_out)} probabilities given an item "
            "that it holds impossible."
        )


def _mean(found: Evaluation, name: str, measure: str) -> str:
    return number(found.estimate(name, measure).value, 3) if measure in found.measures(name) else MISSING


def _estimate(found: Evaluation, name: str, measure: str) -> str:
    known = measure in found.measures(name)
    return with_interval(found.estimate(name, measure), DIGITS[measure]) if known else MISSING


def with_interval(each: Estimate, digits: int, *, sign: bool = False) -> str:
    """A mean, and its interval in brackets where it has one."""
    value, low, high = ((signed if sign else number)(part, digits) for part in (each.value, each.low, each.high))
    return value if MISSING in (value, low) else f"{value} [{low}, {high}]"


def _parts(values: Sequence[int], most: int) -> Iterator[list[int]]:
    for part in zip_longest(*[iter(values)] * most):
        yield [each for each in part if each is not None]

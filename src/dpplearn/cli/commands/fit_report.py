"""What dpplearn fit answers: how the model was learned, and how good it is beside independent items."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.cli.output import Report, Shown
from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.independent import SMOOTHING, IndependentItems, chances
from dpplearn.learners.quality.weights import MAX_ROWS_SHOWN, STRENGTHS, WEIGHTS, QualityWeights
from dpplearn.learners.result import FitResult
from dpplearn.learners.settings import MixtureSettings, Settings
from dpplearn.utils.text import Facts, TextTable, count, number, share, shown, signed, times_as_likely

BASELINE = (
    "Independent items have the frequencies of the training data, with half a basket more with and half a basket more "
    "without each item, so that none is impossible. dpplearn score compares with the same."
)


def fit_report(
    result: FitResult[Any], settings: Settings | None, train: AnyBaskets, test: Baskets | None, **where: Any
) -> Report:
    """`where` names the files and the seed."""
    learned = result.model.learned
    return {
        **where,
        **_kind_of(result, settings),
        "n_baskets": len(train),
        "n_distinct": learned.n_distinct,
        "n_items": train.n_items,
        "weight": train.total_weight,
        "mean_size": train.totals.mean_size,
        "learner": learned.learner,
        "start": learned.start,
        "stop": result.stop.name,
        "stopped_because": result.stop.value,
        "converged": result.converged,
        "n_iter": result.n_iter,
        "evaluations": learned.evaluations,
        "seconds": learned.seconds,
        "validation": learned.validation,
        "validation_log_likelihood": learned.validation_log_likelihood,
        "nonempty": result.model.nonempty,
        "expected_size": result.expected_size,
        **_beside_independent(result, train, test),
        "independent": result.model.independent,
        "caution": result.model.caution,
        "restarts": [{**asdict(each), "stop": each.stop.name} for each in result.restarts],
    }


def _kind_of(result: FitResult[Any], settings: Settings | None) -> Report:
    """What only one kind of model has is null for the other."""
    segments, rank, attraction = None, None, None
    if isinstance(settings, MixtureSettings):
        segments, rank, _ = settings.shape(len(result.model.items))
        attraction = settings.attraction
    return {
        "kind": "dpp" if segments is None else "mixture",
        "segments": segments,
        "rank": rank,
        "attraction": attraction,
        "shrinkage": result.shrinkage if segments is None else None,
        "shrinkage_chosen": bool(result.model.learned.shrinkage_chosen) if segments is None else None,
        "quality": None if result.quality is None else _quality(result.quality),
    }


def _quality(weights: QualityWeights) -> Report:
    """Numbers that are not known, such as errors at a bound, are null."""
    rows = {"weights": weights.rows, "strengths": weights.strength_rows}
    lines = {name: [_known(row._asdict()) for row in each] for name, each in rows.items()}
    return {**lines, "ridge": weights.ridge, "notes": list(weights.notes)}


def _known(row: Report) -> Report:
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}


def _beside_independent(result: FitResult[Any], train: AnyBaskets, test: Baskets | None) -> Report:
    """Of what was learned from, and of what was not, the model and the same baseline under the same law."""
    training, nonempty = result.model.training, result.model.nonempty
    assert training is not None  # as of every model that fit makes
    p = chances(training.frequencies, training.weight, smoothing=SMOOTHING, nonempty=nonempty)
    lines: Report = {
        "train": _likelihoods(len(train), result.log_likelihood, _of_training(p, training.frequencies, nonempty)),
        "test": None,
    }
    if test is not None:
        baseline = IndependentItems(p, nonempty)
        model = result.model.log_likelihood(test)
        lines["test"] = _likelihoods(len(test), model, baseline.mean_log_likelihood(test))
    return lines


def _of_training(p: Floats, m: Floats, nonempty: bool) -> float:
    """Σ m_i log p_i + (1 − m_i) log(1 − p_i): the baskets learned from are known by their frequencies alone."""
    mean = float(m @ np.log(p) + (1 - m) @ np.log1p(-p))
    return mean - float(np.log(-np.expm1(np.log1p(-p).sum()))) if nonempty else mean


def _likelihoods(n_baskets: int, model: float, baseline: float) -> Report:
    return {
        "n_baskets": n_baskets,
        "log_likelihood": model,
        "independent_log_likelihood": baseline,
        "gain": model - baseline,
    }


def fit_tables(report: Report) -> Iterator[Shown]:
    yield Facts("Learned", list(_facts(report)))
    parts = [(name, report[name]) for name in ("train", "test") if report[name] is not None]
    yield TextTable(
        f"Beside independent items: mean log-likelihood per basket{_given(report)}",
        _in_words(*parts[-1]),
        ["", "baskets>", "gain>", "model>", "independent items>"],
        [(name, count(part["n_baskets"]), *_values(part)) for name, part in parts],
    )
    yield BASELINE
    if report["quality"] is not None:
        yield from _quality_tables(report["quality"])
    if len(report["restarts"]) > 1:
        yield TextTable(
            "Runs",
            "The best run is returned.",
            ["run>", "start", "log-likelihood>", "iterations>", "seconds>", "stopped"],
            [(str(run), *_run(each)) for run, each in enumerate(report["restarts"], start=1)],
        )
    for name, part in parts:
        quality = report["quality"]
        yield _remark(name, part, report["kind"], quality is not None and quality["ridge"] is not None)
    yield report["caution"]


def _quality_tables(quality: Report) -> Iterator[Shown]:
    """The largest weights alone, where there are many."""
    tables = (
        ("weights", "Quality: weights in log-odds", WEIGHTS),
        ("strengths", "Strengths of similarities", STRENGTHS),
    )
    for name, of, meaning in tables:
        rows = sorted(quality[name], key=lambda row: -row["weight"])[:MAX_ROWS_SHOWN]
        figures = ("weight", "standard_error", "low", "high")
        cells = [(shown(row["name"]), *(number(row[figure], 3) for figure in figures)) for row in rows]
        if rows:
            yield TextTable(of, meaning, ["", "value>", "standard error>", "95% from>", "to>"], cells)
        if len(quality[name]) > len(rows):
            yield f"And {count(len(quality[name]) - len(rows), 'weight')} more, in --json."
    yield from quality["notes"]


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    stopped = f"after {count(report['n_iter'], 'iteration')}{' (converged)' if report['converged'] else ''}"
    seed = "" if report["seed"] is None else f", seed {report['seed']}"
    yield (
        "data",
        f"{shown(report['data'])}: {count(report['n_baskets'], 'basket')} ({count(report['n_distinct'])} distinct) of "
        f"{count(report['n_items'], 'item')}, {number(report['mean_size'], 2)} items per basket on average",
    )
    if report["kind"] == "mixture":
        yield "model", _mixture(report)
        yield "start", f"{report['start']}{seed}"
    else:
        yield "model", "symmetric DPP"
        yield "learner", f"{report['learner']} from {report['start']}{seed}"
        chosen = ", chosen by cross-validation" if report["shrinkage_chosen"] else ""
        yield "shrinkage", f"{report['shrinkage']:.3g}{chosen}"
    yield "stopped", f"{stopped}: {report['stopped_because']}"
    yield "learning time", f"{number(report['seconds'], 2)} s"
    yield "expected size", f"{number(report['expected_size'], 2)} items{_given(report)}"
    yield "file", shown(report["model"])
    if report["validation"] is not None:
        aside = f"{share(report['validation'])} of the baskets; mean log-likelihood of the validation set "
        yield "held out", f"{aside}{number(report['validation_log_likelihood'])}"


def _given(report: Report) -> str:
    return ", given that it is not empty" if report["nonempty"] else ""


def _mixture(report: Report) -> str:
    attraction = "items attract and repel each other" if report["attraction"] else "items repel each other"
    return f"mixture of {count(report['segments'], 'segment')}; {attraction} (rank {report['rank']})"


def _in_words(name: str, part: Report) -> str:
    """Of the baskets that were held out, if there are any."""
    if not math.isfinite(part["gain"]):
        return "How likely baskets are under the model, and were items independent of each other."
    which = "that it was not learned from" if name == "test" else "that it was learned from"
    return (
        f"A basket {which} is {times_as_likely(part['gain'])} under the model, on average, compared with independent "
        f"items ({signed(part['gain'])} nats)."
    )


def _values(part: Report) -> tuple[str, ...]:
    figures = number(part["log_likelihood"]), number(part["independent_log_likelihood"])
    return signed(part["gain"]), *figures


def _run(each: Report) -> tuple[str, ...]:
    stop = each["stop"].lower().replace("_", " ")
    return each["start"], number(each["log_likelihood"], 6), str(each["n_iter"]), number(each["seconds"], 2), stop


def _remark(name: str, part: Report, kind: str, of_features: bool) -> str:
    if math.isinf(part["log_likelihood"]):
        return (
            f"{name}: some basket has probability zero under the model, so the mean log-likelihood is minus infinity."
        )
    if part["gain"] < -1e-9:  # more than rounding: with shrinkage 1 there is no difference
        why = {
            "mixture": "(try a smaller --tol, or --restarts 5), or there are too few baskets for so many segments (try "
            "--segments 1).",
            "dpp": "(try a smaller --tol, or --init moments), or items here go together, which a DPP cannot express "
            "(try --model mixture).",
        }
        below = f"{name}: the model is BELOW independent items."
        if of_features:
            return f"{below} Features say less of items than how often each occurs; leave out --features to use that."
        return f"{below} Learning may have stopped early {why[kind]}"
    return ""

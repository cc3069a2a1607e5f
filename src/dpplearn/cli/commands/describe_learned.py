"""How a model was learned, in words: what dpplearn describe ends with."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpplearn.cli.output import Report, Shown
from dpplearn.learners.loop import Stop
from dpplearn.utils.text import Facts, chance, count, number, share, shown, signed, times_as_likely

UNKNOWN = "That is not recorded: the model was not made by fit."


def learned_tables(report: Report) -> Iterator[Shown]:
    yield Facts("Sets", _sets(report))
    yield "How it was learned"
    yield " ".join(_sentences(report["learned"], report["kind"] == "mixture")) or UNKNOWN
    yield Facts("", _file(report))


def _sets(report: Report) -> list[tuple[str, str]]:
    size = report["size"]
    empty = "impossible: all is given that a set is not empty"
    return [
        ("size", f"{number(size['expected'], 2)} items on average, standard deviation "
                 f"{number(size['standard_deviation'], 2)}"),
        ("likeliest size", f"{size['most_likely']}; 90% of sets have {size['percentile_5']} to "
                           f"{size['percentile_95']} items"),
        ("empty set", empty if report["nonempty"] else f"probability {chance(size['probability_empty'])}"),
    ]  # fmt: skip


def _file(report: Report) -> list[tuple[str, str]]:
    versions = ", ".join(f"{name} {each}" for name, each in report["written_with"].items())
    if report["kind"] == "mixture":
        of_kind = f"mixture of {count(report['n_segments'], 'segment')}, of {count(report['n_items'], 'item')}"
    else:
        rank = f"rank {count(report['rank'])} (the size of the largest possible set)"
        of_kind = f"symmetric DPP of {count(report['n_items'], 'item')}, {rank}"
    return [("model", of_kind), ("file", shown(report["model"])), ("written with", versions)]


def _sentences(learned: Report, mixture: bool) -> Iterator[str]:
    """What is known of it, one thing after another."""
    if "n_baskets" in learned:
        distinct = f", of which {count(learned['n_distinct'])} differ" if "n_distinct" in learned else ""
        yield f"From {count(learned['n_baskets'], 'basket')}{distinct}{_by(learned, mixture)}."
    elif "learner" in learned:
        yield f"Learned{_by(learned, mixture)}."
    if "stop" in learned:
        yield _stopped(learned)
    if learned.get("shrinkage") and not mixture:
        chosen = ", chosen by cross-validation" if learned.get("shrinkage_chosen") else ""
        yield f"Shrinkage towards independent items: {learned['shrinkage']:.3g}{chosen}."
    if {"log_likelihood", "independent_log_likelihood"} <= learned.keys():
        yield _gain(learned)
    if "validation" in learned:
        aside = f"{share(learned['validation'])} of the baskets were set aside"
        yield f"{aside}; their log-likelihood is {number(learned.get('validation_log_likelihood'))} per basket."
    if {"unseen_gain", "unseen_error"} <= learned.keys():
        gain = f"{signed(learned['unseen_gain'])} ± {number(2 * learned['unseen_error'])} nats"
        yield f"A basket that it was not learned from is {times_as_likely(learned['unseen_gain'])} ({gain})."


def _by(learned: Report, mixture: bool) -> str:
    how = "" if mixture or "learner" not in learned else f", by {shown(learned['learner'])}"
    start = f" (start: {shown(learned['start'])})" if "start" in learned else ""
    runs = learned.get("restarts", 1)
    return f"{how}{start}{f', the best of {runs} runs' if runs > 1 else ''}"


def _stopped(learned: Report) -> str:
    why = Stop[learned["stop"]].value if learned["stop"] in Stop.__members__ else shown(learned["stop"])
    after = f" after {count(learned['n_iter'], 'iteration')}" if "n_iter" in learned else ""
    seconds = f" and {number(learned['seconds'], 2)} s" if "seconds" in learned else ""
    return f"It stopped{after}{seconds}: {why}."


def _gain(learned: Report) -> str:
    model, independent = learned["log_likelihood"], learned["independent_log_likelihood"]
    figures = f"log-likelihood {number(model)} per basket, of independent items {number(independent)}"
    if not math.isfinite(model - independent):
        return f"Of the baskets learned from: {figures}."
    gain = model - independent
    return (
        f"A basket learned from is {times_as_likely(gain)} under it, on average, compared with independent items "
        f"({signed(gain)} nats: {figures})."
    )

"""Reports as rich tables. Names wrap, numbers never do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dpplearn.cli.commands.demo import percent
from dpplearn.cli.output import Report

MINUS_INFINITY = "some basket has probability zero under the model, so the mean log-likelihood is minus infinity"


def shown(label: Any) -> str:
    """A label or a path without what would upset a terminal, such as line ends or escape sequences."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in str(label))


def listed(labels: Iterable[Any]) -> str:
    """Names may hold commas."""
    return "; ".join(map(shown, labels)) or "(nothing)"


def number(value: float | None, digits: int = 4) -> str:
    if value is None or math.isnan(value):
        return "-"
    return f"{value:,.{digits}f}"


def chance(value: float) -> str:
    """A probability or a factor, with digits left where it is small or large."""
    if math.isnan(value):
        return "-"
    return f"{value:.4f}" if value == 0 or 0.001 <= abs(value) < 1000 else f"{value:.2e}"


def signed(value: float, digits: int = 4) -> str:
    return "-" if math.isnan(value) else f"{value:+.{digits}f}"


def facts(title: str, rows: Sequence[tuple[str, str]]) -> Table:
    """What is on the left, its value on the right."""
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    return table


def grid(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A column whose heading ends in `>` holds numbers."""
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in columns:
        if heading.endswith(">"):
            table.add_column(Text(heading[:-1]), justify="right", no_wrap=True)
        else:
            table.add_column(Text(heading), overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def notes(*texts: str) -> Iterator[RenderableType]:
    return (Text(text) for text in texts if text)


def fit_tables(report: Report) -> Iterator[RenderableType]:
    stopped = f"after {report['n_iter']} iterations{' (converged)' if report['converged'] else ''}"
    rows = [
        ("data", f"{shown(report['data'])}: {report['n_baskets']:,} baskets ({report['n_distinct']:,} distinct) "
                 f"of {report['n_items']:,} items, {report['mean_size']:.2f} items a basket"),
        ("learner", f"{report['learner']} from {report['start']}{_seed(report['seed'])}"),
        ("prior", _prior(report)),
        ("stopped", f"{stopped}: {report['stopped_because']}"),
        ("learning time", f"{report['seconds']:.2f} s"),
        ("expected size", f"{report['expected_size']:.2f} items{_given(report)}"),
        ("model", shown(report["model"])),
    ]  # fmt: skip
    if report["validation"] is not None:
        aside = f"{report['validation']:.0%} of the baskets, of mean log-likelihood "
        rows.append(("set aside", f"{aside}{number(report['validation_log_likelihood'])}"))
    yield facts("Learned", rows)
    if report["prior_choice"] is not None:
        yield grid(
            "Strength of the prior: mean log-likelihood of unseen baskets",
            ["strength>", "log-likelihood>", "below the best>", "standard error>", ""],
            [_strength(each) for each in report["prior_choice"]],
        )
    parts = [(name, report[name]) for name in ("train", "test") if report[name] is not None]
    yield grid(
        f"Mean log-likelihood a basket{_given(report)}",
        ["", "baskets>", "model>", "independent items>", "gain>"],
        [(name, f"{part['n_baskets']:,}", *_likelihoods(part)) for name, part in parts],
    )
    if len(report["restarts"]) > 1:
        yield grid(
            "Runs",
            ["run>", "start", "log-likelihood>", "iterations>", "seconds>", "stopped"],
            [(str(run), *_run(each)) for run, each in enumerate(report["restarts"], start=1)],
        )
        yield from notes(f"Of the runs, {report['agreement']['text']}.")
    if not math.isinf(report["prior"]):  # else the model is independent items, but for the smoothing
        yield from notes(*(_remark(name, part) for name, part in parts))


def _given(report: Report) -> str:
    return ", given that it is not empty" if report["nonempty"] else ""


def _prior(report: Report) -> str:
    strength, chosen = report["prior"], ", by cross-validation" if report["prior_choice"] is not None else ""
    if math.isinf(strength):
        return f"infinitely strong{chosen}: the model is that of independent items"
    return f"{strength:g} of the data's weight{chosen}" if strength else f"none{chosen}"


def _strength(each: Report) -> tuple[str, ...]:
    figures = (number(each["below_the_best"]), number(each["standard_error"]))
    name = "independent items" if math.isinf(each["strength"]) else f"{each['strength']:g}"
    return name, number(each["log_likelihood"]), *figures, "taken" if each["taken"] else ""


def _seed(seed: int | None) -> str:
    return "" if seed is None else f", seed {seed}"


def _likelihoods(part: Report) -> tuple[str, str, str]:
    return number(part["log_likelihood"]), number(part["independent_log_likelihood"]), signed(part["gain"])


def _run(each: Report) -> tuple[str, ...]:
    stop = each["stop"].lower().replace("_", " ")
    return each["start"], number(each["log_likelihood"], 6), str(each["n_iter"]), f"{each['seconds']:.2f}", stop


def _remark(name: str, part: Report) -> str:
    if math.isinf(part["log_likelihood"]):
        return f"{name}: {MINUS_INFINITY}."
    if math.isinf(part["independent_log_likelihood"]):
        return f"{name}: some basket has probability zero under independent items, whose mean is minus infinity."
    if part["gain"] < 0:
        return (
            f"{name}: the model is BELOW independent items. Learning may have stopped early (try a smaller --tol, or "
            "--init moments), or items here go together, which a DPP cannot express."
        )
    return ""


RECOMMENDATION = ("score>", "probability>")
MEANING = "score: P(basket with the item) / P(basket); probability: that a set which holds the basket holds the item"


def recommend_tables(report: Report) -> Iterator[RenderableType]:
    rows = [(shown(each["item"]), *_scores(each)) for each in report["recommendations"]]
    yield grid(f"To add to: {listed(report['basket'])}", ["item", *RECOMMENDATION], rows)
    yield from notes(MEANING, report["note"])


def recommend_many_tables(report: Report) -> Iterator[RenderableType]:
    rows = []
    for each in report["baskets"]:
        lines = [(shown(found["item"]), *_scores(found)) for found in each["recommendations"]]
        lines = lines or [(f"({each['note'] or 'nothing'})", "", "")]
        first = (str(each["number"]), listed(each["basket"]))
        rows += [(*(first if line is lines[0] else ("", "")), *line) for line in lines]
    yield grid("To add to each basket", ["basket>", "holds", "suggested", *RECOMMENDATION], rows)
    yield from notes(MEANING)


def _scores(found: Report) -> tuple[str, str]:
    return chance(found["score"]), chance(found["probability"])


def selection_tables(report: Report) -> Iterator[RenderableType]:
    rows = [
        (str(place), f"{shown(each['item'])}{' (given)' if each['given'] else ''}", chance(each["gain"]))
        for place, each in enumerate(report["items"], start=1)
    ]
    yield grid("Diverse set", [">", "item", "factor>"], rows)
    yield from notes(
        "factor: what adding the item multiplies the probability by",
        f"log-probability of the set: {number(report['log_prob'])}",
        report["note"],
    )


def sample_tables(report: Report) -> Iterator[RenderableType]:
    rows = [(str(row), str(len(each)), listed(each)) for row, each in enumerate(report["samples"])]
    size = "" if report["k"] is None else f" of {report['k']} items"
    yield grid(f"{report['n']:,} sets{size}, seed {report['seed']}", ["set>", "size>", "items"], rows)


def demo_tables(report: Report) -> Iterator[RenderableType]:
    yield grid(
        f"{report['n_train']:,} generated registries ({report['category']}, {report['n_items']} items), "
        f"{report['n_test']:,} held out: mean log-likelihood a registry",
        ["model", "train>", "test>", "EM gain\ntrain>", "EM gain\ntest>", "steps>", "seconds>"],
        [_model(each) for each in report["models"]],
    )
    infinite = any(math.isinf(each["test"]) for each in report["models"])
    yield from notes(
        report["comparison"], "-inf: some registry has probability zero under that model." if infinite else ""
    )
    both = zip_longest(report["suggestions"]["popularity"], report["suggestions"]["em"])
    yield grid(
        f"Suggested next to a registry that holds {shown(report['held'])} (* is again a {report['kind']})",
        ["by popularity", "chance>", f"by the DPP of EM, to {report['models'][-1]['tol']:.0e}", "chance>"],
        [tuple(cell for each in pair for cell in _suggestion(each)) for pair in both],
    )
    yield from notes(report["sentence"])


def _model(each: Report) -> tuple[str, ...]:
    iterations = "" if each["n_iter"] is None else str(each["n_iter"])
    seconds = "" if each["seconds"] is None else number(each["seconds"], 2)
    gains = ["" if each["model"] == "EM" else percent(each[f"em_gain_{part}_percent"]) for part in ("train", "test")]
    name = each["model"] if each["tol"] is None else f"{each['model']}, to {each['tol']:.0e}"
    return (name, number(each["train"]), number(each["test"]), *gains, iterations, seconds)


def _suggestion(each: Report | None) -> tuple[str, str]:
    if each is None:
        return "", ""
    return f"{shown(each['item'])}{' *' if each['same_kind'] else ''}", chance(each["probability"])


def reproduction_tables(report: Report) -> Iterator[RenderableType]:
    from dpplearn.experiments.report.sections import GAIN_COLUMNS, gain_lines

    about = report["about"]
    yield grid(
        f"The paper's claims on {about['data']} registries ({about['trials']:,} trials, seed {about['seed']})",
        ["claim", "verdict"],
        [(each["paper"], each["verdict"]) for each in report["claims"]],
    )
    for name, title in (("wishart", "Wishart start, all data"), ("moments", "Moments start, all data")):
        table = report["tables"][name]
        if table is not None:
            yield grid(
                f"{title}: EM's gain over K-Ascent in test log-likelihood, median [quartiles]",
                GAIN_COLUMNS[:5],
                [line[:5] for line in gain_lines(table)],
            )
    yield from notes(
        f"report: {shown(report['report'])}, with {len(report['figures'])} figures as files beside it",
        f"results: {shown(report['results'])}, one row a trial; --from draws the report again",
    )

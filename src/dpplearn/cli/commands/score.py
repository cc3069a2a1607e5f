"""dpplearn score and compare: how well models predict, beside baselines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import dpplearn
from dpplearn.cli.commands.fit import prior_strength
from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import (
    AsJson,
    BasketColumn,
    Data,
    Format,
    ItemColumn,
    Model,
    Quiet,
    Reader,
    WeightColumn,
    one_of,
)
from dpplearn.cli.output import Report, busy, wants_progress, write
from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError
from dpplearn.learners import LEARNERS
from dpplearn.learners.starts import INITIALISERS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dpplearn.evaluation.result import Evaluation
    from dpplearn.models.dpp import DPP

MEASURING = "Measuring"

Against = Annotated[
    list[Path] | None,
    typer.Option("--against", metavar="MODEL", help="Another model to compare with; repeat for more."),
]
Train = Annotated[
    str | None,
    typer.Option(
        "--train",
        metavar="FILE",
        help="Baskets that the baselines learn from; by default those MODEL was learned from.",
    ),
]
Each = Annotated[bool, typer.Option("--each", help="Print the log-likelihood of every basket, too.")]
Nonempty = Annotated[
    bool,
    typer.Option("--nonempty", rich_help_panel=MEASURING, help="Log-likelihoods given that a basket is not empty."),
]
Lengths = Annotated[
    list[int] | None,
    typer.Option(
        "-k", min=1, rich_help_panel=MEASURING, help="Lengths of lists; repeat for more. By default 5, 10 and 20."
    ),
]
FixedSeed = Annotated[
    int,
    typer.Option("--seed", min=0, rich_help_panel=MEASURING, help="Seed of what is held out and of all other draws."),
]
Resamples = Annotated[int, typer.Option(min=1, rich_help_panel=MEASURING, help="Resamples of the bootstrap.")]


def score(
    model: Model,
    data: Data,
    against: Against = None,
    train: Train = None,
    each: Each = False,
    nonempty: Nonempty = False,
    k: Lengths = None,
    seed: FixedSeed = 0,
    resamples: Resamples = 1000,
    format: Format = "auto",
    basket: BasketColumn = "basket",
    item: ItemColumn = "item",
    weight: WeightColumn = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """How well a model predicts baskets: likelihood, next items, calibration and diversity, beside baselines."""
    from dpplearn.evaluation.evaluation import KS, evaluate

    dpps = _loaded([model, *(against or [])])
    first = next(iter(dpps.values()))
    reader, show = Reader(format, basket, item, weight), wants_progress(quiet)
    with busy(f"reading {data}", show):
        baskets = reader.read(data).over(first.catalogue)
        learned_from = None if train is None else _training(reader, train, first)
    found = evaluate(
        dpps, baskets, train=learned_from, nonempty=nonempty, k=k or KS, rng=seed, resamples=resamples, progress=show
    )
    where = {"model": str(model), "against": list(map(str, against or [])), "data": data, "seed": seed}
    report = {**where, **_headline(found), **found.to_dict()}
    if each:
        report["each"] = _each(baskets, found)
    write(report, score_tables, as_json)


def _loaded(paths: Sequence[Path]) -> dict[str, DPP]:
    """A single model is called so; several, by their files."""
    from dpplearn.evaluation.evaluation import ONLY

    if len(paths) == 1:
        return {ONLY: dpplearn.load(paths[0])}
    stems = [path.stem for path in paths]
    names = [stem if stems.count(stem) == 1 else str(path) for stem, path in zip(stems, paths, strict=True)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{twice} is named twice; compare different models")
    return {name: dpplearn.load(path) for name, path in zip(names, paths, strict=True)}


def _training(reader: Reader, path: str, dpp: DPP) -> Baskets:
    try:
        return reader.read(path).over(dpp.catalogue)
    except InputError as error:
        raise InputError(f"--train {path}: {error}") from None


def _headline(found: Evaluation) -> Report:
    """Of the first model, beside independent items."""
    from dpplearn.evaluation.baselines import INDEPENDENT

    name = found.models[0]
    mean, baseline = found.estimate(name).value, found.estimate(INDEPENDENT).value
    return {
        "log_likelihood": mean,
        "baseline": INDEPENDENT,
        "baseline_log_likelihood": baseline,
        "gain": found.difference(name, INDEPENDENT).value,
    }


def _each(baskets: Baskets, found: Evaluation) -> list[Report]:
    values = found.outcomes[found.models[0]]["log_likelihood"]
    rows = zip(baskets, baskets.weights.tolist(), values.tolist(), strict=True)
    return [
        {"basket": number, "items": list(items), "weight": weight, "log_likelihood": value}
        for number, (items, weight, value) in enumerate(rows)
    ]


def score_tables(report: Report) -> Iterator[RenderableType]:
    from dpplearn.cli.tables import facts, grid, listed, number, shown

    if "each" in report:
        yield grid(
            "Log-likelihood of each basket",
            ["basket>", "weight>", "log-likelihood>", "items"],
            [
                (str(each["basket"]), f"{each['weight']:g}", number(each["log_likelihood"]), listed(each["items"]))
                for each in report["each"]
            ],
        )
    first = report["rows"][0]
    rows = [
        ("model", shown(report["model"])),
        *(("against", shown(other)) for other in report["against"]),
        ("data", f"{shown(report['data'])}: {report['n_baskets']:,} baskets of total weight {report['weight']:,g}"),
        ("seed", str(report["seed"])),
        ("baskets of probability zero", f"{first['n_impossible']:,}"),
    ]
    if first["n_impossible"]:
        rows.append(("mean of the other baskets", number(first["log_likelihood_of_possible"])))
    yield facts("Score", rows)
    yield from evaluation_tables(report)


def evaluation_tables(report: Report) -> Iterator[RenderableType]:
    from dpplearn.cli.tables import grid, notes, shown
    from dpplearn.evaluation.text import remarks, tables

    for table in tables(report):
        yield grid(table.title, table.columns, [tuple(map(shown, row)) for row in table.rows])
    yield from notes(*remarks(report))


Learners = Annotated[
    list[str] | None,
    typer.Option(
        "--learner",
        metavar="|".join(LEARNERS),
        callback=lambda values: [one_of(LEARNERS)(value) for value in values or []],
        help="A learner to compare; repeat for more. By default auto.",
    ),
]
Inits = Annotated[
    list[str] | None,
    typer.Option(
        "--init",
        metavar="|".join(INITIALISERS),
        callback=lambda values: [one_of(INITIALISERS)(value) for value in values or []],
        help="A start to compare; repeat for more. By default moments.",
    ),
]
Priors = Annotated[
    list[str] | None,
    typer.Option(
        "--prior", metavar="auto|STRENGTH", help="A prior to compare; repeat for more. By default that of the learner."
    ),
]
Folds = Annotated[int, typer.Option(min=2, help="How many parts; each is tested by models of the others.")]


def compare(
    data: Data,
    learner: Learners = None,
    init: Inits = None,
    prior: Priors = None,
    folds: Folds = 5,
    nonempty: Nonempty = False,
    k: Lengths = None,
    seed: FixedSeed = 0,
    resamples: Resamples = 1000,
    format: Format = "auto",
    basket: BasketColumn = "basket",
    item: ItemColumn = "item",
    weight: WeightColumn = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare ways of learning from the same baskets, all combinations, by cross-validation and beside baselines."""
    from dpplearn.evaluation.cross_validation import cross_validate
    from dpplearn.evaluation.evaluation import KS

    options = combinations({"learner": learner, "init": init, "prior": list(map(prior_strength, prior or []))})
    show = wants_progress(quiet)
    with busy(f"reading {data}", show):
        baskets = Reader(format, basket, item, weight).read(data)
    found = cross_validate(
        baskets, options, folds=folds, nonempty=nonempty, k=k or KS, rng=seed, resamples=resamples, progress=show
    )
    where = {"data": data, "folds": folds, "seed": seed, "models": options}
    write({**where, **found.to_dict()}, compare_tables, as_json)


def combinations(choices: Mapping[str, Sequence[Any] | None]) -> dict[str, dict[str, Any]]:
    """Options of every model by its name: what was chosen for it. Choices that were not made are left to `fit`."""
    made = {name: list(dict.fromkeys(values)) for name, values in choices.items() if values}
    models = {}
    for values in product(*made.values()):
        options = dict(zip(made, values, strict=True))
        words = (_word(name, value) for name, value in options.items())
        models[", ".join(words) or "auto"] = options
    return models


def _word(option: str, value: float | str) -> str:
    text = value if isinstance(value, str) else f"{value:g}"
    return f"prior {text}" if option == "prior" else text


def compare_tables(report: Report) -> Iterator[RenderableType]:
    from dpplearn.cli.tables import facts, shown

    rows = [
        ("data", f"{shown(report['data'])}: {report['n_baskets']:,} baskets of total weight {report['weight']:,g}"),
        ("cross-validation", f"{report['folds']} folds, seed {report['seed']}"),
    ]
    yield facts("Comparison", rows)
    yield from evaluation_tables(report)

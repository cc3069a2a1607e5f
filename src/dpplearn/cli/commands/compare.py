"""dpplearn compare: cross-validate kinds of models, or learners, on the same baskets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated, Any

import typer

from dpplearn.cli.commands.score import AllBaskets, FixedSeed, Lengths, described, evaluation_tables
from dpplearn.cli.errors import UsageError
from dpplearn.cli.learning import parse_shrinkage
from dpplearn.cli.options import (
    AsJson,
    BasketColumn,
    Before,
    Data,
    Format,
    ItemColumn,
    MinCount,
    OnlyItems,
    Quiet,
    Reader,
    Since,
    TimeColumn,
    TopItems,
    WeightColumn,
    one_of,
)
from dpplearn.cli.output import busy, show, wants_progress, write_json
from dpplearn.learners.starts import INITIALISERS
from dpplearn.learners.symmetric.table import LEARNERS
from dpplearn.utils.text import Facts, listed

MIXTURE = "mixture"
Learners = Annotated[
    list[str] | None,
    typer.Option(
        "--learner",
        metavar="|".join((MIXTURE, *LEARNERS)),
        callback=lambda values: [one_of((MIXTURE, *LEARNERS))(value) for value in values or []],
        help="A learner to compare; repeat for more. Without --learner, --init and --shrinkage, compare four models.",
    ),
]
Inits = Annotated[
    list[str] | None,
    typer.Option(
        "--init",
        metavar="|".join(INITIALISERS),
        callback=lambda values: [one_of(INITIALISERS)(value) for value in values or []],
        help="An initialisation to compare; repeat for more. Default moments.",
    ),
]
Shrinkages = Annotated[
    list[float] | None,
    typer.Option(
        "--shrinkage",
        metavar="auto|NUMBER",
        parser=parse_shrinkage,
        help="A shrinkage to compare; repeat for more. By default that of the learner.",
    ),
]
# In addition to independent items, which are always a baseline.
KINDS: Mapping[str, Mapping[str, Any]] = {
    "symmetric DPP": {"model": "dpp"},
    "nonsymmetric DPP": {"segments": 1},
    "segments alone": {"attraction": False, "rank": 0},
    "mixture": {},
}

Folds = Annotated[int, typer.Option(min=2, help="Number of folds; each is tested by models fitted to the others.")]


def compare(
    data: Data,
    learner: Learners = None,
    init: Inits = None,
    shrinkage: Shrinkages = None,
    folds: Folds = 5,
    k: Lengths = None,
    seed: FixedSeed = 0,
    all_baskets: AllBaskets = False,
    format: Format = "auto",
    basket: BasketColumn = "basket",
    item: ItemColumn = "item",
    weight: WeightColumn = None,
    time: TimeColumn = None,
    since: Since = None,
    before: Before = None,
    min_count: MinCount = None,
    top_items: TopItems = None,
    only: OnlyItems = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare models, learners and baselines by cross-validation."""
    from dpplearn.evaluation.evaluation import KS, MAX_BASKETS, cross_validate

    check_mixture(learner or [], {"--init": init, "--shrinkage": shrinkage})
    choices = {"learner": learner, "init": init, "shrinkage": shrinkage}
    options = combinations(choices) if any(choices.values()) else {name: dict(each) for name, each in KINDS.items()}
    progress = wants_progress(quiet)
    with busy(f"reading {data}", progress):
        baskets = Reader(format, basket, item, weight, "error", min_count, top_items, only, time, since, before).read(
            data
        )
    most = None if all_baskets else MAX_BASKETS
    found = cross_validate(baskets, options, folds=folds, k=k or KS, max_baskets=most, rng=seed, progress=progress)
    if as_json:
        write_json({"data": data, "folds": folds, "seed": seed, "models": options, **found.to_dict()})
        return
    facts = [("data", described(data, found)), ("cross-validation", f"{folds} folds, seed {seed}")]
    show([Facts("Comparison", facts), *evaluation_tables(found)])


def check_mixture(learners: Sequence[str], of_dpps: Mapping[str, object]) -> None:
    given = [option for option, values in of_dpps.items() if values]
    if MIXTURE in learners and given:
        verb = "is" if len(given) == 1 else "are"
        raise UsageError(f"{listed(given)} {verb} only valid for DPPs, not for --learner {MIXTURE}")


def combinations(choices: Mapping[str, Sequence[Any] | None]) -> dict[str, dict[str, Any]]:
    """Return the options of every combination by name. Options that were not given have the defaults of `fit`."""
    made = {name: list(dict.fromkeys(values)) for name, values in choices.items() if values}
    models = {}
    for values in product(*made.values()):
        options = dict(zip(made, values, strict=True))
        words = (_word(name, value) for name, value in options.items())
        models[", ".join(words)] = {"model": MIXTURE} if options.get("learner") == MIXTURE else options
    return models


def _word(option: str, value: float | str) -> str:
    text = value if isinstance(value, str) else f"{value:g}"
    return f"shrinkage {text}" if option == "shrinkage" else text

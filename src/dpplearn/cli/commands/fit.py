"""dpplearn fit: learn a model from baskets and save it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.commands.fit_data import Source, check_holdout, check_targets
from dpplearn.cli.commands.fit_report import fit_report, fit_tables
from dpplearn.cli.errors import INTERRUPTS, UsageError, complain
from dpplearn.cli.options import (
    LEARNING,
    READING,
    AsJson,
    BasketColumn,
    ClusterAddress,
    Data,
    Format,
    ItemColumn,
    ModelOutput,
    Quiet,
    Reader,
    Seed,
    Threads,
    WeightColumn,
    one_of,
    prior_strength,
    some_seed,
)
from dpplearn.cli.output import busy, wants_progress, write
from dpplearn.errors import InputError
from dpplearn.fitting.fit import asked_for, fit_with, model_of
from dpplearn.fitting.options import MODELS, MOST_DENSE, MOST_RESTARTS, MOST_SEGMENTS
from dpplearn.learners.loop import Stop
from dpplearn.learners.registry import FACTORED, LEARNERS
from dpplearn.learners.starts import INITIALISERS
from dpplearn.models.model import SetModel
from dpplearn.tools.words import listed

USUAL = LEARNERS[MODELS["mixture"]]
MIXTURE, DPPS, REGULARISING = "Learning a mixture", "Learning a DPP", "Little data"
NAMES = {"mixture": "a mixture", "dpp": "a DPP"}
Given = Mapping[str, object]  # options and their values, None where they were not given


def positive(value: float | None) -> float | None:
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value:g} is not above 0")
    return value


Kind = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="|".join(MODELS),
        callback=one_of(MODELS),
        rich_help_panel=LEARNING,
        help="mixture: segments of people, and items that go together or stand in for each other; it predicts best. "
        "dpp: items stand in for each other. By default a mixture, or a dpp where --learner, --init, --prior or "
        "--start ask for one.",
    ),
]
Segments = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_SEGMENTS,
        rich_help_panel=MIXTURE,
        help=f"How many segments; by default {USUAL.usual_segments}, and {FACTORED.usual_segments} where there are "
        f"more than {MOST_DENSE:,} items.",
    ),
]
Rank = Annotated[
    int | None,
    typer.Option(
        min=0,
        rich_help_panel=MIXTURE,
        help=f"Of how many columns the part is by which items stand in for each other; by default "
        f"{USUAL.usual_rank}, and {FACTORED.usual_rank} where there are more than {MOST_DENSE:,} items.",
    ),
]
NoAttraction = Annotated[
    bool,
    typer.Option("--no-attraction", rich_help_panel=MIXTURE, help="Items of a segment do not attract each other."),
]
DPP_LEARNERS = [name for name, each in LEARNERS.items() if each.model == "dpp"]
Learner = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(DPP_LEARNERS),
        callback=one_of(DPP_LEARNERS),
        rich_help_panel=DPPS,
        help="How a DPP is learned; by default auto.",
    ),
]
Init = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(INITIALISERS),
        callback=one_of(INITIALISERS),
        rich_help_panel=DPPS,
        help="Where a DPP starts; by default moments.",
    ),
]
Restarts = Annotated[
    int,
    typer.Option(
        min=1,
        max=MOST_RESTARTS,
        rich_help_panel=LEARNING,
        help="How many runs, each from a start of its own; the best is kept.",
    ),
]
Start = Annotated[
    Path | None,
    typer.Option(
        metavar="MODEL", rich_help_panel=LEARNING, help="Start the first run from this model, not from --init."
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        "--tol",
        min=0,
        rich_help_panel=LEARNING,
        help="Stop when no more than this is still to be gained, in nats per basket (em, k-ascent: when the relative "
        f"change is smaller); by default {LEARNERS[MODELS['mixture']].usual_tol:g}, and "
        f"{LEARNERS[MODELS['dpp']].usual_tol:g} for a DPP.",
    ),
]
MaxIter = Annotated[int, typer.Option(min=0, rich_help_panel=LEARNING, help="Limit on the iterations of a run.")]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        callback=positive,
        rich_help_panel=LEARNING,
        help="Limit on the time of the whole fit; the best model so far is saved.",
    ),
]
Prior = Annotated[
    float | None,
    typer.Option(
        metavar="auto|STRENGTH",
        parser=prior_strength,
        rich_help_panel=DPPS,
        help="How much independent items count beside the data: 0 not at all; inf: they alone; auto: as "
        "much as cross-validation finds best. By default auto for the learner auto, and 0 for the others.",
    ),
]
ValidationShare = Annotated[
    float | None,
    typer.Option(
        "--validation",
        metavar="SHARE",
        min=0,
        max=0.99,
        rich_help_panel=REGULARISING,
        help="Set this share of the baskets aside, and stop when they become no likelier.",
    ),
]
Patience = Annotated[
    int | None,
    typer.Option(
        min=1,
        rich_help_panel=REGULARISING,
        help="For how many iterations the baskets set aside may become no likelier; by default 10.",
    ),
]
Nonempty = Annotated[
    bool | None,
    typer.Option(
        "--nonempty/--may-be-empty",
        rich_help_panel=LEARNING,
        help="Whether baskets cannot be empty, so that all that the model says is given that they are not. By default "
        "they cannot where none is; but of a DPP's learners auto alone heeds that, and lbfgs and adam can be told.",
    ),
]
Checkpoint = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Save the state of learning to this file as it goes.")
]
Resume = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Go on from this checkpoint, in a call that is otherwise the same; it is kept up to date."
    ),
]
Test = Annotated[str | None, typer.Option(metavar="FILE", help="Baskets to report the log-likelihood of, too.")]
Holdout = Annotated[
    float | None, typer.Option(metavar="FRACTION", help="Hold this share of DATA out of learning, to report on.")
]
InParts = Annotated[
    bool,
    typer.Option(
        "--parts",
        rich_help_panel=READING,
        help="Every file of DATA is a part of the baskets, and what is learned is the same to the last bit as with "
        "--cluster, which implies this.",
    ),
]


def fit(
    data: Data,
    output: ModelOutput,
    model: Kind = None,
    segments: Segments = None,
    rank: Rank = None,
    no_attraction: NoAttraction = False,
    learner: Learner = None,
    init: Init = None,
    restarts: Restarts = 1,
    start: Start = None,
    seed: Seed = None,
    tol: Tolerance = None,
    max_iter: MaxIter = 1000,
    max_seconds: MaxSeconds = None,
    threads: Threads = None,
    prior: Prior = None,
    validation: ValidationShare = None,
    patience: Patience = None,
    nonempty: Nonempty = None,
    checkpoint: Checkpoint = None,
    resume: Resume = None,
    test: Test = None,
    holdout: Holdout = None,
    parts: InParts = False,
    cluster: ClusterAddress = None,
    format: Format = "auto",
    basket: BasketColumn = "basket",
    item: ItemColumn = "item",
    weight: WeightColumn = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Learn a model from baskets and save it. Ctrl-C or SIGTERM saves the best model so far, if there is one yet."""
    in_parts = parts or cluster is not None
    check_holdout(holdout, test, seed, checkpoint or resume, in_parts=in_parts)
    check_targets(output, checkpoint, resume, (data, test, start))
    progress = wants_progress(quiet)
    given = dpplearn.load(start) if start is not None else None
    kind = {"model": model, "segments": segments, "rank": rank, "attraction": not no_attraction}
    of_dpp = {"learner": learner, "init": init, "prior": prior}
    of_mixture = {"--segments": segments, "--rank": rank, "--no-attraction": no_attraction or None}
    options_of_dpp = {"--learner": learner, "--init": init, "--prior": prior}
    check_kind(model, start, of_mixture, options_of_dpp, model_of(given))
    check_law(learner, nonempty)
    runs = {"restarts": restarts, "tol": tol, "max_iter": max_iter, "max_seconds": max_seconds, "threads": threads}
    options = asked_for(
        given,
        **kind,
        **of_dpp,
        **runs,
        validation=validation,
        patience=patience,
        nonempty="auto" if nonempty is None else nonempty,
        progress=progress,
        checkpoint=checkpoint or resume,
        resume=resume,
    )
    reported = seed if resume else some_seed(seed)  # the random starts of a fit that goes on come from the file
    seed = some_seed(reported)
    source = Source(Reader(format, basket, item, weight), data, test, holdout, seed, in_parts, cluster)
    with ExitStack() as ending:
        with busy(f"reading {data}", progress):
            train, held_out = ending.enter_context(source.opened())
        result = fit_with(options, train, start=given, rng=seed)
        save_model(result.model, output, checkpoint or resume)
        files = {"model": str(output), "data": data, "test_data": test}
        report = fit_report(result, options, train, held_out, **files, seed=reported)
    write(report, fit_tables, as_json)
    leave_if_interrupted(result.stop, output)


def check_kind(model: str | None, start: Path | None, of_mixture: Given, of_dpp: Given, of_start: str | None) -> None:
    """That all options ask for one kind of model; `fit` would say so in the words of Python."""
    asked = {f"--model {model}": model, **dict.fromkeys(_given(of_dpp), "dpp"), f"--start {start}": of_start}
    wanted = {option: kind for option, kind in asked.items() if kind is not None}
    kind = next(iter(wanted.values()), "mixture")
    others = [option for option, other in wanted.items() if other != kind]
    others += _given(of_mixture) if kind == "dpp" else []
    if others:
        one, other = (NAMES[kind], NAMES["mixture" if kind == "dpp" else "dpp"])
        verb = "is" if len(others) == 1 else "are"
        raise UsageError(f"{listed(others)} {verb} for {other}, and {next(iter(wanted))} for {one}; leave out either")


def _given(options: Given) -> list[str]:
    return [name for name, value in options.items() if value is not None]


def check_law(learner: str | None, nonempty: bool | None) -> None:
    if learner is not None and nonempty and not LEARNERS[learner].learns_nonempty:
        able = [name for name in DPP_LEARNERS if LEARNERS[name].learns_nonempty]
        raise UsageError(f"--nonempty is not for --learner {learner}; use one of {', '.join(able)}")


def save_model(model: SetModel, output: Path, state: Path | None) -> None:
    """Whatever signal comes. If it fails, as on a full disk, say where else the work of perhaps hours is."""
    try:
        with INTERRUPTS.held():
            model.save(output)
    except InputError as error:
        if state is None or not state.is_file():
            raise
        raise InputError(
            f"{error}; what was learned is kept in {state}: make room, then repeat with --resume"
        ) from None


def leave_if_interrupted(stop: Stop, output: Path) -> None:
    """With the exit code of the signal."""
    if stop is Stop.INTERRUPTED or INTERRUPTS.received is not None:
        complain("interrupted", f"the best model so far was saved to {output}")
        raise typer.Exit(INTERRUPTS.exit_code)

"""The command line: parse, call, print."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import dpplearn
from dpplearn.cli.commands import describe as describing
from dpplearn.cli.commands import diagnose as diagnosing
from dpplearn.cli.commands import export as kernels
from dpplearn.cli.commands import plot as plotting
from dpplearn.cli.commands import reproduce_options as reproduction
from dpplearn.cli.commands import score as scoring
from dpplearn.cli.commands.fit import (
    Checkpoint,
    Holdout,
    Init,
    Learner,
    MaxIter,
    MaxSeconds,
    Nonempty,
    Output,
    Patience,
    Prior,
    Restarts,
    Resume,
    Start,
    Test,
    Threads,
    Tolerance,
    ValidationShare,
    check_holdout,
    check_targets,
    save_model,
    train_and_test,
)
from dpplearn.cli.errors import UsageError, complain, exit_code, run_typer, show_warning
from dpplearn.cli.options import (
    AsJson,
    BasketColumn,
    Data,
    Format,
    ItemColumn,
    Items,
    Model,
    Quiet,
    Reader,
    Seed,
    WeightColumn,
    some_seed,
)
from dpplearn.cli.output import Report, busy, counted, wants_progress, write, write_json
from dpplearn.cli.process import INTERRUPTS, open_streams
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Label
from dpplearn.errors import InputError, InputWarning, whole_number
from dpplearn.learners.loop import Stop
from dpplearn.models.dpp import DPP

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Learn determinantal point processes from baskets, and use them.",
    epilog="Exit codes: 0 fine; 1 bad data, model or item; 2 wrong usage; 130 ended by Ctrl-C; 143 ended by SIGTERM. "
    'With --json, standard output holds strict JSON alone: minus infinity is the string "-inf", and a number that does '
    "not exist is null.",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"dpplearn {dpplearn.__version__}")
        raise typer.Exit


@app.callback(no_args_is_help=False)
def _dpplearn(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    category: Annotated[
        str, typer.Option(help="A category of generated registries, such as safety or feeding.")
    ] = "safety",
    n: Annotated[int, typer.Option("--n", "-n", min=10, help="How many registries to generate.")] = 5000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the registries, the split and the start.")] = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Learn generated registries, compare with independent items, and suggest what to add."""
    from dpplearn.cli.commands.demo import run_demo
    from dpplearn.cli.reports import demo_report
    from dpplearn.cli.tables import demo_tables

    found = run_demo(category, n, seed, progress=wants_progress(quiet))
    write(demo_report(found), demo_tables, as_json)


@app.command()
def fit(
    data: Data,
    output: Output,
    learner: Learner = "auto",
    init: Init = "moments",
    restarts: Restarts = 1,
    start: Start = None,
    seed: Seed = None,
    tol: Tolerance = 1e-4,
    max_iter: MaxIter = 1000,
    max_seconds: MaxSeconds = None,
    threads: Threads = None,
    prior: Prior = None,
    validation: ValidationShare = 0.0,
    patience: Patience = 10,
    nonempty: Nonempty = False,
    checkpoint: Checkpoint = None,
    resume: Resume = None,
    test: Test = None,
    holdout: Holdout = None,
    format: Format = "auto",
    basket: BasketColumn = "basket",
    item: ItemColumn = "item",
    weight: WeightColumn = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Learn a model from baskets and save it. Ctrl-C or SIGTERM saves the best model so far, if there is one yet."""
    from dpplearn.cli.reports import fit_report
    from dpplearn.cli.tables import fit_tables

    check_holdout(holdout, test, seed, checkpoint or resume)
    check_targets(output, checkpoint, resume, (data, test, start))
    show = wants_progress(quiet)
    reported = seed if resume else some_seed(seed)  # the random starts of a fit that goes on come from the file
    seed = some_seed(reported)
    reader = Reader(format, basket, item, weight)
    with busy(f"reading {data}", show):
        train, held_out = train_and_test(reader, data, test, holdout, seed)
    result = dpplearn.fit(
        train,
        learner,
        init,
        start=dpplearn.load(start) if start is not None else None,
        restarts=restarts,
        rng=seed,
        tol=tol,
        max_iter=max_iter,
        max_seconds=max_seconds,
        threads=threads,
        prior=prior,
        validation=validation,
        patience=patience,
        nonempty=nonempty,
        progress=show,
        checkpoint=checkpoint or resume,
        resume=resume,
    )
    with INTERRUPTS.held():
        save_model(result.dpp, output, checkpoint or resume)
    report = fit_report(result, train, held_out, model=str(output), data=data, test_data=test, seed=reported)
    write(report, fit_tables, as_json)
    if result.stop is Stop.INTERRUPTED or INTERRUPTS.received is not None:
        complain("interrupted", f"the best model so far was saved to {output}")
        raise typer.Exit(INTERRUPTS.exit_code)


@app.command()
def recommend(
    model: Model,
    items: Items = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many to recommend.")] = 5,
    allow: Annotated[
        list[str] | None, typer.Option(help="Recommend this item; repeat for more. By default all.")
    ] = None,
    deny: Annotated[list[str] | None, typer.Option(help="Never recommend this item; repeat for more.")] = None,
    baskets: Annotated[
        str | None, typer.Option(help="A file of baskets, instead of ITEMs; with --json, one line of JSON a basket.")
    ] = None,
    format: Format = "auto",
    basket: BasketColumn = "basket",
    item: ItemColumn = "item",
    weight: WeightColumn = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """What to add to a basket: the items that raise its probability most."""
    from dpplearn.cli.reports import recommend_report
    from dpplearn.cli.tables import recommend_tables

    if baskets is not None and items:
        raise UsageError("give ITEMs or --baskets FILE, not both")
    dpp = dpplearn.load(model)
    if baskets is not None:
        many = Reader(format, basket, item, weight).read(baskets).over(dpp.catalogue)
        _write_many(_recommend_many(dpp, many, k, allow, deny or (), wants_progress(quiet)), as_json)
        return
    held = dpp.catalogue.select(dpp.catalogue.positions(items or []))
    found = dpp.recommend(held, k, allow=allow, deny=deny or ())
    report = {"model": str(model), **recommend_report(held, found, k)}
    write(report, recommend_tables, as_json)


def _recommend_many(
    dpp: DPP, baskets: Baskets, k: int, allow: Sequence[Label] | None, deny: Sequence[Label], show: bool
) -> list[Report]:
    """A basket that cannot occur gets a note instead of recommendations, and the others get theirs."""
    from dpplearn.cli.reports import recommend_report

    dpp.catalogue.positions([*(allow or ())]), dpp.catalogue.positions(deny)
    reports = []
    with counted("recommending", len(baskets), show) as done:
        for number, basket in enumerate(baskets):
            try:
                report = recommend_report(basket, dpp.recommend(basket, k, allow=allow, deny=deny), k)
            except InputError as error:
                report = recommend_report(basket, [], k, note=str(error))
            reports.append({"number": number, **report})
            done(1)
    return reports


def _write_many(reports: list[Report], as_json: bool) -> None:
    from dpplearn.cli.tables import recommend_many_tables

    if as_json:
        for report in reports:
            write_json(report, lines=True)
    else:
        write({"baskets": reports}, recommend_many_tables, as_json=False)


@app.command()
def complete(
    model: Model,
    items: Items = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Size of the whole set, the ITEMs included.")] = 10,
    as_json: AsJson = False,
) -> None:
    """A diverse set that contains the items given."""
    _write_selection(model, items or [], k, as_json)


@app.command("map")
def map_(
    model: Model,
    k: Annotated[
        int | None, typer.Option("-k", min=1, help="Size; by default until no item raises the probability.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """A set of high probability, found greedily."""
    _write_selection(model, [], k, as_json)


def _write_selection(model: Path, items: list[str], k: int | None, as_json: bool) -> None:
    from dpplearn.cli.reports import selection_report
    from dpplearn.cli.tables import selection_tables

    dpp = dpplearn.load(model)
    chosen = dpp.greedy_map(k) if k is None else dpp.complete(items, k)
    write({"model": str(model), **selection_report(dpp, items, chosen)}, selection_tables, as_json)


@app.command()
def sample(
    model: Model,
    n: Annotated[int, typer.Option("-n", min=1, help="How many sets.")] = 10,
    k: Annotated[int | None, typer.Option("-k", min=0, help="Items a set; by default as the model has it.")] = None,
    seed: Seed = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Sets drawn at random, exactly from the model."""
    from dpplearn.cli.reports import sample_report
    from dpplearn.cli.tables import sample_tables

    dpp = dpplearn.load(model)
    seed = some_seed(seed)
    sets = _draw(dpp, n, k, seed, wants_progress(quiet))
    write({"model": str(model), **sample_report(sets, k, seed)}, sample_tables, as_json)


def _draw(dpp: DPP, n: int, k: int | None, seed: int, show: bool) -> list[list[Label]]:
    """The sets that `dpp.sample(n, k, seed)` gives: parts of whole blocks take the same random numbers."""
    from dpplearn.kernels.symmetric.sampling import BLOCK

    n, part, rng = whole_number("n", n, 1), 100 * BLOCK, np.random.default_rng(seed)
    sets: list[list[Label]] = []
    with counted("drawing", n, show) as done:
        while len(sets) < n:
            size = min(part, n - len(sets))
            sets += dpp.sample(size, k, rng)
            done(size)
    return sets


@app.command()
def reproduce(
    data: reproduction.DataFolder = None,
    output: reproduction.Output = None,
    reference: reproduction.Reference = None,
    generated: reproduction.Generated = False,
    categories: reproduction.Categories = None,
    trials: reproduction.Trials = None,
    quick: reproduction.Quick = False,
    seed: reproduction.Seed = None,
    processes: reproduction.Processes = None,
    fresh: reproduction.Fresh = False,
    from_: reproduction.From = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run the paper's experiments on the original registries and write a report. Ctrl-C keeps finished trials."""
    from dpplearn.cli.commands import reproduce as experiments
    from dpplearn.cli.tables import reproduction_tables
    from dpplearn.experiments.report.page import check_installed, write_report

    check_installed()
    asked = experiments.Asked(data, reference, generated, categories, trials, quick, seed, processes, fresh)
    folder, results_file, results = experiments.obtain(asked, output, from_, wants_progress(quiet))
    with busy("drawing the report", wants_progress(quiet)):
        written = write_report(folder, results)
    write(experiments.reproduction_report(written, results, results_file), reproduction_tables, as_json)


app.command("diagnose")(diagnosing.diagnose)
app.command("describe")(describing.describe)
app.command("explain")(describing.explain)
app.command("score")(scoring.score)
app.command("compare")(scoring.compare)
app.command("plot")(plotting.plot)
app.command("export")(kernels.export)
app.command("import")(kernels.import_)


def main() -> int:
    """Run the program; the exit code."""
    open_streams()
    INTERRUPTS.listen()
    warnings.showwarning = show_warning
    warnings.simplefilter("always", InputWarning)
    return exit_code(lambda: run_typer(app, "dpplearn", sys.argv[1:] or ["--help"]))

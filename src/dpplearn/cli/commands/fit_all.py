"""dpplearn fit-all: a model for every category of prepared baskets, on a shelf."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dpplearn.cli.learning import Learning, with_learning
from dpplearn.cli.options import LEARNING, AsJson, ClusterAddress, Force, Quiet
from dpplearn.cli.output import Report, Shown, wants_progress, write
from dpplearn.errors import InputError
from dpplearn.pipeline.fit_all import fit_all as fit_categories
from dpplearn.pipeline.shelf import Shelf
from dpplearn.tools.tables import Facts, TextTable
from dpplearn.tools.threads import MOST_THREADS
from dpplearn.tools.words import count, number, shown, signed

MEANING = (
    "gain: log-likelihood per test basket minus that of independent items, in nats. rank: percentile rank of a "
    "held-out item, 100 for the first of all. loglik: mean log-likelihood per basket, in nats. vs last: loglik minus "
    "that of the last shelf's model, on the same baskets and the items that both models have."
)
ON_TRAINING = "* There is nothing to test on: measured on the baskets learned from, which flatters a model."

Folder = Annotated[Path, typer.Argument(metavar="PREPARED", help="A folder that dpplearn prepare wrote.")]
Output = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="FOLDER", help="The shelf to write; an old one is replaced at the end."),
]
FixedSeed = Annotated[int, typer.Option("--seed", min=0, rich_help_panel=LEARNING, help="Seed of the random numbers.")]
Processes = Annotated[
    int | None, typer.Option(min=1, max=MOST_THREADS, help="How many processes; by default one per core.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Learn all categories, also those that have not changed.")]
WarmStart = Annotated[
    bool, typer.Option("--warm-start", rich_help_panel=LEARNING, help="Start from the models that are on the shelf.")
]


@with_learning
def fit_all(
    prepared: Folder,
    output: Output,
    learning: Learning,
    warm_start: WarmStart = False,
    seed: FixedSeed = 0,
    processes: Processes = None,
    cluster: ClusterAddress = None,
    fresh: Fresh = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fit one model per category of prepared baskets.

    Categories whose data and options have not changed are skipped. An interrupted run continues. The previous models
    stay in place until the run has finished.
    """
    shelf = fit_categories(
        prepared,
        output,
        seed=seed,
        processes=processes,
        cluster=cluster,
        fresh=fresh,
        warm_start=warm_start,
        force=force,
        progress=wants_progress(quiet),
        **learning.checked(),
    )
    write(shelf_report(shelf, prepared), shelf_tables, as_json)
    if shelf.failed:
        some = f"{len(shelf.failed)} of {len({*shelf, *shelf.failed})} categories could not be learned"
        raise InputError(f"{some}: {'; '.join(f'{slug} ({why})' for slug, why in shelf.failed.items())}")


def shelf_report(shelf: Shelf, prepared: Path) -> Report:
    """The manifest, and what was learned just now."""
    left_out = {"kind", "format", "previous"}
    found = {name: value for name, value in shelf.manifest.items() if name not in left_out}
    return {"folder": str(shelf.folder), "prepared": str(prepared), "learned": list(shelf.learned), **found}


def shelf_tables(report: Report) -> Iterator[Shown]:
    learned, failed = set(report["learned"]), report["failed"]
    kept = len(report["categories"]) - len(learned) - sum(bool(each["old"]) for each in report["categories"])
    rows = [
        ("shelf", shown(report["folder"])),
        ("learned from", shown(report["prepared"])),
        ("learned", count(len(learned)) + (f", and {count(kept)} as they were: nothing changed" if kept else "")),
        ("seed", str(report["seed"])),
    ]
    yield Facts("Shelf", rows + ([("failed", count(len(failed)))] if failed else []))
    columns = ["category", "items>", "baskets>", "gain>", "rank>", "loglik>", "vs last>", "model"]
    yield TextTable("Models", MEANING, columns, [_row(each, learned) for each in report["categories"]])
    yield ON_TRAINING if any(each["result"]["on"] == "train" for each in report["categories"]) else ""
    yield from _notes(report)


def _row(category: Mapping[str, Any], learned: set[str]) -> tuple[str, ...]:
    result = category["result"]
    last = result["last"]
    model = "old" if category["old"] else "new" if category["slug"] in learned else "kept"
    return (
        shown(category["slug"]),
        count(category["n_items"]),
        count(category["n_baskets"]["train"]),
        signed(_float(result["gain"]), 3),
        number(_float(result["percentile_rank"]), 1),
        _figure(result["log_likelihood"]) + ("*" if result["on"] == "train" else ""),
        signed(_float(last["difference"]), 3) if last else "",
        model,
    )


def _notes(report: Report) -> Iterator[Shown]:
    on_shelf = {each["slug"] for each in report["categories"]}
    for each in report["failed"]:
        what = "its last model stays" if each["slug"] in on_shelf else "it is not on the shelf"
        yield f"{each['slug']} could not be learned, and {what}: {each['reason']}"
    for each in report["categories"]:
        for note in each["notes"] if each["slug"] in report["learned"] else ():
            yield f"{each['slug']}: {note}"


def _float(value: float | str | None) -> float | None:
    """A figure of a manifest, where minus infinity is a text."""
    return None if value is None else float(value)


def _figure(value: float | str | None) -> str:
    return number(_float(value), 3)

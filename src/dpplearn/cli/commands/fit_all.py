"""dpplearn fit-all: fit one model per category of prepared baskets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dpplearn.cli.learning import Learning
from dpplearn.cli.options import LEARNING, ClusterAddress, Display, Force
from dpplearn.cli.output import Report, Shown, write
from dpplearn.errors import InputError
from dpplearn.models.store import ModelStore
from dpplearn.pipeline.fit_all import fit_all as fit_categories
from dpplearn.utils.text import Facts, TextTable, count, number, shown, signed
from dpplearn.utils.threads import MOST_THREADS

MEANING = (
    "gain: log-likelihood per test basket minus that of independent items, in nats. rank: percentile rank of a "
    "held-out item, 100 for the first of all. loglik: mean log-likelihood per basket, in nats. vs last: loglik minus "
    "that of the model in the previous store, on the same baskets and the items that both models have."
)
ON_TRAINING = "* There is nothing to test on: measured on the baskets learned from, which flatters a model."

Folder = Annotated[Path, typer.Argument(metavar="PREPARED", help="A folder that dpplearn prepare wrote.")]
Output = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="FOLDER", help="Store folder to write; an old store is replaced at the end."
    ),
]
FixedSeed = Annotated[int, typer.Option("--seed", min=0, rich_help_panel=LEARNING, help="Seed of the random numbers.")]
Processes = Annotated[
    int | None, typer.Option(min=1, max=MOST_THREADS, help="How many processes; by default one per core.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Fit all categories, also those that have not changed.")]
WarmStart = Annotated[
    bool, typer.Option("--warm-start", rich_help_panel=LEARNING, help="Start from the models in the store.")
]


def fit_all(
    prepared: Folder,
    output: Output,
    learning: Learning,
    display: Display,
    warm_start: WarmStart = False,
    seed: FixedSeed = 0,
    processes: Processes = None,
    cluster: ClusterAddress = None,
    fresh: Fresh = False,
    force: Force = False,
) -> None:
    """Fit one model per category of prepared baskets.

    Categories whose data and options have not changed are skipped. An interrupted run continues. The previous models
    stay in place until the run has finished.
    """
    store = fit_categories(
        prepared,
        output,
        seed=seed,
        processes=processes,
        cluster=cluster,
        fresh=fresh,
        warm_start=warm_start,
        force=force,
        progress=display.progress,
        **learning.checked(),
    )
    write(store_report(store, prepared), store_tables, display.as_json)
    if store.failed:
        some = f"{len(store.failed)} of {len({*store, *store.failed})} categories could not be fitted"
        raise InputError(f"{some}: {'; '.join(f'{slug} ({why})' for slug, why in store.failed.items())}")


def store_report(store: ModelStore, prepared: Path) -> Report:
    """Return the manifest and the categories fitted by this run."""
    left_out = {"kind", "format", "previous"}
    found = {name: value for name, value in store.manifest.items() if name not in left_out}
    return {"folder": str(store.folder), "prepared": str(prepared), "fitted": list(store.fitted), **found}


def store_tables(report: Report) -> Iterator[Shown]:
    fitted, failed = set(report["fitted"]), report["failed"]
    kept = len(report["categories"]) - len(fitted) - sum(bool(each["old"]) for each in report["categories"])
    rows = [
        ("store", shown(report["folder"])),
        ("prepared data", shown(report["prepared"])),
        ("fitted", count(len(fitted)) + (f"; {count(kept)} unchanged" if kept else "")),
        ("seed", str(report["seed"])),
    ]
    yield Facts("Model store", rows + ([("failed", count(len(failed)))] if failed else []))
    columns = ["category", "items>", "baskets>", "gain>", "rank>", "loglik>", "vs last>", "model"]
    yield TextTable("Models", MEANING, columns, [_row(each, fitted) for each in report["categories"]])
    yield ON_TRAINING if any(each["result"]["on"] == "train" for each in report["categories"]) else ""
    yield from _notes(report)


def _row(category: Mapping[str, Any], fitted: set[str]) -> tuple[str, ...]:
    result = category["result"]
    last = result["last"]
    model = "old" if category["old"] else "new" if category["slug"] in fitted else "kept"
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
    stored = {each["slug"] for each in report["categories"]}
    for each in report["failed"]:
        what = "its previous model is kept" if each["slug"] in stored else "it has none"
        yield f"{each['slug']} could not be fitted; {what}: {each['reason']}"
    for each in report["categories"]:
        for note in each["notes"] if each["slug"] in report["fitted"] else ():
            yield f"{each['slug']}: {note}"


def _float(value: float | str | None) -> float | None:
    """A figure of a manifest, where minus infinity is a text."""
    return None if value is None else float(value)


def _figure(value: float | str | None) -> str:
    return number(_float(value), 3)

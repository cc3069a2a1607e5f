"""dpplearn plot: pictures of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import dpplearn
from dpplearn import plots
from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import (
    READING,
    AsJson,
    BasketColumn,
    Before,
    Force,
    Format,
    ItemColumn,
    Model,
    Quiet,
    Reader,
    Since,
    TimeColumn,
    Unknown,
    WeightColumn,
    check_target,
    one_of,
)
from dpplearn.cli.output import Report, Shown, busy, wants_progress, write
from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError, OutputExistsError
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import SetModel
from dpplearn.plots.figures import PICTURE, figure_format
from dpplearn.utils.text import Facts, listed, shown

if TYPE_CHECKING:
    from dpplearn.plots.style import Figure

ALL = "all"


class Asked(NamedTuple):
    """What to draw, and of what."""

    model: DPP | Mixture
    top: int | None
    baskets: Baskets | None


def _reliability(asked: Asked) -> Figure:
    assert asked.baskets is not None
    return plots.reliability_diagram(plots.reliability_of(asked.model, asked.baskets))


class Kind(NamedTuple):
    """How it is drawn, and of which models "all" draws it."""

    draw: Callable[[Any], Figure]
    of: tuple[type[SetModel], ...] = (DPP, Mixture)


KINDS: Mapping[str, Kind] = {
    "curve": Kind(lambda asked: plots.learning_curve(asked.model)),
    "lift": Kind(lambda asked: plots.lift(asked.model, asked.top)),
    "segments": Kind(lambda asked: plots.segments(asked.model, asked.top), (Mixture,)),
    "sizes": Kind(lambda asked: plots.sizes(asked.model)),
    "spectrum": Kind(lambda asked: plots.spectrum(asked.model), (DPP,)),
    "reliability": Kind(_reliability),
}
TAKES = {
    "--top": ("lift", "segments"),
    "--data": ("reliability",),
}


def plot(
    model: Model,
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            callback=one_of([*KINDS, ALL]),
            help="curve: likelihood while learning. lift: heat map of which items go together and which stand in for "
            "each other. segments: what each kind of people likes. sizes: of sets. reliability: whether probabilities "
            "come true. Of a DPP: spectrum: eigenvalues. all: those that can be drawn, into a folder.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="A .png or .svg file; a folder for all.")
    ],
    top: Annotated[
        int | None, typer.Option(min=1, help="Number of items of a lift (default 50) or of each segment (default 4).")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="FILE", rich_help_panel=READING, help="Baskets to check probabilities on."),
    ] = None,
    format: Format = "auto",
    basket: BasketColumn = "basket",
    item: ItemColumn = "item",
    weight: WeightColumn = None,
    time: TimeColumn = None,
    since: Since = None,
    before: Before = None,
    unknown: Unknown = "error",
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Plot a model: spectrum, sizes, lift, segments."""
    _check_options(kind, {"--top": top, "--data": data})
    files = _files(kind, output, (model, data), force)
    found = dpplearn.load(model)
    with busy("drawing", wants_progress(quiet)):
        reader = Reader(format, basket, item, weight, unknown, time=time, since=since, before=before)
        baskets = None if data is None else reader.read_warned(data, found.catalogue)
        asked = Asked(found, top, baskets)
        lacking = _lacking(asked) if kind == ALL else {}
        wanted = {each: path for each, path in files.items() if kind != ALL or isinstance(found, KINDS[each].of)}
        drawn = _draw(asked, {each: path for each, path in wanted.items() if each not in lacking}, force)
    notes = [f"no {kind}: {why}" for kind, why in lacking.items()]
    known = {"independent": found.independent, "caution": found.caution}
    write({"model": str(model), "files": drawn, "notes": notes, **known}, plot_tables, as_json)


def _check_options(kind: str, options: Mapping[str, object]) -> None:
    for name, value in options.items():
        if value is not None and kind not in (*TAKES[name], ALL):
            raise UsageError(f"{name} is for {listed(TAKES[name])}, not for {kind}")
    if kind == "reliability" and options["--data"] is None:
        raise UsageError("reliability needs baskets that the model was not learned from: name a file of them, --data")


def _files(kind: str, output: Path, sources: Sequence[str | Path | None], force: bool) -> dict[str, Path]:
    """Where each picture goes; found out before anything is drawn that it cannot be written."""
    files = {kind: output}
    if kind == ALL:
        try:
            output.mkdir(exist_ok=True)
        except FileExistsError:
            raise OutputExistsError(f"{output} is a file; name a folder") from None
        except OSError as error:
            raise InputError(f"{output} cannot be the folder for all plots: {error.strerror}") from None
        files = {kind: output / f"{kind}.png" for kind in KINDS}
    for file in files.values():
        figure_format(file)
        check_target("--output", file, sources, PICTURE, force=force)
    return files


def _lacking(asked: Asked) -> dict[str, str]:
    """Which pictures cannot be drawn, and why."""
    lacking = {}
    if asked.model.training is None or asked.model.training.history is None:
        lacking["curve"] = "the model has none, as it was not made by fit"
    if isinstance(asked.model, Mixture) and asked.model.n_segments < 2:
        lacking["segments"] = "the mixture has a single one"
    elif isinstance(asked.model, Mixture) and not any(each.likes for each in asked.model.segments()):
        lacking["segments"] = "all like all items equally"
    if len(asked.model.items) < 2:
        lacking["lift"] = "it is of two items, and the model has a single one"
    if asked.baskets is None:
        lacking["reliability"] = "it needs baskets that the model was not learned from (--data)"
    return lacking


def _draw(asked: Asked, files: Mapping[str, Path], force: bool) -> list[str]:
    for kind, path in files.items():
        plots.write_figure(KINDS[kind].draw(asked), path, force=force)
    return [str(path) for path in files.values()]


def plot_tables(report: Report) -> Iterator[Shown]:
    yield Facts("Drawn", [("model", shown(report["model"])), *(("plot", shown(file)) for file in report["files"])])
    yield from report["notes"]
    yield report["caution"]

"""dpplearn plot: plots of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

import dpplearn
from dpplearn import plots
from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import FILE, OUTPUT, Columns, Force, Model, check_target, named_columns
from dpplearn.cli.output import Display, Report
from dpplearn.data.baskets import Baskets
from dpplearn.data.readers import read_baskets
from dpplearn.errors import InputError, OutputExistsError
from dpplearn.plots.figure import PICTURE, figure_format
from dpplearn.utils.text import Facts, Part

ALL = "all"
# Functions of the model, the number of items and held-out baskets.
KINDS: Mapping[str, Callable[[Any, int | None, Any], Any]] = {
    "curve": lambda model, top, baskets: plots.learning_curve(model),
    "lift": lambda model, top, baskets: plots.lift(model, top),
    "segments": lambda model, top, baskets: plots.segments(model, top),
    "sizes": lambda model, top, baskets: plots.sizes(model),
    "spectrum": lambda model, top, baskets: plots.spectrum(model),
    "reliability": lambda model, top, baskets: _reliability(model, baskets),
}


def plot(
    model: Model,
    kind: Annotated[str, typer.Argument(metavar="KIND")],
    output: Annotated[Path, OUTPUT],
    display: Display,
    top: int | None = None,
    data: Annotated[str | None, FILE] = None,
    columns: Columns = None,
    force: Force = False,
) -> None:
    """Plot a model: spectrum, sizes, lift, segments.

    Parameters
    ----------
    kind
        curve: likelihood by iteration. lift: heat map of substitutes and complements. segments: items that distinguish
        the segments of a mixture. sizes: sizes of sets. spectrum: eigenvalues of a DPP. reliability: calibration on
        held-out baskets. all: all that are possible, in a folder.
    output
        A .png or .svg file; a folder for all.
    top
        Number of items of lift (default 50) or of each segment (default 4).
    data
        Held-out baskets, for reliability.
    """
    if kind not in (*KINDS, ALL):
        raise UsageError(f"KIND must be one of {', '.join(KINDS)} or {ALL}, got {kind!r}")
    if top is not None and kind not in ("lift", "segments", ALL):
        raise UsageError(f"--top is not valid for {kind}")
    if (kind == "reliability") != (data is not None) and kind != ALL:
        raise UsageError(f"--data is required for reliability and not valid for {kind}")
    files = {kind: output}
    if kind == ALL:
        _make_folder(output)
        files = {each: output / f"{each}.png" for each in KINDS if each != "reliability" or data is not None}
    for file in files.values():
        figure_format(file)
        check_target("--output", file, (model, data), PICTURE, force=force)
    found = dpplearn.load(model)
    drawn, notes = [], []
    with display.busy("drawing"):
        baskets = None if data is None else read_baskets(data, **named_columns(columns))
        for each, file in files.items():
            try:
                figure = KINDS[each](found, top, baskets)
            except InputError as error:
                if kind != ALL:
                    raise
                notes.append(f"No {each}: {error}.")
                continue
            plots.write_figure(figure, file, force=force)
            drawn.append(str(file))
    values = {"files": drawn, "notes": notes, "independent": found.independent, "caution": found.caution}
    parts: list[Part] = [Facts("Plots", [(Path(file).stem, file) for file in drawn]), *notes, found.caution]
    display.write(Report(values, parts), model=str(model))


def _reliability(model: Any, baskets: Baskets) -> Any:
    """Plot the calibration of the model and of independent items, given one item."""
    found = dpplearn.evaluate(model, baskets, tasks=("given_one",)).reliability
    return plots.reliability_diagram({name: tables["given_one"] for name, tables in found.items()})


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputExistsError(f"{path} cannot be the folder of the plots: {error.strerror}") from None

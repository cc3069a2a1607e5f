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
from dpplearn.plots.figure import PICTURE, figure_format

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
        held-out baskets.
    output
        A .png or .svg file.
    top
        Number of items of lift (default 50) or of each segment (default 4).
    data
        Held-out baskets, for reliability.
    """
    if kind not in KINDS:
        raise UsageError(f"KIND must be one of {', '.join(KINDS)}, got {kind!r}")
    if top is not None and kind not in ("lift", "segments"):
        raise UsageError(f"--top is not valid for {kind}")
    if (kind == "reliability") != (data is not None):
        raise UsageError(f"--data is required for reliability and not valid for {kind}")
    figure_format(output)
    check_target("--output", output, (model, data), PICTURE, force=force)
    found = dpplearn.load(model)
    baskets = None if data is None else read_baskets(data, **named_columns(columns))
    with display.busy("drawing"):
        plots.write_figure(KINDS[kind](found, top, baskets), output, force=force)
    values = {"independent": bool(found.caution), "caution": found.caution}
    display.write(Report(values, []), model=str(model), output=str(output), caution=found.caution)


def _reliability(model: Any, baskets: Baskets) -> Any:
    """Plot the calibration of the model and of independent items, given one item."""
    found = dpplearn.evaluate(model, baskets, tasks=("given_one",)).reliability
    return plots.reliability_diagram({name: tables["given_one"] for name, tables in found.items()})

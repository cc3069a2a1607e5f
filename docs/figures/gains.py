"""What each kind of model gains over independent items, from the table of docs/results/models.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpplearn.plots.figure import new_figure
from figures.drawing import BLUE, FAINT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = Path(__file__).parents[1] / "results" / "models.md"
HEAD = "| data | symmetric DPP | nonsymmetric DPP | segments alone | mixture |"
LOOKS = {"symmetric DPP": ("s", "#e69f00"), "nonsymmetric DPP": ("D", "#009e73"), "segments alone": ("^", "#cc79a7")}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("| \n").split("|")]


def table() -> tuple[list[str], dict[str, list[float]]]:
    """The names of the data, and the gain of each model on each."""
    lines = PAGE.read_text(encoding="utf-8").split(HEAD)[1].split("\n\n")[0].splitlines()[2:]
    rows = sorted(map(cells, lines), key=lambda row: float(row[-1]))
    columns = {name: [float(row[at]) for row in rows] for at, name in enumerate(cells(HEAD)) if at}
    return [row[0] for row in rows], columns


def draw(theme: str) -> Figure:
    names, gains = table()
    figure = new_figure(7.6, 4.6)
    axes = figure.add_subplot()
    axes.barh(names, gains["mixture"], color=BLUE[theme], alpha=0.55, label="mixture")
    for name, (marker, colour) in LOOKS.items():
        axes.plot(gains[name], names, marker, color=colour, label=name, ms=6)
    axes.axvline(0, color=FAINT[theme], lw=1)
    axes.set_xlabel("gain over independent items, nats per held-out basket")
    axes.legend(loc="lower right")
    return figure

"""Four figures of the results next to the numbers of the paper, as PNG files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reproduction.data import PAPER, PAPER_RUNTIME_RATIO
from reproduction.run import Results
from reproduction.tables import by_category, gain, quartiles, runtime_ratio

BLUE, LIGHT_BLUE, ORANGE, GREY = "#0072b2", "#56b4e9", "#e69f00", "#999999"
STYLE: dict[Any, Any] = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}
GAIN_LABEL = "gain of EM, 100·(EM − KA)/|KA| of the test log-likelihood"

Bars = Mapping[str, tuple[str, Mapping[str, Sequence[float]]]]  # label: colour, quartiles by category


def write_figures(results: Results, folder: Path) -> list[Path]:
    """Draw the figures of all experiments that have results; return their paths."""
    paths = []
    for name, draw in {"wishart": wishart, "moments": moments, "moments_2N": moments_2N, "runtime": runtime}.items():
        if results["wishart_textbook" if name == "runtime" else name]:
            paths.append(folder / f"{name}.png")
            with matplotlib.rc_context(STYLE):
                draw(results).savefig(paths[-1], dpi=150, metadata={"Software": None})
    return paths


def wishart(results: Results) -> Figure:
    ours = gains(results, "wishart")
    paper = {name: PAPER[name].wishart for name in ours}
    return bar_chart("Wishart start, all training data", {"dpplearn": (BLUE, ours), "paper": (ORANGE, paper)})


def moments(results: Results) -> Figure:
    ours = gains(results, "moments")
    paper = {name: (np.nan, PAPER[name].moments, np.nan) for name in ours}
    return bar_chart("Moments start, all training data", {"dpplearn": (BLUE, ours), "paper": (ORANGE, paper)})


def moments_2N(results: Results) -> Figure:
    """Draw the gains on the test sets that both models allow, and those of the printed algorithms on all test sets."""
    ours = gains(results, "moments_2N", "test_possible")
    bars: Bars = {
        "possible test sets": (BLUE, ours),
        "printed algorithms": (GREY, gains(results, "moments_2N_textbook", "test_unchecked")),
        "paper": (ORANGE, {name: PAPER[name].moments_2N for name in ours}),
    }
    return bar_chart("Moments start, n = 2N", bars)


def runtime(results: Results) -> Figure:
    printed, ours = (
        {name: (np.nan, runtime_ratio(rows), np.nan) for name, rows in by_category(results[experiment]).items()}
        for experiment in ("wishart_textbook", "wishart")
    )
    bars: Bars = {"printed algorithms": (BLUE, printed), "learners of dpplearn": (LIGHT_BLUE, ours)}
    figure = bar_chart("Runtimes from the Wishart start", bars, "runtime of K-Ascent / runtime of EM")
    axes = figure.axes[0]
    axes.axvline(PAPER_RUNTIME_RATIO, color=ORANGE, label="average in the paper")
    axes.axvline(1, color=GREY, linewidth=0.8, linestyle=":")
    add_legend(axes)
    return figure


def gains(results: Results, experiment: str, column: str = "test") -> dict[str, list[float]]:
    """Return the quartiles of the gain by category."""
    groups = by_category(results[experiment])
    return {name: quartiles(gain(row, column) for row in rows) for name, rows in groups.items()}


def bar_chart(title: str, bars: Bars, label: str = GAIN_LABEL) -> Figure:
    """Draw horizontal bars of medians with the quartiles as error bars, one group per category."""
    names = list(next(iter(bars.values()))[1])
    height = 0.8 / len(bars)
    figure = Figure(figsize=(7, 1.6 + 0.22 * len(names) * len(bars)), layout="constrained")
    axes = figure.subplots()
    for place, (legend, (colour, values)) in enumerate(bars.items()):
        y = np.arange(len(names)) + (place - (len(bars) - 1) / 2) * height
        low, middle, high = np.array([values.get(name, (np.nan,) * 3) for name in names]).T
        axes.barh(y, np.nan_to_num(middle), height, color=colour, label=legend)
        axes.errorbar(middle, y, xerr=[middle - low, high - middle], fmt="none", ecolor="#222222", linewidth=0.8)
        for at, value, right in zip(y, middle, np.fmax(np.fmax(middle, high), 0), strict=True):
            if np.isfinite(value):
                text = f"{value:.2f}".replace("-", "−")
                axes.annotate(text, (right, at), (3, 0), textcoords="offset points", va="center", size=7)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.axvline(0, color="#222222", linewidth=0.8)
    axes.margins(x=0.12, y=0.02)
    axes.set_xlabel(label)
    figure.suptitle(title, x=0.01, ha="left")
    add_legend(axes)
    return figure


def add_legend(axes: Axes) -> None:
    """Put the legend above the axes, where it hides no bar."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3)

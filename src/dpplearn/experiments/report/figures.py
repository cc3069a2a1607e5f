"""The figures of the report, as SVG: the paper's drawn again with ours beside, and some that it does not have."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpplearn.experiments.names import MODELS
from dpplearn.experiments.results import Table
from dpplearn.plots.style import EM, INDEPENDENT, KA, OURS, PAPER, STYLE
from dpplearn.tools.words import number, typeset

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"em": EM, "ka": KA, "independent": INDEPENDENT}
ABOVE: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1)}  # the axes, where no bar can be under it


def drawn(make: Callable[[Table], Figure], table: Table) -> str:
    """The figure of a table, as the text of an SVG file."""
    import matplotlib

    file = io.StringIO()
    with matplotlib.rc_context(STYLE):
        make(table).savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    return text[text.index("<svg") :]


def _figure(width: float, height: float, columns: int = 1, rows: int = 1, **options: Any) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def _title(figure: Figure, text: str) -> None:
    figure.suptitle(text, x=0.01, ha="left", size=10)


Bars = Sequence[Sequence[float | None]]  # one [first quartile, median, third] per category


def _bars(axes: Axes, names: Sequence[str], groups: Mapping[str, tuple[str, Bars]]) -> None:
    """Horizontal bars as in the paper, one colour per group, the quartiles as whiskers and the median in figures."""
    height = 0.8 / len(groups)
    for place, (label, (colour, bars)) in enumerate(groups.items()):
        y = np.arange(len(names)) + (place - (len(groups) - 1) / 2) * height
        values = np.array([_or_nan(bar[1]) for bar in bars])
        low, high = (np.array([_or_nan(bar[end]) for bar in bars]) for end in (0, 2))
        axes.barh(y, np.nan_to_num(values), height, color=colour, label=label)
        axes.errorbar(values, y, xerr=[values - low, high - values], fmt="none", ecolor="#222222", lw=0.8)
        for at, value, edge in zip(y, values, np.fmax(np.fmax(values, high), 0), strict=True):
            if math.isfinite(value):
                text = typeset(number(value, 2))
                axes.annotate(text, (edge, at), (3, 0), textcoords="offset points", va="center", size=7)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.axvline(0, color="#222222", lw=0.8)
    axes.margins(x=0.12, y=0.02)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _gain_bars(table: Table, title: str) -> Figure:
    lines = sorted(table["categories"], key=lambda line: -line["quartiles"][1])
    figure, ((axes,),) = _figure(6.4, 1.3 + 0.38 * len(lines))
    groups = {"here": (OURS, [line["quartiles"] for line in lines])}
    if any(line["paper"][1] is not None for line in lines):
        groups["paper"] = (PAPER, [line["paper"] for line in lines])
    _bars(axes, [line["category"] for line in lines], groups)
    axes.set_xlabel("relative log-likelihood difference, 100·(EM − KA)/|KA|")
    axes.legend(**ABOVE, ncols=3)
    _title(figure, title)
    return figure


def wishart(table: Table) -> Figure:
    return _gain_bars(table, "Wishart start, all data")


def moments(table: Table) -> Figure:
    return _gain_bars(table, "Moments start, all data")


def tolerance(table: Table) -> Figure:
    lines = sorted(table["categories"], key=lambda line: -line["paper_rule"][1])
    figure, ((axes,),) = _figure(6.4, 1.3 + 0.38 * len(lines))
    groups = {
        "both stop at 1e-4, the paper's rule": (OURS, [line["paper_rule"] for line in lines]),
        "both go on to 1e-6": ("#56b4e9", [line["small"] for line in lines]),
    }
    _bars(axes, [line["category"] for line in lines], groups)
    axes.set_xlabel("relative log-likelihood difference, 100·(EM − KA)/|KA|")
    axes.legend(**ABOVE, ncols=3)
    _title(figure, "The same trials, stopped later")
    return figure


def few(table: Table) -> Figure:
    """Left, how many draws allow a figure at all; right, gains where one exists, beside the paper's."""
    lines = table["categories"]
    names = [line["category"] for line in lines]
    figure, ((left, right),) = _figure(9.4, 1.9 + 0.5 * len(lines), columns=2, sharey=True, width_ratios=(2, 3))
    shares = {
        "all test sets": (KA, [_point(line["finite_all"] / line["draws"]) for line in lines]),
        "sets whose items all occur": (OURS, [_point(line["finite_seen"] / line["draws"]) for line in lines]),
    }
    _bars(left, names, shares)
    left.set_xlim(0, 1.15)
    left.set_xlabel("share of draws in which both models\nhave a finite test likelihood")
    left.legend(**ABOVE)
    gains = {"sets that both models allow": ("#56b4e9", [line["gain_possible"] for line in lines])}
    if table["printed_draws"]:
        gains["as printed, no rule for zero"] = ("#999999", [line["gain_printed"] for line in lines])
    if any(line["paper"][1] is not None for line in lines):
        gains["paper"] = (PAPER, [line["paper"] for line in lines])
    right.set_xscale("symlog", linthresh=5)
    _bars(right, names, gains)
    left.invert_yaxis()  # shared, and so turned twice
    right.set_xlabel("relative log-likelihood difference, 100·(EM − KA)/|KA|\n(linear up to 5)")
    right.legend(**ABOVE)
    _title(figure, "Moments start, n = 2N")
    return figure


def _point(value: float) -> list[float | None]:
    return [None, value, None]


def strength(table: Table) -> Figure:
    lines = table["categories"]
    figure, ((left, right),) = _figure(9.4, 3.6, columns=2)
    ends = np.array([0, 1.1 * max(line["inverse_n_items"] for line in lines)])
    left.plot(ends, ends, color="#999999", lw=0.8, label="d = 1/N")
    sizes = {round(1 / line["inverse_n_items"]): line for line in lines}  # several categories may have as many items
    _points(left, lines, "inverse_n_items", "d", {f"N = {size}": line for size, line in sizes.items()})
    left.set_xlabel("1/N")
    left.set_ylabel("d")
    left.legend(loc="upper left")
    left.set_title("d against 1/N", loc="left")
    _points(right, lines, "n_items_times_d", "gain_wishart", {line["category"]: line for line in lines})
    right.set_xlabel("N·d, what d has beside N")
    right.set_ylabel("EM's gain from a Wishart start, %")
    right.set_title("the gain against the rest of d", loc="left")
    return figure


def _points(axes: Axes, lines: Sequence[Table], x: str, y: str, labels: Mapping[str, Table]) -> None:
    axes.scatter([line[x] for line in lines], [line[y] for line in lines], color=EM, s=14, zorder=3)
    for label, line in labels.items():
        axes.annotate(label, (line[x], line[y]), (4, -7), textcoords="offset points", size=6.5)


def trap(table: Table) -> Figure:
    lines = table["categories"]
    names = [line["category"] for line in lines]
    figure, ((left, right),) = _figure(9.4, 1.7 + 0.4 * len(lines), columns=2, sharey=True)
    shares = {MODELS[name]: (COLOURS[name], [line[f"{name}_off_diagonal"] for line in lines]) for name in ("em", "ka")}
    _bars(left, names, shares)
    left.set_xlabel("off-diagonal share of the final K")
    zeros = {
        "K-Ascent, first accepted step": (PAPER, [_point(line["first_zeros"] / line["n_items"]) for line in lines]),
        "K-Ascent, at the end": (KA, [[each / line["n_items"] for each in line["ka_zeros"]] for line in lines]),
        "EM, at the end": (EM, [[each / line["n_items"] for each in line["em_zeros"]] for line in lines]),
    }
    _bars(right, names, zeros)
    left.invert_yaxis()
    right.set_xlabel("share of eigenvalues at zero")
    for axes in (left, right):
        axes.set_xlim(0, 1.15)
        axes.legend(**ABOVE)
    return figure


def runtime(table: Table) -> Figure:
    lines = table["categories"]
    figure, ((axes,),) = _figure(6.4, 1.3 + 0.38 * len(lines))
    groups = {
        "as printed": (OURS, [_point(line["printed_ratio"]) for line in lines]),
        "on this library's statistics": ("#56b4e9", [_point(line["library_ratio"]) for line in lines]),
    }
    _bars(axes, [line["category"] for line in lines], groups)
    if table["paper_average"] is not None:
        axes.axvline(table["paper_average"], color=PAPER, lw=1.2, label="the paper's average")
    axes.axvline(1, color="#999999", lw=0.8, ls=":")
    axes.set_xlabel("runtime of K-Ascent / runtime of EM")
    axes.legend(**ABOVE, ncols=3)
    _title(figure, "Runtime ratios")
    return figure


def growth(table: Table) -> Figure:
    figure, (panels,) = _figure(3.2 * len(table["axes"]), 3.2, columns=len(table["axes"]))
    for axes, axis in zip(panels, table["axes"], strict=True):
        for name in ("em", "ka"):
            label = f"{MODELS[name]}, examples: {typeset(number(axis['last'][name], 1))} ({axis['printed'][name]})"
            axes.loglog(axis["sizes"], axis["seconds"][name], "o-", color=COLOURS[name], ms=3, label=label)
            matrix = f"{name}_matrix"
            label = f"{MODELS[name]}, N×N part: {typeset(number(axis['last'][matrix], 1))} ({axis['printed'][matrix]})"
            axes.loglog(axis["sizes"], axis["seconds"][matrix], "o:", color=COLOURS[name], ms=3, label=label)
        fixed = ", ".join(f"{name} = {size}" for name, size in axis["fixed"].items())
        axes.set_xticks(axis["sizes"], map(str, axis["sizes"]))
        axes.minorticks_off()
        axes.set_xlabel(f"{axis['axis']} ({fixed})")
        axes.legend(**ABOVE, fontsize=7)
    panels[0].set_ylabel("seconds per iteration")
    return figure


def recovery(table: Table) -> Figure:
    """KL over N, a row of panels per kernel, a column per ratio n/N; what is infinite has no point."""
    cells = table["cells"]
    kinds = list(dict.fromkeys(cell["kernel"] for cell in cells))
    ratios = sorted({cell["n_train"] // cell["n_items"] for cell in cells})
    figure, panels = _figure(3.1 * len(ratios), 2.6 * len(kinds), columns=len(ratios), rows=len(kinds), sharex=True)
    for row, kind in zip(panels, kinds, strict=True):
        for axes, ratio in zip(row, ratios, strict=True):
            chosen = [cell for cell in cells if cell["kernel"] == kind and cell["n_train"] == ratio * cell["n_items"]]
            for model, colour in COLOURS.items():
                x, y = [cell["n_items"] for cell in chosen], [cell[f"{model}_kl"] for cell in chosen]
                y = [value if math.isfinite(value) else math.nan for value in y]
                errors = [cell[f"{model}_kl_error"] for cell in chosen]
                axes.errorbar(x, y, yerr=errors, fmt="o-", ms=3, color=colour, label=MODELS[model])
            axes.set_yscale("log")
            axes.set_title(f"{kind}, n = {ratio}N", loc="left", size=9)
        row[0].set_ylabel("KL to the truth, nats")
    for axes in panels[-1]:
        axes.set_xlabel("N")
    panels[0][0].legend()
    return figure

"""Pictures of a model: its learning curve, spectrum, kernel, substitutes and reliability; and files of them.

Every function draws into the `figure` given or into a new one, and returns it. None of them knows of pyplot, so nothing
is shown or kept by itself; a notebook displays what is returned.
"""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Label
from dpplearn.errors import InputError, InputWarning, whole_number
from dpplearn.evaluation.baselines import INDEPENDENT as INDEPENDENT_ITEMS
from dpplearn.evaluation.baselines import baselines_of, baselines_without_training, of_model
from dpplearn.evaluation.calibration import Reliability, pair_sums
from dpplearn.models.dpp import DPP
from dpplearn.models.history import History
from dpplearn.plots.layout import by_cluster, placed, pushed_apart, short, strongest_pairs
from dpplearn.plots.style import INDEPENDENT, KA, OURS, PAPER, STYLE
from dpplearn.tools.files import replace_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
SERIES = (OURS, KA, PAPER, "#009e73", "#cc79a7")
NAMED, NAME = 60, 44  # items, beyond which a heat map has no room for names; characters of a name in it
EDGE = 1e-8  # eigenvalues closer than this to 0 or 1 are drawn at the edge
MAP_ITEMS, AROUND, MAP_NAME = (
    40,
    15,
    24,
)  # items of a map, and around one; characters of each of two lines of a name on it
MAP_FONT, GAP = 7, 6  # points: the size of the names, and how far from its point a name begins
ROOM = 3.0  # of a map, as a multiple of what the names take
POINTS = 72  # an inch


def learning_curve(dpp: DPP, figure: Figure | None = None) -> Figure:
    """The mean log-likelihood after every iteration, also of the baskets set aside where there are any.

    With a prior, what is learned from are the baskets and those of the prior; where that ended for the baskets alone,
    which is what independent items compare with, is a point at the end.
    """
    history, learned = _history(dpp), dpp.learned
    prior = learned.get("prior", 0) > 0
    with _style():
        figure = figure or _figure(6.4, 4)
        axes = figure.subplots()
        _curve(axes, "training data and prior" if prior else "training data", history.log_likelihood, OURS)
        if not np.isnan(history.validation).all():
            _curve(axes, "data set aside", history.validation, KA)
        if prior:
            alone = learned["log_likelihood"]
            axes.plot(len(history) - 1, alone, "*", color=OURS, ms=9, label=f"training data alone: {_minus(alone)}")
        if "independent_log_likelihood" in learned:
            level = learned["independent_log_likelihood"]
            axes.axhline(level, color=INDEPENDENT, lw=1, ls="--", label=f"independent items: {_minus(level)}")
        axes.set_xlabel("iteration")
        axes.set_ylabel("mean log-likelihood of a basket")
        axes.set_ylim(_limits([np.asarray(line.get_ydata(), dtype=float) for line in axes.lines]))
        _whole_numbers(axes)
        axes.legend(loc="lower right")
    return figure


def _limits(curves: Sequence[Floats]) -> tuple[float, float]:
    """The first tenth of a curve often comes from far below: what is to be seen is the rest."""
    finite = [values[np.isfinite(values)] for values in curves if np.isfinite(values).any()]
    low = min((np.quantile(values, 0.1) for values in finite), default=-1)
    high = max((values.max() for values in finite), default=0)
    room = max(high - low, 1e-6)
    return float(low - 0.3 * room), float(high + 0.05 * room)


def _history(dpp: DPP) -> History:
    if dpp.training is None or dpp.training.history is None:
        raise InputError(
            "the model has no learning curve: it was not made by fit, or by a version that kept none; fit it again"
        )
    return dpp.training.history


def _curve(axes: Axes, name: str, values: Floats, colour: str) -> None:
    """What is minus infinity has no point, and is said in the legend."""
    infinite = np.count_nonzero(np.isneginf(values))
    said = f", minus infinity in {infinite} of {len(values)}" if infinite else ""
    marker = "o" if len(values) < 40 else None
    shown = np.where(np.isfinite(values), values, np.nan)
    axes.plot(shown, color=colour, marker=marker, ms=3, label=f"{name}: {_minus(values[-1])} at the end{said}")


def _minus(value: float) -> str:
    """With the sign that axes have."""
    return f"{value:.4f}".replace("-", "−")


def _whole_numbers(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def spectrum(dpp: DPP, figure: Figure | None = None) -> Figure:
    """The eigenvalues of K, largest first, on a scale of log-odds; and the distribution of the size of a set."""
    lam = np.sort(dpp.kernel.eigenvalues)[::-1]
    with _style():
        figure = figure or _figure(9.4, 3.8)
        left, right = figure.subplots(1, 2)
        left.set_yscale("logit")
        left.set_ylim(_with_room(np.clip(lam, EDGE, 1 - EDGE)))
        inside = np.flatnonzero((lam >= EDGE) & (lam <= 1 - EDGE))
        left.plot(inside + 1, lam[inside], "o", color=OURS, ms=3)
        for beyond, marker, limit in ((lam < EDGE, "v", 0), (lam > 1 - EDGE, "^", 1)):
            at = np.flatnonzero(beyond)
            if len(at):
                said = f"{len(at)} at {limit}" if (lam[at] == limit).all() else f"{len(at)} within {EDGE:g} of {limit}"
                left.plot(at + 1, np.clip(lam[at], EDGE, 1 - EDGE), marker, color=PAPER, ms=4, label=said)
                left.legend(loc="upper right")
        left.set_xlabel(f"{len(lam)} eigenvalues of K, largest first")
        left.set_ylabel("eigenvalue (scale of log-odds)")
        _sizes(right, dpp)
    return figure


def _with_room(probabilities: Floats) -> tuple[float, float]:
    """The range of probabilities, and a little more on the scale of log-odds."""
    low, high = probabilities.min(), probabilities.max()
    return float(low / (low + 2 * (1 - low))), float(2 * high / (2 * high + 1 - high))


def _sizes(axes: Axes, dpp: DPP) -> None:
    """As far as a bar can be seen."""
    law = dpp.size_distribution
    seen = law[: np.flatnonzero(law > law.max() / 500).max() + 2]
    axes.bar(np.arange(len(seen)), seen, color=OURS)
    axes.axvline(dpp.expected_size, color=KA, lw=1.2, label=f"expected size {dpp.expected_size:.2f}")
    axes.set_xlabel("items in a set")
    axes.set_ylabel("probability")
    _whole_numbers(axes)
    axes.margins(y=0.12)  # for the legend
    axes.legend(loc="upper right")


def kernel_map(dpp: DPP, top: int | None = None, figure: Figure | None = None) -> Figure:
    """How much every two items repel each other, alike ones side by side; with `top`, of the likeliest items alone."""
    chosen = _likeliest(dpp, len(dpp.items) if top is None else top)
    chosen = chosen[by_cluster(_apart(dpp, chosen))]
    shares = _apart(dpp, chosen)
    strongest = max(shares.max(), 0.01)
    np.fill_diagonal(shares, np.nan)
    named = len(chosen) <= NAMED
    with _style():
        side = max(1.6 + 0.13 * len(chosen), 4) if named else 6.4
        figure = figure or _figure(side + (4.4 if named else 1.4), side)
        axes = figure.subplots()
        image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=strongest, interpolation="nearest")
        axes.set_facecolor("#dddddd")  # the diagonal
        figure.colorbar(image, ax=axes, shrink=0.7, pad=0.02, label="apart (share of chance meetings that are missing)")
        labels = _names(dpp, chosen, NAME) if named else []
        axes.set_yticks(range(len(labels)), labels, size=7)
        axes.set_xticks([])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        if not named:
            axes.set_ylabel(f"{len(chosen)} items, those of a cluster side by side")
    return figure


def substitutes_map(
    dpp: DPP, item: Label | None = None, top: int | None = None, figure: Figure | None = None
) -> Figure:
    """Items as points, near each other where they repel each other, with lines for the strongest pairs.

    Of the `top` likeliest items (default: 40); with `item`, of it and the `top` that it repels most (default: 15).
    """
    if item is None:
        chosen = _likeliest(dpp, MAP_ITEMS if top is None else top)
    else:
        chosen = _around(dpp, item, AROUND if top is None else top)
    apart = _apart(dpp, chosen)
    names = [_in_two_lines(name) for name in _names(dpp, chosen, 2 * MAP_NAME)]
    with _style():
        boxes = _boxes(names)
        points = pushed_apart(placed(apart) * _extent(boxes), boxes)
        low, high = (points - boxes * [0, 0.5] - 8).min(axis=0), (points + boxes * [1, 0.5] + 4).max(axis=0)
        low[1] -= 2 * MAP_FONT
        figure = figure or _figure(*((high - low) / POINTS))
        axes = figure.add_axes((0, 0, 1, 1), xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        axes.set_axis_off()
        pairs = _lines(axes, points, apart)
        likely = dpp.marginals()[chosen]
        colours = [KA if item is not None and place == 0 else OURS for place in range(len(chosen))]
        axes.scatter(points[:, 0], points[:, 1], s=8 + 80 * likely / likely.max(), c=colours, linewidths=0, zorder=2)
        behind = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5}
        for (x, y), name in zip(points, names, strict=True):
            axes.text(x + GAP, y, name, va="center", size=MAP_FONT, linespacing=1.1, bbox=behind, zorder=3)
        what = "lines: pairs that repel each other most" if pairs else "no two items repel each other"
        said = f"{what}; points: larger for likelier items"
        axes.text(low[0] + 4, low[1] + 4, said, size=MAP_FONT, color="#555555")
    return figure


def _likeliest(dpp: DPP, top: int) -> Ints:
    """Positions of the likeliest items, those of probability zero left out: they repel nothing."""
    marginals = dpp.marginals()
    if not marginals.any():
        raise InputError("every item has probability zero under this model, so none repels another")
    best = np.argsort(-marginals, kind="stable")[: whole_number("top", top, 1)]
    return best[marginals[best] > 0]


def _apart(dpp: DPP, chosen: Ints) -> Floats:
    """How far every two are kept apart; 0 for those that meet as often as by chance, or more often."""
    return np.maximum(dpp.together.substitution[np.ix_(chosen, chosen)], 0)


def _around(dpp: DPP, item: Label, top: int) -> Ints:
    """The item first, then its substitutes."""
    others = [each.item for each in dpp.substitutes(item, whole_number("top", top, 1))]
    return dpp.catalogue.positions([item, *others])


def _names(dpp: DPP, positions: Ints, width: int) -> list[str]:
    """Matplotlib would read what stands between two dollars as mathematics."""
    return [name.replace("$", r"\$") for name in short(dpp.catalogue.select(positions), width)]


def _in_two_lines(name: str) -> str:
    return "\n".join(textwrap.wrap(name, MAP_NAME, max_lines=2, placeholder="…"))


def _boxes(names: Sequence[str]) -> Floats:
    """The width and height that a point and its name take, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    measure, font = TextToPath(), FontProperties(size=MAP_FONT)
    sizes = []
    for name in names:
        lines = name.replace(r"\$", "$").split("\n")
        width = max(measure.get_text_width_height_descent(line, font, ismath=False)[0] for line in lines)
        sizes.append((GAP + width + 8, 1.2 * MAP_FONT * len(lines) + 5))
    return np.array(sizes)


def _extent(boxes: Floats) -> Floats:
    """Half the width and height of a map with room for them."""
    area = ROOM * boxes.prod(axis=1).sum()
    return np.sqrt([1.4 * area, area / 1.4]) / 2


def _lines(axes: Axes, points: Floats, apart: Floats) -> list[tuple[int, int]]:
    """As many as there are items, the stronger the wider."""
    pairs = strongest_pairs(apart, len(points))
    strength = np.array([apart[i, j] for i, j in pairs])
    width = 0.5 + 2.5 * (strength - strength.min()) / max(np.ptp(strength), 1e-9) if pairs else strength
    for (i, j), wide in zip(pairs, width, strict=True):
        axes.plot(*points[[i, j]].T, color="#999999", lw=wide, alpha=0.7, zorder=1)
    return pairs


def reliability_of(dpp: DPP, baskets: Baskets) -> dict[str, Reliability]:
    """Whether the probabilities of a model come true on baskets, and those of independent items."""
    baskets = baskets.over(dpp.catalogue)
    known = dpp.training
    baselines = baselines_without_training(dpp.kernel) if known is None else baselines_of(known)
    predictors = {"model": of_model(dpp.kernel), INDEPENDENT_ITEMS: baselines[INDEPENDENT_ITEMS]}
    given = {name: each.pair_probabilities for name, each in predictors.items()}
    return {name: pair_sums(each, baskets).reliability() for name, each in given.items() if each is not None}


def reliability_diagram(tables: Mapping[str, Reliability], figure: Figure | None = None) -> Figure:
    """Probabilities predicted against the share that came true, with its interval; on the diagonal they agree.

    `tables` are those of `reliability_of`, or the `reliability` of an evaluation.
    """
    rows = [row for table in tables.values() for row in table.rows]
    if not rows:
        raise InputError("there is nothing to check probabilities on: no basket holds an item that the model can have")
    seen = [value for row in rows for value in (row.predicted, row.observed) if value > 0]
    ends = (min(seen, default=0.5) / 2, min(2 * max(row.high for row in rows), 1))
    colours = {**dict(zip(tables, cycle(SERIES), strict=False)), INDEPENDENT_ITEMS: INDEPENDENT}
    with _style():
        figure = figure or _figure(5.4, 5)
        axes = figure.subplots()
        axes.loglog(ends, ends, color="#bbbbbb", lw=1)
        for name, table in tables.items():
            _reliability(axes, table, ends[0], f"{name}: calibration error {table.error:.2g}", colours[name])
        axes.set(xlim=ends, ylim=ends, aspect="equal")
        axes.set_xlabel("probability predicted")
        axes.set_ylabel("share that came true, with its 95 % interval")
        axes.legend(loc="upper left")
    return figure


def _reliability(axes: Axes, table: Reliability, least: float, name: str, colour: str) -> None:
    """What is zero stands at the edge of a logarithmic scale."""
    columns = np.array([(row.predicted, row.observed, row.low, row.high) for row in table.rows]).reshape(-1, 4)
    predicted, observed, low, high = np.maximum(columns, least).T
    spread = np.maximum([observed - low, high - observed], 0)
    axes.errorbar(predicted, observed, spread, fmt="o-", color=colour, ms=4, lw=0.8, capsize=2, label=name)


def write_figure(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a .png or .svg file; the same figure gives the same file."""
    path = Path(path)
    format = figure_format(path)
    file = io.BytesIO()
    with _style(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(file, format=format, dpi=150, metadata=METADATA[format])
    replace_file(path, file.getvalue())
    if any("Glyph" in str(each.message) for each in caught) and format == "png":
        warnings.warn(
            f"{path}: the font has not all the letters of the names; a .svg file leaves them to who shows it",
            InputWarning,
            stacklevel=2,
        )


def figure_format(path: Path) -> str:
    """By the ending of a file."""
    format = path.suffix.lower().removeprefix(".")
    if format not in METADATA:
        raise InputError(f"{path} cannot be drawn: its name must end in .png or .svg")
    return format


@contextmanager
def _style() -> Iterator[None]:
    """The looks of all figures, for as long as one is drawn."""
    try:
        import matplotlib
    except ImportError as error:
        raise InputError(f'a plot needs {error.name}: pip install "dpplearn[report]"') from None
    with matplotlib.rc_context(STYLE):
        yield


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")

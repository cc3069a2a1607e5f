"""Item probabilities given two items of a basket, and which of the two explains each change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpplearn.models.explaining import Explanation
from dpplearn.plots.figure import new_figure
from figures.drawing import BLUE, FAINT, INK
from figures.shop import mixture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BASKET = ("Willow video monitor", "Teasel movement monitor")
EACH = 4  # items whose probability rises most, and falls most
MIN_PROBABILITY = 0.02  # of the items shown, with or without the basket
DOWN = {"light": "#c44e00", "dark": "#ff9248"}


def change(why: Explanation) -> float:
    return why.given / why.alone


def shown() -> list[Explanation]:
    """Return the items whose probability changes most, the largest increase first."""
    model = mixture()
    others = [item for item in model.items if item not in BASKET]
    found = [model.explain(BASKET, item) for item in others]
    frequent = sorted((why for why in found if max(why.alone, why.given) >= MIN_PROBABILITY), key=change, reverse=True)
    return frequent[:EACH] + frequent[-EACH:]


def reason(why: Explanation) -> str:
    """Name the item of the basket with the largest influence."""
    rising = change(why) > 1
    item, factor, _ = (max if rising else min)(why.influences, key=lambda each: each.factor)
    return f"complement of {item}, ×{factor:.1f}" if rising else f"substitute for {item}, ×{factor:.2f}"


def bar(axes: Axes, row: int, why: Explanation, theme: str) -> None:
    colour = (BLUE if change(why) > 1 else DOWN)[theme]
    alone, given = round(100 * why.alone, 1), round(100 * why.given, 1)
    axes.plot([alone, given], [row, row], color=colour, lw=5, solid_capstyle="butt", alpha=0.55)
    axes.plot(alone, row, "o", color="none", mec=FAINT[theme], mew=1.5, ms=6, zorder=3)
    axes.plot(given, row, "o", color=colour, ms=8, zorder=3)
    axes.text(-1, row, str(why.item), ha="right", va="center", color=INK[theme])
    words = f"{alone:.0f} % → {given:.{0 if given >= 2 else 1}f} %"
    axes.text(max(alone, given) + 1, row - 0.17, words, va="center", color=colour, weight="bold")
    axes.text(max(alone, given) + 1, row + 0.26, reason(why), va="center", color=FAINT[theme], size=10)


def draw(theme: str) -> Figure:
    figure = new_figure(9.2, 4.8)
    axes = figure.add_subplot()
    for row, why in enumerate(shown()):
        bar(axes, row + (row >= EACH) * 0.5, why, theme)
    axes.set_title(f"Given a {BASKET[0]} and a {BASKET[1]}", loc="left", x=-0.35, weight="bold", size=13)
    axes.set(xlim=(0, 80), ylim=(2 * EACH + 0.2, -0.7), yticks=[])
    axes.set_xticks(range(0, 50, 10))
    axes.set_xlabel("probability in per cent: ○ in any registry, ● given these two items", loc="left")
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_bounds(0, 40)
    return figure

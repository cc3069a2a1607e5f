"""Draw the figures of the manual, one module each: `python docs/figures/drawing.py FOLDER [NAME...]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))

INK = {"light": "#1f2328", "dark": "#e6edf3"}
FAINT = {"light": "#6a737d", "dark": "#9aa4ae"}
BLUE = {"light": "#0072b2", "dark": "#56b4e9"}
THEMES = tuple(INK)
NO_FIGURES = ("__init__", "drawing", "shop")


def names() -> tuple[str, ...]:
    """Of all figures: a module each."""
    return tuple(sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NO_FIGURES))


def file_name(name: str, theme: str) -> str:
    return f"{name}-{theme}.svg"


def looks(theme: str) -> dict[Any, Any]:
    """The style of all figures of the library, on a page of this theme."""
    from dpplearn.plots.figure import STYLE

    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    clear = {"figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none", "font.size": 11}
    return {**STYLE, **clear, **dict.fromkeys(inked, INK[theme])}


def draw(name: str, folder: Path) -> None:
    """One figure, in all themes."""
    import matplotlib

    from dpplearn.plots import write_figure

    for theme in THEMES:
        with matplotlib.rc_context(looks(theme)):
            write_figure(import_module(f"figures.{name}").draw(theme), folder / file_name(name, theme))


def draw_all(folder: Path, chosen: Sequence[str] = ()) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in chosen or names():
        draw(name, folder)


if __name__ == "__main__":
    from figures import drawing

    drawing.draw_all(Path(sys.argv[1]), sys.argv[2:])

"""What all pictures share: figures in one style, axes of whole numbers, and files of figures."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpplearn.errors import InputError, InputWarning
from dpplearn.models.dpp import DPP
from dpplearn.models.model import SetModel
from dpplearn.plots.style import STYLE
from dpplearn.utils.files import OutputKind, check_replaceable, replace_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


def _is_picture(path: Path) -> bool:
    with open(path, "rb") as file:
        start = file.read(1024)
    return start.startswith(b"\x89PNG\r\n\x1a\n") or (start.startswith((b"<?xml", b"<svg")) and b"<svg" in start)


PICTURE = OutputKind("a PNG or SVG picture", _is_picture)


@contextmanager
def styled() -> Iterator[None]:
    """The looks of all figures, for as long as one is drawn."""
    try:
        import matplotlib
    except ImportError as error:
        raise InputError(f'a plot needs {error.name}: pip install "dpplearn[report]"') from None
    with matplotlib.rc_context(STYLE):
        yield


def new_figure(width: float, height: float) -> Figure:
    return _shown_figure()(figsize=(width, height), layout="constrained")


@cache
def _shown_figure() -> type[Figure]:
    """A figure that a notebook shows by itself; one of matplotlib alone waits for pyplot to make one of its own."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            return _drawn(self, "png")

    return ShownFigure


def _drawn(figure: Figure, format: str) -> bytes:
    file = io.BytesIO()
    with styled():
        figure.savefig(file, format=format, dpi=150, metadata=METADATA[format])
    return file.getvalue()


def needs_dpp(model: SetModel, what: str, instead: str) -> None:
    """Refuse another model than a DPP, naming the plot that shows as much of it."""
    if not isinstance(model, DPP):
        raise InputError(
            f"{what} is for DPPs, and this is a {type(model).__name__}: use plot {instead!r}, or learn a DPP "
            "(model='dpp')"
        )


def text_widths(lines: Sequence[str], size: float) -> list[float]:
    """In points, of lines of a font of this size."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    measure, font = TextToPath(), FontProperties(size=size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the font lacks are told when the figure is written
        sizes = [measure.get_text_width_height_descent(line.replace(r"\$", "$"), font, ismath=False) for line in lines]
    return [width for width, _, _ in sizes]


def whole_numbers(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def write_figure(figure: Figure, path: str | PathLike[str], *, force: bool = False) -> None:
    """Write a figure to a file; the same figure gives the same file.

    Parameters
    ----------
    figure
        From a function of `dpplearn.plots`, or any of matplotlib.
    path
        A file that ends in .png or .svg. An existing picture is replaced.
    force
        Replace an existing file of any other type, too.

    Examples
    --------
    >>> import tempfile
    >>> import dpplearn as dl
    >>> from dpplearn.plots import spectrum
    >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_figure(spectrum(dpp), Path(folder) / "spectrum.svg")
    """
    path = Path(path)
    format = figure_format(path)
    check_replaceable(path, PICTURE, force=force)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        content = _drawn(figure, format)
    replace_file(path, content)
    if any("Glyph" in str(each.message) for each in caught) and format == "png":
        warnings.warn(
            f"{path}: the font has not all the letters of the names; a .svg file leaves them to whatever shows it",
            InputWarning,
            stacklevel=2,
        )


def figure_format(path: Path) -> str:
    """Return "png" or "svg" by the ending of the file, or raise InputError."""
    format = path.suffix.lower().removeprefix(".")
    if format not in METADATA:
        raise InputError(f"{path} cannot be drawn: its name must end in .png or .svg")
    return format

"""Style, labels and files of all figures."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpplearn.data.catalogue import Label
from dpplearn.errors import InputError, InputWarning
from dpplearn.utils.files import OutputKind, check_replaceable, replace_file
from dpplearn.utils.text import display_width, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The colours of the service's pages: the accent for a model, grey for independent items, blue for a lift below 1
# (substitutes) and red for a lift above 1 (complements).
MODEL, OTHER, INDEPENDENT = "#1f5fa8", "#d55e00", "#545b64"
BELOW, NEUTRAL, ABOVE = "#2166ac", "#f2f2f2", "#d6604d"
NOT_SHOWN = "#ffffff"  # pairs that are not significant, and the diagonal
GRID = "#e6e9ee"
NAME_WIDTH = 44  # characters of a name
FONT_SIZE = 7  # of names
LETTER = 0.058  # inches of a letter of this size, on average
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "dpplearn",  # the same figure gives the same file
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


@contextmanager
def styled() -> Iterator[None]:
    """Use the style of all figures within a block."""
    try:
        import matplotlib
    except ImportError as error:
        raise InputError(f'a plot needs {error.name}: pip install "dpplearn[report]"') from None
    with matplotlib.rc_context(STYLE):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return a figure in inches, without pyplot, that notebooks display."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure._repr_png_ = lambda: _rendered(figure, "png")  # type: ignore[attr-defined]
    return figure


@contextmanager
def drawing(
    figure: Figure | None, width: float, height: float, shape: tuple[int, int] = (1, 1)
) -> Iterator[tuple[Figure, Any]]:
    """Yield a figure, by default a new one of this size in inches, and new axes in it, in the style of all figures."""
    with styled():
        figure = figure or new_figure(width, height)
        yield figure, figure.subplots(*shape)


def names(labels: Iterable[Label]) -> list[str]:
    """Return short names on one line. A dollar sign is escaped, because matplotlib reads $...$ as mathematics."""
    lines = [" ".join("".join(c if c.isprintable() else " " for c in str(label)).split()) for label in labels]
    return [name.replace("$", r"\$") for name in shortened(lines, NAME_WIDTH)]


def label_width(labels: Iterable[str]) -> float:
    """Return the approximate width of the longest label in inches; Chinese, Japanese and Korean letters count twice."""
    return LETTER * max(map(display_width, labels))


def title(figure: Figure, text: str) -> None:
    """Write the title of a figure at the left."""
    figure.suptitle(text, x=0.01, ha="left", size=9)


def _is_picture(path: Path) -> bool:
    with open(path, "rb") as file:
        start = file.read(1024)
    return start.startswith(b"\x89PNG\r\n\x1a\n") or (start.startswith((b"<?xml", b"<svg")) and b"<svg" in start)


PICTURE = OutputKind("a PNG or SVG picture", _is_picture)


def figure_format(path: Path) -> str:
    """Return "png" or "svg" by the suffix of a file."""
    format = path.suffix.lower().removeprefix(".")
    if format not in METADATA:
        raise InputError(f"{path} must end in .png or .svg")
    return format


def _rendered(figure: Figure, format: str) -> bytes:
    file = io.BytesIO()
    with styled():
        figure.savefig(file, format=format, dpi=150, metadata=METADATA[format])
    return file.getvalue()


def write_figure(figure: Figure, path: str | PathLike[str], *, force: bool = False) -> None:
    """Write a figure to a file. The same figure gives the same file.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    path : path
        A file that ends in .png or .svg. An existing picture is replaced.
    force : bool, default False
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
        content = _rendered(figure, format)
    replace_file(path, content)
    if any("Glyph" in str(each.message) for each in caught) and format == "png":
        warnings.warn(
            f"{path}: the font lacks some letters of the names; write a .svg file instead", InputWarning, stacklevel=2
        )

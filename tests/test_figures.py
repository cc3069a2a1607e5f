"""The figures of the manual: the picture of the README is what its script draws, and all of them have a use."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from helpers.manual import DOCS, ROOT

sys.path.insert(0, str(DOCS))

from figures import drawing


def words(file: Path) -> list[str]:
    """All that is written in a picture. Where it lies differs in the last digits between processors."""
    return re.findall(r"<text[^>]*>(.*?)</text>", file.read_text(encoding="utf-8"), re.S)


@pytest.mark.slow
def test_the_picture_of_the_readme_is_what_its_script_draws(tmp_path: Path) -> None:
    """If it is not, `make picture` draws it anew."""
    drawing.draw_all(tmp_path, ["basket"])
    for theme in drawing.THEMES:
        name = drawing.file_name("basket", theme)
        assert words(tmp_path / name) == words(DOCS / "figures" / name)
        assert len(words(tmp_path / name)) > 30
        assert name in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_figure_is_drawn_for_a_page() -> None:
    shown = re.findall(r"^```{drawn} (\w+)$", "\n".join(page.read_text("utf-8") for page in DOCS.rglob("*.md")), re.M)
    assert set(shown) == set(drawing.names())

"""Look at the built manual in a browser: `python tests/look_at_manual.py`, after `make docs`.

Every page at the size of a desk and of a phone: none is wider than the screen, runs into an error or asks another host.
Screenshots of some, on light and on dark, are kept in build/screenshots/manual: look at them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helpers.browser import browser

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "docs" / "html"
SHOTS = ROOT / "build" / "screenshots" / "manual"
SIZES = {"desk": (1280, 900), "phone": (390, 844)}
SHOWN = (
    "index start/tutorial guide/learning-a-kernel guide/which-model understand/mixture reference/command-line "
    "reference/generated/dpplearn.fit"
).split()


def complaints(page: Any, files: list[Path], name: str) -> Iterator[str]:
    """What is wrong with pages, each opened in turn in one tab."""
    heard: list[str] = []
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on("request", lambda request: heard.append(f"asks {request.url}") if request.url.startswith("http") else None)
    for file in files:
        page.goto(file.as_uri())
        place = file.relative_to(SITE).with_suffix("").as_posix()
        too_wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        if place in SHOWN:
            page.screenshot(path=SHOTS / f"{place.replace('/', '-')}-{name}.png", full_page=True)
        found = [*heard, *([f"is {too_wide} pixels too wide"] if too_wide > 0 else [])]
        heard.clear()
        yield from (f"{place}, {name}: {each}" for each in found)


def look() -> list[str]:
    files, shown = sorted(SITE.rglob("*.html")), [SITE / f"{each}.html" for each in SHOWN]
    SHOTS.mkdir(parents=True, exist_ok=True)
    found = []
    with browser() as opened:
        for size, (width, height) in SIZES.items():
            for theme in ("light", "dark"):
                page = opened.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
                found += complaints(page, files if theme == "light" else shown, f"{size}-{theme}")
    print(f"{len(files)} pages; screenshots are in {SHOTS.relative_to(ROOT)}")
    return found


if __name__ == "__main__":
    if not SITE.is_dir():
        sys.exit("There is no manual to look at in build/docs/html: run `make docs`")
    sys.exit("\n".join(look()) or 0)

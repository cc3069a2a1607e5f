"""What is built needs nothing from elsewhere: no script, style, font or picture of another host."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

IN_PAGES = re.compile(r"<(?:script|link|img|source|iframe)\b[^>]*?\b(?:src|href|srcset)=\"((?:https?:)?//[^\"]*)")
IN_STYLES = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]*)")


def from_elsewhere(folder: Path) -> list[str]:
    """The files that load something from another host, and what."""
    patterns = {".html": IN_PAGES, ".css": IN_STYLES}
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in patterns]
    found = {path: patterns[path.suffix].findall(path.read_text(encoding="utf-8")) for path in files}
    return [f"{path.relative_to(folder)} loads {address}" for path, each in found.items() for address in each]


def check(app: Sphinx, error: Exception | None) -> None:
    found = from_elsewhere(Path(app.outdir)) if error is None and app.builder.format == "html" else []
    if found:
        raise ExtensionError("\n".join(["the manual must not need another host:", *found]))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", check)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

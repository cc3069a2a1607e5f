"""A browser to look at the pages with, and the accessibility checks of axe-core."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NODE_MODULES = ROOT / "node_modules"  # of `make browser`
AXE = Path(os.environ.get("DPPLEARN_AXE", NODE_MODULES / "axe-core" / "axe.min.js"))
NAMES = ("chromium", "chromium-browser", "google-chrome")
UNPACK = "import('@sparticuz/chromium').then(async (it) => console.log(await it.default.executablePath()))"


def missing(what: str) -> None:
    """Skip for want of something; where everything is to be there, as in .ci/run, fail."""
    if os.environ.get("DPPLEARN_NEEDS_BROWSER") == "1":
        pytest.fail(f"{what}; it must be there where DPPLEARN_NEEDS_BROWSER is 1")
    pytest.skip(what)


def find_browser() -> tuple[str, list[str]] | None:
    """The program and its options: $DPPLEARN_CHROMIUM, one on the PATH, or that of the npm package."""
    named = os.environ.get("DPPLEARN_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if named:
        return named, ["--no-sandbox"]
    if shutil.which("node") and (NODE_MODULES / "@sparticuz" / "chromium").is_dir():
        run = subprocess.run(["node", "-e", UNPACK], cwd=ROOT, capture_output=True, text=True, check=False)
        if run.returncode == 0:
            return run.stdout.strip(), ["--no-sandbox", "--single-process", "--no-zygote"]
    return None


@contextmanager
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    found = find_browser()
    if found is None:
        missing("no browser: set DPPLEARN_CHROMIUM, install chromium, or run `make browser` where Node is")
    assert found is not None
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found[0], args=found[1])
        try:
            yield opened
        finally:
            opened.close()


def violations(page: Any) -> list[str]:
    """Return what axe-core finds on the page as it is now."""
    if not AXE.is_file():
        missing(f"no axe-core at {AXE}: run `make browser` where Node is, or set DPPLEARN_AXE")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await axe.run()).violations")
    return [f"{each['id']}: {[node['html'][:120] for node in each['nodes']][:3]}" for each in found]

"""Where the original registries are, and the rule that tests which need them do not skip when they are there."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

pytest_plugins = ["helpers.shop"]

os.environ.setdefault("DPPLEARN_PROGRESS_SECONDS", "3600")  # a slow machine says no more than a quick one

SHARED = Path(os.environ.get("DPPLEARN_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture(scope="session", autouse=True)
def ctrl_c() -> None:
    """As in a terminal, also where tests run in the background, which shells start deaf to it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the original registries and the authors' runs."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the original registries and the authors' runs: no folder {SHARED} (set DPPLEARN_SHARED)")
    return SHARED


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """A test that asks for the shared folder fails if it skips although the folder is there."""
    report = yield
    if report.skipped and SHARED.is_dir() and "shared" in getattr(item, "fixturenames", ()):
        report.outcome = "failed"
        report.longrepr = f"skipped although {SHARED} is there: {report.longrepr}"
    return report

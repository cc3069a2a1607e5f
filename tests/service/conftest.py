"""A store of three categories, and a service of it in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.service import Client
from helpers.stores import SHARES, three_categories, write_models


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that no test changes."""
    return write_models(tmp_path_factory.mktemp("stores") / "store", three_categories(), SHARES)


@pytest.fixture(scope="session")
def asks(stored: Path) -> Client:
    return Client(stored)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store to change."""
    return write_models(tmp_path / "store", three_categories(), SHARES)

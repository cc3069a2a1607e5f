"""A store of three categories, and a service of it in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.service import Client, client
from helpers.stores import SHARES, three_categories, write_models


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that no test changes."""
    return write_models(tmp_path_factory.mktemp("stores") / "store", three_categories(), SHARES)


@pytest.fixture(scope="session")
def asks(stored: Path) -> Iterator[Client]:
    with client(stored) as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store to change."""
    return write_models(tmp_path / "store", three_categories(), SHARES)

"""What a service is told: what it serves, to whom, and how much it takes at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Limits:
    """The most that a request may ask for."""

    body: int = 1 << 20  # bytes
    basket: int = 500  # items of a basket, and of each list of items allowed or denied
    k: int = 100  # items of an answer
    batch: int = 100  # rows of a batch, and sets of a sample
    explain: int = 50  # items of a basket whose influence is asked for, which takes the square of it


@dataclass(frozen=True)
class Settings:
    """`source` is a shelf, a folder of model files or one file. Of keys only the digests are kept; without any, whoever
    reaches the service may use it."""

    source: Path
    keys: tuple[bytes, ...] = ()
    limits: Limits = Limits()
    origins: tuple[str, ...] = ()  # of pages elsewhere that may call it
    log_baskets: bool = False
    quiet: bool = False  # log errors alone
    seconds: float = 1.0  # between two looks whether the source has changed

"""Settings of the service: what it serves, to whom, and how much work a request may cause."""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from dpplearn.errors import InputError

MIN_KEY_LENGTH = 16  # characters


@dataclass(frozen=True)
class Settings:
    """`source` is a model store, a folder of model files or one model file. Of keys only digests are kept; without any,
    everyone who reaches the service may use it."""

    source: Path
    keys: tuple[bytes, ...] = ()
    max_cost: float = 0.5  # CPU-seconds of one request
    max_body: int = 1 << 18  # bytes; parsing holds up the event loop, about 10 ms for this size
    origins: tuple[str, ...] = ()  # of web pages elsewhere that may call the service
    log_baskets: bool = False
    quiet: bool = False  # log errors only


def read_keys(path: Path) -> tuple[bytes, ...]:
    """Return the SHA-256 digests of the keys in a file, one key per line."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the key file {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    keys = [line for line in lines if line]
    shortest = min(map(len, keys), default=0)
    if shortest < MIN_KEY_LENGTH:
        found = f"has a key of {shortest} characters" if keys else "is empty"
        raise InputError(f"the key file {path} {found}; keys need at least {MIN_KEY_LENGTH} characters, one per line")
    return tuple(digest_of_key(key.encode()) for key in keys)


def digest_of_key(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

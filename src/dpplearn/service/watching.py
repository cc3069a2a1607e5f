"""The shelf that is served now, and how a new one takes its place: read aside, checked, warmed, swapped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from dpplearn.errors import InputError
from dpplearn.service.shelves import PreparedShelf, Served, read_served, stamp

Tell = Callable[..., None]  # told of an event by name, with what is known of it


class Current:
    """What answers come from. `now` is replaced as a whole, so whoever holds it is not disturbed.

    `failed` is why the source as it is now could not be taken over as a whole, empty if it was.
    """

    def __init__(self, source: Path, tell: Tell) -> None:
        self._source, self._tell = source, tell
        self._seen = stamp(source)
        self.now = _ready(read_served(source))
        self._seen = stamp(source, self.now.served)
        self.failed = _why(self.now.served)
        self._report("shelf_loaded")

    def refresh(self) -> bool:
        """Look whether the source has changed, and take over what can be; whether anything was."""
        seen = stamp(self._source, self.now.served)
        if seen == self._seen:
            return False
        self._seen = seen
        try:
            served = read_served(self._source, self.now.served)
        except InputError as error:
            self.failed = str(error)
            self._tell("shelf_refused", reason=self.failed)
            return False
        before, self.now, self.failed = self.now, _ready(served), _why(served)
        self._seen = stamp(self._source, served)
        if self._seen != seen:  # the list of files is another, or one was written meanwhile: look once more
            self._seen = ()
        if before.version != self.now.version or self.failed:
            self._report("shelf_swapped")
        return True

    async def watch(self, seconds: float) -> None:
        """Look again and again, until cancelled. No error ends it: the shelf that is there goes on."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await asyncio.to_thread(self.refresh)
            except Exception as error:
                self.failed = f"{type(error).__name__}: {error}"
                self._tell("shelf_refused", reason=self.failed)

    def _report(self, event: str) -> None:
        versions = {name: version[:12] for name, version in self.now.served.versions.items()}
        self._tell(event, models=versions, broken=dict(self.now.served.broken))


def _ready(served: Served) -> PreparedShelf:
    """With all that is computed on first use."""
    found = served.prepared()
    found.shelf.recommend([], 10)
    return found


def _why(served: Served) -> str:
    return "; ".join(served.broken.values())

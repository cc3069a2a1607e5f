"""What the program finds when it starts and while it runs: streams that may be closed, signals that ask it to end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpplearn.tools.threads import ENDING


def open_streams() -> None:
    """Give standard streams that are closed a place of their own, or the next file opened would take it. What goes to
    standard output is then lost, and that is told as of any other pipe that nobody reads."""
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
    closed = sys.stdout is None
    descriptor, encoding = (_unread_pipe(), "utf-8") if closed else (sys.stdout.fileno(), sys.stdout.encoding)
    # Buffered even under PYTHONUNBUFFERED, where Python drops what a pipe that closes did not take, without a word.
    sys.stdout = open(descriptor, "w", encoding=encoding, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def _unread_pipe() -> int:
    """As the first descriptor that is free."""
    reader, writer = os.pipe()
    os.close(reader)
    first = os.dup(writer)
    os.close(writer)
    return first


class Interrupts:
    """Ctrl-C, and what systems send to a program that should end, all come as a KeyboardInterrupt."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._held = False

    def listen(self) -> None:
        for each in ENDING:
            if signal.getsignal(each) is not signal.SIG_IGN:  # as under nohup
                signal.signal(each, self._take)

    def _take(self, number: int, frame: Any) -> None:
        self.received = number
        if not self._held:
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within, a signal is noted and nothing more: what is under way is too short and too dear to lose."""
        self._held = True
        try:
            yield
        finally:
            self._held = False

    @property
    def exit_code(self) -> int:
        """What shells give a program that the signal ended: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + (self.received or signal.SIGINT)


INTERRUPTS = Interrupts()

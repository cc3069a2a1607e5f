"""The installed program, run as a user runs it: in a process of its own, on a terminal where that matters."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(sys.executable).parent / "dpplearn"
HAS_PROC = Path("/proc/self/stat").exists()
# PYTHONUNBUFFERED makes Python lose what a closed pipe did not take; the program must cope.
PATIENCE = 300  # seconds; long, because the machine may be busy
ENVIRONMENT = {**os.environ, "COLUMNS": "80", "PYTHONUNBUFFERED": "1", "TERM": "xterm"}  # dumb ones show no progress


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    whole = [str(PROGRAM), *map(str, arguments)]
    return subprocess.run(whole, capture_output=True, text=True, env=ENVIRONMENT, cwd=cwd, timeout=400, check=False)


def _heed_signals() -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)


@contextlib.contextmanager
def begin(
    *arguments: object, stdout: int = subprocess.PIPE, stderr: Any = subprocess.PIPE, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """Start the program in a process group of its own, which heeds Ctrl-C and is killed if the test fails."""
    with subprocess.Popen(
        [str(PROGRAM), *map(str, arguments)],
        stdout=stdout,
        stderr=stderr,
        text=True,
        env=ENVIRONMENT | environment,
        preexec_fn=_heed_signals,
        start_new_session=True,
    ) as process:
        try:
            yield process
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise


def is_running(pid: int) -> bool:
    """Return whether a process exists; a zombie, which only /proc tells, does not count."""
    try:
        os.kill(pid, 0)
        return not Path("/proc/self").exists() or " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def processes_of(group: int) -> list[int]:
    """Return the processes of a process group that still run, found in /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended since
            state, _, of_group = stat.read_text().rsplit(")", 1)[1].split()[:3]
            if int(of_group) == group and state != "Z":
                found.append(int(stat.parent.name))
    return found


def within(seconds: float, what: Callable[[], bool]) -> bool:
    """Wait until a condition holds, and return whether it did in time."""
    deadline = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def wait_for(what: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait until a condition holds; fail if the process ends first or patience does."""
    deadline = time.monotonic() + PATIENCE
    while not what():
        if process.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"the condition did not come true; exit code {process.poll()}")
        time.sleep(0.01)


class Terminal:
    """A terminal for a program's standard error. A thread reads it: a full terminal would block the program."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        self.shown = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # what reading gives when the last writer is gone
            while text := os.read(self.ours, 1 << 16):
                self.shown += text.decode(errors="replace")

    def close(self) -> str:
        """All that was shown."""
        os.close(self.theirs)
        self._reader.join(timeout=30)
        os.close(self.ours)
        return self.shown

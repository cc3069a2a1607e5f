"""End of a command: an error that a user can correct is one line on standard error and an exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Any

import typer

from dpplearn.errors import InputError, InputWarning, OutputExistsError
from dpplearn.utils.threads import ENDING

FAILED, WRONG_USAGE, DRIFTED = 1, 2, 3
REPEAT_SECONDS = 0.02  # long enough to leave the code that drops exceptions


class UsageError(InputError):
    """Options that are not valid, or not valid together."""


class Interrupts:
    """Signals that end a program, raised as KeyboardInterrupt."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._held = False

    def listen(self) -> None:
        """Handle the signals, also those whose exception Python drops."""
        self.received = None
        for each in ENDING:
            if signal.getsignal(each) is not signal.SIG_IGN:  # as in a background job of a script
                signal.signal(each, self.take)
        sys.unraisablehook = self.repeat

    def take(self, number: int, frame: Any = None) -> None:
        """Handle a signal."""
        self.received = number
        if not self._held:
            raise KeyboardInterrupt

    def repeat(self, dropped: sys.UnraisableHookArgs) -> None:
        """Send a signal again if Python dropped its exception.

        Python drops exceptions that are raised in `__del__`, for example of a Dask future, and in callbacks from
        compiled code, for example while LLVM compiles. Without this, one Ctrl-C in a hundred was lost in a fit over a
        local cluster. Other dropped exceptions concern cleaning up and are of no use to a user.
        """
        if self.received is None or not issubclass(dropped.exc_type, KeyboardInterrupt):
            return
        again = Timer(REPEAT_SECONDS, os.kill, (os.getpid(), self.received))
        again.daemon = True
        with suppress(RuntimeError):  # the interpreter is about to exit and starts no threads
            again.start()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Record signals without raising, so that a file is written completely."""
        self._held = True
        try:
            yield
        finally:
            self._held = False

    @property
    def exit_code(self) -> int:
        """The exit code that shells give to a program ended by the signal: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + (self.received or signal.SIGINT)


INTERRUPTS = Interrupts()


def complain(kind: str, text: str) -> None:
    """Print one line on standard error."""
    line = " ".join(part.strip() for part in text.splitlines())
    with suppress(OSError):  # a closed stream; the exit code remains
        print(f"dpplearn: {kind}: {line}", file=sys.stderr, flush=True)


def show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """Print a warning; with its place in the source unless it is about the input."""
    where = "" if issubclass(category, InputWarning) else f" ({category.__name__}, {filename}:{lineno})"
    complain("warning", f"{message}{where}")


def exit_code(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; print an error as one line."""
    try:
        code = command()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        complain("error", "interrupted")
        return INTERRUPTS.exit_code
    except OSError as error:  # the disk may be full, or the output closed
        with suppress(OSError):  # what is left would be written again on exit; in tests the stream is not a file
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        complain("error", f"{error.filename or 'output'}: {error.strerror or error}")
    except (InputError, MemoryError) as error:
        complain("error", str(error) or "not enough memory")
        if isinstance(error, UsageError | OutputExistsError):
            return WRONG_USAGE
    return FAILED


def run_typer(app: typer.Typer, arguments: list[str]) -> int:
    """Run a program without typer's own handling of errors, which prints boxes."""
    command = typer.main.get_command(app)
    try:
        with command.make_context("dpplearn", arguments) as context:
            command.invoke(context)
        return 0
    except typer.Exit as leaving:
        return leaving.exit_code
    except Exception as error:
        # Typer has its own copy of click or, in older versions, uses the package: the class has no fixed name.
        if not hasattr(error, "format_message"):
            raise
        path = getattr(getattr(error, "ctx", None), "command_path", "dpplearn")
        raise UsageError(f"{error.format_message()} (see {path} --help)") from None

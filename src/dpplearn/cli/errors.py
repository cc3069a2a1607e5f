"""How a command ends: whatever a user can put right, or did, is one line on standard error and an exit code."""

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


class UsageError(Exception):
    """Options that do not go together."""


class Interrupts:
    """Ctrl-C, and what systems send to a program that should end, all come as a KeyboardInterrupt."""

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
        """What happens when a signal arrives."""
        self.received = number
        if not self._held:
            raise KeyboardInterrupt

    def repeat(self, dropped: sys.UnraisableHookArgs) -> None:
        """Send a signal again if Python dropped its exception.

        Python drops exceptions that are raised in `__del__`, for example of a Dask future, and in callbacks from
        compiled code, for example while LLVM compiles. Without this, one Ctrl-C in a hundred was lost in a fit over a
        local cluster.
        """
        if self.received is None or not issubclass(dropped.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(dropped)
            return
        again = Timer(REPEAT_SECONDS, os.kill, (os.getpid(), self.received))
        again.daemon = True
        with suppress(RuntimeError):  # the interpreter is about to exit and starts no threads
            again.start()

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


def complain(kind: str, text: str) -> None:
    """One line on standard error."""
    line = " ".join(part.strip() for part in text.splitlines())
    with suppress(OSError):  # where nobody hears it, the exit code still tells
        print(f"dpplearn: {kind}: {line}", file=sys.stderr, flush=True)


def show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """In place of `warnings.showwarning`: where in the source a warning about the input arose is of no interest."""
    where = "" if issubclass(category, InputWarning) else f" ({category.__name__}, {filename}:{lineno})"
    complain("warning", f"{message}{where}")


def exit_code(command: Callable[[], int]) -> int:
    """Run a command, and say in one line what went wrong."""
    try:
        code = command()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _drop_output()
        return _failed("the output was closed before all of it was written", FAILED)
    except KeyboardInterrupt:
        return _failed("interrupted", INTERRUPTS.exit_code)
    except (UsageError, OutputExistsError) as error:
        return _failed(str(error), WRONG_USAGE)
    except InputError as error:
        return _failed(str(error), FAILED)
    except OSError as error:
        _drop_output()  # a full disk, perhaps
        where = f"{error.filename}: " if error.filename else ""
        return _failed(f"{where}{error.strerror or error}", FAILED)
    except MemoryError as error:
        return _failed(f"not enough memory: {error}", FAILED)


def run_typer(app: typer.Typer, program: str, arguments: list[str]) -> int:
    """Without typer's own handling of errors, which prints boxes."""
    command = typer.main.get_command(app)
    try:
        with command.make_context(program, arguments) as context:
            command.invoke(context)
        return 0
    except typer.Exit as leaving:
        return leaving.exit_code
    except Exception as error:
        # Typer has its own copy of click or, in older versions, uses the package: the class has no fixed name.
        if not hasattr(error, "format_message"):
            raise
        where = getattr(error, "ctx", None)
        path = where.command_path if where is not None else program
        raise UsageError(f"{error.format_message()} (see {path} --help)") from None


def _drop_output() -> None:
    """Python would try once more to write what is left when it leaves, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(text: str, code: int) -> int:
    complain("error", text)
    return code

"""dpplearn fit over parts: the same model, rejected options, and Ctrl-C ends the workers."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import dpplearn as dl
from helpers import command, program
from helpers.parts import write_parts
from helpers.problems import sampled

pytestmark = pytest.mark.slow


@pytest.fixture
def files(tmp_path: Path) -> str:
    return write_parts(tmp_path, sampled(0, n=150), 2)


def test_every_file_is_a_part(files: str, tmp_path: Path) -> None:
    found = command.answer("fit", files, "-o", tmp_path / "model", "--cluster", "local:1", "--learner", "em")
    with dl.read_parts(files) as parts:
        assert found["train"]["log_likelihood"] == dl.fit_dpp(parts, "em").log_likelihood


@pytest.mark.skipif(not program.HAS_PROC, reason="needs /proc to find the processes of a group")
def test_ctrl_c_saves_the_model_and_ends_the_workers(files: str, tmp_path: Path) -> None:
    model, terminal = tmp_path / "model", program.Terminal()
    options = ["--learner", "em", "--tol", "0", "--max-iter", "100000", "--cluster", "local:1"]
    with program.begin("fit", files, "-o", model, *options, stderr=terminal.theirs) as process:
        program.wait_for(lambda: "iteration" in terminal.shown, process)
        assert len(program.processes_of(process.pid)) > 1
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it, too
        process.communicate(timeout=60)
        shown = terminal.close()
        assert process.returncode == 130, shown
        assert str(model) in shown
        assert "Traceback" not in shown
        assert dl.load(model).learned.learner == "em"
        assert program.within(10, lambda: not program.processes_of(process.pid))

"""dpplearn fit over parts: what does not go together is said, and Ctrl-C ends the workers as well."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

import dpplearn as dl
from helpers import command, program
from helpers.parts import write_parts
from helpers.problems import sampled


@pytest.fixture
def files(tmp_path: Path) -> str:
    return write_parts(tmp_path, sampled(0, n=150), 2)


def test_every_file_is_a_part_and_a_test_is_over_the_items_of_all(files: str, tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text("basket,item\n1,item 00\n1,item 03\n2,item 05\n")
    found, shown = command.both(
        *("fit", files, "-o", tmp_path / "model", "--parts", "--learner", "em", "--test", tmp_path / "test.csv")
    )
    expected = dl.fit_dpp(dl.read_parts(files), "em")
    assert found["train"]["log_likelihood"] == expected.log_likelihood
    assert found["mean_size"] == dl.read_parts(files).totals.mean_size
    assert found["test"]["n_baskets"] == 2
    assert "test" in shown


@pytest.mark.parametrize(
    ("options", "said", "code"),
    [
        (["--parts", "--holdout", "0.2"], "--holdout is not for baskets in parts", 2),
        (["--cluster", "nowhere"], "cluster is 'nowhere'; expected local:4", 1),
        (["--parts", "--shrinkage", "auto"], "got 'auto'", 1),
    ],
)
def test_what_is_not_for_parts_is_one_line_of_error(
    files: str, tmp_path: Path, options: list[str], said: str, code: int
) -> None:
    done = command.run("fit", files, "-o", tmp_path / "model", *options)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "model").exists()


def processes_of(group: int) -> list[int]:
    """Those that are not ended yet."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of_group = stat.read_text().rsplit(")", 1)[1].split()[:3]
        except OSError:  # it has ended since
            continue
        if int(of_group) == group and state != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to find the processes of a group")
@pytest.mark.slow
def test_ctrl_c_saves_the_model_without_a_word_of_the_workers_and_ends_them(files: str, tmp_path: Path) -> None:
    model, terminal = tmp_path / "model", program.Terminal()
    options = ["--learner", "em", "--tol", "0", "--max-iter", "100000", "--cluster", "local:1"]
    process = program.begin("fit", files, "-o", model, *options, group=True, stderr=terminal.theirs)
    program.wait_for(lambda: "iteration" in terminal.shown, process)
    assert len(processes_of(process.pid)) > 1
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it, too
    process.communicate(timeout=60)
    shown = terminal.close()
    assert process.returncode == 130
    assert str(model) in shown
    assert "Traceback" not in shown
    assert dl.load(model).learned.learner == "em"
    deadline = time.monotonic() + 10
    while processes_of(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of(process.pid) == []

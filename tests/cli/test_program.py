"""The installed program in a process of its own: start, exit codes, signals, progress, mistakes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dpplearn as dl
from dpplearn.cli.app import COMMANDS
from dpplearn.cli.app import command as load_command
from helpers import command
from helpers.command import parsed
from helpers.program import ENVIRONMENT, PROGRAM, Terminal, begin, wait_for


def modules_of(*arguments: object) -> tuple[str, set[str]]:
    """Return the output of a command line and the modules that it imports."""
    code = (
        "import sys\nfrom dpplearn.cli import main\n"
        f"sys.argv = {['dpplearn', *map(str, arguments)]!r}\n"
        "assert main() == 0\nprint('modules:', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    output, _, modules = done.stdout.partition("modules:")
    return output, set(modules.split())


@pytest.mark.slow
def test_help_and_version_import_no_command_and_recommend_nothing_heavy(tmp_path: Path) -> None:
    output, modules = modules_of("--help")
    assert [name for name in COMMANDS if f" {name} " not in output] == []
    assert not {"numpy", "numba", "duckdb", "scipy", "sklearn", "rich.markdown"} & modules
    output, modules = modules_of("--version")
    assert output == f"dpplearn {dl.__version__}\n"
    assert not {"numpy", "rich.console"} & modules
    dl.Mixture.from_arrays([1.0], [[-1.0, -2.0, -1.5]], [[0.0] * 3] * 3, items=["a", "b", "c"]).save(tmp_path / "m")
    output, modules = modules_of("recommend", tmp_path / "m", "a")
    assert "b" in output
    assert not {"numba", "scipy.linalg", "scipy.special", "duckdb", "loky"} & modules


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_of_a_command_is_the_first_line_of_its_help(name: str) -> None:
    assert (load_command(name).__doc__ or "").splitlines()[0] == COMMANDS[name]


# Command lines, the exit code, and what the message must name: options, values and files.
MISTAKES: dict[str, tuple[int, list[str]]] = {
    "fit none.csv -o x.safetensors": (1, ["none.csv"]),
    "fit other.csv -o x.safetensors": (1, ["shape"]),
    "fit orders.csv -o none/x.safetensors": (1, ["none"]),
    "fit other.csv -o x.safetensors --model dpp --segments 3": (2, ["segments", "dpp"]),
    "fit other.csv -o x.safetensors --columns order=basket": (2, ["order=basket"]),
    "fit orders.csv -o x.safetensors --since 2026-01-01": (1, ["--columns time="]),
    "fit orders.csv -o x.safetensors --learner em --start mixture.safetensors": (2, ["learner", "mixture"]),
    "fit orders.csv -o x.safetensors --holdout 1.5": (2, ["--holdout"]),
    "fit orders.csv -o x.safetensors --shrinkage nan": (2, ["shrinkage", "nan"]),
    "score part.safetensors orders.csv": (1, ["part.safetensors"]),
    "score model.safetensors orders.csv --train strange.txt": (1, ["'hay'"]),
    "score model.safetensors orders.csv --against model.safetensors": (2, ["--against"]),
    "compare orders.csv --learner em --learner guess": (2, ["--learner", "em, k-ascent"]),
    "recommend model.safetensors Willow_video_monitor": (1, ["'Willow video monitor'"]),
    "recommend model.safetensors --baskets orders.csv": (2, ["--output"]),
    "plot mixture.safetensors spectrum -o a.png": (1, ["spectrum", "'sizes'"]),
    "plot model.safetensors spectrum -o a.jpg": (1, ["a.jpg"]),
    "plot model.safetensors sizes -o a.png --top 3": (2, ["--top"]),
    "plot model.safetensors reliability -o a.png": (2, ["--data"]),
    "fit orders.csv -o x.safetensors --features orders.csv": (2, ["--features"]),
    "fit orders.csv -o x.safetensors --cluster local:1 --holdout 0.2": (2, ["--holdout"]),
    "prepare orders.csv -o x --columns shelf=x": (2, ["shelf=x"]),
}


@pytest.fixture(scope="module")
def mistaken(shop: Path) -> Path:
    """Add files that cannot be used to the shop."""
    (shop / "other.csv").write_text("shape,colour\n1,2\n")
    (shop / "part.safetensors").write_bytes((shop / "model.safetensors").read_bytes()[:900])
    (shop / "strange.txt").write_text("hay\n")
    return shop


def test_a_mistake_is_reported_on_one_line_with_an_exit_code(mistaken: Path) -> None:
    for line, (code, names) in MISTAKES.items():
        done = command.run(*line.split(), cwd=mistaken)
        assert (done.returncode, done.stdout) == (code, ""), line
        assert done.stderr.startswith("dpplearn: error: ")
        assert done.stderr.count("\n") == 1
        assert [name for name in names if name not in done.stderr] == [], done.stderr
        assert not (mistaken / "x.safetensors").exists()


@pytest.mark.slow
def test_progress_goes_to_stderr_as_lines_or_to_a_terminal_unless_quiet(few_orders: Path, tmp_path: Path) -> None:
    call = [PROGRAM, "fit", few_orders, "-o", tmp_path / "p.safetensors", "--max-iter", "3", "--json"]
    call += ["--model", "dpp", "--shrinkage", "0", "--seed", "0"]
    often = {**ENVIRONMENT, "DPPLEARN_PROGRESS_SECONDS": "0.02"}
    lines = subprocess.run(call, capture_output=True, text=True, env=often, timeout=300, check=True).stderr
    assert lines
    assert all(line.startswith("dpplearn: ") for line in lines.splitlines())
    shown = []
    for options in ([], ["--quiet"]):
        terminal = Terminal()
        done = subprocess.run(
            [*call, *options], stdout=subprocess.PIPE, stderr=terminal.theirs, env=often, timeout=300, check=True
        )
        shown.append(terminal.close())
        assert parsed(done.stdout.decode())["n_iter"] == 3
    assert "iteration" in shown[0]
    assert shown[1] == ""


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "kind"), [(signal.SIGINT, "dpp"), (signal.SIGTERM, "mixture")])
def test_a_fit_that_is_interrupted_saves_the_best_model_so_far(
    ending: int, kind: str, shop: Path, orders: dl.Baskets, tmp_path: Path
) -> None:
    """Save it to the checkpoint, or without one to the output."""
    output, checkpoint, terminal = tmp_path / "m.safetensors", tmp_path / "c.safetensors", Terminal()
    endless = ["--tol", 0, "--max-iter", 10**8, "--json"]
    endless += ["--learner", "em"] if kind == "dpp" else ["--restarts", 1000, "--checkpoint", checkpoint]
    saved, other = (output, checkpoint) if kind == "dpp" else (checkpoint, output)
    with begin("fit", shop / "orders.csv", "-o", output, *endless, stderr=terminal.theirs) as process:
        wait_for(lambda: "iteration" in terminal.shown, process)
        process.send_signal(ending)
        out, _ = process.communicate(timeout=60)
    shown = terminal.close()
    assert (process.returncode, out) == (128 + ending, "")
    assert "Traceback" not in shown
    assert str(saved) in "".join(shown.splitlines()[-2:])
    assert not other.exists()
    found = dl.load(saved)
    assert isinstance(found, dl.DPP if kind == "dpp" else dl.Mixture)
    assert found.learned.log_likelihood == pytest.approx(found.log_likelihood(orders), abs=1e-9)


@pytest.mark.slow
def test_ctrl_c_elsewhere_is_one_line_and_exit_code_130(model: Path) -> None:
    terminal = Terminal()
    with begin("sample", model, "-n", 500_000, stderr=terminal.theirs) as process:
        wait_for(lambda: "drawing" in terminal.shown, process)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    shown = terminal.close()
    assert (process.returncode, out) == (130, "")
    assert "dpplearn: error: " in shown.splitlines()[-1]
    assert "Traceback" not in shown


DROPPED = """
import os, signal, sys, time
from dpplearn.cli.errors import INTERRUPTS, exit_code

class Interrupted:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)  # Python drops the exception of the signal here

def command():
    Interrupted()
    time.sleep(60)
    return 0

INTERRUPTS.listen()
sys.exit(exit_code(command))
"""


@pytest.mark.slow
def test_a_signal_whose_exception_python_drops_ends_the_command() -> None:
    done = subprocess.run([sys.executable, "-c", DROPPED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (128 + signal.SIGTERM, 1)


@pytest.mark.slow
def test_a_closed_pipe_is_one_line(model: Path) -> None:
    for name, options, taken in (("sample", ("-n", 3000, "--json"), 1), ("describe", (), 0)):
        with begin(name, model, *options) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.read(taken)
            process.stdout.close()
            err = process.stderr.read()
        assert process.returncode == 1
        assert err.startswith("dpplearn: error: ")
        assert err.count("\n") == 1

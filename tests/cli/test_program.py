"""The installed program, run as a user runs it: how it starts, how it ends, and what a mistake comes to."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import dpplearn as dl
from dpplearn.cli.app import COMMANDS
from dpplearn.cli.app import command as command_of
from dpplearn.cli.errors import INTERRUPTS
from dpplearn.cli.output import counted
from helpers import command
from helpers.command import parsed
from helpers.program import ENVIRONMENT, PROGRAM, Terminal, begin, run, wait_for


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    code = (
        "import sys, time; sys.argv = ['dpplearn', '--help']\n"
        "from dpplearn.cli import main\n"
        "assert main() == 0\n"
        "assert not {'numba', 'duckdb', 'scipy', 'sklearn'} & set(sys.modules), 'heavy'\n"
        "assert time.process_time() < 1, time.process_time()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for name in "fit score compare recommend complete map sample diagnose describe explain".split():
        assert f" {name} " in done.stdout
    assert '"-inf"' in done.stdout  # the convention of --json is documented


def test_version() -> None:
    assert run("--version").stdout == f"dpplearn {dl.__version__}\n"


def test_the_package_runs_as_the_program_does() -> None:
    done = subprocess.run([sys.executable, "-m", "dpplearn", "sampel"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("dpplearn: error: No such command 'sampel'")


MISTAKES: dict[str, tuple[int, list[str]]] = {
    "fit none.csv -o x.safetensors": (1, ["none.csv"]),
    "fit empty.csv -o x.safetensors": (1, ["empty.csv is empty"]),
    "fit other.csv -o x.safetensors": (1, ["'order', 'product'", "--basket", "--format lines"]),
    "fit orders.csv -o none/x.safetensors": (1, ["no folder none"]),
    "fit orders.csv -o x.safetensors --test strange.txt": (1, ["--test strange.txt", "'hay'"]),
    "score part.safetensors orders.csv": (1, ["part.safetensors", "truncated"]),
    "score none.safetensors orders.csv": (1, ["no file is called none.safetensors"]),
    "score model.safetensors orders.csv --train strange.txt": (1, ["--train strange.txt", "'hay'"]),
    "score model.safetensors orders.csv --against model.safetensors": (2, ["named twice"]),
    "compare orders.csv --shrinkage strong": (2, ["'--shrinkage'", "'strong'"]),
    "compare orders.csv --learner em --learner guess": (2, ["--learner", "em, k-ascent"]),
    "compare orders.csv --folds 5000": (1, ["5000 folds of 400 baskets"]),
    "recommend model.safetensors Willow_video_monitor": (1, ["did you mean 'Willow video monitor'"]),
    "sample model.safetensors -k 99": (1, ["k is 99", "0 to 36 items"]),
    "fit orders.csv -o orders.csv": (2, ["overwrite"]),
    "fit orders.csv -o x.safetensors --learner guess": (2, ["--learner", "auto, em, k-ascent", "dpplearn fit --help"]),
    "fit orders.csv -o x.safetensors --model guess": (2, ["--model", "mixture, dpp"]),
    "fit other.csv -o x.safetensors --model dpp --segments 3": (
        2,
        ["--segments is for a mixture, and --model dpp for a DPP"],
    ),
    "fit other.csv -o x.safetensors --learner em --rank 2 --no-attraction": (
        2,
        ["--rank and --no-attraction are for a mixture, and --learner for a DPP; leave out either"],
    ),
    "fit other.csv -o x.safetensors --model mixture --shrinkage 1": (2, ["--shrinkage", "--model mixture"]),
    "fit orders.csv -o x.safetensors --segments 5000": (2, ["--segments", "1000"]),
    "fit orders.csv -o x.safetensors --threads 5000": (2, ["--threads", "1024"]),
    "fit orders.csv -o x.safetensors --segments 3 --start model.safetensors": (
        2,
        ["--segments is for a mixture, and --start model.safetensors for a DPP"],
    ),
    "compare orders.csv --learner mixture --shrinkage 1": (2, ["--shrinkage", "--learner mixture"]),
    "diagnose orders.csv --level 2": (2, ["--level", "2 is not between 0 and 1"]),
    "describe model.safetensors --groups-at-least 3": (2, ["--groups-at-least", "3 is not a number above 0, up to 1"]),
    "fit orders.csv -o x.safetensors --segments 0": (2, ["--segments", "1"]),
    "fit orders.csv -o x.safetensors --model mixture --start model.safetensors": (
        2,
        ["--start model.safetensors is for a DPP"],
    ),
    "fit orders.csv -o x.safetensors --learner em --start mixture.safetensors": (
        2,
        ["--start mixture.safetensors is for a mixture"],
    ),
    "plot mixture.safetensors spectrum -o a.png": (1, ["a spectrum is for DPPs", "'sizes'"]),
    "plot model.safetensors segments -o a.png": (1, ["learn a mixture to see segments"]),
    "fit orders.csv -o x.safetensors --holdout 1.5": (2, ["between 0 and 1"]),
    "fit orders.csv -o x.safetensors --shrinkage 1.5": (2, ["--shrinkage", "'1.5'"]),
    "fit orders.csv -o x.safetensors --restarts 99999999999999999999": (
        2,
        ["--restarts", "100000"],
    ),
    "score model.safetensors orders.csv -k 99999999999999999999": (
        1,
        ["k is 99999999999999999999; expected", "from 1 to"],
    ),
    "sample model.safetensors -n 99999999999999999999": (1, ["n is 99999999999999999999; expected", "from 1 to"]),
    "fit orders.csv -o x.safetensors --shrinkage much": (2, ["--shrinkage", "'much'"]),
    "fit orders.csv -o x.safetensors --shrinkage -1": (2, ["--shrinkage", "'-1'"]),
    "fit orders.csv -o x.safetensors --shrinkage nan": (2, ["--shrinkage", "'nan'"]),
    "fit orders.csv -o x.safetensors --validation 1.5": (2, ["--validation", "0.99"]),
    "fit orders.csv -o x.safetensors --patience 0": (2, ["--patience", "1"]),
    "fit orders.csv -o x.safetensors --learner em --nonempty": (2, ["--learner em", "use one of auto, lbfgs, adam"]),
    "fit with_empty.txt -o x.safetensors --nonempty": (1, ["1 of 3 baskets are empty", "--nonempty"]),
    "fit one.txt -o x.safetensors --validation 0.5": (1, ["--validation", "leaves 0 baskets to learn from"]),
    "recommend model.safetensors hay --baskets orders.csv": (2, ["not both"]),
    "sample model.safetensors --colour red": (2, ["--colour"]),
    "sampel": (2, ["sampel"]),
}


@pytest.fixture(scope="module")
def mistaken(shop: Path) -> Path:
    """The shop, with files that cannot be used."""
    (shop / "empty.csv").write_text("")
    (shop / "other.csv").write_text("order,product\n1,2\n")
    (shop / "part.safetensors").write_bytes((shop / "model.safetensors").read_bytes()[:900])
    (shop / "strange.txt").write_text("hay\n")
    (shop / "with_empty.txt").write_text("hay\n\nstraw\n")
    (shop / "one.txt").write_text("hay\n")
    return shop


@pytest.mark.parametrize("line", MISTAKES)
def test_a_users_mistake_is_one_line_and_an_exit_code(mistaken: Path, line: str) -> None:
    code, words = MISTAKES[line]
    done = command.run(*line.split(), cwd=mistaken)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("dpplearn: error: ")
    assert done.stderr.count("\n") == 1
    assert all(word in done.stderr for word in words), done.stderr
    assert not (mistaken / "x.safetensors").exists()


def test_every_command_can_be_told_to_be_quiet() -> None:
    """So that a script may say it to all of them."""
    for name in COMMANDS:
        assert "quiet" in signature(command_of(name)).parameters, name


def test_a_long_job_whose_output_is_no_terminal_says_now_and_then_how_far_it_is(
    few_orders: Path, tmp_path: Path
) -> None:
    call = [PROGRAM, "fit", few_orders, "-o", tmp_path / "p.safetensors", "--model", "dpp", "--seed", "0"]
    often = {**ENVIRONMENT, "DPPLEARN_PROGRESS_SECONDS": "0.02"}
    told = subprocess.run(call, capture_output=True, text=True, env=often, timeout=60, check=True)
    assert all(line.startswith("dpplearn: ") for line in told.stderr.splitlines())
    assert re.search(r"^dpplearn: .*seconds so far", told.stderr, re.MULTILINE)
    assert "so far" not in told.stdout
    quiet = subprocess.run([*call, "--quiet"], capture_output=True, text=True, env=often, timeout=60, check=True)
    assert quiet.stderr == ""


def test_one_recommendation_does_not_wait_for_what_is_slow_to_load(mixture_file: Path) -> None:
    """Which is numba and scipy; and its answer is that of a process which has loaded them."""
    first = dl.load(mixture_file).items[0]
    code = (
        "import sys\n"
        "from dpplearn.cli import main\n"
        f"sys.argv = ['dpplearn', 'recommend', {str(mixture_file)!r}, {first!r}, '--json']\n"
        "assert main() == 0\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=True)
    answer, loaded = done.stdout.splitlines()
    assert not {"numba", "scipy", "duckdb", "rich"} & set(loaded.split())
    found = dl.load(mixture_file).recommend([first], 5)
    assert [(each["item"], each["probability"]) for each in parsed(answer)["recommendations"]] == [
        (each.item, pytest.approx(each.probability, rel=1e-9)) for each in found
    ]


def test_progress_goes_to_a_terminal_only_and_quiet_turns_it_off(few_orders: Path, tmp_path: Path) -> None:
    call = [PROGRAM, "fit", few_orders, "-o", tmp_path / "p.safetensors", "--max-iter", "3", "--json"]
    call += ["--model", "dpp", "--seed", "0"]
    shown = []
    for options in ([], ["--quiet"]):
        terminal = Terminal()
        done = subprocess.run(
            [*call, *options], stdout=subprocess.PIPE, stderr=terminal.theirs, env=ENVIRONMENT, timeout=60, check=True
        )
        shown.append(terminal.close())
        assert parsed(done.stdout.decode())["n_iter"] == 3
    assert "iteration" in shown[0]
    assert "log-likelihood -" in shown[0]
    assert "cross-validating the shrinkage" in shown[0]
    assert shown[1] == ""


@pytest.mark.parametrize(("ending", "kind"), [(signal.SIGINT, "dpp"), (signal.SIGTERM, "mixture")])
def test_a_fit_asked_to_end_saves_the_best_model_so_far(
    ending: int, kind: str, shop: Path, orders: dl.Baskets, tmp_path: Path
) -> None:
    """To the checkpoint, or without one to the output."""
    output, checkpoint, terminal = tmp_path / "m.safetensors", tmp_path / "c.safetensors", Terminal()
    endless = ["--tol", 0, "--max-iter", 10**8, "--json"]
    endless += ["--shrinkage", 0] if kind == "dpp" else ["--restarts", 1000, "--checkpoint", checkpoint]
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


def test_ctrl_c_elsewhere_is_one_line_and_130(model: Path) -> None:
    terminal = Terminal()
    with begin("sample", model, "-n", 500_000, stderr=terminal.theirs) as process:
        wait_for(lambda: "drawing" in terminal.shown, process)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    shown = terminal.close()
    assert (process.returncode, out) == (130, "")
    assert shown.splitlines()[-1].endswith("dpplearn: error: interrupted")
    assert "Traceback" not in shown


def test_ctrl_c_whose_exception_is_lost_ends_what_is_under_way_at_its_next_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As that of a callback is, which Python drops."""
    monkeypatch.setattr(INTERRUPTS, "received", None)
    with counted("drawing", 3, show=False) as done:
        done(1)
        with contextlib.suppress(KeyboardInterrupt):
            INTERRUPTS.take(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            done(1)


@pytest.mark.parametrize(
    ("command", "taken"),
    [(["sample", "-n", 3000, "--json"], 1), (["describe"], 0)],
    ids=["json", "table"],
)
def test_a_closed_pipe_is_one_line(model: Path, command: list[Any], taken: int) -> None:
    with begin(command[0], model, *command[1:]) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(taken)
        process.stdout.close()
        err = process.stderr.read()
    assert process.returncode == 1
    assert err == "dpplearn: error: the output was closed before all of it was written\n"

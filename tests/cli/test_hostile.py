"""Random and hostile command lines: one line for a mistake, never a traceback, exit codes 0 to 3 only."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import typer

import dpplearn as dl
from dpplearn.cli.app import COMMANDS, program
from helpers.command import run

N_LINES = 800
# Values that are wrong for most options: of another type, out of range, too long, control characters, other files.
HOSTILE = [
    *("", " ", "-", "--", "-1", "0", "1e999", "nan", "inf", "-inf", "9" * 30, "0x10", "١٢", "None", "true", "a" * 5000),
    *("\x1b[2J", "a\nb", "é", "🙂", "/dev/null", "~", "*", "[", "{}", "%s", "$HOME", "'", '"', ";", "\\"),
    *("=", ",", "basket=", "=item", "item=product,item=item", "basket=basket,item=item,time=item", "2026-99-99"),
]
FILES = ["b.csv", "b.txt", "m", "x", "junk", "empty", "folder", "none", "b.parquet", "*.csv", "out.csv", "out.png"]
VALID = ["a", "b", "2", "3", "0.5", "1", "auto", "10", "2026-01-02", "drop", "score", "em", "basket=basket,item=item"]
ARGUMENTS = {
    "MODEL": ["m", "x"],
    "DATA": ["b.csv", "b.txt"],
    "KIND": ["sizes", "segments", "lift"],
    "ORDERS": ["b.csv"],
}
QUICK = {"fit": ["--max-iter", "2", "-q"], "sample": ["-n", "3"], "fit-all": ["-q"], "prepare": ["-q"]}
# A service that starts would not end, and workers of a cluster take seconds.
SKIPPED = {"serve": {"--help"}, "fit": {"--cluster"}, "fit-all": {"--cluster", "--processes"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    baskets = [["a"], ["b"], ["a", "b"], ["a", "c"], ["b", "c"], ["c"]] * 3
    rows = [f"{number},{item},2026-01-0{1 + number % 9}" for number, basket in enumerate(baskets) for item in basket]
    (tmp_path / "b.csv").write_text("\n".join(["basket,item,time", *rows]))
    (tmp_path / "b.txt").write_text("\n".join(map(",".join, baskets)))
    (tmp_path / "junk").write_bytes(random.Random(0).randbytes(500))
    (tmp_path / "empty").write_bytes(b"")
    dl.fit_dpp(baskets, shrinkage=0.1).model.save(tmp_path / "m")
    dl.fit(baskets, segments=2, max_iter=2, rng=0).model.save(tmp_path / "x")
    return tmp_path


def random_line(rng: random.Random) -> list[str]:
    """Return a command with up to six options or arguments, valid and hostile ones mixed."""
    name = rng.choice([each for each in COMMANDS if each not in ("compare", "diagnose", "serve")])
    name = rng.choice(["compare", "diagnose", "serve"]) if rng.random() < 0.06 else name
    parameters = typer.main.get_command(program([name])).commands[name].params  # type: ignore[attr-defined]
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    options = [each for each in parameters if each.param_type_name == "option"]
    line = [name, *QUICK.get(name, [])]
    for argument in arguments if rng.random() < 0.95 else ():
        usual = ARGUMENTS.get(str(argument.metavar), ["a", "b", "c"])
        line.append(rng.choice(usual if rng.random() < 0.85 else FILES if rng.random() < 0.5 else HOSTILE))
    for option in rng.sample(options, min(len(options), rng.randint(0, 3))):
        spelled = rng.choice([*option.opts, *option.secondary_opts])
        if spelled not in SKIPPED.get(name, ()):
            line += [spelled] if option.is_flag else [spelled, rng.choice(rng.choice([HOSTILE, FILES, VALID, VALID]))]
    if any("--output" in each.opts for each in options) and rng.random() < 0.9:
        line += ["-o", rng.choice(["out", "out", "out.csv", "out.png", "folder/new", "folder", "none/x"])]
    if rng.random() < 0.1:
        line.insert(rng.randrange(len(line) + 1), rng.choice(HOSTILE))
    if name == "serve":
        line += ["--no-such-option"]
    return line


@pytest.mark.slow
def test_no_command_line_shows_a_traceback(folder: Path) -> None:
    rng = random.Random(7)
    inputs = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    codes = set()
    for _ in range(N_LINES):
        line = random_line(rng)
        done = run(*line, cwd=folder)
        assert done.returncode in {0, 1, 2, 3}, line
        assert "Traceback" not in done.stdout + done.stderr, line
        if done.returncode in {1, 2}:
            assert done.stderr.splitlines()[-1].startswith("dpplearn: error: "), line
        codes.add(done.returncode)
        if "--force" not in line:
            assert {path: path.read_bytes() for path in inputs} == inputs, line
        for path, content in inputs.items():
            path.write_bytes(content)
    assert {0, 1, 2} <= codes

"""No command overwrites a file that it reads, under whatever name, or anything but a regular file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import dpplearn as dl
from dpplearn.cli.app import run

NEW = ["-o", "new.safetensors"]
OVERWRITES: dict[str, list[str]] = {
    "the data": ["fit", "s.csv", "-o", "s.csv"],
    "the data through a link": ["fit", "s.csv", "-o", "soft"],
    "the data by a second name": ["fit", "s.csv", "-o", "hard"],
    "data given through a link": ["fit", "soft", "--format", "csv", "-o", "s.csv"],
    "data of a pattern": ["fit", "s*.csv", "-o", "s2.csv"],
    "the data with a checkpoint through a link": ["fit", "s.csv", *NEW, "--checkpoint", "soft"],
    "the items to keep": ["fit", "s.csv", "-o", "s2.csv", "--keep-items", "s2.csv"],
    "the similarities, even with --force": "fit s.csv --learner quality --similarity s2.csv -o s2.csv --force".split(),
    "the model to start from": ["fit", "s.csv", "--start", "m.safetensors", "-o", "m.safetensors"],
    "its own checkpoint": ["fit", "s.csv", "-o", "folder/new", "--checkpoint", "folder/../folder/new"],
    "the model it adds to": ["add-items", "m.safetensors", "toy", "-o", "m.safetensors"],
    "the features it adds by": ["add-items", "m.safetensors", "toy", "--features", "s.csv", "-o", "s.csv"],
    "the model it draws": ["plot", "m.png", "spectrum", "-o", "m.png"],
    "the baskets it draws": "plot m.safetensors reliability --data soft.svg -o soft.svg".split(),
    "the baskets it recommends for": ["recommend", "m.safetensors", "--baskets", "s*.csv", "-o", "s2.csv"],
    "the baskets it scores": ["score", "m.safetensors", "s.csv", "-o", "s.csv"],
    "the model it recommends by": ["recommend", "m.csv", "--baskets", "s.csv", "-o", "m.csv"],
}
NOT_FILES: dict[str, list[str]] = {
    "fit": ["fit", "s.csv", "-o", "pipe"],
    "checkpoint": ["fit", "s.csv", *NEW, "--checkpoint", "pipe"],
    "through a link": ["fit", "s.csv", "-o", "to_pipe"],
    "plot": ["plot", "m.safetensors", "spectrum", "-o", "pipe.png"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("targets")
    (home / "folder").mkdir()
    for name in ("s.csv", "s2.csv"):
        (home / name).write_text("basket,item\n1,a\n1,b\n2,b\n3,a\n")
    dpp = dl.DPP.from_K([[0.5, 0.1], [0.1, 0.5]], ["a", "b"])
    for name in ("m.safetensors", "m.csv", "m.png"):
        dpp.save(home / name)
    for link, file in {"soft": "s.csv", "soft.svg": "s.csv", "to_pipe": "pipe"}.items():
        (home / link).symlink_to(home / file)
    (home / "hard").hardlink_to(home / "s.csv")
    for name in ("pipe", "pipe.png"):
        os.mkfifo(home / name)
    return home


def content(folder: Path) -> dict[str, object]:
    """Return the bytes of all files and the types of everything else."""
    kinds = {path: path.lstat().st_mode for path in folder.rglob("*")}
    return {str(path): path.read_bytes() if stat.S_ISREG(mode) else mode for path, mode in kinds.items()}


def test_no_command_overwrites_its_inputs_or_a_pipe(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    before = content(folder)
    for code, calls in ((2, OVERWRITES), (1, NOT_FILES)):
        for what, call in calls.items():
            assert run(call) == code, what
            out, err = capfd.readouterr()
            assert (out, err.count("\n")) == ("", 1), what
            assert content(folder) == before, what


def test_a_checkpoint_may_be_the_one_that_the_fit_starts_from(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.txt").write_text("a,b\nb\na\n")
    state, call = str(tmp_path / "c"), ["fit", str(tmp_path / "s.txt"), "-o", str(tmp_path / "m"), "--max-iter", "1"]
    for options in ([], ["--start", state]):
        assert run([*call, "--checkpoint", state, *options]) == 0
    assert capfd.readouterr().err == ""

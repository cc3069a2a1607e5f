"""Fits and model files survive kills, failed writes, signals and concurrent writers."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.cli.app import run
from dpplearn.cli.errors import INTERRUPTS
from helpers.program import ENVIRONMENT, PROGRAM

pytestmark = pytest.mark.slow

BASKETS = dl.datasets.make_registries("safety", 100, rng=3)
SETTINGS = {
    "lbfgs": {"shrinkage": 0, "rng": 5, "threads": 1, "tol": 0, "max_iter": 200},
    "EM with restarts": {"learner": "em", "restarts": 3, "rng": 5, "threads": 1, "tol": 0, "max_iter": 80},
}
FIT = """
import json, sys
from pathlib import Path
import dpplearn as dl
state, model = map(Path, sys.argv[1:3])
baskets = dl.datasets.make_registries("safety", 100, rng=3)
start = state if state.exists() else None
dl.fit_dpp(baskets, **json.loads(sys.argv[3]), start=start, callback=dl.Checkpoint(state, seconds=0)).model.save(model)
"""


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_fit_killed_again_and_again_continues_from_its_checkpoint(setting: str, tmp_path: Path) -> None:
    state, model = tmp_path / "state", tmp_path / "model"
    call = [sys.executable, "-c", FIT, str(state), str(model), json.dumps(SETTINGS[setting])]
    rng, reached = random.Random(), []
    while not model.exists():
        with subprocess.Popen(call) as process:
            if len(reached) < 2 and _has_begun(state, process):
                time.sleep(rng.uniform(0, 0.3))
                process.kill()
        assert process.returncode in (0, -signal.SIGKILL)
        reached.append(dl.load(state).log_likelihood(BASKETS))
    assert dl.load(model).log_likelihood(BASKETS) >= max(reached) - 1e-9
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "state"]  # and no temporary files


def _has_begun(state: Path, process: subprocess.Popen[bytes]) -> bool:
    """Return whether the process has written a checkpoint."""
    before = state.stat().st_mtime_ns if state.exists() else 0
    while process.poll() is None:
        if state.exists() and state.stat().st_mtime_ns > before:
            return True
        time.sleep(0.005)
    return False


WRITE = """
import sys
import numpy as np, dpplearn as dl
from dpplearn.distributions.spectral import SpectralDPP
n = int(sys.argv[2])
dpp = dl.DPP(SpectralDPP(np.full(n, 1 / n), np.eye(n)))
dpp.save(sys.argv[1])
print("writing", flush=True)
while True:
    dpp.save(sys.argv[1])
"""


def test_of_two_writers_of_one_model_one_wins_and_a_killed_one_leaves_nothing(tmp_path: Path) -> None:
    model, seen = tmp_path / "model", set()
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITE, str(model), str(n)], stdout=subprocess.PIPE) for n in (50, 80)
    ]
    with writers[0], writers[1]:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"writing\n"
        deadline = time.monotonic() + 30
        while seen != {50, 80}:
            seen.add(_checked(dl.load(model)))
            assert time.monotonic() < deadline, seen
        for killed in writers:
            killed.kill()
            for _ in range(100):
                _checked(dl.load(model))
    dl.load(model).save(model)
    assert list(tmp_path.iterdir()) == [model]


def _checked(dpp: dl.DPP) -> int:
    n = len(dpp.items)
    np.testing.assert_array_equal(dpp.kernel.eigenvalues, np.full(n, 1 / n))
    return n


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of baskets, after filling the cache of compiled functions."""
    dl.fit_dpp(BASKETS, rng=0, max_iter=2, nonempty=False)
    path = tmp_path_factory.mktemp("faults") / "orders.txt"
    path.write_text("".join(",".join(f'"{item}"' for item in basket) + "\n" for basket in BASKETS))
    return path


def maximum_likelihood(data: Path, folder: Path) -> list[object]:
    return ["fit", data, "-o", folder / "model", "--checkpoint", folder / "state", "--shrinkage", 0, "--json"]


def command(*arguments: object) -> int:
    """In this process."""
    return run(list(map(str, arguments)))


def test_a_model_that_cannot_be_saved_is_had_from_the_checkpoint(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save = dl.DPP.save

    def full(dpp: dl.DPP, path: Path, *, force: bool) -> None:
        if path == tmp_path / "model":
            raise dl.InputError(f"{path} cannot be written: No space left on device")
        save(dpp, path, force=force)

    call = maximum_likelihood(data, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(dl.DPP, "save", full)
        assert command(*call) == 1
    assert str(tmp_path / "state") in capsys.readouterr().err
    assert command(*call, "--start", tmp_path / "state") == 0
    again = json.loads(capsys.readouterr().out)["train"]["log_likelihood"]
    assert command(*call[:4], *call[6:]) == 0
    assert again >= json.loads(capsys.readouterr().out)["train"]["log_likelihood"] - 1e-9


def test_a_signal_while_the_model_is_saved_waits_until_it_is(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save = dl.DPP.save

    def interrupted(dpp: dl.DPP, path: Path, *, force: bool) -> None:
        if path == tmp_path / "model":
            INTERRUPTS.take(signal.SIGTERM)
        save(dpp, path, force=force)

    monkeypatch.setattr(INTERRUPTS, "received", None)
    monkeypatch.setattr(dl.DPP, "save", interrupted)
    assert command(*maximum_likelihood(data, tmp_path)) == 128 + signal.SIGTERM
    assert str(tmp_path / "model") in capsys.readouterr().err
    assert dl.load(tmp_path / "model").learned.stop == "TOLERANCE"
    with pytest.raises(KeyboardInterrupt):  # elsewhere it does not wait
        INTERRUPTS.take(signal.SIGTERM)


@pytest.mark.parametrize(("closed", "prints"), [(">&-", False), ("<&-", True), ("<&- >&- 2>&-", False)])
def test_closed_streams_are_no_error(closed: str, prints: bool, tmp_path: Path) -> None:
    dl.DPP.from_K([[0.5]]).save(tmp_path / "model")
    call = ["sh", "-c", f'"$@" {closed}', "sh", str(PROGRAM), "recommend", str(tmp_path / "model"), "--json"]
    done = subprocess.run(call, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (json.loads(done.stdout)["basket"] == []) if prints else (done.stdout == "")


def test_without_standard_error_a_warning_does_not_end_up_in_the_answer(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("a,a\nb\n")  # an item twice
    call = ["sh", "-c", '"$@" 2>&-', "sh", str(PROGRAM), "fit", str(tmp_path / "b.txt"), "-o", str(tmp_path / "m")]
    done = subprocess.run([*call, "--json"], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["n_baskets"] == 2

"""The wheel and the sdist: what they hold, and that the wheel installs and runs where nothing of dpplearn was."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import dpplearn
from helpers.manual import ROOT

pytestmark = pytest.mark.slow

SOURCE = Path(dpplearn.__file__).parent
NEEDED = (
    *("src", "tests", "docs", "examples", "benchmarks", "reproduction", "README.md", "CHANGELOG.md", "CITATION.cff"),
    *("CONTRIBUTING.md", "LICENSE", "Makefile", "constraints.txt", "pyproject.toml"),
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both. With the tools that are here: without isolation, no package index is needed."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(*built.glob("*.whl")) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    ours = {path.relative_to(SOURCE.parent).as_posix() for path in SOURCE.rglob("*") if path.is_file()}
    assert names == {name for name in ours if "__pycache__" not in name}
    assert {"dpplearn/py.typed", "dpplearn/service/page/index.html"} <= names


def test_the_sdist_holds_what_tests_and_manual_need(built: Path) -> None:
    with tarfile.open(*built.glob("*.tar.gz")) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    files = [path for each in NEEDED for path in (ROOT / each, *(ROOT / each).rglob("*")) if path.is_file()]
    made = ("__pycache__", "docs/_drawn/", "docs/reference/generated/", "benchmarks/results/")
    wanted = {path.relative_to(ROOT).as_posix() for path in files}
    assert {name for name in wanted if not any(part in name for part in made)} <= names
    assert not any(part in name for name in names for part in made)


def test_the_wheel_installs_and_runs_in_an_empty_environment(built: Path, tmp_path: Path) -> None:
    """What it depends on is taken from here, so that no package index is needed; `make dist` installs all anew."""
    venv.create(tmp_path / "env", with_pip=False)
    programs = tmp_path / "env" / "bin"
    (wheel,) = built.glob("*.whl")

    def output(*command: object) -> str:
        whole = [str(each) for each in command]
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        done = subprocess.run(whole, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    output(sys.executable, "-m", "pip", "--python", programs / "python", "install", "--no-deps", "--no-index", wheel)
    site = output(programs / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    Path(site, "needed.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    (tmp_path / "orders.txt").write_text("crib,monitor\ncot\ncrib\nmonitor,cot\n" * 5, encoding="utf-8")
    assert output(programs / "python", "-c", "import dpplearn; print(dpplearn.__file__)").startswith(site)
    assert output(programs / "dpplearn", "--version") == f"dpplearn {dpplearn.__version__}\n"
    output(programs / "dpplearn", "fit", "orders.txt", "-o", "model", "--shrinkage", 1)  # compiles little
    assert "monitor" in output(programs / "dpplearn", "recommend", "model", "crib")

"""The package as a whole: what import loads, and that data flows one way through the layers."""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dpplearn
import processors

SOURCE = Path(dpplearn.__file__).parent

# A folder imports only from folders before it; what is in no folder is for all.
FOLDERS = (
    "utils data datasets distributions models learners evaluation analysis lifecycle plots integrations pipeline "
    "service cli"
).split()
# These import from even fewer folders.
CORE = {"utils", "data", "distributions"}
IMPORTS_FROM = {
    "distributions": CORE,
    "models": CORE | {"models"},
    "learners": CORE | {"models", "learners"},
    "service": CORE | {"models", "service"},
}
ONLY_IN = {
    "numba": ("distributions/compiled/",),
    "llvmlite": ("distributions/compiled/",),
    "rich": ("utils", "cli"),
    "matplotlib": ("plots",),
    "sklearn": ("integrations",),
    "arviz_stats": ("learners/posterior.py",),
    "dask": ("utils/cluster",),
    "distributed": ("utils/cluster",),
    "fastapi": ("service",),
    "uvicorn": ("service",),
    "prometheus_client": ("service",),
}


def imported(path: Path) -> set[str]:
    """The dotted names of all modules that a file imports, wherever in it."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    named = ((node.module, alias.name) for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names)
    return plain | {f"{module}.{name}" for module, name in named}


def broken_rules(file: str, name: str) -> bool:
    """Whether a file of the package must not import this."""
    top, *inside = name.split(".")
    if top in ONLY_IN:
        return not file.startswith(ONLY_IN[top])
    here, there = file.split("/")[0], inside[0] if inside else ""
    if top != "dpplearn" or here not in FOLDERS or there not in FOLDERS:
        return False
    return FOLDERS.index(there) > FOLDERS.index(here) or there not in IMPORTS_FROM.get(here, FOLDERS)


def test_a_folder_imports_only_from_the_folders_before_it() -> None:
    files = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
    assert {file.split("/")[0] for file in files if "/" in file} <= set(FOLDERS)
    assert [(file, name) for file, path in files.items() for name in imported(path) if broken_rules(file, name)] == []


def test_the_rule_between_folders_can_be_broken() -> None:
    assert broken_rules("models/dpp.py", "dpplearn.learners.loop.run")
    assert broken_rules("distributions/scaled.py", "dpplearn.models.dpp.DPP")
    assert broken_rules("distributions/scaled.py", "dpplearn.datasets.make_registries")
    assert broken_rules("distributions/scaled.py", "numba.njit")
    assert broken_rules("service/app.py", "dpplearn.learners.fit.fit")
    assert broken_rules("data/baskets.py", "numba.njit")
    assert not broken_rules("cli/app.py", "dpplearn.models.dpp.DPP")


def test_the_tests_for_other_processors_exist() -> None:
    names = f"{processors.SHORT} {processors.FULL}".split()
    assert [name for name in names if not (processors.TESTS / name).exists()] == []


def output_of(code: str, **environment: str) -> str:
    """What a process of its own prints."""
    command, variables = [sys.executable, "-c", code], {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=variables).stdout.strip()


@pytest.mark.slow
def test_importing_loads_nothing_slow() -> None:
    slow = {"numba", "duckdb", "sklearn", "scipy", "rich", "pandas", "matplotlib"}
    assert slow.isdisjoint(output_of("import sys, dpplearn; print(*sys.modules)").split())
    loaded = output_of("import sys, dpplearn; dpplearn.DPPEstimator; print(*sys.modules)")
    assert "sklearn" in loaded.split()  # the check can fail


def test_dir_shows_public_names_alone_and_modules_can_be_imported_all_the_same() -> None:
    assert dir(dpplearn) == sorted(dpplearn.__all__)
    assert all(hasattr(dpplearn, name) for name in dpplearn.__all__)
    for module in ("datasets", "plots", "learners"):
        assert importlib.import_module(f"dpplearn.{module}").__name__ == f"dpplearn.{module}"


@pytest.mark.slow
def test_nothing_recompiles_in_a_second_process() -> None:
    """The first process may compile; the second must find every loop that a fit and a draw use in the cache."""
    code = """
import dpplearn as dl
dl.fit_dpp([[0], [1], [0, 1]], "k-ascent", rng=0, max_iter=3).model.sample(2, rng=0)
dl.DPP.from_K([[1.0, 0], [0, 0.5]]).log_prob([0])
dl.DPP.from_K([[0.5, 0], [0, 0.5]]).sample(2, k=1, rng=0)
from dpplearn.distributions.compiled import minors, sampling
loops = [minors.minors_of, sampling.choose_k, sampling.draw_items]
print([(sum(loop.stats.cache_hits.values()), sum(loop.stats.cache_misses.values())) for loop in loops])
"""
    output_of(code)
    assert output_of(code) == "[(1, 0), (1, 0), (1, 0)]"


@pytest.mark.slow
def test_compiled_code_is_made_anew_when_a_file_that_it_is_made_of_changes(tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "dpplearn", ignore=shutil.ignore_patterns("__pycache__"))
    code = """
from dpplearn.distributions.compiled.minors import minors_of
print(sum(minors_of.stats.cache_hits.values()), sum(minors_of.stats.cache_misses.values()))
"""
    found = []
    for change in ("", "", "# changed\n"):
        with open(tmp_path / "dpplearn/distributions/compiled/minors.py", "a", encoding="utf-8") as file:
            file.write(change)
        found.append(output_of(code, PYTHONPATH=str(tmp_path), NUMBA_OPT="1"))  # which compiles sooner
    assert found == ["0 1", "1 0", "0 1"]

"""The package as a whole: what import loads, and that data flows one way through the layers."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import dpplearn

SOURCE = Path(dpplearn.__file__).parent

# A module imports only from modules before it.
LAYERS = (
    "version errors memory arrays weights catalogue texts tables basket_input baskets readers threads kernel "
    "independence lanes statistics_loops bordered_loops statistics initialise meetings cooccurrence "
    "learners.loop learners.stopping learners.line_search learners.factor learners.em learners.ascent learners.lbfgs "
    "learners.race learners.auto learners.natural_em learners.picard learners.mm learners.adam learners "
    "training conditioning explaining sizes sampling_loops sampling selection dpp files tensor_file "
    "model_file kernel_file "
    "checkpoint progress prior runs prior_choice effort fit_result fitting "
    "metrics bootstrap calibration baselines outcomes diversity evaluation_text evaluation_result evaluation "
    "cross_validation diagnosis substitutes datasets estimator experiments experiments.textbook "
    "experiments.words experiments.registries experiments.trials experiments.authors experiments.printed "
    "experiments.recovery "
    "experiments.plan experiments.results experiments.runner experiments.reproduction "
    "experiments.measures experiments.costs experiments.summary experiments.claims experiments.sections "
    "experiments.figures experiments.report plot_layout plots"
).split()
USER_INTERFACE = {"cli", "demo"}
UPWARD = {("dpp", "model_file")}  # a model saves itself


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dpplearn"):
            inside = node.module.removeprefix("dpplearn").removeprefix(".")
            found |= {inside} if inside else {alias.name for alias in node.names}
    return found


def test_a_module_imports_only_from_the_layers_above_it() -> None:
    modules = {module_name(path): path for path in SOURCE.rglob("*.py")}
    del modules["__init__"]
    interface = {name for name in modules if name.split(".")[0] in USER_INTERFACE}
    assert set(modules) == set(LAYERS) | interface
    for name in LAYERS:
        allowed = set(LAYERS[: LAYERS.index(name)])
        upward = {other for other in imports(modules[name]) - allowed if (name, other) not in UPWARD}
        assert not upward, f"{name} imports {upward}"


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(output.split())


def test_importing_loads_nothing_slow() -> None:
    slow = {"numba", "duckdb", "sklearn", "scipy", "rich", "pandas", "matplotlib"}
    assert not slow & loaded_by("import dpplearn")
    assert "sklearn" in loaded_by("import dpplearn; dpplearn.DPPEstimator")  # the check can fail


def test_every_public_name_is_there() -> None:
    for name in dpplearn.__all__:
        assert getattr(dpplearn, name) is not None


def test_dir_shows_public_names_alone_and_modules_can_be_imported_all_the_same() -> None:
    assert dir(dpplearn) == sorted(dpplearn.__all__)
    for module in ("datasets", "plots", "fitting", "experiments.textbook"):
        assert importlib.import_module(f"dpplearn.{module}").__name__ == f"dpplearn.{module}"


def test_nothing_recompiles_in_a_second_process() -> None:
    """The first process may compile; the second must find every loop that a fit and a draw use in the cache."""
    code = """
import dpplearn as dl
dl.fit([[0], [1], [0, 1]], "k-ascent", rng=0, max_iter=3).dpp.sample(2, rng=0)
dl.DPP(dl.Kernel.from_K([[1.0, 0], [0, 0.5]])).log_prob([0])
dl.DPP(dl.Kernel.from_K([[0.5, 0], [0, 0.5]])).sample(2, k=1, rng=0)
from dpplearn import bordered_loops, sampling_loops, statistics_loops
loops = [statistics_loops.definite, bordered_loops.bordered, sampling_loops.choose_k, sampling_loops.draw_items]
print([(sum(loop.stats.cache_hits.values()), sum(loop.stats.cache_misses.values())) for loop in loops])
"""
    for _ in range(2):
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[(1, 0), (1, 0), (1, 0), (1, 0)]"

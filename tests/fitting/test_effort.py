"""What a fit will take: limits on time that hold from the first second on, memory that is there, and estimates."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import InputError, InputWarning, Kernel, Stop
from dpplearn.datasets.registries import make_registries
from dpplearn.fitting import effort, prior_choice, runs
from dpplearn.fitting import fit as fitting
from dpplearn.fitting.effort import LONG, Effort, LongWork, duration
from dpplearn.fitting.options import FitOptions
from dpplearn.learners.registry import LEARNERS, learners_of
from dpplearn.learners.starts import INITIALISERS, moments_kernel
from dpplearn.tools import memory
from helpers.program import run

BASKETS = make_registries("safety", 300, rng=0)


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("there was no time for this")


@pytest.fixture
def no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, learner in LEARNERS.items():
        monkeypatch.setitem(LEARNERS, name, replace(learner, steps=never))


def slow(seconds: float) -> Callable[..., Kernel]:
    def start(baskets: dl.Baskets, rng: np.random.Generator) -> Kernel:
        time.sleep(seconds)
        return moments_kernel(baskets)

    return start


@pytest.mark.parametrize("learner", learners_of("dpp", whole_kernel=True))
def test_without_time_for_a_start_the_model_is_independent_items(
    learner: str, no_steps: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(INITIALISERS, "moments", never)
    result = dl.fit(BASKETS, learner, prior=0, max_seconds=1e-9)
    assert (result.stop, result.n_iter, result.converged) == (Stop.MAX_SECONDS, 0, False)
    assert result.log_likelihood == pytest.approx(result.independent_log_likelihood, abs=1e-12)
    np.testing.assert_allclose(result.dpp.marginals(), BASKETS.frequencies(), atol=1e-12)


def test_a_start_is_not_looked_for_that_would_take_longer_than_there_is_time(
    no_steps: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effort, "decomposition_seconds", lambda n_items: 60.0)
    monkeypatch.setitem(INITIALISERS, "moments", never)
    assert dl.fit(BASKETS, "em", max_seconds=50).stop is Stop.MAX_SECONDS


def test_the_end_of_a_run_counts_in_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner that works with a factor must find eigenvectors at its end."""
    monkeypatch.setattr(effort, "decomposition_seconds", lambda n_items: 30.0)
    monkeypatch.setitem(INITIALISERS, "moments", slow(0))
    assert dl.fit(BASKETS, "lbfgs", max_seconds=70).n_iter == 0
    assert dl.fit(BASKETS, "em", max_seconds=70).converged


@pytest.mark.parametrize("nonempty", [False, True])
def test_a_start_that_took_all_the_time_is_the_model_unless_independent_items_are_likelier(
    nonempty: bool, no_steps: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(INITIALISERS, "moments", slow(0.3))
    baskets = BASKETS.subset(BASKETS.sizes > 0) if nonempty else BASKETS
    result = dl.fit(baskets, prior=0, max_seconds=0.3, nonempty=nonempty)
    assert result.stop is Stop.MAX_SECONDS
    start = dl.DPP(moments_kernel(baskets.deduplicated()), baskets.items, nonempty=nonempty)
    either = (start.log_likelihood(baskets), result.independent_log_likelihood)
    assert result.log_likelihood == pytest.approx(max(either))


def test_a_model_given_as_a_start_is_what_there_is_without_time() -> None:
    given = dl.fit(BASKETS, "em")
    result = dl.fit(BASKETS, "em", start=given, max_seconds=1e-9)
    assert result.stop is Stop.MAX_SECONDS
    assert result.log_likelihood == pytest.approx(given.log_likelihood, abs=1e-9)


def test_without_time_no_prior_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prior_choice, "pseudo_baskets", never)
    result = dl.fit(BASKETS, max_seconds=1e-9, model="dpp", nonempty=False)
    assert (result.stop, result.prior) == (Stop.MAX_SECONDS, np.inf)


def test_time_that_is_up_between_two_runs_ends_the_fit_with_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now, follow = [0.0], runs.run

    def followed(*arguments: Any, **options: Any) -> Any:
        found = follow(*arguments, **options)
        now[0] = 100.0
        return found

    monkeypatch.setattr(fitting.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(runs, "run", followed)
    monkeypatch.setitem(INITIALISERS, "wishart", never)
    result = dl.fit(BASKETS, "em", restarts=2, max_seconds=50)
    assert (result.stop, len(result.restarts)) == (Stop.MAX_SECONDS, 1)
    assert result.n_iter > 5


@pytest.mark.parametrize(("learner", "prior"), [("em", 0.0), ("auto", "auto")])
def test_a_fit_without_time_for_a_step_goes_on_to_the_result_of_a_whole_one(
    learner: str, prior: float | str, tmp_path: Path
) -> None:
    """And not from independent items, a saddle that em does not leave."""
    baskets = make_registries("safety", 100, rng=0)
    whole = dl.fit(baskets, learner, prior=prior, rng=1)
    cut_short = dl.fit(baskets, learner, prior=prior, rng=1, max_seconds=1e-9, checkpoint=tmp_path / "state")
    assert cut_short.stop is Stop.MAX_SECONDS
    resumed = dl.fit(baskets, learner, prior=prior, resume=tmp_path / "state")
    np.testing.assert_array_equal(resumed.kernel.eigenvalues, whole.kernel.eigenvalues)
    np.testing.assert_array_equal(resumed.history.log_likelihood, whole.history.log_likelihood)


LARGE = dl.Baskets.from_lists([[0, 1], [1, 99_999], [2]])


@pytest.mark.parametrize(
    "work",
    [
        lambda: dl.fit(LARGE, model="dpp", nonempty=False),
        lambda: dl.fit(LARGE, "em"),
        lambda: dl.diagnose(LARGE.together([LARGE, dl.Baskets.from_lists([range(100_000)])]), most_items=100_000),
        lambda: dl.cross_validate(LARGE, {"mixture": {"learner": "mixture"}}, folds=2),
        lambda: dl.cross_validate(LARGE, {"em": {"learner": "em"}}, folds=2),
    ],
)
def test_what_cannot_fit_in_memory_is_refused_at_once_with_figures(
    work: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel of 100,000 items alone is 80 GB."""
    monkeypatch.setattr(memory, "memory_limit", lambda: 64e9)
    with pytest.raises(InputError, match=r"100,000 items \(a kernel of 80 GB\).* needs about [\d.]+ TB.* are 64 GB; "):
        work()


def test_a_sparse_kernel_is_not_made_dense_where_that_cannot_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy.sparse import eye_array

    monkeypatch.setattr(memory, "memory_limit", lambda: 64e9)
    with pytest.raises(InputError, match="needs about 320 GB of memory, and there are 64 GB"):
        Kernel.from_L(eye_array(100_000))


def test_the_program_refuses_in_one_line_what_cannot_fit(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("basket,item\n" + "".join(f"{i},x{i}\n" for i in range(200_000)))
    answer = run("fit", tmp_path / "s.csv", "--model", "dpp", "-o", tmp_path / "m")
    assert answer.returncode == 1
    assert "TB of memory, and there are" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_a_limit_on_the_process_counts() -> None:
    pytest.importorskip("resource")
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**31, -1)); "
        "from dpplearn.tools.memory import memory_limit"
    )
    done = subprocess.run([sys.executable, "-c", f"{code}; print(memory_limit())"], capture_output=True, text=True)
    assert float(done.stdout) == 2**31, done.stderr


def test_the_least_limit_of_the_control_groups_around_counts(tmp_path: Path) -> None:
    (tmp_path / "service" / "job").mkdir(parents=True)
    for group, text in (("service/job", "max\n"), ("service", "3000000\n"), (".", "9223372036854771712\n")):
        (tmp_path / group / "memory.max").write_text(text)
    assert sorted(memory.group_limits(tmp_path, "/service/job", "memory.max")) == [3e6, 9223372036854771712]
    assert list(memory.group_limits(tmp_path, "/elsewhere", "memory.max")) == [9223372036854771712]


@pytest.mark.parametrize(
    ("size", "said"), [(512e3, "512 kB"), (3e6, "3 MB"), (80e9, "80 GB"), (2.96e12, "2.96 TB"), (1.2e15, "1,200 TB")]
)
def test_sizes_are_in_the_unit_that_reads_best(size: float, said: str) -> None:
    assert memory.in_bytes(size) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(75, "75 seconds"), (300, "5 minutes"), (10_000, "3 hours"), (1e6, "12 days")]
)
def test_durations_are_in_the_unit_that_reads_best(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.fixture
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """As estimates see it."""
    monkeypatch.setattr(effort, "LONG", 1.0)
    monkeypatch.setattr(effort, "DECOMPOSITION", 1e-3)
    monkeypatch.setattr(effort, "decomposition_seconds", lambda n_items: 1.0)


def told(work: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(each.message) for each in caught if issubclass(each.category, LongWork)]


def test_a_long_fit_says_beforehand_how_long_and_how_much_memory(slow_machine: None) -> None:
    (said,) = told(lambda: dl.fit(BASKETS, "em", max_iter=5))
    assert said.startswith("this fit will take about 9 seconds, and up to 238 kB of memory; max_seconds ")
    assert issubclass(LongWork, InputWarning)


def test_a_comparison_says_so_once_for_all_its_fits(slow_machine: None) -> None:
    models = {"em": {"learner": "em"}, "ascent": {"learner": "k-ascent"}}
    (said,) = told(lambda: dl.cross_validate(BASKETS, models, folds=2, max_iter=2))
    assert said.startswith("this comparison will take about ")


def test_a_diagnosis_says_so(slow_machine: None) -> None:
    (said,) = told(lambda: dl.diagnose(BASKETS, most_items=4))
    assert said.startswith("this diagnosis will take about ")


def test_a_short_fit_and_one_that_a_limit_makes_short_measure_and_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "pass_seconds", never)
    assert not told(lambda: dl.fit(BASKETS, "em"))
    monkeypatch.setattr(effort, "DECOMPOSITION", 1.0)
    assert not told(lambda: dl.fit(BASKETS, "em", max_iter=2, max_seconds=LONG / 2))


def test_an_estimate_grows_with_all_that_makes_a_fit_long() -> None:
    def seconds(baskets: dl.Baskets = BASKETS, **more: Any) -> float:
        options = {"threads": 1, **({"learner": "auto", "prior": 0.0} if "segments" not in more else {}), **more}
        found = effort.fit_effort(baskets.deduplicated(), FitOptions(**options))
        assert isinstance(found, Effort)
        return found.seconds

    plain = seconds()
    assert seconds(prior="auto") > seconds(prior=1.0) > plain > seconds(prior=np.inf)
    assert seconds(segments=20) > 2 * seconds(segments=5)
    assert seconds(restarts=3) == pytest.approx(3 * plain)
    assert seconds(max_iter=5) < plain / 10
    assert seconds(make_registries("feeding", 3000, rng=0)) > 10 * plain

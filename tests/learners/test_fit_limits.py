"""Limits on the time of a fit, and the check that there is enough memory for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from dpplearn.learners.registry import learners_of
from scipy.sparse import eye_array

import dpplearn as dl
from dpplearn import InputError, Stop
from dpplearn.datasets.registries import make_registries
from dpplearn.tools import memory
from helpers.program import run

BASKETS = make_registries("safety", 300, rng=0)


def test_without_time_the_model_is_the_initial_kernel_or_independent_items() -> None:
    for learner in learners_of("dpp", whole_kernel=True):
        result = dl.fit_dpp(BASKETS, learner, shrinkage=0, restarts=2, max_seconds=1e-9)
        assert (result.stop, len(result.restarts), result.converged) == (Stop.MAX_SECONDS, 1, False)
        assert result.restarts[0].n_iter == 0
        if learner not in ("em", "k-ascent"):
            assert result.log_likelihood >= result.independent_log_likelihood - 1e-9


def test_without_time_the_model_is_the_start() -> None:
    given = dl.fit_dpp(BASKETS, "em")
    result = dl.fit_dpp(BASKETS, "em", start=given, max_seconds=1e-9)
    assert result.stop is Stop.MAX_SECONDS
    assert result.log_likelihood == pytest.approx(given.log_likelihood, abs=1e-9)


LARGE = dl.Baskets.from_lists([[0, 1], [1, 99_999], [2]])


@pytest.mark.parametrize(
    "work",
    [
        lambda: dl.fit_dpp(LARGE, nonempty=False),
        lambda: dl.fit_dpp(LARGE, "em"),
        lambda: dl.diagnose(LARGE.together([LARGE, dl.Baskets.from_lists([range(100_000)])]), most_items=100_000),
        lambda: dl.cross_validate(LARGE, {"mixture": {"learner": "mixture"}}, folds=2),
        lambda: dl.Kernel.from_L(eye_array(100_000)),
    ],
)
def test_work_that_exceeds_the_memory_is_refused(work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of 100,000 items alone takes 80 GB."""
    monkeypatch.setattr(memory, "memory_limit", lambda: 64e9)
    with pytest.raises(InputError, match=r"(80|320).*64"):
        work()


@pytest.mark.slow
def test_the_program_refuses_work_that_exceeds_the_memory_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("basket,item\n" + "".join(f"{i},x{i}\n" for i in range(200_000)))
    answer = run("fit", tmp_path / "s.csv", "--model", "dpp", "-o", tmp_path / "m")
    assert answer.returncode == 1
    assert "200,000" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_the_memory_needed_grows_with_items_and_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 40 items, 10 segments fit into a megabyte, and 100 do not."""
    baskets = dl.Baskets.from_lists([[i, (i + 1) % 40] for i in range(40)])
    monkeypatch.setattr(memory, "memory_limit", lambda: 1e6)
    assert dl.fit(baskets, segments=10, rng=0, max_iter=0).n_iter == 0
    with pytest.raises(InputError, match=r"40.*100"):
        dl.fit(baskets, segments=100, rng=0, max_iter=0)
    with pytest.raises(InputError, match="400"):
        dl.fit_dpp(np.eye(400, dtype=bool).nonzero()[1][:, None].tolist(), "em")

"""The mixture learner: gradient with penalties, monotone steps, and what the start finds."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from dpplearn import Baskets
from dpplearn.learners.kernels import distribution_of
from dpplearn.learners.loop import Step
from dpplearn.learners.mixture import MixtureProblem, mixture

N = 6
RNG = np.random.default_rng(1)
SETS = [sorted(RNG.choice(N, size, replace=False).tolist()) for size in RNG.integers(1, N + 1, 60)]
BASKETS = Baskets.from_lists(SETS, n_items=N).weighted(RNG.uniform(0.5, 3, len(SETS)))


def problem(segments: int = 3, *, nonempty: bool = True, rank: int = 2, attraction: bool = True) -> MixtureProblem:
    return MixtureProblem(BASKETS, 1, nonempty, segments, rank, attraction)


@pytest.mark.parametrize("attraction", [False, True])
@pytest.mark.parametrize(("segments", "rank"), [(1, 2), (3, 2), (3, 0)])
def test_no_step_falls_and_the_value_is_that_of_the_kernel(segments: int, rank: int, attraction: bool) -> None:
    given = problem(segments, rank=rank, attraction=attraction)
    steps = list(islice(mixture(given.initial("random", np.random.default_rng(0)), given), 160))
    for phase in (True, False):  # segments alone, then everything
        values = [step.objective for step in steps if step.preliminary == phase]
        assert np.all(np.diff(values) >= 0)
        assert bool(values) == (not phase or segments > 1)
    assert values[-1] > (values[0] if rank or attraction else steps[0].objective)
    last = steps[-1].kernel
    assert steps[-1].log_likelihood == pytest.approx(
        distribution_of(last, nonempty=True).mean_log_likelihood(BASKETS), rel=1e-12
    )
    assert values[-1] - 1e-12 <= given.objective(last) < values[-1] + 0.01  # with the least penalty of its kernel
    if not attraction:
        X = last.components.interaction.X[0]
        np.testing.assert_allclose(X, X.T if rank else 0, atol=1e-12)


def first_of_everything(given: MixtureProblem) -> Step:
    """Return the first step after the segments have been learned."""
    start = given.initial("random", np.random.default_rng(0))
    return next(step for step in mixture(start, given) if not step.preliminary)


def test_substitutes_repel_from_the_start_also_where_segments_explain_them() -> None:
    """Two segments, one for each item, explain this pair completely."""
    baskets = Baskets.from_lists([[0], [1]] * 100, n_items=2)
    C = first_of_everything(MixtureProblem(baskets.deduplicated(), 1, True, 2, 1)).kernel.components.interaction.X[0]
    assert C[0, 1] + C[1, 0] > 1


def test_complements_attract_from_the_start() -> None:
    lists = [[0, 1], [0, 1], [2], [0], [1], [2, 3], [3], []] * 50 + [[0, 1]] * 100
    given = MixtureProblem(Baskets.from_lists(lists, n_items=4).deduplicated(), 1, False, 1)
    skew = first_of_everything(given).kernel.components.interaction.X[0]
    attraction = np.abs(skew - skew.T)
    assert attraction[0, 1] > 0.2
    assert attraction[0, 2] == 0

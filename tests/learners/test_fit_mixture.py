"""fit: recovery from samples, comparison with independent items, starts, limits and options; steps of the learner."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets, FitProgress, InputError, Stop
from dpplearn.learners.kernels import Segments, distribution_of
from dpplearn.learners.loop import Step
from dpplearn.learners.mixture import MixtureProblem, mixture
from dpplearn.learners.settings import settings_of

N = 8
A = np.zeros((N, N))
A[0, 1], A[1, 0] = 3, -3  # complements
U = np.zeros((N, 1))
U[2:4, 0] = 3  # substitutes
LIKES = np.where(np.arange(N) < 4, 1.5, -1.5)
TRUTH = Segments.dense(np.array([0.6, 0.4]), np.stack([-1.5 + LIKES, -1.5 - LIKES]), U @ U.T + A)


def drawn(n: int, seed: int = 0) -> Baskets:
    return Baskets.from_lists([each.tolist() for each in distribution_of(TRUTH).sample(n, rng=seed)], n_items=N)


DATA = drawn(4000)
FEW = drawn(300, 1)
FILLED = FEW.subset(FEW.sizes > 0)


def test_a_known_mixture_is_found_again_from_its_samples() -> None:
    found, unseen = dl.fit(DATA, segments=2, rng=0).model, drawn(4000, 5)
    truth = dl.Mixture(distribution_of(TRUTH))
    assert found.log_likelihood(unseen) > truth.log_likelihood(unseen) - 0.02
    independent = dl.fit_dpp(DATA, shrinkage=1, nonempty=False).model
    assert found.log_likelihood(unseen) > independent.log_likelihood(unseen) + 0.5
    assert found.lift[0, 1] == pytest.approx(truth.lift[0, 1], rel=0.1)
    assert found.lift[2, 3] == pytest.approx(truth.lift[2, 3], rel=0.25)
    np.testing.assert_allclose(sorted(each.weight for each in found.segments()), [0.4, 0.6], atol=0.05)
    assert found.segment_of([4, 5]).max() > 0.9


def test_invalid_options_are_refused() -> None:
    for name, value in (("segments", 0), ("rank", 1.5), ("attraction", -1), ("nonempty", "maybe")):
        with pytest.raises(InputError, match=f"{name}.*{value}"):
            dl.fit(FEW, **{name: value})


def test_callers_with_the_options_of_both_functions_get_the_settings_of_one() -> None:
    """By an option that only a DPP has, or by name."""
    for options in ({"learner": "em"}, {"init": "wishart"}, {"shrinkage": 0}):
        assert settings_of(**options).model_type is dl.DPP
    for options in ({}, {"segments": 3}, {"model": "mixture", "learner": None}):
        assert settings_of(**options).model_type is dl.Mixture
    for options in (
        {"model": "trees"},
        {"model": "mixture", "learner": "em"},
        {"learner": "em", "segments": 3},
        {"learner": "em", "attraction": True},
        {"patience": 3},
    ):
        with pytest.raises(InputError):
            settings_of(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("baskets", [FEW, FILLED, Baskets.from_lists([[0], [1]]), Baskets.from_lists([[0, 1, 2]])])
def test_no_fit_ends_below_independent_items_on_its_objective(baskets: Baskets) -> None:
    def objective(model: dl.Mixture) -> float:
        problem = MixtureProblem(baskets.deduplicated(), None, model.nonempty, model.n_segments)
        return problem.objective(problem.adapted(model, np.random.default_rng(0)))

    best = dl.fit(baskets, segments=1, attraction=False, rank=0, rng=0, tol=1e-9)
    assert (best.stop, best.converged) == (Stop.TOLERANCE, True)
    problem = MixtureProblem(baskets.deduplicated(), None, best.model.nonempty)
    for max_iter in (1, 300):
        result = dl.fit(baskets, rng=0, max_iter=max_iter)
        assert objective(result.model) >= problem.objective(problem.baseline()) - 1e-12
        assert np.isfinite(result.log_likelihood)
    assert objective(result.model) >= objective(best.model) - 1e-3


def test_without_iterations_the_start_has_the_requested_number_of_segments() -> None:
    result = dl.fit(FILLED, segments=4, rng=0, max_iter=0)
    assert (result.n_iter, result.stop) == (0, Stop.MAX_ITER)
    assert (result.model.n_segments, result.model.learned.start) == (4, "random")
    given = dl.fit(FILLED, start=result, attraction=False, rank=1, max_iter=0)  # of a lower rank than the start
    assert (given.n_iter, given.model.n_segments, given.model.learned.start) == (0, 4, "given")
    assert dl.fit(FILLED, start=result, segments=3, max_iter=0).model.n_segments == 3


def test_callbacks_and_limits_also_stop_the_steps_in_which_segments_are_learned() -> None:
    stopped = dl.fit(FEW, rng=0, tol=0, callback=lambda now: now.iteration == 4)
    assert (stopped.stop, stopped.n_iter) == (Stop.CALLBACK, 4)
    assert dl.fit(FEW, rng=0, tol=0, max_seconds=1e-9).stop is Stop.MAX_SECONDS
    assert dl.fit(FEW, rng=0, tol=0, max_iter=3).stop is Stop.MAX_ITER
    whole = dl.fit(FEW, rng=0)
    assert whole.n_iter > 120  # the steps of the segments and those of everything
    assert len(whole.history) == whole.n_iter + 1


@pytest.mark.parametrize("options", [{}, {"attraction": 2}], ids=["dense", "low-rank"])
def test_the_history_has_the_likelihood_of_the_models_without_penalties(options: dict[str, Any]) -> None:
    seen: list[FitProgress] = []
    result = dl.fit(FILLED, segments=2, rank=2, rng=0, validation=0, callback=seen.append, **options)
    some = [*seen[:: len(seen) // 12], seen[-1]]
    found = [now.model.log_likelihood(FILLED) for now in some]
    # log-odds and factors of a low-rank model are rounded to single precision
    np.testing.assert_allclose([now.log_likelihood for now in some], found, atol=1e-5 if options else 1e-9)
    assert result.log_likelihood == pytest.approx(result.model.log_likelihood(FILLED), abs=1e-9)


def test_a_warm_start_is_matched_by_label_and_new_items_start_at_their_frequency() -> None:
    named = Baskets.from_lists([[f"item {i}" for i in each] for each in FEW])
    first = dl.fit(named, segments=3, rng=0)
    again = dl.fit(named, start=first)
    assert again.model.n_segments == 3
    assert again.history.log_likelihood[0] == pytest.approx(first.history.log_likelihood[-1], abs=1e-9)
    grown = Baskets.from_lists([*([f"item {i}" for i in each] for each in FEW if 7 not in each), ["new"], ["new"]])
    start = dl.fit(grown, start=first, max_iter=0).model
    assert start.items == grown.items
    assert start.marginals()[start.catalogue.position("new")] == pytest.approx(2.5 / (len(grown) + 1), rel=0.05)
    with pytest.raises(InputError):
        dl.fit(Baskets.from_lists([["x"], ["y"]]), start=first)
    with pytest.raises(InputError):
        dl.fit_dpp(named, "em", start=first)
    with pytest.raises(InputError):
        dl.fit(named, start=dl.Mixture.of([dl.fit_dpp(named, "em", max_iter=2).model]))


def test_baskets_of_large_weights_give_finite_models() -> None:
    """Against weights of 1e12 no penalty counts, and log-odds would grow without bound."""
    for seed, segments in itertools.product((1, 2, 7), (1, 10)):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 8))
        X = rng.random((int(rng.integers(1, 30)), n)) < rng.choice([0.1, 0.4, 0.9])
        weights = np.where(rng.random(len(X)) < 0.5, 1e12, 1.0) if seed != 1 else np.full(len(X), 1e12)
        baskets = Baskets.from_matrix(X).reweighted(weights)
        model = dl.fit(baskets, segments=segments, rng=0, max_iter=150).model
        assert np.isfinite(model.restrict(model.items[:2]).marginals()).all()
        assert np.isfinite(model.log_likelihood(baskets))


WEIGHTED = FILLED.weighted(np.random.default_rng(1).uniform(0.5, 3, len(FILLED)))


@pytest.mark.parametrize("attraction", [False, True])
@pytest.mark.parametrize(("segments", "rank"), [(1, 2), (3, 2), (3, 0)])
def test_no_step_falls_and_the_objective_is_that_of_the_kernel(segments: int, rank: int, attraction: bool) -> None:
    given = MixtureProblem(WEIGHTED, 1, True, segments, rank, attraction)
    steps = list(itertools.islice(mixture(given.initial("random", np.random.default_rng(0)), given), 160))
    for phase in (True, False):  # segments alone, then everything
        values = [step.objective for step in steps if step.preliminary == phase]
        assert np.all(np.diff(values) >= 0)
        assert bool(values) == (not phase or segments > 1)
    assert values[-1] > (values[0] if rank or attraction else steps[0].objective)
    last = steps[-1].kernel
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

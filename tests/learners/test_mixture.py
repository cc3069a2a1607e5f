"""Fits of mixtures: recovery from samples, comparison with independent items, starts, limits and options."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets, InputError, Stop
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.nonsymmetric.sampling import sample_sets
from dpplearn.learners.mixture.problem import MixtureProblem

N = 8
RNG = np.random.default_rng(0)
A = np.zeros((N, N))
A[0, 1], A[1, 0] = 3, -3  # which go together
U = np.zeros((N, 1))
U[2:4, 0] = 3  # which stand in for each other
LIKES = np.where(np.arange(N) < 4, 1.5, -1.5)
TRUTH = MixtureKernel(np.array([0.6, 0.4]), np.stack([-1.5 + LIKES, -1.5 - LIKES]), (np.eye(N) + U @ U.T + A)[None])


def drawn(n: int, seed: int = 0) -> Baskets:
    return Baskets.from_lists([each.tolist() for each in sample_sets(TRUTH, n, rng=seed)], n_items=N)


DATA = drawn(4000)
FEW = drawn(300, 1)
FILLED = FEW.subset(FEW.sizes > 0)


def same(one: dl.FitResult, other: dl.FitResult) -> None:
    for name in ("weights", "log_odds", "interaction"):
        np.testing.assert_array_equal(getattr(one.model.kernel, name), getattr(other.model.kernel, name))
    np.testing.assert_array_equal(one.history.log_likelihood, other.history.log_likelihood)


def test_a_known_mixture_is_found_again_from_its_samples() -> None:
    found, unseen = dl.fit(DATA, segments=2, rng=0).model, drawn(4000, 5)
    truth = dl.Mixture(TRUTH)
    assert found.log_likelihood(unseen) > truth.log_likelihood(unseen) - 0.02
    independent = dl.fit_dpp(DATA, shrinkage=1, nonempty=False).model
    assert found.log_likelihood(unseen) > independent.log_likelihood(unseen) + 0.5
    assert found.lift[0, 1] == pytest.approx(truth.lift[0, 1], rel=0.1)
    assert found.lift[2, 3] == pytest.approx(truth.lift[2, 3], rel=0.25)
    np.testing.assert_allclose(sorted(each.weight for each in found.segments()), [0.4, 0.6], atol=0.05)
    assert found.segment_of([4, 5]).max() > 0.9


def test_the_default_is_a_mixture_conditional_on_nonempty_baskets_if_none_is_empty() -> None:
    with_empty, without = dl.fit(FEW, rng=0, max_iter=3), dl.fit(FILLED, rng=0, max_iter=3)
    assert isinstance(with_empty.model, dl.Mixture)
    assert (with_empty.model.nonempty, without.model.nonempty) == (False, True)
    assert without.model.log_prob([]) == -np.inf
    assert np.isfinite(with_empty.model.log_prob([]))
    assert without.log_likelihood == pytest.approx(without.model.log_likelihood(FILLED), rel=1e-12)
    sets = without.model.sample(200, rng=0)
    assert min(map(len, sets)) == 1


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, dl.Mixture),
        ({"segments": 1}, dl.Mixture),
        ({"attraction": False, "rank": 0}, dl.Mixture),
        ({"learner": "em"}, dl.DPP),
        ({"learner": "mixture"}, dl.Mixture),
        ({"init": "wishart", "rng": 0}, dl.DPP),
        ({"shrinkage": 0}, dl.DPP),
        ({"model": "dpp"}, dl.DPP),
    ],
)
def test_the_options_decide_the_model(options: dict[str, Any], kind: type) -> None:
    result = dl.fit(FEW, max_iter=2, **options)
    assert type(result.model) is kind
    if kind is dl.Mixture:
        with pytest.raises(InputError):
            _ = result.model


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "trees"}, r"model.*'trees'"),
        ({"model": "mixture", "learner": "em"}, r"learner.*'em'"),
        ({"model": "dpp", "segments": 3}, r"segments.*3"),
        ({"learner": "em", "attraction": False}, r"."),
        ({"model": "mixture", "shrinkage": 0.5}, r"0.5"),
        ({"model": "mixture", "init": "moments"}, r"init.*'moments'"),
        ({"segments": 0}, r"segments.*0"),
        ({"rank": 1.5}, r"rank.*1.5"),
        ({"nonempty": "maybe"}, r"nonempty.*'maybe'"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        dl.fit(FEW, **options)


@pytest.mark.parametrize("baskets", [FEW, FILLED, Baskets.from_lists([[0], [1]]), Baskets.from_lists([[0, 1, 2]])])
def test_no_fit_ends_below_independent_items_on_its_objective(baskets: Baskets) -> None:
    best = dl.fit(baskets, segments=1, attraction=False, rank=0, rng=0, tol=1e-9)
    assert (best.stop, best.converged) == (Stop.TOLERANCE, True)
    for max_iter in (1, 100):
        result = dl.fit(baskets, rng=0, max_iter=max_iter)
        problem = MixtureProblem(baskets.deduplicated(), None, result.model.nonempty)
        assert result.history.log_likelihood[-1] >= problem.log_likelihood(problem.yardstick()) - 1e-12
        assert np.isfinite(result.log_likelihood)
    assert result.history.log_likelihood[-1] >= best.history.log_likelihood[-1] - 1e-3


def test_without_iterations_the_start_has_the_requested_number_of_segments() -> None:
    result = dl.fit(FILLED, segments=4, rng=0, max_iter=0)
    assert (result.n_iter, result.stop) == (0, Stop.MAX_ITER)
    assert (result.model.n_segments, result.model.learned.start) == (4, "random")
    given = dl.fit(FILLED, start=result, attraction=False, rank=1, max_iter=0)  # of a lower rank than the start
    assert (given.n_iter, given.model.n_segments, given.model.learned.start) == (0, 4, "given")


def test_special_cases_are_what_they_say() -> None:
    symmetric = dl.fit(DATA, segments=1, attraction=False, rng=0, max_iter=20).model.kernel
    np.testing.assert_array_equal(symmetric.interaction[0], symmetric.interaction[0].T)
    segments = dl.fit(DATA, attraction=False, rank=0, rng=0, max_iter=20).model.kernel
    np.testing.assert_allclose(segments.interaction[0], np.eye(N), atol=1e-12)
    assert dl.fit(DATA, segments=1, rng=0, max_iter=5).model.n_segments == 1


def test_the_same_seed_gives_the_same_mixture_and_another_another() -> None:
    one, again, other = (dl.fit(FEW, segments=3, restarts=2, rng=seed, threads=1, max_iter=9) for seed in (0, 0, 1))
    assert one.history.log_likelihood[-1] == max(line.log_likelihood for line in one.restarts)
    assert len(one.restarts) == 2
    same(one, again)
    assert not np.array_equal(one.model.kernel.log_odds, other.model.kernel.log_odds)


def test_callbacks_and_limits_stop_a_fit() -> None:
    stopped = dl.fit(FEW, rng=0, tol=0, callback=lambda now: now.iteration == 4)
    assert (stopped.stop, stopped.n_iter) == (Stop.CALLBACK, 4)
    slow = dl.fit(FEW, rng=0, tol=0, max_seconds=0.2, callback=lambda now: time.sleep(0.05))
    assert slow.stop is Stop.MAX_SECONDS
    assert dl.fit(FEW, rng=0, tol=0, max_iter=3).stop is Stop.MAX_ITER


def test_a_validation_set_stops_a_fit() -> None:
    result = dl.fit(FEW, rng=0, validation=0.3, tol=0)
    assert result.stop is Stop.VALIDATION
    assert result.model.learned.validation_log_likelihood == result.history.validation.max()


def test_a_warm_start_is_matched_by_label_and_new_items_start_at_their_frequency() -> None:
    named = Baskets.from_lists([[f"item {i}" for i in each] for each in FEW])
    first = dl.fit(named, segments=3, rng=0)
    again = dl.fit(named, start=first)
    assert again.model.n_segments == 3
    assert again.history.log_likelihood[0] >= first.history.log_likelihood[-1] - 1e-9  # it goes on from there
    grown = Baskets.from_lists([*([f"item {i}" for i in each] for each in FEW if 7 not in each), ["new"], ["new"]])
    start = dl.fit(grown, start=first, max_iter=0).model
    assert start.items == grown.items
    assert start.marginals()[start.catalogue.position("new")] == pytest.approx(2.5 / (len(grown) + 1), rel=0.05)
    with pytest.raises(InputError):
        dl.fit(Baskets.from_lists([["x"], ["y"]]), start=first)
    with pytest.raises(InputError):
        dl.fit_dpp(named, "em", start=first)


def test_weights_count_baskets() -> None:
    doubled = Baskets.from_lists([*FEW, *FEW], n_items=N)
    same(
        dl.fit(FEW.reweighted(2.0), segments=2, rng=0, threads=1, max_iter=10),
        dl.fit(doubled, segments=2, rng=0, threads=1, max_iter=10),
    )


def test_a_saved_mixture_is_loaded_as_it_was_with_its_law(tmp_path: Path) -> None:
    for baskets in (FEW, FILLED):
        model = dl.fit(baskets, segments=2, rng=0, max_iter=5).model
        model.save(tmp_path / "m")
        again = dl.load(tmp_path / "m")
        assert isinstance(again, dl.Mixture)
        assert (again.nonempty, again.learned, again.items) == (model.nonempty, model.learned, model.items)
        assert again.log_prob([0, 1]) == model.log_prob([0, 1])
        assert again.recommend([0], 3) == model.recommend([0], 3)

"""Fits of mixtures: found again from their samples, never below independent items, and all that every fit can do."""

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
    independent = dl.fit(DATA, shrinkage=1, nonempty=False).dpp
    assert found.log_likelihood(unseen) > independent.log_likelihood(unseen) + 0.5
    assert found.lift[0, 1] == pytest.approx(truth.lift[0, 1], rel=0.1)
    assert found.lift[2, 3] == pytest.approx(truth.lift[2, 3], rel=0.25)
    np.testing.assert_allclose(sorted(each.weight for each in found.segments()), [0.4, 0.6], atol=0.05)
    assert found.segment_of([4, 5]).max() > 0.9


def test_without_choices_it_is_a_mixture_under_the_law_of_the_data() -> None:
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
def test_what_is_asked_for_decides_the_model(options: dict[str, Any], kind: type) -> None:
    assert type(dl.fit(FEW, max_iter=2, **options).model) is kind


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "trees"}, r"model.*'trees'"),
        (
            {"model": "mixture", "learner": "em"},
            r"learner.*'em'",
        ),
        ({"model": "dpp", "segments": 3}, r"segments.*3"),
        ({"learner": "em", "attraction": False}, r"."),
        ({"model": "mixture", "shrinkage": 0.5}, r"0.5"),
        ({"model": "mixture", "init": "moments"}, r"init.*'moments'"),
        ({"segments": 0}, r"segments.*0"),
        ({"rank": 1.5}, r"rank.*1.5"),
        ({"nonempty": "maybe"}, r"nonempty.*'maybe'"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        dl.fit(FEW, **options)


def test_the_result_of_a_mixture_has_no_dpp_and_says_what_to_use() -> None:
    with pytest.raises(InputError):
        _ = dl.fit(FEW, max_iter=1).dpp


@pytest.mark.parametrize("baskets", [FEW, FILLED, Baskets.from_lists([[0], [1]]), Baskets.from_lists([[0, 1, 2]])])
@pytest.mark.parametrize("max_iter", [1, 2, 100])
def test_no_fit_ends_below_independent_items_on_what_it_maximises(baskets: Baskets, max_iter: int) -> None:
    result = dl.fit(baskets, rng=0, max_iter=max_iter)
    problem = MixtureProblem(baskets.deduplicated(), None, result.model.nonempty)
    assert result.history.log_likelihood[-1] >= problem.log_likelihood(problem.yardstick()) - 1e-12
    assert np.isfinite(result.log_likelihood)
    if max_iter == 100:
        best = dl.fit(baskets, segments=1, attraction=False, rank=0, rng=0, tol=1e-9)
        assert result.history.log_likelihood[-1] >= best.history.log_likelihood[-1] - 1e-3


def test_no_iteration_gives_the_start_with_as_many_segments_as_asked_for() -> None:
    result = dl.fit(FILLED, segments=4, rng=0, max_iter=0)
    assert (result.n_iter, result.stop) == (0, Stop.MAX_ITER)
    assert (result.model.n_segments, result.model.learned.start) == (4, "random")
    assert "after 0 iterations" in repr(result)
    given = dl.fit(FILLED, start=result, attraction=False, rank=1, max_iter=0)  # which has less room than the start
    assert (given.n_iter, given.model.n_segments, given.model.learned.start) == (0, 4, "given")


def test_special_cases_are_what_they_say() -> None:
    symmetric = dl.fit(DATA, segments=1, attraction=False, rng=0, max_iter=20).model.kernel
    np.testing.assert_array_equal(symmetric.interaction[0], symmetric.interaction[0].T)
    segments = dl.fit(DATA, attraction=False, rank=0, rng=0, max_iter=20).model.kernel
    np.testing.assert_allclose(segments.interaction[0], np.eye(N), atol=1e-12)
    assert dl.fit(DATA, segments=1, rng=0, max_iter=5).model.n_segments == 1


def test_the_same_seed_gives_the_same_mixture_and_another_another() -> None:
    one, again, other = (dl.fit(FEW, segments=3, rng=seed, threads=1, max_iter=20) for seed in (0, 0, 1))
    same(one, again)
    assert not np.array_equal(one.model.kernel.log_odds, other.model.kernel.log_odds)


def test_the_best_of_several_restarts_is_returned() -> None:
    result = dl.fit(FEW, segments=2, restarts=3, rng=0)
    assert len(result.restarts) == 3
    assert result.history.log_likelihood[-1] == max(line.log_likelihood for line in result.restarts)


def test_a_callback_ctrl_c_and_limits_end_it_with_the_model_so_far() -> None:
    stopped = dl.fit(FEW, rng=0, tol=0, callback=lambda now: now.iteration == 4)
    assert (stopped.stop, stopped.n_iter) == (Stop.CALLBACK, 4)

    def interrupt(now: dl.FitProgress) -> None:
        if now.iteration == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dl.fit(FEW, rng=0, tol=0, callback=interrupt)
    slow = dl.fit(FEW, rng=0, tol=0, max_seconds=0.2, callback=lambda now: time.sleep(0.05))
    assert slow.stop is Stop.MAX_SECONDS
    assert dl.fit(FEW, rng=0, tol=0, max_iter=3).stop is Stop.MAX_ITER


def test_baskets_set_aside_say_when_to_stop() -> None:
    result = dl.fit(FEW, rng=0, validation=0.3, patience=3, tol=0)
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
        dl.fit(named, "em", start=first)


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


@pytest.mark.parametrize("nonempty", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_independent_items_alone_are_found_to_be_the_optimum(seed: int, nonempty: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.random((300, 8)) < rng.uniform(0.05, 0.5, 8)
    baskets = Baskets.from_matrix(X[X.any(axis=1)] if nonempty else X)
    result = dl.fit(baskets, rank=0, segments=1, attraction=False, rng=0)
    assert (result.stop, result.converged) == (Stop.TOLERANCE, True)

"""Early stopping: the model of the iteration with the highest validation likelihood is returned."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import DPP, Baskets, FitProgress, FitResult, InputError, Stop, fit_dpp
from helpers.problems import sampled

fit = partial(dl.fit, shrinkage=0)

BASKETS = sampled(2, n=60)
SETTINGS: dict[str, Any] = {"init": "wishart", "validation": 0.25, "patience": 5, "rng": 2, "tol": 1e-7}
learners = pytest.mark.parametrize("learner", ["auto", "em", "adam"])


def parts(baskets: Baskets, share: float, rng: int, restarts: int = 1) -> tuple[Baskets, Baskets]:
    """Return the training and validation sets that `fit` draws with this seed."""
    seed = np.random.default_rng(rng).integers(2**63, size=restarts + 2)[-1]
    return baskets.deduplicated().split(1 - share, rng=int(seed))


def same_model(a: FitResult, b: FitResult) -> None:
    for name in ("eigenvalues", "eigenvectors"):
        np.testing.assert_array_equal(getattr(a.kernel, name), getattr(b.kernel, name))
    for name in ("log_likelihood", "validation", "step_size", "evaluations"):
        np.testing.assert_array_equal(getattr(a.history, name), getattr(b.history, name))
    assert a.stop is b.stop


@learners
def test_the_model_is_the_iteration_with_the_highest_validation_likelihood(learner: str) -> None:
    _, aside = parts(BASKETS, 0.25, 2)
    seen: list[FitProgress] = []
    result = fit_dpp(BASKETS, learner, callback=seen.append, **SETTINGS)
    likelihoods = [DPP(now.kernel).log_likelihood(aside) for now in seen]
    np.testing.assert_allclose([now.validation for now in seen], likelihoods, rtol=1e-9)
    best = int(np.argmax(likelihoods))
    assert 0 < best < len(seen) - 1
    assert result.n_iter == best
    np.testing.assert_array_equal(result.model.kernel.eigenvalues, seen[best].kernel.eigenvalues)
    np.testing.assert_array_equal(result.history.validation, [now.validation for now in seen[: best + 1]])
    assert result.model.learned.validation == 0.25
    assert result.model.learned.seconds >= seen[-1].seconds  # the time of all iterations
    assert result.model.learned.validation_log_likelihood == pytest.approx(max(likelihoods))


@pytest.mark.parametrize("patience", [1, 2, 7])
def test_a_fit_stops_after_patience_iterations_without_improvement(patience: int) -> None:
    seen: list[float] = []
    result = fit(BASKETS, **{**SETTINGS, "patience": patience}, callback=lambda now: seen.append(now.validation))
    assert result.stop is Stop.VALIDATION
    assert not result.converged
    waited, highest = 0, -np.inf
    for iteration, value in enumerate(seen):
        waited = 0 if value > highest else waited + 1
        highest = max(value, highest)
        assert (waited == patience) == (iteration == len(seen) - 1)
    assert f"{highest:.4f}" in repr(result)


def test_patience_to_the_end_gives_the_same_model() -> None:
    """The reason for stopping does not change the best iteration."""
    soon = fit(BASKETS, **SETTINGS)
    for limits in ({"patience": 10**6, "tol": 1e-4}, {"patience": 10**6, "max_iter": soon.n_iter + 3}):
        late = fit(BASKETS, **{**SETTINGS, **limits})
        np.testing.assert_array_equal(soon.kernel.eigenvalues, late.kernel.eigenvalues)
        assert late.n_iter == soon.n_iter
        assert not late.converged


def test_a_run_that_ends_with_its_best_iteration_has_converged_by_its_tolerance() -> None:
    result = fit_dpp(sampled(0, n=2000), "em", init="wishart", validation=0.5, rng=1, tol=0.01)
    assert result.history.validation.argmax() == result.n_iter
    assert result.stop is Stop.TOLERANCE
    assert result.converged


def test_the_rest_is_what_is_learned_from() -> None:
    kept, aside = parts(BASKETS, 0.25, 2)
    assert (kept.total_weight, aside.total_weight) == (45, 15)
    result = fit(BASKETS, **SETTINGS)
    assert result.log_likelihood == pytest.approx(result.model.log_likelihood(kept), rel=1e-9)
    assert result.log_likelihood == result.history.log_likelihood[-1]
    m = kept.frequencies()
    assert result.independent_log_likelihood == pytest.approx(float((m * np.log(m) + (1 - m) * np.log1p(-m)).sum()))
    training = result.model.training
    assert training is not None
    assert training.weight == 45
    np.testing.assert_allclose(training.frequencies, kept.frequencies())


def test_a_weight_is_as_good_as_repetition() -> None:
    doubled = Baskets.from_lists([*BASKETS, *BASKETS], n_items=6)
    same_model(fit(BASKETS.reweighted(2.0), **SETTINGS), fit(doubled, **SETTINGS))


def test_the_validation_likelihood_of_a_mixture_has_no_penalty() -> None:
    _, aside = parts(BASKETS, 0.25, 2)
    result = dl.fit(BASKETS, validation=0.25, rng=2)
    assert result.model.learned.validation_log_likelihood == pytest.approx(result.model.log_likelihood(aside), rel=1e-9)


def test_without_validation_there_is_no_figure_and_nothing_is_set_aside() -> None:
    seen: list[FitProgress] = []
    result = fit_dpp(BASKETS, max_iter=3, callback=seen.append, nonempty=False)
    assert np.isnan(result.history.validation).all()
    assert all(np.isnan(now.validation) for now in seen)
    assert result.model.learned.validation is None
    assert result.model.learned.weight == 60


def test_the_restart_with_the_highest_validation_likelihood_is_returned() -> None:
    of_run: dict[int, list[float]] = {}

    def callback(now: FitProgress) -> None:
        of_run.setdefault(now.restart, []).append(now.validation)

    result = fit_dpp(BASKETS, "em", restarts=4, callback=callback, **{**SETTINGS, "rng": 4})
    highest = [max(values) for values in of_run.values()]
    best = int(np.argmax(highest))
    assert len(highest) == len(result.restarts) == 4
    assert result.model.learned.validation_log_likelihood == highest[best]
    assert result.log_likelihood == result.restarts[best].log_likelihood
    assert best != int(np.argmax([line.log_likelihood for line in result.restarts]))  # else this says nothing
    assert [line.n_iter for line in result.restarts] == [int(np.argmax(values)) for values in of_run.values()]


NEVER_SEEN = Baskets.from_lists([[0], [1], [2], [0, 1], [3], [0, 2], [4], [1, 2], [5], [0], [1], [2]], n_items=6)


def test_an_impossible_validation_basket_does_not_stop_the_fit() -> None:
    """It contains an item that no training basket contains, so every model gives it probability zero."""
    rng = 2
    kept, aside = parts(NEVER_SEEN, 0.3, rng)
    assert np.any((kept.frequencies() == 0) & (aside.frequencies() > 0))
    result = fit_dpp(NEVER_SEEN, validation=0.3, rng=rng, nonempty=False)
    assert np.isneginf(result.history.validation).all()
    assert result.n_iter >= 6
    assert result.stop is Stop.TOLERANCE
    assert result.log_likelihood == pytest.approx(fit_dpp(kept, nonempty=False).log_likelihood, abs=1e-3)


def test_the_validation_likelihood_is_that_of_the_shrunk_model() -> None:
    for shrinkage in (0.1, 1):
        result = dl.fit_dpp(NEVER_SEEN, shrinkage=shrinkage, validation=0.3, rng=1, nonempty=False)
        assert np.isfinite(result.model.learned.validation_log_likelihood)
        _, aside = parts(NEVER_SEEN, 0.3, 1)
        assert result.model.learned.validation_log_likelihood == pytest.approx(result.model.log_likelihood(aside))


@pytest.mark.parametrize(
    ("n", "validation", "patience"),
    [
        *((60, share, 5) for share in (-0.1, 1, 1.5, float("nan"), "a", True)),
        *((60, 0.2, patience) for patience in (0, -1, 2.5, True)),
        *((n, share, 5) for n, share in ((1, 0.5), (3, 0.99), (1, 0.01))),  # an empty part
    ],
)
def test_invalid_validation_fractions_and_patience_are_refused(n: int, validation: Any, patience: Any) -> None:
    with pytest.raises(InputError):
        fit_dpp(BASKETS.subset(np.arange(n)), validation=validation, nonempty=False)


def test_the_validation_likelihood_is_conditional_on_nonempty_baskets_with_nonempty() -> None:
    filled = BASKETS.subset(BASKETS.sizes > 0)
    _, aside = parts(filled, 0.25, 2)
    result = fit(filled, **SETTINGS, nonempty=True)
    expected = result.model.log_likelihood(aside)
    assert result.model.learned.validation_log_likelihood == pytest.approx(expected, rel=1e-9)
    assert abs(expected - dl.DPP(result.model.kernel, result.model.items).log_likelihood(aside)) > 1e-3

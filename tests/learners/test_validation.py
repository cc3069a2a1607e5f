"""Held-out baskets: one half chooses the iteration, the other measures the model."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets, FitProgress, InputError, Stop
from dpplearn.distributions.independent import IndependentItems, chances
from dpplearn.learners.loop import PATIENCE
from helpers.problems import sampled

fit_dpp = partial(dl.fit_dpp, shrinkage=0)

BASKETS = sampled(2, n=120)
SETTINGS: dict[str, Any] = {"init": "wishart", "validation": 0.25, "rng": 2, "tol": 1e-7}


def parts(baskets: Baskets, share: float, rng: int, restarts: int = 1) -> tuple[Baskets, Baskets, Baskets]:
    """Return the training, validation and test sets that a fit draws with this seed."""
    seed = int(np.random.default_rng(rng).integers(2**63, size=restarts + 2)[-1])
    kept, held_out = baskets.deduplicated().split(1 - share, rng=seed)
    return kept, *held_out.split(0.5, rng=seed)


@pytest.mark.parametrize("learner", ["lbfgs", "em", "adam"])
def test_the_model_is_the_iteration_with_the_highest_validation_likelihood(learner: str) -> None:
    _, validation, _ = parts(BASKETS, 0.25, 2)
    seen: list[FitProgress] = []
    result = fit_dpp(BASKETS, learner, callback=seen.append, nonempty=False, **SETTINGS)
    likelihoods = [now.model.log_likelihood(validation) for now in seen]
    np.testing.assert_allclose([now.validation for now in seen], likelihoods, rtol=1e-9)
    best = int(np.argmax(likelihoods))
    assert 0 < best < len(seen) - 1
    assert result.n_iter == best
    assert (result.stop, result.converged) == (Stop.VALIDATION, False)
    assert len(seen) - 1 - best == PATIENCE
    np.testing.assert_array_equal(result.model.kernel.eigenvalues, seen[best].model.kernel.eigenvalues)
    np.testing.assert_array_equal(result.history.validation, [now.validation for now in seen[: best + 1]])
    learned = result.model.learned
    assert (learned.validation, learned.validation_log_likelihood) == (0.25, pytest.approx(max(likelihoods)))


@pytest.mark.parametrize("kind", ["dpp", "mixture", "low-rank"])
def test_the_gain_is_measured_on_baskets_that_chose_nothing(kind: str) -> None:
    """Baskets that choose the iteration, or the weight of the blend, would favour the model that they chose."""
    baskets = sampled(3, n=600)
    baskets = baskets.subset(baskets.sizes > 0)
    options: dict[str, Any] = {"validation": 0.3, "rng": 2}
    if kind == "dpp":
        result = fit_dpp(baskets, **options)
    else:
        low_rank = {"attraction": 1} if kind == "low-rank" else {}
        result = dl.fit(baskets, segments=2, rank=1, **low_rank, **options)
    kept, validation, test = parts(baskets, 0.3, 2)
    model, p = result.model, chances(kept.frequencies(), kept.total_weight, smoothing=0.5, nonempty=True)

    def gain(of: Baskets) -> float:
        return model.log_likelihood(of) - IndependentItems(p, nonempty=True).mean_log_likelihood(of)

    assert model.learned.unseen_gain == pytest.approx(gain(test), abs=1e-6)
    assert abs(gain(test) - gain(validation)) > 1e-4
    assert model.learned.validation_log_likelihood == pytest.approx(model.log_likelihood(validation), abs=1e-6)


def test_the_record_is_of_all_baskets_and_the_history_of_those_learned_from() -> None:
    kept, _, _ = parts(BASKETS, 0.25, 2)
    assert kept.total_weight == 90
    result = fit_dpp(BASKETS, nonempty=False, **SETTINGS)
    assert result.history.log_likelihood[-1] == pytest.approx(result.model.log_likelihood(kept), rel=1e-9)
    assert result.log_likelihood == pytest.approx(result.model.log_likelihood(BASKETS), rel=1e-9)
    m = BASKETS.frequencies()
    assert result.independent_log_likelihood == pytest.approx(float((m * np.log(m) + (1 - m) * np.log1p(-m)).sum()))
    assert result.model.training.weight == result.model.learned.weight == 120
    np.testing.assert_allclose(result.model.training.frequencies, m)


@pytest.mark.parametrize("weights", [np.arange(1.0, 121), np.linspace(0.1, 1.2, 120)], ids=["counts", "fractions"])
def test_the_weight_of_the_record_is_that_of_the_training_statistics(weights: np.ndarray) -> None:
    given = Baskets.from_lists(list(BASKETS), n_items=6, weights=weights)
    expected = weights.sum() if weights[0] == 1 else weights.sum() ** 2 / (weights @ weights)
    for result in (
        fit_dpp(given, "em", rng=0, max_iter=2),
        dl.fit(given, segments=2, validation=0.25, rng=0, max_iter=2),
        dl.fit_quality(given),
        dl.fit_weights(given, [dl.fit_dpp(given, "em", max_iter=2).model]),
    ):
        assert result.model.training.weight == pytest.approx(expected)
        assert result.model.learned.weight == pytest.approx(expected)


NEVER_SEEN = Baskets.from_lists([[0], [1], [2], [0, 1], [3], [0, 2], [4], [1, 2], [5], [0], [1], [2]], n_items=6)


def test_an_impossible_validation_basket_does_not_stop_the_fit() -> None:
    """It contains an item that no training basket contains, so every model gives it probability zero."""
    kept, validation, _ = parts(NEVER_SEEN, 0.3, 2)
    assert np.any((kept.frequencies() == 0) & (validation.frequencies() > 0))
    result = fit_dpp(NEVER_SEEN, validation=0.3, rng=2, nonempty=False)
    assert np.isneginf(result.history.validation).all()
    assert result.n_iter >= 6
    assert result.stop is Stop.TOLERANCE


def test_the_validation_likelihood_is_that_of_the_shrunk_model() -> None:
    for shrinkage in (0.1, 1):
        result = dl.fit_dpp(NEVER_SEEN, shrinkage=shrinkage, validation=0.3, rng=1, nonempty=False)
        _, validation, _ = parts(NEVER_SEEN, 0.3, 1)
        expected = pytest.approx(result.model.log_likelihood(validation))
        assert np.isfinite(result.model.learned.validation_log_likelihood)
        assert result.model.learned.validation_log_likelihood == expected


def test_fractions_that_leave_nothing_to_learn_from_or_to_validate_on_are_refused() -> None:
    for n, validation in ((1, 0.5), (3, 0.99), (3, 1e-10)):
        with pytest.raises(InputError, match="validation"):
            fit_dpp(BASKETS[:n], validation=validation, nonempty=False)

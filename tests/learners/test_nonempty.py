"""DPPs conditional on nonempty sets: fits are not worse than the plain fit, and refused requests."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import DPP, Baskets, InputError
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.learners.kernels import distribution_of
from dpplearn.learners.symmetric.factor import factor_likelihood
from dpplearn.learners.symmetric.problem import SymmetricProblem
from dpplearn.learners.symmetric.table import LEARNERS
from helpers.problems import PROBLEMS, random_kernel

fit_dpp = partial(dl.fit_dpp, shrinkage=0)

ABLE = [name for name, each in LEARNERS.items() if each.can_condition]


def test_the_probability_of_not_being_empty_is_exact_however_small() -> None:
    V = random_kernel(np.random.default_rng(0), 3).eigenvectors
    for scale in (0.5, 1e-3, 1e-12, 1e-200):
        lam = scale * np.array([0.2, 0.5, 1.0])
        exact = float(lam.sum() - lam[0] * lam[1] - lam[0] * lam[2] - lam[1] * lam[2] + np.prod(lam))
        found = -distribution_of(SpectralDPP(lam, V), nonempty=True).log_mass
        assert found == pytest.approx(np.log(exact), rel=1e-14, abs=1e-14)
    assert distribution_of(SpectralDPP(np.array([0.0, 0.3, 1.0]), V), nonempty=True).log_mass == 0


def test_a_factor_of_nearly_nothing_is_not_taken_for_a_perfect_model() -> None:
    """Rounding must not raise the likelihood of single items above their negative entropy."""
    single = Baskets.from_lists([[0], [1], [1]], n_items=2)
    for scale in (1e-3, 1e-6, 1e-8, 1e-9, 1e-12):
        value, _ = factor_likelihood(SymmetricProblem(single, 1, nonempty=True), scale * np.diag([1.0, np.sqrt(2)]))
        assert not value > np.log(1 / 3) / 3 + np.log(2 / 3) * 2 / 3 + 1e-4, scale


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:no pair of items occurs together less often")
@pytest.mark.parametrize("learner", ABLE)
@pytest.mark.parametrize("problem", ["sampled from a DPP", "weighted", "attracting", "one item"])
def test_a_fit_is_at_least_as_good_as_the_plain_fit_and_reports_its_likelihood(problem: str, learner: str) -> None:
    baskets = PROBLEMS[problem].subset(PROBLEMS[problem].sizes > 0)
    tol, short = (1e-4, 1e-3) if learner == "adam" else (1e-6, 1e-4)
    plain, result = (fit_dpp(baskets, learner, tol=tol, nonempty=nonempty) for nonempty in (False, True))
    reached = result.model.log_likelihood(baskets)
    assert reached >= DPP(plain.model.kernel, baskets.items, nonempty=True).log_likelihood(baskets) - short
    assert result.log_likelihood == pytest.approx(reached, abs=1e-6)
    assert np.all(np.diff(result.history.log_likelihood) >= -1e-9)
    assert result.model.learned.nonempty is True
    assert plain.model.learned.nonempty is False


def test_empty_baskets_are_refused_unless_they_weigh_nothing() -> None:
    with pytest.raises(InputError, match=r"1 of 2"):
        fit_dpp([[0], []], nonempty=True)
    silent = Baskets.from_lists([[0], [1], [0, 1], []], weights=[1, 2, 1, 0])
    without = silent.subset(silent.sizes > 0)
    np.testing.assert_array_equal(*(fit_dpp(each, nonempty=True).model.kernel.K for each in (silent, without)))


@pytest.mark.slow
def test_baskets_of_one_item_reach_their_entropy_and_no_more() -> None:
    single = Baskets.from_lists([[0], [1], [1], [2]], n_items=3)
    entropy = float(-(np.array([0.25, 0.5, 0.25]) @ np.log([0.25, 0.5, 0.25])))
    for learner in ABLE:
        result = fit_dpp(single, learner, init="wishart", nonempty=True, rng=0, tol=1e-7, max_iter=3000)
        assert result.log_likelihood == pytest.approx(-entropy, abs=1e-4)
        assert result.log_likelihood <= -entropy + 1e-9
        assert result.independent_log_likelihood == pytest.approx(-entropy, abs=1e-4)

"""fit gives the same model for baskets in parts as for the same baskets in one piece."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets, InputError, Parts
from dpplearn.learners.symmetric.table import LEARNERS
from helpers.parts import in_parts
from helpers.problems import sampled

BASKETS = sampled(0, n=300)
PARTS = in_parts(BASKETS)


@pytest.mark.parametrize("learner", [*LEARNERS, "mixture"])
def test_every_learner_takes_the_same_steps_over_parts(learner: str) -> None:
    fit = partial(dl.fit_dpp, learner=learner, shrinkage=0, max_iter=4)
    if learner == "mixture":
        fit = partial(dl.fit, segments=2, max_iter=125)
    parts, whole = (fit(data, rng=0) for data in (PARTS, BASKETS))
    np.testing.assert_allclose(parts.history.log_likelihood, whole.history.log_likelihood, atol=1e-7)
    assert parts.log_likelihood == pytest.approx(whole.log_likelihood, abs=1e-7)
    assert parts.independent_log_likelihood == pytest.approx(whole.independent_log_likelihood, abs=1e-12)
    assert (parts.model.learned.n_baskets, parts.model.learned.weight) == (300, 300.0)
    for name in ("item_weights", "pairs", "pair_weights"):
        np.testing.assert_array_equal(*(getattr(each.model.training, name) for each in (parts, whole)))


def test_shrinkage_uses_the_frequencies_of_all_parts() -> None:
    parts, whole = (dl.fit_dpp(data, "em", shrinkage=0.5, max_iter=5) for data in (PARTS, BASKETS))
    assert parts.log_likelihood == pytest.approx(whole.log_likelihood, abs=1e-9)
    independent = [dl.fit_dpp(data, "em", shrinkage=1).model.kernel.eigenvalues for data in (PARTS, BASKETS)]
    np.testing.assert_allclose(*independent, rtol=1e-12)

    default = dl.fit_dpp(PARTS, max_iter=3)
    assert (default.shrinkage, default.model.learned.shrinkage_chosen) == (0, False)


def test_the_validation_set_is_a_fraction_of_every_part() -> None:
    result = dl.fit_dpp(PARTS, "em", rng=1, validation=0.2, max_iter=4)
    assert result.model.training is not None
    assert result.model.training.weight == 300
    assert len(result.history) > 1
    assert result.model.learned.validation_log_likelihood is not None
    single = Parts.of([Baskets.from_lists([[0]], n_items=2)] * 3)
    with pytest.raises(InputError, match=r"0.*3"):
        dl.fit_dpp(single, "em", validation=0.2)


def test_options_that_need_all_baskets_in_one_piece_are_refused() -> None:
    with pytest.raises(InputError, match="'auto'"):
        dl.fit_dpp(PARTS, shrinkage="auto")
    many = Parts.of([Baskets.from_lists([[0, 1]], n_items=301)])
    with pytest.raises(InputError, match=r"300.*301"):
        dl.fit(many)
    with pytest.raises(InputError):
        dl.fit(Parts.of([Baskets.from_lists([], n_items=2)]))

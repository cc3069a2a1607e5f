"""FitOptions: the same defaults as `fit`, immutable, completed by the start."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from inspect import signature

import pytest

import dpplearn as dl
from dpplearn.datasets.registries import make_registries
from dpplearn.learners.fit import asked_for
from dpplearn.learners.settings import FitOptions

BASKETS = make_registries("safety", 200, rng=0)
NOT_OPTIONS = {"baskets", "start", "kernels", "k", "rng", "callback"}


def test_they_are_the_parameters_of_fit_with_the_same_defaults() -> None:
    of_fit = {name: each.default for name, each in signature(dl.fit).parameters.items() if name not in NOT_OPTIONS}
    assert {field.name: field.default for field in fields(FitOptions) if field.init} == of_fit


def test_they_cannot_be_changed_after_they_were_checked() -> None:
    with pytest.raises(FrozenInstanceError):
        FitOptions().tol = -1  # type: ignore[misc]
    with pytest.raises(dl.InputError, match=r"tol.*-1"):
        replace(FitOptions(), tol=-1)


def test_a_start_decides_what_was_not_asked_for() -> None:
    mixture, dpp = (dl.fit(BASKETS, max_iter=30, rng=0, **how) for how in ({"segments": 2}, {"shrinkage": 0}))
    for start in (mixture, mixture.model):
        assert (asked_for(start).how.model, asked_for(start).n_segments) == ("mixture", 2)
    assert asked_for(mixture, segments=3).n_segments == 3
    for start in (dpp, dpp.dpp, dpp.kernel):
        assert asked_for(start).how.model == "dpp"
    assert asked_for(None).how.model == "mixture"
    with pytest.raises(dl.InputError):
        dl.fit_dpp(BASKETS, "em", start=mixture)

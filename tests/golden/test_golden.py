"""The library computes the golden values, and so does enumeration of all subsets."""

from __future__ import annotations

import numpy as np
import pytest

from golden import adapter, reference
from golden.compare import (
    FILE,
    GRADIENT_TOLERANCES,
    TOLERANCE,
    ZERO_IF_DERIVED,
    assert_answers,
    assert_close,
    assert_gradient,
)
from golden.reference import Array, part

with np.load(FILE, allow_pickle=False) as file:
    VALUES: dict[str, Array] = dict(file)


def names(kind: str) -> list[str]:
    return list(dict.fromkeys(path.split("/")[1] for path in VALUES if path.startswith(f"{kind}/")))


every_model = pytest.mark.parametrize("name", names("models"))
every_objective = pytest.mark.parametrize("name", names("objectives"))


def derived(model: dict[str, Array]) -> list[dict[str, Array]]:
    numbers = dict.fromkeys(path.split("/")[1] for path in model if path.startswith("derived/"))
    return [part(model, f"derived/{number}/") for number in numbers]


def test_the_file_has_every_kind_of_model_and_objective() -> None:
    assert {
        "symmetric",
        "symmetric rank-deficient",
        "symmetric with eigenvalues of 1",
        "dense",
        "dense without the empty set",
        "dense with a given p_empty",
        "low-rank",
        "low-rank without the empty set",
        "given models",
        "quality",
    } == set(names("models"))
    assert {str(VALUES[f"objectives/{name}/form"]) for name in names("objectives")} == set(reference.FORMS)
    for name in names("models"):
        assert len(VALUES[f"models/{name}/answers/log_prob"]) == 50
        assert len(derived(part(VALUES, f"models/{name}/"))) == 6
    assert np.count_nonzero(VALUES["models/symmetric with eigenvalues of 1/parameters/eigenvalues"] == 1) == 2
    assert np.count_nonzero(VALUES["models/symmetric rank-deficient/parameters/eigenvalues"] == 0) == 5


@every_model
def test_the_library_gives_the_recorded_answers(name: str) -> None:
    recorded = part(VALUES, f"models/{name}/")
    model = adapter.build(part(recorded, "parameters/"))
    answers = part(recorded, "answers/")
    assert_answers(adapter.answers(model.distribution, answers["sets"], answers["baskets"]), answers)
    for each in derived(recorded):
        answers = part(each, "answers/")
        other = adapter.derive(model, each["items"], each["include"], each["exclude"])
        assert_answers(
            adapter.answers(other.distribution, answers["sets"], answers["baskets"]), answers, ZERO_IF_DERIVED
        )


@every_model
def test_enumeration_gives_the_recorded_answers(name: str) -> None:
    recorded = part(VALUES, f"models/{name}/")
    P = reference.table(part(recorded, "parameters/"))
    assert P.sum() == pytest.approx(1, rel=1e-12)
    answers = part(recorded, "answers/")
    assert_answers(reference.answers(P, answers["sets"], answers["baskets"]), answers)
    for each in derived(recorded):
        answers = part(each, "answers/")
        P_derived = reference.condition(reference.restrict(P, each["items"]), each["include"], each["exclude"])
        assert_answers(reference.answers(P_derived, answers["sets"], answers["baskets"]), answers)


@pytest.mark.parametrize("name", [name for name in names("models") if f"models/{name}/segments" in VALUES])
def test_segments_given_a_basket_are_as_recorded(name: str) -> None:
    recorded = part(VALUES, f"models/{name}/")
    parameters, baskets = part(recorded, "parameters/"), recorded["answers/baskets"]
    assert_close(reference.segments(parameters, baskets), recorded["segments"])
    model = adapter.build(parameters)
    for A, expected in zip(baskets, recorded["segments"], strict=True):
        if A.any():
            assert_close(adapter.segments(model, A), expected)


@every_objective
def test_the_library_gives_the_recorded_objective_and_gradient(name: str) -> None:
    recorded = part(VALUES, f"objectives/{name}/")
    form = str(recorded["form"])
    value, gradient, more = adapter.objective(form, part(recorded, "parameters/"), part(recorded, "data/"))
    assert_close(value, recorded["value"])
    assert_gradient(gradient, part(recorded, "gradient/"), GRADIENT_TOLERANCES.get(form, TOLERANCE))
    assert more.keys() == part(recorded, "more/").keys()
    for path, each in more.items():
        assert_close(each, recorded[f"more/{path}"], of_norm=True)


@every_objective
def test_the_formula_gives_the_recorded_objective_and_gradient(name: str) -> None:
    recorded = part(VALUES, f"objectives/{name}/")
    form, parameters, data = str(recorded["form"]), part(recorded, "parameters/"), part(recorded, "data/")
    value, gradient = reference.objective(form, parameters, data)
    assert_close(value, recorded["value"])
    assert_gradient(gradient, part(recorded, "gradient/"))
    for path, each in (reference.MORE[form](parameters, data) if form in reference.MORE else {}).items():
        assert_close(each, recorded[f"more/{path}"], of_norm=True)

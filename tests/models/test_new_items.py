"""Adding items to a model: probabilities by enumeration, copies of existing items, prediction from features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.arrays import Floats
from dpplearn.models.model import SetModel
from helpers import oracle
from helpers.problems import as_mixture, random_kernel, random_low_rank, random_mixture

N = 4
ITEMS = ["bib", "cot", "crib", "monitor"]
OF_INTEGERS = dl.DPP.from_K(np.eye(2) / 4, [10, 20])


def models() -> dict[str, SetModel]:
    kernel, wider = (random_kernel(np.random.default_rng(3), n) for n in (N, N + 1))
    dpp, mixture = dl.DPP(kernel, ITEMS), as_mixture(random_mixture(3, N), ITEMS)
    return {
        "dpp": dpp,
        "dpp, nonempty": dl.DPP(kernel, ITEMS, nonempty=True),
        "mixture": mixture,
        "mixture, nonempty": as_mixture(random_mixture(2, N), ITEMS, nonempty=True),
        "low-rank": as_mixture(random_low_rank(2, N), ITEMS),
        "weighted": dl.Mixture.of([dpp, mixture], [0.4, 0.6]),
        "nonempty, restricted": dl.DPP(wider, [*ITEMS, "pram"], nonempty=True).restrict(ITEMS),
    }


every_model = pytest.mark.parametrize("kind", models())


def probabilities(model: SetModel) -> Floats:
    return np.exp([model.log_prob([model.items[i] for i in Y]) for Y in oracle.subsets(len(model.items))])


@every_model
def test_an_item_added_is_as_likely_as_the_others_and_leaves_them_as_they_were(kind: str) -> None:
    model = models()[kind]
    more = model.with_items(["toy", "pram 2"])
    assert type(more) is type(model)
    assert more.items == (*model.items, "toy", "pram 2")
    P, before = probabilities(more), probabilities(model)
    assert P.sum() == pytest.approx(1, abs=1e-12)
    p = more.marginals()
    np.testing.assert_allclose(p, oracle.item_marginals(P), rtol=1e-10)
    np.testing.assert_allclose(p[N:], p[:N].mean(), rtol=1e-6)
    old = P.reshape(4, 2**N).sum(axis=0)  # of what a set holds of the items that were there
    np.testing.assert_allclose(old[1:] / old[1:].sum(), before[1:] / before[1:].sum(), rtol=1e-9)
    if model.nonempty:
        assert P[0] == 0
        assert old[0] > 0  # sets of new items alone
    elif kind != "nonempty, restricted":
        np.testing.assert_allclose(old, before, rtol=1e-6, atol=1e-12)
        for k in (N, N + 1):
            assert oracle.marginal(P, [k, 0]) == pytest.approx(p[k] * p[0], rel=1e-6)


@every_model
def test_an_item_like_another_cannot_be_told_from_it(kind: str) -> None:
    model = models()[kind]
    more = model.with_items(["second cot"], like="cot")
    P, one, copy = probabilities(more), 1, N
    assert P.sum() == pytest.approx(1, abs=1e-12)
    swap = [oracle.index({one: copy, copy: one}.get(i, i) for i in Y) for Y in oracle.subsets(N + 1)]
    np.testing.assert_allclose(P, P[swap], rtol=1e-6, atol=1e-12)
    assert more.marginals()[one] <= model.marginals()[one] * (1 + 1e-6)


def test_a_copy_of_an_independent_item_is_independent_of_it_and_one_of_a_duplicate_never_meets_it() -> None:
    K = [[0.5, 0.3, 0], [0.3, 0.4, 0], [0, 0, 0.3]]
    apart = dl.DPP.from_K(K, ["crib", "cot", "monitor"]).with_items(["camera"], like="monitor")
    assert apart.inclusion_prob(["monitor", "camera"]) == pytest.approx(0.09)
    twins = dl.DPP.from_L([[1.0, 1.0], [1.0, 1.0]], ["red", "blue"]).with_items(["green"], like="red")
    assert twins.inclusion_prob(["red", "green"]) == 0
    np.testing.assert_allclose(twins.marginals(), 0.25)


def test_the_model_is_kept_with_what_was_added(tmp_path: Path) -> None:
    more = models()["weighted"].with_items(["toy"], like="bib").with_items(["pram"])
    more.save(tmp_path / "more.safetensors")
    again = dl.load(tmp_path / "more.safetensors")
    assert again.learned.added == more.learned.added
    assert "'bib'" in (again.learned.added or "")
    np.testing.assert_allclose(probabilities(again), probabilities(more), rtol=1e-12)
    assert {each.item for each in again.recommend(["bib"], k=9)} == {"cot", "crib", "monitor", "toy", "pram"}


def test_a_learned_model_keeps_its_training_data() -> None:
    more = dl.fit([["bib", "cot"], ["cot"], ["bib"], ["crib", "cot"]], rng=0).model.with_items(["toy"])
    assert more.training.item_weights[-1] == 0
    assert not [each for each in more.substitutes("toy") + more.complements("toy") if abs(each.lift - 1) > 0.2]


NUMBERED = [f"item {i}" for i in range(65)]


def table(signal: float, seed: int = 0) -> tuple[dl.DPP, dict[str, object], Floats]:
    """Return independent items whose log-odds follow a feature with this signal; the last five are new."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(65)
    chance = 1 / (1 + np.exp(2 - signal * x - (1 - signal) * rng.standard_normal(65)))
    features = {"item": NUMBERED, "size": x, "colour": rng.choice(["red", "blue"], 65).tolist()}
    return dl.DPP.from_K(np.diag(chance[:60]), NUMBERED[:60]), features, chance[60:]


def test_features_with_a_signal_say_how_likely_new_items_are() -> None:
    dpp, features, truth = table(0.9)
    found = dpp.with_items(NUMBERED[60:], features=features)
    p, average = found.marginals()[60:], dpp.marginals().mean()
    assert np.abs(np.log(p / truth)).mean() < 0.4 * np.abs(np.log(average / truth)).mean()
    assert "R² 0.9" in (found.learned.added or "")
    with pytest.raises(dl.InputError, match=r"\b1\b"):
        dpp.with_items(["elsewhere"], features=features)


def test_features_without_a_signal_warn_and_give_the_average() -> None:
    for seed in range(8):
        dpp, features, _ = table(0.0, seed=seed)
        with pytest.warns(dl.InputWarning):
            found = dpp.with_items(["item 60"], features=features)
        assert found.marginals()[-1] == pytest.approx(dpp.marginals().mean())


def test_what_cannot_be_added_is_refused() -> None:
    for labels in (["cot"], ["toy", "toy"], [], "toy", [5]):
        with pytest.raises(dl.InputError):
            models()["dpp"].with_items(labels)
    for options in (
        {"like": "cott"},
        {"like": {"pram": "cot"}},
        {"like": "cot", "features": {"item": ["toy"]}},
        {"features": {"item": ["toy"], "x": [1]}},
    ):
        with pytest.raises(dl.InputError):
            models()["dpp"].with_items(["toy"], **options)
    with pytest.raises(dl.InputError):
        OF_INTEGERS.with_items(["cot"])


def test_items_written_as_integers_are_added_to_a_model_of_integers() -> None:
    assert OF_INTEGERS.with_items(["30", "40"], like="10").items == (10, 20, 30, 40)

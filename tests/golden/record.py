"""Record the golden values: `python tests/golden/record.py` from the root of the repository, once.

The values were recorded with the library as it was before its core was rewritten. Do not record them again to make a
test pass: the numbers are what a rewrite must reproduce. The models were fitted; their parameters are stored, so a
different result of a later fit changes nothing.

Every number is compared with `reference` before it is stored. Some values are not taken from the library:

- Scores of baskets with P(A) = 0 are left out.
- Probabilities of exactly 0 are taken from `reference`. After restriction or conditioning of a rank-deficient model,
  the library returns rounding noise for some of them.
- Segment probabilities are recorded for fitted mixtures only. After `restrict` of a mixture without empty sets, the
  library ignores that P(∅) differs between segments; for the same reason no greedy selections are recorded.
- Gradients that the library computes in single precision (low-rank factors) or by finite differences (posterior) are
  recorded as `reference` gives them, to full precision.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from golden import adapter, reference
from golden.compare import FILE, ZERO_IF_DERIVED, assert_answers, assert_close, assert_gradient, tolerance_of
from golden.reference import Array

SETS, DERIVED_SETS = 50, 16
REFERENCE_GRADIENTS = ("low_rank", "posterior")


# Data and fitted models. The library is imported where it fits models, so that this module can be imported whatever
# becomes of the names used here.


def orders(rng: np.random.Generator, n: int, n_items: int, *, nonempty: bool) -> Any:
    """Draw baskets of two segments of customers.

    Items 0 and 1 are substitutes, items 2 and 3 are complements, the last item is rare.
    """
    p = rng.uniform(0.05, 0.5, (2, n_items))
    p[:, -1] = 0.01  # rarer than what the low-rank learner lets interact
    found: list[Array] = []
    while len(found) < n:
        x = rng.random(n_items) < p[rng.integers(2)]
        if x[0] and x[1]:
            x[rng.integers(2)] = False
        if x[2] and rng.random() < 0.7:
            x[3] = True
        if x.any() or not nonempty:
            found.append(x)
    from dpplearn import Baskets

    return Baskets.from_lists([np.flatnonzero(x).tolist() for x in found], n_items=n_items)


def drawn(rng: np.random.Generator, kernel: Any, n: int) -> Any:
    """Draw baskets from a symmetric DPP."""
    from dpplearn import DPP, Baskets

    return Baskets.from_lists(DPP(kernel).sample(n, rng=rng), n_items=kernel.n_items)


def of_dpp(model: Any) -> dict[str, Array]:
    """Return eigenvalues and eigenvectors, the latter orthonormal to rounding: steps of EM leave an error of 1e-12."""
    left, _, right = np.linalg.svd(model.kernel.eigenvectors)
    return {"eigenvalues": model.kernel.eigenvalues, "eigenvectors": left @ right}


def of_mixture(model: Any) -> dict[str, Array]:
    """Return the parameters of a dense or low-rank mixture, the largest weight first."""
    kernel = model.kernel
    weights, more = kernel.weights, {}
    if hasattr(model.law, "share"):  # P(∅) is given; the kernel's weights are P(c) before conditioning on Y ≠ ∅
        weights = weights * -np.expm1(-kernel.log_normalisers)
        more = {"p_empty": np.array(model.law.share)}
    order = np.argsort(-weights)
    found = {"weights": (weights / weights.sum())[order], "log_odds": kernel.log_odds[order], **more}
    if hasattr(kernel, "factors"):
        return {**found, "factors": kernel.factors, "core": kernel.coupling[0]}
    X = kernel.interaction - np.eye(kernel.n_items)
    return {**found, "interaction": X[order] if len(X) > 1 else X}


def models() -> dict[str, dict[str, Array]]:
    """Fit the models and return their parameters."""
    from dpplearn import DPP, Baskets, Kernel, fit, fit_dpp, fit_quality, fit_weights

    rng = np.random.default_rng(2014)
    found = {}

    d = np.exp(0.7 * rng.standard_normal(9) - 0.5)
    truth = Kernel.from_L(d[:, None] * (np.cov(rng.standard_normal((9, 12))) + 0.3 * np.eye(9)) * d)
    full = fit_dpp(drawn(rng, truth, 1000), "em", init="wishart", max_iter=20, rng=1).model
    found["symmetric"] = of_dpp(full)

    factor = rng.standard_normal((10, 5))
    start = DPP(Kernel.from_factor(rng.standard_normal((10, 5))))
    found["symmetric rank-deficient"] = of_dpp(
        fit_dpp(drawn(rng, Kernel.from_factor(factor), 400), "em", start=start, max_iter=20, rng=2).model
    )

    rng = np.random.default_rng(1)  # a seed for which both eigenvalues stay at 1
    V = np.linalg.qr(rng.standard_normal((9, 9)))[0]
    certain = Kernel(np.array([1, 1, 0.9, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]), V)
    ones = fit_dpp(drawn(rng, certain, 2000), "k-ascent", start=DPP(certain), max_iter=20, rng=3).model
    found["symmetric with eigenvalues of 1"] = of_dpp(ones)

    sometimes, never = orders(rng, 1000, 12, nonempty=False), orders(rng, 1000, 12, nonempty=True)
    dense = fit(sometimes, segments=3, rank=3, rng=4).model
    dense_nonempty = fit(never, segments=3, rank=3, rng=5).model
    found["dense"] = of_mixture(dense)
    found["dense without the empty set"] = of_mixture(dense_nonempty)
    # One interaction per segment, and a probability of the empty set that is neither 0 nor the kernel's.
    found["dense with a given p_empty"] = of_mixture(dense_nonempty.restrict([7, 0, 1, 10, 2, 3, 5, 11]))
    low_rank = {"segments": 3, "rank": 2, "attraction": 2, "validation": 0}
    found["low-rank"] = of_mixture(fit(sometimes, rng=6, **low_rank).model)
    found["low-rank without the empty set"] = of_mixture(fit(never, rng=7, **low_rank).model)

    small = orders(rng, 300, 9, nonempty=False)
    nine = fit(small, segments=2, rank=2, rng=8).model
    mixed = Baskets.from_lists([*small, *drawn(rng, full.kernel, 400), *drawn(rng, ones.kernel, 200)], n_items=9)
    weights = fit_weights(mixed, [full, nine, ones]).model.kernel.weights
    assert np.all(np.diff(weights) < 0)
    assert weights[-1] > 0.05
    parts = {"0": found["symmetric"], "1": of_mixture(nine), "2": found["symmetric with eigenvalues of 1"]}
    found["given models"] = {
        "weights": weights,
        **{f"given/{c}/{name}": each for c, arrays in parts.items() for name, each in arrays.items()},
    }

    kinds = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    price = {"item": list(range(10)), "price": np.linspace(1, 3, 10).tolist()}
    baskets = orders(rng, 400, 10, nonempty=True)
    L = fit_quality(baskets, similarity={"kind": kinds.tolist()}, features=price).model.kernel.L
    d = np.sqrt(L.diagonal())
    found["quality"] = {"quality": 2 * np.log(d), "similarity": L / np.outer(d, d), "p_empty": np.array(0.0)}
    return found


# Answers


def some_sets(rng: np.random.Generator, count: int, n: int) -> Array:
    """Return distinct sets: the empty one, some of a single item, that of all items, and sets of sizes between."""
    sets = {(): None} | {(int(i),): None for i in rng.permutation(n)[: min(5, count // 4)]} | {tuple(range(n)): None}
    size = 2
    while len(sets) < count:
        sets[tuple(sorted(rng.permutation(n)[:size].tolist()))] = None
        size = size + 1 if size < n - 1 else 2
    found = np.zeros((count, n), dtype=bool)
    for row, items in enumerate(sets):
        found[row, list(items)] = True
    return found


def some_baskets(rng: np.random.Generator, n: int) -> Array:
    """Return baskets of 0 to 4 items."""
    baskets = np.zeros((6, n), dtype=bool)
    for row, size in enumerate((0, 1, 1, 2, 3, 4)):
        baskets[row, rng.permutation(n)[:size]] = True
    return baskets


def derivations(rng: np.random.Generator, n: int) -> list[tuple[Array, Array, Array]]:
    """Return items to restrict to, and items to include and exclude after that, both among the former."""
    found = []
    for size, n_include, n_exclude in ((n, 2, 0), (n, 0, 3), (n, 1, 2), (6, 0, 0), (7, 0, 2), (7, 1, 1)):
        items = np.arange(n) if size == n else rng.permutation(n)[:size]
        order, include, exclude = rng.permutation(size), np.zeros(size, bool), np.zeros(size, bool)
        include[order[:n_include]] = True
        exclude[order[n_include : n_include + n_exclude]] = True
        found.append((items, include, exclude))
    return found


def answers_of(
    rng: np.random.Generator, model: adapter.Model, P: Array, count: int, zero: float = 0.0
) -> dict[str, Array]:
    n = len(P).bit_length() - 1
    sets, baskets = some_sets(rng, count, n), some_baskets(rng, n)
    baskets = baskets[reference.inclusion(P, baskets) > 0]
    expected = reference.answers(P, sets, baskets)
    found = adapter.answers(model, sets, baskets)
    assert_answers(found, expected, zero)
    for name in ("log_prob", "log_sizes", "scores", "probabilities"):  # zeros, and scores that do not exist
        found[name] = np.where(np.isfinite(expected[name]) & (expected[name] != 0), found[name], expected[name])
    beyond = expected["top_items"] < 0
    found["top_items"][beyond] = -1
    found["top_scores"][beyond], found["top_probabilities"][beyond] = np.nan, np.nan
    return found


def record_model(rng: np.random.Generator, name: str, parameters: dict[str, Array]) -> dict[str, Array]:
    model, P = adapter.build(parameters), reference.table(parameters)
    n = len(P).bit_length() - 1
    found = {f"parameters/{path}": each for path, each in parameters.items()}
    answers = answers_of(rng, model, P, SETS)
    found |= {f"answers/{path}": each for path, each in answers.items()}
    if "weights" in parameters and not parameters.get("p_empty", 0):
        expected = reference.segments(parameters, answers["baskets"])
        segments = [
            adapter.segments(model, A) if A.any() else row for A, row in zip(answers["baskets"], expected, strict=True)
        ]
        assert_close(np.array(segments), expected)
        found["segments"] = np.array(segments)
    for number, (items, include, exclude) in enumerate(derivations(rng, n)):
        derived, P_derived = (
            adapter.derive(model, items, include, exclude),
            reference.derive(P, items, include, exclude),
        )
        found |= {
            f"derived/{number}/{path}": each
            for path, each in {"items": items, "include": include, "exclude": exclude}.items()
        }
        answers = answers_of(rng, derived, P_derived, DERIVED_SETS, ZERO_IF_DERIVED)
        found |= {f"derived/{number}/answers/{path}": each for path, each in answers.items()}
    print(f"{name}: {n} items, P(∅) = {P[0]:.3g}, smallest probability {P[P > 0].min():.1e}")
    return found


# Objectives


def training_sets(
    rng: np.random.Generator, n: int, largest: int, *, smallest: int = 0, count: int = 40
) -> dict[str, Array]:
    """Return distinct sets with integer weights. Every item occurs."""
    sets = np.zeros((count, n), dtype=bool)
    for row in range(count):
        sets[row, rng.permutation(n)[: smallest + row % (largest - smallest + 1)]] = True
    sets = np.unique(np.vstack([sets, (np.arange(n)[:, None] - np.arange(n)) % n < max(smallest, 1)]), axis=0)
    return {"sets": sets, "weights": rng.integers(1, 6, len(sets)).astype(float), "nonempty": np.array(smallest > 0)}


def objectives(fitted: dict[str, dict[str, Array]]) -> dict[str, tuple[str, dict[str, Array], dict[str, Array]]]:
    """Return form, parameters and data of every objective."""
    rng = np.random.default_rng(2015)
    found: dict[str, tuple[str, dict[str, Array], dict[str, Array]]] = {}

    def rounded(*shape: int, scale: float = 1.0) -> Array:
        return np.round(scale * rng.standard_normal(shape), 2)

    data = training_sets(rng, 8, 6)
    found["factor"] = "factor", {"B": rounded(8, 8, scale=0.7)}, data
    found["factor without the empty set"] = (
        "factor",
        {"B": rounded(8, 8, scale=0.7)},
        training_sets(rng, 8, 6, smallest=1),
    )
    found["narrow factor"] = "factor", {"B": rounded(10, 5, scale=0.7)}, training_sets(rng, 10, 3)
    B = rounded(8, 8, scale=0.7)
    found["in L"] = "in_L", {"L": B @ B.T}, data

    for name, sizes in (
        ("symmetric", (0, 6)),
        ("symmetric rank-deficient", (0, 4)),
        ("symmetric with eigenvalues of 1", (3, 7)),
    ):
        arrays = fitted[name]
        lam, V = arrays["eigenvalues"], arrays["eigenvectors"]
        data = training_sets(rng, len(lam), sizes[1], smallest=sizes[0]) | arrays | {"nonempty": np.array(False)}
        found[name] = "in_K", {"K": (V * lam) @ V.T}, data

    for name, smallest, m in (("dense", 0, 3), ("dense without the empty set", 1, 3), ("dense, one segment", 1, 1)):
        n = 10
        parameters = {
            "gamma": rounded(n, scale=0.5) - 0.5,
            **({"theta": rounded(m, n)} if m > 1 else {}),
            "U": rounded(n, 3, scale=0.5),
            "A": np.tril(rounded(n, n, scale=0.5), -1),
            "logits": rounded(m),
        }
        found[name] = "dense", parameters, training_sets(rng, n, 6, smallest=smallest)

    for name, smallest in (("low-rank", 0), ("low-rank without the empty set", 1)):
        n, m, zero = 10, 3, np.zeros((2, 2))
        data = training_sets(rng, n, 6, smallest=smallest)
        segments = {
            "log_odds": (rounded(m, n) - 1).astype(np.float32),
            "segment_weights": np.array([0.5, 0.3, 0.2]),
            "core": np.block([[np.eye(2), zero, zero], [zero, zero, np.eye(2)], [zero, -np.eye(2), zero]]),
        }
        factors = rounded(n, 6, scale=0.5).astype(np.float32).astype(float)
        data["weights"] *= 10  # so that every item is frequent enough to interact
        found[name] = "low_rank", {"factors": factors}, data | segments

    data = training_sets(rng, 9, 7, smallest=3) | {"nonempty": np.array(False)}
    given = [reference.table(reference.part(fitted["given models"], f"given/{c}/")) for c in range(3)]
    with np.errstate(divide="ignore"):
        log_prob = np.log([P[reference.index(data["sets"])] for P in given]).T
    found["mixing weights"] = "mixing_weights", {"w": np.array([0.5, 0.3, 0.2])}, data | {"log_prob": log_prob}

    n = 8
    x = np.column_stack([np.linspace(-1, 1, n), np.cos(np.arange(n))]).round(2)
    kinds, regions = np.arange(n) // 2, np.arange(n) % 3
    similarities = np.array([kinds[:, None] == kinds, regions[:, None] == regions], dtype=float)
    found["quality by features"] = (
        "quality",
        {"theta": np.array([-0.4, 0.3, -0.2]), "phi": np.array([0.2, 0.3, 0.25])},
        training_sets(rng, n, 5, smallest=1)
        | {"design": np.column_stack([np.ones(n), x]), "similarities": similarities, "ridge": np.array(2.5)},
    )
    found["quality by item"] = (
        "quality",
        {"theta": rounded(n, scale=0.5) - 0.5, "phi": np.array([0.3])},
        training_sets(rng, n, 5) | {"design": np.eye(n), "similarities": similarities[:0], "ridge": np.array(0.0)},
    )

    n_slates, n = 20, 6
    there = rng.random((n_slates, n)) < 0.8
    there[:, :2] = True
    y = rng.standard_normal((n_slates, n, 3))
    y /= np.linalg.norm(y, axis=2, keepdims=True)
    found["slates"] = (
        "slates",
        {"free": np.array([-0.3, 0.8, 0.4, -0.2])},
        {
            "scores": np.where(there, rounded(n_slates, n), 0.0),
            "chosen": there & (rng.random((n_slates, n)) < 0.4),
            "there": there,
            "alike": y @ y.transpose(0, 2, 1),
        },
    )

    n = 8
    for name, smallest in (("posterior rbf", 0), ("posterior linear", 1)):
        data = training_sets(rng, n, 5, smallest=smallest)
        prior = {"prior_mean": np.array([-2.0, 0, 0, 0]), "prior_sd": np.array([2.0, 1, 1, 1])}
        parameters = {"theta": np.array([-0.6, 0.3, -0.4, 0.2])}
        found[name] = "posterior", parameters, data | prior | {"features": x, "rbf": np.array("rbf" in name)}
    return found


def record_objective(name: str, form: str, parameters: dict[str, Array], data: dict[str, Array]) -> dict[str, Array]:
    value, gradient, more = adapter.objective(form, parameters, data)
    expected, expected_gradient = reference.objective(form, parameters, data)
    expected_more = reference.MORE[form](parameters, data) if form in reference.MORE else {}
    assert_close(value, expected)
    assert_gradient(gradient, expected_gradient, tolerance_of(form))
    for path, each in more.items():
        assert_close(each, expected_more[path], of_norm=True)
    kept = expected_gradient if form in REFERENCE_GRADIENTS else gradient
    print(f"{name}: {value:.6f}, gradients up to {max(np.abs(each).max() for each in kept.values()):.3g}")
    return {
        "form": np.array(form),
        "value": np.array(value),
        **{f"parameters/{path}": each for path, each in parameters.items()},
        **{f"data/{path}": each for path, each in data.items()},
        **{f"gradient/{path}": each for path, each in kept.items()},
        **{f"more/{path}": each for path, each in more.items()},
    }


def main() -> None:
    rng = np.random.default_rng(2016)
    found = {}
    fitted = models()
    for name, parameters in fitted.items():
        found |= {f"models/{name}/{path}": each for path, each in record_model(rng, name, parameters).items()}
    for name, (form, parameters, data) in objectives(fitted).items():
        arrays = record_objective(name, form, parameters, data)
        found |= {f"objectives/{name}/{path}": each for path, each in arrays.items()}
    np.savez_compressed(FILE, **found)
    print(f"{FILE.name}: {len(found)} arrays, {FILE.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()

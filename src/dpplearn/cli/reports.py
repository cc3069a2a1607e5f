"""What each command answers, as plain data: printed as JSON, or turned into tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.baskets import Baskets
from dpplearn.catalogue import Label
from dpplearn.cli.output import Report
from dpplearn.demo import Demo, Score
from dpplearn.dpp import DPP, Recommendation, Selection
from dpplearn.fit_result import FitResult
from dpplearn.initialise import independent
from dpplearn.kernel import Kernel
from dpplearn.metrics import relative_gain

MODEL_MARGINALS = "independent items with the model's marginals"


def fit_report(result: FitResult, train: Baskets, test: Baskets | None, **where: Any) -> Report:
    """`where` names the files and the seed."""
    return {
        **where,
        "n_baskets": len(train),
        "n_distinct": result.dpp.learned["n_distinct"],
        "n_items": train.n_items,
        "weight": train.total_weight,
        "mean_size": float(train.sizes.mean()),
        "learner": result.dpp.learned["learner"],
        "start": result.dpp.learned["start"],
        "stop": result.stop.name,
        "stopped_because": result.stop.value,
        "converged": result.converged,
        "n_iter": result.n_iter,
        "evaluations": result.dpp.learned["evaluations"],
        "seconds": sum(each.seconds for each in result.restarts),
        "expected_size": result.dpp.expected_size,
        "train": _likelihoods(len(train), result.log_likelihood, result.independent_log_likelihood),
        "test": None if test is None else _test_likelihoods(result.dpp, train, test),
        "restarts": [{**asdict(each), "stop": each.stop.name} for each in result.restarts],
        "agreement": {**asdict(result.agreement), "reached": result.agreement.reached, "text": str(result.agreement)},
    }


def _test_likelihoods(dpp: DPP, train: Baskets, test: Baskets) -> Report:
    """Independent items have the frequencies of the training data: those of the test data would be an oracle's."""
    baseline = DPP(independent(train), train.items)
    return _likelihoods(len(test), dpp.log_likelihood(test), baseline.log_likelihood(test))


def _likelihoods(n_baskets: int, model: float, baseline: float) -> Report:
    return {
        "n_baskets": n_baskets,
        "log_likelihood": model,
        "independent_log_likelihood": baseline,
        "gain": model - baseline,
    }


def score_report(dpp: DPP, baskets: Baskets, *, each: bool, **where: Any) -> Report:
    """How well a model predicts baskets, beside what its marginals alone would predict."""
    mean = dpp.log_likelihood(baskets)
    values = dpp.log_prob(baskets)
    impossible = np.isneginf(values) & (baskets.weights > 0)
    marginals = Kernel(np.clip(dpp.marginals(), 0, 1), np.eye(len(dpp.items)))
    baseline = DPP(marginals, dpp.items).log_likelihood(baskets)
    report = {
        **where,
        "n_baskets": len(baskets),
        "weight": baskets.total_weight,
        "log_likelihood": mean,
        "n_impossible": int(impossible.sum()),
        "weight_impossible": float(baskets.weights[impossible].sum()),
        "log_likelihood_of_possible": _weighted_mean(values, np.where(impossible, 0, baskets.weights)),
        "baseline": MODEL_MARGINALS,
        "baseline_log_likelihood": baseline,
        "gain": mean - baseline,
    }
    if each:
        rows = zip(baskets, baskets.weights.tolist(), values.tolist(), strict=True)
        report["each"] = [
            {"basket": number, "items": list(items), "weight": weight, "log_likelihood": value}
            for number, (items, weight, value) in enumerate(rows)
        ]
    return report


def _weighted_mean(values: Floats, weights: Floats) -> float:
    counted = weights > 0
    return float(np.average(values[counted], weights=weights[counted])) if counted.any() else float("nan")


def recommend_report(basket: Sequence[Label], found: Sequence[Recommendation], k: int, note: str = "") -> Report:
    if not note and len(found) < k:
        note = f"{len(found)} instead of {k}: no other item that is allowed can be added to this basket"
    return {
        "basket": list(basket),
        "recommendations": [each._asdict() for each in found],
        "note": note,
    }


def selection_report(dpp: DPP, given: Sequence[str], chosen: Selection) -> Report:
    """The items given come first, in their order."""
    expected = dpp.catalogue.select(dpp.catalogue.positions(given))
    return {
        "items": [
            {"item": item, "gain": gain, "given": item in expected}
            for item, gain in zip(chosen.items, chosen.gains, strict=True)
        ],
        "log_prob": chosen.log_prob,
        "note": chosen.note,
    }


def sample_report(sets: Sequence[Sequence[Label]], k: int | None, seed: int) -> Report:
    return {"n": len(sets), "k": k, "seed": seed, "samples": [list(each) for each in sets]}


def describe_report(dpp: DPP, versions: dict[str, str], top: int, **where: Any) -> Report:
    marginals = dpp.marginals()
    likeliest = np.argsort(-marginals, kind="stable")[:top]
    return {
        **where,
        "n_items": len(dpp.items),
        "rank": dpp.kernel.rank,
        "size": _size_summary(dpp.size_distribution),
        "learned": dict(dpp.learned),
        "written_with": versions,
        "likeliest_items": [{"item": dpp.items[i], "probability": float(marginals[i])} for i in likeliest],
        "repelling_pairs": _repelling_pairs(dpp, top),
    }


def _size_summary(law: Floats) -> Report:
    """Of P(|Y| = k), k = 0, 1, ..."""
    sizes = np.arange(len(law))
    mean = float(law @ sizes)
    low, median, high = (int(np.searchsorted(np.cumsum(law), share)) for share in (0.05, 0.5, 0.95))
    return {
        "expected": mean,
        "standard_deviation": float(law @ (sizes - mean) ** 2) ** 0.5,
        "most_likely": int(np.argmax(law)),
        "percentile_5": low,
        "median": median,
        "percentile_95": min(high, len(law) - 1),
        "probability_empty": float(law[0]),
    }


def _repelling_pairs(dpp: DPP, top: int) -> list[Report]:
    """By K_ij²/(K_ii K_jj), the share of chance co-occurrence that the model removes."""
    K = dpp.kernel.K
    chance = np.outer(K.diagonal(), K.diagonal())
    repulsion = np.triu(dpp.kernel.repulsion)
    strongest = np.argsort(-repulsion, axis=None, kind="stable")[:top]
    pairs = [(i, j) for i, j in zip(*np.unravel_index(strongest, K.shape), strict=True) if repulsion[i, j] > 0]
    return [
        {
            "items": [dpp.items[i], dpp.items[j]],
            "repulsion": float(repulsion[i, j]),
            "probability_of_both": float(max(chance[i, j] - K[i, j] ** 2, 0)),
            "by_chance": float(chance[i, j]),
        }
        for i, j in pairs
    ]


def item_report(dpp: DPP, item: str, top: int) -> Report:
    position = dpp.catalogue.position(item)
    return {
        "item": dpp.items[position],
        "probability": float(dpp.marginals()[position]),
        "substitutes": [each._asdict() for each in dpp.substitutes(item, top)],
    }


def demo_report(demo: Demo) -> Report:
    return {
        "category": demo.category,
        "seed": demo.seed,
        "n_items": demo.n_items,
        "n_train": demo.n_train,
        "n_test": demo.n_test,
        "models": [_model(demo.independent, demo.duels[0].em), _model(demo.auto, demo.duels[-1].em)]
        + [_model(score, duel.em) for duel in demo.duels for score in (duel.k_ascent, duel.em)],
        "comparison": demo.comparison,
        "kind": demo.kind,
        "held": demo.held,
        "suggestions": {
            "em": [asdict(each) for each in demo.by_em],
            "popularity": [asdict(each) for each in demo.by_popularity],
        },
        "again_of_its_kind": {
            "em": sum(each.same_kind for each in demo.by_em),
            "popularity": sum(each.same_kind for each in demo.by_popularity),
        },
        "sentence": demo.sentence,
    }


def _model(score: Score, em: Score) -> Report:
    """Beside the EM that stopped by the same rule."""
    return {
        **asdict(score),
        "em_gain_train_percent": relative_gain(em.train, score.train),
        "em_gain_test_percent": relative_gain(em.test, score.test),
    }

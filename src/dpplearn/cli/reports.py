"""What each command answers, as plain data: printed as JSON, or turned into tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from dpplearn.cli.commands.demo import Demo, Score
from dpplearn.cli.output import Report
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Label
from dpplearn.evaluation.metrics import relative_gain
from dpplearn.fitting.prior import SMOOTHING
from dpplearn.fitting.prior_choice import PriorChoice
from dpplearn.fitting.result import FitResult
from dpplearn.kernels.independent import independent
from dpplearn.models.dpp import DPP, Recommendation, Selection


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
        "seconds": result.dpp.learned["seconds"],
        "prior": result.prior,
        "prior_choice": None if result.prior_choice is None else _prior_choice(result.prior_choice),
        "validation": result.dpp.learned.get("validation"),
        "validation_log_likelihood": result.dpp.learned.get("validation_log_likelihood"),
        "nonempty": result.dpp.learned["nonempty"],
        "expected_size": result.expected_size,
        "train": _likelihoods(len(train), result.log_likelihood, result.independent_log_likelihood),
        "test": None if test is None else _test_likelihoods(result.dpp, train, test),
        "restarts": [{**asdict(each), "stop": each.stop.name} for each in result.restarts],
        "agreement": {**asdict(result.agreement), "reached": result.agreement.reached, "text": str(result.agreement)},
    }


def _test_likelihoods(dpp: DPP, train: Baskets, test: Baskets) -> Report:
    """Independent items have the frequencies of the training data: those of the test data would be an oracle's."""
    nonempty = dpp.learned["nonempty"]
    baseline = DPP(independent(train, smoothing=SMOOTHING, nonempty=nonempty), train.items)
    values = (model.log_likelihood(test, nonempty=nonempty) for model in (dpp, baseline))
    return _likelihoods(len(test), *values)


def _prior_choice(choice: PriorChoice) -> list[Report]:
    """One line a strength, the strongest first."""
    lines = []
    for number, (strength, value) in enumerate(zip(choice.strengths, choice.log_likelihood, strict=True)):
        below, standard_error = choice.difference(choice.best, number)
        lines.append(
            {
                "strength": float(strength),
                "log_likelihood": float(value),
                "below_the_best": below,
                "standard_error": standard_error,
                "taken": number == choice.chosen,
            }
        )
    return lines


def _likelihoods(n_baskets: int, model: float, baseline: float) -> Report:
    return {
        "n_baskets": n_baskets,
        "log_likelihood": model,
        "independent_log_likelihood": baseline,
        "gain": model - baseline,
    }


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

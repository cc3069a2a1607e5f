"""Fit, save and evaluate the model of one category, in a worker process."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Label
from dpplearn.errors import InputError
from dpplearn.evaluation.baselines import INDEPENDENT
from dpplearn.evaluation.evaluation import evaluate
from dpplearn.evaluation.metrics import PERCENTILE_RANK
from dpplearn.evaluation.protocol import GIVEN_ONE
from dpplearn.evaluation.result import Evaluation
from dpplearn.learners.settings import settings_of
from dpplearn.learners.train import fit_with
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import SetModel
from dpplearn.models.model_file import load
from dpplearn.models.store import save_model
from dpplearn.pipeline.prepared import Prepared

MODEL = "model"  # its name in the evaluation


@dataclass(frozen=True)
class Learning:
    """The job of one category.

    `data` is the digest of its basket files by side. `known` is an up-to-date model that only needs evaluation, `last`
    the model of the previous store; both are paths relative to the store folder.
    """

    prepared: Path
    store: Path
    slug: str
    data: Mapping[str, str]
    seed: int
    options: Mapping[str, Any]
    known: str | None = None
    last: str | None = None
    warm_start: bool = False


def fit_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a fit that decide what is learned, with defaults."""
    if "threads" in options:
        raise InputError("threads is not an option of fit_all: every model is fitted by one thread")
    settings = settings_of(**options)
    found = {name: value for name, value in asdict(settings).items() if name != "threads"}
    return {"model": settings.kind, **found}


def learn(job: Learning) -> dict[str, Any]:
    """Run the job. Return what the manifest records about the model."""
    prepared = _prepared(job)
    last = load(job.store / job.last) if job.last is not None else None
    test = prepared.test(job.slug)
    if job.known is not None:
        model: SetModel = load(job.store / job.known)
        train = None if test is not None else prepared.train(job.slug)
        return {"result": result_of(model, last, test, train)}
    train = prepared.train(job.slug)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        start = _start(job, last)
        model = fit_with(settings_of(**job.options, threads=1), train, start=start, rng=job.seed).model
    seconds = time.perf_counter() - began
    file, version = save_model(model, job.store, job.slug)
    return {
        "file": file,
        "sha256": version,
        "warm_start": start is not None,
        "seconds": round(seconds, 3),
        "notes": [str(each.message) for each in told],
        "result": result_of(model, last, test, train),
    }


def _prepared(job: Learning) -> Prepared:
    found = Prepared.open(job.prepared)
    if {side: file.sha256 for side, file in found.category(job.slug).files.items()} != job.data:
        raise InputError(f"{job.prepared} was prepared again while models were learned from it; repeat when it is done")
    return found


def _start(job: Learning, last: SetModel | None) -> Any:
    """The model to start from, if it is of the kind that is asked for."""
    if not job.warm_start or last is None:
        return None
    return last if isinstance(last, {"mixture": Mixture, "dpp": DPP}[job.options["model"]]) else None


def result_of(model: SetModel, last: SetModel | None, test: Baskets | None, train: Baskets | None) -> dict[str, Any]:
    """Return the evaluation on the test (or training) baskets, compared with the last model."""
    baskets = test if test is not None else train
    assert baskets is not None
    found = evaluate({MODEL: model}, baskets)
    return {
        "on": "test" if test is not None else "train",
        "n_baskets": len(baskets),
        **_figures(found, MODEL),
        "independent": found.estimate(INDEPENDENT).value,
        "gain": found.difference(MODEL, INDEPENDENT).value,
        "baselines": _baseline_ranks(found, model),
        "calibration": asdict(found.reliability[MODEL][GIVEN_ONE]),
        "last": None if last is None else _compared(model, last, baskets),
    }


def _baseline_ranks(found: Evaluation, model: SetModel) -> dict[str, float]:
    """Return the percentile ranks of the baselines. Independent items rank as popularity does."""
    if model.training is None:  # the baselines would have the marginals of the model
        return {}
    names = (name for name in found.baselines if name != INDEPENDENT)
    return {name: found.estimate(name, PERCENTILE_RANK).value for name in names}


def _compared(model: SetModel, last: SetModel, baskets: Baskets) -> dict[str, Any] | None:
    """Compare two models on the items that both have. Baskets without any of these items are left out."""
    common = [item for item in model.items if item in last.catalogue]
    if not common:
        return None
    models = {"now": _restricted(model, common), "before": _restricted(last, common)}
    try:
        found = evaluate(models, baskets, unknown="drop")
    except InputError:  # no basket holds a common item
        return None
    return {
        "n_items": len(common),
        "now": _figures(found, "now"),
        "before": _figures(found, "before"),
        "difference": found.difference("now", "before").value,
    }


def _restricted(model: SetModel, items: Sequence[Label]) -> SetModel:
    return model if len(items) == len(model.items) else model.restrict(items)


def _figures(found: Evaluation, name: str) -> dict[str, float]:
    return {
        "log_likelihood": found.estimate(name).value,
        "percentile_rank": found.estimate(name, PERCENTILE_RANK).value,
    }

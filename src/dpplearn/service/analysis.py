"""The analysis page: segments, strongest pairs, calibration, and scores compared with baselines."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

import numpy as np

from dpplearn.models.model import SetModel
from dpplearn.models.relations import MANY_ITEMS, RelatedPairs, pair_table, related_pairs
from dpplearn.service import schemas
from dpplearn.service.answers import OneModel, entry, segments
from dpplearn.service.loader import ServedModel, ServedStore

MAX_ITEMS = 200  # most likely items, whose pairs are in the calibration
MAX_MAP_ITEMS = 24  # items of the map, those of the strongest pairs
MAX_PAIRS = 12  # pairs named of each kind
N_BINS = 10
MEASURES = ("log_likelihood", "independent", "gain", "percentile_rank", "n_baskets", "baselines")


def analysis_of_store(store: ServedStore) -> schemas.StoreAnalysis:
    """Return the scores of all models."""
    return schemas.StoreAnalysis(version=store.version, models=[_score(each) for each in store.models.values()])


def _score(served: ServedModel) -> schemas.ModelScore:
    """Return the results of fit-all, or the training log-likelihood if there are none."""
    learned, result = served.model.learned, served.about.get("result")
    fields = {name: value for name, value in entry(served).items() if name != "version"}
    if isinstance(result, Mapping):
        measured: dict[str, Any] = {name: result.get(name) for name in MEASURES}
        return schemas.ModelScore(**fields, on=result.get("on", "test"), **measured)
    model, independent = learned.log_likelihood, learned.independent_log_likelihood
    gain = None if model is None or independent is None else model - independent
    return schemas.ModelScore(
        **fields, on="train", n_baskets=learned.n_baskets, log_likelihood=model, independent=independent, gain=gain
    )


def analysis_of_model(source: OneModel) -> schemas.ModelAnalysis:
    """Return the analysis of a model, computed once."""
    if "analysis" not in source.served.cache:
        source.served.cache["analysis"] = _analysis(source)
    found: schemas.ModelAnalysis = source.served.cache["analysis"]
    return found


def _analysis(source: OneModel) -> schemas.ModelAnalysis:
    served, model = source.served, source.served.model
    # Without training counts the lifts of all pairs would be needed: too many in a large catalogue.
    known = model.training is not None or len(model.items) <= MANY_ITEMS
    pairs = related_pairs(model, MAX_PAIRS) if known else RelatedPairs([], [])
    fields: dict[str, Any] = pairs._asdict()
    return schemas.ModelAnalysis(
        **source.about,
        **fields,
        title=served.category.name,
        segments=segments(served, None),
        map=_lift_map(model, pairs),
        calibration=_calibration(served),
    )


def _lift_map(model: SetModel, pairs: RelatedPairs) -> schemas.LiftMap:
    """Return the lifts among the items of the strongest pairs, of both kinds in turn. Pairs are neighbours."""
    in_turn = [each for both in zip_longest(*pairs) for each in both if each is not None]
    labels = list(dict.fromkeys(label for pair in in_turn for label in (pair.first, pair.second)))[:MAX_MAP_ITEMS]
    items = model.catalogue.positions(labels)
    return schemas.LiftMap(items=labels, lift=pair_table(model.distribution, items, items).lift.tolist())


def _calibration(served: ServedModel) -> schemas.Calibration | None:
    """Return predicted and observed probabilities: as fit-all measured them, else P(j | i) on the training baskets."""
    result, training = served.about.get("result"), served.model.training
    stored = result.get("calibration") if isinstance(result, Mapping) else None
    if isinstance(result, Mapping) and isinstance(stored, Mapping) and isinstance(stored.get("rows"), list):
        return schemas.Calibration(on=result.get("on", "test"), rows=stored["rows"])
    if training is None:
        return None
    marginals = served.model.marginals()
    likely = np.sort(np.argsort(-marginals, kind="stable")[:MAX_ITEMS])
    likely = likely[marginals[likely] > 0]
    predicted = pair_table(served.model.distribution, likely, likely).both / marginals[likely][:, None]
    given = np.repeat(training.item_weights[likely][:, None], len(likely), axis=1)
    off = ~np.eye(len(likely), dtype=bool) & (given > 0)
    order = np.argsort(predicted[off], kind="stable")
    columns = (predicted[off] * given[off], training.pair_counts_among(likely)[off], given[off])
    rows = []
    for part in np.array_split(order, N_BINS):
        expected, observed, weight = (float(column[part].sum()) for column in columns)
        if weight > 0:
            rows.append(schemas.CalibrationBin(predicted=expected / weight, observed=observed / weight, weight=weight))
    return schemas.Calibration(on="train", rows=rows)

"""The analysis page: segments, strongest pairs, calibration, and scores compared with baselines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.models.relations import pair_table, significant_pairs, training_counts
from dpplearn.service import schemas
from dpplearn.service.answers import OneModel, entry, segments
from dpplearn.service.loader import ServedModel, ServedStore

MAX_ITEMS = 200  # most likely items, whose pairs are compared
MAX_MAP_ITEMS = 24  # items of the map, those of the strongest pairs
MAX_PAIRS = 12  # pairs named of each kind
MAX_LIFT = 4.0  # in the order of the map, larger lifts count as this
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
    served, marginals = source.served, source.served.model.marginals()
    likely = np.sort(np.argsort(-marginals, kind="stable")[:MAX_ITEMS])
    likely = likely[marginals[likely] > 0]
    p, pairs = marginals[likely], pair_table(served.model.distribution, likely, likely)
    return schemas.ModelAnalysis(
        **source.about,
        title=served.category.name,
        segments=segments(served, None),
        **_strongest_pairs(served, likely, pairs.lift),
        calibration=_calibration(served, likely, pairs.both / p[:, None]),
    )


def _strongest_pairs(served: ServedModel, likely: Ints, lift: Floats) -> dict[str, Any]:
    """Return the strongest significant pairs of each kind, and the lifts among their items."""
    model = served.model
    labels = [model.items[i] for i in likely]
    low, high = training_counts(model.distribution, model.training, likely, likely).interval()
    named = significant_pairs(model, likely)  # all pairs if there is no training record
    first, second = np.nonzero(np.triu(named, 1))
    log_lift = np.log(np.maximum(lift[first, second], 1e-6))
    order = np.argsort(log_lift, kind="stable")
    substitutes = [each for each in order[:MAX_PAIRS] if log_lift[each] < 0]
    complements = [each for each in order[::-1][:MAX_PAIRS] if log_lift[each] > 0]

    def pair(number: int) -> schemas.Pair:
        i, j = first[number], second[number]
        return schemas.Pair(first=labels[i], second=labels[j], lift=lift[i, j], low=low[i, j], high=high[i, j])

    by_rank = [each for rank in range(MAX_PAIRS) for each in (*substitutes[rank:][:1], *complements[rank:][:1])]
    shown = list(dict.fromkeys(int(item) for each in by_rank for item in (first[each], second[each])))[:MAX_MAP_ITEMS]
    shown = np.array(shown, dtype=np.int64)[_substitutes_adjacent(lift[np.ix_(shown, shown)])].tolist()
    return {
        "substitutes": list(map(pair, substitutes)),
        "complements": list(map(pair, complements)),
        "map": schemas.LiftMap(items=[labels[i] for i in shown], lift=lift[np.ix_(shown, shown)].tolist()),
    }


def _substitutes_adjacent(lift: Floats) -> Ints:
    """Return an order of items in which substitutes are neighbours, by hierarchical clustering."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(lift) < 3:
        return np.arange(len(lift))
    distance = np.clip((lift + lift.T) / 2, 0, MAX_LIFT)
    np.fill_diagonal(distance, 0)
    return np.asarray(leaves_list(linkage(squareform(distance, checks=False), "average")), dtype=np.int64)


def _calibration(served: ServedModel, likely: Ints, predicted: Floats) -> schemas.Calibration | None:
    """Return predicted and observed probabilities: as fit-all measured them, else P(j | i) on the training baskets."""
    result, training = served.about.get("result"), served.model.training
    stored = result.get("calibration") if isinstance(result, Mapping) else None
    if isinstance(result, Mapping) and isinstance(stored, Mapping) and isinstance(stored.get("rows"), list):
        return schemas.Calibration(on=result.get("on", "test"), rows=stored["rows"])
    if training is None:
        return None
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

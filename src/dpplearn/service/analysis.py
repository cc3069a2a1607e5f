"""The analysis page: segments, strongest pairs, calibration, and scores compared with baselines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.models.relations import pair_table
from dpplearn.service import schemas
from dpplearn.service.answers import about, entry, segments
from dpplearn.service.loader import ServedModel, ServedStore

MAX_ITEMS = 200  # most likely items that are compared
MAX_MAP_ITEMS = 24  # items of the map, those of the strongest pairs
MAX_PAIRS = 12  # pairs named of each kind
MIN_PAIR_COUNT = 5  # co-occurrences, observed or expected under independence, of a pair that is named
N_BINS = 10
MEASURES = ("log_likelihood", "independent", "gain", "percentile_rank", "n_baskets", "baselines")


def analysis_of_store(store: ServedStore) -> schemas.StoreAnalysis:
    return schemas.StoreAnalysis(version=store.version, models=[_score(each) for each in store.models.values()])


def _score(served: ServedModel) -> schemas.ModelScore:
    """Return the results of fit-all, or the training log-likelihood if there are none."""
    learned, result = served.model.learned, served.about.get("result")
    fields = {name: value for name, value in entry(served).items() if name != "version"}
    if isinstance(result, Mapping):
        measured: dict[str, Any] = {name: result.get(name) for name in MEASURES}
        return schemas.ModelScore(**fields, on=result.get("on", "test"), **measured)
    model, independent = learned.log_likelihood, learned.independent_log_likelihood
    return schemas.ModelScore(
        **fields,
        on="train",
        n_baskets=learned.n_baskets,
        log_likelihood=model,
        independent=independent,
        gain=None if model is None or independent is None else model - independent,
        percentile_rank=None,
        baselines=None,
    )


def analysis_of_model(served: ServedModel) -> schemas.ModelAnalysis:
    """Return the analysis of a model, computed once."""
    if "analysis" not in served.cache:
        served.cache["analysis"] = _analysis(served)
    found: schemas.ModelAnalysis = served.cache["analysis"]
    return found


def _analysis(served: ServedModel) -> schemas.ModelAnalysis:
    marginals = served.model.marginals()
    likely = np.sort(np.argsort(-marginals, kind="stable")[:MAX_ITEMS])
    likely = likely[marginals[likely] > 0]
    p, pairs = marginals[likely], pair_table(served.model.distribution, likely, likely)
    return schemas.ModelAnalysis(
        **about(served),
        title=served.category.name,
        segments=segments(served, None),
        **_strongest_pairs(served, likely, p, pairs.lift),
        calibration=_calibration(served, likely, pairs.both / p[:, None]),
    )


def _strongest_pairs(served: ServedModel, likely: Ints, p: Floats, lift: Floats) -> dict[str, Any]:
    """Return the strongest pairs of each kind, and the lifts among their items."""
    labels, training = served.model.items, served.model.training
    n = training.weight if training is not None else np.inf
    first, second = np.triu_indices(len(likely), 1)
    log_lift = np.log(np.maximum(lift[first, second], 1e-6))
    enough = n * p[first] * p[second] * np.maximum(lift[first, second], 1) >= MIN_PAIR_COUNT
    order = np.argsort(log_lift, kind="stable")
    order = order[enough[order]]
    apart = [each for each in order[:MAX_PAIRS] if log_lift[each] < 0]
    together = [each for each in order[::-1][:MAX_PAIRS] if log_lift[each] > 0]
    items: dict[int, None] = {}  # of the pairs in turn, one of each kind at a time
    for pair in zip(apart + [-1] * MAX_PAIRS, together + [-1] * MAX_PAIRS, strict=False):
        for each in pair:
            if each >= 0 and len(items) < MAX_MAP_ITEMS - 1:
                items |= {int(first[each]): None, int(second[each]): None}
    shown = np.array(sorted(items), dtype=np.int64)
    shown = shown[_substitutes_adjacent(lift[np.ix_(shown, shown)])]

    def pairs(chosen: list[Any]) -> list[schemas.Pair]:
        places = [(first[each], second[each]) for each in chosen]
        return [schemas.Pair(one=labels[likely[i]], other=labels[likely[j]], lift=lift[i, j]) for i, j in places]

    names = [labels[likely[each]] for each in shown]
    lifts = schemas.LiftMap(items=names, lift=lift[np.ix_(shown, shown)].tolist())
    return {"substitutes": pairs(apart), "complements": pairs(together), "map": lifts}


def _substitutes_adjacent(lift: Floats) -> Ints:
    """Return an order of items in which substitutes are neighbours, by hierarchical clustering."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(lift) < 3:
        return np.arange(len(lift))
    distance = np.minimum(np.maximum(lift, 0), 4)
    np.fill_diagonal(distance, 0)
    distance = (distance + distance.T) / 2
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

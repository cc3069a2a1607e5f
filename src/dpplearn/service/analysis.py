"""What an analyst looks at: segments, items that stand in for each other or go together, calibration, baselines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.models.mixture import Mixture
from dpplearn.models.relations import pair_table
from dpplearn.service.about import kind
from dpplearn.service.answers import LIKES, Json, figure
from dpplearn.service.shelves import PreparedShelf, ServedModel
from dpplearn.tools.manifest import strict

LOOKED_AT = 200  # items, the likeliest
ON_MAP = 24  # items of the map, those of the strongest pairs
PAIRS = 12  # named of each kind
FEWEST = 5  # meetings, had or expected by chance, of a pair that is named
BINS = 10
MEASURES = ("log_likelihood", "independent", "gain", "percentile_rank")


def analysis_of_shelf(now: PreparedShelf) -> Json:
    return {"version": now.version, "models": [_fares(each) for each in now.models.values()]}


def _fares(served: ServedModel) -> Json:
    """What fit-all measured or, where that is not there, what is known of learning."""
    learned, result = served.model.learned, served.about.get("result")
    about = {
        "name": served.name,
        "title": served.category.name,
        "kind": kind(served),
        "n_items": len(served.model.items),
    }
    if isinstance(result, Mapping):
        figures = {name: result.get(name) for name in (*MEASURES, "on", "n_baskets", "baselines")}
        return {**about, **strict(figures)}
    model, alone = learned.log_likelihood, learned.independent_log_likelihood
    gain = None if model is None or alone is None else model - alone
    figures = {"log_likelihood": model, "independent": alone, "gain": gain, "percentile_rank": None}
    return {**about, **strict(figures), "on": "train", "n_baskets": learned.n_baskets, "baselines": None}


def analysis_of_model(served: ServedModel) -> Json:
    marginals = served.model.marginals()
    likely = np.sort(np.argsort(-marginals, kind="stable")[:LOOKED_AT])
    likely = likely[marginals[likely] > 0]
    p, meet = marginals[likely], pair_table(served.model.distribution, likely, likely)
    return {
        "model": served.name,
        "version": served.version,
        "title": served.category.name,
        "segments": _segments(served),
        **_map(served, likely, p, meet.lift),
        "calibration": _calibration(served, likely, meet.both / p[:, None]),
    }


def _segments(served: ServedModel) -> list[Json]:
    if not isinstance(served.model, Mixture):
        return []
    return [
        {
            "share": each.weight,
            "expected_size": each.expected_size,
            "likes": [{"item": item, "ratio": figure(ratio)} for item, ratio in each.likes],
        }
        for each in served.model.segments(LIKES)
    ]


def _map(served: ServedModel, likely: Ints, p: Floats, lift: Floats) -> Json:
    """The strongest pairs of each kind, and the lifts among their items, alike ones side by side."""
    labels, training = served.model.items, served.model.training
    n = training.weight if training is not None else np.inf
    first, second = np.triu_indices(len(likely), 1)
    strength = np.log(np.maximum(lift[first, second], 1e-6))
    enough = n * p[first] * p[second] * np.maximum(lift[first, second], 1) >= FEWEST
    order = np.argsort(strength, kind="stable")
    order = order[enough[order]]
    apart = [each for each in order[:PAIRS] if strength[each] < 0]
    together = [each for each in order[::-1][:PAIRS] if strength[each] > 0]
    nodes: dict[int, None] = {}
    for one, other in zip(apart + [-1] * PAIRS, together + [-1] * PAIRS, strict=False):
        for each in (one, other):
            if each >= 0 and len(nodes) < ON_MAP - 1:
                nodes |= {int(first[each]): None, int(second[each]): None}
    shown = np.array(sorted(nodes), dtype=np.int64)
    shown = shown[_side_by_side(lift[np.ix_(shown, shown)])]

    def named(chosen: list[Any]) -> list[Json]:
        return [
            {
                "one": labels[likely[first[each]]],
                "other": labels[likely[second[each]]],
                "lift": figure(float(lift[first[each], second[each]])),
            }
            for each in chosen
        ]

    return {
        "substitutes": named(apart),
        "complements": named(together),
        "map": {
            "items": [labels[likely[each]] for each in shown],
            "lift": [[figure(value) for value in row] for row in lift[np.ix_(shown, shown)].tolist()],
        },
    }


def _side_by_side(lift: Floats) -> Ints:
    """An order in which items that are kept apart from each other are neighbours."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(lift) < 3:
        return np.arange(len(lift))
    distance = np.minimum(np.maximum(lift, 0), 4)
    np.fill_diagonal(distance, 0)
    distance = (distance + distance.T) / 2
    return np.asarray(leaves_list(linkage(squareform(distance, checks=False), "average")), dtype=np.int64)


def _calibration(served: ServedModel, likely: Ints, predicted: Floats) -> Json | None:
    """Predicted against observed, of fit-all on baskets to test on if it has them; else P(j given i) of every two items
    on the baskets learned from."""
    result = served.about.get("result")
    stored = result.get("calibration") if isinstance(result, Mapping) else None
    if isinstance(stored, Mapping) and isinstance(stored.get("rows"), list):
        found: Json = strict({"on": result.get("on", "test"), **stored}) if isinstance(result, Mapping) else {}
        return found
    training = served.model.training
    if training is None:
        return None
    given = np.repeat(training.item_weights[likely][:, None], len(likely), axis=1)
    met = training.pair_counts_among(likely)
    off = ~np.eye(len(likely), dtype=bool) & (given > 0)
    order = np.argsort(predicted[off], kind="stable")
    said, weight, came = predicted[off][order], given[off][order], met[off][order]
    rows = []
    for part in np.array_split(np.arange(len(said)), BINS):
        if len(part) and weight[part].sum() > 0:
            total = float(weight[part].sum())
            rows.append(
                {
                    "predicted": float(said[part] @ weight[part]) / total,
                    "observed": float(came[part].sum()) / total,
                    "weight": total,
                }
            )
    return {"on": "train", "rows": rows}

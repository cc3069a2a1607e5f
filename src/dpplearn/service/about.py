"""What is served: the list of models, one of them, and its items."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from dpplearn.models.mixture import Mixture
from dpplearn.service.answers import Json, figure
from dpplearn.service.logs import utc
from dpplearn.service.shelves import PreparedShelf, ServedModel


def listed(now: PreparedShelf) -> Json:
    models = [
        {
            "name": each.name,
            "title": each.category.name,
            "version": each.version,
            "kind": kind(each),
            "n_items": len(each.model.items),
        }
        for each in now.models.values()
    ]
    return {
        "version": now.version,
        "versions": now.served.versions,
        "models": models,
        "broken": list(now.served.broken),
    }


def kind(served: ServedModel) -> str:
    return "mixture" if isinstance(served.model, Mixture) else "dpp"


def about_model(served: ServedModel) -> Json:
    model, learned = served.model, served.model.learned
    return {
        "name": served.name,
        "version": served.version,
        "title": served.category.name,
        "kind": kind(served),
        "n_items": len(model.items),
        "n_segments": model.n_segments if isinstance(model, Mixture) else 1,
        "expected_size": figure(model.expected_size),
        "share": served.category.share,
        "learned_from": learned.n_baskets or 0,
        "learner": learned.learner or "",
        "modified": utc(served.modified),
        "loaded": utc(served.loaded),
        "old": served.category.old and "it could not be learned again; the log of fit-all says why",
    }


def catalogue_items(served: ServedModel, search: str, limit: int) -> Json:
    words = search.lower().split()
    marginals: Any = served.model.marginals()
    order = np.argsort(-marginals, kind="stable")
    labels = served.model.items
    found = (i for i in order.tolist() if all(word in str(labels[i]).lower() for word in words))
    items = [{"item": labels[i], "probability": figure(float(marginals[i]))} for i in islice(found, limit)]
    return {"model": served.name, "version": served.version, "items": items, "n_items": len(labels)}

"""An evaluation as a long table: one row per basket and model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpplearn.data.writing import result_table

if TYPE_CHECKING:
    from dpplearn.evaluation.result import Evaluation


# The columns of `by_basket`: time is optional, and the measures depend on the models and on k.
COLUMNS = re.compile(r"basket,weight,(time,)?model(,(log_likelihood|percentile_rank|auc|(recall|ndcg)@\d+))+")
SCORE_TABLE = result_table("a table of scores", lambda columns: bool(COLUMNS.fullmatch(",".join(columns))))


def by_basket(found: Evaluation) -> dict[str, npt.NDArray[Any]]:
    """Columns by name: what the basket is, which model, and what was measured of all models."""
    n = len(found.weights)
    rows = np.arange(n) if found.rows is None else found.rows
    columns = {
        "basket": rows if found.ids is None else found.ids,
        "weight": found.weights,
        **({} if found.times is None else {"time": found.times}),
    }
    of_models = [found.outcomes[name] for name in found.models]
    shared = [measure for measure in of_models[0] if all(measure in each for each in of_models)]
    return {
        **{name: np.tile(each, len(of_models)) for name, each in columns.items()},
        "model": np.repeat(np.array(found.models, dtype=object), n),
        **{measure: np.concatenate([each[measure] for each in of_models]) for measure in shared},
    }

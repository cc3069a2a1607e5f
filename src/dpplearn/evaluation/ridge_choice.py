"""How strong the ridge of EASE is: what ranks best on training baskets set aside."""

from __future__ import annotations

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.evaluation.baselines import MOST_IN_EASE, ease_of
from dpplearn.evaluation.metrics import weighted_mean
from dpplearn.evaluation.outcomes import ask, ranking
from dpplearn.models.training import Training

RIDGES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)  # per training basket; of those as good, the strongest
OF_MANY = (0.01, 0.003, 0.001)  # items, as each takes seconds
ASIDE = 0.2
FEWEST, MOST = 10, 2000  # baskets set aside out of which an item is ranked


def chosen_ridge(train: Baskets, rng: np.random.Generator) -> float | None:
    """By the mean percentile rank of an item held out of a fifth of the baskets; None where those are too few."""
    if train.n_units * ASIDE < FEWEST:
        return None
    kept, aside = train.split(1 - ASIDE, rng)
    if len(aside) > MOST:
        aside = aside.subset(np.sort(rng.choice(len(aside), MOST, replace=False)))
    questions = ask(aside, rng)
    if len(questions.ranked) < FEWEST:
        return None
    training, weights = Training.of(kept), aside.weights[questions.ranked]
    ridges = RIDGES if train.n_items <= MOST_IN_EASE else OF_MANY
    places = (ranking(ease_of(training, ridge), questions)[0].percentile() for ridge in ridges)
    return ridges[int(np.argmax([weighted_mean(place, weights) for place in places]))]

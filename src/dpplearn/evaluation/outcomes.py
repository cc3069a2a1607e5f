"""What models and baselines make of test baskets: one outcome per basket, the same questions for all.

The item held out of a basket is drawn at random from its items, and the sets that a basket is compared with are drawn
at random from all sets of its size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.data.baskets import Baskets
from dpplearn.evaluation.baselines import Predictor
from dpplearn.evaluation.calibration import LARGE, PairSums, SizeSums, items_given, pair_sums, size_sums
from dpplearn.evaluation.metrics import Ranks, ranks, share_beaten

RANDOM_SETS = 10  # that a basket is compared with
MOST_ASKED = 20_000  # baskets that are ranked, and that are compared with random sets
MOST_OF_MANY = 2000  # of a large catalogue

LOG_LIKELIHOOD, PERCENTILE_RANK, AUC = "log_likelihood", "percentile_rank", "auc"


@dataclass(frozen=True)
class Questions:
    """What every model is asked about the baskets."""

    baskets: Baskets
    ranked: Ints  # (n_ranked,) which baskets an item is held out of
    held: Ints  # (n_ranked,) that item
    partial: tuple[Ints, ...]  # the different partial baskets that are left
    of_partial: tuple[Ints, ...]  # for each of them, where in `ranked` it came up
    compared: Ints  # (n_compared,) which baskets are compared with random sets
    opponents: Baskets  # RANDOM_SETS after another for each of them
    given: Ints  # items that others are predicted from, one at a time


@dataclass(frozen=True)
class Outcomes:
    """How one model or baseline did. One value per basket in every column, NaN where there is none."""

    columns: Mapping[str, Floats]
    unranked: Ints  # the baskets whose partial basket it holds impossible, so that all candidates are tied
    pairs: PairSums | None
    sizes: SizeSums | None


def ask(baskets: Baskets, rng: np.random.Generator) -> Questions:
    most = MOST_ASKED if baskets.n_items <= LARGE else MOST_OF_MANY
    ranked = _some(can_be_ranked(baskets), most, rng)
    held_at = baskets.offsets[ranked] + rng.integers(baskets.sizes[ranked])
    places: dict[bytes, list[int]] = {}
    for place, (row, at) in enumerate(zip(ranked, held_at, strict=True)):
        first, last = baskets.offsets[row : row + 2]
        rest = np.concatenate([baskets.indices[first:at], baskets.indices[at + 1 : last]])
        places.setdefault(rest.tobytes(), []).append(place)
    compared = _some((baskets.sizes >= 1) & (baskets.sizes < baskets.n_items), most, rng)
    return Questions(
        baskets,
        ranked,
        baskets.indices[held_at].astype(np.int64),
        tuple(np.frombuffer(key, np.int32).astype(np.int64) for key in places),
        tuple(np.array(each) for each in places.values()),
        compared,
        _opponents(baskets, compared, rng),
        items_given(baskets, rng),
    )


def can_be_ranked(baskets: Baskets) -> Bools:
    """Baskets that still have items when one is held out, and leave others in the catalogue to rank it among."""
    return (baskets.sizes >= 2) & (baskets.sizes < baskets.n_items)


def _some(wanted: Bools, most: int, rng: np.random.Generator) -> Ints:
    rows = np.flatnonzero(wanted)
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def _opponents(baskets: Baskets, compared: Ints, rng: np.random.Generator) -> Baskets:
    """Random sets of the same sizes."""
    sizes = np.repeat(baskets.sizes[compared], RANDOM_SETS)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    indices = np.empty(offsets[-1], np.int32)
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)
        indices[offsets[rows][:, None] + np.arange(size)] = np.sort(random_sets(baskets.n_items, size, len(rows), rng))
    return Baskets(indices, offsets, np.ones(len(sizes)), baskets.catalogue)


def random_sets(n_items: int, size: int, n: int, rng: np.random.Generator) -> Ints:
    """n sets, every set of that size being equally likely. [BF87]"""
    sets = np.empty((n, size), np.int64)
    for place, last in enumerate(range(n_items - size, n_items)):
        drawn = rng.integers(last + 1, size=n)
        taken = (sets[:, :place] == drawn[:, None]).any(axis=1)
        sets[:, place] = np.where(taken, last, drawn)
    return sets


def outcomes(
    predictor: Predictor, questions: Questions, ks: Sequence[int], advance: Callable[[], None] = lambda: None
) -> Outcomes:
    """`advance` is called after every partial basket."""
    baskets = questions.baskets
    place, unranked = ranking(predictor, questions, advance)
    found = {PERCENTILE_RANK: place.percentile()}
    found |= {f"recall@{k}": place.recall(k) for k in ks} | {f"ndcg@{k}": place.ndcg(k) for k in ks}
    columns = {name: _spread(column, questions.ranked, len(baskets)) for name, column in found.items()}
    log_prob = predictor.log_prob(baskets)
    if log_prob is not None:
        columns = {LOG_LIKELIHOOD: log_prob, **columns, AUC: _auc(predictor, questions)}
    given, distribution = predictor.pair_probabilities, predictor.distribution
    pairs = None if given is None else pair_sums(given(questions.given), baskets, questions.given)
    return Outcomes(columns, unranked, pairs, None if distribution is None else size_sums(distribution, baskets))


def ranking(
    predictor: Predictor, questions: Questions, advance: Callable[[], None] = lambda: None
) -> tuple[Ranks, Ints]:
    """The ranks of the items held out, and the baskets whose partial basket is impossible."""
    found = np.zeros((3, len(questions.ranked)), np.int64)
    impossible: list[Ints] = [np.zeros(0, np.int64)]
    candidate = np.ones(questions.baskets.n_items, bool)
    for partial, places in zip(questions.partial, questions.of_partial, strict=True):
        scores = predictor.scores(partial)
        if np.isnan(scores).all():
            impossible.append(questions.ranked[places])
        candidate[partial] = False
        here = ranks(scores, candidate, questions.held[places])
        candidate[partial] = True
        found[:, places] = here.above, here.tied, here.candidates
        advance()
    return Ranks(*found), np.sort(np.concatenate(impossible))


def _auc(predictor: Predictor, questions: Questions) -> Floats:
    true = predictor.log_prob(questions.baskets.subset(questions.compared))
    others = predictor.log_prob(questions.opponents)
    assert true is not None
    assert others is not None
    shares = share_beaten(true, others.reshape(len(true), RANDOM_SETS))
    return _spread(shares, questions.compared, len(questions.baskets))


def _spread(values: Floats, rows: Ints, n: int) -> Floats:
    """The values at their baskets, NaN at the others."""
    column = np.full(n, np.nan)
    column[rows] = values
    return column

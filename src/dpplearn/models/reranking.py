"""Choice of k candidates of another recommender, by its scores and by the interactions of a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import zip_longest
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.unknown import known_items
from dpplearn.distributions.components import Similarity
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.interaction import similarity_of
from dpplearn.errors import InputError, whole_number
from dpplearn.utils.text import count

if TYPE_CHECKING:
    from dpplearn.models.slates import SlatesFit

MIN_LEFT = 1e-10  # smaller Schur complements are rounding, and the set impossible
MIN_LOG = -1e300  # the logarithm of a score of 0, so that such items come last, in their order
MAX_NUMBERS = 4_000_000  # held at a time

# From candidates (n_users, n) to weights of components, (m,), and their similarity matrices S_c with a unit diagonal.
Interaction = Callable[[Ints], tuple[Floats, Similarity]]


def reranked(
    distribution: SetDistribution,
    catalogue: Catalogue,
    items: Any,
    scores: Any,
    k: int,
    strength: float | SlatesFit,
    log: bool,
    unknown: str,
) -> list[Label] | list[list[Label]]:
    """Return the chosen candidates of one user, or of each of many, as `SetModel.rerank` describes."""
    if isinstance(items, Set | Mapping) or not isinstance(items, Iterable):
        raise InputError(f"items must be a list of candidates in the order of scores, got {type(items).__name__}")
    items = items if isinstance(items, str | bytes) else list(items)
    many = not len(items) or not isinstance(items[0], Label | np.integer)
    lists, values = (items, scores) if many else ([items], [scores])
    if isinstance(strength, Real):
        users = _users(catalogue, lists, values, log, unknown)
        found = _chosen(distribution.similarity, catalogue, users, k, _strength(strength))
    else:
        found = _by_slates(distribution, catalogue, lists, values, k, strength, log, unknown)
    return found if many else found[0]


def _by_slates(
    distribution: SetDistribution,
    catalogue: Catalogue,
    items: Sequence[Any],
    scores: Any,
    k: int,
    fit: Any,
    log: bool,
    unknown: str,
) -> list[list[Label]]:
    if not hasattr(fit, "slope"):
        _strength(fit)
    if fit.similarity is not None:
        raise InputError(
            "these slates were fitted with a similarity of their own; use fit.rerank, or fit_slates(slates, model)"
        )
    if log:
        raise InputError("log=True is not valid with fitted slates: scores are of the kind that the slates have")
    return tuned_reranked(fit, distribution.similarity, catalogue, items, scores, k, unknown)


def tuned_reranked(
    fit: SlatesFit,
    base: Interaction | None,
    catalogue: Catalogue,
    items: Sequence[Any],
    scores: Any,
    k: int,
    unknown: str,
) -> list[list[Label]]:
    """Return the choice by the parameters of fitted slates: Σ slope · score + log det S_Y."""
    if base is None:
        raise InputError("these slates were fitted with a model; use model.rerank(..., strength=fit)")
    users = _users(catalogue, items, scores, True, unknown)
    by_slope = []
    for positions, values in users:
        worth = fit.slope.value * values
        order = np.argsort(-worth, kind="stable")
        by_slope.append((positions[order], worth[order]))
    return _chosen(fit.tuned(base), catalogue, by_slope, k, 1.0)


def _users(
    catalogue: Catalogue, items: Sequence[Any], scores: Any, log: bool, unknown: str
) -> list[tuple[Ints, Floats]]:
    users = []
    for number, (each, theirs) in enumerate(zip_longest(items, scores)):
        try:
            users.append(_by_score(catalogue, each, theirs, log, unknown))
        except InputError as error:
            raise InputError(f"user {number}: {error}" if len(items) > 1 else str(error)) from None
    return users


def _chosen(
    interaction: Interaction, catalogue: Catalogue, users: list[tuple[Ints, Floats]], k: int, strength: float
) -> list[list[Label]]:
    k = whole_number("k", k, 0)
    most = max((len(positions) for positions, _ in users), default=0)
    positions, worth = np.zeros((len(users), most), np.int64), np.full((len(users), most), -np.inf)
    for row, (some, values) in enumerate(users):
        positions[row, : len(some)], worth[row, : len(some)] = some, values
    places = greedy_by_score(interaction, positions, worth, min(k, most), strength)
    taken = np.take_along_axis(positions, np.maximum(places, 0), axis=1).tolist()
    labels, lengths = catalogue.labels, (places >= 0).sum(axis=1).tolist()
    return [[labels[position] for position in row[:n]] for row, n in zip(taken, lengths, strict=True)]


def _strength(strength: Any) -> float:
    if isinstance(strength, bool) or not isinstance(strength, Real) or not 0 <= float(strength) < math.inf:
        raise InputError(f"strength must be a nonnegative number or the result of fit_slates, got {strength!r}")
    return float(strength)


def _by_score(catalogue: Catalogue, items: Any, scores: Any, log: bool, unknown: str) -> tuple[Ints, Floats]:
    """The candidates of one user by position, the highest score first, and the logarithms of their qualities."""
    if items is None or scores is None:
        raise InputError(f"there are {'scores but no items' if items is None else 'items but no scores'}")
    items = list(items) if not isinstance(items, str | bytes) else items
    values = _checked(scores, len(items), log)
    known, left_out = known_items(items, catalogue, unknown)
    if left_out:
        values = values[[item in catalogue for item in items]]
    positions, order = catalogue.positions(known), np.argsort(-values, kind="stable")
    values = values[order]
    with np.errstate(divide="ignore"):
        worth = values if log else np.log(values)
    return positions[order], np.maximum(worth, MIN_LOG)


def _checked(scores: Any, n: int, log: bool) -> Floats:
    try:
        values = np.asarray(scores, dtype=float)
    except (TypeError, ValueError):
        raise InputError("scores are not numbers; expected one number per item") from None
    if values.shape != (n,):
        has = count(len(values), "score") if values.ndim == 1 else f"scores of shape {values.shape}"
        raise InputError(f"there are {has} for {count(n, 'item')}; expected one for each")
    if np.isnan(values).any() or (values == math.inf).any():
        raise InputError(f"score {np.flatnonzero(~(values < math.inf))[0]} is not a finite number; leave its item out")
    if not log and (values < 0).any():
        raise InputError(
            f"scores reach down to {values.min():g}; expected 0 or more, such as probabilities, or log=True for scores "
            "of which differences count, such as logits"
        )
    return values


def tuned(base: Interaction, strength: float, reach: float) -> Interaction:
    """Return the interaction (1 − α) I + α exp(−(1 − s)/ρ²), with s the symmetric part of S averaged over components.

    s are products of unit vectors and 2 (1 − s) their squared distances, so it is positive semidefinite for a strength
    α from 0 to 1 and any reach ρ. [WRBCJG18]
    """

    def interaction(items: Ints) -> tuple[Floats, Similarity]:
        (weights, similarity), users = base(items), np.arange(len(items))

        def rows_and_columns(chosen: Ints) -> tuple[Floats, Floats]:
            alike = average_similarity(weights, *similarity(chosen))
            row = strength * np.exp((alike - 1) / reach**2)
            row[users, chosen] = 1
            return row[None], row[None]

        return np.ones(1), rows_and_columns

    return interaction


def of_matrix(S: Floats) -> Interaction:
    """Return the interaction of a similarity matrix."""
    return lambda items: (np.ones(1), similarity_of(S[None], items))


def average_similarity(weights: Floats, row: Floats, column: Floats) -> Floats:
    """Return the similarity of one candidate of each user to all of them, (n_users, n)."""
    return np.asarray(np.einsum("m,mun->un", weights / weights.sum(), (row + column) / 2))


def similarities_among(interaction: Interaction, items: Ints) -> Floats:
    """Return the similarity of every two candidates of each user, (n_users, n, n)."""
    (weights, similarity), users = interaction(items), np.arange(len(items))
    n = items.shape[1]
    found = np.empty((len(items), n, n))
    for place in range(n):
        found[:, place] = average_similarity(weights, *similarity(np.full(len(items), place)))
        found[users, place, place] = 1
    return np.minimum(found, 1)


def greedy_by_score(interaction: Interaction, items: Ints, log_scores: Floats, k: int, strength: float) -> Ints:
    """Return places of k candidates of each user, (n_users, k), −1 where there are no more.

    Each step adds the first candidate with the largest Σ log score + strength · log Σ_c w_c det (S_c)_Y. Candidates
    with a log score of −inf are not taken. [CZZ18, WRBCJG18]
    """
    found = np.full((len(items), k), -1)
    k = min(k, items.shape[1])
    if not found.size:
        return found
    m = len(interaction(items[:1])[0])
    at_once = max(MAX_NUMBERS // max(m * k * items.shape[1], 1), 1)
    for first in range(0, len(items), at_once):
        part = slice(first, first + at_once)
        found[part, :k] = _grown(interaction, items[part], log_scores[part], k, strength)
    return found


def _grown(interaction: Interaction, items: Ints, log_scores: Floats, k: int, strength: float) -> Ints:
    """With l_t and u_t the columns and rows of elimination, the Schur complement of item j is 1 − Σ_t l_t(j) u_t(j)."""
    (weights, similarity), users = interaction(items), np.arange(len(items))
    m = len(weights)
    found, log_scores, left = np.full((len(items), k), -1), log_scores.copy(), np.ones((m, *items.shape))
    lower, upper = np.empty((2, m, len(items), k, items.shape[1]))
    share = np.repeat(weights[:, None], len(items), axis=1)
    for t in range(k):
        gain = np.einsum("mu,mun->un", share, left)
        best = np.argmax(log_scores + strength * np.log(np.maximum(gain, MIN_LEFT)), axis=1)
        found[:, t] = np.where(log_scores[users, best] > -np.inf, best, -1)
        log_scores[users, best] = -np.inf
        pivot = np.maximum(left[:, users, best], MIN_LEFT)  # (m, n_users)
        row, column = similarity(best)
        row = row - np.einsum("umt,mutn->mun", lower[:, users, :t, best], upper[:, :, :t])
        column = column - np.einsum("umt,mutn->mun", upper[:, users, :t, best], lower[:, :, :t])
        upper[:, :, t], lower[:, :, t] = row, column / pivot[:, :, None]
        left -= upper[:, :, t] * lower[:, :, t]
        share = share * pivot
        share /= share.sum(axis=0)
    return found

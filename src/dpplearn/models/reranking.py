"""Reranking: choose k candidates of another recommender by its scores and by the similarity of items."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import zip_longest
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.unknown import known_items
from dpplearn.distributions.components import Similarity
from dpplearn.distributions.interaction import similarity_of
from dpplearn.errors import InputError, whole_number
from dpplearn.utils.text import Part, TextTable, as_text, count, number, times_as_likely

LEVEL = 0.05  # of the test of repulsion
MIN_LEFT = 1e-10  # smaller Schur complements are rounding, and the set impossible
MIN_LOG = -1e300  # the logarithm of a score of 0, so that such items come last, in their order
MAX_NUMBERS = 4_000_000  # held at a time

# From candidates (n_users, n) to weights of components, (m,), and their similarity matrices S_c with a unit diagonal.
Interaction = Callable[[Ints], tuple[Floats, Similarity]]


class SlateNumber(NamedTuple):
    """A parameter with its standard error; NaN if the slates do not determine it."""

    value: float
    standard_error: float


@dataclass(frozen=True, repr=False)
class SlatesFit:
    """Parameters of the DPP L = D S D over the candidates of each slate, estimated by `fit_slates`.

    D² = exp(intercept + slope · score) and S = (1 − strength) I + strength · exp(−(1 − s)/reach²), with s the
    similarity of candidates. `shown` is the result of a likelihood-ratio test of repulsion with p-value `p`. As the
    strength of `rerank`, it reranks by these parameters, and by the scores alone if repulsion is not significant.

    Examples
    --------
    See `fit_slates`.
    """

    intercept: SlateNumber
    slope: SlateNumber
    strength: SlateNumber
    reach: SlateNumber
    log_likelihood: float  # mean per slate
    independent_log_likelihood: float  # the same without repulsion
    p: float
    n_slates: int
    n_chosen: int
    evaluations: int
    converged: bool
    catalogue: Catalogue = field(compare=False)
    similarity: Interaction | None = field(default=None, compare=False)  # None: that of a model

    @property
    def shown(self) -> bool:
        """Whether the repulsion between similar candidates is significant at the 5 % level."""
        return self.p < LEVEL

    def rerank(self, items: Sequence[Label], scores: Sequence[float], k: int = 10) -> list[Label]:
        """Choose k candidates by their scores and by the similarity that the slates were fitted with.

        Parameters
        ----------
        items : sequence of labels
            The candidates.
        scores : sequence of float
            Scores of the kind that the slates have.
        k : int, default 10
            Maximum number of items.

        Returns
        -------
        list of labels
            In the order of selection.

        Examples
        --------
        See `fit_slates`.
        """
        if self.similarity is None:
            raise InputError("these slates were fitted with a model; use model.rerank(..., strength=fit)")
        users = _users(self.catalogue, [items], [scores], self.slope.value, True, "error")
        return _chosen(self.tuned(self.similarity), self.catalogue, users, k, 1.0)[0]

    def tuned(self, base: Interaction) -> Interaction:
        """Return (1 − α) I + α exp(−(1 − s)/ρ²), with s the symmetric part of `base` averaged over components.

        s are products of unit vectors and 2 (1 − s) their squared distances, so the result is positive semidefinite for
        a strength α from 0 to 1 and any reach ρ. [WRBCJG18] α is 0 if repulsion is not significant.
        """
        strength, reach = self.strength.value if self.shown else 0.0, self.reach.value

        def interaction(items: Ints) -> tuple[Floats, Similarity]:
            (weights, similarity), users = base(items), np.arange(len(items))

            def rows_and_columns(chosen: Ints) -> tuple[Floats, Floats]:
                alike = average_similarity(weights, *similarity(chosen))
                row = strength * np.exp((alike - 1) / reach**2)
                row[users, chosen] = 1
                return row[None], row[None]

            return np.ones(1), rows_and_columns

        return interaction

    def to_dict(self) -> dict[str, Any]:
        """Return parameters, standard errors and the test as plain values."""
        numbers = {name: getattr(self, name)._asdict() for name in ("intercept", "slope", "strength", "reach")}
        names = ("log_likelihood", "independent_log_likelihood", "p", "shown", "n_slates", "n_chosen", "converged")
        return {**numbers, **{name: getattr(self, name) for name in names}}

    def tables(self) -> Iterator[Part]:
        """Yield a table of the parameters, and the test of repulsion."""
        report = self.to_dict()
        cells = [
            (name, number(report[name]["value"], 3), number(report[name]["standard_error"], 3))
            for name in ("intercept", "slope", "strength", "reach")
        ]
        title = f"Slates: {count(self.n_slates, 'slate')}, {count(self.n_chosen, 'item')} chosen"
        yield TextTable(title, "", ["parameter", "value>", "standard error>"], cells)
        gain = self.log_likelihood - self.independent_log_likelihood
        result = "significant" if self.shown else "not significant"
        yield (
            f"Repulsion between similar candidates is {result} (p {self.p:.2g}): choices are {times_as_likely(gain)} "
            f"as by scores alone ({gain:+.4f} nats per slate)."
        )

    def __repr__(self) -> str:
        return f"SlatesFit({count(self.n_slates, 'slate')}, strength {number(self.strength.value, 3)}, p {self.p:.2g})"

    def __str__(self) -> str:
        return as_text(self.tables())


def reranked(
    base: Interaction,
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
    slope = 1.0
    if isinstance(strength, SlatesFit):
        if strength.similarity is not None:
            raise InputError(
                "these slates were fitted with a similarity of their own; use fit.rerank, or fit_slates(slates, model)"
            )
        if log:
            raise InputError("log=True is not valid with fitted slates: scores are of the kind that the slates have")
        base, slope, log, strength = strength.tuned(base), strength.slope.value, True, 1.0
    elif isinstance(strength, bool) or not isinstance(strength, Real) or not 0 <= float(strength) < math.inf:
        raise InputError(f"strength must be a nonnegative number or the result of fit_slates, got {strength!r}")
    found = _chosen(base, catalogue, _users(catalogue, lists, values, slope, log, unknown), k, float(strength))
    return found if many else found[0]


def _users(
    catalogue: Catalogue, items: Sequence[Any], scores: Any, slope: float, log: bool, unknown: str
) -> list[tuple[Ints, Floats]]:
    users = []
    for user, (each, theirs) in enumerate(zip_longest(items, scores)):
        try:
            users.append(_by_score(catalogue, each, theirs, slope, log, unknown))
        except InputError as error:
            raise InputError(f"user {user}: {error}" if len(items) > 1 else str(error)) from None
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


def _by_score(
    catalogue: Catalogue, items: Any, scores: Any, slope: float, log: bool, unknown: str
) -> tuple[Ints, Floats]:
    """Return the positions of the candidates of one user, best first, and slope · log score of each."""
    if items is None or scores is None:
        raise InputError(f"there are {'scores but no items' if items is None else 'items but no scores'}")
    items = list(items) if not isinstance(items, str | bytes) else items
    values = _checked(scores, len(items), log)
    known, left_out = known_items(items, catalogue, unknown)
    if left_out:
        values = values[[item in catalogue for item in items]]
    with np.errstate(divide="ignore"):
        worth = slope * np.maximum(values if log else np.log(values), MIN_LOG)
    order = np.lexsort((-values, -worth))
    return catalogue.positions(known)[order], worth[order]


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
            "whose differences matter, such as logits"
        )
    return values


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
    """Return places of candidates by Gaussian elimination.

    With l_t and u_t the columns and rows of elimination, the Schur complement of item j is 1 − Σ_t l_t(j) u_t(j).
    """
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

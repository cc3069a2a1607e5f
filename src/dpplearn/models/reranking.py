"""Reranking: choose k candidates of another recommender by its scores and by the similarity of items."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from numbers import Real
from reprlib import repr as brief
from typing import Any, NamedTuple

import numpy as np

from dpplearn.arrays import Floats, Ints, row_slices
from dpplearn.data.catalogue import Catalogue, Label, as_list
from dpplearn.data.unknown import known_items
from dpplearn.distributions.components import Similarity
from dpplearn.distributions.interaction import similarity_of
from dpplearn.errors import InputError, whole_number
from dpplearn.utils.text import Part, Result, TextTable, count, number, times_as_likely

LEVEL = 0.05  # of the test of repulsion
MIN_LEFT = 1e-10  # smaller Schur complements are rounding, and the set impossible
MIN_LOG = -1e300  # the logarithm of a score of 0, so that such items come last, in their order
PARAMETERS = ("intercept", "slope", "strength", "reach")
MAX_NUMBERS = 4_000_000  # held at a time

# From candidates (n_users, n) to weights of components, (m,), and their similarity matrices S_c with a unit diagonal.
Interaction = Callable[[Ints], tuple[Floats, Similarity]]


class SlateNumber(NamedTuple):
    """A parameter with its standard error; NaN if the slates do not determine it."""

    value: float
    standard_error: float


@dataclass(frozen=True, repr=False)
class SlatesFit(Result):
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
        return reranked(self.similarity, self.catalogue, items, scores, k, self)

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
        values = {name: value for name, value in vars(self).items() if name not in ("catalogue", "similarity")}
        return {**values, **{name: values[name]._asdict() for name in PARAMETERS}, "shown": self.shown}

    def tables(self) -> Iterator[Part]:
        """Yield a table of the parameters, and the test of repulsion."""
        cells = [(name, *(number(value, 3) for value in getattr(self, name))) for name in PARAMETERS]
        title = f"Slates: {count(self.n_slates, 'slate')}, {count(self.n_chosen, 'item')} chosen"
        yield TextTable(title, "", ["parameter", "value>", "standard error>"], cells)
        gain = self.log_likelihood - self.independent_log_likelihood
        result = "significant" if self.shown else "not significant"
        yield (
            f"Repulsion between similar candidates is {result} (p {self.p:.2g}): choices are {times_as_likely(gain)} "
            f"as by scores alone ({gain:+.4f} nats per slate)."
        )

    def __repr__(self) -> str:
        return f"SlatesFit({count(self.n_slates, 'slate')}, strength {self.strength.value:.3f}, p {self.p:.2g})"


def reranked(
    base: Interaction,
    catalogue: Catalogue,
    items: Any,
    scores: Any,
    k: int = 10,
    strength: float | SlatesFit = 1.0,
    log: bool = False,
    unknown: str = "error",
) -> list[Any]:
    """Return the chosen candidates of one user, or of each of many, as `SetModel.rerank` describes."""
    k, slope = whole_number("k", k, 0), 1.0
    if isinstance(strength, SlatesFit):
        if log or strength.similarity not in (None, base):
            raise InputError("strength must be the result of fit_slates with this model, and log must be False with it")
        base, slope, log, strength = strength.tuned(base), strength.slope.value, True, 1.0
    elif not isinstance(strength, Real) or not 0 <= float(strength) < math.inf:
        raise InputError(f"strength must be a nonnegative number or the result of fit_slates, got {strength!r}")
    if isinstance(items, Set | Mapping):
        raise InputError(f"items must be a list of candidates in the order of scores, got {type(items).__name__}")
    items = as_list(items)
    many = not items or not isinstance(items[0], Label | np.integer)
    lists, values = (items, scores) if many else ([items], [scores])
    if not hasattr(values, "__len__") or len(values) != len(lists):
        raise InputError(f"scores must be a list of {len(lists)} lists, one per user, got {brief(scores)}")
    users = [
        _by_score(catalogue, as_list(each, f"list {user}: "), theirs, slope, log, unknown)
        for user, (each, theirs) in enumerate(zip(lists, values, strict=True))
    ]
    most = max((len(positions) for positions, _ in users), default=0)
    positions, worth = np.zeros((len(users), most), np.int64), np.full((len(users), most), -np.inf)
    for row, (some, log_scores) in enumerate(users):
        positions[row, : len(some)], worth[row, : len(some)] = some, log_scores
    places = greedy_by_score(base, positions, worth, min(k, most), float(strength))
    taken = np.take_along_axis(positions, places, axis=1)
    found = [list(catalogue.select(row[: len(some)])) for row, (some, _) in zip(taken, users, strict=True)]
    return found if many else found[0]


def _by_score(
    catalogue: Catalogue, items: list[Any], scores: Any, slope: float, log: bool, unknown: str
) -> tuple[Ints, Floats]:
    """Return the positions of the candidates of one user, best first, and slope · log score of each."""
    try:
        values = np.array(scores, dtype=float)
    except (TypeError, ValueError):
        values = np.array(math.nan)
    if values.shape != (len(items),) or not ((values < math.inf) & (log | (values >= 0))).all():
        raise InputError(f"scores must be a finite number per item, 0 or more unless log=True, got {brief(scores)}")
    known, left_out = known_items(items, catalogue, unknown)
    if left_out:
        values = values[[item in catalogue for item in items]]
    order = np.argsort(-slope * values, kind="stable")
    with np.errstate(divide="ignore"):
        worth = slope * np.maximum(values if log else np.log(values), MIN_LOG)
    return catalogue.positions(known)[order], worth[order]


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
    """Return places of k of the n candidates of each user, (n_users, k).

    Each step adds the first candidate with the largest Σ log score + strength · log Σ_c w_c det (S_c)_Y. Candidates
    with a log score of −inf come last, and may be repeated. [CZZ18, WRBCJG18]
    """
    parts = row_slices(len(items), len(interaction(items[:1])[0]) * k * items.shape[1], MAX_NUMBERS)
    found = [_grown(interaction, items[part], log_scores[part], k, strength) for part in parts]
    return np.concatenate([np.zeros((0, k), np.int64), *found])


def _grown(interaction: Interaction, items: Ints, log_scores: Floats, k: int, strength: float) -> Ints:
    """Return places of candidates by Gaussian elimination.

    With l_t and u_t the columns and rows of elimination, the Schur complement of item j is 1 − Σ_t l_t(j) u_t(j).
    """
    (weights, similarity), users = interaction(items), np.arange(len(items))
    m = len(weights)
    found, log_scores, left = np.zeros((len(items), k), np.int64), log_scores.copy(), np.ones((m, *items.shape))
    lower, upper = np.empty((2, m, len(items), k, items.shape[1]))
    share = np.repeat(weights[:, None], len(items), axis=1)
    for t in range(k):
        gain = np.einsum("mu,mun->un", share, left)
        best = np.argmax(log_scores + strength * np.log(np.maximum(gain, MIN_LEFT)), axis=1)
        found[:, t], log_scores[users, best] = best, -np.inf
        pivot = np.maximum(left[:, users, best], MIN_LEFT)  # (m, n_users)
        row, column = similarity(best)
        row = row - np.einsum("umt,mutn->mun", lower[:, users, :t, best], upper[:, :, :t])
        column = column - np.einsum("umt,mutn->mun", upper[:, users, :t, best], lower[:, :, :t])
        upper[:, :, t], lower[:, :, t] = row, column / pivot[:, :, None]
        left -= upper[:, :, t] * lower[:, :, t]
        share = share * pivot
        share /= share.sum(axis=0)
    return found

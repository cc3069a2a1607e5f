"""Another recommender's candidates, chosen by its scores and by how a law says that they interact."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import zip_longest
from numbers import Real
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats, Ints
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.data.unknown import known_items
from dpplearn.errors import InputError, whole_number
from dpplearn.kernels.interaction import LOWEST, Interaction, greedy_by_worth
from dpplearn.kernels.interface import Law
from dpplearn.models.slates import SlatesFit
from dpplearn.tools.words import count


class Reranking:
    """What a model says of the candidates of another recommender; names in, names out."""

    law: Law
    catalogue: Catalogue

    @overload
    def rerank(  # type: ignore[overload-overlap]
        self,
        items: Sequence[Label],
        scores: npt.ArrayLike,
        k: int = 10,
        strength: float | SlatesFit = 1.0,
        *,
        log: bool = False,
        unknown: str = "error",
    ) -> list[Label]: ...
    @overload
    def rerank(
        self,
        items: Sequence[Sequence[Label]] | npt.NDArray[Any],
        scores: Sequence[npt.ArrayLike] | npt.NDArray[Any],
        k: int = 10,
        strength: float | SlatesFit = 1.0,
        *,
        log: bool = False,
        unknown: str = "error",
    ) -> list[list[Label]]: ...
    def rerank(
        self,
        items: Any,
        scores: Any,
        k: int = 10,
        strength: float | SlatesFit = 1.0,
        *,
        log: bool = False,
        unknown: str = "error",
    ) -> list[Label] | list[list[Label]]:
        """Choose k of the candidates of another recommender, by its scores and by how the model says they interact.

        A greedy search for the set Y with the highest Σ log(score) + strength · log det S_Y. The scores are all that
        counts of how much an item is wanted; S, with ones on its diagonal, is how items repel and attract each other
        under the model: L_ij/√(L_ii L_jj) of a DPP, C_ij/√(C_ii C_jj) of a mixture, where L_c = D_c C D_c.

        Parameters
        ----------
        items
            The candidates of one user; or of many users, a list of them for each.
        scores
            One per candidate: 0 or more, such as probabilities. With `log`, any numbers of which differences count,
            such as logits or log-probabilities.
        k
            How many items at most.
        strength
            How much the interaction counts: 0 leaves the order of the scores, 1 is as the model has it. Or what
            `fit_slates` found with this model: scores are then as those of the slates, and `log` is left out.
        log
            Whether scores are logarithms.
        unknown
            What to do about candidates that the model does not have: "error", or "drop" to leave them out.

        Returns
        -------
        list of labels, or list of lists
            In the order they were taken, so that every beginning of it is the answer for a smaller k. The first is the
            candidate of the highest score; equals are in the order that they came in.

        Examples
        --------
        >>> import dpplearn as dl
        >>> K = [[0.5, 0.4, 0], [0.4, 0.4, 0], [0, 0, 0.3]]
        >>> dpp = dl.DPP(dl.Kernel.from_K(K), ["crib", "cot", "monitor"])
        >>> dpp.rerank(["crib", "cot", "monitor"], [0.9, 0.8, 0.5])
        ['crib', 'monitor', 'cot']
        >>> dpp.rerank([["crib", "cot"], ["cot", "monitor"]], [[0.9, 0.8], [0.2, 0.5]], k=1)
        [['crib'], ['monitor']]
        """
        if isinstance(items, Set | Mapping) or not isinstance(items, Iterable):
            raise InputError(
                f"items are a {type(items).__name__}; expected a list of candidates, in the order of scores"
            )
        items = items if isinstance(items, str | bytes) else list(items)
        many = not len(items) or not isinstance(items[0], Label | np.integer)
        found = reranked(
            self.law,
            self.catalogue,
            items if many else [items],
            scores if many else [scores],
            k,
            strength,
            log,
            unknown,
        )
        return found if many else found[0]


def reranked(
    law: Law,
    catalogue: Catalogue,
    items: Sequence[Any],
    scores: Any,
    k: int,
    strength: float | SlatesFit,
    log: bool,
    unknown: str,
) -> list[list[Label]]:
    """Of every user the candidates that are chosen, as `rerank` has it."""
    if isinstance(strength, SlatesFit):
        if strength.similarity is not None:
            raise InputError(
                "these slates were fitted with a similarity of their own; rerank by it (fit.rerank), or fit them with "
                "this model: fit_slates(slates, model)"
            )
        if log:
            raise InputError("log is True, but scores are to be as those of the slates; leave log out")
        return tuned_reranked(strength, law.interaction(), catalogue, items, scores, k, unknown)
    users = _users(catalogue, items, scores, log, unknown)
    return _chosen(law.interaction(), catalogue, users, k, _strength(strength))


def tuned_reranked(
    fit: SlatesFit,
    base: Interaction | None,
    catalogue: Catalogue,
    items: Sequence[Any],
    scores: Any,
    k: int,
    unknown: str,
) -> list[list[Label]]:
    """The same by the numbers that slates gave: Σ slope · score + log det S_Y."""
    if base is None:
        raise InputError("these slates were fitted with a model: let that rerank, model.rerank(..., strength=fit)")
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
    places = greedy_by_worth(interaction, positions, worth, min(k, most), strength)
    taken = np.take_along_axis(positions, np.maximum(places, 0), axis=1).tolist()
    labels, lengths = catalogue.labels, (places >= 0).sum(axis=1).tolist()
    return [[labels[position] for position in row[:n]] for row, n in zip(taken, lengths, strict=True)]


def _strength(strength: Any) -> float:
    if isinstance(strength, bool) or not isinstance(strength, Real) or not 0 <= float(strength) < math.inf:
        raise InputError(
            f"strength is {strength!r}; expected a number, 0 (the scores alone) or more, or what fit_slates found"
        )
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
    return positions[order], np.maximum(worth, LOWEST)


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

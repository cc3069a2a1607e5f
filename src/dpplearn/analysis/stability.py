"""How far pairs and groups of substitutes can be relied on: the model learned again from resamples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpplearn.analysis.substitutes import AT_LEAST, group_numbers
from dpplearn.arrays import Floats, Ints, Seed, read_only
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.catalogue import Label
from dpplearn.data.weights import are_counts
from dpplearn.errors import InputError, whole_number
from dpplearn.evaluation.bootstrap import MOST_RESAMPLES
from dpplearn.fitting.fit import fit
from dpplearn.learners.registry import QUALITY
from dpplearn.models.dpp import DPP

INTERVAL = (0.05, 0.95)
MOST_DRAWN = 100_000  # baskets of a resample of a model, however many it was learned from


@dataclass(frozen=True, eq=False, repr=False)
class Stability:
    """Substitution in models that were learned again, each from a resample."""

    dpp: DPP
    parametric: bool  # whether resamples were drawn from the model, and not from the baskets
    found: Floats  # (resamples, n_items, n_items)
    groups: Ints  # (resamples, n_items) the group of every item, −1 for none

    def __len__(self) -> int:
        return len(self.found)

    @cached_property
    def low(self) -> Floats:
        """What the substitution of a pair is above in 95 % of resamples."""
        return read_only(np.quantile(self.found, INTERVAL[0], axis=0))

    def interval(self, first: Label, second: Label) -> tuple[float, float]:
        """Within which the substitution of a pair is in 90 % of resamples.

        Parameters
        ----------
        first, second
            Two items.

        Returns
        -------
        float, float
            The 5 % and the 95 % quantile.

        Examples
        --------
        >>> import dpplearn as dl
        >>> baskets = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 5
        >>> found = stability(dl.fit(baskets, prior=0.1).dpp, baskets, resamples=3)
        >>> low, high = found.interval("cot", "crib")
        >>> bool(0 < low <= high <= 1)
        True
        """
        low, high = np.quantile(self._pair(first, second), INTERVAL)
        return float(low), float(high)

    def again(self, first: Label, second: Label) -> float:
        """How often a pair comes back: its substitution is at least half of what it is in the model.

        Parameters
        ----------
        first, second
            The two items of the pair.

        Returns
        -------
        float
            The share of resamples.

        Examples
        --------
        >>> import dpplearn as dl
        >>> baskets = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 5
        >>> stability(dl.fit(baskets, prior=0.1).dpp, baskets, resamples=3).again("cot", "crib")
        1.0
        """
        i, j = self.dpp.catalogue.position(first), self.dpp.catalogue.position(second)
        return float((self._pair(first, second) >= self.dpp.together.substitution[i, j] / 2).mean())

    def in_one_group(self, items: Iterable[Label]) -> float:
        """How often items are in one group again.

        Parameters
        ----------
        items
            Two or more.

        Returns
        -------
        float
            The share of resamples in which two of them are, on average over their pairs.

        Examples
        --------
        >>> import dpplearn as dl
        >>> baskets = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 5
        >>> stability(dl.fit(baskets, prior=0.1).dpp, baskets, resamples=3).in_one_group(["cot", "crib"])
        1.0
        """
        label = self.groups[:, self.dpp.catalogue.positions(items)]
        first, second = np.triu_indices(label.shape[1], 1)
        return float(((label[:, first] == label[:, second]) & (label[:, first] >= 0)).mean())

    def _pair(self, first: Label, second: Label) -> Floats:
        return self.found[:, self.dpp.catalogue.position(first), self.dpp.catalogue.position(second)]


def stability(
    dpp: DPP,
    baskets: Baskets | Iterable[Iterable[Any]] | None = None,
    resamples: int = 20,
    *,
    at_least: float = AT_LEAST,
    rng: Seed = 0,
    threads: int | None = None,
    done: Callable[[int], Any] | None = None,
) -> Stability:
    """Learn the model again from resamples, to see which pairs and groups come back.

    Parameters
    ----------
    dpp
        A model that `fit` made.
    baskets
        What it was learned from: resamples are drawn from these, with replacement. Without them as many baskets as it
        was learned from are drawn from the model itself. A pair that never meets in the baskets never meets in a
        resample of them, so that drawing from the model is the more cautious about rare items.
    resamples
        How many.
    at_least
        For groups, as in `substitute_groups`.
    rng, threads
        Seed or generator of the resamples; threads as in `fit`.
    done
        Called with 1 after every resample.

    Returns
    -------
    Stability
        The substitution of every pair, and the groups, in every resample.

    Examples
    --------
    >>> import dpplearn as dl
    >>> baskets = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 5
    >>> len(stability(dl.fit(baskets, prior=0.1).dpp, baskets, resamples=3))
    3
    """
    rng, draw = np.random.default_rng(rng), _drawn(dpp, baskets)
    resamples = whole_number("resamples", resamples, 1, MOST_RESAMPLES)
    found, groups = [], []
    for _ in range(resamples):
        again = _learned_again(dpp, draw(rng), threads)
        found.append(again.together.substitution)
        groups.append(group_numbers(found[-1], again.marginals(), at_least))
        if done is not None:
            done(1)
    return Stability(dpp, baskets is None, np.array(found), np.array(groups))


def _learned_again(dpp: DPP, baskets: Baskets, threads: int | None) -> DPP:
    """As the model was, from the model itself: what is asked is how far the data determine it, not the start."""
    found = fit(baskets, start=dpp, threads=threads, **_how(dpp))
    return found.dpp


def is_learned_again(dpp: DPP) -> bool:
    """Whether what the model keeps apart was learned, and not told to it."""
    return dpp.learned.learner != QUALITY.name


def _how(dpp: DPP) -> dict[str, Any]:
    """The options of `fit` that it was learned with."""
    how = dpp.learned
    return {"learner": how.learner or "auto", "prior": how.prior or 0.0, "nonempty": dpp.nonempty}


def _drawn(dpp: DPP, baskets: Baskets | Iterable[Iterable[Any]] | None) -> Callable[[np.random.Generator], Baskets]:
    if not isinstance(dpp, DPP):
        raise InputError(
            f"got a {type(dpp).__name__}, and a DPP alone is learned again; how sure the pairs of a mixture are, low "
            "and high of its substitutes and complements tell"
        )
    if not is_learned_again(dpp):
        raise InputError(
            "the model was told how alike items are (learner 'quality'), and would keep the same ones apart whatever "
            "the baskets: learn a model with model='dpp' alone to see which pairs come back"
        )
    if baskets is None:
        n = dpp.training.weight if dpp.training is not None else dpp.learned.weight
        if n is None:
            raise InputError(
                "the model does not tell what it was learned from; pass the baskets, or learn it again with fit"
            )
        return lambda rng: _from_model(dpp, min(round(n), MOST_DRAWN), rng)
    known = as_baskets(baskets, dpp.catalogue)
    return lambda rng: resampled(known, rng)


def resampled(baskets: Baskets, rng: np.random.Generator) -> Baskets:
    """As many, with replacement: of weights that are counts as many as they count, of others their share."""
    counts = are_counts(baskets.weights)
    weights = baskets.weights if counts else np.ones(len(baskets))
    drawn = rng.multinomial(round(weights.sum()), weights / weights.sum())
    return baskets.weighted(drawn if counts else drawn * baskets.weights)


def _from_model(dpp: DPP, n: int, rng: np.random.Generator) -> Baskets:
    sets = dpp.law.sample(max(n, 1), None, rng)
    rows = np.repeat(np.arange(len(sets)), [len(each) for each in sets])
    return Baskets.from_pairs(rows, np.concatenate(sets), len(sets), dpp.catalogue)

"""Before there is a model: what a DPP can be expected to gain from these baskets, and whether it is the right tool."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from dpplearn.analysis.cooccurrence import LEVEL, PairTests, pair_tests
from dpplearn.arrays import Seed
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.errors import InputWarning, whole_number
from dpplearn.fitting.effort import tell_if_long
from dpplearn.fitting.fit import chosen_prior, expected_effort
from dpplearn.fitting.options import FitOptions

MOST_ITEMS = 200  # looked at by default, as cross-validation takes long for more
WORTH_HAVING = 0.01  # nats per basket
COARSE = 0.1  # nats per basket: data that would not show as much tell nothing
RARE = 5  # an item in fewer baskets is rare


class Verdict(StrEnum):
    """What the diagnosis comes to."""

    REPULSION = "repulsion"  # a DPP pays
    MIXED = "mixed"  # it pays, but attraction is the larger part
    ATTRACTION = "attraction"  # it is the wrong tool
    INDEPENDENT = "independent"  # popularity is enough
    TOO_LITTLE = "too little data"


SENTENCES = {
    Verdict.REPULSION: "A DPP pays here: it makes an unseen basket {likelier} likelier than independent items do "
    "({gain} nats per basket, ± {error}). Items avoid each other by {repelling} nats per basket, summed over pairs, "
    "and go together by {attracting}.",
    Verdict.MIXED: "A DPP helps, but gets only the smaller part: it makes an unseen basket {likelier} likelier than "
    "independent items do ({gain} nats per basket, ± {error}). Items avoid each other by {repelling} nats per basket, "
    "summed over pairs, but go together by {attracting}, which a symmetric DPP cannot express; a nonsymmetric DPP or "
    "association rules could.",
    Verdict.ATTRACTION: "A symmetric DPP is the wrong tool here: items go together by {attracting} nats per basket, "
    "summed over pairs, and avoid each other by only {repelling}, and it gains nothing to speak of over independent "
    "items ({gain} nats per basket, ± {error}). A nonsymmetric DPP or association rules would fit better.",
    Verdict.INDEPENDENT: "Items look independent, and their popularity is enough: a DPP gains nothing to speak of "
    "({gain} nats per basket, ± {error}). Items avoid each other by {repelling} nats per basket, summed over pairs, "
    "and go together by {attracting}, where these data would show {resolution}.",
    Verdict.TOO_LITTLE: "There is too little data to tell. From {n} baskets a DPP does not learn to predict better "
    "than independent items do ({gain} nats per basket, ± {error}), and {why}.",
}

NO_ROOM = (
    "There is too little data to tell: pairs of items have no room to meet or to avoid each other in {n} baskets "
    "of which none holds two items, or all are alike."
)
UNLEARNED = (
    "items seem to avoid each other, by {repelling} nats per basket summed over pairs, but it takes more baskets to "
    "learn which do"
)
BLURRED = "all pairs together would have to depart from chance by {resolution} nats per basket to be told from it"


class Gain(NamedTuple):
    """What a DPP gains over independent items on baskets that it has not seen, in nats per basket.

    NaN where there are too few baskets to set any aside.
    """

    mean: float
    standard_error: float
    strength: float  # of the prior that it takes; inf where none does better than independent items

    @property
    def worth_having(self) -> bool:
        return self.mean >= WORTH_HAVING and self.mean > 2 * self.standard_error


@dataclass(frozen=True)
class Overview:
    """Sizes and sparsity."""

    n_baskets: int
    weight: float
    n_empty: int
    n_single: int  # baskets of one item, which say nothing about pairs
    mean_size: float
    median_size: float
    largest_size: int
    n_items: int
    n_looked_at: int  # items, the most frequent ones of those that occur
    share_looked_at: float  # of all that baskets hold
    n_never: int  # items that never occur
    n_rare: int  # items in fewer than five baskets
    density: float  # the share of items that a basket holds

    @classmethod
    def of(cls, baskets: Baskets, looked_at: Baskets) -> Overview:
        counted = baskets.weights > 0
        sizes, weights = baskets.sizes[counted], baskets.weights[counted]
        held = baskets.frequencies() * baskets.total_weight
        return cls(
            n_baskets=len(sizes),
            weight=baskets.total_weight,
            n_empty=int((sizes == 0).sum()),
            n_single=int((sizes == 1).sum()),
            mean_size=float(np.average(sizes, weights=weights)),
            median_size=float(np.median(sizes)),
            largest_size=int(sizes.max()),
            n_items=baskets.n_items,
            n_looked_at=looked_at.n_items,
            share_looked_at=float(looked_at.frequencies().sum() / baskets.frequencies().sum()) if held.any() else 1.0,
            n_never=int((held == 0).sum()),
            n_rare=int(((held > 0) & (held < RARE)).sum()),
            density=float(np.average(sizes, weights=weights)) / baskets.n_items,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """What baskets say about whether a DPP suits them."""

    overview: Overview
    pairs: PairTests
    gain: Gain

    @property
    def resolution(self) -> float:
        """How far pairs must depart from chance, in nats per basket, to be told from it: two standard errors."""
        return float(2 * np.hypot(self.pairs.repelling.standard_error, self.pairs.attracting.standard_error))

    @property
    def attraction_dominates(self) -> bool:
        repelling, attracting = self.pairs.repelling, self.pairs.attracting
        return attracting.clear and attracting.nats > repelling.nats

    @property
    def _no_room(self) -> bool:
        return self.resolution == 0 or self.overview.largest_size < 2

    @property
    def _unlearned(self) -> bool:
        """Whether repulsion is there that a DPP could learn, if there were more of it."""
        return self.pairs.repelling.clear and self.pairs.repelling.nats >= 2 * WORTH_HAVING

    @property
    def verdict(self) -> Verdict:
        pays, attracts = self.gain.worth_having, self.attraction_dominates
        blurred = self.resolution > COARSE
        cases = (
            (Verdict.TOO_LITTLE, self._no_room),
            (Verdict.MIXED, pays and attracts),
            (Verdict.REPULSION, pays),
            (Verdict.ATTRACTION, attracts),
            (Verdict.TOO_LITTLE, blurred or self._unlearned),
        )
        return next((verdict for verdict, holds in cases if holds), Verdict.INDEPENDENT)

    @property
    def sentence(self) -> str:
        """The verdict in plain words, with the numbers it rests on."""
        gain, pairs = self.gain, self.pairs
        why = UNLEARNED if self._unlearned else BLURRED
        numbers = {
            "likelier": _likelier(gain.mean),
            "gain": _nats(gain.mean),
            "error": _nats(2 * gain.standard_error),
            "repelling": _nats(max(pairs.repelling.nats, 0)),
            "attracting": _nats(max(pairs.attracting.nats, 0)),
            "resolution": _nats(self.resolution),
            "n": f"{self.overview.weight:,.6g}",
        }
        if self._no_room:
            return NO_ROOM.format(**numbers)
        return SENTENCES[self.verdict].format(**numbers, why=why.format(**numbers))

    def __str__(self) -> str:
        data, pairs = self.overview, self.pairs
        return "\n".join(
            [
                f"Diagnosis: {data.n_baskets:,} baskets of {data.n_items:,} items, {data.mean_size:.2f} per basket",
                f"  of {len(pairs):,} pairs, {pairs.repels.sum():,} repel and {pairs.attracts.sum():,} attract",
                f"  {self.sentence}",
            ]
        )


def diagnose(
    baskets: Baskets | Iterable[Iterable[Any]],
    *,
    most_items: int = MOST_ITEMS,
    level: float = LEVEL,
    rng: Seed = 0,
    threads: int | None = None,
    progress: bool = False,
) -> Diagnosis:
    """Whether a DPP suits these baskets: pairs of items against chance, and what it gains on unseen baskets.

    Parameters
    ----------
    baskets
        `Baskets`, or a list of lists as `Baskets.from_lists` takes it.
    most_items
        With more items than this, only those that occur most often are looked at.
    level
        Of the pairs called repelling or attracting, the share that may be by mistake.
    rng
        Seed or generator of the parts for cross-validation.
    threads, progress
        As in `fit`.

    Returns
    -------
    Diagnosis
        What the data hold, pairs against chance, the gain, and a verdict in words. Printed, it is a summary.

    Examples
    --------
    >>> baskets = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 30
    >>> found = diagnose(baskets)
    >>> found.verdict.value
    'repulsion'
    >>> pair = found.pairs.strongest(found.pairs.repels, 1)[0]
    >>> pair.first, pair.second
    ('cot', 'crib')
    """
    baskets = as_baskets(baskets)
    looked_at = most_frequent(baskets, most_items)
    effort = expected_effort(looked_at, prior="auto", threads=threads)
    tell_if_long(effort, "this diagnosis", "fewer items (most_items, --most-items) take less")
    pairs = pair_tests(looked_at, level)
    gain = measured_gain(looked_at, rng, nonempty=pairs.nonempty, threads=threads, progress=progress)
    return Diagnosis(Overview.of(baskets, looked_at), pairs, gain)


def measured_gain(
    baskets: Baskets, rng: Seed = 0, *, nonempty: bool, threads: int | None = None, progress: bool = False
) -> Gain:
    """By cross-validation, with the strength of the prior that it chooses: that which `fit` would choose.

    With `nonempty` both the DPP and independent items are taken given that a basket is not empty: else much of the gain
    would be that a DPP can say so.
    """
    options = FitOptions(prior="auto", nonempty=nonempty, threads=threads, progress=progress)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # where no pair repels, that is for the verdict to say
        choice = chosen_prior(options, baskets, rng)
    return Gain(*choice.gain, choice.strength)


def most_frequent(baskets: Baskets, most_items: int) -> Baskets:
    """The baskets with no other items than the most frequent ones that occur, in the order of the catalogue."""
    frequency = baskets.frequencies()
    kept = np.argsort(-frequency, kind="stable")[: whole_number("most_items", most_items, 2)]
    kept = np.sort(kept[(frequency[kept] > 0) | (kept == kept[0])])  # a catalogue cannot be empty
    place = np.full(baskets.n_items, -1)
    place[kept] = np.arange(len(kept))
    rows = np.repeat(np.arange(len(baskets)), baskets.sizes)
    inside = place[baskets.indices] >= 0
    catalogue = Catalogue.of(baskets.catalogue.select(kept))
    return Baskets.from_pairs(rows[inside], place[baskets.indices[inside]], len(baskets), catalogue, baskets.weights)


def _nats(value: float) -> str:
    return "unknown" if np.isnan(value) else f"{value:.3f}"


def _likelier(gain: float) -> str:
    factor = float(np.exp(gain))
    return f"{100 * (factor - 1):.1f}%" if factor < 2 else f"{factor:.1f} times"

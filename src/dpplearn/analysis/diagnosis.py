"""Before there is a model: how items of these baskets repel and attract and what kinds of people there are, and what
that is worth in prediction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from dpplearn.analysis.bounds import Bounds, bounds
from dpplearn.analysis.cooccurrence import LEVEL, Pair, PairTests, pair_tests
from dpplearn.analysis.gains import (
    CASES,
    INDEPENDENT,
    MIXTURE,
    NONSYMMETRIC,
    SEGMENTS,
    SYMMETRIC,
    Gain,
    Unseen,
    check_gains_memory,
    predicted,
)
from dpplearn.analysis.similarity import LiftBySimilarity, lift_by_similarity
from dpplearn.analysis.substitutes import AT_LEAST, SubstituteGroup, substitute_groups
from dpplearn.arrays import Seed
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.errors import whole_number
from dpplearn.learners.fit import fit_dpp
from dpplearn.models.dpp import DPP
from dpplearn.models.independence import WORTH_HAVING
from dpplearn.utils.text import Facts, Part, TextTable, as_text, count, number, shown, signed, times_as_likely

MOST_ITEMS = 200  # looked at by default, as learning takes long for more
COARSE = 0.1  # nats per basket: data that would not show as much tell nothing
RARE = 5  # an item in fewer baskets is rare
MAX_PAIRS_SHOWN = 2  # of each kind
CASE_WORDS = {
    SYMMETRIC: ("repulsion", "symmetric DPP"),
    NONSYMMETRIC: ("repulsion and attraction", "nonsymmetric DPP"),
    SEGMENTS: ("segments alone", "segments of independent items"),
    MIXTURE: ("all of these", "mixture"),
}


class Verdict(StrEnum):
    """The model that is recommended, the simplest first."""

    INDEPENDENT = "independent items"
    DPP = "dpp"
    NONSYMMETRIC = "segments=1"
    MIXTURE = "mixture"
    TOO_LITTLE = "too little data"


LADDER = {  # from the simplest to the whole
    INDEPENDENT: Verdict.INDEPENDENT,
    SYMMETRIC: Verdict.DPP,
    NONSYMMETRIC: Verdict.NONSYMMETRIC,
    MIXTURE: Verdict.MIXTURE,
}
LIKELIER = "compared with independent items it makes an unseen basket {likelier} ({gain} ± {error} nats per basket)"
SENTENCES = {
    Verdict.INDEPENDENT: "Popularity is enough: items look independent of each other, and no model predicts unseen "
    "baskets clearly better than independent items do (the best, by {best} ± {best_error} nats per basket).",
    Verdict.DPP: "Learn a symmetric DPP (model='dpp'): items avoid each other, "
    + LIKELIER
    + ", and neither attraction nor segments clearly add to that.",
    Verdict.NONSYMMETRIC: "Learn one nonsymmetric DPP (segments=1): items avoid each other or go together, "
    + LIKELIER
    + ", and segments do not clearly add to that.",
    Verdict.MIXTURE: "Learn a mixture, as fit does by default: people come in kinds, " + LIKELIER + ", and the "
    "best single DPP {single}.",
    Verdict.TOO_LITTLE: "There is too little data to tell, so that independent items are the choice for now: from {n} "
    "no model learns to predict clearly better (at best by {best} ± {best_error} nats per basket), and {why}.",
}
NO_ROOM = (
    "There is too little data to tell: pairs of items have no room to meet or to avoid each other in {n} "
    "of which none holds two items, or all are alike."
)
UNLEARNED = (
    "items seem to {how}, by {nats} nats per basket summed over pairs, but it takes more baskets to learn which do"
)
BLURRED = "all pairs together would have to depart from chance by {resolution} nats per basket to be told from it"


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
    n_looked_at: int  # items of which models are learned, the most frequent ones of those that occur
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
    """What baskets say about which model suits them."""

    overview: Overview
    pairs: PairTests
    unseen: Unseen
    bounds: Bounds
    baskets: Baskets  # with the items looked at
    similarity: LiftBySimilarity | None = None  # where one was given

    @cached_property
    def gains(self) -> Mapping[str, Gain]:
        """What each special case gains over independent items: "symmetric", "nonsymmetric", "segments", "mixture"."""
        return {case: self.unseen.gain(case) for case in CASES}

    @property
    def repulsion(self) -> Gain:
        """What it brings that items avoid each other: a symmetric DPP over independent items."""
        return self.gains[SYMMETRIC]

    @property
    def attraction(self) -> Gain:
        """What it brings that items go together as well: a nonsymmetric DPP over a symmetric one."""
        return self.unseen.gain(NONSYMMETRIC, SYMMETRIC)

    @property
    def segments(self) -> Gain:
        """What it brings that people come in kinds: segments of independent items over independent items."""
        return self.gains[SEGMENTS]

    def substitute_groups(self, at_least: float = AT_LEAST) -> tuple[SubstituteGroup, ...]:
        """Return groups of items that are substitutes for each other, from a symmetric DPP fitted to the baskets.

        Groups are formed by average linkage on the substitution 1 − P(i, j) / P(i, j under independence).

        Parameters
        ----------
        at_least : float, default 0.4
            Two groups are merged while their mean substitution is at least this. Above 0, at most 1.

        Returns
        -------
        tuple of SubstituteGroup
            The group with the most missing co-occurrences comes first.

        Examples
        --------
        >>> found = diagnose([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 30)
        >>> [sorted(group.items) for group in found.substitute_groups()]
        [['cot', 'crib']]
        """
        return substitute_groups(self._symmetric, at_least)

    @cached_property
    def _symmetric(self) -> DPP:
        return fit_dpp(self.baskets, nonempty=self.pairs.nonempty, rng=0, **CASES[SYMMETRIC][-1]).model

    @property
    def resolution(self) -> float:
        """How far pairs must depart from chance, in nats per basket, to be told from it: two standard errors."""
        return float(2 * np.hypot(self.pairs.repelling.standard_error, self.pairs.attracting.standard_error))

    @property
    def _no_room(self) -> bool:
        return self.resolution == 0 or self.overview.largest_size < 2

    @property
    def _unlearned(self) -> str:
        """What pairs clearly do that a model could learn, if there were more of them."""
        sides = {"avoid each other": self.pairs.repelling, "go together": self.pairs.attracting}
        found = {how: side for how, side in sides.items() if side.clear and side.nats >= 2 * WORTH_HAVING}
        if not found:
            return ""
        how = max(found, key=lambda how: found[how].nats)
        return UNLEARNED.format(how=how, nats=_nats(found[how].nats))

    @property
    def _why_open(self) -> str:
        """Why nothing can be told, where no model gains; empty where it can."""
        return self._unlearned or (
            BLURRED.format(resolution=_nats(self.resolution)) if self.resolution > COARSE else ""
        )

    @cached_property
    def _simplest(self) -> str:
        """The simplest case that the best is not clearly better than."""
        best = self.unseen.best
        return next((case for case in LADDER if not self.unseen.gain(best, case).clear), MIXTURE)

    @property
    def verdict(self) -> Verdict:
        """The simplest model that predicts as well as the best, as far as can be told."""
        found = LADDER[self._simplest]
        if self._no_room or (found is Verdict.INDEPENDENT and self._why_open):
            return Verdict.TOO_LITTLE
        return found

    @property
    def sentence(self) -> str:
        """The verdict in plain words, with the numbers it rests on."""
        gain = self.unseen.gain(self._simplest)
        best = self.unseen.gain(self.unseen.best)
        numbers = {
            "likelier": times_as_likely(gain.mean),
            "gain": _nats(gain.mean),
            "error": _nats(2 * gain.standard_error),
            "best": _nats(best.mean),
            "best_error": _nats(2 * best.standard_error),
            "single": times_as_likely(max(self.gains[case].mean for case in (SYMMETRIC, NONSYMMETRIC))),
            "n": f"{self.overview.weight:,.6g} basket{'' if self.overview.weight == 1 else 's'}",
            "why": self._why_open,
        }
        return (NO_ROOM if self._no_room else SENTENCES[self.verdict]).format(**numbers)

    def tables(self, top: int = MAX_PAIRS_SHOWN) -> list[Part]:
        """Return the verdict, and tables of the data, the gains, `top` pairs of each kind and lift by similarity."""
        return [
            self.sentence,
            Facts("Data", self._facts()),
            TextTable(
                f"Gain over independent items, {self.unseen.weights.sum():,.6g} held-out baskets",
                "In nats per basket ± two standard errors.",
                ["", "gain>", "model"],
                [(what, _worth(self.gains[case]), model) for case, (what, model) in CASE_WORDS.items()],
            ),
            *self._pair_table(top),
            *([] if self.similarity is None else [_similarity_table(self.similarity)]),
        ]

    def _facts(self) -> list[tuple[str, str]]:
        data, pairs, ratio = self.overview, self.pairs, self.bounds
        modelled = f"; models use the {data.n_looked_at:,} most frequent" if data.n_looked_at < data.n_items else ""
        found = f"{pairs.repels.sum():,} co-occur less and {pairs.attracts.sum():,} more often than expected"
        bound = f"{number(ratio.size_ratio, 2)} ± {number(2 * ratio.standard_error, 2)}"
        return [
            ("baskets", f"{data.n_baskets:,}, {data.mean_size:.2f} items on average, at most {data.largest_size}"),
            ("items", f"{data.n_items:,}, {data.n_rare:,} in fewer than {RARE} baskets{modelled}"),
            ("pairs", f"{pairs.n_possible:,}: {found} under independence"),
            ("variance/mean of size", f"{bound} (a symmetric DPP: at most 1, any single DPP: at most 2)"),
        ]

    def _pair_table(self, top: int) -> list[TextTable]:
        pairs = self.pairs
        strongest = [each for side in (pairs.repels, pairs.attracts) for each in pairs.strongest(side, top)]
        rows = [
            (
                shown(each.first),
                shown(each.second),
                count(each.observed),
                number(each.expected, 1),
                number(each.ratio, 2),
            )
            for each in strongest
        ]
        columns = ["", "", "observed>", "expected>", "lift>"]
        return [TextTable("Strongest pairs", "", columns, rows)] if rows else []

    def to_dict(self, top: int = MAX_PAIRS_SHOWN) -> dict[str, Any]:
        """Return everything as data for JSON, with `top` pairs of each kind."""
        pairs, limits = self.pairs, self.bounds
        beyond = {"sizes_beyond": limits.sizes_beyond, "sizes_beyond_symmetric": limits.sizes_beyond_symmetric}
        return {
            **asdict(self.overview),
            "pairs": {
                "possible": pairs.n_possible,
                "tested": len(pairs),
                "counted_baskets": pairs.n,
                "given_not_empty": pairs.nonempty,
                "independent_probability_empty": pairs.probability_empty,
                "repel": int(pairs.repels.sum()),
                "attract": int(pairs.attracts.sum()),
                "could_be_told_to_repel": int(pairs.could_repel.sum()),
                "ever_met": int((pairs.observed > 0).sum()),
                "repelling": pairs.repelling._asdict(),
                "attracting": pairs.attracting._asdict(),
            },
            "repelling_pairs": [_pair_dict(each) for each in pairs.strongest(pairs.repels, top)],
            "attracting_pairs": [_pair_dict(each) for each in pairs.strongest(pairs.attracts, top)],
            "repulsion": _gain_dict(self.repulsion),
            "attraction": _gain_dict(self.attraction),
            "segments": _gain_dict(self.segments),
            "gains": {case: _gain_dict(gain) for case, gain in self.gains.items()},
            "judged_baskets": float(self.unseen.weights.sum()),
            "bounds": {**limits._asdict(), **beyond},
            "verdict": str(self.verdict),
            "sentence": self.sentence,
            "similarity": None
            if self.similarity is None
            else {**asdict(self.similarity), "verdict": self.similarity.verdict, "sentence": self.similarity.sentence},
        }

    def __str__(self) -> str:
        return as_text(self.tables())


def diagnose(
    baskets: Baskets | Iterable[Iterable[Any]],
    *,
    similarity: Any = None,
    most_items: int = MOST_ITEMS,
    level: float = LEVEL,
    rng: Seed = 0,
    threads: int | None = None,
    progress: bool = False,
) -> Diagnosis:
    """Which model suits these baskets: how much repulsion, attraction and segments each bring on unseen baskets.

    Pairs of items are tested for independence. Special cases of a mixture are fitted to a part of the baskets and
    scored on the rest. The variance of the basket size is compared with the bounds of a single DPP. If no basket is
    empty, all results are conditional on the set not being empty.

    Parameters
    ----------
    baskets
        `Baskets`, or a list of lists as `Baskets.from_lists` takes it.
    similarity
        Similarity of items: a square array or table, one value per item (items with the same value are alike), or a
        file. The result then has `similarity`, the lift of pairs by how alike they are.
    most_items
        With more items than this, models are learned of those that occur most often, in the baskets that hold any.
    level
        False discovery rate of the pairs called repelling or attracting.
    rng
        Seed or generator of the parts that baskets are divided into, and of the starts of learning.
    threads, progress
        As in `fit`.

    Returns
    -------
    Diagnosis
        What the data hold, pairs against chance, gains, bounds, and a verdict in words. Printed, it is a summary.

    Examples
    --------
    >>> baskets = [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 30
    >>> found = diagnose(baskets)
    >>> found.verdict.value
    'dpp'
    >>> pair = found.pairs.strongest(found.pairs.repels, 1)[0]
    >>> pair.first, pair.second
    ('cot', 'crib')
    """
    baskets = as_baskets(baskets)
    by_similarity = lift_by_similarity(baskets, similarity, rng=rng) if similarity is not None else None
    looked_at = baskets.most_frequent(whole_number("most_items", most_items, 2))
    if baskets.total_weight > 0:
        check_gains_memory(looked_at, threads)
    pairs = pair_tests(baskets, level)
    unseen = predicted(looked_at, rng, nonempty=pairs.nonempty, threads=threads, progress=progress)
    return Diagnosis(Overview.of(baskets, looked_at), pairs, unseen, bounds(baskets), looked_at, by_similarity)


def _nats(value: float) -> str:
    return "unknown" if np.isnan(value) else f"{value:.3f}"


def _worth(gain: Gain) -> str:
    if np.isnan(gain.mean):
        return "unknown"
    return f"{signed(gain.mean, 3)} ± {number(2 * gain.standard_error, 3)}"


def _gain_dict(gain: Gain) -> dict[str, Any]:
    return {**gain._asdict(), "percent": gain.percent, "clear": gain.clear}


def _pair_dict(pair: Pair) -> dict[str, Any]:
    return {**pair._asdict(), "ratio": pair.ratio}


def _similarity_table(found: LiftBySimilarity) -> TextTable:
    rows = [
        (
            "none" if each.low < 0 else f"above {each.low:g}, to {each.high:g}",
            count(each.n_pairs),
            count(each.observed),
            number(each.expected, 1),
            number(each.ratio, 2),
            f"{number(each.ratio_low, 2)} to {number(each.ratio_high, 2)}",
        )
        for each in found.bins
    ]
    columns = ["similarity", "pairs>", "observed>", "expected>", "lift>", "90% interval>"]
    return TextTable("Lift by similarity", found.sentence, columns, rows)

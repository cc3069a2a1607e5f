"""diagnose: which model suits the data, and what repulsion, attraction and segments each gain on held-out baskets."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

import numpy as np

from dpplearn.analysis.similarity import LiftBySimilarity, lift_by_similarity
from dpplearn.arrays import Seed
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.pairs import FDR_LEVEL, Pair, PairTests, pair_tests
from dpplearn.data.weights import in_variance
from dpplearn.errors import InputError, InputWarning, whole_number
from dpplearn.evaluation.baselines import INDEPENDENT
from dpplearn.evaluation.evaluation import cross_validate
from dpplearn.evaluation.metrics import Difference, Estimate, Z
from dpplearn.evaluation.result import Evaluation, with_error
from dpplearn.learners.data import units_of
from dpplearn.learners.fit import fit_dpp
from dpplearn.learners.settings import settings_of
from dpplearn.models.independence import MIN_GAIN
from dpplearn.models.relations import MIN_SUBSTITUTION, SubstituteGroup, substitute_groups
from dpplearn.utils.text import Facts, Part, Result, TextTable, count, number, shortened

MAX_ITEMS = 200  # most frequent items that models are fitted to, because fits of more take long
FOLDS = 5
MAX_TESTED = 3000  # test baskets; further folds are not fitted
MAX_POSSIBLE_GAIN = 0.1  # nats; if a larger gain is inside an interval, or there are fewer baskets than this,
MIN_BASKETS = 100  # the data do not show that items are independent
MIN_COUNT = 5  # an item in fewer baskets is rare
MAX_PAIRS_SHOWN = 2  # of each kind
NAME_WIDTH = 24  # characters of an item in a table of pairs

SYMMETRIC, NONSYMMETRIC, SEGMENTS, MIXTURE = MODELS = ("symmetric", "nonsymmetric", "segments", "mixture")
TOO_LITTLE = "too little data"
# Verdicts, the simplest model first.
VERDICTS = {INDEPENDENT: INDEPENDENT, SYMMETRIC: "dpp", NONSYMMETRIC: "segments=1", MIXTURE: "mixture"}
_DPP = {"learner": "lbfgs", "max_iter": 100, "tol": 1e-3}  # a diagnosis needs less precision than a fit
_FEW = {"max_iter": 180, "tol": 0.002}
# Options of each model; of two symmetric DPPs the better one on held-out baskets is used.
FITS: dict[str, dict[str, Any]] = {
    f"{SYMMETRIC} 0.5": {"shrinkage": 0.5, **_DPP},
    f"{SYMMETRIC} 0.1": {"shrinkage": 0.1, **_DPP},
    NONSYMMETRIC: {"segments": 1, **_FEW},
    SEGMENTS: {"attraction": False, "rank": 0, **_FEW},
    MIXTURE: dict(_FEW),
}
DESCRIPTIONS = {
    SYMMETRIC: ("repulsion", "symmetric DPP"),
    NONSYMMETRIC: ("repulsion and attraction", "nonsymmetric DPP"),
    SEGMENTS: ("segments", "segments of independent items"),
    MIXTURE: ("all three", "mixture"),
}
SENTENCES = {
    INDEPENDENT: "Use popularity: no model predicts held-out baskets significantly better than independent items (the "
    "best by {best} nats per basket).",
    "dpp": "Fit a symmetric DPP (fit_dpp): it gains {gain} nats per basket over independent items; attraction and "
    "segments do not add significantly.",
    "segments=1": "Fit one nonsymmetric DPP (segments=1): it gains {gain} nats per basket over independent items; "
    "segments do not add significantly.",
    "mixture": "Fit a mixture (the default of fit): it gains {gain} nats per basket over independent items, and the "
    "best single DPP {single}.",
    TOO_LITTLE: "There is too little data for a verdict: {why}. Use popularity until there are more baskets.",
}


@dataclass(frozen=True)
class DataSummary:
    """Number and size of the baskets, and frequency of the items."""

    n_baskets: int
    weight: float
    n_empty: int
    mean_size: float
    max_size: int
    n_items: int
    n_modelled: int  # most frequent items, which models are fitted to
    n_rare: int  # items in fewer than five baskets
    size_ratio: Estimate  # variance/mean of the basket size: at most 1 for a symmetric DPP, at most 2 for any DPP


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Result):
    """Result of `diagnose`: which model suits the baskets.

    Attributes
    ----------
    summary : DataSummary
    pairs : PairTests
        Tests of independence of all pairs of items.
    evaluation : Evaluation
        Cross-validation of the models.
    similarity : LiftBySimilarity or None
        If a similarity was given.
    """

    summary: DataSummary
    pairs: PairTests
    evaluation: Evaluation
    baskets: Baskets
    modelled: Baskets  # with the items that models were fitted to
    similarity: LiftBySimilarity | None = None

    def gain(self, model: str, over: str = INDEPENDENT) -> Difference:
        """Return the gain of one model over another in nats per held-out basket.

        Parameters
        ----------
        model, over : {"independent items", "symmetric", "nonsymmetric", "segments", "mixture"}
        """
        return self.evaluation.difference(self._fit_of(model), self._fit_of(over))

    def _fit_of(self, model: str) -> str:
        fits = [name for name in self.evaluation.models if name.split()[0] == model]
        # A symmetric DPP that is worse than independent items would be shrunk to them.
        options = [*fits, INDEPENDENT] if model in (SYMMETRIC, INDEPENDENT) else fits
        return max(options, key=lambda name: self.evaluation.estimate(name).value)

    @property
    def gains(self) -> Mapping[str, Difference]:
        """Gain of each model over independent items."""
        return {model: self.gain(model) for model in MODELS}

    @property
    def repulsion(self) -> Difference:
        """Gain of a symmetric DPP over independent items."""
        return self.gain(SYMMETRIC)

    @property
    def attraction(self) -> Difference:
        """Gain of a nonsymmetric DPP over a symmetric one."""
        return self.gain(NONSYMMETRIC, SYMMETRIC)

    @property
    def segments(self) -> Difference:
        """Gain of segments of independent items over independent items."""
        return self.gain(SEGMENTS)

    @property
    def _simplest(self) -> str:
        """The simplest model that the best one is not clearly better than."""
        best = max((INDEPENDENT, *MODELS), key=lambda model: self.gain(model).value)
        return next((model for model in VERDICTS if not is_clear(self.gain(best, model))), MIXTURE)

    @property
    def _why_too_little(self) -> str:
        """Why data in which no model gains do not show that items are independent; empty if they do."""
        if self.summary.weight < MIN_BASKETS or self.summary.max_size < 2:
            return f"{count(self.summary.weight, 'basket')}, at most {count(self.summary.max_size, 'item')} in each"
        if n := int(self.pairs.significant.sum()):
            return f"{count(n, 'pair')} of items are not independent, but no model gains significantly"
        possible = max(gain.high for gain in self.gains.values())
        if possible > MAX_POSSIBLE_GAIN:
            return f"the intervals do not exclude a gain of {number(possible, 3)} nats per basket"
        return ""

    @property
    def verdict(self) -> str:
        """The simplest model that is not clearly worse than the best.

        "independent items", "dpp", "segments=1", "mixture" or "too little data". A gain is clear if it is at least 0.01
        nats per basket and its 95 % interval excludes zero.
        """
        found = INDEPENDENT if self.summary.max_size < 2 else VERDICTS[self._simplest]
        return TOO_LITTLE if found == INDEPENDENT and self._why_too_little else found

    @property
    def sentence(self) -> str:
        """The verdict in words, with the numbers it is based on."""
        gains = self.gains
        single, best = (max(some, key=lambda gain: gain.value) for some in (list(gains.values())[:2], gains.values()))
        return SENTENCES[self.verdict].format(
            why=self._why_too_little, gain=_nats(self.gain(self._simplest)), single=_nats(single), best=_nats(best)
        )

    def strongest_pairs(self, k: int, *, above: bool) -> list[Pair]:
        """Return the most certain pairs that co-occur less often, or with `above` more often, than expected."""
        return self.pairs.records(self.pairs.most_certain(above)[:k], self.baskets.items)

    def substitute_groups(self, at_least: float = MIN_SUBSTITUTION) -> tuple[SubstituteGroup, ...]:
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
        """
        options = FITS[f"{SYMMETRIC} 0.1"]
        return substitute_groups(fit_dpp(self.modelled, nonempty=self.pairs.nonempty, rng=0, **options).model, at_least)

    def tables(self, top: int = MAX_PAIRS_SHOWN) -> list[Part]:
        """Return the verdict, and tables of the data, the gains, `top` pairs of each kind and lift by similarity."""
        title = f"Gain over independent items in nats per basket, {self.evaluation.weight:,.6g} held-out baskets"
        gains = [(what, _nats(self.gains[model]), name) for model, (what, name) in DESCRIPTIONS.items()]
        return [
            self.sentence,
            Facts("Data", self._facts()),
            TextTable(title, "", ["", "gain ± 95%>", "model"], gains),
            *self._pair_table(top),
            *([] if self.similarity is None else [self.similarity.table()]),
        ]

    def _facts(self) -> list[tuple[str, str]]:
        data, pairs, ratio = self.summary, self.pairs, self.summary.size_ratio
        modelled = f"; models use {data.n_modelled:,}" if data.n_modelled < data.n_items else ""
        different = f"{pairs.fewer.sum():,} co-occur less than expected, {pairs.more.sum():,} more"
        return [
            ("baskets", f"{data.n_baskets:,}, {data.mean_size:.2f} items on average, at most {data.max_size}"),
            ("items", f"{data.n_items:,}; {data.n_rare:,} in fewer than {MIN_COUNT} baskets{modelled}"),
            ("pairs", f"{pairs.n_possible:,}; {different}"),
            ("variance/mean of size", f"{with_error(ratio, 2)} (symmetric DPP: up to 1, any DPP: up to 2)"),
        ]

    def _pair_table(self, top: int) -> list[TextTable]:
        rows = []
        for each in (*self.strongest_pairs(top, above=False), *self.strongest_pairs(top, above=True)):
            numbers = count(each.observed), number(each.expected, 1), number(each.lift, 2)
            rows.append((*shortened([each.first, each.second], NAME_WIDTH), *numbers))
        columns = ["", "", "observed>", "expected>", "lift>"]
        return [TextTable("Strongest pairs", "", columns, rows)] if rows else []

    def to_dict(self, top: int = MAX_PAIRS_SHOWN) -> dict[str, Any]:
        """Return everything as data for JSON, with `top` pairs of each kind."""
        pairs = self.pairs
        counts = {"possible": pairs.n_possible, "less_often": pairs.fewer.sum(), "more_often": pairs.more.sum()}
        return {
            **asdict(self.summary),
            "verdict": self.verdict,
            "sentence": self.sentence,
            "n_tested": self.evaluation.weight,
            "gains": {model: _difference_dict(gain) for model, gain in self.gains.items()},
            "attraction": _difference_dict(self.attraction),
            "pairs": {**{name: int(value) for name, value in counts.items()}, "nonempty": pairs.nonempty},
            "less_often": [each._asdict() for each in self.strongest_pairs(top, above=False)],
            "more_often": [each._asdict() for each in self.strongest_pairs(top, above=True)],
            "similarity": None if self.similarity is None else self.similarity.to_dict(),
        }


def diagnose(
    baskets: Baskets | Iterable[Iterable[Any]],
    *,
    similarity: Any = None,
    most_items: int = MAX_ITEMS,
    level: float = FDR_LEVEL,
    rng: Seed = 0,
    threads: int | None = None,
    progress: bool = False,
) -> Diagnosis:
    """Measure which model suits the baskets: what repulsion, attraction and segments each gain on held-out baskets.

    Pairs of items are tested for independence, and the special cases of a mixture are compared by cross-validation. If
    no basket is empty, all results are conditional on the basket not being empty.

    Parameters
    ----------
    baskets : Baskets or list of lists
    similarity : array, table, mapping or path, optional
        Similarity of items: a square array or table, one value per item (items with the same value are similar), or a
        file. The result then has `similarity`, the lift of pairs by similarity.
    most_items : int, default 200
        With more items, models are fitted to the most frequent ones only.
    level : float, default 0.05
        False discovery rate of the pairs.
    rng : int or numpy.random.Generator, default 0
        Seed of the folds and the fits.
    threads, progress
        As in `fit`.

    Returns
    -------
    Diagnosis
        Printed, it is a summary of at most 25 lines.

    Examples
    --------
    >>> found = diagnose([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 30)
    >>> found.verdict
    'dpp'
    >>> [(pair.first, pair.second) for pair in found.strongest_pairs(1, above=False)]
    [('cot', 'crib')]
    >>> [sorted(group.items) for group in found.substitute_groups()]
    [['cot', 'crib']]
    """
    baskets = as_baskets(baskets)
    by_similarity = lift_by_similarity(baskets, similarity) if similarity is not None else None
    modelled = baskets.most_frequent(whole_number("most_items", most_items, 2))
    settings_of("dpp", threads=threads).task(modelled).check_memory()  # before all pairs of items are counted
    pairs = pair_tests(baskets, level)
    evaluation = _evaluation(modelled, rng, nonempty=pairs.nonempty, threads=threads, progress=progress)
    return Diagnosis(_summary(baskets, modelled), pairs, evaluation, baskets, modelled, by_similarity)


def is_clear(gain: Difference) -> bool:
    """Return whether a gain is at least 0.01 nats per basket and its interval excludes zero."""
    return gain.value >= MIN_GAIN and gain.low > 0


def _evaluation(baskets: Baskets, rng: Seed, **options: Any) -> Evaluation:
    """Cross-validate the models, over as many folds as give MAX_TESTED test baskets."""
    units = units_of(baskets)
    if units.n_units < 2:
        raise InputError(f"diagnose needs at least two baskets, got {units.n_units}")
    folds = min(FOLDS, units.n_units)
    # Fits with few iterations warn that they did not converge, and line searches may overflow before they step back.
    with warnings.catch_warnings(), np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", InputWarning)
        return cross_validate(
            units,
            FITS,
            folds=folds,
            tested_folds=min(folds, ceil(MAX_TESTED * folds / units.n_units)),
            tasks=(),
            max_baskets=None,
            rng=rng,
            **options,
        )


def _summary(baskets: Baskets, modelled: Baskets) -> DataSummary:
    positive = baskets.subset(baskets.weights > 0)
    sizes, counts = positive.sizes, baskets.frequencies() * baskets.total_weight
    return DataSummary(
        n_baskets=len(sizes),
        weight=baskets.total_weight,
        n_empty=int((sizes == 0).sum()),
        mean_size=float(np.average(sizes, weights=positive.weights)),
        max_size=int(sizes.max()),
        n_items=baskets.n_items,
        n_modelled=modelled.n_items,
        n_rare=int((counts < MIN_COUNT).sum()),
        size_ratio=size_ratio(positive),
    )


def size_ratio(baskets: Baskets) -> Estimate:
    """Return the variance of the basket size divided by its mean, with a 95 % interval; NaN if all are empty.

    Var|Y| ≤ E|Y| for every symmetric DPP and Var|Y| ≤ 2 E|Y| for every DPP with L + Lᵀ positive semidefinite, also
    given Y ≠ ∅. Data above the second bound need segments.
    """
    weights, sizes = baskets.as_counts().weights, baskets.sizes
    total = weights.sum()
    mean = float(weights @ sizes / total)
    if not mean:
        return Estimate(np.nan, np.nan, np.nan)
    deviation = sizes - mean
    ratio = float(weights @ deviation**2 / total) / mean
    effect = deviation**2 / mean - ratio - ratio / mean * deviation  # derivative of the ratio, for each basket
    error = float(np.sqrt(in_variance(weights) @ effect**2) / total)
    return Estimate(ratio, ratio - Z * error, ratio + Z * error, error)


def _nats(gain: Difference) -> str:
    return with_error(gain, 3, sign=True)


def _difference_dict(gain: Difference) -> dict[str, Any]:
    return {**asdict(gain), "clear": is_clear(gain)}

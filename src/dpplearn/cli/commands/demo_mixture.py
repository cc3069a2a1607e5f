"""The second part of dpplearn demo: a mixture beside what shops use and the paper's EM, and what it knows of people."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from dpplearn.cli.commands.demo_paper import SMALL_TOL, kind_of, most_popular, train_and_test
from dpplearn.cli.output import Report, Shown
from dpplearn.data.catalogue import Label
from dpplearn.datasets.registries import items_by_kind, matching_items
from dpplearn.evaluation.baselines import INDEPENDENT, POPULARITY
from dpplearn.evaluation.evaluation import evaluate
from dpplearn.evaluation.outcomes import LOG_LIKELIHOOD, PERCENTILE_RANK
from dpplearn.evaluation.result import Evaluation
from dpplearn.fitting.fit import fit
from dpplearn.models.answers import Relation
from dpplearn.models.mixture import Mixture
from dpplearn.tools.tables import TextTable
from dpplearn.tools.words import count, listed, number, share, shown, signed

LISTED = 10  # suggestions among which an item held out counts as found
SMALLEST_SEGMENT = 0.04
MOST_SEGMENTS = 6
EM, MIXTURE = "the paper's EM", "mixture"


@dataclass(frozen=True)
class Line:
    """How well one way to predict does on registries held out."""

    model: str
    gain: float | None  # nats per registry over independent items, given not empty; None without probabilities
    percentile_rank: float
    recall: float


@dataclass(frozen=True)
class People:
    """A segment, in words: the kinds of product that it takes more often than others do, and how many times so."""

    weight: float
    expected_size: float
    likes: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class MixtureDemo:
    """What a mixture brings."""

    category: str
    n_items: int
    n_train: int
    n_test: int
    lines: tuple[Line, ...]
    held: Label
    with_it: tuple[Relation, ...]
    instead: tuple[Relation, ...]
    people: tuple[People, ...]

    @property
    def sentences(self) -> tuple[str, str]:
        """What the figures come to, and what goes with what."""
        return self._gain, self._relations

    @property
    def _gain(self) -> str:
        of = {line.model: line for line in self.lines}
        mixture, em = (number(_times(of[name].gain), 1) for name in (MIXTURE, EM))
        points = of[MIXTURE].percentile_rank - of[POPULARITY].percentile_rank
        return (
            f"On average, a registry held out is {mixture} times as likely under the mixture as under independent "
            f"items, and {em} times under the DPP of EM; an item left out of one ranks {number(abs(points), 1)} points "
            f"{'lower' if points < 0 else 'higher'} than by popularity."
        )

    @property
    def _relations(self) -> str:
        lifts = [f"{shown(each.item)} {number(each.lift, 1)} times" for each in (*self.with_it, *self.instead)]
        if not lifts:
            return ""
        return f"Beside {shown(self.held)}, against chance, there is {listed(lifts)} as often."


def run_mixture_demo(category: str, n: int, seed: int, *, progress: bool = False) -> MixtureDemo:
    """Generate `n` registries, learn from 70% of them, and predict the others."""
    train, test = train_and_test(category, n, seed)
    em = fit(train, "em", "wishart", rng=seed, tol=SMALL_TOL, progress=progress)
    mixture = fit(train, rng=seed, progress=progress).model
    assert isinstance(mixture, Mixture)
    found = evaluate({EM: em, MIXTURE: mixture}, test, train=train, k=LISTED, rng=seed)
    held = most_popular(train, [first for first, _ in matching_items(category)])
    return MixtureDemo(
        category=category,
        n_items=train.n_items,
        n_train=len(train),
        n_test=len(test),
        lines=tuple(_line(found, name) for name in (*found.baselines, *found.models) if name != INDEPENDENT),
        held=held,
        with_it=tuple(mixture.complements(held, 2)),
        instead=tuple(mixture.substitutes(held, 1)),
        people=_people(mixture, category),
    )


def _times(gain: float | None) -> float:
    return math.nan if gain is None else math.exp(gain)


def _line(found: Evaluation, name: str) -> Line:
    rank, recall = (found.estimate(name, measure).value for measure in (PERCENTILE_RANK, f"recall@{LISTED}"))
    if LOG_LIKELIHOOD not in found.measures(name):
        return Line(name, None, rank, recall)
    return Line(name, found.estimate(name).value - found.estimate(INDEPENDENT).value, rank, recall)


def _people(mixture: Mixture, category: str) -> tuple[People, ...]:
    """The segments that count, by kinds of product: items of a kind are liked alike."""
    kinds = {item: kind_of(group) for group in items_by_kind(category) for item in group}
    found = []
    for segment in mixture.segments(len(mixture.items))[:MOST_SEGMENTS]:
        likes: dict[str, float] = {}
        for item, times in segment.likes:
            likes.setdefault(kinds[str(item)], times)
        if segment.weight >= SMALLEST_SEGMENT:
            found.append(People(segment.weight, segment.expected_size, tuple(likes.items())[:3]))
    return tuple(found)


def mixture_report(demo: MixtureDemo) -> Report:
    return {
        "category": demo.category,
        "n_items": demo.n_items,
        "n_train": demo.n_train,
        "n_test": demo.n_test,
        "models": [asdict(line) for line in demo.lines],
        "held": demo.held,
        "with_it": [each._asdict() for each in demo.with_it],
        "instead": [each._asdict() for each in demo.instead],
        "people": [asdict(each) for each in demo.people],
        "sentences": demo.sentences,
    }


def mixture_tables(report: Report) -> Iterator[Shown]:
    yield TextTable(
        f"{count(report['n_train'])} generated registries ({report['category']}, {report['n_items']} items), "
        f"{count(report['n_test'])} held out: nats gained per registry over independent items, given that none is "
        "empty, and how an item left out at random ranks",
        "Each model says more than the one before it, and is judged on registries that none has seen.",
        ["model", "gain>", "mean percentile rank>", f"in the first {LISTED}>"],
        [
            (
                each["model"],
                signed(each["gain"], 3),
                number(each["percentile_rank"], 1),
                share(each["recall"], 1),
            )
            for each in report["models"]
        ],
    )
    yield from report["sentences"]
    yield TextTable(
        "Kinds of people that the mixture found by itself",
        "Nobody told it who belongs together, or what kinds of products there are.",
        ["share>", "items>", "take more often than others do (how many times as often)~"],
        [
            (
                share(each["weight"]),
                number(each["expected_size"], 1),
                ", ".join(f"{kind} ({number(times, 1)})" for kind, times in each["likes"]),
            )
            for each in report["people"]
        ],
    )

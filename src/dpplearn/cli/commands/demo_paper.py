"""The first part of dpplearn demo, the paper's: learn generated registries with EM, K-Ascent and the best learner of a
DPP that we know, compare, and look at what is suggested next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest

from dpplearn.cli.output import Report, Shown
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Label
from dpplearn.datasets.registries import items_by_kind, make_registries
from dpplearn.evaluation.metrics import relative_gain
from dpplearn.fitting.fit import fit
from dpplearn.fitting.result import FitResult
from dpplearn.kernels.independent import independent
from dpplearn.models.dpp import DPP
from dpplearn.tools.tables import TextTable
from dpplearn.tools.words import chance, count, number, percent, shown

TRAIN_SHARE = 0.7  # as in the paper
N_SUGGESTIONS = 5
PAPER_TOL, SMALL_TOL = 1e-4, 1e-6  # K-Ascent can creep past independent items so slowly that the paper's rule stops it


@dataclass(frozen=True)
class Score:
    """How good one model is: mean log-likelihoods per registry, and what learning it took."""

    model: str
    tol: float | None
    train: float
    test: float
    n_iter: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Duel:
    """EM and K-Ascent from the same start, stopped by the same rule."""

    k_ascent: Score
    em: Score

    @property
    def gain_test(self) -> float:
        return relative_gain(self.em.test, self.k_ascent.test)


@dataclass(frozen=True)
class Suggestion:
    """An item suggested next, how probable it is, and whether it could replace the one already there."""

    item: Label
    probability: float
    same_kind: bool


@dataclass(frozen=True)
class PaperDemo:
    """Everything that this part found."""

    category: str
    seed: int
    n_items: int
    n_train: int
    n_test: int
    independent: Score
    auto: Score
    duels: tuple[Duel, ...]
    kind: str
    held: Label
    by_em: tuple[Suggestion, ...]
    by_popularity: tuple[Suggestion, ...]

    @property
    def comparison(self) -> str:
        """How EM and K-Ascent compare, and how much of it is where they stop."""
        gains = ", ".join(f"{percent(duel.gain_test)} when both stop at {duel.em.tol:.0e}" for duel in self.duels)
        return f"EM against K-Ascent on the registries held out (the paper stops at {PAPER_TOL:.0e}): {gains}."

    @property
    def sentence(self) -> str:
        """What the suggestions come to, counted."""
        em, popularity = (sum(each.same_kind for each in found) for found in (self.by_em, self.by_popularity))
        return (
            f"With '{self.held}' already in the registry, {popularity} of the {len(self.by_popularity)} suggestions by "
            f"popularity {_are(popularity)} again of its kind ({self.kind}), and {em} of the {len(self.by_em)} by the "
            f"DPP that EM learned."
        )


def run_paper_demo(category: str, n: int, seed: int, *, progress: bool = False) -> PaperDemo:
    """Generate `n` registries, learn from 70% of them, EM and K-Ascent from one Wishart start, and compare."""
    train, test = train_and_test(category, n, seed)
    runs = {learner: _two_stops(train, learner, seed, progress) for learner in ("k-ascent", "em")}
    auto = fit(
        train, "auto", rng=seed, progress=progress, nonempty=False
    )  # judged as the paper's learners are, by P(Y)
    popularity = DPP(independent(train), train.items)
    group = max(items_by_kind(category), key=len)
    held = most_popular(train, group)
    return PaperDemo(
        category=category,
        seed=seed,
        n_items=train.n_items,
        n_train=len(train),
        n_test=len(test),
        independent=Score("independent items", None, popularity.log_likelihood(train), popularity.log_likelihood(test)),
        auto=Score(
            "auto, ours",
            None,
            auto.log_likelihood,
            auto.dpp.log_likelihood(test),
            auto.n_iter,
            float(auto.history.seconds[-1]),
        ),
        duels=tuple(map(Duel, _scores("K-Ascent", runs["k-ascent"], test), _scores("EM", runs["em"], test))),
        kind=kind_of(group),
        held=held,
        by_em=_suggestions(runs["em"][-1].dpp, held, group),
        by_popularity=_suggestions(popularity, held, group),
    )


def train_and_test(category: str, n: int, seed: int) -> tuple[Baskets, Baskets]:
    return make_registries(category, n, rng=seed).split(TRAIN_SHARE, rng=seed)


def _two_stops(train: Baskets, learner: str, seed: int, progress: bool) -> tuple[FitResult, FitResult]:
    """By the paper's rule, and gone on from there: a learner depends on its kernel alone."""
    fit(train, learner, "wishart", rng=seed, max_iter=2)  # loads compiled code, which is not learning time
    first = fit(train, learner, "wishart", rng=seed, tol=PAPER_TOL, progress=progress)
    return first, fit(train, learner, start=first.kernel, rng=seed, tol=SMALL_TOL, progress=progress)


def _scores(model: str, results: Sequence[FitResult], test: Baskets) -> Iterator[Score]:
    n_iter, seconds = 0, 0.0
    for tol, result in zip((PAPER_TOL, SMALL_TOL), results, strict=True):
        n_iter += result.n_iter
        seconds += float(result.history.seconds[-1])
        yield Score(model, tol, result.log_likelihood, result.dpp.log_likelihood(test), n_iter, seconds)


def most_popular(baskets: Baskets, items: Sequence[str]) -> Label:
    frequency = dict(zip(baskets.items, baskets.frequencies(), strict=True))
    return max(items, key=lambda item: frequency[item])


def _suggestions(dpp: DPP, held: Label, group: Sequence[str]) -> tuple[Suggestion, ...]:
    found = dpp.recommend([held], N_SUGGESTIONS)
    return tuple(Suggestion(each.item, each.probability, each.item in group) for each in found)


def kind_of(group: Sequence[str]) -> str:
    """Of the items of a kind, without their maker and variant."""
    return group[0].split(",")[0].partition(" ")[2]


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def paper_report(demo: PaperDemo) -> Report:
    return {
        "category": demo.category,
        "seed": demo.seed,
        "n_items": demo.n_items,
        "n_train": demo.n_train,
        "n_test": demo.n_test,
        "models": [_model(demo.independent, demo.duels[0].em), _model(demo.auto, demo.duels[-1].em)]
        + [_model(score, duel.em) for duel in demo.duels for score in (duel.k_ascent, duel.em)],
        "comparison": demo.comparison,
        "kind": demo.kind,
        "held": demo.held,
        "suggestions": {
            "em": [asdict(each) for each in demo.by_em],
            "popularity": [asdict(each) for each in demo.by_popularity],
        },
        "again_of_its_kind": {
            "em": sum(each.same_kind for each in demo.by_em),
            "popularity": sum(each.same_kind for each in demo.by_popularity),
        },
        "sentence": demo.sentence,
    }


def _model(score: Score, em: Score) -> Report:
    """Beside the EM that stopped by the same rule."""
    return {
        **asdict(score),
        "em_gain_train_percent": relative_gain(em.train, score.train),
        "em_gain_test_percent": relative_gain(em.test, score.test),
    }


def paper_tables(report: Report) -> Iterator[Shown]:
    yield TextTable(
        f"{count(report['n_train'])} generated registries ({report['category']}, {report['n_items']} items), "
        f"{count(report['n_test'])} held out: mean log-likelihood per registry",
        "The higher, the likelier the registries are under the model; those held out are what counts.",
        ["model", "train>", "test>", "EM gain\ntrain>", "EM gain\ntest>", "steps>", "seconds>"],
        [_model_line(each) for each in report["models"]],
    )
    infinite = any(math.isinf(each["test"]) for each in report["models"])
    yield report["comparison"]
    yield "-inf: some registry has probability zero under that model." if infinite else ""
    both = zip_longest(report["suggestions"]["popularity"], report["suggestions"]["em"])
    yield TextTable(
        f"Suggested next to a registry that holds {shown(report['held'])} (* is again a {report['kind']})",
        "Popularity suggests what sells, whatever is there already; the DPP, what is still missing.",
        ["by popularity", "chance>", f"by the DPP of EM, to {report['models'][-1]['tol']:.0e}", "chance>"],
        [tuple(cell for each in pair for cell in _suggestion(each)) for pair in both],
    )
    yield report["sentence"]


def _model_line(each: Report) -> tuple[str, ...]:
    iterations = "" if each["n_iter"] is None else str(each["n_iter"])
    seconds = "" if each["seconds"] is None else number(each["seconds"], 2)
    gains = ["" if each["model"] == "EM" else percent(each[f"em_gain_{part}_percent"]) for part in ("train", "test")]
    name = each["model"] if each["tol"] is None else f"{each['model']}, to {each['tol']:.0e}"
    return (name, number(each["train"]), number(each["test"]), *gains, iterations, seconds)


def _suggestion(each: Report | None) -> tuple[str, str]:
    if each is None:
        return "", ""
    return f"{shown(each['item'])}{' *' if each['same_kind'] else ''}", chance(each["probability"])

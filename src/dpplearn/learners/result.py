"""Reports of a fit: after every iteration, and at its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.data.weights import in_variance
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.independent import SMOOTHING, IndependentItems, chances
from dpplearn.learners.loop import Arrays, Run, Stop
from dpplearn.learners.quality.weights import QualityWeights
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.record import History, Provenance, Training
from dpplearn.utils.text import Facts, Part, TextTable, as_text, chance, count, number, share, signed, times_as_likely

BASELINE = (
    "Independent items have the frequencies of the training baskets, with half a basket with and half a basket without "
    "each item added, so that no item is impossible."
)

Model = TypeVar("Model", bound=DPP | Mixture, covariant=True)


@dataclass(frozen=True)
class FitProgress:
    """The state of a fit, which callbacks get after every iteration; iteration 0 is the start.

    Examples
    --------
    >>> import dpplearn as dl
    >>> seen, baskets = [], [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]]
    >>> result = dl.fit_dpp(baskets, "em", init="wishart", rng=0, max_iter=2, callback=seen.append)
    >>> [now.iteration for now in seen]
    [0, 1, 2]
    """

    restart: int  # number of the run, from 0
    iteration: int  # number of the iteration in its run
    log_likelihood: float  # mean per training basket
    seconds: float  # since the fit began
    step_size: float  # or learning rate
    evaluations: float  # of the statistics in this run so far
    validation: float  # mean log-likelihood of the validation set; NaN without one
    score: float  # the validation log-likelihood, or without a validation set the training objective
    share: float | None  # fraction of the work that is done, for fits with a fixed schedule
    build: Callable[[], DPP | Mixture] = field(repr=False)
    schedule: Arrays | None = field(default=None, repr=False)  # state of a fit with a fixed schedule

    @property
    def model(self) -> DPP | Mixture:
        """The model so far, with item names and training record. It is computed on access."""
        return self.build()


@dataclass(frozen=True)
class Restart:
    """Summary of one run."""

    start: str
    log_likelihood: float
    n_iter: int
    seconds: float
    stop: Stop

    @classmethod
    def of(cls, run: Run, start: str) -> Restart:
        assert run.stop is not None
        seconds = run.entry.seconds - run.entries[0].seconds
        return cls(start, run.entry.log_likelihood, run.n_iter, seconds, run.stop)

    def cells(self) -> tuple[str, ...]:
        """Return the values as text, for a table."""
        stop = self.stop.name.lower().replace("_", " ")
        return self.start, number(self.log_likelihood, 6), count(self.n_iter), number(self.seconds, 2), stop


@dataclass(frozen=True, repr=False)
class FitResult(Generic[Model]):
    """The best model found, how it was found, and how good it is. All log-likelihoods are means per basket.

    Examples
    --------
    >>> import dpplearn as dl
    >>> result = dl.fit_dpp([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10, shrinkage=0.1)
    >>> result.model.items, result.shrinkage, result.converged
    (('bib', 'cot', 'crib'), 0.1, True)
    >>> result.log_likelihood > result.independent_log_likelihood
    True
    """

    model: Model
    history: History
    stop: Stop
    restarts: tuple[Restart, ...]
    quality: QualityWeights | None = None  # of `fit_quality`

    @property
    def log_likelihood(self) -> float:
        """Mean log-likelihood under the returned model of all baskets given, also of those held out.

        The history has the values of the training set before shrinkage.
        """
        assert self.model.learned.log_likelihood is not None
        return self.model.learned.log_likelihood

    @property
    def independent_log_likelihood(self) -> float:
        """Mean log-likelihood of the same baskets under independent items with their frequencies."""
        assert self.model.learned.independent_log_likelihood is not None
        return self.model.learned.independent_log_likelihood

    @property
    def shrinkage(self) -> float:
        """Shrinkage of the model towards independent items, from 0 (none) to 1 (independent items)."""
        return self.model.learned.shrinkage or 0.0

    @property
    def n_iter(self) -> int:
        """Number of iterations of the best run."""
        return len(self.history) - 1

    @property
    def expected_size(self) -> float:
        """E|Y| under the model."""
        return self.model.expected_size

    @property
    def converged(self) -> bool:
        """Whether the model is the optimum: the tolerance was met, or it is known in closed form."""
        return self.stop in {Stop.TOLERANCE, Stop.CLOSED_FORM}

    def to_dict(self, test: Baskets | None = None) -> dict[str, Any]:
        """Return the report of the fit as plain values.

        Parameters
        ----------
        test : Baskets, optional
            Held-out baskets to compare the model with independent items on.

        Returns
        -------
        dict
            Values that the model does not have are None.
        """
        learned, model = self.model.learned, self.model
        assert model.training is not None  # every model of a fit has it
        return {
            "kind": model.kind,
            "segments": learned.segments,
            "rank": learned.rank,
            "attraction": learned.attraction,
            "shrinkage": self.shrinkage if model.kind == "dpp" else None,
            "shrinkage_chosen": bool(learned.shrinkage_chosen) if model.kind == "dpp" else None,
            "quality": None if self.quality is None else self.quality.to_dict(),
            "n_baskets": learned.n_baskets,
            "n_distinct": learned.n_distinct,
            "n_items": len(model.items),
            "weight": model.training.weight,
            "mean_size": float(model.training.frequencies.sum()),
            "learner": learned.learner,
            "start": learned.start,
            "stop": self.stop.name,
            "stopped_because": self.stop.value,
            "converged": self.converged,
            "n_iter": self.n_iter,
            "evaluations": learned.evaluations,
            "seconds": learned.seconds,
            "validation": learned.validation,
            "validation_log_likelihood": learned.validation_log_likelihood,
            "nonempty": model.nonempty,
            "size": learned.size,
            "to_gain": learned.to_gain,
            "expected_size": self.expected_size,
            "train": self._compared_on_training(),
            "test": None if test is None else self._compared_on(test),
            "independent": model.independent,
            "caution": model.caution,
            "restarts": [{**asdict(each), "stop": each.stop.name} for each in self.restarts],
        }

    def _baseline(self) -> IndependentItems:
        """Independent items with the smoothed frequencies of the training baskets."""
        training, nonempty = self.model.training, self.model.nonempty
        assert training is not None
        p = chances(training.frequencies, training.weight, smoothing=SMOOTHING, nonempty=nonempty)
        return IndependentItems(p, nonempty)

    def _compared_on_training(self) -> dict[str, Any]:
        learned, training = self.model.learned, self.model.training
        assert training is not None
        assert learned.n_baskets is not None
        if learned.size is not None:
            return _comparison(learned.n_baskets, self.log_likelihood, self.independent_log_likelihood)
        # Under independence the mean log-likelihood depends on the item frequencies m alone:
        # Σ m_i log p_i + (1 − m_i) log(1 − p_i), minus log P(Y ≠ ∅).
        p, m = self._baseline().p, training.frequencies
        mean = float(m @ np.log(p) + (1 - m) @ np.log1p(-p))
        if self.model.nonempty:
            mean -= float(np.log(-np.expm1(np.log1p(-p).sum())))
        return _comparison(learned.n_baskets, self.log_likelihood, mean)

    def _compared_on(self, test: Baskets) -> dict[str, Any]:
        return _comparison(len(test), self.model.log_likelihood(test), self._baseline().mean_log_likelihood(test))

    def tables(self, test: Baskets | None = None) -> Iterator[Part]:
        """Yield the report of the fit as tables and sentences.

        Parameters
        ----------
        test : Baskets, optional
            Held-out baskets to compare the model with independent items on.
        """
        report = self.to_dict(test)
        given = ", given that it is not empty" if report["nonempty"] else ""
        given = f", given that it has {count(report['size'], 'item')}" if report["size"] is not None else given
        parts = [(name, report[name]) for name in ("train", "test") if report[name] is not None]
        yield Facts("Fit", list(_facts(report, given)))
        yield TextTable(
            f"Mean log-likelihood per basket{given}, and gain over independent items",
            _in_words(*parts[-1]),
            ["", "baskets>", "gain>", "model>", "independent items>"],
            [(name, *_cells(part)) for name, part in parts],
        )
        yield BASELINE
        if self.quality is not None:
            yield from self.quality.tables()
        if len(self.restarts) > 1:
            columns = ["run>", "start", "log-likelihood>", "iterations>", "seconds>", "stopped"]
            rows = [(str(number), *each.cells()) for number, each in enumerate(self.restarts, start=1)]
            yield TextTable("Runs", "The best run is returned.", columns, rows)
        for name, part in parts:
            yield _remark(
                name, part, report["kind"], of_features=self.quality is not None and not self.quality.of_items
            )
        yield report["caution"]

    def __repr__(self) -> str:
        learned = self.model.learned
        gain = signed(self.log_likelihood - self.independent_log_likelihood)
        return (
            f"FitResult({learned.learner} from {learned.start}, log-likelihood {number(self.log_likelihood)}, {gain} "
            f"compared with independent items, {self.stop.name})"
        )

    def __str__(self) -> str:
        return as_text(self.tables())


def _comparison(n_baskets: int, model: float, baseline: float) -> dict[str, Any]:
    return {
        "n_baskets": n_baskets,
        "log_likelihood": model,
        "independent_log_likelihood": baseline,
        "gain": model - baseline,
    }


def _cells(part: dict[str, Any]) -> tuple[str, ...]:
    values = number(part["log_likelihood"]), number(part["independent_log_likelihood"])
    return count(part["n_baskets"]), signed(part["gain"]), *values


def _facts(report: dict[str, Any], given: str) -> Iterator[tuple[str, str]]:
    yield (
        "data",
        f"{count(report['n_baskets'], 'basket')} ({count(report['n_distinct'])} distinct) of "
        f"{count(report['n_items'], 'item')}, {number(report['mean_size'], 2)} items per basket on average",
    )
    yield "learner", f"{report['learner']} from {report['start']}"
    if report["segments"] is not None:
        attraction = "items attract and repel each other" if report["attraction"] else "items repel each other"
        yield "model", f"mixture of {count(report['segments'], 'segment')}; {attraction} (rank {report['rank']})"
    if report["shrinkage"] is not None:
        chosen = ", chosen by cross-validation" if report["shrinkage_chosen"] else ""
        yield "shrinkage", f"{report['shrinkage']:.3g}{chosen}"
    converged = " (converged)" if report["converged"] else ""
    yield "stopped", f"after {count(report['n_iter'], 'iteration')}{converged}: {report['stopped_because']}"
    yield "learning time", f"{number(report['seconds'], 2)} s"
    yield "expected size", f"{number(report['expected_size'], 2)} items{given if report['size'] is None else ''}"
    if report["to_gain"] is not None:
        yield "still to gain", f"at most {chance(report['to_gain'])} nats per basket, by other weights of these models"
    if report["validation"] is not None:
        value = number(report["validation_log_likelihood"])
        yield "held out", f"{share(report['validation'])} of the baskets; log-likelihood of the validation set {value}"


def _in_words(name: str, part: dict[str, Any]) -> str:
    if not math.isfinite(part["gain"]):
        return "Under the model, and under independent items."
    which = "held-out" if name == "test" else "training"
    return f"A {which} basket is {times_as_likely(part['gain'])} under the model as under independent items."


def _remark(name: str, part: dict[str, Any], kind: str, *, of_features: bool) -> str:
    if math.isinf(part["log_likelihood"]):
        return f"{name}: some basket has probability zero under the model, so the mean log-likelihood is -inf."
    if part["gain"] >= -1e-9:  # up to rounding: with shrinkage 1 there is no difference
        return ""
    below = f"{name}: the model is worse than independent items."
    if of_features:
        return (
            f"{below} Features determine less than the frequency of each item; leave them out to use the frequencies."
        )
    if kind == "mixture":
        return f"{below} Try a smaller tol or more restarts, or fewer segments if there are few baskets."
    return f"{below} Try a smaller tol, or a mixture: a DPP cannot represent items that attract each other."


def with_unseen(
    learned: Provenance, distribution: SetDistribution, training: Training, baskets: Baskets, *, nonempty: bool
) -> Provenance:
    """Return the record with the gain over independent items on baskets that the model was not learned from.

    The gain is in nats per basket, with its standard error; independent items have the frequencies of `training`. The
    record is unchanged where there are fewer than two baskets, or where one is impossible under the model.
    """
    weights = baskets.weights
    if len(baskets) < 2 or not weights.sum() > 0:
        return learned
    p = chances(training.frequencies, training.weight, smoothing=SMOOTHING, nonempty=nonempty)
    each = distribution.log_prob(baskets) - IndependentItems(p, nonempty).log_prob(baskets)
    if not np.isfinite(each[weights > 0]).all():
        return learned
    each = np.where(weights > 0, each, 0)
    mean = float(weights @ each / weights.sum())
    error = float(np.sqrt(in_variance(weights) @ (each - mean) ** 2) / weights.sum())
    return replace(learned, unseen_gain=mean, unseen_error=error)

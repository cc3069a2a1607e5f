"""Reports of a fit: after every iteration, and at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.data.weights import in_variance
from dpplearn.distributions.independent import SMOOTHING, IndependentItems, chances
from dpplearn.learners.loop import Arrays, Run, Stop
from dpplearn.learners.quality.weights import QualityWeights
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import SetModel
from dpplearn.models.record import History, Provenance, Training
from dpplearn.utils.text import Facts, Part, Result, TextTable, count, number, signed

BASELINE = (
    "Independent items have the frequencies of the training baskets; next to test baskets with half a basket with and "
    "half a basket without each item added, so that no item is impossible."
)
FACTS = (  # what a printed report says of a fit
    *("n_baskets", "n_distinct", "n_items", "mean_size", "nonempty", "size", "learner", "start", "segments", "rank"),
    *("attraction", "shrinkage", "shrinkage_chosen", "n_runs", "n_iter", "seconds", "converged", "stopped_because"),
    *("validation", "validation_log_likelihood", "expected_size", "to_gain"),
)

LABELS = {"n_baskets": "baskets", "n_distinct": "distinct baskets", "n_items": "items", "mean_size": "items per basket"}
LABELS |= {"n_runs": "runs", "n_iter": "iterations", "nonempty": "given not empty", "size": "given the size"}

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
    def of(cls, run: Run) -> Restart:
        assert run.stop is not None
        seconds = run.entry.seconds - run.entries[0].seconds
        return cls(run.start, run.entry.log_likelihood, run.n_iter, seconds, run.stop)


@dataclass(frozen=True, repr=False)
class FitResult(Result, Generic[Model]):
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
        model = self.model
        assert model.training is not None  # every model of a fit has it
        baseline = smoothed(model.training, nonempty=model.nonempty).mean_log_likelihood
        return {
            "kind": model.kind,
            **asdict(model.learned),
            "n_items": len(model.items),
            "mean_size": float(model.training.frequencies.sum()),
            "expected_size": model.expected_size,
            "nonempty": model.nonempty,
            "converged": self.converged,
            "stopped_because": self.stop.value,
            "train": _comparison(model.learned.n_baskets, self.log_likelihood, self.independent_log_likelihood),
            "test": None if test is None else _comparison(len(test), model.log_likelihood(test), baseline(test)),
            "independent": bool(model.caution),
            "caution": model.caution,
            "n_runs": len(self.restarts),
            "restarts": [{**asdict(each), "stop": each.stop.name} for each in self.restarts],
            "quality": None if self.quality is None else self.quality.to_dict(),
        }

    def tables(self, test: Baskets | None = None) -> Iterator[Part]:
        """Yield the report of the fit as tables and sentences.

        Parameters
        ----------
        test : Baskets, optional
            Held-out baskets to compare the model with independent items on.
        """
        report = self.to_dict(test)
        facts = [(LABELS.get(name, name.replace("_", " ")), _shown(report[name])) for name in FACTS]
        yield Facts("Fit", [(name, value) for name, value in facts if value])
        rows = []
        for name in ("train", "test") if test is not None else ("train",):
            n, model, independent, gain = report[name].values()
            rows.append((name, count(n), signed(gain), number(model), number(independent)))
        title = "Mean log-likelihood per basket, and gain over independent items"
        yield TextTable(title, BASELINE, ["", "baskets>", "gain>", "model>", "independent items>"], rows)
        if self.quality is not None:
            yield from self.quality.tables()
        yield report["caution"]

    def __repr__(self) -> str:
        learned = self.model.learned
        gain = signed(self.log_likelihood - self.independent_log_likelihood)
        return (
            f"FitResult({learned.learner} from {learned.start}, log-likelihood {number(self.log_likelihood)}, {gain} "
            f"compared with independent items, {self.stop.name})"
        )


def _comparison(n_baskets: int | None, model: float, independent: float) -> dict[str, Any]:
    values = {"log_likelihood": model, "independent_log_likelihood": independent, "gain": model - independent}
    return {"n_baskets": n_baskets, **values}


def _shown(value: Any) -> str:
    """Return a value of a report as text, empty if there is none."""
    return number(value) if isinstance(value, float) else "" if value is None else str(value)


def smoothed(training: Training, *, nonempty: bool) -> IndependentItems:
    """Return independent items with the smoothed frequencies of the training baskets."""
    p = chances(training.frequencies, training.weight, smoothing=SMOOTHING, nonempty=nonempty)
    return IndependentItems(p, nonempty)


def with_unseen_gain(model: SetModel, training: Training, baskets: Baskets) -> Provenance:
    """Return the record with the gain over independent items on baskets that the model was not learned from.

    The gain is in nats per basket, with its standard error; independent items have the frequencies of `training`. The
    record is unchanged where there are fewer than two baskets, or where one is impossible under the model.
    """
    baskets = baskets.subset(baskets.weights > 0)
    weights = baskets.weights
    independent = smoothed(training, nonempty=model.nonempty)
    gain = model.distribution.log_prob(baskets) - independent.log_prob(baskets)
    if len(baskets) < 2 or not np.isfinite(gain).all():
        return model.learned
    mean = float(weights @ gain / weights.sum())
    error = float(np.sqrt(in_variance(weights) @ (gain - mean) ** 2) / weights.sum())
    return replace(model.learned, unseen_gain=mean, unseen_error=error)

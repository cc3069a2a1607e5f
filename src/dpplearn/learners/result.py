"""What a fit reports: after every iteration, and at its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from textwrap import fill
from typing import Generic, TypeVar

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.data.weights import in_variance
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.independent import SMOOTHING, IndependentItems, chances
from dpplearn.learners.loop import Arrays, Run, Stop
from dpplearn.learners.quality.weights import QualityWeights
from dpplearn.models.dpp import DPP
from dpplearn.models.history import History
from dpplearn.models.mixture import Mixture
from dpplearn.models.provenance import Provenance
from dpplearn.models.training import Training
from dpplearn.utils.text import WIDTH, count, signed, times_as_likely

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

    def __str__(self) -> str:
        return (
            f"{self.start:<8} {self.log_likelihood:>12.6f}  {self.n_iter:>5} iterations  {self.seconds:>8.2f} s  "
            f"{self.stop.name.lower().replace('_', ' ')}"
        )


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

    def __repr__(self) -> str:
        how = self.model.learned
        gain = self.log_likelihood - self.independent_log_likelihood
        given = ", given that it is not empty" if how.nonempty else ""
        given = f", given that it has {count(how.size, 'item')}" if how.size is not None else given
        compared = f"{signed(gain)} nats{', BELOW independent items' if gain < -1e-9 else ''}"
        if self.shrinkage == 1:
            compared = "the model is independent items with smoothed frequencies"
        chosen = " (chosen by cross-validation)" if how.shrinkage_chosen else ""
        facts = {
            "a basket is": f"{times_as_likely(gain)} under the model, compared with independent items ({compared})",
            "shrinkage": f"{self.shrinkage:.3g}{chosen}" if self.shrinkage else "",
            "stopped": f"after {self.n_iter} iterations and {self.history.seconds[-1]:.2f} s"
            f"{' (converged)' if self.converged else ''}: {self.stop.value}",
            "log-likelihood": f"{self.log_likelihood:.4f} per basket{given}",
            "independent items": f"{self.independent_log_likelihood:.4f} per basket",
            "expected size": f"{self.expected_size:.2f} items{given if how.size is None else ''}",
        }
        if how.to_gain is not None:
            facts["still to gain"] = f"{how.to_gain:.1g} at most, by other weights of these models"
        if how.validation is not None:
            facts["held out"] = f"{how.validation:.0%}, {how.validation_log_likelihood:.4f} per validation basket"
        lines = [
            f"FitResult: {how.learner} from {how.start}, {count(how.n_baskets, 'basket')} "
            f"({how.n_distinct:,} distinct) of {count(len(self.model.items), 'item')}",
            *(_fact(name, text) for name, text in facts.items() if text),
        ]
        if len(self.restarts) > 1:
            lines.append(f"  runs (the best of {len(self.restarts)} is returned)")
            lines += [f"    {number}  {line}" for number, line in enumerate(self.restarts)]
        if self.model.independent:
            lines.append(fill(self.model.caution, WIDTH, initial_indent="  ", subsequent_indent="  "))
        return "\n".join(lines)


def _fact(name: str, text: str) -> str:
    return fill(text, WIDTH, initial_indent=f"  {name:<17}  ", subsequent_indent=" " * 21, break_on_hyphens=False)


def with_unseen(
    learned: Provenance, law: SetDistribution, training: Training, baskets: Baskets, *, nonempty: bool
) -> Provenance:
    """Return the record with the gain over independent items on baskets that the model was not learned from.

    The gain is in nats per basket, with its standard error; independent items have the frequencies of `training`. The
    record is unchanged where there are fewer than two baskets, or where one is impossible under the model.
    """
    weights = baskets.weights
    if len(baskets) < 2 or not weights.sum() > 0:
        return learned
    p = chances(training.frequencies, training.weight, smoothing=SMOOTHING, nonempty=nonempty)
    each = law.log_prob(baskets) - IndependentItems(p, nonempty).log_prob(baskets)
    if not np.isfinite(each[weights > 0]).all():
        return learned
    each = np.where(weights > 0, each, 0)
    mean = float(weights @ each / weights.sum())
    error = float(np.sqrt(in_variance(weights) @ (each - mean) ** 2) / weights.sum())
    return replace(learned, unseen_gain=mean, unseen_error=error)

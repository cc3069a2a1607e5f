"""What a fit reports: after every iteration, and at its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from textwrap import fill

import numpy as np

from dpplearn.errors import InputError
from dpplearn.fitting.quality_result import QualityWeights
from dpplearn.fitting.runs import Restart
from dpplearn.kernels.families import AnyKernel
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.learners.loop import Arrays, Step, Stop
from dpplearn.learners.registry import LEARNERS
from dpplearn.models.dpp import DPP
from dpplearn.models.history import History
from dpplearn.models.mixture import Mixture
from dpplearn.tools.tables import WIDTH
from dpplearn.tools.words import count, likelier, signed


@dataclass(frozen=True)
class FitProgress:
    """What a callback is told after every iteration; iteration 0 is the start.

    Examples
    --------
    >>> import dpplearn as dl
    >>> told, baskets = [], [["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]]
    >>> result = dl.fit(baskets, "em", "wishart", rng=0, max_iter=2, callback=told.append)
    >>> [now.iteration for now in told]
    [0, 1, 2]
    """

    restart: int
    iteration: int
    log_likelihood: float
    seconds: float
    step_size: float
    evaluations: float
    validation: float  # the mean log-likelihood of the baskets set aside; NaN where none are
    step: Step = field(repr=False)
    build: Callable[[], DPP | Mixture] = field(repr=False)
    schedule: Arrays | None = field(default=None, repr=False)  # state of a fit with a fixed schedule

    @property
    def score(self) -> float:
        """The validation log-likelihood, or without a validation set the training objective."""
        return self.log_likelihood if np.isnan(self.validation) else self.validation

    @property
    def kernel(self) -> AnyKernel:
        """The kernel so far. It is computed on access, which may take longer than an iteration."""
        return self.step.kernel

    @property
    def model(self) -> DPP | Mixture:
        """The model so far, with item names and training record. It is computed on access."""
        return self.build()


@dataclass(frozen=True, repr=False)
class FitResult:
    """The best model found, how it was found, and how good it is. All log-likelihoods are means per basket.

    Examples
    --------
    >>> import dpplearn as dl
    >>> result = dl.fit([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]] * 10, shrinkage=0.1)
    >>> result.dpp.items, result.shrinkage, result.converged
    (('bib', 'cot', 'crib'), 0.1, True)
    >>> result.log_likelihood > result.independent_log_likelihood
    True
    """

    model: DPP | Mixture
    history: History
    stop: Stop
    restarts: tuple[Restart, ...]
    independent_log_likelihood: float
    weights: QualityWeights | None = None  # of learner="quality"

    @property
    def dpp(self) -> DPP:
        """The model, where it is a DPP."""
        if not isinstance(self.model, DPP):
            raise InputError("the model learned is a Mixture, not a DPP: use `model`, or learn a DPP with model='dpp'")
        return self.model

    @property
    def kernel(self) -> Kernel:
        """Of the model, where it is a DPP."""
        return self.dpp.kernel

    @property
    def quality(self) -> QualityWeights:
        """The weights of quality with their standard errors, and the strengths of similarities."""
        if self.weights is None:
            raise InputError("weights of quality are learned by learner='quality' alone")
        return self.weights

    @property
    def log_likelihood(self) -> float:
        """Of the training data under the model returned, given that baskets are not empty if it was learned so.

        The history has the likelihood that learning maximised, before shrinkage.
        """
        assert self.model.learned.log_likelihood is not None
        return self.model.learned.log_likelihood

    @property
    def shrinkage(self) -> float:
        """Shrinkage of the model towards independent items, from 0 (none) to 1 (independent items)."""
        assert self.model.learned.shrinkage is not None
        return self.model.learned.shrinkage

    @property
    def n_iter(self) -> int:
        """How many iterations the best run took."""
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
        beside = f"{signed(gain)} nats{', BELOW independent items' if gain < -1e-9 else ''}"
        if gain < 0 and not self.shrinkage and how.learner in LEARNERS and LEARNERS[how.learner].as_published:
            beside += ": the paper's learners end where they end; learner='auto' does not end below"
        if self.shrinkage == 1:
            beside = "the model is independent items with smoothed frequencies"
        chosen = " (chosen by cross-validation)" if how.shrinkage_chosen else ""
        facts = {
            "a basket is": f"{likelier(gain)} under the model, compared with independent items ({beside})",
            "shrinkage": f"{self.shrinkage:.3g}{chosen}" if self.shrinkage else "",
            "stopped": f"after {self.n_iter} iterations and {self.history.seconds[-1]:.2f} s"
            f"{' (converged)' if self.converged else ''}: {self.stop.value}",
            "log-likelihood": f"{self.log_likelihood:.4f} per basket{given}",
            "independent items": f"{self.independent_log_likelihood:.4f} per basket",
            "expected size": f"{self.expected_size:.2f} items{given if how.size is None else ''}",
        }
        if how.to_gain is not None:
            facts["to be gained"] = f"{how.to_gain:.1g} at most, by other weights of these kernels"
        if how.validation is not None:
            facts["set aside"] = f"{how.validation:.0%}, {how.validation_log_likelihood:.4f} per basket"
        lines = [
            f"FitResult: {how.learner} from {how.start}, {count(how.n_baskets, 'basket')} "
            f"({how.n_distinct:,} distinct) of {count(len(self.model.items), 'item')}",
            *(_fact(name, said) for name, said in facts.items() if said),
        ]
        if len(self.restarts) > 1:
            lines.append(f"  runs (the best of {len(self.restarts)} is returned)")
            lines += [f"    {number}  {line}" for number, line in enumerate(self.restarts)]
        if self.model.independent:
            lines.append(fill(self.model.caution, WIDTH, initial_indent="  ", subsequent_indent="  "))
        return "\n".join(lines)


def _fact(name: str, said: str) -> str:
    return fill(said, WIDTH, initial_indent=f"  {name:<17}  ", subsequent_indent=" " * 21, break_on_hyphens=False)

"""The learners by name. Each is a generator of ever better kernels; `loop` decides when to stop."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from dpplearn.baskets import Baskets
from dpplearn.kernel import Kernel
from dpplearn.learners.adam import adam
from dpplearn.learners.ascent import k_ascent
from dpplearn.learners.auto import auto
from dpplearn.learners.em import em
from dpplearn.learners.lbfgs import lbfgs
from dpplearn.learners.loop import Memory, Rule, Step
from dpplearn.learners.mm import mm
from dpplearn.learners.natural_em import natural_em
from dpplearn.learners.picard import picard
from dpplearn.learners.stopping import relative_change, still_to_gain

Steps = Callable[[Kernel, Baskets, int | None, Memory], Iterator[Step]]


@dataclass(frozen=True)
class Learner:
    """Where steps come from, and the rule whose figure is compared with the tolerance.

    `nonempty` makes the steps for P(Y given Y ≠ ∅), where the learner can. `tries_starts` says whether `fit` may look
    for a better start than the one asked for.
    """

    steps: Steps
    rule: Rule
    nonempty: Steps | None = None
    tries_starts: bool = False

    @property
    def as_published(self) -> bool:
        """Whether it is one of the paper's, whose runs are the authors' step by step and end where theirs do."""
        return self.rule is relative_change


LEARNERS: dict[str, Learner] = {
    "auto": Learner(auto, still_to_gain, partial(auto, nonempty=True), tries_starts=True),
    "em": Learner(em, relative_change),
    "k-ascent": Learner(k_ascent, relative_change),
    "natural-em": Learner(natural_em, still_to_gain),
    "lbfgs": Learner(lbfgs, still_to_gain, partial(lbfgs, nonempty=True)),
    "picard": Learner(picard, still_to_gain),
    "mm": Learner(mm, still_to_gain),
    # a few steps of Adam without a new best mean nothing
    "adam": Learner(adam, partial(still_to_gain, fewest_steps=100), partial(adam, nonempty=True)),
}

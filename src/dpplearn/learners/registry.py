"""The learners by name. Each is a generator of ever better kernels; `loop` decides when to stop."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpplearn.learners.factored.factored import factored
from dpplearn.learners.loop import Rule, Step, Stop
from dpplearn.learners.mixture.mixture import mixture
from dpplearn.learners.quality.quality import quality
from dpplearn.learners.stopping import last_gain, never, relative_change, still_to_gain
from dpplearn.learners.symmetric.adam import adam
from dpplearn.learners.symmetric.ascent import k_ascent
from dpplearn.learners.symmetric.auto import auto
from dpplearn.learners.symmetric.em import em
from dpplearn.learners.symmetric.lbfgs import lbfgs
from dpplearn.learners.symmetric.mm import mm
from dpplearn.learners.symmetric.natural_em import natural_em
from dpplearn.learners.symmetric.picard import picard

Steps = Callable[[Any, Any], Iterator[Step]]  # from a kernel and a problem of the learner's kind


@dataclass(frozen=True)
class Learner:
    """Where steps come from, the rule whose figure is compared with the tolerance, and what `fit` may do with it."""

    name: str
    steps: Steps
    rule: Rule
    matrices: int = 23  # N×N matrices at the peak, by the growth of resident memory from N = 300 to 700
    as_published: bool = False  # its runs are the authors' step by step, end where theirs do, and by a relative rule
    learns_nonempty: bool = False  # whether it can learn P(Y given Y ≠ ∅)
    usually_nonempty: bool = False  # whether it does where no basket is empty, unless told otherwise
    model: str = "dpp"  # what it learns
    whole_kernel: bool = True  # all of it is learned, from a start; otherwise some of it is given
    at_end: Stop = Stop.NO_ASCENT  # why a run stops that ends by itself
    usual_segments: int = 10
    usual_rank: int = 20
    usual_tol: float = 1e-4  # nats per basket, or relative where the rule is
    usual_shrinkage: float | str = 0.0
    usual_start: str = "moments"
    random_start: str = "wishart"


OURS = (
    Learner(
        "auto",
        auto,
        still_to_gain,
        matrices=37,
        learns_nonempty=True,
        usually_nonempty=True,
        usual_shrinkage="auto",
    ),
    Learner(
        "mixture",
        mixture,
        partial(still_to_gain, fewest_steps=30),  # what segments learned alone leave is slow at first
        matrices=30,
        learns_nonempty=True,
        usually_nonempty=True,
        model="mixture",
        usual_tol=2e-3,
        usual_start="random",
        random_start="random",
    ),
)
FACTORED = Learner(
    "factored",
    factored,
    never,
    learns_nonempty=True,
    usually_nonempty=True,
    model="mixture",
    at_end=Stop.PLANNED,
    usual_segments=30,
    usual_rank=8,
    usual_tol=5e-3,
    usual_start="random",
    random_start="random",
)
PUBLISHED = (
    Learner("em", em, relative_change, as_published=True),
    Learner("k-ascent", k_ascent, relative_change, as_published=True),
    Learner("natural-em", natural_em, still_to_gain),
    Learner("lbfgs", lbfgs, still_to_gain, matrices=37, learns_nonempty=True, usual_shrinkage="auto"),
    Learner("picard", picard, still_to_gain),
    Learner("mm", mm, still_to_gain),
    # a few steps of Adam without a new best mean nothing
    Learner("adam", adam, partial(still_to_gain, fewest_steps=100), learns_nonempty=True),
)
QUALITY = Learner(
    "quality",
    quality,
    last_gain,
    learns_nonempty=True,
    usually_nonempty=True,
    whole_kernel=False,
    usual_tol=1e-9,
)
LEARNERS: dict[str, Learner] = {each.name: each for each in (*OURS, FACTORED, *PUBLISHED, QUALITY)}


def learners_of(model: str, *, whole_kernel: bool = False) -> list[str]:
    """The names of the learners of a kind of model; if wanted, of those alone that learn all of its kernel."""
    of_model = {name: each for name, each in LEARNERS.items() if each.model == model}
    return sorted(name for name, each in of_model.items() if each.whole_kernel or not whole_kernel)

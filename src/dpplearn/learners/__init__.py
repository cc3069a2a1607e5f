"""The learners by name. Each is a generator of ever better kernels; `loop` decides when to stop."""

from collections.abc import Callable, Iterator

from dpplearn.baskets import Baskets
from dpplearn.kernel import Kernel
from dpplearn.learners.ascent import k_ascent
from dpplearn.learners.em import em
from dpplearn.learners.loop import Step

Learner = Callable[[Kernel, Baskets, int | None], Iterator[Step]]

LEARNERS: dict[str, Learner] = {"em": em, "k-ascent": k_ascent}

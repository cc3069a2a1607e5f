"""SlatesFit: how strongly to diversify another recommender's lists, as people's choices from them say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.models.reranking import Interaction, tuned, tuned_reranked
from dpplearn.utils.text import WIDTH, count, number, times_as_likely

LEVEL = 0.05


class SlateNumber(NamedTuple):
    """One of the four numbers, with its standard error; NaN where the slates do not tell it."""

    value: float
    standard_error: float


@dataclass(frozen=True, repr=False)
class SlatesFit:
    """What slates say: L = D S D over the candidates of each, D² = exp(intercept + slope · score) and
    S = (1 − strength) I + strength · exp(−(1 − s)/reach²), s how alike candidates are.

    `shown` tells whether repulsion makes what was chosen clearly likelier, by a likelihood-ratio test (`p`). Given to
    `rerank` as its strength, it reranks by these numbers, and where repulsion is not shown, by the scores alone.

    Examples
    --------
    See `fit_slates`.
    """

    intercept: SlateNumber
    slope: SlateNumber
    strength: SlateNumber
    reach: SlateNumber
    log_likelihood: float  # mean per slate
    independent_log_likelihood: float  # the same without repulsion
    p: float
    n_slates: int
    n_chosen: int
    evaluations: int
    converged: bool
    catalogue: Catalogue = field(compare=False)
    similarity: Interaction | None = field(default=None, compare=False)  # None: that of a model

    @property
    def shown(self) -> bool:
        """Whether candidates that are alike clearly repel each other."""
        return self.p < LEVEL

    def tuned(self, base: Interaction) -> Interaction:
        """Return the interaction that these parameters make of another; without repulsion if none is significant."""
        return tuned(base, self.strength.value if self.shown else 0.0, self.reach.value)

    def rerank(self, items: Sequence[Label], scores: Sequence[float], k: int = 10) -> list[Label]:
        """Choose k candidates by their scores and the similarity that the slates were fitted with.

        Parameters
        ----------
        items
            The candidates.
        scores
            Of the kind that the slates have.
        k
            How many at most.

        Returns
        -------
        list of labels
            In the order they were taken.

        Examples
        --------
        See `fit_slates`.
        """
        return tuned_reranked(self, self.similarity, self.catalogue, [items], [scores], k, "error")[0]

    def __repr__(self) -> str:
        def line(name: str, each: SlateNumber) -> str:
            error = f" ± {number(each.standard_error, 3)}" if np.isfinite(each.standard_error) else ""
            return f"  {name:<10} {number(each.value, 3)}{error}"

        gain = self.log_likelihood - self.independent_log_likelihood
        said = "items that are alike clearly repel each other" if self.shown else "no repulsion is shown"
        numbers: dict[str, Any] = {name: getattr(self, name) for name in ("intercept", "slope", "strength", "reach")}
        return "\n".join(
            [
                f"SlatesFit: {count(self.n_slates, 'slate')}, {count(self.n_chosen, 'item')} chosen",
                *(line(name, each) for name, each in numbers.items()),
                f"  {said} (p {self.p:.2g}):",
                fill(
                    f"choices are {times_as_likely(gain)}, compared with scores alone ({gain:+.4f} nats per slate)",
                    WIDTH,
                    initial_indent="  ",
                    subsequent_indent="  ",
                ),
            ]
        )

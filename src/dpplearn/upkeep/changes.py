"""What an update changed: items that came and went, how likely baskets are, and recommendations that moved."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from textwrap import fill
from typing import Any

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.data.baskets import Baskets, known_baskets
from dpplearn.data.catalogue import Label
from dpplearn.data.totals import item_weights
from dpplearn.errors import InputError
from dpplearn.evaluation.metrics import weighted_mean
from dpplearn.models.model import SetModel
from dpplearn.tools.tables import WIDTH, TextTable, as_plain_text
from dpplearn.tools.words import contents, count, likelier, number, shown

EXPECTED = 5  # new baskets that should hold an item, for it to have vanished where none does
LOOKED_AT, LENGTH = 10, 5  # items whose recommendations are compared, and how many of each
MOST_NAMED = 5  # items in a sentence


@dataclass(frozen=True)
class Counted:
    """An item, and how many of the new baskets hold it."""

    item: Label
    n_baskets: float


@dataclass(frozen=True)
class Moved:
    """What to add to an item: which entered the first five, and which left."""

    item: Label
    entered: tuple[Label, ...]
    left: tuple[Label, ...]


@dataclass(frozen=True)
class Likelihood:
    """The mean log-likelihood per basket under the model before and the one after, by the items that both have."""

    n_baskets: int
    n_items: int
    before: float
    after: float
    in_sample: bool  # whether the model after was learned from these baskets

    @property
    def gain(self) -> float:
        """In nats per basket."""
        return self.after - self.before

    def __str__(self) -> str:
        which = "the new baskets, from which it has learned" if self.in_sample else count(self.n_baskets, "test basket")
        if not math.isfinite(self.gain):
            return f"On {which}, the log-likelihood per basket went from {number(self.before)} to {number(self.after)}."
        figures = f"log-likelihood {number(self.before)} before, {number(self.after)} after"
        return f"On {which}, a basket is {likelier(self.gain)}, compared with before, on average ({figures})."


@dataclass(frozen=True)
class Changes:
    """What an update changed. Printed, it is a summary.

    Examples
    --------
    >>> likelihood = Likelihood(40, 12, -3.0, -2.9, in_sample=False)
    >>> print(Changes(40, 200.0, 40.0, 10000, likelihood, (Counted("mobile", 7.0),), (), ()))
    Learned on from 40 new baskets, beside 200 from before, for which 10,000 sets
    drawn from the model stood in.
    On 40 test baskets, a basket is 1.11 times as likely, compared with before, on
    average (log-likelihood -3.0000 before, -2.9000 after).
    1 new item: mobile (in 7 baskets).
    No item has vanished.
    No recommendation for the most frequent items has moved.
    """

    n_new: int
    past_weight: float  # how many baskets the past still counts as
    new_weight: float
    drawn: int | None  # sets that stood in for the past; None where its baskets were there
    likelihood: Likelihood
    new_items: tuple[Counted, ...]
    vanished: tuple[Label, ...]  # that should have been in five or more of the new baskets, and were in none
    moved: tuple[Moved, ...]

    @property
    def sentences(self) -> Iterator[str]:
        """All but the recommendations."""
        stood_in = "" if self.drawn is None else f", for which {count(self.drawn, 'set')} drawn from the model stood in"
        counted = "" if self.new_weight == self.n_new else f", which count as {number(self.new_weight, 1)}"
        new, past = count(self.n_new, "new basket"), count(self.past_weight)
        yield f"Learned on from {new}{counted}, beside {past} from before{stood_in}."
        yield str(self.likelihood)
        yield _of_new(self.new_items)
        yield _of_vanished(self.vanished)
        if not self.moved:
            yield "No recommendation for the most frequent items has moved."

    @property
    def table(self) -> TextTable:
        """The recommendations that moved."""
        return TextTable(
            "What to add to the most frequent items",
            f"Which items came among the first {LENGTH} recommended beside an item, and which went.",
            ["beside", "entered;", "left;"],
            [(shown(each.item), contents(each.entered), contents(each.left)) for each in self.moved],
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain data for JSON.

        Returns
        -------
        dict

        Examples
        --------
        >>> Changes(1, 2.0, 1.0, None, Likelihood(1, 2, -1.0, -1.0, True), (), ("cot",), ()).to_dict()["vanished"]
        ['cot']
        """
        plain = asdict(self)
        return {
            **plain,
            "new_items": list(plain["new_items"]),
            "vanished": list(self.vanished),
            "moved": list(plain["moved"]),
        }

    def __str__(self) -> str:
        lines = [fill(each, WIDTH, break_on_hyphens=False) for each in self.sentences]
        return "\n".join([*lines, *(as_plain_text(self.table) if self.moved else [])])


def check_comparable(before: SetModel, baskets: Baskets) -> None:
    """That there is something to compare on, before a model is learned."""
    if not known_baskets(baskets, before.catalogue, "drop")[0].total_weight > 0:
        raise InputError(
            f"none of {count(len(baskets), 'basket')} holds an item that the model has, to compare both models on; "
            "pass others for that (test=, --test)"
        )


def likelihoods(before: SetModel, after: SetModel, baskets: Baskets, *, in_sample: bool) -> Likelihood:
    """Of what baskets hold of the items that the model before has. Where its baskets are never empty, those that hold
    nothing of them are left out, and both are given that there is something."""
    seen, _ = known_baskets(baskets, before.catalogue, "drop")
    common = after if after.catalogue == before.catalogue else after.restrict(before.items)
    then, now = (weighted_mean(_log_probs(model, seen, before.nonempty), seen.weights) for model in (before, common))
    return Likelihood(len(seen), len(before.items), then, now, in_sample)


def _log_probs(model: SetModel, baskets: Baskets, nonempty: bool) -> Floats:
    found = model.log_prob(baskets)
    return found - np.log1p(-np.exp(model.log_prob([]))) if nonempty else found


def changed_items(before: SetModel, new: Baskets) -> dict[str, tuple[Any, ...]]:
    """Those that are new, the most frequent first, and those that have vanished, the most expected first."""
    counts = item_weights(new)
    unknown = [place for place in np.argsort(-counts, kind="stable") if new.items[place] not in before.catalogue]
    here = new.catalogue.translation(before.catalogue)
    seen = np.where(here >= 0, counts[here], 0)
    expected = before.marginals() * new.total_weight
    gone = [place for place in np.argsort(-expected, kind="stable") if expected[place] >= EXPECTED and not seen[place]]
    return {
        "new_items": tuple(Counted(new.items[place], float(counts[place])) for place in unknown if counts[place] > 0),
        "vanished": before.catalogue.select(gone),
    }


def moved_recommendations(before: SetModel, after: SetModel, new: Baskets) -> tuple[Moved, ...]:
    """Of the most frequent items of the new baskets that are possible under both models, those for which something
    moved."""
    order = np.argsort(-item_weights(new), kind="stable")
    possible = [{*model.catalogue.select(np.flatnonzero(model.marginals() > 0))} for model in (before, after)]
    looked_at = [new.items[place] for place in order if all(new.items[place] in each for each in possible)][:LOOKED_AT]
    found = []
    for item in looked_at:
        first, second = ([each.item for each in model.recommend([item], LENGTH)] for model in (before, after))
        entered, left = (
            tuple(a for a in these if a not in those) for these, those in ((second, first), (first, second))
        )
        if entered or left:
            found.append(Moved(item, entered, left))
    return tuple(found)


def _of_new(items: tuple[Counted, ...]) -> str:
    if not items:
        return "No item is new."
    named = "; ".join(f"{shown(each.item)} (in {count(each.n_baskets, 'basket')})" for each in items[:MOST_NAMED])
    more = f"; and {count(len(items) - MOST_NAMED)} more" if len(items) > MOST_NAMED else ""
    return f"{count(len(items), 'new item')}: {named}{more}."


def _of_vanished(items: tuple[Label, ...]) -> str:
    if not items:
        return "No item has vanished."
    more = f"; and {count(len(items) - MOST_NAMED)} more" if len(items) > MOST_NAMED else ""
    verb, stays = ("has", "it stays") if len(items) == 1 else ("have", "they stay")
    gone = f"{count(len(items), 'item')} {verb} vanished: no new basket holds {contents(items[:MOST_NAMED])}{more}"
    return f"{gone}. In the model {stays}, ever rarer."

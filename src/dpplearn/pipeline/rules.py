"""What is kept of raw orders, and in which order the rules are applied."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from dpplearn.errors import InputError, whole_number

COUNTS = ("products", "rows")

# In the order in which they are applied. What a rule loses is what all rules before it had kept.
RULES = {
    "drop": "named with --drop",
    "weights": "baskets whose rows differ in their weight",
    "min_products": "baskets of fewer than {min_products} {count}",
    "max_products": "baskets of more than {max_products} {count}",
    "repeats": "the same item again in one basket",
    "min_count": "items in fewer than {min_count} sub-baskets",
    "top_items": "items beyond the {top_items} most frequent of a category",
    "min_items": "categories of fewer than {min_items} items",
    "min_baskets_per_item": "categories of fewer than {min_baskets_per_item:g} sub-baskets per item",
    "split": "categories with nothing to learn from after the split",
    "kept": "kept",
}
STAGE = {rule: number for number, rule in enumerate(RULES)}


@dataclass(frozen=True)
class Rules:
    """The rules of the paper, unless told otherwise. [GKFT14, section 4.1]"""

    min_products: int = 5
    max_products: int = 100
    count: str = "products"
    top_items: int = 100
    min_count: int = 100
    min_items: int = 25
    min_baskets_per_item: float = 2
    train: float = 0.7
    seed: int = 0
    split_time: str | None = None
    drop: tuple[str, ...] = ()
    items: tuple[str, ...] = ()  # all where there is none

    def __post_init__(self) -> None:
        for name in ("min_baskets_per_item", "train"):  # 2 and 2.0 are one rule
            object.__setattr__(self, name, _as_float(name, getattr(self, name)))
        for name in ("min_products", "max_products", "top_items", "min_count", "min_items"):
            whole_number(name, getattr(self, name), 1)
        whole_number("seed", self.seed, 0, math.inf)
        if self.min_products > self.max_products:
            raise InputError(f"min_products is {self.min_products}, more than max_products, {self.max_products}")
        if self.count not in COUNTS:
            raise InputError(f"count is {self.count!r}; expected one of {', '.join(COUNTS)}")
        if self.top_items < self.min_items:
            raise InputError(
                f"a category keeps at most top_items = {self.top_items} items and needs min_items = {self.min_items}; "
                "none can be kept: raise top_items or lower min_items"
            )
        if not 0 <= self.min_baskets_per_item < math.inf:
            raise InputError(f"min_baskets_per_item is {self.min_baskets_per_item:g}; expected a number, 0 or more")
        if not 0 < self.train <= 1:
            raise InputError(f"train is {self.train:g}; expected the share to learn from, above 0 and at most 1")
        if self.split_time is not None:
            _check_time(self.split_time)

    @property
    def drops(self) -> bool:
        """Whether there may be items that are left out before anything is counted."""
        return bool(self.drop or self.items)

    def words(self, rule: str) -> str:
        """A rule as people read it."""
        if rule == "drop" and self.items:
            return f"{RULES[rule]}, or not with --keep-items" if self.drop else "not named with --keep-items"
        return RULES[rule].format(**asdict(self))

    def as_document(self) -> dict[str, Any]:
        """What a manifest says of them."""
        return {**asdict(self), "drop": list(self.drop), "items": list(self.items)}


def _as_float(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {value!r}; expected a number") from None


def _check_time(text: str) -> None:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"split_time is {text!r}; expected a date or a time, as 2026-10-01 or 2026-10-01T12:00"
        ) from None

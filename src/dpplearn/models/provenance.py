"""How a model came about: what it was learned by and from, and how good it was on that."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from dpplearn.errors import InputError

MAX_FLOAT = sys.float_info.max
TYPES = {"str": str, "int": int, "float": float, "bool": bool}


@dataclass(frozen=True)
class Provenance:
    """What `fit` says of the model that it returns; None is what is not known, and of a model made by hand that is all.

    Log-likelihoods are means per basket, under the law that `nonempty` or `size` names.

    Examples
    --------
    >>> import dpplearn as dl
    >>> learned = dl.fit_dpp([["cot"], ["crib"], ["cot", "bib"], ["crib", "bib"]], "em", max_iter=3).model.learned
    >>> learned.learner, learned.n_baskets, learned.nonempty
    ('em', 4, False)
    """

    learner: str | None = None
    start: str | None = None  # what the best run started from
    restarts: int | None = None
    n_iter: int | None = None  # of the best run
    evaluations: float | None = None  # of the statistics
    stop: str | None = None  # the name of a `Stop`
    segments: int | None = None  # of a mixture, as asked for
    rank: int | None = None  # of the repulsive part of the interaction of a mixture
    attraction: bool | None = None  # whether items of the mixture can attract each other
    shrinkage: float | None = None  # towards independent items, from 0 to 1
    shrinkage_chosen: bool | None = None  # by cross-validation
    nonempty: bool | None = None  # whether it was learned given that baskets are not empty
    size: int | None = None  # how many items every basket has, where it was learned given that
    to_gain: float | None = None  # nats per basket at most that better weights of the same kernels would gain
    log_likelihood: float | None = None
    independent_log_likelihood: float | None = None
    n_baskets: int | None = None
    n_distinct: int | None = None
    weight: float | None = None  # of the baskets given, in baskets: that of the training statistics
    seconds: float | None = None
    validation: float | None = None  # fraction of the baskets that were held out
    validation_log_likelihood: float | None = None
    added: str | None = None  # what is said of items that were added since
    unseen_gain: float | None = None  # over independent items, per basket that neither learning nor choosing saw
    unseen_error: float | None = None  # the standard error of that

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Provenance:
        """From what `to_dict` gave.

        Parameters
        ----------
        document
            Values by name; what a later version may have added is left out.

        Returns
        -------
        Provenance

        Examples
        --------
        >>> Provenance.of({"learner": "em", "moon": "full"}) == Provenance(learner="em")
        True
        """
        if not isinstance(document, Mapping):
            raise InputError(f"learned must be a mapping, got {type(document).__name__}")
        types = {field.name: TYPES[str(field.type).split(" ")[0]] for field in fields(cls)}
        known = {name: value for name, value in document.items() if name in types}
        for name, value in known.items():
            if value is not None and not _has_type(value, types[name]):
                raise InputError(f"learned.{name} must be {types[name].__name__}, got {value!r}")
        return cls(**known)

    def to_dict(self) -> dict[str, Any]:
        """What is known, by name.

        Returns
        -------
        dict
            Without what is None.

        Examples
        --------
        >>> Provenance(learner="em", shrinkage=0.0).to_dict()
        {'learner': 'em', 'shrinkage': 0.0}
        """
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in named.items() if value is not None}


def _has_type(value: Any, wanted: type) -> bool:
    """Return whether a value has a type; integers that a float can represent are floats, too."""
    if wanted is float and isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < MAX_FLOAT
    return isinstance(value, wanted) and isinstance(value, bool) == (wanted is bool)

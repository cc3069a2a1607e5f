"""Items that stand in for each other under a model: pairs and groups."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.catalogue import Label
from dpplearn.errors import InputError, whole_number
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.related_pairs import surely_apart
from dpplearn.models.relations import pair_table

AT_LEAST = 0.4  # of registries this gives the kinds of product: all the bathtubs, all the monitors


class SubstitutePair(NamedTuple):
    """Two items and how far the model keeps them apart."""

    first: Label
    second: Label
    substitution: float  # 1 − probability/chance
    probability: float  # of both in a set
    chance: float  # of both, were items independent
    met: float  # the weight of the training baskets that hold both; NaN if the model does not tell


class SubstituteGroup(NamedTuple):
    """Items that stand in for each other, the likeliest first."""

    items: tuple[Label, ...]
    substitution: float  # the mean over its pairs
    missing: float  # pairs per set that chance would bring together and the model does not
    met: float  # the weight of the training baskets that hold a pair, summed over pairs; NaN if the model does not tell
    expected: float  # the same by chance


def substitute_pairs(model: DPP | Mixture, k: int = 10) -> list[SubstitutePair]:
    """The pairs of items that a model keeps apart most.

    Of a `Mixture` the substitution is 1 − lift, and pairs come by how sure that is, as the training data have it.
    Pairs that chance explains are left out: of those given, at most one in twenty is there by mistake [BH95], as far as
    the model tells what it was learned from.

    Parameters
    ----------
    model
        A model.
    k
        How many pairs at most; pairs that the model does not keep apart are left out.

    Returns
    -------
    list of SubstitutePair
        The two items kept apart most come first.

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP.from_K([[0.5, 0.4], [0.4, 0.5]], ["cot", "crib"])
    >>> first, second, substitution, *_ = substitute_pairs(dpp)[0]
    >>> first, second, round(substitution, 2)
    ('cot', 'crib', 0.64)
    """
    table, met, sure = pair_table(model.distribution), _met(model), surely_apart(model)
    found = 1 - table.lift
    first, second = np.triu_indices(len(sure), 1)
    strongest = np.argsort(-sure[first, second], kind="stable")[: whole_number("k", k, 0)]
    return [
        SubstitutePair(
            model.items[i],
            model.items[j],
            *(float(each[i, j]) for each in (found, table.both, table.expected, met)),
        )
        for i, j in zip(first[strongest], second[strongest], strict=True)
        if sure[i, j] > 0
    ]


def substitute_groups(dpp: DPP, at_least: float = AT_LEAST) -> tuple[SubstituteGroup, ...]:
    """Groups of items that stand in for each other.

    By average linkage: the two groups with the highest substitution between them are joined, as long as that is
    `at_least` or more on average. In a `Mixture`, items that different kinds of people like are apart as well, which
    does not make substitutes of them: it has pairs and no groups.

    Parameters
    ----------
    dpp
        A model.
    at_least
        Above 0, up to 1.

    Returns
    -------
    tuple of SubstituteGroup
        The group that misses most of the meetings that chance would bring comes first.

    Examples
    --------
    >>> import dpplearn as dl
    >>> dpp = dl.DPP.from_K([[0.5, 0.4, 0], [0.4, 0.5, 0], [0, 0, 0.5]], ["cot", "crib", "bib"])
    >>> [sorted(group.items) for group in substitute_groups(dpp)]
    [['cot', 'crib']]
    """
    if not isinstance(dpp, DPP):
        raise InputError(
            f"got a {type(dpp).__name__}, and a DPP alone has groups of substitutes; use substitute_pairs, or learn a "
            "DPP (model='dpp')"
        )
    table, met, likelihood = pair_table(dpp.distribution), _met(dpp), dpp.marginals()
    found = 1 - table.lift
    label = group_numbers(found, likelihood, at_least)
    weight = dpp.training.weight if dpp.training is not None else np.nan
    groups = []
    for number in np.unique(label[label >= 0]):
        members = np.flatnonzero(label == number)
        members = members[np.argsort(-likelihood[members], kind="stable")]
        pairs = tuple(members[each] for each in np.triu_indices(len(members), 1))
        groups.append(
            SubstituteGroup(
                dpp.catalogue.select(members),
                float(found[pairs].mean()),
                float((table.expected - table.both)[pairs].sum()),
                float(met[pairs].sum()),
                float(table.expected[pairs].sum() * weight),
            )
        )
    return tuple(sorted(groups, key=lambda group: -group.missing))


def group_numbers(found: Floats, marginals: Floats, at_least: float) -> Ints:
    """The number of every item's group; −1 for those in none."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if not 0 < at_least <= 1:
        raise InputError(f"at_least is {at_least}; expected a number above 0, up to 1")
    label = np.full(len(found), -1)
    possible = np.flatnonzero(marginals > 0)
    if len(possible) < 2:
        return label
    apart = squareform(1 - found[np.ix_(possible, possible)], checks=False)
    numbers = fcluster(linkage(apart, "average"), 1 - at_least, "distance")
    alone = np.bincount(numbers)[numbers] == 1
    label[possible] = np.where(alone, -1, numbers)
    return label


def _met(model: DPP | Mixture) -> Floats:
    if model.training is None:
        return np.full((len(model.items), len(model.items)), np.nan)
    return model.training.pair_frequencies() * model.training.weight

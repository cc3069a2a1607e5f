"""Hypothesis strategies for labels, baskets and models."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from dpplearn import DPP, Baskets
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.models.record import Provenance
from helpers.spectra import rotation

Lists = list[list[Any]]

# A machine that is busy with other things is no failure of a test.
settings.register_profile("dpplearn", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dpplearn")

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8) | st.sampled_from(
    ["a\nb", "a\r\nb", " a", "a ", 'a "b"', *"007 1e3 -0 NULL null nan a,b ' \\ É 苹果 🍎".split()]
)
integers = st.integers(-(2**63), 2**63 - 1)
weights = st.floats(0, 1e6)


@st.composite
def label_lists(draw: st.DrawFn, labels: st.SearchStrategy[Any] = names, *, min_size: int = 0) -> Lists:
    """At least one basket of at least `min_size` different labels, and at least one label in all."""
    catalogue = draw(st.lists(labels, min_size=max(min_size, 1), max_size=6, unique=True))

    def basket(at_least: int) -> st.SearchStrategy[list[Any]]:
        return st.lists(st.sampled_from(catalogue), min_size=at_least, max_size=len(catalogue), unique=True)

    return [*draw(st.lists(basket(min_size), max_size=8)), draw(basket(max(min_size, 1)))]


@st.composite
def baskets(draw: st.DrawFn, *, max_items: int = 6, max_baskets: int = 12) -> Baskets:
    """Numbered items, weights from 0, empty baskets, repeated sets; perhaps no basket at all."""
    n_items = draw(st.integers(1, max_items))
    lists = draw(st.lists(st.lists(st.integers(0, n_items - 1), unique=True), max_size=max_baskets))
    each = draw(st.lists(weights, min_size=len(lists), max_size=len(lists)))
    return Baskets.from_lists(lists, n_items=n_items, weights=each)


@st.composite
def models(draw: st.DrawFn) -> DPP:
    """Named or numbered items, eigenvalues of 0 and 1 too, with anything that may be known of how it was learned."""
    eigenvalue = st.sampled_from([0.0, 1.0]) | st.floats(0.01, 0.99)
    lam = np.array(draw(st.lists(eigenvalue, min_size=1, max_size=6)))
    kernel = SpectralDPP(lam, rotation(len(lam), draw(st.integers(0, 99))))
    labels = draw(st.sampled_from([names, integers]))
    items = draw(st.lists(labels, min_size=kernel.n_items, max_size=kernel.n_items, unique=True))
    numbers = st.none() | st.floats(allow_nan=False)
    counts, texts, either = st.none() | st.integers(), st.none() | st.text(), st.none() | st.booleans()
    learned = st.builds(
        Provenance, learner=texts, start=texts, n_iter=counts, weight=numbers, shrinkage=numbers, nonempty=either
    )
    return DPP(kernel, items, learned=draw(learned))


def plain(baskets: Baskets) -> tuple[tuple[Any, ...], Lists, list[float]]:
    """Items, sets and weights, to compare."""
    return baskets.items, [list(basket) for basket in baskets], baskets.weights.tolist()

"""The learners of symmetric DPPs by name.

A new learner is a module with a generator of steps, a line here, and its name in the docstring of `fit_dpp`.
"""

from __future__ import annotations

from functools import partial

from dpplearn.learners.loop import relative_change, remaining_gain
from dpplearn.learners.problem import Learner
from dpplearn.learners.symmetric.em import em, k_ascent, natural_em
from dpplearn.learners.symmetric.factor import adam, lbfgs
from dpplearn.learners.symmetric.fixed_points import mm, picard

LEARNERS: dict[str, Learner] = {
    each.name: each
    for each in (
        Learner("lbfgs", lbfgs, remaining_gain, can_be_nonempty=True, nonempty_by_default=True, shrinkage="auto"),
        Learner("em", em, relative_change, as_published=True),
        Learner("k-ascent", k_ascent, relative_change, as_published=True),
        Learner("natural-em", natural_em, remaining_gain),
        Learner("picard", picard, remaining_gain),
        Learner("mm", mm, remaining_gain),
        # Adam often takes a few steps without a new best point
        Learner("adam", adam, partial(remaining_gain, min_steps=100), can_be_nonempty=True),
    )
}

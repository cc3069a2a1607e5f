"""Learning a mixture with a dense interaction: starts, the problem, and L-BFGS, segments first and then everything."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpplearn.arrays import EPSILON, Floats, Ints
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.independent import SMOOTHING, chances
from dpplearn.distributions.segment_statistics import Normalisers, OfItems, normalisers, of_items
from dpplearn.learners.kernels import Segments
from dpplearn.learners.lbfgs import Point, ascend
from dpplearn.learners.loop import Step
from dpplearn.learners.mixture.objective import Objective, Parameters, Penalty, Shape, rescaled, scaled_for
from dpplearn.learners.problem import Learner, Problem
from dpplearn.learners.starts import positions_in
from dpplearn.models.mixture import Mixture

NOISE = 0.3  # standard deviation of random numbers
SPREAD = 0.7  # of log-odds over the segments, from small baskets to large ones

PAIR_SMOOTHING = 5.0  # baskets added to observed and expected pair counts, so that rare pairs count as independent
CONFIDENCE = 3.0  # standard deviations of a count
RANDOM_SHARE = 0.3  # of the random U that is kept next to the repulsion that pairs show
ATTRACTION_SHARE = 0.3  # of the attraction that pairs show; small, so that its signs can still change

MATRICES_PER_SEGMENT = 2  # N×N matrices, in addition to those of the learner
SEGMENT_STEPS = (10, 110)  # on segments alone, before and after the scale is adapted to them
FIRST_STEP = 0.3  # length of the first step, in the scaled parameters


def random_parameters(shape: Shape, log_odds: Floats, rng: np.random.Generator) -> Parameters:
    """Return independent items with small random deviations between segments and random interactions."""
    n, m, r = shape.n_items, shape.segments, shape.rank
    theta = NOISE * rng.standard_normal((m, n)) + np.linspace(-SPREAD, SPREAD, m)[:, None]
    U = NOISE * rng.standard_normal((n, r)) / np.sqrt(max(r, 1))
    A = NOISE * rng.standard_normal(n * (n - 1) // 2 if shape.attraction else 0) / np.sqrt(n)
    return Parameters(log_odds / 2, theta if m > 1 else np.zeros((1, n)), U, A, np.zeros(m))


def with_pairs(at: Parameters, baskets: AnyBaskets, expected: Floats) -> Parameters:
    """Return segments of independent items with the interactions that pair counts show.

    Attraction is what the segments do not explain; `expected` are the pair counts that they imply. Repulsion is
    compared with independence, because segments learned alone represent substitutes by differences in taste.

    A² maximises m log(1 + A²) − (e + 1) A² for a pair that occurs m times where e are expected. Its sign, which pair
    counts do not determine, is that of the random numbers.
    """
    frequencies = baskets.pair_frequencies()
    observed, independent = (
        baskets.total_weight * each for each in (frequencies, np.outer(frequencies.diagonal(), frequencies.diagonal()))
    )
    attraction = np.sqrt(np.maximum(observed / (expected + 1) - 1, 0))
    rows, columns = np.tril_indices(len(observed), -1)
    A = ATTRACTION_SHARE * np.copysign(attraction[rows, columns], at.A) if at.A.size else at.A
    U = RANDOM_SHARE * at.U + repelling_directions(observed, independent, at.U.shape[1])
    return replace(at, U=U, A=A)


def repelling_directions(observed: Floats, expected: Floats, rank: int) -> Floats:
    """Return U with U Uᵀ near √(1 − lift) of the pairs that clearly co-occur less often than expected.

    Where there are many substitutes, small random numbers would take long to find them, or never do.
    """
    lift = (observed + CONFIDENCE * np.sqrt(observed) + PAIR_SMOOTHING) / (expected + PAIR_SMOOTHING)
    apart = np.sqrt(np.maximum(1 - lift, 0))
    np.fill_diagonal(apart, 0)
    np.fill_diagonal(apart, apart.max(axis=1))
    values, vectors = np.linalg.eigh(apart)
    kept = slice(len(values) - rank, None)
    return np.asarray(vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0)))


def over_items(kernel: Segments, here: Ints, new_log_odds: Floats) -> Segments:
    """Return the kernel over other items; `here` is the position of each in the kernel, or −1 where it is new.

    New items start independent of all others, with the same probability in every segment.
    """
    known = here >= 0
    X = np.zeros((len(here), len(here)))
    X[np.ix_(known, known)] = kernel.X[np.ix_(here[known], here[known])]
    return Segments.dense(kernel.weights, kernel.log_odds_over(here, new_log_odds), X)


class MixtureStart(NamedTuple):
    """Initial parameters, and whether they are random."""

    parameters: Parameters
    random: bool = False


@dataclass(frozen=True, eq=False)
class MixtureProblem(Problem):
    """The baskets and their distribution, the shape of the mixture, and the penalties."""

    segments: int = 10
    rank: int = 20
    attraction: bool = True
    penalty: Penalty = field(default_factory=Penalty)

    model_type: ClassVar[Any] = Mixture
    random_start: ClassVar[str] = "random"

    @cached_property
    def shape(self) -> Shape:
        n = self.baskets.n_items
        return Shape(n, self.segments, min(self.rank, n), self.attraction)

    @cached_property
    def at_shape(self) -> Objective:
        """The objective as a function of parameters of the shape."""
        return Objective(self.baskets, self.threads, self.nonempty, self.shape, self.penalty)

    @cached_property
    def scale(self) -> Parameters:
        """The scale of the search as long as nothing is known of the segments."""
        n = self.baskets.total_weight
        p = chances(self.baskets.frequencies(), n, smoothing=SMOOTHING)
        return scaled_for(p, n, self.shape, self.penalty)

    def scale_at(self, at: Parameters) -> Floats:
        """Return the scale of the search from these parameters on."""
        norms: Normalisers | OfItems = of_items(at.log_odds)
        if self.shape.interacts:
            norms = normalisers(at.interaction(self.shape), at.log_odds, self.threads)
        n, shares = self.baskets.total_weight, self._shares(at, norms.log_Z)
        return rescaled(self.scale, shares, norms.marginals, n, self.penalty).flat(self.shape)

    def _shares(self, at: Parameters, log_Z: Floats) -> Floats:
        """Return π_c over the probability of the sets that the distribution allows."""
        allowed = 1 - at.weights @ np.exp(-log_Z) if self.nonempty else 1.0
        return np.asarray(at.weights / allowed)

    def expected_pairs(self, at: Parameters) -> Floats:
        """Return the pair counts that the segments imply if items of a segment are independent."""
        items = of_items(at.log_odds)
        shares = self.baskets.total_weight * self._shares(at, items.log_Z)
        return np.asarray((shares[:, None] * items.marginals).T @ items.marginals)

    def baseline(self) -> Segments:
        n = self.baskets.n_items
        return Segments.dense(np.ones(1), independent_log_odds(self)[None], np.zeros((n, n)))

    def objective(self, kernel: Segments) -> float:
        n = self.baskets.n_items
        shape = Shape(n, kernel.n_segments, n, attraction=True)  # with room for any kernel
        objective = Objective(self.baskets, self.threads, self.nonempty, shape, self.penalty)
        return objective(Parameters.from_kernel(kernel, shape, self.penalty).flat(shape))[0]

    def initial(self, name: str, rng: np.random.Generator) -> MixtureStart:
        return MixtureStart(random_parameters(self.shape, independent_log_odds(self), rng), random=True)

    def adapted(self, model: Mixture, rng: np.random.Generator) -> Segments:
        kernel = Segments.of(model.distribution)
        here = positions_in(model.catalogue, self.baskets)
        return over_items(kernel, here, independent_log_odds(self)).with_segments(self.segments, NOISE, rng)

    def start_from(self, kernel: Segments) -> MixtureStart:
        return MixtureStart(Parameters.from_kernel(kernel, self.shape, self.penalty))

    def facts(self) -> dict[str, Any]:
        return {"segments": self.segments, "rank": min(self.rank, self.baskets.n_items), "attraction": self.attraction}

    def memory(self, learner: Learner) -> float:
        return 8.0 * self.baskets.n_items**2 * (learner.matrices + MATRICES_PER_SEGMENT * self.segments)


def independent_log_odds(problem: Problem) -> Floats:
    """Return the log-odds of independent items with frequencies (count + ½)/(n + 1), under the distribution.

    Where a basket has little more than one item on average, the condition Y ≠ ∅ would make items arbitrarily rare; they
    are at least as frequent as one nonempty basket in n + 1 makes them.
    """
    n, m = problem.baskets.total_weight, problem.baskets.frequencies()
    p = chances(m, n, smoothing=SMOOTHING, nonempty=problem.nonempty)
    p = np.maximum(p, chances(m, n, smoothing=SMOOTHING) / (n + 1))
    return np.asarray(np.log(p / (1 - p)))


def mixture(start: MixtureStart, problem: MixtureProblem) -> Iterator[Step]:
    """Yield steps from a start. A random start first learns its segments without interaction."""
    at = start.parameters
    if start.random:
        if problem.segments > 1:
            at = yield from learn_segments(at, problem)
        at = with_pairs(at, problem.baskets, problem.expected_pairs(at))
        # principal axes for U, and the γ that leaves the least penalty
        at = Parameters.from_kernel(at.kernel(problem.shape), problem.shape, problem.penalty)
    scale = problem.scale_at(at)
    yield from climb(problem.at_shape, at, scale)


def learn_segments(at: Parameters, problem: MixtureProblem) -> Generator[Step, None, Parameters]:
    """Yield steps in which items do not interact, and return where they end.

    Such a step takes a fraction of the time of one with interaction, and leaves little to do for those.
    """
    alone = replace(problem, rank=0, attraction=False)
    found = replace(at, U=at.U[:, :0], A=at.A[:0])
    scale = alone.scale.flat(alone.shape)
    for number, steps in enumerate(SEGMENT_STEPS):
        climbed = climb(alone.at_shape, found, scale)
        for step in islice(climbed, steps + 1):
            last = step
            if step.step_size or not number:  # the second climb begins where the first ended
                yield replace(step, preliminary=True)
        found = Parameters.of(last.parameters["x"], alone.shape)
        scale = alone.scale_at(found)
    return replace(found, U=at.U, A=at.A)


def climb(objective: Objective, at: Parameters, scale: Floats) -> Iterator[Step]:
    """Yield steps of L-BFGS in y = s ∘ x, s the scale: in y all second derivatives are about 1."""

    def scaled(y: Floats) -> tuple[float, Floats]:
        value, gradient = objective(y / scale)
        return value, gradient / scale

    def step(at: Point) -> Step:
        x = at.x / scale
        log_likelihood = at.value + objective.penalties(Parameters.of(x, objective.shape))
        make = partial(kernel_at, x, objective)
        return Step(make, log_likelihood, at.step_size, at.evaluations, at.value, parameters={"x": x})

    y = at.flat(objective.shape) * scale
    first = Point(y, *scaled(y))
    yield step(first)
    for each in ascend(scaled, first, first_direction, rounding, is_flat):
        yield step(each)


def rounding(at: Point) -> float:
    return 1e3 * EPSILON * max(1, abs(at.value))


def is_flat(at: Point) -> bool:
    """Return whether nothing is left to gain: second derivatives are about 1 in the scaled parameters."""
    return float(at.gradient @ at.gradient) <= rounding(at)


def first_direction(gradient: Floats) -> Floats:
    """Return a step of fixed length along the gradient."""
    return np.asarray(gradient * (FIRST_STEP / max(float(np.linalg.norm(gradient)), EPSILON)))


def kernel_at(x: Floats, objective: Objective) -> Segments:
    return Parameters.of(x, objective.shape).kernel(objective.shape)

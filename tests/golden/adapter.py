"""The golden values as the library computes them: the only module of the golden tests that imports the library.

The functions take and return the arrays that the package's docstring and `reference` describe. The numbers that they
return are fixed. How they obtain them follows the library.
"""

from __future__ import annotations

import numpy as np

from dpplearn import DPP, Baskets, Mixture
from dpplearn.data.features import Features
from dpplearn.distributions.components import relative
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.interaction import Dense, LowRank, repelling_and_attracting
from dpplearn.distributions.scaled import ScaledDPPs
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import log_likelihood, statistics
from dpplearn.learners.low_rank import LowRankProblem, LowRankState
from dpplearn.learners.mixture import MixtureProblem, Parameters, below_diagonal
from dpplearn.learners.posterior import NAMED, Density, ParametricKernel
from dpplearn.learners.quality.distribution import Target
from dpplearn.learners.quality.fit_quality import Blend, QualityProblem
from dpplearn.learners.slates import SlatesProblem
from dpplearn.learners.symmetric.em import e_step
from dpplearn.learners.symmetric.factor import factor_likelihood
from dpplearn.learners.symmetric.problem import SymmetricProblem, gradient_in_K, in_L
from dpplearn.learners.weights import WeightsProblem
from golden.reference import TOP, Array, Arrays, part

Model = DPP | Mixture


# Distributions


def build(parameters: Arrays) -> Model:
    """Return the model with these parameters."""
    if "given/0/eigenvalues" in parameters:
        weights = parameters["weights"]
        return Mixture.of([build(part(parameters, f"given/{c}/")) for c in range(len(weights))], weights)
    p_empty = float(parameters["p_empty"]) if "p_empty" in parameters else None
    if "eigenvalues" in parameters:
        dpp = SpectralDPP(parameters["eigenvalues"], parameters["eigenvectors"])
    elif "quality" in parameters:
        d = np.exp(parameters["quality"] / 2)
        dpp = SpectralDPP.from_L(d[:, None] * parameters["similarity"] * d)
    else:
        components = ScaledDPPs.checked(parameters["log_odds"], _interaction(parameters))
        return Mixture(SetDistribution.mixture(parameters["weights"], components, p_empty))
    return DPP.of_distribution(SetDistribution.mixture([1.0], dpp, p_empty))


def _interaction(parameters: Arrays) -> Dense | LowRank:
    if "factors" in parameters:
        return LowRank.checked(parameters["factors"], parameters["core"][None])
    return Dense.checked(parameters["interaction"])


def derive(model: Model, items: Array, include: Array, exclude: Array) -> Model:
    """Restrict to some items, then condition; leave out what changes nothing."""
    if not np.array_equal(items, np.arange(len(model.items))):
        model = _renumbered(model.restrict(items.tolist()))
    if (include | exclude).any():
        model = _renumbered(model.given(np.flatnonzero(include).tolist(), np.flatnonzero(exclude).tolist()))
    return model


def _renumbered(model: Model) -> Model:
    """Return the model with its items called 0, 1, … in their order."""
    return type(model).of_distribution(model.distribution)


def segments(model: Model, basket: Array) -> Array:
    """Return P(c | A ⊆ Y). The model's segments are in the order of their weights, as the recorded weights are."""
    assert isinstance(model, Mixture)
    return model.segment_of(np.flatnonzero(basket).tolist())


def answers(distribution: SetDistribution, sets: Array, baskets: Array) -> dict[str, Array]:
    """Return all that the package's docstring lists under ``answers``."""
    given = _baskets(baskets)
    scores, probabilities = distribution.next_items(given)
    best = distribution.top_next(given, min(TOP, baskets.shape[1]))
    return {
        "log_prob": distribution.log_prob(_baskets(sets)),
        "marginals": distribution.marginals(),
        "pair_marginals": distribution.pair_marginals(),
        "log_sizes": distribution.log_sizes(),
        "inclusion": np.exp(distribution.log_inclusion(given)),
        "scores": np.where(baskets, 0, scores),  # the library has NaN for all items where P(A) = 0
        "probabilities": probabilities,
        "top_items": best.items,
        "top_scores": best.scores,
        "top_probabilities": best.probabilities,
    }


def _baskets(sets: Array, weights: Array | None = None) -> Baskets:
    lists = [np.flatnonzero(Y).tolist() for Y in sets]
    return Baskets.from_lists(lists, n_items=sets.shape[1], weights=weights)


# Training objectives: each function returns the value, the gradient by parameter, and more results by name

Result = tuple[float, dict[str, Array], dict[str, Array]]


def _problem(data: Arrays) -> SymmetricProblem:
    return SymmetricProblem(_baskets(data["sets"], data["weights"]), 1, bool(data["nonempty"]))


def of_factor(parameters: Arrays, data: Arrays) -> Result:
    value, by_B = factor_likelihood(_problem(data), parameters["B"])
    return value, {"B": by_B}, {}


def of_L(parameters: Arrays, data: Arrays) -> Result:
    value, delta, inverse = in_L(_problem(data), np.ascontiguousarray(parameters["L"]))
    return value, {"L": delta - inverse}, {}


def of_K(parameters: Arrays, data: Arrays) -> Result:
    kernel = SpectralDPP(data["eigenvalues"], data["eigenvectors"])
    stats = statistics(kernel, _problem(data).baskets)
    V, T = kernel.eigenvectors, e_step(kernel, stats)
    by_K = V @ gradient_in_K(kernel, stats) @ V.T
    return log_likelihood(kernel, stats), {"K": by_K}, {"marginals": T.diagonal(), "rotation": 2 * (T - T.T)}


def of_dense(parameters: Arrays, data: Arrays) -> Result:
    n, rank = parameters["U"].shape
    baskets = _baskets(data["sets"], data["weights"])
    problem = MixtureProblem(baskets, 1, bool(data["nonempty"]), len(parameters["logits"]), rank)
    gamma, U, A, logits = (parameters[name] for name in ("gamma", "U", "A", "logits"))
    theta = parameters.get("theta", np.zeros((1, n)))
    at = Parameters(gamma, theta, U, A[below_diagonal(n)], logits)
    value, slope = problem.value_and_gradient(at.flat())
    found = problem.parameters(slope)
    by_A = np.zeros((n, n))
    by_A[below_diagonal(n)] = found.A
    by_name = {"gamma": found.gamma, "theta": found.theta, "U": found.U, "A": by_A, "logits": found.logits}
    return value, {name: by_name[name] for name in parameters}, {}


def of_low_rank(parameters: Arrays, data: Arrays) -> Result:
    Z, core, log_odds, weights = parameters["factors"], data["core"], data["log_odds"], data["segment_weights"]
    problem = _problem(data)
    baskets, single = problem.baskets, Z.astype(np.float32)
    repelling = int(core.trace())
    attracting = (len(core) - repelling) // 2
    assert np.array_equal(core, repelling_and_attracting(repelling, attracting))
    low_rank = LowRankProblem(baskets, 1, problem.nonempty, len(weights), repelling, attracting)
    assert len(low_rank.active) == len(Z)
    by_Z, _ = low_rank.gradient(single, baskets.weights, log_odds.astype(float), weights)

    at = LowRankState.first(weights, log_odds, 0, single)
    (new_weights, targets, _), minors = low_rank.e_step(at), low_rank.mean_log_minor(at)
    value = minors - float(weights @ low_rank.log_normalisers(at))
    whole = np.asarray(problem.log_likelihood(low_rank.kernel(at)))
    more = {"weights": new_weights, "targets": targets, "log_likelihood": whole}
    return value, {"factors": np.asarray(by_Z)}, more


def of_mixing_weights(parameters: Arrays, data: Arrays) -> Result:
    largest, likelihoods = relative(data["log_prob"])
    problem, w = WeightsProblem(likelihoods, largest, data["weights"] / data["weights"].sum()), parameters["w"]
    by_w = problem.gradient(w)
    return problem.log_likelihood(w), {"w": by_w}, {"weights": w * by_w}


def of_quality(parameters: Arrays, data: Arrays) -> Result:
    theta, phi, F, S = parameters["theta"], parameters["phi"], data["design"], data["similarities"]
    per_item = np.array_equal(F, np.eye(len(F)))
    blend = Blend(
        np.eye(len(F)), (np.ones((len(F), len(F))), *S), ("uniform", *(f"similarity {g}" for g in range(len(S))))
    )
    problem = _problem(data)
    quality = QualityProblem(
        problem.baskets,
        1,
        problem.nonempty,
        blend=blend,
        features=None if per_item else Features(problem.baskets.catalogue, F[:, 1:], ()),
        ridge=float(data["ridge"]),
    )
    target: Target = quality.target(phi)
    law, of_weights = target.at(theta)
    of_strengths, by_phi = quality.by_strengths(phi, law)
    return of_weights + of_strengths, {"theta": target.gradient(theta, law), "phi": by_phi}, {}


def of_slates(parameters: Arrays, data: Arrays) -> Result:
    problem = SlatesProblem(data["scores"], data["chosen"], data["there"], data["alike"])
    intercept, slope, logit, log_reach = parameters["free"].tolist()
    strength, reach = 1 / (1 + np.exp(-logit)), np.exp(log_reach)
    value, gradient = problem.with_gradient(np.array([intercept, slope, strength, reach]))
    return value, {"free": gradient * [1, 1, strength * (1 - strength), reach]}, {}


def of_posterior(parameters: Arrays, data: Arrays) -> Result:
    function, _ = NAMED["rbf" if data["rbf"] else "linear"]
    names = tuple(f"parameter {place}" for place in range(len(parameters["theta"])))
    kernel = ParametricKernel(
        lambda theta: function(theta, data["features"]), names, data["prior_mean"], data["prior_sd"]
    )
    problem = _problem(data)
    value, slopes = Density(kernel, problem.baskets, problem.nonempty, 1).with_gradient(parameters["theta"])
    return value, {"theta": slopes}, {}


FORMS = {
    "factor": of_factor,
    "in_L": of_L,
    "in_K": of_K,
    "dense": of_dense,
    "low_rank": of_low_rank,
    "mixing_weights": of_mixing_weights,
    "quality": of_quality,
    "slates": of_slates,
    "posterior": of_posterior,
}


def objective(form: str, parameters: Arrays, data: Arrays) -> Result:
    """Return the objective that `reference` defines under this name, its gradient, and more results."""
    return FORMS[form](parameters, data)

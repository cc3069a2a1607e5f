"""Every golden value by its definition: enumeration of all subsets, gradients by complex steps, with numpy alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = Mapping[str, Array]

TOP = 10
STEP = 1e-200  # f(x + i h) = f(x) + i h f'(x) up to O(h²): no cancellation, however small h is


# Distributions


def subsets(n: int) -> Array:
    """Return all subsets as rows of booleans, (2^n, n); row m contains the bits of m."""
    return (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1


def index(sets: Array) -> Array:
    """Return the row of `subsets` of each set."""
    return sets @ (1 << np.arange(sets.shape[1]))


def minors(C: Array, sets: Array) -> Array:
    """Return det C_Y of each set."""
    found = np.ones(len(sets), dtype=C.dtype)
    sizes = sets.sum(axis=1)
    for k in range(1, sets.shape[1] + 1):
        rows = np.flatnonzero(sizes == k)
        items = np.nonzero(sets[rows])[1].reshape(len(rows), k)
        found[rows] = np.linalg.det(C[items[:, :, None], items[:, None, :]])
    return found


def elementary(lam: Array, V: Array) -> Array:
    """Return the table p(J, Y) = Π_J λ Π_J̄ (1 − λ) det(V_YJ)² [|Y| = |J|], (2^n, 2^n), by rows of `subsets`.

    Its sum over J is P(Y). All terms are nonnegative, so nothing cancels, also for eigenvalues of 0 and 1.
    """
    n = len(lam)
    every = subsets(n)
    p_J = np.where(every, lam, 1 - lam).prod(axis=1)
    joint = np.zeros((2**n, 2**n))
    sizes = every.sum(axis=1)
    for k in range(n + 1):
        J, Y = np.flatnonzero((sizes == k) & (p_J > 0)), np.flatnonzero(sizes == k)
        columns, rows = (np.nonzero(every[each])[1].reshape(len(each), k) for each in (J, Y))
        blocks = V[rows[None, :, :, None], columns[:, None, None, :]]  # (J, Y, k, k)
        joint[np.ix_(J, Y)] = p_J[J, None] * np.linalg.det(blocks) ** 2
    return joint


def interaction(parameters: Arrays) -> Array:
    """Return X, (1 or m, n, n)."""
    if "factors" in parameters:
        Z = parameters["factors"].astype(float)
        return np.asarray((Z @ parameters["core"] @ Z.T)[None])
    return parameters["interaction"]


def components(parameters: Arrays) -> tuple[Array, Array]:
    """Return the weights, (m,), and the probability of every subset under each component, (m, 2^n)."""
    if "given/0/eigenvalues" in parameters:
        weights = parameters["weights"]
        return weights, np.array([table(part(parameters, f"given/{c}/")) for c in range(len(weights))])
    if "eigenvalues" in parameters:
        return np.ones(1), elementary(parameters["eigenvalues"], parameters["eigenvectors"]).sum(axis=0)[None]
    if "quality" in parameters:
        every = subsets(len(parameters["quality"]))
        odds = np.exp(every @ parameters["quality"]) * minors(parameters["similarity"], every)
        return np.ones(1), odds[None] / odds.sum()
    X, log_odds = interaction(parameters), parameters["log_odds"].astype(float)
    every = subsets(log_odds.shape[1])
    C = [minors(np.eye(len(each)) + each, every) for each in X]
    odds = np.exp(log_odds @ every.T) * np.array(C)
    return parameters["weights"], odds / odds.sum(axis=1, keepdims=True)


def joint(parameters: Arrays) -> Array:
    """Return P(c, Y), (m, 2^n); with `p_empty`, the entries of the empty set are 0."""
    weights, tables = components(parameters)
    if "p_empty" not in parameters:
        return np.asarray(weights[:, None] * tables)
    nonempty = tables.copy()
    nonempty[:, 0] = 0
    return np.asarray((1 - parameters["p_empty"]) * weights[:, None] * nonempty / nonempty.sum(axis=1, keepdims=True))


def table(parameters: Arrays) -> Array:
    """Return the probability of every subset, (2^n,)."""
    P = joint(parameters).sum(axis=0)
    P[0] += parameters.get("p_empty", np.zeros(()))
    return np.asarray(P)


def part(arrays: Arrays, prefix: str) -> dict[str, Array]:
    """Return the arrays below a prefix, by the rest of their path."""
    return {path.removeprefix(prefix): each for path, each in arrays.items() if path.startswith(prefix)}


# Answers


def restrict(P: Array, items: Array) -> Array:
    """Return the table of Y ∩ items, the items in the order given."""
    n = len(P).bit_length() - 1
    found = np.zeros(2 ** len(items))
    np.add.at(found, index(subsets(n)[:, items]), P)
    return found


def condition(P: Array, include: Array, exclude: Array) -> Array:
    """Return the table of the other items given that Y contains `include` and none of `exclude`."""
    every = subsets(len(include))
    kept = every[:, include].all(axis=1) & ~every[:, exclude].any(axis=1)
    found = np.zeros(2 ** int((~(include | exclude)).sum()))
    found[index(every[kept][:, ~(include | exclude)])] = P[kept]
    return np.asarray(found / found.sum())


def inclusion(P: Array, baskets: Array) -> Array:
    """Return P(A ⊆ Y) of every basket."""
    every = subsets(baskets.shape[1])
    return np.array([P[every[:, A].all(axis=1)].sum() for A in baskets])


def answers(P: Array, sets: Array, baskets: Array) -> dict[str, Array]:
    """Return all that the package's docstring lists under ``answers``. The baskets must have P(A ⊆ Y) > 0."""
    n = sets.shape[1]
    every = subsets(n)
    with np.errstate(divide="ignore"):
        log_prob, log_sizes = np.log(P[index(sets)]), np.log(np.bincount(every.sum(axis=1), P, n + 1))
    included = inclusion(P, baskets)
    scores, probabilities = np.zeros(baskets.shape), np.zeros(baskets.shape)
    for row, A in enumerate(baskets):
        contains = every[:, A].all(axis=1)
        probabilities[row] = P[contains] @ every[contains] / included[row]
        with_item = (A | np.eye(n, dtype=bool))[~A]
        alone = P[index(A[None])[0]]
        scores[row, ~A] = P[index(with_item)] / alone if alone > 0 else np.nan
        probabilities[row, A] = 0
    return {
        "log_prob": log_prob,
        "marginals": P @ every,
        "pair_marginals": (P[:, None] * every).T @ every,
        "log_sizes": log_sizes,
        "inclusion": included,
        "scores": scores,
        "probabilities": probabilities,
        **top(scores, probabilities),
    }


def top(scores: Array, probabilities: Array) -> dict[str, Array]:
    """Return the items of highest score, or of highest probability where there is no score."""
    by = np.where(np.isnan(scores).any(axis=1, keepdims=True), probabilities, scores)
    items = np.argsort(-by, axis=1, kind="stable")[:, :TOP]
    found = np.take_along_axis(by, items, axis=1) > 0
    values = [np.where(found, np.take_along_axis(each, items, axis=1), np.nan) for each in (scores, probabilities)]
    return {"top_items": np.where(found, items, -1), "top_scores": values[0], "top_probabilities": values[1]}


def segments(parameters: Arrays, baskets: Array) -> Array:
    """Return P(c | A ⊆ Y) of every basket, (b, m); NaN for the empty basket."""
    P, every = joint(parameters), subsets(baskets.shape[1])
    found = np.array([P[:, every[:, A].all(axis=1)].sum(axis=1) for A in baskets])
    found[~baskets.any(axis=1)] = np.nan
    return np.asarray(found / found.sum(axis=1, keepdims=True))


# Training objectives. `data` has the training sets Y_t in `sets` with their weights in `weights`, and `nonempty`, which
# is true where the distribution is P(Y | Y ≠ ∅). A mean over sets is weighted: Σ w_t f(Y_t)/Σ w_t. n is Σ w_t.


def mean(data: Arrays, values: Array) -> Any:
    return data["weights"] @ values / data["weights"].sum()


def log_sum_exp(values: Array) -> Array:
    """Return log Σ_c exp(values) over the first axis."""
    largest = values.real.max(axis=0)
    return np.asarray(np.log(np.exp(values - largest).sum(axis=0)) + largest)


def log_normaliser(log_Z: Any, data: Arrays) -> Any:
    """Return log Z, or log(Z − 1) where the empty set is excluded."""
    return log_Z + np.log(1 - np.exp(-log_Z)) if data["nonempty"] else log_Z


def log_det(M: Array) -> Any:
    return np.log(np.linalg.det(M))


def factor(parameters: Arrays, data: Arrays) -> Any:
    """Symmetric DPP in a factor, L = B Bᵀ: mean log det L_Y − log det(I + L)."""
    B = parameters["B"]
    return in_L({"L": B @ B.T}, data)


def in_L(parameters: Arrays, data: Arrays) -> Any:
    """The same in the entries of L, each of them free: the gradient is mean(L_Y⁻¹) − (I + L)⁻¹."""
    L = parameters["L"]
    log_Z = log_det(L + np.eye(len(L)))
    return mean(data, np.log(minors(L, data["sets"]))) - log_normaliser(log_Z, data)


def in_K(parameters: Arrays, data: Arrays) -> Any:
    """Symmetric DPP in the entries of K, each of them free: mean log |det(K − I_Ȳ)|, I_Ȳ the identity outside Y.

    It is defined for eigenvalues of 0 and 1. The gradient is mean (K − I_Ȳ)⁻¹. `data` has K as eigenvalues and
    eigenvectors too.
    """
    K = parameters["K"]
    dets = np.linalg.det(K - (~data["sets"])[:, None, :] * np.eye(len(K)))
    return mean(data, np.log(dets * np.sign(dets.real)))


def dense(parameters: Arrays, data: Arrays) -> Any:
    """Dense mixture: mean log-likelihood less penalties per basket.

    log_odds_c = 2 γ + θ_c; X = U Uᵀ + A − Aᵀ, A strictly below the diagonal; weights softmax(logits), here P(c) before
    conditioning on Y ≠ ∅. With n = Σ w_t the penalties are, over n:
    0.1 ‖U‖² + ‖A‖² + ½ ‖θ‖² + Σ_i (log(1 + exp(2 γ_i)) − γ_i). The last term is that of half a basket with and half a
    basket without every item. With one segment θ is 0 and no parameter.
    """
    gamma, U, A = parameters["gamma"], parameters["U"], np.tril(parameters["A"], -1)
    theta = parameters.get("theta", np.zeros((1, len(gamma))))
    fit = mixture(2 * gamma + theta, U @ U.T + A - A.T, parameters["logits"], data)
    penalty = 0.1 * (U**2).sum() + (A**2).sum() + (theta**2).sum() / 2
    penalty = penalty + (np.log(1 + np.exp(2 * gamma)) - gamma).sum()
    return fit - penalty / data["weights"].sum()


def mixture(log_odds: Array, X: Array, logits: Array, data: Arrays) -> Any:
    """Return the mean log-likelihood of a mixture whose segments share an interaction."""
    n = len(X)
    D = np.exp(log_odds / 2)
    log_pi = logits - log_sum_exp(logits)
    log_Z = log_det(D[:, :, None] * (np.eye(n) + X) * D[:, None, :] + np.eye(n))
    each = log_sum_exp((log_pi - log_Z)[:, None] + log_odds @ data["sets"].T)
    value = mean(data, each + np.log(minors(np.eye(n) + X, data["sets"])))
    return value - np.log(1 - np.exp(log_pi - log_Z).sum()) if data["nonempty"] else value


def low_rank(parameters: Arrays, data: Arrays) -> Any:
    """Low-rank mixture, part of the log-likelihood that depends on the factors, for given segments:
    mean log det C_Y − Σ_c weights_c log det(I + D_c C D_c), C = I + Z core Zᵀ.

    The learner's ridge on Z is not in it.
    """
    Z = parameters["factors"]
    C = np.eye(len(Z)) + Z @ data["core"] @ Z.T
    D = np.exp(data["log_odds"].astype(float) / 2)
    log_Z = log_det(D[:, :, None] * C * D[:, None, :] + np.eye(len(Z)))
    return mean(data, np.log(minors(C, data["sets"]))) - data["segment_weights"] @ log_Z


def mixing_weights(parameters: Arrays, data: Arrays) -> Any:
    """Mixture of given models: mean log Σ_c w_c P_c(Y), in w, each w_c free. `log_prob` is log P_c(Y_t), (t, m)."""
    return mean(data, np.log(np.exp(data["log_prob"]) @ parameters["w"]))


def quality(parameters: Arrays, data: Arrays) -> Any:
    """Quality model: L = D S D, D² = diag(exp(F θ)), S = (1 − τ)(w_0 I + Σ_g w_g S_g) + τ 11ᵀ.

    φ = (τ, s_1, …), w_1 = s_1, w_2 = (1 − s_1) s_2, …, w_0 = 1 − Σ w_g. The objective is mean log det L_Y − log Z, less
    ridge/(2n) Σ θ_j² over the features (not the intercept, the first column of F; none for a weight per item) and less
    Σ_g w_g/n.
    """
    theta, phi, F = parameters["theta"], parameters["phi"], data["design"]
    n_baskets, n = data["weights"].sum(), len(F)
    left, w = 1.0, []
    for s in phi[1:]:
        w.append(left * s)
        left = left * (1 - s)
    S = left * np.eye(n) + sum(each * data["similarities"][g] for g, each in enumerate(w))
    S = (1 - phi[0]) * S + phi[0]
    d = np.exp(F @ theta / 2)
    penalty = data["ridge"] / 2 * (theta[1:] ** 2).sum() + sum(w)
    return in_L({"L": d[:, None] * S * d}, data) - penalty / n_baskets


def slates(parameters: Arrays, data: Arrays) -> Any:
    """Choices from slates: mean over slates of log det L_Y − log det(I + L), over the candidates of each.

    L = D S D, D² = diag(exp(intercept + slope · score)), S_ij = α exp((alike_ij − 1)/ρ²) for i ≠ j, S_ii = 1. `free` is
    (intercept, slope, logit(α), log(ρ)). `there` says which candidates a slate has.
    """
    free, total = parameters["free"], 0.0
    alpha, rho = 1 / (1 + np.exp(-free[2])), np.exp(free[3])
    for score, chosen, there, alike in zip(
        *(data[name] for name in ("scores", "chosen", "there", "alike")), strict=True
    ):
        score, chosen, alike = score[there], chosen[there], alike[np.ix_(there, there)]
        S = alpha * np.exp((alike - 1) / rho**2) * (1 - np.eye(len(score))) + np.eye(len(score))
        d = np.exp((free[0] + free[1] * score) / 2)
        L = d[:, None] * S * d
        total = total + np.log(minors(L, chosen[None])[0]) - log_det(L + np.eye(len(L)))
    return total / len(data["scores"])


def posterior(parameters: Arrays, data: Arrays) -> Any:
    """Posterior log density up to a constant: Σ w_t log P(Y_t) − ½ Σ_j ((θ_j − mean_j)/sd_j)².

    L = D S D, D² = diag(exp(θ_0 + Σ_f θ_f x_f)), x the features. With `rbf`, S_ij = 0.99 exp(−|x_i − x_j|²/(2 ℓ²)) for
    i ≠ j and log ℓ is the last parameter; else S_ij = cos(x_i, x_j)/(1 + exp(−θ_last)).
    """
    theta, x = parameters["theta"], data["features"]
    if data["rbf"]:
        apart = ((x[:, None] - x) ** 2).sum(axis=2)
        S = 0.99 * np.exp(-apart / 2 * np.exp(-2 * theta[-1]))
    else:
        unit = x / np.sqrt((x**2).sum(axis=1))[:, None]
        S = unit @ unit.T / (1 + np.exp(-theta[-1]))
    S = S * (1 - np.eye(len(x))) + np.eye(len(x))
    d = np.exp((theta[0] + x @ theta[1:-1]) / 2)
    log_prior = -(((theta - data["prior_mean"]) / data["prior_sd"]) ** 2).sum() / 2
    return data["weights"].sum() * in_L({"L": d[:, None] * S * d}, data) + log_prior


FORMS: dict[str, Callable[[Arrays, Arrays], Any]] = {
    each.__name__: each for each in (factor, in_L, in_K, dense, low_rank, mixing_weights, quality, slates, posterior)
}


def objective(form: str, parameters: Arrays, data: Arrays) -> tuple[float, dict[str, Array]]:
    """Return the objective and its gradient by parameter."""
    f = FORMS[form]
    gradient = {name: np.zeros(each.shape) for name, each in parameters.items()}
    for name, each in parameters.items():
        for place in np.ndindex(each.shape):
            moved = each.astype(complex)
            moved[place] += 1j * STEP
            gradient[name][place] = f({**parameters, name: moved}, data).imag / STEP
    return float(f(parameters, data)), gradient


# E-steps, which are results of learners in addition to objective and gradient


def e_step(parameters: Arrays, data: Arrays) -> dict[str, Array]:
    """EM of a symmetric DPP with eigenvalues λ and eigenvectors V.

    `marginals`: λ'_j = mean P(j ∈ J | Y). `rotation`: entry (b, a) is the derivative of the mean log-likelihood for
    the rotation of column a of V towards column b, 2 G_ab (λ_a − λ_b), G = Vᵀ (∂/∂K) V with ∂/∂K = mean (K − I_Ȳ)⁻¹.
    """
    lam, V = data["eigenvalues"], data["eigenvectors"]
    n = len(lam)
    given = elementary(lam, V)[:, index(data["sets"])]  # (2^n, t)
    marginals = mean(data, (given / given.sum(axis=0)).T @ subsets(n))
    outside = (~data["sets"])[:, None, :] * np.eye(n)
    G = V.T @ np.tensordot(data["weights"], np.linalg.inv((V * lam) @ V.T - outside), 1) @ V / data["weights"].sum()
    return {"marginals": marginals, "rotation": 2 * G * (lam - lam[:, None])}


def low_rank_e_step(parameters: Arrays, data: Arrays) -> dict[str, Array]:
    """E-step of the low-rank mixture: the new weights and the target log-odds of the segments.

    r_c(Y) are the responsibilities, n = Σ w_t, n_c = Σ_t w_t r_c and N_ci = Σ_t w_t r_c x_ti. Given Y ≠ ∅,
    e_c = n P(c, ∅)/(1 − P(∅)) unobserved empty sets are added, else e_c = 0. Then a_c = (n_c + e_c)(n + 1)/n,
    b_ci = N_ci + n_c/(2n), new weights a_c/Σ a, p_i = (Σ_t w_t x_ti + ½)/(n + 1), m_c = Σ_i b_ci/(a_c Σ_i p_i), and
    target log-odds log(b_ci + 1) − log(a_c + 1/(m_c p_i) − b_ci − 1), the last argument at least 1.
    `log_likelihood` is the mean log-likelihood.
    """
    log_odds, Z = data["log_odds"].astype(float), parameters["factors"]
    X = Z @ data["core"] @ Z.T
    sets, w, n, logits = data["sets"], data["weights"], data["weights"].sum(), np.log(data["segment_weights"])
    D = np.exp(log_odds / 2)
    log_Z = log_det(D[:, :, None] * (np.eye(len(Z)) + X) * D[:, None, :] + np.eye(len(Z)))
    each = (logits - log_Z)[:, None] + log_odds @ sets.T
    r = np.exp(each - log_sum_exp(each)) * w
    empty = np.exp(logits - log_Z)
    missing = n * empty / (1 - empty.sum()) if data["nonempty"] else 0 * empty
    a, b = (r.sum(axis=1) + missing) * (n + 1) / n, r @ sets + r.sum(axis=1)[:, None] / (2 * n)
    p = (w @ sets + 0.5) / (n + 1)
    takes = b.sum(axis=1) / (a * p.sum())
    targets = np.log(b + 1) - np.log(np.maximum(a[:, None] + 1 / (takes[:, None] * p) - b - 1, 1))
    value = np.asarray(mixture(log_odds, X, logits, data))
    return {"weights": a / a.sum(), "targets": targets, "log_likelihood": value}


def mixing_weights_e_step(parameters: Arrays, data: Arrays) -> dict[str, Array]:
    """E-step of the mixture of given models: new weights w_c · gradient_c."""
    w, P = parameters["w"], np.exp(data["log_prob"])
    return {"weights": w * mean(data, P / (P @ w)[:, None])}


MORE: dict[str, Callable[[Arrays, Arrays], dict[str, Array]]] = {
    "in_K": e_step,
    "low_rank": low_rank_e_step,
    "mixing_weights": mixing_weights_e_step,
}

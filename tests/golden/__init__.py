"""Golden values: small models as plain arrays, with the answers and training objectives that belong to them.

`values.npz` holds the numbers. `reference.py` states the formula of every number and evaluates it by enumeration of all
subsets, with numpy alone. `adapter.py` computes the same numbers with the library and is the only module here that
imports it. A change of the library's classes changes `adapter.py` and nothing else.

The values were recorded once with fitted models, and every number was compared with `reference`. Do not record them
again to make a test pass. Gradients that the library computed in single precision (low-rank factors) or by finite
differences (posterior), and probabilities of exactly 0, are those of `reference`.

Items are 0..n−1. A set of items is a row of booleans, x_Y. The keys of `values.npz` are paths:

``models/<name>/parameters/…``
    The distribution, in one of these forms.

    ``eigenvalues`` (n,), ``eigenvectors`` (n, n)
        Symmetric DPP with marginal kernel K = V diag(λ) Vᵀ, one eigenvector per column.
    ``quality`` (n,), ``similarity`` (n, n)
        Symmetric DPP with L = D S D, D² = diag(exp(quality)).
    ``weights`` (m,), ``log_odds`` (m, n), ``interaction`` (1 or m, n, n)
        Mixture of m segments. P_c(Y) ∝ exp(log_odds_c · x_Y) det((I + X_c)_Y), that is L_c = D_c (I + X_c) D_c with
        D_c² = diag(exp(log_odds_c)). One X for all segments, or one each.
    ``weights`` (m,), ``log_odds`` (m, n), ``factors`` (n, r), ``core`` (r, r)
        The same with X = Z core Zᵀ. Log-odds and factors are exact in single precision.
    ``weights`` (m,), ``given/<c>/…``
        Mixture of m given distributions, each in one of the forms above.

    ``p_empty`` (), optional
        P(∅). The weights are then P(c | Y ≠ ∅), and P(Y) = (1 − p_empty) Σ_c weights_c P_c(Y)/(1 − P_c(∅)) for Y ≠ ∅.
        Without it the weights are P(c), and P(Y) = Σ_c weights_c P_c(Y) for every Y.

``models/<name>/answers/…``
    ``sets`` (s, n), ``log_prob`` (s,)
        log P(Y) of some sets; −inf for impossible sets.
    ``marginals`` (n,), ``pair_marginals`` (n, n), ``log_sizes`` (n + 1,)
        P(i ∈ Y); P(i, j ∈ Y), with P(i ∈ Y) on the diagonal; log P(|Y| = k).
    ``baskets`` (b, n), ``inclusion`` (b,), ``scores`` (b, n), ``probabilities`` (b, n)
        For baskets A: P(A ⊆ Y); P(A ∪ i)/P(A); P(i ∈ Y | A ⊆ Y). Both are 0 for items of A. Scores are NaN, which means
        "not compared", where P(A) = 0.
    ``top_items``, ``top_scores``, ``top_probabilities`` (b, at most 10)
        The items of highest score, or of highest probability where P(A) = 0. Items of A and items of value 0 are left
        out; rows are padded with −1 and NaN.

``models/<name>/segments`` (b, m), for mixtures
    P(c | A ⊆ Y) of the baskets above. NaN for the empty basket, where `p_empty` leaves it open.

``models/<name>/derived/<number>/…``
    ``items`` (j,), ``include``, ``exclude`` (j,), ``answers/…``
        The distribution of Y ∩ items, with the items in this order; then of its other items, in ascending order, given
        that Y contains `include` and none of `exclude`.

``objectives/<name>/…``
    ``form`` (), ``parameters/…``, ``data/…``, ``value`` (), ``gradient/<parameter>``, ``more/…``
        The function `form` of `reference.py` at fixed parameters, its gradient by parameter, and other results such as
        E-steps.
"""

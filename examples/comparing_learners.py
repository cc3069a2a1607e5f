"""Compare the learners of `fit_dpp` on the same data: likelihood, time, and whether the difference matters.

Run: python examples/comparing_learners.py
"""

import dpplearn as dl

registries = dl.datasets.make_registries("carseats", 4000, rng=3)
train, test = registries.split(0.7, rng=3)
as_published = {"shrinkage": 0, "nonempty": False}  # P(Y) by maximum likelihood, which all learners can do
dl.fit_dpp(train, max_iter=1, **as_published)  # compiles the loops, so that no learner pays for it

# tol is the expected further gain in nats per basket; em and k-ascent use the paper's rule, which stops earlier.
print(f"{'learner':12}{'train':>9}{'test':>9}{'iterations':>12}{'seconds':>9}  stopped by")
fits = {}
for learner in ("lbfgs", "natural-em", "em", "k-ascent", "picard", "mm"):
    fit = fits[learner] = dl.fit_dpp(train, learner, tol=1e-4, max_iter=300, max_seconds=2, **as_published)
    numbers = (
        f"{fit.log_likelihood:9.4f}{fit.model.log_likelihood(test):9.4f}{fit.n_iter:12}{fit.history.seconds[-1]:9.2f}"
    )
    print(f"{learner:12}{numbers}  {fit.stop.name.lower().replace('_', ' ')}")

# Paired 95 % interval over the test baskets.
compared = dl.evaluate({name: fits[name] for name in ("lbfgs", "k-ascent")}, test, rng=0)
gain = compared.difference("lbfgs", "k-ascent")
print(f"\nlbfgs over k-ascent on test data: {gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}], {gain.verdict}")

# One run may stop at a lesser optimum. Restarts from random kernels show how far the optima are apart.
runs = dl.fit_dpp(train, restarts=5, rng=0, **as_published).restarts
ends = [run.log_likelihood for run in runs]
print(f"\nlbfgs from five initial kernels: {min(ends):.4f} to {max(ends):.4f}")

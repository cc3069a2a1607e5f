"""Large catalogues: `python -m benchmarks.large [retail|generated|growth|rate|torch]`, or all of them.

Belgian retail (16,470 items, three splits) beside item-to-item, EASE and others; a known mixture of 10⁵ items learned
from 10⁶ baskets; how time grows; and the published nonsymmetric form in PyTorch, which is N × N (pip install torch).
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

import dpplearn as dl
from benchmarks.known_mixture import KnownMixture
from benchmarks.large_peers import als, low_rank
from benchmarks.learners.problems import SHARED
from dpplearn.arrays import Floats, Ints
from dpplearn.kernels.compiling import loops
from dpplearn.kernels.factored.kernel import coupling
from dpplearn.kernels.families import law_of
from dpplearn.learners.factored import plan
from dpplearn.learners.factored.factored import Learning
from dpplearn.learners.factored.interaction import Active, Batch, Segment, gradient
from dpplearn.learners.factored.place import Place
from dpplearn.learners.factored.problem import FactoredProblem
from dpplearn.models.blending import blended, ranking_scores
from dpplearn.models.training import Training

TRAIN_SHARE, FIRST_SEED, SPLITS = 0.887, 31, 3
QUESTIONS = 4000
EASE_ITEMS, EASE_RIDGE = 5000, 100.0  # that of the research note, chosen there on these data
Scores = Callable[[Ints], Floats]


def rows(title: str, *names: str) -> None:
    print(f"\n{title}\n\n| {' | '.join(names)} |\n|{'---|' * len(names)}", flush=True)


def row(*values: object) -> None:
    print(f"| {' | '.join(f'{v:.4g}' if isinstance(v, float) else str(v) for v in values)} |", flush=True)


@cache
def retail_baskets() -> dl.Baskets:
    return dl.read_baskets(SHARED / "data" / "baskets" / "retail.dat")


def cpu() -> float:
    return time.process_time()


# Belgian retail


def retail() -> None:
    rows(
        "Belgian retail: gain in nats per basket over independent items given not empty; a random item to be found",
        *("split", "model", "gain", "size law, TV", "percentile rank", "recall@10", "NDCG@10", "CPU s"),
    )
    for seed in range(FIRST_SEED, FIRST_SEED + SPLITS):
        train, test = retail_baskets().split(TRAIN_SHARE, rng=seed)
        began = cpu()
        model = dl.fit(train, rng=seed).model
        took = cpu() - began
        assert model.training is not None
        gain = model.log_likelihood(test) - independent_of(train, test)
        apart = size_distance(model, test)
        asked = list(questions(test, QUESTIONS, seed))
        weight = model.training.blend or 0.0
        scorers: dict[str, Scores] = {
            "mixture": lambda basket, law=model.law: ranking_scores(law, basket),
            f"mixture, blended (w = {weight:.2f})": lambda basket, law=model.law, training=model.training, w=weight: (
                blended(law, training, basket, w, np.ones(law.n_items, bool))
            ),
            **baselines(train),
            **implicit_als(train, seed),
        }
        ranks = {name: np.array([rank_of(scores, *each) for each in asked]) for name, scores in scorers.items()}
        for name, found in ranks.items():
            of_model = (float(gain), apart) if name == "mixture" else ("", "")
            row(seed, name, *of_model, *figures(found), round(took, 1) if name == "mixture" else "")
        began = cpu()
        published = low_rank(train, seed).log_likelihood(test) - independent_of(train, test)
        row(seed, "low-rank DPP, V Vᵀ, 80 columns", published, "", "", "", "", round(cpu() - began, 1))
        for name in ("mixture", *(each for each in ranks if "blended" in each)):
            paired(name, ranks[name], "item-to-item", ranks["item-to-item"])
        paired("mixture", ranks["mixture"], "EASE, all", ranks["EASE, all"])


def implicit_als(train: dl.Baskets, seed: int) -> dict[str, Scores]:
    try:
        return {"implicit ALS-64, untuned": als(train, seed)}
    except ImportError as missing:
        print(f"  left out: {missing}", flush=True)
        return {}


def independent_of(train: dl.Baskets, test: dl.Baskets) -> float:
    problem = FactoredProblem(train, None, True, 1, 0, 0)
    return law_of(problem.independent_items(), nonempty=True).mean_log_likelihood(test)


def size_distance(model: dl.Mixture, test: dl.Baskets) -> float:
    sizes = np.exp(model.law.log_sizes())
    seen = np.bincount(test.sizes, weights=test.weights, minlength=len(sizes)) / test.total_weight
    return float(np.abs(sizes - seen).sum() / 2)


def questions(test: dl.Baskets, n: int, seed: int) -> Iterator[tuple[Ints, int]]:
    """Baskets without one of their items, and that item."""
    rng = np.random.default_rng(seed)
    for number in rng.permutation(np.flatnonzero(test.sizes >= 2))[:n].tolist():
        basket = test.positions(number).astype(np.int64)
        at = int(rng.integers(len(basket)))
        yield np.delete(basket, at), int(basket[at])


def rank_of(scores: Scores, basket: Ints, held: int) -> tuple[float, float, float]:
    """Percentile rank, whether it is among the ten best, and NDCG@10; equal scores share their places."""
    found = scores(basket).astype(float)
    found[basket] = -np.inf
    above, equal = int((found > found[held]).sum()), int((found == found[held]).sum())
    place = above + (equal - 1) / 2
    percentile = 100 * (1 - place / (len(found) - len(basket) - 1))
    return percentile, float(place < 10), 1 / np.log2(place + 2) if place < 10 else 0.0


def figures(found: Floats) -> list[float]:
    return [float(each) for each in found.mean(axis=0)]


def paired(one: str, ours: Floats, other: str, theirs: Floats) -> None:
    apart = ours - theirs
    mean, error = apart.mean(axis=0), apart.std(axis=0) / np.sqrt(len(apart))
    told = ", ".join(
        f"{name} {m:+.4f} ± {e:.4f}"
        for name, m, e in zip(("percentile rank", "recall@10", "NDCG@10"), mean, error, strict=True)
    )
    print(f"  {one} less {other}, {len(apart)} pairs: {told}", flush=True)


def baselines(train: dl.Baskets) -> dict[str, Scores]:
    training, frequencies = Training.of(train), train.frequencies()
    return {
        "popularity": lambda basket: frequencies.copy(),
        "item-to-item": training.item_to_item,
        f"EASE, {EASE_ITEMS} items": ease(train, EASE_ITEMS),
        "EASE, all": ease(train, train.n_items),
    }


def ease(train: dl.Baskets, most: int) -> Scores:
    """Steck 2019, on the most frequent items; the others rank behind, by popularity."""
    from scipy.linalg import lapack
    from scipy.sparse import csr_array

    p = train.frequencies()
    kept = np.sort(np.argsort(-p, kind="stable")[:most])
    X = csr_array((np.ones(len(train.indices), np.float32), train.indices, train.offsets), (len(train), train.n_items))
    X = X[:, kept]
    gram = np.asfortranarray((X.T @ X).toarray(), dtype=np.float32)
    gram.ravel(order="K")[:: len(kept) + 1] += EASE_RIDGE
    factor, _ = lapack.spotrf(gram, lower=1, overwrite_a=1)
    P, _ = lapack.spotri(factor, lower=1, overwrite_c=1)
    diagonal, place = P.diagonal().copy(), np.full(train.n_items, -1)
    place[kept] = np.arange(len(kept))

    def scores(basket: Ints) -> Floats:
        found = p - 10.0
        inside = place[basket][place[basket] >= 0]
        of_pairs = [np.concatenate([P[i, :i], P[i:, i]]) for i in inside]
        found[kept] = -np.sum(of_pairs, axis=0) / diagonal if of_pairs else 0.0
        return np.asarray(found)

    return scores


# A known mixture of 10⁵ items


def generated(n_items: int = 100_000, n: int = 1_000_000) -> None:
    truth = KnownMixture.of(n_items, 20, 40, 8.0, rng=0)
    baskets = truth.draw(n + n // 100, rng=1)
    aside = np.random.default_rng(0).permutation(len(baskets))
    test, train = baskets.subset(aside[: n // 100]), baskets.subset(aside[n // 100 :])
    base = independent_of(train, test)
    best = law_of(truth.kernel, nonempty=True).mean_log_likelihood(test) - base
    rows(f"A known mixture, N = {n_items:,}, n = {len(train):,}", "", "gain", "wall s", "CPU s", "peak GB")
    row("truth", best, "", "", "")
    for name, passes, epochs in (("as planned", plan.PASSES, plan.EPOCHS), ("three times as many passes", 180, 15)):
        plan.PASSES, plan.EPOCHS = passes, epochs
        began, wall = cpu(), time.perf_counter()
        model = dl.fit(train, rng=0).model
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        row(name, model.log_likelihood(test) - base, time.perf_counter() - wall, cpu() - began, peak)


# How time grows


def growth() -> None:
    """Of a pass of EM, and of a batch, in n, N, M and the number of columns, each from the same middle."""
    middle = {"n": 50_000, "N": 10_000, "M": 20, "r": 100}
    ladders = {"n": (25_000, 50_000, 100_000), "N": (5_000, 10_000, 20_000), "M": (10, 20, 40), "r": (50, 100, 200)}
    rows("Exponents of CPU time, one thread", "in", "a pass of EM", "a batch", "values")
    for name, ladder in ladders.items():
        times = np.array([timed(**{**middle, name: value}) for value in ladder])
        slopes = np.polyfit(np.log(ladder), np.log(times), 1)[0]
        row(name, *(float(each) for each in slopes), ", ".join(map(str, ladder)))


def timed(n: int, N: int, M: int, r: int) -> tuple[float, float]:
    baskets = KnownMixture.of(N, 4, 10, 8.0, rng=0).draw(n, rng=1)
    problem = FactoredProblem(baskets, 1, True, M, 0, r // 2)
    learning, at = Learning(problem), Place.first(problem.start("random", np.random.default_rng(0)), problem)
    of_pass = fastest(lambda: learning.division(at))
    at = at.with_factors(problem)
    targets = at.log_odds[:, problem.active]
    return of_pass, fastest(lambda: learning.batch(at, targets))


def fastest(work: Callable[[], object], times: int = 3) -> float:
    found = []
    for _ in range(times):
        began = cpu()
        work()
        found.append(cpu() - began)
    return min(found)


# The loop over minors


def rate() -> None:
    """Floating point operations a second, beside a product of matrices in the same run, one thread."""
    from threadpoolctl import threadpool_limits

    square = np.random.default_rng(0).standard_normal((2000, 2000)).astype(np.float32)
    with threadpool_limits(1):
        product = 2 * 2000**3 / fastest(lambda: square @ square) / 1e9
    rows(f"Minors and their gradients (a product of matrices: {product:.0f} GFLOP/s)", "k", "r", "µs", "GFLOP/s")
    for k in (4, 8, 16, 32):
        for r in (100, 200):
            rng = np.random.default_rng(0)
            baskets = dl.Baskets.from_lists([rng.choice(3000, k, replace=False).tolist() for _ in range(4000)])
            Z = (0.1 * rng.standard_normal((baskets.n_items, r))).astype(np.float32)
            into, each = np.zeros_like(Z), np.empty(0)
            given = (baskets.indices, baskets.offsets, baskets.weights, np.arange(len(baskets)), 0, len(baskets))
            minors_of = loops("factored", "minors").minors_of
            took = fastest(lambda: minors_of(Z, 8, *given, into, each)) / len(baskets)  # noqa: B023
            operations = k * (k + 1) * r + 2 * k * k * r + 2 * k**3
            row(k, r, took * 1e6, operations / took / 1e9)


# The published nonsymmetric form


def torch(n_items: int = 3000, columns: int = 60, batch: int = 200) -> None:
    """A step of its likelihood and gradient: L = V Vᵀ + B Cᵀ − C Bᵀ, N × N; and of ours."""
    import torch as peer

    baskets = KnownMixture.of(n_items, 4, 4, 8.0, rng=0).draw(4000, rng=1)
    groups = [peer.tensor(group.sets.astype(np.int64)) for group in baskets.subset(np.arange(batch)).by_size]
    V, B, C = ((0.1 * peer.randn(n_items, columns // 3, dtype=peer.float64)).requires_grad_() for _ in range(3))

    def their_step() -> None:
        L = V @ V.T + B @ C.T - C @ B.T
        minors = sum(
            peer.linalg.slogdet(
                L[sets[:, :, None], sets[:, None, :]] + 1e-5 * peer.eye(sets.shape[1], dtype=peer.float64)
            )[1].sum()
            for sets in groups
        )
        (minors - batch * peer.linalg.slogdet(L + peer.eye(n_items, dtype=peer.float64))[1]).backward()

    problem = FactoredProblem(baskets, None, True, 1, columns // 3, columns // 3)
    active, Z = Active.of(baskets, np.arange(n_items)), np.zeros((n_items, columns), np.float32)
    Z += (0.1 * np.random.default_rng(0).standard_normal(Z.shape)).astype(np.float32)
    chosen = Batch(np.arange(len(baskets)), baskets.weights)
    segment = [Segment(np.full(n_items, -5.0), 1.0)]
    omega = coupling(columns // 3, columns // 3)
    ours = fastest(lambda: gradient(Z, omega, problem.repelling, active, chosen, segment, None)) / len(baskets)
    theirs = fastest(their_step) / batch
    rows(f"A basket of a step, N = {n_items:,}, CPU", "published form in PyTorch, µs", "ours, µs", "ratio")
    row(theirs * 1e6, ours * 1e6, theirs / ours)


SECTIONS: dict[str, Callable[[], None]] = {
    "retail": retail,
    "generated": generated,
    "growth": growth,
    "rate": rate,
    "torch": torch,
}


def main() -> None:
    asked = sys.argv[1:] or list(SECTIONS)
    for name in asked:
        try:
            SECTIONS[name]()
        except ImportError as missing:
            print(f"\n{name}: left out, {missing}", flush=True)


if __name__ == "__main__":
    main()

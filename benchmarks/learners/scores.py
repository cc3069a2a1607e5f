"""Times to a given gap below the best optimum, and the targets of the comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.learners.contest import NUMPY, PAPER, Record
from benchmarks.learners.problems import CLUSTERS
from benchmarks.measure import Result

GAPS = (0.01, 0.003, 0.001)  # nats per basket below the best optimum that any learner found
GAP = 0.003


@dataclass(frozen=True)
class Scores:
    """All records of one contest, and the best optimum known of each problem."""

    records: Sequence[Record]

    @property
    def problems(self) -> list[str]:
        return list(dict.fromkeys(record.problem for record in self.records))

    @property
    def registries(self) -> list[str]:
        return [problem for problem in self.problems if not problem.startswith(CLUSTERS)]

    def best(self, problem: str) -> float:
        """The highest log-likelihood of any run, learned on to 1e-7 where it had stopped by itself."""
        return max(max(max(r.log_likelihood), r.polished) for r in self.records if r.problem == problem)

    def of(self, learner: str, problem: str, start: str) -> Record | None:
        wanted = (learner, problem, start)
        return next((r for r in self.records if (r.learner, r.problem, r.start) == wanted), None)

    def reached(self, record: Record, gap: float) -> tuple[float, float]:
        """Seconds and evaluations of the statistics to within the gap; infinite where it was not reached."""
        there = np.flatnonzero(np.array(record.log_likelihood) >= self.best(record.problem) - gap)
        if not len(there):
            return math.inf, math.inf
        return record.seconds[there[0]], record.evaluations[there[0]]

    def short(self, record: Record) -> float:
        """How far below the best optimum a run ended."""
        return self.best(record.problem) - record.log_likelihood[-1]

    def seconds(self, learner: str, problem: str, start: str, gap: float = GAP) -> float:
        record = self.of(learner, problem, start)
        return self.reached(record, gap)[0] if record is not None else math.inf

    def fastest_other(self, problem: str) -> float:
        """The shortest time of any other learner, from either start."""
        others = (r for r in self.records if r.problem == problem and r.learner not in ("lbfgs", PAPER))
        return min(self.reached(r, GAP)[0] for r in others)


def asked_for(scores: Scores) -> list[Result]:
    """What the benchmark must show, of `lbfgs` from its own start, moments."""
    ours = {problem: scores.of("lbfgs", problem, "moments") for problem in scores.problems}
    here = [(problem, ours[problem]) for problem in scores.registries]
    records = {problem: record for problem, record in here if record is not None}
    if not records:
        return []
    n = len(records)
    evaluations = {problem: scores.reached(record, GAP)[1] for problem, record in records.items()}
    worst = max(evaluations, key=lambda problem: evaluations[problem])
    times = {problem: scores.reached(record, GAP)[0] for problem, record in records.items()}
    first = [problem for problem in records if times[problem] < scores.fastest_other(problem)]
    lead = {problem: scores.fastest_other(problem) / times[problem] for problem in records}
    ratio = {problem: _numpy(scores, problem) / times[problem] for problem in records}
    paper = {problem: _paper(scores, problem) for problem in records}
    gain = {problem: record.test - paper[problem] for problem, record in records.items()}
    short = {problem: scores.short(record) for problem, record in records.items()}
    least = min(ratio, key=lambda problem: ratio[problem])
    furthest = max(short, key=lambda problem: short[problem])
    return [
        Result(f"evaluations to {GAP} nats, the most of {n} categories", evaluations[worst], "", 40, False, worst),
        Result(
            f"short of the best optimum at the end, the most of {n}", short[furthest], "nats", 2e-4, False, furthest
        ),
        Result(
            f"categories of {n} in which lbfgs is first to {GAP} nats",
            len(first),
            "",
            11,
            detail=f"against all others from both starts; lead {min(lead.values()):.1f} to {max(lead.values()):.1f} ×",
        ),
        Result(f"all {n} categories to {GAP} nats, together", sum(times.values()), "s", 1, False, "without the starts"),
        Result(
            f"times faster to {GAP} nats than lbfgs with batched numpy, the least of {n}",
            ratio[least],
            "×",
            10,
            detail=f"{least}; median {np.median(list(ratio.values())):.0f} ×",
        ),
        Result(
            "test log-likelihood above the paper's EM, the least",
            min(gain.values()),
            "nats",
            -0.01,
            detail=min(gain, key=lambda problem: gain[problem]),
        ),
        Result(
            f"categories of {n} in which it is above the paper's EM",
            sum(g > 0 for g in gain.values()),
            "",
            11,
            detail=f"median {np.median(list(gain.values())):.3f} nats above",
        ),
        *(
            Result(f"{problem}, 50,000 baskets, to {GAP} nats", scores.reached(record, GAP)[0], "s", 120, False)
            for problem, record in ours.items()
            if problem not in records and record is not None
        ),
    ]


def _numpy(scores: Scores, problem: str) -> float:
    """The array-library comparator, from whichever start is better for it; its limit where it did not arrive."""
    records = [scores.of(NUMPY, problem, start) for start in ("moments", "wishart")]
    return min(min(scores.reached(record, GAP)[0], record.limit) for record in records if record is not None)


def _paper(scores: Scores, problem: str) -> float:
    """The test log-likelihood of the paper's EM with its stopping rule, from the better of its two starts."""
    found = [scores.of(PAPER, problem, start) for start in ("moments", "wishart")]
    return max(record.test for record in found if record is not None)


def calibration(scores: Scores) -> dict[str, dict[str, dict[str, float]]]:
    """By learner and tolerance: what was truly left, over the tolerance, where the rule first fell to it.

    The truth is the optimum above the run's own end, so that a worse local optimum is not held against the rule.
    """
    ratios: dict[str, dict[str, list[float]]] = {}
    for record in scores.records:
        if not record.problem.startswith(CLUSTERS) and record.learner not in (PAPER, NUMPY, "em", "k-ascent"):
            for tol, likelihood in record.ruled.items():
                left = (record.polished - likelihood) / float(tol)
                ratios.setdefault(record.learner, {}).setdefault(tol, []).append(left)
    return {
        learner: {
            tol: {"runs": len(values), "median": float(np.median(values)), "largest": max(values)}
            for tol, values in by_tol.items()
        }
        for learner, by_tol in ratios.items()
    }

"""Performance profiles, and the cost of one evaluation against n, N and k."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from benchmarks.learners.scores import GAPS, Scores, profile

matplotlib.rcParams["svg.hashsalt"] = "dpplearn"  # so that the same figures give the same file
STYLES = {"auto": {"color": "black", "linewidth": 2.5}}


def profiles(scores: Scores, folder: Path) -> Path:
    """Share of problems solved within τ times the least cost, for time (above) and evaluations (below)."""
    figure = Figure(figsize=(13, 7.5), layout="constrained")
    axes = figure.subplots(2, len(GAPS), sharey=True)
    for row, what in enumerate(("seconds", "evaluations of the statistics")):
        for column, gap in enumerate(GAPS):
            axis = axes[row][column]
            _profile(axis, profile(scores, gap, row))
            axis.set_title(f"to within {gap} nats: {what}", fontsize=10)
            axis.set_xlabel("τ, times the least of all learners")
        axes[row][0].set_ylabel("share of problems solved")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center")
    return _saved(figure, folder / "profiles.svg")


def _profile(axis: Any, ratios: Mapping[str, Sequence[float]]) -> None:
    finite = [ratio for values in ratios.values() for ratio in values if math.isfinite(ratio)]
    end = 2 * max(finite, default=1.0)
    for learner, values in ratios.items():
        solved = np.sort([ratio for ratio in values if math.isfinite(ratio)])
        x = np.concatenate([[1.0], solved, [end]])
        y = np.concatenate([[0.0], np.arange(1, len(solved) + 1), [len(solved)]]) / len(values)
        axis.step(x, y, where="post", label=learner, **STYLES.get(learner, {}))
    axis.set_xscale("log")
    axis.set_xlim(1, end)
    axis.set_ylim(0, 1.02)
    axis.grid(alpha=0.3)


def growth(axes_of_growth: Sequence[Mapping[str, Any]], folder: Path) -> Path:
    figure = Figure(figsize=(13, 4), layout="constrained")
    for axis, grown in zip(figure.subplots(1, len(axes_of_growth)), axes_of_growth, strict=True):
        for name, times in grown["seconds"].items():
            axis.loglog(grown["values"], times, "o-", label=f"{name}, exponent {grown['exponents'][name]:.2f}")
        axis.set_xlabel(grown["axis"])
        axis.set_ylabel("seconds")
        axis.set_title(grown["title"], fontsize=10)
        axis.legend(fontsize=8)
        axis.grid(alpha=0.3, which="both")
    return _saved(figure, folder / "growth.svg")


def _saved(figure: Figure, path: Path) -> Path:
    figure.savefig(path, metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=110)
    return path

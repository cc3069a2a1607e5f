"""Run the doctests and the numerical tests as on other processors: `python tests/processors.py`, or `--short`.

OpenBLAS, numba and numpy choose their code by the processor, and each choice rounds differently. Environment variables
make them choose as on another processor. Processors whose instructions this machine lacks are named and skipped.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parent
DOCTESTS = TESTS.parent / "src"
# The golden values, every kind of component against enumeration, and one learner per family.
SHORT = (
    "golden distributions/test_scaled.py distributions/test_spectral.py distributions/test_statistics.py "
    "distributions/test_minors_and_segments.py learners/test_fit_mixture.py learners/test_symmetric.py "
    "reproduction/test_textbook.py"
)
FULL = (
    "golden distributions models learners evaluation analysis lifecycle utils/test_threads.py "
    "reproduction/test_textbook.py reproduction/test_experiments.py"
)


@dataclass(frozen=True)
class Processor:
    """A core type of OpenBLAS, the processor that numba compiles for, and the instructions that both need."""

    core_type: str
    numba: str
    needs: frozenset[str]
    short: bool = False  # part of the short run

    def environment(self, threads: int) -> dict[str, str]:
        """Return the variables under which a process computes as on this processor."""
        found = {"OPENBLAS_CORETYPE": self.core_type, "NUMBA_CPU_NAME": self.numba, "NUMBA_CPU_FEATURES": ""}
        if "avx2" not in self.needs and "avx512f" not in self.needs:
            optional = np.show_config(mode="dicts")["SIMD Extensions"]["found"]  # type: ignore[call-overload,index]
            found["NPY_DISABLE_CPU_FEATURES"] = " ".join(optional)
        return {**os.environ, **found, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}


PROCESSORS = (
    Processor("Nehalem", "generic", frozenset({"sse4_2"}), short=True),
    Processor("Sandybridge", "sandybridge", frozenset({"avx"})),
    Processor("Haswell", "haswell", frozenset({"avx2", "fma"}), short=True),
    Processor("Zen", "znver1", frozenset({"avx2", "fma", "sha_ni", "sse4a"})),
    Processor("SkylakeX", "skylake-avx512", frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"})),
)


def instructions() -> frozenset[str]:
    """Return the instruction sets of this machine; none where they cannot be read."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line for line in lines if line.startswith("flags")), "").split())


def passes(processor: Processor, names: str, threads: int) -> bool:
    """Run the doctests and the named tests as on a processor, print the result, and return whether all passed."""
    paths = [str(DOCTESTS), *(str(TESTS / name) for name in names.split())]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "", "-p", "no:cacheprovider", *paths]
    environment = processor.environment(threads)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.splitlines()
    verdict = "FAILED" if done.returncode else "passed"
    title = f"\n{verdict} as {processor.core_type}, numba for {processor.numba}, {threads} BLAS threads"
    print(title, *(lines if done.returncode else lines[-1:]), sep="\n", flush=True)
    return done.returncode == 0


def main() -> int:
    """Run the matrix; return 1 if a run failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="fewer tests, as Nehalem and Haswell, one BLAS thread")
    short = parser.parse_args().short
    available = instructions()
    if platform.machine() not in ("x86_64", "AMD64") or not available:
        names = ", ".join(each.core_type for each in PROCESSORS)
        print(f"skipped {names}: their code needs an x86-64 Linux machine, this is {platform.machine()}")
        return 0
    chosen = []
    for processor in PROCESSORS:
        if short and not processor.short:
            continue
        if missing := processor.needs - available:
            print(f"skipped {processor.core_type}: this machine lacks {', '.join(sorted(missing))}")
        else:
            chosen.append(processor)
    runs = [(each, SHORT if short else FULL, 1) for each in chosen]
    if not short:
        runs += [(each, SHORT, 2) for each in chosen]
    # One process per core, each for another processor: two processes for the same one would both compile every loop.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        passed = list(pool.map(lambda run: passes(*run), runs))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())

"""The numerical tests as on other processors: `python tests/processors.py`, or `--short` for the core on two of them.

OpenBLAS, numba and numpy choose their code by the processor, and each choice rounds differently. Here they are told to
choose as on others. Types that this machine cannot run are named and left out.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SYMMETRIC = "kernels/symmetric/test_"
CORE = (
    f"{SYMMETRIC}statistics.py {SYMMETRIC}independence.py {SYMMETRIC}kernel.py "
    "kernels/nonsymmetric/test_minors_and_segments.py learners/mixture "
    "learners/symmetric/test_fixed_points.py learners/symmetric/test_natural_em.py experiments/trials/test_recovery.py"
)
NUMERICAL = (
    "tools/test_threads.py kernels models/test_dpp.py models/test_explaining.py models/test_training.py learners "
    "fitting/test_fit.py fitting/test_prior.py fitting/test_prior_choice.py fitting/test_nonempty.py "
    "fitting/test_yardstick.py fitting/test_early_stopping.py fitting/test_mixture.py "
    "fitting/test_factored_fits.py fitting/test_quality_fits.py fitting/test_fixed_kernels.py fitting/test_slates.py "
    "models/test_new_items.py models/test_evidence.py uncertainty evaluation upkeep "
    "analysis/test_cooccurrence.py analysis/test_substitutes.py analysis/test_similarity.py experiments/trials "
    "experiments/test_textbook.py"
)


@dataclass(frozen=True)
class Processor:
    """A core type of OpenBLAS, what numba compiles for, and the instructions that the two need."""

    core_type: str
    numba: str
    needs: frozenset[str]

    def environment(self, threads: int) -> dict[str, str]:
        found = {"OPENBLAS_CORETYPE": self.core_type, "NUMBA_CPU_NAME": self.numba, "NUMBA_CPU_FEATURES": ""}
        if "avx2" not in self.needs and "avx512f" not in self.needs:
            optional = np.show_config(mode="dicts")["SIMD Extensions"]["found"]  # type: ignore[call-overload,index]
            found["NPY_DISABLE_CPU_FEATURES"] = " ".join(optional)
        return {**os.environ, **found, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}


PROCESSORS = (
    Processor("Nehalem", "generic", frozenset({"sse4_2"})),
    Processor("Sandybridge", "sandybridge", frozenset({"avx"})),
    Processor("Haswell", "haswell", frozenset({"avx2", "fma"})),
    Processor("Zen", "znver1", frozenset({"avx2", "fma", "sha_ni", "sse4a"})),
    Processor("SkylakeX", "skylake-avx512", frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"})),
)


def instructions() -> frozenset[str]:
    """What this machine's processor can do; nothing where that cannot be read."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line for line in lines if line.startswith("flags")), "").split())


def own_core_type() -> str:
    code = "import numpy; from threadpoolctl import threadpool_info; print(threadpool_info()[0].get('architecture'))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def passes(processor: Processor, where: str, threads: int) -> bool:
    files = [str(HERE / name) for name in where.split()]
    print(f"\n{processor.core_type}, numba for {processor.numba}, {threads} BLAS threads", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider", *files]
    return subprocess.run(command, env=processor.environment(threads), check=False).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="the numerical core, on two other core types")
    short = parser.parse_args().short
    able = instructions()
    if platform.machine() not in ("x86_64", "AMD64") or not able:
        print(f"no other core types are known for {platform.machine()}; nothing to run")
        return 0
    for processor in PROCESSORS:
        if missing := processor.needs - able:
            print(f"{processor.core_type}: left out, as this machine has no {', '.join(sorted(missing))}")
    chosen = [processor for processor in PROCESSORS if processor.needs <= able]
    if short:
        chosen = [each for each in chosen if each.core_type.lower() not in (own_core_type().lower(), "zen")][:2]
    runs = [(each, threads) for each in chosen for threads in ((1,) if short else (1, 2))]
    failed = [run for run in runs if not passes(run[0], CORE if short else NUMERICAL, run[1])]
    for processor, threads in failed:
        print(f"FAILED as {processor.core_type} with {threads} BLAS threads")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Memory limits of the process and of control groups."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dpplearn.utils import memory


@pytest.mark.slow
def test_a_limit_on_the_process_is_found() -> None:
    pytest.importorskip("resource")
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**31, -1)); "
        "from dpplearn.utils.memory import memory_limit"
    )
    done = subprocess.run([sys.executable, "-c", f"{code}; print(memory_limit())"], capture_output=True, text=True)
    assert float(done.stdout) == 2**31, done.stderr


def test_limits_of_all_parent_control_groups_are_found(tmp_path: Path) -> None:
    (tmp_path / "service" / "job").mkdir(parents=True)
    for group, text in (("service/job", "max\n"), ("service", "3000000\n"), (".", "9223372036854771712\n")):
        (tmp_path / group / "memory.max").write_text(text)
    assert sorted(memory.group_limits(tmp_path, "/service/job", "memory.max")) == [3e6, 9223372036854771712]
    assert list(memory.group_limits(tmp_path, "/elsewhere", "memory.max")) == [9223372036854771712]

"""How a pass over baskets is shared by threads."""

from __future__ import annotations

import pytest

from dpplearn import InputError
from dpplearn.distributions.minors import WORK_WORTH_A_THREAD, Share, over_threads


def shares(work: int, threads: int | None) -> list[Share]:
    return over_threads(lambda share: share, work, threads, with_blas=False)


def test_a_number_of_threads_that_cannot_be_is_refused_however_little_the_work() -> None:
    with pytest.raises(InputError, match=r"threads.*\b0\b"):
        shares(0, 0)


def test_an_error_in_any_share_is_the_caller_s() -> None:
    def part(share: Share) -> None:
        if share.thread == 1:
            raise ValueError("of the second")

    with pytest.raises(ValueError, match="of the second"):
        over_threads(part, 2 * WORK_WORTH_A_THREAD, 3, with_blas=False)

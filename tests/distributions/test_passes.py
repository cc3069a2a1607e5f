"""How a pass over baskets is shared by threads."""

from __future__ import annotations

import pytest

from dpplearn import InputError
from dpplearn.distributions.minors import WORK_WORTH_A_THREAD, Share, over_threads


def shares(work: int, threads: int | None) -> list[Share]:
    return over_threads(lambda share: share, work, threads, with_blas=False)


def test_shares_of_every_size_are_equal_to_one_set_and_leave_out_none() -> None:
    for n in (0, 1, 6, 7, 8, 1000):
        taken = [list(range(n))[share.among(n)] for share in shares(10 * WORK_WORTH_A_THREAD, 7)]
        assert len(taken) == 7
        assert [row for part in taken for row in part] == list(range(n))
        assert max(map(len, taken)) - min(map(len, taken)) <= 1


def test_there_are_no_more_threads_than_asked_for_nor_than_the_work_is_worth() -> None:
    assert shares(WORK_WORTH_A_THREAD - 1, 8) == [Share(0, 1)]
    assert shares(2 * WORK_WORTH_A_THREAD, 8) == [Share(0, 3), Share(1, 3), Share(2, 3)]
    assert shares(9 * WORK_WORTH_A_THREAD, 2) == [Share(0, 2), Share(1, 2)]


def test_a_number_of_threads_that_cannot_be_is_refused_however_little_the_work() -> None:
    with pytest.raises(InputError, match=r"threads.*\b0\b"):
        shares(0, 0)


def test_an_error_in_any_share_is_the_caller_s() -> None:
    def part(share: Share) -> None:
        if share.thread == 1:
            raise ValueError("of the second")

    with pytest.raises(ValueError, match="of the second"):
        over_threads(part, 2 * WORK_WORTH_A_THREAD, 3, with_blas=False)

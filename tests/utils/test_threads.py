"""Limits on BLAS threads: nested, concurrent and forked users restore the original setting."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from dpplearn import FitResult, fit_dpp
from dpplearn.datasets.registries import make_registries
from dpplearn.utils.threads import BLAS_LIMIT, LARGE_MATRIX, one_blas_thread, suitable_blas


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def three_blas_threads() -> object:
    """Set a number that no test requests, for every BLAS library; scipy has its own."""
    import scipy.linalg  # noqa: F401

    with threadpool_limits(3, user_api="blas"):
        yield


def test_the_setting_is_restored_for_any_order_of_leaving_and_after_an_error() -> None:
    for first_out in (0, 1):
        users = [suitable_blas(10, None), suitable_blas(10, None)]
        for user in users:
            user.__enter__()
        users.pop(first_out).__exit__(None, None, None)
        assert blas_threads() == {1}  # the limit of the other user
        users.pop().__exit__(None, None, None)
        assert blas_threads() == {3}
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    assert blas_threads() == {3}


def test_the_smallest_requested_limit_applies() -> None:
    with suitable_blas(LARGE_MATRIX, 2):
        assert blas_threads() == {2}
        with one_blas_thread():
            assert blas_threads() == {1}
            with suitable_blas(LARGE_MATRIX, 2):  # our own threads share the cores already
                assert blas_threads() == {1}
        assert blas_threads() == {2}
    assert blas_threads() == {3}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_process_forked_while_another_thread_sets_a_limit_can_set_one() -> None:
    """The child has a copy of the lock, but not the thread that would release it."""
    holding = Event()

    def hold() -> None:
        with BLAS_LIMIT.lock:
            holding.set()
            time.sleep(0.3)

    with ThreadPoolExecutor(1) as other:
        other.submit(hold)
        holding.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(10)  # ends a child that waits forever
            with one_blas_thread():
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.slow
def test_fits_in_threads_equal_sequential_fits() -> None:
    """Use learners that call BLAS in different ways, one with cross-validated shrinkage."""
    shrinkages = {"lbfgs": "auto", "em": 0, "natural-em": 0.1, "adam": 0.3}
    baskets = make_registries("safety", 160, rng=0)

    def learn(learner: str) -> FitResult:
        return fit_dpp(baskets, learner, shrinkage=shrinkages[learner], max_iter=6, rng=0, threads=1)

    with ThreadPoolExecutor(len(shrinkages)) as pool:
        at_once = list(pool.map(learn, shrinkages))
    assert blas_threads() == {3}
    for ours, learner in zip(at_once, shrinkages, strict=True):
        alone = learn(learner)
        np.testing.assert_allclose(ours.model.K, alone.model.K, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(ours.history.log_likelihood, alone.history.log_likelihood, rtol=1e-12)

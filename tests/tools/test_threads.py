"""Threads that learn at once leave the one setting that BLAS has as it was, and do not feel each other."""

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
from dpplearn.tools.threads import BLAS_LIMIT, LARGE_MATRIX, one_blas_thread, suitable_blas


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def three_blas_threads() -> object:
    """A number that nothing here asks for, of every BLAS: scipy brings one of its own."""
    import scipy.linalg  # noqa: F401

    with threadpool_limits(3, user_api="blas"):
        yield


@pytest.mark.parametrize("first_out", [0, 1])
def test_blas_has_its_threads_back_in_whatever_order_two_users_leave(first_out: int) -> None:
    users = [suitable_blas(10, None), suitable_blas(10, None)]
    for user in users:
        user.__enter__()
    assert blas_threads() == {1}
    users.pop(first_out).__exit__(None, None, None)
    assert blas_threads() == {1}  # the other one still wants that
    users.pop().__exit__(None, None, None)
    assert blas_threads() == {3}


def test_the_least_that_is_asked_for_holds_and_no_longer_than_it_is_asked_for() -> None:
    with suitable_blas(LARGE_MATRIX, 2):
        assert blas_threads() == {2}
        with one_blas_thread():
            assert blas_threads() == {1}
            with suitable_blas(LARGE_MATRIX, 2):  # threads of ours share the cores already
                assert blas_threads() == {1}
        assert blas_threads() == {2}
    assert blas_threads() == {3}


def test_an_error_within_gives_blas_its_threads_back() -> None:
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    assert blas_threads() == {3}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_process_forked_while_another_thread_sets_blas_can_do_so_too() -> None:
    """The child has the lock, and not the thread that would let go of it."""
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
            signal.alarm(10)  # ends a child that waits for ever
            with one_blas_thread():
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


def bits(result: FitResult) -> tuple[bytes, ...]:
    history = result.history
    return (
        result.model.kernel.eigenvalues.tobytes(),
        result.model.kernel.eigenvectors.tobytes(),
        history.log_likelihood.tobytes(),
        history.evaluations.tobytes(),
    )


@pytest.mark.slow
def test_fits_in_threads_equal_sequential_fits_to_the_last_bit() -> None:
    """Learners that use BLAS in different ways, with cross-validated shrinkage in some."""
    shrinkages = {"lbfgs": "auto", "em": 0, "natural-em": 0.1, "adam": 0.3}
    settings = [
        {"learner": learner, "shrinkage": shrinkage, "max_iter": 6, "rng": seed, "threads": 1 + seed % 2}
        for seed, (learner, shrinkage) in enumerate(shrinkages.items())
    ]
    registries = [make_registries("safety", 160, rng=seed) for seed in range(len(settings))]
    with ThreadPoolExecutor(len(settings)) as pool:
        at_once = list(pool.map(lambda each: fit_dpp(each[0], **each[1]), zip(registries, settings, strict=True)))
    assert blas_threads() == {3}
    alone = [fit_dpp(baskets, **each) for baskets, each in zip(registries, settings, strict=True)]
    for ours, theirs, each in zip(at_once, alone, settings, strict=True):
        assert bits(ours) == bits(theirs), each
    assert len({bits(result) for result in at_once}) == len(settings)
    np.testing.assert_array_less(0, [result.n_iter for result in at_once])

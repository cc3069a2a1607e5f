"""Public functions document parameters, return value and an example; methods at least what they do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import ModuleType
from typing import Any

import dpplearn
from dpplearn import datasets, plots


def functions_of(thing: Any) -> Iterator[Callable[..., Any]]:
    """A function, or the public methods of a class; of those that it inherits, ours."""
    if inspect.isfunction(thing):
        yield thing
    for each in inspect.getmro(thing) if inspect.isclass(thing) else ():
        for name, member in vars(each).items():
            method = getattr(member, "__func__", member)  # of a classmethod
            if inspect.isfunction(method) and method.__module__.startswith("dpplearn") and not name.startswith("_"):
                yield method


def public_functions(*modules: ModuleType) -> dict[str, Callable[..., Any]]:
    things = [getattr(module, name) for module in modules for name in module.__all__]
    functions = [function for thing in things for function in functions_of(thing)]
    return {f"{function.__module__}.{function.__qualname__}": function for function in functions}


def missing_in(function: Callable[..., Any], *, is_method: bool = False) -> list[str]:
    """Return the sections that a docstring lacks, and the parameters that it does not name.

    The docstring of a method may be one sentence. If it has a section of parameters, that is complete.
    """
    lines = [line.strip() for line in (inspect.getdoc(function) or "").splitlines()]
    if not lines:
        return ["docstring"]
    signature = inspect.signature(function)
    parameters = [name for name in signature.parameters if name not in ("self", "cls")]
    wanted = ["Examples"]
    if parameters:
        wanted.append("Parameters")
    if signature.return_annotation not in (None, "None"):
        wanted.append("Returns")
    titles = {title for title, rule in pairwise(lines) if rule == "-" * len(title) and title}
    if is_method:
        wanted, parameters = [], parameters if "Parameters" in titles else []
    # "name", "first, second" or "name : type", as numpydoc has them
    named = {name.strip() for line in lines for name in line.partition(" : ")[0].split(",")}
    return [each for each in wanted if each not in titles] + [name for name in parameters if name not in named]


FUNCTIONS = public_functions(dpplearn, datasets, plots)


def test_docstrings_are_complete() -> None:
    missing = {
        name: missing_in(function, is_method="." in function.__qualname__) for name, function in FUNCTIONS.items()
    }
    assert len(missing) > 50
    assert {name: found for name, found in missing.items() if found} == {}


def test_missing_sections_are_found() -> None:
    def undocumented(first: int, second: int) -> int:
        """Return the sum.

        Parameters
        ----------
        first
            A number.
        """

    assert missing_in(undocumented) == ["Examples", "Returns", "second"]
    assert missing_in(undocumented, is_method=True) == ["second"]
    undocumented.__doc__ = None
    assert missing_in(undocumented, is_method=True) == ["docstring"]

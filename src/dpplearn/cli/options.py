"""Arguments and options that commands share, and `with_options`, which makes a function a command.

A command is a function with a numpydoc docstring: the help of a parameter is its text there. Parameters of the type of
a dataclass are groups of options, declared once and documented in the dataclass. Parameters that a command or a group
does not document have the texts below.

Parameters
----------
data
    A file of baskets, or a quoted pattern such as 'orders-*.csv'.
model
    A model file that dpplearn fit wrote.
items
    Items of the basket; none for the empty basket.
force
    Replace an existing file or folder that is not an earlier output of this type.
seed
    Seed of the random numbers.
cluster
    Workers: N processes on this machine, or those of a Dask scheduler.
columns
    Columns of the file, such as basket=order,item=sku; also weight and time. Times are in UTC; a basket has the latest
    of its rows.
format
    Tables have one row per basket and item; lines: one basket per line. auto: by the ending of the file.
unknown
    Items that the model does not have: report an error, or drop and count them.
holdout
    Hold out this fraction of DATA to evaluate on.
max_seconds
    Time limit of the whole fit; the best model so far is saved.
"""

from __future__ import annotations

import inspect
import re
import secrets
import sys
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

import typer

from dpplearn.cli.errors import UsageError
from dpplearn.cli.output import Display
from dpplearn.data.baskets import Baskets
from dpplearn.data.files import FORMATS, find_files, read_items
from dpplearn.data.readers import read_baskets
from dpplearn.data.unknown import UNKNOWN
from dpplearn.utils.files import OutputKind, check_replaceable, same_file
from dpplearn.utils.text import listed
from dpplearn.utils.threads import set_default_threads

READING = "Reading baskets"
BASKET_COLUMNS = ("basket", "item", "weight", "time")


def one_of(known: Iterable[str], **more: Any) -> Any:
    """Return an option whose value, or each of whose values, is one of those known."""
    names = list(known)

    def check(value: Any) -> Any:
        for each in value if isinstance(value, list) else [value]:
            if each is not None and each not in names:
                raise typer.BadParameter(f"{each!r} is not one of {', '.join(names)}")
        return value

    return typer.Option(metavar="|".join(names), callback=check, **more)


OUTPUT, OUTPUT_FOLDER = (typer.Option("--output", "-o", metavar=name) for name in ("FILE", "FOLDER"))
FILE = typer.Option(metavar="FILE")
DATE = typer.Option(metavar="DATE")
Data = Annotated[str, typer.Argument(metavar="DATA")]
Model = Annotated[Path, typer.Argument(metavar="MODEL")]
Items = Annotated[list[str] | None, typer.Argument(metavar="ITEM")]
Force = Annotated[bool, typer.Option("--force")]
Seed = Annotated[int, typer.Option(min=0)]
AnySeed = Annotated[int | None, typer.Option(min=0, help="Seed of the random numbers; by default a new one.")]
Positive = Annotated[int, typer.Option(min=1)]
Fraction = Annotated[float | None, typer.Option(min=0, max=1, metavar="FRACTION")]
Cluster = Annotated[str | None, typer.Option(metavar="local:N|tcp://HOST:PORT")]
Columns = Annotated[str | None, typer.Option(metavar="NAME=COLUMN,...", rich_help_panel=READING)]
Format = Annotated[str, one_of(FORMATS, rich_help_panel=READING)]
Unknown = Annotated[str, one_of(UNKNOWN, rich_help_panel=READING)]


def named_columns(text: str | None, known: Iterable[str] = BASKET_COLUMNS) -> dict[str, str]:
    """Return the columns that --columns names.

    >>> named_columns("basket=order,item=sku")
    {'basket': 'order', 'item': 'sku'}
    """
    found = {}
    for part in text.split(",") if text is not None else ():
        name, sign, column = part.partition("=")
        if not sign or name.strip() not in known:
            raise UsageError(f"--columns {part!r} is not NAME=COLUMN with a NAME out of {', '.join(known)}")
        found[name.strip()] = column
    return found


@dataclass(frozen=True)
class Read:
    """Options for reading baskets.

    Parameters
    ----------
    since
        Ignore baskets before this date.
    before
        Ignore baskets from this date on.
    """

    panel: ClassVar[str] = READING
    columns: Columns = None
    format: Format = "auto"
    since: Annotated[str | None, DATE] = None
    before: Annotated[str | None, DATE] = None

    @property
    def how(self) -> dict[str, str]:
        """The columns and the format, as arguments of `read_baskets`."""
        return {**named_columns(self.columns), "format": self.format}

    def baskets(self, path: str, display: Display) -> Baskets:
        """Read the baskets between --since and --before."""
        with display.busy(f"reading {path}"):
            baskets = read_baskets(path, **self.how)
        baskets = baskets if self.since is None else baskets.since(self.since)
        return baskets if self.before is None else baskets.before(self.before)


@dataclass(frozen=True)
class Filter:
    """Options that select items of the training data.

    Parameters
    ----------
    keep_items
        Keep items of a file, one per line.
    min_count
        Drop items that are in fewer baskets.
    top_items
        Keep this many items, the most frequent.
    """

    panel: ClassVar[str] = READING
    keep_items: Annotated[Path | None, FILE] = None
    min_count: float | None = None
    top_items: int | None = None

    def filtered(self, baskets: Baskets) -> Baskets:
        """Keep the items of the file, then those of the minimum count, then the most frequent."""
        baskets = baskets if self.keep_items is None else baskets.of_items(read_items(self.keep_items))
        baskets = baskets if self.min_count is None else baskets.min_count(self.min_count)
        return baskets if self.top_items is None else baskets.most_frequent(self.top_items)


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command as typer takes it: options of a dataclass in place of each parameter of that type, with help."""
    signature = inspect.signature(command, eval_str=True)
    description, texts = _documentation(command)
    types = {name: each.annotation for name, each in signature.parameters.items()}
    groups: dict[str, Any] = {name: kind for name, kind in types.items() if is_dataclass(kind)}
    members = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}
    options = [_with_help(each, texts) for name, each in signature.parameters.items() if name not in groups]
    for name, group in groups.items():
        texts, panel = _documentation(group)[1], getattr(group, "panel", None)
        options += [_with_help(each, texts, panel) for each in members[name].values()]

    def expanded(**given: Any) -> None:
        set_default_threads(given["threads"])
        for name, group in groups.items():
            given[name] = group(**{option: given.pop(option) for option in members[name]})
        command(**given)

    expanded.__name__, expanded.__doc__ = command.__name__, description
    expanded.__annotations__ = {each.name: each.annotation for each in options}
    expanded.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    return expanded


def _documentation(documented: Any) -> tuple[str, dict[str, str]]:
    """Return the description in a numpydoc docstring, and the texts of its parameters by name."""
    description, _, parameters = (inspect.getdoc(documented) or "").partition("\n\nParameters\n----------\n")
    entries = [each.split("\n", 1) for each in re.split(r"\n(?=\S)", parameters) if each]
    paragraphs = (" ".join(each.split()) for each in description.split("\n\n"))  # the help keeps line breaks
    return "\n\n".join(paragraphs), {name: " ".join(text.split()) for name, text in entries}


SHARED_TEXTS = _documentation(sys.modules[__name__])[1]


def _with_help(parameter: inspect.Parameter, texts: Mapping[str, str], panel: str | None = None) -> inspect.Parameter:
    """Return a parameter as a keyword whose option has its text as help, unless it has one already."""
    annotation = parameter.annotation
    kind, given = get_args(annotation) if hasattr(annotation, "__metadata__") else (annotation, typer.Option())
    option = copy(given)
    option.help = given.help or texts.get(parameter.name) or SHARED_TEXTS.get(parameter.name)
    option.rich_help_panel = given.rich_help_panel or panel
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option])


def some_seed(seed: int | None) -> int:
    """Return the seed, or a new one that can be reported."""
    return secrets.randbelow(2**31) if seed is None else seed


def check_exclusive(options: Mapping[str, object], why: str) -> None:
    """Raise an error that names the options that were given."""
    given = [name for name, value in options.items() if value]
    if given:
        raise UsageError(f"{listed(given)} {why}")


def check_target(
    option: str, target: Path | None, sources: Iterable[str | Path | None], kind: OutputKind, *, force: bool
) -> None:
    """Check, before anything is read, that a command can write `target` and may replace what is there.

    `sources` are all other files that the call names, data as patterns; none of them is replaced, even with `force`.
    `kind` is the type of the output, for `check_replaceable`.
    """
    if target is None:
        return
    for source in sources:
        for file in find_files(source) if isinstance(source, str) else [source]:
            if file is not None and same_file(target, file):
                raise UsageError(f"{option} {target} would overwrite {file}, which this call also uses")
    check_replaceable(target, kind, force=force)

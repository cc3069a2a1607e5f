"""Arguments and options that commands share. Groups of options are dataclasses, which `with_options` expands."""

from __future__ import annotations

import inspect
import secrets
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from dpplearn.cli.errors import UsageError
from dpplearn.data.baskets import Baskets, known_baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.data.files import FORMATS, find_files, read_items
from dpplearn.data.readers import read_baskets
from dpplearn.data.unknown import UNKNOWN, LeftOut
from dpplearn.errors import InputError, InputWarning
from dpplearn.utils.files import OutputKind, check_replaceable, same_file
from dpplearn.utils.text import listed
from dpplearn.utils.threads import MOST_THREADS, set_default_threads

READING, LEARNING = "Reading baskets", "Learning"
BASKET_COLUMNS = ("basket", "item", "weight", "time")
NEW_FILE = OutputKind("an earlier output", lambda path: False)  # existing tables are replaced with --force only


def one_of(known: Iterable[str]) -> Callable[[str | None], str | None]:
    """Return a check that a value is one of those known."""
    names = list(known)

    def check(value: str | None) -> str | None:
        if value is not None and value not in names:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(names)}")
        return value

    return check


def option(help: str, *names: str, panel: str | None = None, known: Iterable[str] | None = None, **more: Any) -> Any:
    """Return an option; with `known`, its value is one of those. By default it has the name of the parameter."""
    if known is not None:
        more |= {"metavar": "|".join(known), "callback": one_of(known)}
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


Data = Annotated[
    str, typer.Argument(metavar="DATA", help="A file of baskets, or a quoted pattern such as 'orders-*.csv'.")
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that dpplearn fit wrote.")]
Items = Annotated[
    list[str] | None, typer.Argument(metavar="ITEM", help="Items of the basket; none for the empty basket.")
]
ModelOutput = Annotated[
    Path, option("The model file to write; an old one is replaced.", "--output", "-o", metavar="FILE")
]
TableOutput = Annotated[
    Path | None, option("Table to write: .csv, .parquet or .jsonl.", "--output", "-o", metavar="FILE")
]
Force = Annotated[
    bool, option("Replace an existing file or folder that is not an earlier output of this type.", "--force")
]
Seed = Annotated[int | None, option("Seed of the random numbers; by default a new one.", min=0)]
FixedSeed = Annotated[int, option("Seed of the random numbers.", min=0)]
Top = Annotated[int, option("How many items and pairs to show.", min=1)]
Cluster = Annotated[
    str | None,
    option(
        "Workers: N processes on this machine, or those of a Dask scheduler.",
        metavar="local:N|tcp://HOST:PORT",
        panel=LEARNING,
    ),
]
Columns = Annotated[
    str | None,
    option(
        "Columns of the file, such as basket=order,item=sku; also weight and time. Times are in UTC; a basket has the "
        "latest of its rows.",
        metavar="NAME=COLUMN,...",
        panel=READING,
    ),
]
Format = Annotated[
    str,
    option(
        "Tables have one row per basket and item; lines: one basket per line. auto: by the ending of the file.",
        known=FORMATS,
        panel=READING,
    ),
]
Unknown = Annotated[
    str,
    option(
        "Items that the model does not have: report an error, or drop and count them.", known=UNKNOWN, panel=READING
    ),
]


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
    """Options for reading baskets."""

    columns: Columns = None
    format: Format = "auto"
    since: Annotated[str | None, option("Ignore baskets before this date.", metavar="DATE", panel=READING)] = None
    before: Annotated[str | None, option("Ignore baskets from this date on.", metavar="DATE", panel=READING)] = None

    @property
    def named(self) -> dict[str, str]:
        """Columns by name, as arguments of `read_baskets`."""
        return named_columns(self.columns)

    def baskets(self, path: str) -> Baskets:
        """Read the baskets between --since and --before."""
        given = {"--since": self.since, "--before": self.before}
        cut = [f"{option} {value}" for option, value in given.items() if value is not None]
        if cut and "time" not in self.named:
            raise UsageError(f"{listed(cut)} needs the column of times: --columns time=COLUMN")
        baskets = read_baskets(path, **self.named, format=self.format)
        baskets = baskets if self.since is None else baskets.since(self.since)
        baskets = baskets if self.before is None else baskets.before(self.before)
        if cut and not len(baskets):
            raise InputError(f"no basket is left by {listed(cut)}")
        return baskets


@dataclass(frozen=True)
class ReadKnown(Read):
    """Options for reading baskets of the items of a model."""

    unknown: Unknown = "error"

    def known(self, path: str, catalogue: Catalogue) -> tuple[Baskets, LeftOut]:
        """Read baskets of these items."""
        return known_baskets(self.baskets(path), catalogue, self.unknown)

    def known_for(self, option: str, path: str, catalogue: Catalogue) -> Baskets:
        """Read the file of an option. Errors and warnings name the option."""
        try:
            baskets = read_baskets(path, **self.named, format=self.format)
            known, dropped = known_baskets(baskets, catalogue, self.unknown)
        except InputError as error:
            raise InputError(f"{option} {path}: {error}") from None
        if dropped:
            warnings.warn(f"{option} {path}: {dropped.and_emptied}", InputWarning, stacklevel=2)
        return known


@dataclass(frozen=True)
class Filter:
    """Options that select items of the training data."""

    keep_items: Annotated[Path | None, option("Keep items of a file, one per line.", metavar="FILE", panel=READING)] = (
        None
    )
    min_count: Annotated[float | None, option("Drop items that are in fewer baskets.", min=0, panel=READING)] = None
    top_items: Annotated[int | None, option("Keep this many items, the most frequent.", min=1, panel=READING)] = None

    def filtered(self, baskets: Baskets) -> Baskets:
        """Keep the items of the file, then those of the minimum count, then the most frequent."""
        baskets = baskets if self.keep_items is None else baskets.of_items(read_items(self.keep_items))
        baskets = baskets if self.min_count is None else baskets.min_count(self.min_count)
        return baskets if self.top_items is None else baskets.most_frequent(self.top_items)


@dataclass(frozen=True)
class Display:
    """Options of every command. `threads` is the default of all computations."""

    as_json: Annotated[bool, option("Print JSON instead of tables.", "--json")] = False
    quiet: Annotated[bool, option("Show no progress.", "--quiet", "-q")] = False
    threads: Annotated[int | None, option("Number of threads; by default all cores.", min=1, max=MOST_THREADS)] = None

    @property
    def progress(self) -> bool:
        """Whether to show progress."""
        return not self.quiet


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the options of a dataclass in place of each parameter that has one as its type."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: each.annotation for name, each in signature.parameters.items() if is_dataclass(each.annotation)
    }
    own = [each for name, each in signature.parameters.items() if name not in groups]
    added = {name: _options_of(group) for name, group in groups.items()}
    options = [*own, *(option for each in added.values() for option in each)]
    ordered = sorted(options, key=lambda each: each.default is not inspect.Parameter.empty)

    def expanded(**given: Any) -> None:
        set_default_threads(given["threads"])
        for name, group in groups.items():
            given[name] = group(**{option.name: given.pop(option.name) for option in added[name]})
        command(**given)

    paragraphs = (command.__doc__ or "").split("\n\n")
    expanded.__name__ = command.__name__
    expanded.__doc__ = "\n\n".join(" ".join(each.split()) for each in paragraphs)  # the help keeps line breaks
    expanded.__annotations__ = {each.name: each.annotation for each in ordered}
    keywords = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in ordered]
    expanded.__signature__ = signature.replace(parameters=keywords)  # type: ignore[attr-defined]
    return expanded


def _options_of(group: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(each.name, keyword, default=each.default, annotation=hints[each.name])
        for each in fields(group)
    ]


def some_seed(seed: int | None) -> int:
    """Return the seed, or a new one that can be reported."""
    return secrets.randbelow(2**31) if seed is None else seed


def check_exclusive(options: Mapping[str, object], why: str) -> None:
    """Raise an error that names the options that were given."""
    given = [name for name, value in options.items() if not (value is None or value is False or value == [])]
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

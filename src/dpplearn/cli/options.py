"""Arguments and options that commands share. Groups of options are dataclasses, which `with_options` expands."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
import typer

from dpplearn.cli.errors import UsageError
from dpplearn.data.baskets import Baskets, known_baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.data.parts import Parts
from dpplearn.data.readers import FORMATS, matching_files, read_baskets, read_items, read_parts
from dpplearn.data.unknown import UNKNOWN, LeftOut
from dpplearn.errors import InputError, InputWarning
from dpplearn.utils.files import OutputKind, check_replaceable, same_file
from dpplearn.utils.text import listed
from dpplearn.utils.threads import MOST_THREADS, set_default_threads


def one_of(known: Iterable[str]) -> Callable[[str | None], str | None]:
    """A check that a value is one of those known, if there is one; typer says whose value it is."""
    names = list(known)

    def check(value: str | None) -> str | None:
        if value is not None and value not in names:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(names)}")
        return value

    return check


def share_of_one(value: float) -> float:
    """A number above 0 and below 1."""
    if not 0 < value < 1:
        raise typer.BadParameter(f"{value:g} is not between 0 and 1")
    return value


READING, LEARNING = "Reading baskets", "Learning"

Data = Annotated[
    str, typer.Argument(metavar="DATA", help="A file of baskets, or a quoted pattern such as 'orders-*.csv'.")
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that dpplearn fit wrote.")]
Items = Annotated[
    list[str] | None, typer.Argument(metavar="[ITEM]...", help="Items of the basket; none for the empty basket.")
]
ModelOutput = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="The model file to write; an old one is replaced.")
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace an existing file or folder that is not an earlier output of this type."),
]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the random numbers; by default a new one.")]
Top = Annotated[int, typer.Option("--top", min=1, help="How many items and pairs to show.")]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, max=MOST_THREADS, help="Number of threads; by default one per core."),
]

Format = Annotated[
    str,
    typer.Option(
        metavar="|".join(FORMATS),
        callback=one_of(FORMATS),
        rich_help_panel=READING,
        help="csv and parquet: one row per basket and item. lines: one basket per line. auto: by the file's ending.",
    ),
]
BasketColumn = Annotated[
    str, typer.Option("--basket", rich_help_panel=READING, help="The column of basket identifiers.")
]
ItemColumn = Annotated[str, typer.Option("--item", rich_help_panel=READING, help="The column of items.")]
WeightColumn = Annotated[
    str | None, typer.Option("--weight", rich_help_panel=READING, help="The column of weights, one value per basket.")
]

TimeColumn = Annotated[
    str | None,
    typer.Option(
        "--time", rich_help_panel=READING, help="Column of dates or times, in UTC; a basket has the latest of its rows."
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="DATE", rich_help_panel=READING, help="With --time: leave out baskets before this date."
    ),
]
Before = Annotated[
    str | None,
    typer.Option(
        "--before", metavar="DATE", rich_help_panel=READING, help="With --time: leave out baskets from this date on."
    ),
]

Unknown = Annotated[
    str,
    typer.Option(
        "--unknown",
        metavar="|".join(UNKNOWN),
        callback=one_of(UNKNOWN),
        rich_help_panel=READING,
        help="What to do about items that the model does not have: stop, or leave them out and count them.",
    ),
]

MinCount = Annotated[
    float | None,
    typer.Option("--min-count", min=0, rich_help_panel=READING, help="Leave out items that are in fewer baskets."),
]
TopItems = Annotated[
    int | None,
    typer.Option("--top-items", min=1, rich_help_panel=READING, help="Keep this many items, the most frequent."),
]
OnlyItems = Annotated[
    Path | None,
    typer.Option("--items", metavar="FILE", rich_help_panel=READING, help="Keep the items of a file, one per line."),
]

ClusterAddress = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="local:N|tcp://HOST:PORT",
        rich_help_panel=LEARNING,
        help="Who does the work: N worker processes here, or those of a Dask scheduler.",
    ),
]


@dataclass(frozen=True)
class Reading:
    """Options for reading baskets."""

    format: Format = "auto"
    basket: BasketColumn = "basket"
    item: ItemColumn = "item"
    weight: WeightColumn = None
    time: TimeColumn = None
    since: Since = None
    before: Before = None

    def reader(self, unknown: str = "error", filtering: Filtering | None = None) -> Reader:
        """Return the reader with these options."""
        kept = filtering or Filtering()
        limits = (kept.min_count, kept.top_items, kept.only, self.time, self.since, self.before)
        return Reader(self.format, self.basket, self.item, self.weight, unknown, *limits)


@dataclass(frozen=True)
class Filtering:
    """Options that select items of the training data."""

    min_count: MinCount = None
    top_items: TopItems = None
    only: OnlyItems = None


@dataclass(frozen=True)
class Display:
    """Options of every command. `threads` is the default of all computations."""

    quiet: Quiet = False
    as_json: AsJson = False
    threads: Threads = None

    @property
    def progress(self) -> bool:
        return not self.quiet


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the options of a dataclass in place of each parameter that has one as its type.

    Every command gets the options of `Display`, also those that do not use them.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: each.annotation for name, each in signature.parameters.items() if is_dataclass(each.annotation)
    }
    own = [each for name, each in signature.parameters.items() if name not in groups]
    added = {name: _options_of(group) for name, group in groups.items()}
    names = {each.name for each in (*own, *(option for options in added.values() for option in options))}
    common = [option for option in _options_of(Display) if option.name not in names]
    options = [*own, *(option for each in added.values() for option in each), *common]
    ordered = sorted(options, key=lambda each: each.default is not inspect.Parameter.empty)

    def expanded(**given: Any) -> None:
        set_default_threads(given.get("threads"))
        for each in common:
            del given[each.name]
        for name, group in groups.items():
            given[name] = group(**{option.name: given.pop(option.name) for option in added[name]})
        command(**given)

    expanded.__name__, expanded.__doc__ = command.__name__, command.__doc__
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


class Reader(NamedTuple):
    """How to read baskets."""

    format: str
    basket: str
    item: str
    weight: str | None
    unknown: str = "error"
    min_count: float | None = None
    top_items: int | None = None
    items: Path | None = None
    time: str | None = None
    since: str | None = None
    before: str | None = None

    @property
    def filtered(self) -> bool:
        """Whether items are to be left out."""
        return (self.min_count, self.top_items, self.items) != (None, None, None)

    def read(self, path: str) -> Baskets:
        """Of the time that is wanted; of the file of items first, then by count, then the most frequent."""
        baskets = self._of_time(read_baskets(path, *self[:4], self.time))
        if self.items is not None:
            baskets = baskets.of_items(read_items(self.items))
        if self.min_count is not None:
            baskets = baskets.min_count(self.min_count)
        return baskets if self.top_items is None else baskets.most_frequent(self.top_items)

    @property
    def cut(self) -> dict[str, str]:
        """Where baskets are cut in time, if they are."""
        given = {"--since": self.since, "--before": self.before}
        return {option: value for option, value in given.items() if value is not None}

    def _of_time(self, baskets: Baskets) -> Baskets:
        if self.cut and self.time is None:
            raise UsageError(f"{listed(list(self.cut))} needs the column of times; name it with --time")
        baskets = baskets if self.since is None else baskets.since(self.since)
        baskets = baskets if self.before is None else baskets.before(self.before)
        if self.cut and not len(baskets):
            when = " ".join(f"{option} {value}" for option, value in self.cut.items())
            raise InputError(f"no basket is left: all are outside of {when}")
        return baskets

    def read_parts(self, path: str, cluster: str | None) -> Parts:
        if self.filtered or self.cut:
            raise UsageError(
                "--min-count, --top-items, --items, --since and --before are not for baskets in parts; see dpplearn "
                "prepare"
            )
        return read_parts(path, *self[:4], cluster=cluster)

    def read_known(self, path: str, catalogue: Catalogue) -> tuple[Baskets, LeftOut]:
        """Baskets of these items, to be judged."""
        return known_baskets(self.read(path), catalogue, self.unknown)

    def read_for(self, option: str, path: str, catalogue: Catalogue) -> Baskets:
        """The same of another file than DATA; an error or a warning names the option that it was given with. Items that
        were left out of DATA are left out of it."""
        unknown = "drop" if self.filtered else self.unknown
        try:
            return Reader(*self[:4], unknown).read_warned(path, catalogue, f"{option} {path}: ")
        except InputError as error:
            raise InputError(f"{option} {path}: {error}") from None

    def read_warned(self, path: str, catalogue: Catalogue, where: str = "") -> Baskets:
        """Baskets of these items, with a warning of what was left out."""
        known, left_out = self.read_known(path, catalogue)
        if left_out:
            warnings.warn(f"{where}{left_out.and_emptied}", InputWarning, stacklevel=2)
        return known


def ids_of(baskets: Baskets) -> list[Any]:
    """What baskets are called, or their numbers, as JSON has them."""
    ids: list[Any] = [*range(len(baskets))] if baskets.ids is None else baskets.ids.tolist()
    return ids


def heading_of_ids(ids: Iterable[Any]) -> str:
    """Of a column of a table: numbers are never cut, and other identifiers are names, which may be long."""
    return "basket>" if all(isinstance(each, int | float) for each in ids) else "basket"


def some_seed(seed: int | None) -> int:
    """One that can be reported, and so used again."""
    return int(np.random.default_rng().integers(2**31)) if seed is None else seed


def check_target(
    option: str,
    target: Path | None,
    sources: Iterable[str | Path | None],
    kind: OutputKind,
    *,
    force: bool,
) -> None:
    """Check, before anything is read, that a command can write `target` and may replace what is there.

    `sources` are all other files that the call names, data as patterns; none of them is replaced, even with `force`.
    `kind` is the type of the output, for `check_replaceable`.
    """
    if target is None:
        return
    for source in sources:
        for file in _files(source):
            if same_file(target, file):
                raise UsageError(
                    f"{option} {target} would overwrite {file}, which this call reads or writes, too; name another file"
                )
    check_replaceable(target, kind, force=force)


def _files(source: str | Path | None) -> list[str]:
    if source is None:
        return []
    return matching_files(source) if isinstance(source, str) else [str(source)]

"""The directive `command-line`: every command of the program with its arguments and options, from its own help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from dpplearn.cli.app import COMMANDS, EPILOG, program

Parameter = Any  # an argument or an option, as typer has it


def names(parameter: Parameter) -> str:
    """Return an argument or option as it is written in a call."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return ", ".join([*parameter.opts, *parameter.secondary_opts])


def value(parameter: Parameter) -> str:
    """Return the value after the name; nothing for flags and arguments."""
    if parameter.param_type_name == "argument" or parameter.is_flag:
        return ""
    kind = getattr(parameter.type_descriptor.annotation, "__name__", "").upper()
    return str(parameter.metavar or {"STR": "TEXT", "PATH": "FILE"}.get(kind, kind))


def remarks(parameter: Parameter) -> str:
    """Return the help, the limits and the default."""
    limits = [f"at least {parameter.min}"] * (parameter.min is not None)
    limits += [f"at most {parameter.max}"] * (parameter.max is not None)
    given = parameter.default not in (None, False, [], ()) and not callable(parameter.default)
    default = [f"by default {parameter.default}"] * bool(given)
    needed = ["required"] * bool(parameter.required)
    extra = "; ".join([*needed, *limits, *default])
    return f"{parameter.help or ''} {f'({extra})' if extra else ''}".strip()


def definition(parameter: Parameter) -> nodes.definition_list_item:
    term = nodes.term("", "", nodes.literal("", f"{names(parameter)} {value(parameter)}".strip()))
    return nodes.definition_list_item("", term, nodes.definition("", nodes.paragraph("", remarks(parameter))))


def panel(parameter: Parameter) -> str:
    return str(parameter.rich_help_panel or ("" if parameter.param_type_name == "argument" else "Options"))


def options(parameters: Iterable[Parameter]) -> Iterator[nodes.Node]:
    """Yield a list of definitions per group of the help, in its order."""
    shown = [each for each in parameters if not getattr(each, "hidden", False) and each.name != "help"]
    order = list(dict.fromkeys(map(panel, shown)))
    for title, group in groupby(sorted(shown, key=lambda each: order.index(panel(each))), key=panel):
        if title:
            yield nodes.rubric("", title)
        yield nodes.definition_list("", *map(definition, group), classes=["options"])


def section(name: str, command: Any) -> nodes.section:
    usage = command.get_usage(command.context_class(command, info_name=f"dpplearn {name}"))
    found = nodes.section("", nodes.title("", "", nodes.literal("", name)), ids=[f"dpplearn-{name}"], names=[name])
    found += [nodes.paragraph("", text) for text in (command.help or "").split("\n\n") if text]
    found += nodes.literal_block("", usage.removeprefix("Usage: "), language="none")
    found += list(options(command.params))
    return found


class CommandLine(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        # `program` loads the options of the command that it is called with, and only of that.
        commands = {name: typer.main.get_command(program([name])).commands[name] for name in COMMANDS}
        return [nodes.paragraph("", EPILOG), *(section(name, each) for name, each in commands.items())]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("command-line", CommandLine)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

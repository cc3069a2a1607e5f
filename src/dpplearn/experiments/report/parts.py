"""The parts of the report, in order, and what makes the table, section, claim and figure of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpplearn.experiments.report import claims, cost_sections, costs, figures, sections, summary
from dpplearn.experiments.report.claims import Claim, elsewhere, typeset_claim
from dpplearn.experiments.report.sections import Section, typeset_section
from dpplearn.experiments.results import Results, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tables = Mapping[str, Table | None]


@dataclass(frozen=True)
class Part:
    """From rows to a table, which is None where the experiment was not run, and from that to what is shown."""

    table: Callable[[Results], Table | None]
    section: Callable[[Table], Section]
    claim: Callable[[Table], Claim] | None = None
    figure: Callable[[Table], Figure] | None = None


PARTS: Mapping[str, Part] = {
    "preparation": Part(summary.preparation, sections.preparation, claims.preparation),
    "wishart": Part(summary.wishart, sections.wishart, claims.wishart, figures.wishart),
    "tolerance": Part(summary.tolerance, sections.tolerance, claims.tolerance, figures.tolerance),
    "moments": Part(summary.moments, sections.moments, claims.moments, figures.moments),
    "few": Part(summary.few, sections.few, claims.few, figures.few),
    "strength": Part(summary.strength, sections.strength, claims.strength, figures.strength),
    "trap": Part(summary.trap, sections.trap, claims.trap, figures.trap),
    "runtime": Part(costs.runtime, cost_sections.runtime, claims.runtime, figures.runtime),
    "growth": Part(costs.growth, cost_sections.growth, claims.growth, figures.growth),
    "registry": Part(summary.registry, sections.registry),
    "recovery": Part(summary.recovery, sections.recovery, claims.recovery, figures.recovery),
    "authors": Part(summary.authors, sections.authors, claims.authors),
}
FIGURES = tuple(name for name, part in PARTS.items() if part.figure is not None)


def summarise(results: Results) -> dict[str, Table | None]:
    """Every table by name."""
    return {name: part.table(results) for name, part in PARTS.items()}


def all_sections(tables: Tables) -> list[Section]:
    """Those whose tables are there."""
    return [typeset_section(PARTS[name].section(table)) for name, table in tables.items() if table is not None]


def all_claims(tables: Tables, *, original: bool) -> list[Claim]:
    """Of every table that is there. What the paper says of its registries is decided on the original ones alone."""
    found = []
    for name, table in tables.items():
        claim = PARTS[name].claim
        if table is not None and claim is not None:
            decided = typeset_claim(claim(table))
            found.append(decided if original else elsewhere(decided))
    return found


def all_figures(tables: Tables) -> dict[str, str]:
    """Every figure whose table is there, by name, as the text of an SVG file."""
    found = {}
    for name, table in tables.items():
        make = PARTS[name].figure
        if table is not None and make is not None:
            found[name] = figures.drawn(make, table)
    return found

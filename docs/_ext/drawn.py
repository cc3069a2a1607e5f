"""The directive `drawn`: a figure that a script of `docs/figures` draws, once for light pages and once for dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from figures import drawing

FOLDER = "_drawn"


class Drawn(SphinxDirective):
    """`{drawn} name` with what is seen as `:alt:`, and a caption as content."""

    required_arguments = 1
    option_spec = {"alt": directives.unchanged_required}  # noqa: RUF012
    has_content = True

    def run(self) -> list[nodes.Node]:
        name, alt = self.arguments[0], self.options["alt"]
        if name not in drawing.names():
            raise self.error(f"there is no figure {name!r}; docs/figures draws {', '.join(drawing.names())}")
        # Without a container the theme would hide the caption together with the image of the other theme.
        images = nodes.container()
        for theme in drawing.THEMES:
            uri = f"/{FOLDER}/{drawing.file_name(name, theme)}"
            images += nodes.image(uri=uri, alt=alt, classes=[f"only-{theme}"])
        figure = nodes.figure("", images, classes=["drawn"])
        if self.content:
            caption = nodes.caption()
            self.state.nested_parse(self.content, self.content_offset, caption)
            figure += nodes.caption("", "", *caption[0].children)
        return [figure]


def draw(app: Sphinx) -> None:
    drawing.draw_all(Path(app.srcdir) / FOLDER)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("drawn", Drawn)
    app.connect("builder-inited", draw)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

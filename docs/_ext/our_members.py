"""Of what a documented class inherits, show what this library wrote, and nothing of its bases elsewhere."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx


def elsewhere(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Whether to leave a member out; None leaves it to autodoc."""
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    module = getattr(function, "__module__", None) or ""
    return True if callable(function) and not module.startswith("dpplearn") else None


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-skip-member", elsewhere)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

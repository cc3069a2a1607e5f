"""The command line: a file per command in `commands/`, and what they share."""

from dpplearn.cli.app import main

__all__ = ["main"]

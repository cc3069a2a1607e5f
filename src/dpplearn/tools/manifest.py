"""A folder's manifest: a JSON document that says what the folder holds, written last and in one go."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from dpplearn.errors import InputError
from dpplearn.tools.files import replace_file

MANIFEST = "manifest.json"


def read_manifest(folder: str | PathLike[str], kind: str, format: int, wrote: str, again: str) -> dict[str, Any]:
    """The document of a folder of this kind; `wrote` is the command that writes one, `again` what to do about a bad
    one."""
    path = Path(folder) / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{folder} holds no {MANIFEST}; expected a folder that {wrote} wrote") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise InputError(f"{path} is not JSON; {again}") from None
    if isinstance(manifest, dict) and manifest.get("kind", kind) != kind:
        raise InputError(f"{folder} is a folder of another kind ({manifest['kind']}); expected one that {wrote} wrote")
    if not isinstance(manifest, dict) or manifest.get("format") != format or "kind" not in manifest:
        raise InputError(f"{path} is not a manifest of format {format}; {again}")
    return manifest


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """From here on, this is what the folder holds."""
    replace_file(folder / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False).encode())

"""A folder's manifest: a JSON document that says what the folder holds, written last and in one go."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from dpplearn.errors import InputError
from dpplearn.tools.files import OutputKind, replace_file

MANIFEST = "manifest.json"


def strict(value: Any) -> Any:
    """The value as strict JSON writes it: minus infinity is the string "-inf", and NaN is null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {str(key): strict(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [strict(each) for each in value]
    return value


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


def manifest_folder(kind: str, work: str, wrote: str) -> OutputKind:
    """Return the output type of folders with a manifest of this kind; `wrote` is the command that writes them.

    Without a manifest, the folder `work` identifies the output of an interrupted run.
    """

    def matches(folder: Path) -> bool:
        try:
            manifest = json.loads((folder / MANIFEST).read_bytes())
        except FileNotFoundError:
            return (folder / work).is_dir()
        except ValueError:
            return False
        return isinstance(manifest, dict) and manifest.get("kind") == kind

    return OutputKind(f"a folder that {wrote} wrote", matches, is_folder=True)


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """From here on, this is what the folder holds."""
    text = json.dumps(strict(manifest), indent=1, ensure_ascii=False, allow_nan=False)
    replace_file(folder / MANIFEST, text.encode())

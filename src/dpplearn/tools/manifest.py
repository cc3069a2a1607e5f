"""A folder's manifest: a JSON document that says what the folder holds, written last and in one go."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from dpplearn.errors import InputError
from dpplearn.tools.files import replace_file

MANIFEST = "manifest.json"


class OtherKind(InputError):
    """The folder is of another kind, and not to be written to."""


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
        raise OtherKind(f"{folder} is a folder of another kind ({manifest['kind']}); expected one that {wrote} wrote")
    if not isinstance(manifest, dict) or manifest.get("format") != format or "kind" not in manifest:
        raise InputError(f"{path} is not a manifest of format {format}; {again}")
    return manifest


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """From here on, this is what the folder holds."""
    text = json.dumps(strict(manifest), indent=1, ensure_ascii=False, allow_nan=False)
    replace_file(folder / MANIFEST, text.encode())

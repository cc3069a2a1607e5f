"""What a preparation is asked to do, and what tells its result from that of another."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpplearn.data.tables import Columns
from dpplearn.errors import InputError
from dpplearn.pipeline.inputs import fingerprints
from dpplearn.pipeline.manifest import FORMAT, Prepared
from dpplearn.pipeline.rules import Rules
from dpplearn.pipeline.source import Inputs, find_files

RUN = "baskets-"  # what the folder of the files is called, before some letters that tell one run from another


@dataclass(frozen=True)
class Job:
    """What is to be done; `setting` tells one result from another."""

    paths: list[str]
    output: Path
    columns: Columns
    category: str | None
    rules: Rules
    names: str | None
    name: str
    inputs: list[dict[str, Any]]

    @property
    def source(self) -> str:
        return self.paths[0] if len(self.paths) == 1 else f"{len(self.paths)} files ({self.paths[0]}, ...)"

    @property
    def setting(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "inputs": [[Path(each["path"]).name, each["sha256"]] for each in self.inputs],
            "columns": {**asdict(self.columns), "category": self.category, "name": self.name if self.names else None},
            "rules": self.rules.as_document(),
        }

    @property
    def folder(self) -> str:
        return RUN + hashlib.sha256(json.dumps(self.setting, sort_keys=True).encode()).hexdigest()[:8]


def job_of(
    inputs: Inputs,
    output: Path,
    columns: Columns,
    category: str | None,
    rules: Rules,
    names: str | None,
    name: str,
) -> Job:
    paths = find_files(inputs, output)
    read = paths if names is None else [*paths, *find_files(names, output)]
    try:
        known = Prepared.open(output).manifest["inputs"]
    except (InputError, KeyError):
        known = []
    return Job(paths, output, columns, category, rules, names, name, fingerprints(read, known))

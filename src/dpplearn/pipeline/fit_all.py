"""fit_all: fit one model per category of prepared baskets into a model store."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from dpplearn.errors import InputError, OutputExistsError, whole_number
from dpplearn.models.store import FORMAT, KIND, STORE_FOLDER, WORK, Entry, ModelStore, open_for_writing, write_store
from dpplearn.pipeline.learning import Learning, fit_options, learn
from dpplearn.pipeline.prepared import Category, Prepared
from dpplearn.utils.files import check_replaceable, digest, json_safe, replace_file, same_file
from dpplearn.utils.parallel import Failure, Over, run_with_retries
from dpplearn.utils.progress import SILENT, Progress, shown_progress
from dpplearn.utils.text import number
from dpplearn.version import __version__

DONE = "done"  # folder of the records of fitted categories, within the work folder of the store


def fit_all(
    prepared: Prepared | str | PathLike[str],
    output: str | PathLike[str],
    *,
    seed: int = 0,
    processes: int | None = None,
    cluster: str | None = None,
    fresh: bool = False,
    warm_start: bool = False,
    force: bool = False,
    progress: bool = False,
    **options: Any,
) -> ModelStore:
    """Fit one model per category of prepared baskets, and write them to a model store.

    A category is skipped if its data, the options, the seed and the version of this library are those of the model in
    the store. An interrupted run continues with the categories that are missing. The previous store stays in place
    until all categories are done; then the new one replaces it in one step.

    A category that cannot be fitted is listed in `ModelStore.failed`, and its previous model is kept. The others are
    not affected. A worker process that dies is replaced twice.

    Parameters
    ----------
    prepared : Prepared or path
        The result of `prepare`, or its folder.
    output : path
        The store folder: new, empty, or written by an earlier run.
    seed : int, default 0
        Seed of the random numbers. Every category is fitted with this seed.
    processes : int, optional
        Number of worker processes with one thread each. By default one per core.
    cluster : str, optional
        Use Dask workers instead: "local:4" for four workers on this machine, or the address of a scheduler, such as
        "tcp://scheduler:8786". Workers read the baskets and write the models by the absolute paths of the two folders,
        which must be shared by all machines. Needs the extra `cluster`.
    fresh : bool, default False
        Fit all categories, also those that have not changed.
    warm_start : bool, default False
        Start from the model in the store, if it is of the same kind.
    force : bool, default False
        Write into an existing folder whatever it holds. Other files in it are kept, except manifest.json.
    progress : bool, default False
        Show progress on standard error.
    options
        Options of `fit`: model, segments, rank, attraction, learner, init, shrinkage, restarts, tol, max_iter,
        max_seconds, validation, patience, nonempty.

    Returns
    -------
    ModelStore
        With `results`, `failed`, and `fitted`, the categories that this call fitted.

    Examples
    --------
    >>> import dpplearn as dl
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     orders = Path(folder) / "orders.csv"
    ...     rows = [f"{n},{item},sleep" for n in range(60) for item in ("crib", "cot", "lamp")[n % 2 : n % 5]]
    ...     _ = orders.write_text("\\n".join(["basket,item,category", *rows]))
    ...     prepared = dl.prepare(orders, f"{folder}/prepared", min_products=1, min_count=1, min_items=2)
    ...     store = fit_all(prepared, f"{folder}/store", segments=1, processes=1)
    ...     store.fitted, store["sleep"].items, store.failed
    ...     fit_all(prepared, f"{folder}/store", segments=1).fitted
    (('sleep',), ('cot', 'crib', 'lamp'), {})
    ()
    """
    prepared = prepared if isinstance(prepared, Prepared) else Prepared.open(prepared)
    plan = Plan(
        prepared, Path(output), whole_number("seed", seed, 0), fit_options(options), bool(fresh), bool(warm_start)
    )
    if same_file(prepared.folder, plan.output):
        raise OutputExistsError(f"{plan.output} is the folder of the prepared baskets; name another output folder")
    check_replaceable(plan.output, STORE_FOLDER, force=force)
    over = _over(processes, cluster)
    with open_for_writing(plan.output) as last, shown_progress(progress, transient=True) as shown:
        return fit_plan(plan, last, over, shown)


def _over(processes: int | None, cluster: str | None) -> Over:
    """Return the function that runs the jobs."""
    if cluster is None:
        return partial(run_with_retries, processes=processes)
    if processes is not None:
        raise InputError("processes (--processes) and cluster (--cluster) are mutually exclusive")
    from dpplearn.utils.cluster import run_over_cluster

    return partial(run_over_cluster, where=cluster)


@dataclass(frozen=True)
class Plan:
    """The settings of a run."""

    prepared: Prepared
    output: Path
    seed: int
    options: Mapping[str, Any]
    fresh: bool = False
    warm_start: bool = False

    def key(self, category: Category) -> str:
        """Return the digest of everything that determines the model of a category."""
        setting = {
            "train": category.files["train"].sha256,
            "items": list(category.items),
            "weighted": category.weighted,
            "options": self.options,
            "seed": self.seed,
            "version": __version__,
        }
        return hashlib.sha256(json.dumps(json_safe(setting), sort_keys=True).encode()).hexdigest()

    def share(self, category: Category) -> float:
        """Return the weighted share of baskets with an item of the category; pseudo-counts make 0 < share < 1."""
        total = self.prepared.manifest["total_weight"]
        return float((sum(file.weight for file in category.files.values()) + 0.5) / (total + 1))

    def about(self, category: Category) -> Entry:
        """Return what the manifest records about a category before it is fitted."""
        return {
            "slug": category.slug,
            "name": category.name,
            "n_items": category.n_items,
            "n_baskets": category.n_baskets,
            "share": self.share(category),
            "data": {side: file.sha256 for side, file in category.files.items()},
            "key": self.key(category),
            "old": "",
        }

    def job(self, category: Category, known: Entry | None, last: Entry | None) -> Learning:
        return Learning(
            self.prepared.folder.absolute(),
            self.output.absolute(),
            category.slug,
            self.about(category)["data"],
            self.seed,
            self.options,
            known=None if known is None else known["file"],
            last=None if last is None else last["file"],
            warm_start=self.warm_start,
        )


def fit_plan(plan: Plan, last: ModelStore | None, over: Over, progress: Progress = SILENT) -> ModelStore:
    """Fit what is missing with `over`, which runs jobs on this machine or on others, and write the store."""
    previous = {} if last is None else {each["slug"]: each for each in last.manifest["categories"]}
    previous = {slug: entry for slug, entry in previous.items() if _is_intact(plan.output, entry)}
    entries, jobs = _divide(plan, previous)
    failures = _run(plan, entries, jobs, over, progress)
    _keep_old(plan, entries, failures, previous)
    _check_any(entries, failures)
    fitted = tuple(slug for slug, job in jobs.items() if slug not in failures and job.known is None)
    store = write_store(plan.output, _manifest(plan, entries, failures), last, fitted)
    shutil.rmtree(plan.output / WORK / DONE, ignore_errors=True)
    return store


def _divide(plan: Plan, previous: Mapping[str, Entry]) -> tuple[dict[str, Entry], dict[str, Learning]]:
    """Return the entries that are known already, and the jobs for categories that have to be fitted or evaluated."""
    entries, jobs = dict[str, Entry](), dict[str, Learning]()
    for category in plan.prepared.categories:
        slug, about = category.slug, plan.about(category)
        known = _known(plan, category, previous.get(slug))
        if known is not None and known["data"] == about["data"]:
            entries[slug] = {**known, **about, "n_items": known.get("n_items", about["n_items"])}  # some may be added
        else:
            entries[slug] = known or {}
            jobs[slug] = plan.job(category, known, previous.get(slug))
    return entries, jobs


def _run(
    plan: Plan, entries: dict[str, Entry], jobs: Mapping[str, Learning], over: Over, progress: Progress
) -> dict[str, Failure]:
    """Run the jobs, the longest first, and record each result at once. Return the failures."""
    categories = {each.slug: each for each in plan.prepared.categories}
    failures = dict[str, Failure]()
    (plan.output / WORK / DONE).mkdir(exist_ok=True)
    bar = progress.bar("fitting", len(categories), len(categories) - len(jobs))
    for job, found in over(sorted(jobs.values(), key=lambda job: -_size(categories[job.slug])), learn):
        if isinstance(found, Failure):
            failures[job.slug] = found
            bar.advance(text=f"{job.slug} failed")
            continue
        about = plan.about(categories[job.slug])
        if job.known is not None:  # a model that may have more items, and was only evaluated
            about["n_items"] = entries[job.slug].get("n_items", about["n_items"])
        entries[job.slug] |= {**json_safe(found), **about}
        replace_file(_record(plan, categories[job.slug]), json.dumps(entries[job.slug]).encode())
        bar.advance(text=f"{job.slug} {number(found['result']['log_likelihood'])}")
    return failures


def _record(plan: Plan, category: Category) -> Path:
    """Return the file whose existence means that an unfinished run has fitted this category."""
    fresh = "-fresh" if plan.fresh else ""
    return plan.output / WORK / DONE / f"{category.slug}-{plan.key(category)[:24]}{fresh}.json"


def _known(plan: Plan, category: Category, previous: Entry | None) -> Entry | None:
    """Return the entry of a model that need not be fitted again: of an unfinished run, or of the store."""
    try:
        entry: Entry = json.loads(_record(plan, category).read_bytes())
        if _is_intact(plan.output, entry):
            return entry
    except (OSError, ValueError, KeyError, TypeError):  # none, or not a record of ours: fit again
        pass
    return None if plan.fresh or previous is None or previous["key"] != plan.key(category) else previous


def _is_intact(output: Path, entry: Mapping[str, Any]) -> bool:
    path = output / entry["file"]
    return path.is_file() and bool(digest(path) == entry["sha256"])


def _size(category: Category) -> int:
    """Return a measure of the time of a fit; the longest are started first."""
    return category.n_items**2 * category.n_baskets["train"]


def _keep_old(
    plan: Plan, entries: dict[str, Entry], failures: Mapping[str, Failure], previous: Mapping[str, Entry]
) -> None:
    """Keep the previous models of categories that failed."""
    for slug, failure in failures.items():
        del entries[slug]
        if slug in previous:
            share = plan.share(plan.prepared.category(slug))
            entries[slug] = {**previous[slug], "old": failure.reason, "share": share}


def _check_any(entries: Mapping[str, Entry], failures: Mapping[str, Failure]) -> None:
    if not entries:
        why = "; ".join(f"{slug}: {failure.reason}" for slug, failure in failures.items())
        raise InputError(f"no model could be fitted ({why})")


def _manifest(plan: Plan, entries: Mapping[str, Entry], failures: Mapping[str, Failure]) -> dict[str, Any]:
    categories: Sequence[Category] = plan.prepared.categories
    document: dict[str, Any] = json_safe(
        {
            "kind": KIND,
            "format": FORMAT,
            "versions": {"dpplearn": __version__, "python": sys.version.split()[0]},
            "seed": plan.seed,
            "options": plan.options,
            "categories": [entries[each.slug] for each in categories if each.slug in entries],
            "failed": [
                {
                    "slug": each.slug,
                    "name": each.name,
                    "reason": failures[each.slug].reason,
                    "attempts": failures[each.slug].attempts,
                }
                for each in categories
                if each.slug in failures
            ],
        }
    )
    return document

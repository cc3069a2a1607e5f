"""fit_all: a model for every category of prepared baskets, on a shelf."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from dpplearn.errors import InputError, OutputExistsError, whole_number
from dpplearn.models.shelf import FORMAT
from dpplearn.pipeline.learning import Learning, fit_options, learn
from dpplearn.pipeline.manifest import Category, Prepared
from dpplearn.pipeline.shelf import Shelf
from dpplearn.pipeline.shelf_files import STORE_FOLDER, Entry, Finished, clean, is_there, open_folder, write_shelf
from dpplearn.tools.files import check_replaceable, same_file
from dpplearn.tools.jobs import Failure, Over, run_with_retries
from dpplearn.tools.manifest import strict
from dpplearn.tools.progress import SILENT, Progress, shown_progress
from dpplearn.tools.words import number
from dpplearn.version import __version__


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
) -> Shelf:
    """Learn a model for every category of prepared baskets, and put them on a shelf.

    A category whose data, options, seed and version of this library are those of the model on the shelf is not learned
    again, and a run that was cut off goes on with the categories that are missing. Until all are done the old shelf
    stays as it is; then the new one takes its place in one go. The old models stay until the shelf is written again.

    A category that cannot be learned does not keep the others from it: it is named (`Shelf.failed`), and its model of
    the shelf before stays, if there is one. A worker that dies over a category is replaced twice.

    Parameters
    ----------
    prepared
        What `prepare` made, or its folder.
    output
        The folder of the shelf: a new or empty folder, or the output of an earlier run.
    seed
        Of the random numbers; every category is learned as `fit` with this seed learns it.
    processes
        How many; by default one per core. Each has one thread.
    cluster
        Instead of processes of this one: "local:4" for four Dask workers here, or the address of a scheduler, such as
        "tcp://scheduler:8786". Workers read the baskets and write the models by the absolute paths of the two folders,
        which must lead to the same ones on all machines. Needs the extra `cluster`.
    fresh
        Learn all categories, also those that have not changed.
    warm_start
        Start from the shelf's model of the category, where that is of the kind that is learned.
    force
        Write into an existing folder whatever it holds. Other files in it are kept, except manifest.json.
    progress
        Show on standard error what is being done.
    options
        Of `fit`: model, segments, rank, attraction, learner, init, shrinkage, restarts, tol, max_iter,
        max_seconds, validation, patience, nonempty.

    Returns
    -------
    Shelf
        With `results` per category, `failed`, and as `learned` the categories that were learned just now.

    Examples
    --------
    >>> import dpplearn as dl
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     orders = Path(folder) / "orders.csv"
    ...     rows = [f"{n},{item},sleep" for n in range(60) for item in ("crib", "cot", "lamp")[n % 2 : n % 5]]
    ...     _ = orders.write_text("\\n".join(["basket,item,category", *rows]))
    ...     prepared = dl.prepare(orders, f"{folder}/prepared", min_products=1, min_count=1, min_items=2)
    ...     shelf = fit_all(prepared, f"{folder}/shelf", segments=1, processes=1)
    ...     shelf.learned, shelf["sleep"].items, shelf.failed
    ...     fit_all(prepared, f"{folder}/shelf", segments=1).learned
    ...     list(shelf.evaluate(prepared))
    (('sleep',), ('cot', 'crib', 'lamp'), {})
    ()
    ['sleep']
    """
    prepared = prepared if isinstance(prepared, Prepared) else Prepared.open(prepared)
    plan = Plan(
        prepared, Path(output), whole_number("seed", seed, 0), fit_options(options), bool(fresh), bool(warm_start)
    )
    if same_file(prepared.folder, plan.output):
        raise OutputExistsError(f"{plan.output} holds the prepared baskets that are read; name another folder")
    check_replaceable(plan.output, STORE_FOLDER, force=force)
    over = _over(processes, cluster)
    with open_folder(plan.output) as last, shown_progress(progress, transient=True) as shown:
        return learn_plan(plan, last, over, shown)


def _over(processes: int | None, cluster: str | None) -> Over:
    """Who learns the categories."""
    if cluster is None:
        return partial(run_with_retries, processes=processes)
    if processes is not None:
        raise InputError(
            "processes (--processes) and cluster (--cluster) are two ways to say who learns; leave out either"
        )
    from dpplearn.tools.cluster import run_over_cluster

    return partial(run_over_cluster, where=cluster)


@dataclass(frozen=True)
class Plan:
    """What a run is to do."""

    prepared: Prepared
    output: Path
    seed: int
    options: Mapping[str, Any]
    fresh: bool = False
    warm_start: bool = False

    def key(self, category: Category) -> str:
        """What tells one model of a category from another."""
        setting = {
            "train": category.files["train"].sha256,
            "items": list(category.items),
            "weighted": category.weighted,
            "options": self.options,
            "seed": self.seed,
            "version": __version__,
        }
        return hashlib.sha256(json.dumps(strict(setting), sort_keys=True).encode()).hexdigest()

    def share(self, category: Category) -> float:
        """Of the baskets that hold anything of a category; between 0 and 1, also where all do."""
        kept = self.prepared.manifest["account"][-1]["baskets"]
        return float((sum(category.n_baskets.values()) + 0.5) / (kept + 1))

    def about(self, category: Category) -> Entry:
        """What is known of a category before anything is learned."""
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


def learn_plan(plan: Plan, last: Shelf | None, over: Over, progress: Progress = SILENT) -> Shelf:
    """The shelf; what is to be learned for it is run by `over`, on this machine or on others that see its folders."""
    on_shelf = {} if last is None else {each["slug"]: each for each in last.manifest["categories"]}
    on_shelf = {slug: entry for slug, entry in on_shelf.items() if is_there(plan.output, entry)}
    finished = Finished(plan.output)
    entries, jobs = _divided(plan, on_shelf, finished)
    failures = _learned(plan, entries, jobs, finished, over, progress)
    _keep_old(plan, entries, failures, on_shelf)
    _check_any(entries, failures)
    manifest = write_shelf(plan.output, _manifest(plan, entries, failures), last)
    finished.forget()
    clean(plan.output, manifest)
    learned = [slug for slug, job in jobs.items() if slug not in failures and job.known is None]
    return Shelf(plan.output, manifest, tuple(learned))


def _divided(
    plan: Plan, on_shelf: Mapping[str, Entry], finished: Finished
) -> tuple[dict[str, Entry], dict[str, Learning]]:
    """What is known of every category, and what is to be done for those that it is not all of."""
    entries, jobs = dict[str, Entry](), dict[str, Learning]()
    for category in plan.prepared.categories:
        slug, about = category.slug, plan.about(category)
        known = _known(plan, category, on_shelf.get(slug), finished)
        if known is not None and known["data"] == about["data"]:
            entries[slug] = {**known, **about, "n_items": known.get("n_items", about["n_items"])}  # some may be added
        else:
            entries[slug] = known or {}
            jobs[slug] = plan.job(category, known, on_shelf.get(slug))
    return entries, jobs


def _learned(
    plan: Plan,
    entries: dict[str, Entry],
    jobs: Mapping[str, Learning],
    finished: Finished,
    over: Over,
    progress: Progress,
) -> dict[str, Failure]:
    """Does the jobs, the longest first, and keeps what comes of each at once; what failed."""
    categories = {each.slug: each for each in plan.prepared.categories}
    failures = dict[str, Failure]()
    bar = progress.bar("learning", len(categories), len(categories) - len(jobs))
    with finished.adding() as add:
        for job, found in over(sorted(jobs.values(), key=lambda job: -_size(categories[job.slug])), learn):
            if isinstance(found, Failure):
                failures[job.slug] = found
                bar.advance(text=f"{job.slug} failed")
                continue
            about = plan.about(categories[job.slug])
            if job.known is not None:  # a model that may have more items, and was only measured
                about["n_items"] = entries[job.slug].get("n_items", about["n_items"])
            entries[job.slug] |= {**strict(found), **about}
            add({"key": about["key"], "fresh": plan.fresh, "entry": entries[job.slug]})
            bar.advance(text=f"{job.slug} {number(found['result']['log_likelihood'])}")
    return failures


def _known(plan: Plan, category: Category, on_shelf: Entry | None, finished: Finished) -> Entry | None:
    """A model that need not be learned again: of an unfinished run, or of the shelf."""
    key = plan.key(category)
    entry = finished.entry(key, fresh=plan.fresh)
    if entry is not None and is_there(plan.output, entry):
        return entry
    return None if plan.fresh or on_shelf is None or on_shelf["key"] != key else on_shelf


def _size(category: Category) -> int:
    """What takes longest is begun first."""
    return category.n_items**2 * category.n_baskets["train"]


def _keep_old(
    plan: Plan, entries: dict[str, Entry], failures: Mapping[str, Failure], on_shelf: Mapping[str, Entry]
) -> None:
    """Of a category that failed the last model stays, marked as such."""
    for slug, failure in failures.items():
        del entries[slug]
        if slug in on_shelf:
            share = plan.share(plan.prepared.category(slug))
            entries[slug] = {**on_shelf[slug], "old": failure.reason, "share": share}


def _check_any(entries: Mapping[str, Entry], failures: Mapping[str, Failure]) -> None:
    if not entries:
        why = "; ".join(f"{slug}: {failure.reason}" for slug, failure in failures.items())
        raise InputError(f"no model could be learned ({why})")


def _manifest(plan: Plan, entries: Mapping[str, Entry], failures: Mapping[str, Failure]) -> dict[str, Any]:
    categories: Sequence[Category] = plan.prepared.categories
    document: dict[str, Any] = strict(
        {
            "kind": "shelf",
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

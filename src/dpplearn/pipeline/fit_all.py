"""fit_all: fit one model per category of prepared baskets into a model store."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError, OutputExistsError, whole_number
from dpplearn.evaluation.baselines import INDEPENDENT
from dpplearn.evaluation.evaluation import evaluate
from dpplearn.evaluation.metrics import PERCENTILE_RANK
from dpplearn.evaluation.protocol import GIVEN_ONE
from dpplearn.learners.fit import fit_with
from dpplearn.learners.settings import settings_of
from dpplearn.models.model import SetModel
from dpplearn.models.model_file import load
from dpplearn.models.store import (
    STORE_FOLDER,
    Entry,
    ModelStore,
    open_for_writing,
    save_model,
    saved_models,
    write_store,
)
from dpplearn.pipeline.prepared import Category, Prepared
from dpplearn.utils.files import check_replaceable, content_digest, digest, json_safe, same_file
from dpplearn.utils.parallel import Failure, Over, run_with_retries
from dpplearn.utils.progress import Bar, shown_progress
from dpplearn.utils.text import number
from dpplearn.version import __version__

KEY_LENGTH = 16  # hexadecimal digits of the key in the name of a model file
MODEL = "model"  # its name in the evaluation


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

    The name of a model file contains its key, a digest of the data, the options, the seed and the version of this
    library. A category whose file exists is not fitted again, so an interrupted run continues with the categories that
    are missing. The previous store stays in place until all categories are done; then the new one replaces it in one
    step.

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
    seed, fit_options = whole_number("seed", seed, 0), _fit_options(options)
    plan = Plan(prepared.folder.absolute(), Path(output).absolute(), seed, fit_options, fresh, warm_start)
    if same_file(prepared.folder, output):
        raise OutputExistsError(f"{output} is the folder of the prepared baskets; name another output folder")
    check_replaceable(Path(output), STORE_FOLDER, force=force)
    over = _over(processes, cluster)
    with open_for_writing(Path(output)) as last, shown_progress(progress, transient=True) as shown:
        jobs = _jobs(plan, prepared, last)
        return _fit(plan, jobs, last, over, shown.bar("fitting", len(jobs), sum(each.is_done for each in jobs)))


def _over(processes: int | None, cluster: str | None) -> Over:
    """Return the function that runs the jobs."""
    if cluster is None:
        return partial(run_with_retries, processes=processes)
    if processes is not None:
        raise InputError("processes (--processes) and cluster (--cluster) are mutually exclusive")
    from dpplearn.utils.cluster import run_over_cluster

    return partial(run_over_cluster, where=cluster)


def _fit_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a fit that determine the model, with defaults."""
    if "threads" in options:
        raise InputError("threads is not an option of fit_all: every model is fitted by one thread")
    settings = settings_of(**options)
    found = {name: value for name, value in asdict(settings).items() if name != "threads"}
    return {"model": settings.model_type.kind, **found}


@dataclass(frozen=True)
class Plan:
    """The settings of a run."""

    prepared: Path
    output: Path
    seed: int
    options: Mapping[str, Any]
    fresh: bool
    warm_start: bool


@dataclass(frozen=True)
class Job:
    """Fit and evaluate the model of one category, in a worker process.

    `entry` is what the manifest records about the category so far. If `known`, it has an up-to-date model. `stem` is
    the beginning of the name of the model file otherwise: the slug and a key. `before` is the entry in the previous
    store.
    """

    plan: Plan
    entry: Entry
    stem: str
    known: bool
    before: Entry | None

    @property
    def slug(self) -> str:
        return str(self.entry["slug"])

    @property
    def is_done(self) -> bool:
        """Whether nothing has changed, neither what determines the model nor the test baskets."""
        return self.known and self.before is not None and self.entry["data"] == self.before["data"]


def _jobs(plan: Plan, prepared: Prepared, last: ModelStore | None) -> list[Job]:
    """Return a job for each category."""
    manifest, changed = ({"categories": []}, []) if last is None else (last.manifest, last.verify())
    before = {each["slug"]: each for each in manifest["categories"] if each["slug"] not in changed}
    total, generation = prepared.manifest["total_weight"], manifest.get("generation", 0)
    return [_job(plan, each, total, before.get(each.slug), generation) for each in prepared.categories]


def _job(plan: Plan, category: Category, total_weight: float, before: Entry | None, generation: int) -> Job:
    slug = category.slug
    weight = sum(file.weight for file in category.files.values())
    # Everything that determines the model, except the model that a warm start begins with.
    setting = {
        "train": category.files["train"].sha256,
        "items": list(category.items),
        "weighted": category.weighted,
        "options": plan.options,
        "seed": plan.seed,
        "version": __version__,
    }
    entry: Entry = {
        "slug": slug,
        "name": category.name,
        "n_items": category.n_items,
        "n_baskets": category.n_baskets,
        "share": float((weight + 0.5) / (total_weight + 1)),  # of the baskets; pseudo-counts make 0 < share < 1
        "data": {side: file.sha256 for side, file in category.files.items()},
        "key": content_digest(setting),
        "old": "",
    }
    # A fresh run must not find files of earlier runs, but those of its own first attempt: both see the same store.
    start = before["sha256"] if plan.warm_start and before is not None else None
    named = {"key": entry["key"], "fresh": generation if plan.fresh else None, "start": start}
    stem = f"{slug}-{content_digest(named)[:KEY_LENGTH]}"
    if before is None or plan.fresh or before["key"] != entry["key"]:
        return Job(plan, entry, stem, False, before)
    return Job(plan, {**before, **entry, "n_items": before["n_items"]}, stem, True, before)  # items may have been added


def _size(job: Job) -> int:
    """Return a number that grows with the time that the fit of this job takes."""
    return int(job.entry["n_items"] ** 2 * job.entry["n_baskets"]["train"])


def _fit(plan: Plan, jobs: Sequence[Job], last: ModelStore | None, over: Over, bar: Bar) -> ModelStore:
    """Do what is missing with `over`, which runs jobs on this machine or on others, and write the store."""
    entries, failures, fitted = {each.slug: each.entry for each in jobs}, dict[str, Entry](), set[str]()
    missing = sorted((each for each in jobs if not each.is_done), key=_size, reverse=True)  # the longest fits first
    for job, found in over(missing, run_job):
        slug = job.slug
        if isinstance(found, Failure):  # the previous model is kept
            failures[slug] = {"slug": slug, "name": job.entry["name"], **asdict(found)}
            entries[slug] = {**job.before, "old": found.reason, "share": job.entry["share"]} if job.before else {}
            bar.advance(text=f"{slug} failed")
            continue
        entry, is_new = found
        entries[slug] |= json_safe(entry)
        if is_new:
            fitted.add(slug)
        bar.advance(text=f"{slug} {number(entry['result']['log_likelihood'])}")
    if not any(entries.values()):
        why = "; ".join(f"{slug}: {failure['reason']}" for slug, failure in failures.items())
        raise InputError(f"no model could be fitted ({why})")
    manifest = {
        "kind": STORE_FOLDER.kind,
        "format": STORE_FOLDER.format,
        "versions": {"dpplearn": __version__, "python": sys.version.split()[0]},
        "seed": plan.seed,
        "options": plan.options,
        "categories": [entry for entry in entries.values() if entry],
        "failed": [failures[slug] for slug in entries if slug in failures],
    }
    return write_store(plan.output, json_safe(manifest), last, tuple(slug for slug in entries if slug in fitted))


def run_job(job: Job) -> tuple[Entry, bool]:
    """Run the job. Return what the manifest records about the model, and whether it was fitted now.

    A file with the key of the job was saved by a run that did not finish, or by one with the same settings.
    """
    plan, slug = job.plan, job.slug
    prepared = Prepared.open(plan.prepared)
    if {side: file.sha256 for side, file in prepared.category(slug).files.items()} != job.entry["data"]:
        raise InputError(f"{plan.prepared} was prepared again while models were fitted; run fit-all again")
    train, test = prepared.train(slug), prepared.test(slug)
    last = load(plan.output / job.before["file"]) if job.before is not None else None
    if job.known:
        return {"result": result_of(load(plan.output / job.entry["file"]), last, test, train)}, False
    notes = list[str]()
    saved = next(saved_models(plan.output, job.stem), None)
    if saved is None:
        start = last if plan.warm_start and last is not None and last.kind == plan.options["model"] else None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            model = fit_with(settings_of(**plan.options, threads=1), train, start=start, rng=plan.seed).model
        notes = [str(each.message) for each in caught]
        file = save_model(model, plan.output, job.stem)
    else:
        file, model = saved
    entry = {
        "file": file,
        "sha256": digest(plan.output / file),
        "seconds": model.learned.seconds,
        "notes": notes,
        "result": result_of(model, last, test, train),
    }
    return entry, saved is None


def result_of(model: SetModel, last: SetModel | None, test: Baskets | None, train: Baskets) -> dict[str, Any]:
    """Return the evaluation on the test (or training) baskets, compared with the last model."""
    baskets = test if test is not None else train
    found = evaluate({MODEL: model}, baskets)
    ranked = [name for name in found.baselines if name != INDEPENDENT]  # independent items rank as popularity does
    return {
        "on": "test" if test is not None else "train",
        "n_baskets": len(baskets),
        "log_likelihood": found.estimate(MODEL).value,
        "percentile_rank": found.estimate(MODEL, PERCENTILE_RANK).value,
        "gain": found.difference(MODEL, INDEPENDENT).value,
        "baselines": {name: found.estimate(name, PERCENTILE_RANK).value for name in ranked},
        "calibration": asdict(found.reliability[MODEL][GIVEN_ONE]),
        "last": None if last is None else _compared(model, last, baskets),
    }


def _compared(model: SetModel, last: SetModel, baskets: Baskets) -> dict[str, Any] | None:
    """Compare two models on the items that both have. Baskets without any of these items are left out."""
    common = [item for item in model.items if item in last.catalogue]
    try:
        pair = [each if len(common) == len(each.items) else each.restrict(common) for each in (model, last)]
        models = dict(zip(("now", "before"), pair, strict=True))
        found = evaluate(models, baskets, unknown="drop")
    except InputError:  # no common item, or no basket that holds one
        return None
    before, difference = found.estimate("before").value, found.difference("now", "before").value
    return {"n_items": len(common), "log_likelihood": before, "difference": difference}

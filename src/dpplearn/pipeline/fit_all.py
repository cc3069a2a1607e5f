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
from dpplearn.data.catalogue import Label
from dpplearn.errors import InputError, OutputExistsError, whole_number
from dpplearn.evaluation.baselines import INDEPENDENT
from dpplearn.evaluation.evaluation import evaluate
from dpplearn.evaluation.metrics import PERCENTILE_RANK
from dpplearn.evaluation.protocol import GIVEN_ONE
from dpplearn.evaluation.result import Evaluation
from dpplearn.learners.fit import fit_with
from dpplearn.learners.settings import settings_of
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
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
from dpplearn.utils.progress import SILENT, Progress, shown_progress
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
    plan = Plan(
        prepared, Path(output), whole_number("seed", seed, 0), fit_options(options), bool(fresh), bool(warm_start)
    )
    if same_file(prepared.folder, plan.output):
        raise OutputExistsError(f"{plan.output} is the folder of the prepared baskets; name another output folder")
    check_replaceable(plan.output, STORE_FOLDER.output_kind, force=force)
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


def fit_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a fit that determine the model, with defaults."""
    if "threads" in options:
        raise InputError("threads is not an option of fit_all: every model is fitted by one thread")
    settings = settings_of(**options)
    found = {name: value for name, value in asdict(settings).items() if name != "threads"}
    return {"model": settings.model_type.kind, **found}


@dataclass(frozen=True)
class Plan:
    """The settings of a run."""

    prepared: Prepared
    output: Path
    seed: int
    options: Mapping[str, Any]
    fresh: bool = False
    warm_start: bool = False

    def share(self, category: Category) -> float:
        """Return the weighted share of baskets with an item of the category; pseudo-counts make 0 < share < 1."""
        total = self.prepared.manifest["total_weight"]
        return float((sum(file.weight for file in category.files.values()) + 0.5) / (total + 1))

    def about(self, category: Category) -> Entry:
        """Return what the manifest records about a category before it is fitted.

        `key` is the digest of everything that determines the model, except the model that a warm start begins with.
        """
        setting = {
            "train": category.files["train"].sha256,
            "items": list(category.items),
            "weighted": category.weighted,
            "options": self.options,
            "seed": self.seed,
            "version": __version__,
        }
        return {
            "slug": category.slug,
            "name": category.name,
            "n_items": category.n_items,
            "n_baskets": category.n_baskets,
            "share": self.share(category),
            "data": {side: file.sha256 for side, file in category.files.items()},
            "key": content_digest(setting),
            "old": "",
        }


@dataclass(frozen=True)
class Job:
    """Fit and evaluate the model of one category, in a worker process.

    `stem` is the beginning of the name of the model file: the slug and a key. `data` is the digest of the basket files
    by side. `known` is an up-to-date model that only needs evaluation, `last` the model of the previous store; both are
    paths relative to the store folder.
    """

    prepared: Path
    store: Path
    slug: str
    stem: str
    data: Mapping[str, str]
    seed: int
    options: Mapping[str, Any]
    known: str | None = None
    last: str | None = None
    warm_start: bool = False


def fit_plan(plan: Plan, last: ModelStore | None, over: Over, progress: Progress = SILENT) -> ModelStore:
    """Fit what is missing with `over`, which runs jobs on this machine or on others, and write the store."""
    previous = {} if last is None else {each["slug"]: each for each in last.manifest["categories"]}
    previous = {slug: entry for slug, entry in previous.items() if _is_intact(plan.output, entry)}
    generation = 0 if last is None else last.manifest.get("generation", 0)
    entries, jobs = dict[str, Entry](), list[Job]()
    for category in sorted(plan.prepared.categories, key=_size, reverse=True):  # the longest fits are started first
        slug, about = category.slug, plan.about(category)
        known, before = None, previous.get(slug)
        if before is not None and not plan.fresh and before["key"] == about["key"]:
            known = before
            about["n_items"] = before.get("n_items", about["n_items"])  # some may have been added
        entries[slug] = {**(known or {}), **about}
        if known is None or known["data"] != about["data"]:
            jobs.append(_job(plan, about, generation, known, before))
    failures, fitted = _run(plan, entries, jobs, over, progress)
    for slug, failure in failures.items():  # previous models of categories that failed are kept
        share = entries.pop(slug)["share"]
        if slug in previous:
            entries[slug] = {**previous[slug], "old": failure.reason, "share": share}
    if not entries:
        why = "; ".join(f"{slug}: {failure.reason}" for slug, failure in failures.items())
        raise InputError(f"no model could be fitted ({why})")
    return write_store(plan.output, _manifest(plan, entries, failures), last, fitted)


def _is_intact(output: Path, entry: Mapping[str, Any]) -> bool:
    path = output / entry["file"]
    return path.is_file() and bool(digest(path) == entry["sha256"])


def _size(category: Category) -> int:
    """Return a measure of the time of a fit."""
    return category.n_items**2 * category.n_baskets["train"]


def _job(plan: Plan, about: Entry, generation: int, known: Entry | None, last: Entry | None) -> Job:
    # A fresh run must not find files of earlier runs, but those of its own first attempt: both see the same store.
    setting = {
        "key": about["key"],
        "fresh": generation if plan.fresh else None,
        "start": last["sha256"] if plan.warm_start and last is not None else None,
    }
    return Job(
        plan.prepared.folder.absolute(),
        plan.output.absolute(),
        about["slug"],
        f"{about['slug']}-{content_digest(setting)[:KEY_LENGTH]}",
        about["data"],
        plan.seed,
        plan.options,
        known=None if known is None else known["file"],
        last=None if last is None else last["file"],
        warm_start=plan.warm_start,
    )


def _run(
    plan: Plan, entries: dict[str, Entry], jobs: Sequence[Job], over: Over, progress: Progress
) -> tuple[dict[str, Failure], tuple[str, ...]]:
    """Run the jobs and add their results to the entries. Return the failures, and the categories that were fitted."""
    failures, fitted = dict[str, Failure](), set[str]()
    bar = progress.bar("fitting", len(entries), len(entries) - len(jobs))
    for job, found in over(jobs, run_job):
        if isinstance(found, Failure):
            failures[job.slug] = found
            bar.advance(text=f"{job.slug} failed")
            continue
        entry, is_new = found
        entries[job.slug] |= json_safe(entry)
        if is_new:
            fitted.add(job.slug)
        bar.advance(text=f"{job.slug} {number(entry['result']['log_likelihood'])}")
    return failures, tuple(each.slug for each in plan.prepared.categories if each.slug in fitted)


def _manifest(plan: Plan, entries: Mapping[str, Entry], failures: Mapping[str, Failure]) -> dict[str, Any]:
    categories: Sequence[Category] = plan.prepared.categories
    document: dict[str, Any] = json_safe(
        {
            "kind": STORE_FOLDER.kind,
            "format": STORE_FOLDER.format,
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


def run_job(job: Job) -> tuple[Entry, bool]:
    """Run the job. Return what the manifest records about the model, and whether it was fitted now.

    A file with the key of the job was saved by a run that did not finish, or by one with the same settings.
    """
    prepared = _prepared(job)
    last = load(job.store / job.last) if job.last is not None else None
    test = prepared.test(job.slug)
    train = prepared.train(job.slug)
    if job.known is not None:
        return {"result": result_of(load(job.store / job.known), last, test, train)}, False
    start, notes = _start(job, last), list[str]()
    saved = next(saved_models(job.store, job.stem), None)
    if saved is None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            model = fit_with(settings_of(**job.options, threads=1), train, start=start, rng=job.seed).model
        notes = [str(each.message) for each in caught]
        file = save_model(model, job.store, job.stem)
    else:
        file, model = saved
    entry = {
        "file": file,
        "sha256": digest(job.store / file),
        "warm_start": start is not None,
        "seconds": model.learned.seconds,
        "notes": notes,
        "result": result_of(model, last, test, train),
    }
    return entry, saved is None


def _prepared(job: Job) -> Prepared:
    found = Prepared.open(job.prepared)
    if {side: file.sha256 for side, file in found.category(job.slug).files.items()} != job.data:
        raise InputError(f"{job.prepared} was prepared again while models were fitted; run fit-all again")
    return found


def _start(job: Job, last: SetModel | None) -> Any:
    """Return the model to start from, if it is of the requested kind."""
    if not job.warm_start or last is None:
        return None
    return last if isinstance(last, {"mixture": Mixture, "dpp": DPP}[job.options["model"]]) else None


def result_of(model: SetModel, last: SetModel | None, test: Baskets | None, train: Baskets) -> dict[str, Any]:
    """Return the evaluation on the test (or training) baskets, compared with the last model."""
    baskets = test if test is not None else train
    found = evaluate({MODEL: model}, baskets)
    return {
        "on": "test" if test is not None else "train",
        "n_baskets": len(baskets),
        **_metrics(found, MODEL),
        "independent": found.estimate(INDEPENDENT).value,
        "gain": found.difference(MODEL, INDEPENDENT).value,
        "baselines": _baseline_ranks(found, model),
        "calibration": asdict(found.reliability[MODEL][GIVEN_ONE]),
        "last": None if last is None else _compared(model, last, baskets),
    }


def _baseline_ranks(found: Evaluation, model: SetModel) -> dict[str, float]:
    """Return the percentile ranks of the baselines. Independent items rank as popularity does."""
    if model.training is None:  # the baselines would have the marginals of the model
        return {}
    names = (name for name in found.baselines if name != INDEPENDENT)
    return {name: found.estimate(name, PERCENTILE_RANK).value for name in names}


def _compared(model: SetModel, last: SetModel, baskets: Baskets) -> dict[str, Any] | None:
    """Compare two models on the items that both have. Baskets without any of these items are left out."""
    common = [item for item in model.items if item in last.catalogue]
    if not common:
        return None
    models = {"now": _restricted(model, common), "before": _restricted(last, common)}
    try:
        found = evaluate(models, baskets, unknown="drop")
    except InputError:  # no basket holds a common item
        return None
    return {
        "n_items": len(common),
        "now": _metrics(found, "now"),
        "before": _metrics(found, "before"),
        "difference": found.difference("now", "before").value,
    }


def _restricted(model: SetModel, items: Sequence[Label]) -> SetModel:
    return model if len(items) == len(model.items) else model.restrict(items)


def _metrics(found: Evaluation, name: str) -> dict[str, float]:
    return {
        "log_likelihood": found.estimate(name).value,
        "percentile_rank": found.estimate(name, PERCENTILE_RANK).value,
    }

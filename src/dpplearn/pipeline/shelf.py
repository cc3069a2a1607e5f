"""The shelf as its makers see it: what came of the last run, and how good its models are on prepared baskets."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from dpplearn.errors import InputError
from dpplearn.evaluation.evaluation import evaluate
from dpplearn.evaluation.result import Evaluation
from dpplearn.models import shelf as served
from dpplearn.pipeline.manifest import Prepared


class Shelf(served.Shelf):
    """A folder of models that `fit_all` wrote, by slug. A model is loaded when it is first asked for, and kept.

    Of a basket with items of several categories it knows this: a basket holds anything of category c with the
    probability `share`, what it holds of it is as the model says, and categories are independent. So scores and
    probabilities of items of different categories can be compared.

    What was opened stays as it was: a shelf that is written anew is seen by opening it again.

    Parameters
    ----------
    folder
        The folder.
    manifest
        What is in it.
    learned
        The categories that were learned just now.
    """

    def __init__(self, folder: str | PathLike[str], manifest: Mapping[str, Any], learned: tuple[str, ...] = ()) -> None:
        super().__init__(folder, manifest)
        self.learned = learned

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """How good each model is, by slug: log-likelihood, gain over independent items and percentile rank on its
        baskets to test on (`on` says so, or that there were none), and beside the `last` shelf's model."""
        return {each["slug"]: each["result"] for each in self.manifest["categories"]}

    @property
    def failed(self) -> dict[str, str]:
        """The categories that could not be learned, and why; the models of the shelf before stay."""
        return {each["slug"]: each["reason"] for each in self.manifest["failed"]}

    def evaluate(self, prepared: Prepared | str | PathLike[str], **options: Any) -> dict[str, Evaluation]:
        """How well the models predict the baskets to test on, beside baselines.

        Parameters
        ----------
        prepared
            What `prepare` made, or its folder. Its categories and their items are those of the shelf.
        options
            As `evaluate` takes them.

        Returns
        -------
        dict of str to Evaluation
            By slug, of the categories that have baskets to test on.

        Examples
        --------
        See `fit_all`.
        """
        prepared = prepared if isinstance(prepared, Prepared) else Prepared.open(prepared)
        tests = {slug: prepared.test(slug) for slug in self}
        found = {slug: evaluate(self[slug], test, **options) for slug, test in tests.items() if test is not None}
        if not found:
            raise InputError(f"{prepared.folder} has no baskets to test on; prepare it with a split (train=0.7)")
        return found

"""Requests and responses as pydantic models; the OpenAPI document is made from them."""

# Annotations are evaluated here, not later: FastAPI reads them.
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, model_validator

MAX_NAME = 500  # characters of an item
MAX_SEED = 2**63 - 1


def json_float(value: float) -> float | str | None:
    """Return a float as strict JSON can express it: infinities as strings, NaN as null."""
    return value if np.isfinite(value) else None if np.isnan(value) else "inf" if value > 0 else "-inf"


Item = Annotated[str, Field(max_length=MAX_NAME, strict=True)] | Annotated[int, Field(strict=True)]
Number = Annotated[float, PlainSerializer(json_float, return_type=float | Literal["inf", "-inf"] | None)]
Count = Annotated[int, Field(ge=0, strict=True)]
AtLeastOne = Annotated[int, Field(ge=1, strict=True)]
Flag = Annotated[bool, Field(strict=True)]


class Ask(BaseModel):
    """A request about a basket."""

    model_config = ConfigDict(extra="forbid")

    basket: Annotated[list[Item], Field(description="Items in the basket; repeated items count once.")] = []
    unknown: Annotated[
        Literal["error", "drop"], Field(description="Whether unknown items are an error or left out.")
    ] = "error"


class AskMany(Ask):
    """A request about one basket or many."""

    baskets: Annotated[
        list[list[Item]] | None,
        Field(description="Several baskets instead of one, each answered by itself."),
    ] = None
    k: Count = 10
    deny: Annotated[list[Item], Field(description="Items never to recommend. Unknown ones are ignored.")] = []
    explain: Annotated[Flag, Field(description="Add the influence of each basket item; for one basket.")] = False

    @model_validator(mode="after")
    def _one_or_many(self) -> Self:
        if self.baskets is not None and (self.basket or self.explain):
            raise ValueError("baskets cannot be combined with basket or explain")
        return self


class AskRecommend(AskMany):
    """A request for the best items to add."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"basket": ["crib"], "k": 5, "explain": True}]})

    allow: Annotated[list[Item] | None, Field(description="Recommend only these items; by default all.")] = None


class AskStoreRecommend(AskMany):
    """A request for the best items to add, over all models."""

    categories: Annotated[list[str] | None, Field(description="Models to choose from; by default all.")] = None


class AskComplete(Ask):
    """A request for a diverse set of k items that contains the basket."""

    k: AtLeastOne = 10


class AskStoreComplete(AskComplete):
    """The same over all models."""

    categories: list[str] | None = None


class AskSample(Ask):
    """A request for random sets that contain the basket."""

    n: AtLeastOne = 1
    k: Annotated[Count | None, Field(description="Items of each set, including the basket; by default any.")] = None
    seed: Annotated[int, Field(ge=0, le=MAX_SEED, strict=True)] | None = None


class AskExplain(Ask):
    """A request for the influence of each basket item on another item."""

    item: Item


class Influence(BaseModel):
    item: Item
    factor: Annotated[Number, Field(description="Multiplies the probability.")]
    direction: Literal["up", "down", "none"]


class Suggestion(BaseModel):
    item: Item
    score: Annotated[Number, Field(description="P(basket with the item) / P(basket).")]
    probability: Annotated[
        Number, Field(description="That a basket which contains the given items also contains this one.")
    ]
    category: Annotated[str | None, Field(description="The model, in answers of all models.")] = None
    alone: Annotated[Number | None, Field(description="The probability without a basket; with explain.")] = None
    influences: list[Influence] | None = None


class Answer(BaseModel):
    """An answer of one model. `version` is the SHA-256 of its file."""

    model: str
    version: str
    warnings: list[str] = []


class StoreAnswer(BaseModel):
    """An answer of all models. `version` identifies the store, `versions` its models."""

    version: str
    versions: dict[str, str]


class Row(BaseModel):
    """The answer to one basket of many: recommendations or a problem."""

    items: list[Suggestion] | None = None
    dropped: Annotated[list[Item], Field(description="Unknown items that were left out.")] = []
    problem: dict[str, Any] | None = None


class RecommendedItems(BaseModel):
    items: Annotated[list[Suggestion] | None, Field(description="For one basket.")] = None
    rows: Annotated[list[Row] | None, Field(description="For several baskets, in their order.")] = None
    dropped: list[Item] = []


class Recommendations(Answer, RecommendedItems):
    """Recommendations of one model."""


class StoreRecommendations(StoreAnswer, RecommendedItems):
    """Recommendations of all models."""


class CompletedSet(BaseModel):
    items: list[Item]
    added: list[Item]
    note: str
    dropped: list[Item] = []


class Completion(Answer, CompletedSet):
    """A set grown by one model."""

    log_prob: Number


class StoreCompletion(StoreAnswer, CompletedSet):
    """A set grown by all models."""

    categories: Annotated[list[str], Field(description="Of the added items.")]


class Samples(Answer):
    sets: list[list[Item]]
    seed: int
    dropped: list[Item] = []


class Explanation(Answer):
    item: Item
    alone: Number
    probability: Number
    score: Number
    influences: list[Influence]
    n_orders: Annotated[
        int | None, Field(description="Random orders in the average; absent if all orders were used.")
    ] = None
    dropped: list[Item] = []


class Related(BaseModel):
    """How often two items co-occur relative to independence, with a 95 % interval if training data are known."""

    item: Item
    lift: Number
    low: Number
    high: Number


class RelatedItems(Answer):
    item: Item
    substitutes: list[Related]
    complements: list[Related]


class Liked(BaseModel):
    item: Item
    ratio: Annotated[Number, Field(description="Probability relative to the other segments.")]


class SegmentOfBasket(BaseModel):
    share: Number
    expected_size: Number
    likes: list[Liked]
    probability: Annotated[Number | None, Field(description="Given the basket.")] = None


class Segments(Answer):
    """Segments of a mixture; empty for a DPP."""

    segments: list[SegmentOfBasket]
    dropped: list[Item] = []


class ModelEntry(BaseModel):
    name: str
    title: str
    version: str
    kind: Literal["mixture", "dpp"]
    n_items: int


class ModelAbout(ModelEntry):
    """Description of a model."""

    n_segments: int
    expected_size: Number
    share: Annotated[Number, Field(description="Of the baskets, those with items of this model.")]
    learned_from: Annotated[int, Field(description="Number of training baskets.")]
    learner: str
    modified: str
    loaded: str
    old: Annotated[str, Field(description="Why the model is older than the rest of the store, or empty.")]


class ModelList(StoreAnswer):
    models: list[ModelEntry]
    broken: list[str]


class CatalogueItem(BaseModel):
    item: Item
    probability: Number


class Items(Answer):
    items: Annotated[list[CatalogueItem], Field(description="Most likely first.")]
    n_items: int


class Pair(BaseModel):
    one: Item
    other: Item
    lift: Number


class LiftMap(BaseModel):
    """Lifts between items, ordered so that substitutes are neighbours."""

    items: list[Item]
    lift: list[list[Number]]


class CalibrationBin(BaseModel):
    model_config = ConfigDict(extra="allow")

    predicted: Number
    observed: Number
    weight: Number


class Calibration(BaseModel):
    on: str
    rows: list[CalibrationBin]


class ModelAnalysis(Answer):
    title: str
    segments: list[SegmentOfBasket]
    substitutes: list[Pair]
    complements: list[Pair]
    map: LiftMap
    calibration: Calibration | None


class ModelScore(BaseModel):
    """Log-likelihood and ranking of one model, compared with baselines."""

    name: str
    title: str
    kind: str
    n_items: int
    n_baskets: int | None
    on: Annotated[str, Field(description='"test" for held-out baskets, else "train".')]
    log_likelihood: Number | None
    independent: Annotated[Number | None, Field(description="Log-likelihood of independent items.")]
    gain: Number | None
    percentile_rank: Number | None
    baselines: dict[str, Any] | None


class StoreAnalysis(BaseModel):
    version: str
    models: list[ModelScore]


class Health(BaseModel):
    live: bool = True


class Readiness(BaseModel):
    ready: bool
    broken: list[str] = []


class ProblemDocument(BaseModel):
    """RFC 9457."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str

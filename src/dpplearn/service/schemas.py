"""Requests and responses as pydantic models; the OpenAPI document is generated from them."""

# Annotations are evaluated here, not later: FastAPI reads them.
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

MAX_NAME = 500  # characters of an item
MAX_BASKETS = 5000  # of one request
MAX_INTEGER = 2**63 - 1

Item = Annotated[str, Field(max_length=MAX_NAME, strict=True)] | Annotated[int, Field(strict=True)]
# Without fail_fast a body of 1 MB with one error per element takes seconds to validate.
ItemList = Annotated[list[Item], Field(fail_fast=True)]
Baskets = Annotated[list[ItemList], Field(fail_fast=True, max_length=MAX_BASKETS)]
Number = float | None  # null in JSON if it is not finite
Count = Annotated[int, Field(ge=0, le=MAX_INTEGER, strict=True)]
AtLeastOne = Annotated[int, Field(ge=1, le=MAX_INTEGER, strict=True)]
Categories = Annotated[list[str] | None, Field(description="Models to choose from; by default all.")]


class Ask(BaseModel):
    """A request about a basket."""

    model_config = ConfigDict(extra="forbid")

    basket: Annotated[ItemList, Field(description="Items in the basket; repeated items count once.")] = []
    unknown: Annotated[Literal["error", "drop"], Field(description="What to do with unknown items.")] = "error"


class AskBaskets(Ask):
    """A request for the best items to add to one basket or to many."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"basket": ["crib"], "k": 5, "explain": True}]})

    baskets: Annotated[Baskets | None, Field(description="Several baskets instead of one, each by itself.")] = None
    k: Count = 10
    deny: Annotated[ItemList, Field(description="Items never to recommend. Unknown ones are ignored.")] = []
    explain: Annotated[bool, Field(strict=True, description="Add the influence of each item of one basket.")] = False

    @model_validator(mode="after")
    def _one_or_many(self) -> Self:
        if self.baskets is not None and (self.basket or self.explain):
            raise ValueError("baskets cannot be combined with basket or explain")
        return self


class AskRecommend(AskBaskets):
    """A request to one model."""

    allow: Annotated[ItemList | None, Field(description="Recommend only these items; by default all.")] = None


class AskRecommendOfAll(AskBaskets):
    """A request to all models."""

    categories: Categories = None


class AskComplete(Ask):
    """A request for a diverse set of k items that contains the basket."""

    k: AtLeastOne = 10


class AskCompleteOfAll(AskComplete):
    """A request to all models."""

    categories: Categories = None


class AskSample(Ask):
    """A request for random sets that contain the basket."""

    n: AtLeastOne = 1
    k: Annotated[Count | None, Field(description="Items of each set, including the basket; by default any.")] = None
    seed: Count | None = None


class AskExplain(Ask):
    """A request for the influence of each basket item on another item."""

    item: Item


class AskRelated(BaseModel):
    """The query of a request for substitutes and complements."""

    item: Annotated[str, Field(max_length=MAX_NAME)]
    k: Annotated[int, Field(ge=0, le=MAX_INTEGER)] = 10


class AskItems(BaseModel):
    """The query of a request for items of a model."""

    search: Annotated[str, Field(max_length=200, description="Words that the item contains.")] = ""
    limit: Annotated[int, Field(ge=0, le=5000)] = 100


class AskNothing(BaseModel):
    """The query of a request without parameters."""


class Part(BaseModel):
    """Part of a response. It can be made from a result object of the library that has the same attributes."""

    model_config = ConfigDict(from_attributes=True, ser_json_inf_nan="null", populate_by_name=True)


class Answer(Part):
    """A response of one model, `model`, or of all, `versions`. A version is the SHA-256 of a model file."""

    model: str | None = None
    version: str
    versions: dict[str, str] | None = None
    warnings: list[str] = []
    dropped: Annotated[list[Item] | None, Field(description="Unknown items that were left out.")] = None


class Influence(Part):
    """The factor by which an item of the basket multiplies the probability of another item."""

    item: Item
    factor: Number


class Suggestion(Part):
    """A recommended item."""

    item: Item
    score: Annotated[Number, Field(description="P(basket with the item) / P(basket).")]
    probability: Annotated[Number, Field(description="That a basket with the given items contains this one.")]
    category: Annotated[str | None, Field(description="The model, in answers of all models.")] = None
    alone: Annotated[Number, Field(description="The probability without a basket; with explain.")] = None
    influences: list[Influence] | None = None


class ProblemDocument(BaseModel):
    """An error (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str


class Row(Part):
    """The answer to one basket of many: recommendations or a problem."""

    items: list[Suggestion] | None = None
    dropped: list[Item] = []
    problem: ProblemDocument | None = None


class Recommendations(Answer):
    """Recommendations for one basket (`items`) or for many (`rows`)."""

    items: list[Suggestion] | None = None
    rows: Annotated[list[Row] | None, Field(description="In the order of the baskets.")] = None


class Completion(Answer):
    """A set that contains the basket."""

    items: list[Item]
    added: list[Item]
    note: Annotated[str, Field(description="Why there are fewer items than requested, or empty.")]
    log_prob: Annotated[Number, Field(description="Logarithm of the probability of the set, for one model.")] = None
    categories: Annotated[list[str] | None, Field(description="Of the added items, for all models.")] = None


class Samples(Answer):
    """Random sets, and the seed that reproduces them."""

    sets: list[list[Item]]
    seed: int


class Explanation(Answer):
    """The probability of an item alone and given the basket, and the factors between them."""

    item: Item
    alone: Number
    probability: Annotated[Number, Field(validation_alias="given")]
    score: Number
    influences: list[Influence]
    n_orders: Annotated[int | None, Field(description="Random orders averaged over; absent if all were.")] = None
    error: Annotated[Number, Field(description="Largest relative standard error of a factor.")]


class Related(Part):
    """Lift of two items: their co-occurrence relative to independence, with the 95 % interval of the training data."""

    item: Item
    lift: Number
    low: Number
    high: Number


class RelatedItems(Answer):
    """Substitutes and complements of an item."""

    item: Item
    substitutes: list[Related]
    complements: list[Related]


class Liked(Part):
    """An item that is more likely in a segment than in all baskets."""

    item: Item
    ratio: Number


class Segment(Part):
    """A segment of a mixture."""

    share: Annotated[Number, Field(description="Of all baskets.")]
    expected_size: Number
    likes: list[Liked]
    probability: Annotated[Number, Field(description="Given the basket.")] = None


class Segments(Answer):
    """Segments of a mixture; empty for a DPP."""

    segments: list[Segment]


class ModelEntry(Part):
    """A model in a list."""

    name: str
    title: str
    version: str
    kind: Literal["mixture", "dpp"]
    n_items: int


class ModelAbout(ModelEntry, Answer):
    """Description of a model."""

    n_segments: int
    expected_size: Number
    share: Annotated[Number, Field(description="Of the baskets, those with items of this model.")]
    learned_from: Annotated[int, Field(description="Number of training baskets.")]
    learner: str
    modified: str
    loaded: str
    old: Annotated[str, Field(description="Why the model is older than the rest of the store, or empty.")]


class ModelList(Answer):
    """All models, and the names of those that cannot be loaded."""

    models: list[ModelEntry]
    broken: list[str]


class CatalogueItem(Part):
    """An item and the probability that a basket contains it."""

    item: Item
    probability: Number


class Items(Answer):
    """Items of a model, the most likely first."""

    items: list[CatalogueItem]
    n_items: int


class Pair(Part):
    """Two items, with lift and interval as in `Related`."""

    first: Item
    second: Item
    lift: Number
    low: Number
    high: Number


class LiftMap(Part):
    """Lifts among the items of the strongest pairs, which are neighbours."""

    items: list[Item]
    lift: list[list[Number]]


class CalibrationBin(Part):
    """Predictions from `start` to `stop`: their mean, the observed frequency with its interval, and their number."""

    predicted: Number
    observed: Number
    weight: Number
    start: Number
    stop: Number
    low: Number
    high: Number


class Calibration(Part):
    """Calibration as fit-all measured it, on held-out ("test") or training ("train") baskets."""

    on: str
    rows: list[CalibrationBin]


class ModelAnalysis(Answer):
    """Segments, strongest pairs and calibration of a model."""

    title: str
    segments: list[Segment]
    substitutes: list[Pair]
    complements: list[Pair]
    map: LiftMap
    calibration: Calibration | None = None


class ModelScore(ModelEntry):
    """Log-likelihood and ranking of one model, compared with baselines."""

    n_baskets: int | None = None
    on: Annotated[str, Field(description='"test" for held-out baskets, else "train".')]
    log_likelihood: Number = None
    gain: Annotated[Number, Field(description="Log-likelihood minus that of independent items.")] = None
    percentile_rank: Number = None
    baselines: dict[str, Any] | None = None


class StoreAnalysis(Answer):
    """Scores of all models."""

    models: list[ModelScore]


class Health(Part):
    """The process answers."""

    live: bool = True


class Readiness(Part):
    """Whether requests can be answered, and the models that cannot be loaded."""

    ready: bool
    broken: list[str] = []

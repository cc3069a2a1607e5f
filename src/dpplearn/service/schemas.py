"""What can be asked and what is answered, as the documentation of the service shows it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

LONGEST_NAME = 500  # characters of an item
LARGEST_SEED = 2**63 - 1

Item = Annotated[str, Field(max_length=LONGEST_NAME, strict=True)] | Annotated[int, Field(strict=True)]
Figure = float | Literal["inf", "-inf"] | None  # JSON has no other words for what is no number
Count = Annotated[int, Field(ge=0, strict=True)]
AtLeastOne = Annotated[int, Field(ge=1, strict=True)]

Basket = Annotated[list[Item], Field(description="The items that are there already.")]
Unknown = Annotated[
    Literal["error", "ignore"], Field(description="What to do about items that the model does not know.")
]


class Ask(BaseModel):
    """A question about a basket."""

    model_config = ConfigDict(extra="forbid")

    basket: Basket = []
    unknown: Unknown = "error"


class AskBatchRow(Ask):
    """A row of a batch: as a question for recommendations, which are not explained."""

    k: Count = 10
    allow: Annotated[list[Item] | None, Field(description="Choose from these; by default from all.")] = None
    deny: Annotated[list[Item], Field(description="Leave these out.")] = []


class AskRecommend(AskBatchRow):
    """What next?"""

    model_config = ConfigDict(json_schema_extra={"examples": [{"basket": ["crib"], "k": 5, "explain": True}]})

    explain: Annotated[bool, Field(strict=True, description="Say which items of the basket push each up or down.")] = (
        False
    )


class AskShelfRow(Ask):
    """A row of a batch over all models."""

    k: Count = 10
    categories: Annotated[list[str] | None, Field(description="Models to choose from; by default all.")] = None
    deny: Annotated[list[Item], Field(description="Leave these out.")] = []


class AskShelf(AskShelfRow):
    """What next, of all models?"""

    explain: Annotated[bool, Field(strict=True)] = False


class AskBatch(BaseModel):
    """Many baskets at once; each row is checked and answered by itself."""

    model_config = ConfigDict(extra="forbid")

    rows: list[Any]


class AskComplete(Ask):
    """A diverse set of k items that holds the basket."""

    k: AtLeastOne = 10


class AskCompleteShelf(AskComplete):
    """The same of several models."""

    categories: list[str] | None = None


class AskSample(Ask):
    """Sets drawn at random that hold the basket."""

    n: AtLeastOne = 1
    k: Annotated[Count | None, Field(description="How many items each has, the basket's included; by default any.")] = (
        None
    )
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED, strict=True)] | None = None


class AskExplain(Ask):
    """Why is this item likely or unlikely beside the basket?"""

    item: Item


class AskRelated(BaseModel):
    """What stands in for this item, or goes with it?"""

    model_config = ConfigDict(extra="forbid")

    item: Item
    k: Count = 10


class Influence(BaseModel):
    item: Item
    factor: Annotated[Figure, Field(description="What it multiplies the probability by.")]
    direction: Literal["up", "down", "none"]


class Suggestion(BaseModel):
    item: Item
    score: Annotated[Figure, Field(description="P(basket with the item)/P(basket).")]
    probability: Annotated[Figure, Field(description="That a basket which holds these items holds this one, too.")]
    alone: Annotated[Figure, Field(description="The same without a basket; with explain.")] = None
    influences: list[Influence] | None = None


class ShelfSuggestion(Suggestion):
    category: str


class Answer(BaseModel):
    """`version` is the SHA-256 of the model's file."""

    model: str
    version: str


class AboutBasket(Answer):
    ignored: list[Item]


class Recommendations(AboutBasket):
    items: list[Suggestion]


class Completion(AboutBasket):
    items: list[Item]
    added: list[Item]
    log_prob: Figure
    note: str


class Samples(AboutBasket):
    sets: list[list[Item]]
    seed: int


class Explanation(AboutBasket):
    item: Item
    alone: Figure
    probability: Figure
    score: Figure
    influences: list[Influence]
    n_orders: Annotated[int | None, Field(description="Random orders averaged over; null: all orders.")]


class Related(BaseModel):
    item: Item
    lift: Figure
    low: Figure
    high: Figure


class Relations(Answer):
    item: Item
    items: list[Related]
    note: str


class Liked(BaseModel):
    item: Item
    ratio: Figure


class SegmentOfBasket(BaseModel):
    share: Figure
    probability: Annotated[Figure, Field(description="Given the basket.")]
    expected_size: Figure
    likes: list[Liked]


class Segments(AboutBasket):
    segments: list[SegmentOfBasket]
    note: str


class Row(BaseModel):
    """Either what was asked for, or a problem."""

    items: list[ShelfSuggestion | Suggestion] | None = None
    ignored: list[Item] | None = None
    problem: dict[str, Any] | None = None


class Batch(Answer):
    rows: list[Row]


class OfShelf(BaseModel):
    """`version` tells one shelf from another; `versions` are those of its models."""

    version: str
    versions: dict[str, str]


class ShelfRecommendations(OfShelf):
    ignored: list[Item]
    items: list[ShelfSuggestion]


class ShelfCompletion(OfShelf):
    ignored: list[Item]
    items: list[Item]
    added: list[Item]
    categories: Annotated[list[str], Field(description="Of those added.")]
    note: str


class ShelfBatch(OfShelf):
    rows: list[Row]


class ModelAbout(BaseModel):
    """Description of a model."""

    name: str
    version: str
    title: str
    kind: str
    n_items: int
    n_segments: int
    expected_size: Figure
    share: Figure
    learned_from: Annotated[int, Field(description="How many baskets.")]
    learner: str
    modified: str
    loaded: str
    old: Annotated[str, Field(description="Why it is older than the rest of the shelf; empty if it is not.")]


class ModelEntry(BaseModel):
    name: str
    title: str
    version: str
    kind: str
    n_items: int


class ModelList(OfShelf):
    models: list[ModelEntry]
    broken: list[str]


class CatalogueItem(BaseModel):
    item: Item
    probability: Figure


class Items(Answer):
    items: Annotated[list[CatalogueItem], Field(description="The likeliest first.")]
    n_items: int


class Health(BaseModel):
    live: bool | None = None
    ready: bool | None = None


class ProblemDocument(BaseModel):
    """RFC 9457."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str

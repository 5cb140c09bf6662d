"""Settings of FELRec-Q and FELRec-P, and the recipe with which they learn on ordinary logs."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from felrec.model.paper.attention import TransformerSettings

HalfLife = Annotated[float, Field(gt=0)]


class FELRecSettings(TransformerSettings):
    """Sizes and variants of FELRec-Q and FELRec-P; the defaults are the paper's."""

    history_length: int = Field(64, ge=1, description="number N of newest counterparts that are encoded")
    queue_size: int = Field(8192, ge=1, description="number K of past projections used as negatives (FELRec-Q)")
    temperature: float = Field(0.07, gt=0, description="temperature of the contrastive loss (FELRec-Q)")
    normalisation: Literal["batch", "layer"] = Field("batch", description="in the heads; layer is the ablation -LN")
    projection: Literal["mlp", "none", "residual"] = Field(
        "mlp", description="projection heads; none is the ablation -noMLP; residual heads start as the identity"
    )
    share_projections: bool = Field(False, description="one head for users and items, the ablation -shareMLP")
    type_embedding: bool = Field(True, description="learned type vectors; off is the ablation -noType")
    score_from: Literal["vectors", "projections"] = Field("vectors", description="inputs of the cosine")
    neighbours: int = Field(0, ge=0, description="score with the mean of this many nearest users (10 is -NN); 0: off")

    inference_precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="of encoding without training: validation, evaluation, replay and serving, on a CPU"
    )

    # Not in the paper: see the recipe below.
    cache: Literal["zero", "seeded"] = Field(
        "zero", description="what a user or item without a vector reads as: zero, or a random vector of its own"
    )
    seed_share: float = Field(0.0, ge=0, description="how much of its own random vector an item's vector keeps")
    written: Literal["encoded", "unit"] = Field("encoded", description="length of the vectors in the cache")
    training_writes: Literal["published", "served"] = Field(
        "published", description="vectors that training writes: before each event, with dropout; or as observing does"
    )
    encoder: Literal["published", "residual"] = Field(
        "published", description="residual adds the mean of the cached vectors, and starts as that mean"
    )
    negatives: Literal["queue", "catalogue"] = Field(
        "queue", description="of a user: as published, or all items as they were cached before the event"
    )
    item_loss: float = Field(1.0, ge=0, description="weight of L_x beside the softmax over the catalogue")
    prior_half_lives: list[HalfLife] = Field(
        [],
        description="popularity prior of the score: half-lives of its counts, in events, separated by commas",
    )

    of_scoring: ClassVar[frozenset[str]] = frozenset({"score_from", "neighbours", "inference_precision"})

    @field_validator("prior_half_lives", mode="before")
    @classmethod
    def _listed(cls, half_lives: Any) -> Any:
        """A list, or numbers separated by commas."""
        return [one for one in half_lives.split(",") if one.strip()] if isinstance(half_lives, str) else half_lives


ORDINARY: dict[str, Any] = {
    "cache": "seeded",
    "seed_share": 1.0,
    "written": "unit",
    "training_writes": "served",
    "encoder": "residual",
    "projection": "residual",
    "normalisation": "layer",  # batch statistics of the whole catalogue are not those of the items of a batch
    "score_from": "projections",
    "negatives": "catalogue",
    "item_loss": 0.1,
    "prior_half_lives": [100.0, 1_000.0, 10_000.0, 100_000.0],
    "optimizer": "adamw",
    "lr": 0.003,
    "batch_size": 256,
    "trained_share": 0.5,
    "epochs": 2,
    "width": 64,
    "layers": 1,
    "feed_forward": 128,
    "history_length": 32,
    "queue_size": 4096,
}
"""Changes with which FELRec-Q and FELRec-P learn from 100,000 to 3 million events; the last are for speed."""

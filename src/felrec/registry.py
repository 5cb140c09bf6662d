"""Every model by name. Add the `ModelKind` of a new model here."""

from __future__ import annotations

from felrec.baselines.bpr_mf import BPR_MF
from felrec.baselines.gru4rec import GRU4REC
from felrec.baselines.gru4rec_bptt import GRU4REC_BPTT
from felrec.baselines.item_knn import ITEM_KNN
from felrec.baselines.jodie import JODIE_STAR
from felrec.baselines.popularity import DECAYED_POPULARITY, POPULARITY
from felrec.baselines.repeat import REPEAT
from felrec.baselines.sasrec import SASREC
from felrec.errors import ConfigError
from felrec.model.felrec_s import FELREC_S
from felrec.model.paper.felrec import FELREC_P, FELREC_Q
from felrec.model_kind import ModelKind

MODELS = {
    kind.name: kind
    for kind in (
        FELREC_S,
        FELREC_Q,
        FELREC_P,
        BPR_MF,
        GRU4REC,
        GRU4REC_BPTT,
        SASREC,
        JODIE_STAR,
        POPULARITY,
        DECAYED_POPULARITY,
        REPEAT,
        ITEM_KNN,
    )
}


def model_kind(name: str) -> ModelKind:
    """The model with this name; ConfigError lists all models if it is unknown."""
    try:
        return MODELS[name]
    except KeyError:
        raise ConfigError(f"unknown model '{name}'; choose one of {', '.join(MODELS)}") from None

"""Check that a store belongs to a model, and fill a new store."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from felrec.config import check
from felrec.data.events import BEGINNING, all_rows
from felrec.data.seen import PAIR
from felrec.errors import ConfigError, StoreMismatch
from felrec.fitted import FittedModel
from felrec.recommender import Servable, Tensors
from felrec.registry import model_kind
from felrec.service.engine.click_counts import FEEDBACK, Note
from felrec.store.protocol import EMPTY_BASE, Base, Identity, Store, TableSpec

_FIX = "open it with the run it was made with, or rebuild it for this one with felrec replay"


def weights_digest(weights: Tensors) -> str:
    """SHA-256 of names, types, shapes and values."""
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        values = tensor.detach().cpu().contiguous()
        digest.update(f"{name}:{values.dtype}:{tuple(values.shape)};".encode())
        digest.update(values.flatten().numpy().tobytes())
    return digest.hexdigest()


def identity_of(model: FittedModel, *, empty: bool) -> Identity:
    """The identity that a store of this model has."""
    base = EMPTY_BASE if empty else model.fingerprint or EMPTY_BASE  # weights without a log have no state either
    return Identity(model.name, dict(model.settings), weights_digest(model.recommender.weights()), base)


def check_identity(name: str, kept: Identity, model: FittedModel) -> None:
    """Raise StoreMismatch for a store, here only its name, of another model, settings, weights or initial state."""
    asked = identity_of(model, empty=kept.base == EMPTY_BASE)
    if kept.model != asked.model:
        raise StoreMismatch(f"{name} belongs to {kept.model}, not to {asked.model}; {_FIX}")
    mine_all, theirs_all = _spelled(kept), _spelled(asked)
    for setting in sorted({*mine_all, *theirs_all}):
        mine, theirs = mine_all.get(setting), theirs_all.get(setting)
        if mine != theirs:
            raise StoreMismatch(f"{name} was made with {setting} {mine}, the run has {theirs}; {_FIX}")
    if kept.weights != asked.weights:
        raise StoreMismatch(
            f"{name} was made with other weights ({kept.weights[:8]}…, the run has {asked.weights[:8]}…); {_FIX}"
        )
    if kept.base != asked.base:
        raise StoreMismatch(f"{name} started with the state of another log or split than the run; {_FIX}")


def _spelled(identity: Identity) -> dict[str, Any]:
    """Settings in the form of this version, also if another version wrote them."""
    try:
        return check(model_kind(identity.model).settings, dict(identity.settings)).model_dump()
    except ConfigError:
        return dict(identity.settings)  # written by an incompatible version: compared as they are


def begin(store: Store, model: FittedModel, *, empty: bool) -> None:
    """Fill an empty store with the model's state after validation, or with the empty state."""
    recommender = model.recommender
    if empty and model_kind(model.name).one_log:
        raise ConfigError(f"{model.name} knows only the items of its own log, so its store cannot start empty")
    if empty:
        recommender.reset()
    else:
        recommender.load_state(model.after_validation)
    state = {name: tensor.numpy() for name, tensor in recommender.state().items()}
    servable = isinstance(recommender, Servable)
    base = Base(
        users=[] if empty else list(map(str, model.user_ids.all())),
        items=[] if empty else list(map(str, model.item_ids.all())),
        pairs=np.zeros(0, dtype=PAIR) if empty else model.pairs,
        clock=BEGINNING if empty else model.clock,
        tables=[_table(name, values) for name, values in state.items()] if servable else [],
        state=all_rows(state) if servable else {},
        notes={FEEDBACK: Note.new().text()},
    )
    store.begin(identity_of(model, empty=empty), base)


def _table(name: str, values: np.typing.NDArray[np.generic]) -> TableSpec:
    return TableSpec(name, values.dtype.newbyteorder("<").str, values.shape[1:])

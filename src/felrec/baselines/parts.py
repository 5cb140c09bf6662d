"""The state of a recommender that is made of tables: each under its name, a dot, and what it calls its arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from felrec.recommender import Tensors

Arrays = dict[str, NDArray[np.generic]]


class Part(Protocol):
    """A table."""

    def state(self) -> Arrays:
        """Its arrays."""
        ...

    def load_state(self, state: Arrays) -> None:
        """Put back what `state` returned."""
        ...


def state_of(parts: Mapping[str, Part]) -> Tensors:
    """The arrays of all parts."""
    return {
        f"{name}.{key}": torch.from_numpy(values)
        for name, part in parts.items()
        for key, values in part.state().items()
    }


def load_parts(parts: Mapping[str, Part], state: Tensors) -> None:
    """Put back what `state_of` returned."""
    for name, part in parts.items():
        start = f"{name}."
        part.load_state({key.removeprefix(start): state[key].numpy() for key in state if key.startswith(start)})

"""How runs and bundled weights name the weights of FELRec-S: as in format 1, which every version must open."""

from __future__ import annotations

from felrec.recommender import Tensors

_NAMES = (  # here, and in files
    ("vector_network.", ""),
    ("item_network.", "popularity."),
    ("pair_network.", "evidence."),
    ("item_slopes", "trend"),
)
_OF_VECTORS = ("encoder.", "log_scale", "seed_share", "confidence")  # names in files of the vector network


def name_in_files(name: str) -> str:
    """The name of a weight in files.

    >>> name_in_files("pair_network.networks.0.0.bias")
    'evidence.networks.0.0.bias'
    """
    for here, in_files in _NAMES:
        if name.startswith(here):
            return in_files + name.removeprefix(here)
    return name


def without_vectors(weights: Tensors) -> Tensors:
    """Weights by their names in files, but for those of the vector network."""
    return {name: tensor for name, tensor in weights.items() if not name.startswith(_OF_VECTORS)}

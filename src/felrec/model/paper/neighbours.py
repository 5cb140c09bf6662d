"""The mean of a user's nearest neighbours, for the ablation -NN."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from felrec.data.events import Rows


def nearest_mean(users: Tensor, everyone: Tensor, known: NDArray[np.bool_], rows: Rows, count: int) -> Tensor:
    """The mean (B, D) of the `count` unit vectors of `everyone` (U, D) nearest to each user, without the user itself.

    Only known users are neighbours. `rows` (B,) are the users' own places in `everyone`, or beyond it.
    """
    unknown = torch.from_numpy(~known).to(everyone.device)
    similarity = (users @ everyone.T).masked_fill_(unknown, -torch.inf)
    own = torch.from_numpy(np.flatnonzero(rows < len(everyone)))
    similarity[own, torch.from_numpy(rows[own.numpy()].astype(np.int64))] = -torch.inf
    count = min(count, int(known.sum()) - 1)  # without the querying user
    if count < 1:
        return users
    return everyone[similarity.topk(count, dim=1).indices].mean(dim=1)

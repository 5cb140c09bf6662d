"""Scalars for TensorBoard: `tensorboard --logdir DIR`, where DIR is a run directory or a folder of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from felrec.errors import ConfigError, how_to_install

if TYPE_CHECKING:
    from torch.utils.tensorboard.writer import SummaryWriter


def require_tensorboard() -> None:
    """Raise ConfigError with an install command if TensorBoard is missing."""
    try:
        import torch.utils.tensorboard.writer  # noqa: F401
    except ImportError:
        raise ConfigError(f"tensorboard=true needs TensorBoard; {how_to_install('tensorboard')}") from None


class TensorBoard:
    """A `Listener` that writes loss, learning rate and validation metrics by step."""

    def __init__(self, folder: Path) -> None:
        require_tensorboard()
        from torch.utils.tensorboard.writer import SummaryWriter

        self._open = SummaryWriter
        self._folder = folder
        self._writer: SummaryWriter | None = None

    def step(self, *, epoch: int, step: int, steps: int, events: int, loss: float, lr: float) -> None:
        """Write loss and learning rate."""
        now = epoch * steps + step
        writer = self._opened(now)
        writer.add_scalar("training/loss", loss, now)
        writer.add_scalar("training/lr", lr, now)

    def validated(self, *, epoch: int, step: int, steps: int, metrics: dict[str, float], best: bool) -> None:
        """Write the metrics of a validation."""
        now = epoch * steps + step
        writer = self._opened(now)
        for name, value in metrics.items():
            writer.add_scalar(f"validation/{name}", value, now)
        writer.flush()

    def _opened(self, now: int) -> SummaryWriter:
        if self._writer is None:
            # A resumed run repeats the steps after its checkpoint: drop those written before.
            self._writer = self._open(str(self._folder), purge_step=now)
        return self._writer

    def close(self) -> None:
        """Write pending scalars and close."""
        if self._writer is not None:
            self._writer.close()

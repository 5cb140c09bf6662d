"""The learning rate: a linear warm-up, then cosine decay."""

from __future__ import annotations

import math

from felrec.config import TrainingSettings

LONG_RUN = 100  # epochs from which `auto` follows the paper and sets the rate once an epoch


def learning_rate(settings: TrainingSettings, epoch: int, step: int, steps_per_epoch: int) -> float:
    """The rate for a step of an epoch, both counted from 0.

    By epoch, as in the paper: 10 epochs up from `min_lr`, 90 down to it. By step, for short runs: the
    same shape over all steps.

    >>> settings = TrainingSettings()
    >>> [round(learning_rate(settings, epoch, 0, 50), 7) for epoch in (0, 5, 10, 99)]
    [1e-07, 0.0050001, 0.01, 1e-07]
    """
    by_epoch = settings.schedule == "epoch" or (settings.schedule == "auto" and settings.epochs >= LONG_RUN)
    now = epoch if by_epoch else epoch * steps_per_epoch + step
    total = settings.epochs if by_epoch else settings.epochs * steps_per_epoch
    warmup = round(settings.warmup * total)
    if now < warmup:
        return settings.min_lr + (settings.lr - settings.min_lr) * now / warmup
    done = (now - warmup) / max(1, total - warmup - 1)
    return settings.min_lr + (settings.lr - settings.min_lr) * (1 + math.cos(math.pi * done)) / 2

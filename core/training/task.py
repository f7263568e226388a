"""Associative recall: n pairs of a key and a label; each key is asked again, and its label is wanted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from .settings import Task


@dataclass(frozen=True, eq=False)
class Examples:
    """The examples of one step: every key of a set is asked once."""

    keys: FloatArray  # (batch, pairs, width), standard normal
    labels: npt.NDArray[np.intp]  # (batch, pairs)


def draw(task: Task, rng: np.random.Generator) -> Examples:
    """Draw the examples of one step, in float32."""
    shape = task.batch, task.pairs
    keys = rng.standard_normal((*shape, task.width), dtype=np.float32)
    return Examples(keys, rng.integers(0, task.labels, shape))

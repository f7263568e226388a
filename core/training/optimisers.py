"""Stochastic gradient descent and Adam, for weights with an axis of runs."""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray
from .model import Weights
from .settings import Optimiser

_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8  # Kingma and Ba, arXiv:1412.6980


class Adam:
    """The moments of Adam, and its steps."""

    def __init__(self, weights: Weights) -> None:
        self._first: list[FloatArray] = [np.zeros_like(each) for each in weights]
        self._second: list[FloatArray] = [np.zeros_like(each) for each in weights]
        self._steps = 0

    def step(self, weights: Weights, gradients: Weights, rate: float) -> None:
        """Change the weights in place."""
        self._steps += 1
        rate /= 1 - _BETA_1**self._steps
        unbias = 1 - _BETA_2**self._steps
        for weight, gradient, first, second in zip(weights, gradients, self._first, self._second, strict=True):
            first += (1 - _BETA_1) * (gradient - first)
            second += (1 - _BETA_2) * (gradient * gradient - second)
            weight -= rate * first / (np.sqrt(second / unbias) + _EPSILON)


class Descent:
    """Plain stochastic gradient descent."""

    def step(self, weights: Weights, gradients: Weights, rate: float) -> None:
        """Change the weights in place."""
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= np.asarray(rate, weight.dtype) * gradient


def optimiser(name: Optimiser, weights: Weights) -> Adam | Descent:
    """Return an optimiser of these weights."""
    return Adam(weights) if name == "adam" else Descent()

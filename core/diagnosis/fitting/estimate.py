"""Fit the coefficients of a model to evidence: a coarse search for the multiplier, then Gauss–Newton steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray
from .evidence import Observed, residual
from .model import Model, dot

_GRID = 10 ** np.linspace(-4, 3, 19)


@dataclass(frozen=True, eq=False)
class Fit:
    """The coefficients of a model that fit best."""

    theta: FloatArray
    errors: FloatArray  # standard errors of the coefficients; ∞ where the evidence does not determine one
    distance: float  # the root mean square of what is left, over a fixed noise


def fit(observed: Observed, model: Model, start: FloatArray, steps: int = 25, free: bool = True) -> Fit:
    """Minimise the distance by damped Gauss–Newton steps from these coefficients; the multiplier may be fixed."""
    theta = np.array(start, np.float64)
    left = residual(observed, model, theta)
    damping = 1e-9
    cost = left.distance
    for _ in range(steps):
        if not left.r.size or not math.isfinite(cost):
            break
        normal, slope = left.jacobian.T @ left.jacobian, left.jacobian.T @ left.r
        diagonal = np.diagonal(normal).copy()
        active = diagonal > 1e-14 * max(float(diagonal.max()), 1e-300)
        active[0] &= free
        if not active.any():
            break
        better = False
        moved = 0.0
        while damping < 1e9:
            step = np.zeros_like(theta)
            damped = normal[np.ix_(active, active)] + np.diag(damping * diagonal[active] + 1e-300)
            try:
                step[active] = np.linalg.solve(damped, -slope[active])
            except np.linalg.LinAlgError:
                damping = max(damping * 100, 1e-6)
                continue
            trial = theta + _bounded(step, theta)
            attempt = residual(observed, model, trial)
            if attempt.distance < cost:
                moved = float(np.max(np.abs(trial - theta) / (np.abs(theta) + 1e-12)))
                gained = cost - attempt.distance
                better = gained > 1e-6 * cost or moved > 1e-7
                theta, left, cost = trial, attempt, attempt.distance
                damping = max(damping * 0.1, 1e-12)
                break
            damping = max(damping * 30, 1e-7)
            if float(np.max(np.abs(step) / (np.abs(theta) + 1e-12))) < 1e-13:
                break
        if not better:
            break
    width = observed.target.shape[-1] if observed.evidence.kind == "o" else 1
    return Fit(theta, _errors(left.jacobian, left.r, width), cost)


def search(
    observed: Observed, model: Model, start: FloatArray, guesses: Sequence[float], everywhere: bool = True
) -> FloatArray:
    """Return coefficients near the best multiplier: one of the guesses, or from 1e-4 to 1000 if `everywhere`.

    The other coefficients before the soft-cap keep their proportions to the first.
    """
    inner = len(model.inner)
    ratios = start[:inner] / start[0]
    best, found = math.inf, start
    for multiplier in (*guesses, *(_GRID if everywhere else ())):
        theta = start.copy()
        theta[:inner] = ratios * multiplier
        distance = residual(observed, model, theta, slopes=False).distance
        if distance < best:
            best, found = distance, theta
    return found


def _bounded(step: FloatArray, theta: FloatArray) -> FloatArray:
    """Limit a step so that the multiplier changes by at most a factor of four, and keeps its sign."""
    if theta[0] == 0:
        return step
    change = float(step[0] / theta[0])
    limit = -0.75 / change if change < -0.75 else 3 / change if change > 3 else 1.0
    return np.array([limit * float(part) for part in step.tolist()])


def _errors(jacobian: FloatArray, r: FloatArray, width: int) -> FloatArray:
    """Return the standard errors of coefficients, from the spread of the residual.

    `width` numbers in turn may have common errors: those of the logits of a row reach every component of its output.
    """
    if not r.size:
        return np.inf * np.ones_like(jacobian[0], shape=jacobian.shape[1:])
    normal = jacobian.T @ jacobian
    size = np.sqrt(np.maximum(np.diagonal(normal), 0))
    known = size > 1e-12
    errors = np.full(len(size), np.inf)
    if known.any():
        scaled = normal[np.ix_(known, known)] / np.outer(size[known], size[known])
        inverse = np.linalg.pinv(scaled, rcond=1e-14, hermitian=True)
        spread = math.sqrt(max(float(np.vdot(r, r)) / max(len(r) - known.sum(), 1), 0.05))
        errors[known] = spread * np.sqrt(np.maximum(np.diagonal(inverse), 0)) / size[known]
        if width > 1:
            of_rows = (jacobian[:, known] * r[:, np.newaxis]).reshape(-1, width, int(known.sum())).sum(axis=1)
            own = of_rows / size[known] @ inverse
            errors[known] = np.maximum(errors[known], np.sqrt(dot(own.T, own.T)) / size[known])
    return errors

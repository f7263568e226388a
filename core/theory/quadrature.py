"""Exact expectations of softmax over n independent N(0, s²) logits, by quadrature.

Everything follows from ∫ e^(−tZ) dt = 1/Z with Z = Σ e^x: an expectation of weights becomes one integral over
u = ln t of products over keys. With K_k(y) = e^(ky − e^y), A_k(u) = E K_k(u + x) and φ(u) = E e^(−e^(u + x)):

    E Σp^k    = n/Γ(k) ∫ A_k φ^(n−1) du
    E (Σp²)²  = n/6 ∫ A_4 φ^(n−1) du + n(n−1)/6 ∫ A_2² φ^(n−2) du
    E |Jx|²   = n(n−1)/3 ∫ (A_2″A_2 − A_2′²) φ^(n−2) du
                + n(n−1)(n−2)/6 ∫ (A_2″A_1² − 2 A_2′A_1′A_1 + A_2 A_1′²) φ^(n−3) du,   A_k′, A_k″ = E x K_k, E x² K_k
    E H       = −γ − n ∫ E[y e^(y − e^y)] φ^(n−1) du,   y = u + x
    E max p   = n ∫ g(x) ∫ e^(v − e^v) C(v, x)^(n−1) dv dx,   C(v, x) = ∫_(y < x) g(y) e^(−e^(v + y − x)) dy
    P(max p > t) = n P(Σ_others e^y < e^x (1 − t)/t) for t > 1/2, by inverting characteristic functions

All integrands are analytic in a strip around the real line and vanish at both ends, so the trapezoidal rule converges
exponentially (Trefethen & Weideman 2014, SIAM Review 56): a step of 1/4 in the logarithm of t has an error of 1e-17.
Every expectation is accurate to 1e-11 for n from 2 to 10⁶ and any s, except `one_hot`: cancellation multiplies its
rounding errors by n², so it is accurate to 1e-8 up to 10⁴ keys.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from ..arrays import FloatArray
from ..statistics.catalogue import ONE_HOT

ONE_HOT_KEYS = 10_000  # beyond, cancellation leaves P(max p > 0.95) fewer than eight digits

ComplexArray: TypeAlias = npt.NDArray[np.complexfloating[Any]]

_EULER = 0.5772156649015329
_ROOT_2_PI = math.sqrt(2 * math.pi)
_STEP = 0.25  # of ln t: the strip of e^(−e^y) has half width π/2, so the error is e^(−π²/step)
_PATH_STEP = math.log(ONE_HOT / (1 - ONE_HOT)) / 16  # of ln t, on the path of a lognormal's characteristic function
_NEAR = 8  # neighbouring points that share one exponential there


class Expectations(NamedTuple):
    """Expectations for each n of an array, all of that array's shape."""

    entropy: FloatArray  # nats
    max_weight: FloatArray
    sum_squared_weights: FloatArray
    jacobian_norm_squared: FloatArray
    jacobian_along_logits: FloatArray  # E |J z|² with z the logits over s: how much a change of s changes the weights
    one_hot: FloatArray  # P(max p > 0.95); NaN beyond ONE_HOT_KEYS
    total_weight: FloatArray  # E Σp, exactly 1: the difference is the error of the quadrature


def expectations(n: FloatArray, s: float) -> Expectations:
    """Return expectations over rows of n logits, each N(0, s²), for an array of n >= 2 (whole or not) and s >= 0."""
    total, entropy, squared, jacobian, along = _power_sums(n, s)
    return Expectations(entropy, _max_weight(n, s), squared, jacobian, along, _one_hot(n, s), total)


def normal_cdf(z: FloatArray) -> FloatArray:
    """Return Φ(z), with full relative precision in the lower tail."""
    return 0.5 * np.asarray(_ERFC(-z / math.sqrt(2)), dtype=np.float64)


def normal_pdf(z: FloatArray) -> FloatArray:
    """Return the density of N(0, 1) at z."""
    return np.exp(-0.5 * z * z) / _ROOT_2_PI


_ERFC = np.frompyfunc(math.erfc, 1, 1)


def _power_sums(n: FloatArray, s: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return E Σp (a self-check), E H, E Σp², E‖J‖_F² and E|Jz|², each of n's shape."""
    u, step = _log_t(n, s)
    kernels, slopes, below = _kernel_averages(u, s)
    log_phi = np.log1p(-np.minimum(below, 1 - 1e-16))
    others = np.exp(np.multiply.outer(n - 1, log_phi)) * (step * n[..., None])
    pairs = np.exp(np.multiply.outer(n - 2, log_phi)) @ kernels[:, 1] ** 2 * (step * n * (n - 1))
    first, second, third, fourth, mean_y = np.moveaxis(others @ kernels, -1, 0)
    # |Jx|² = Σ_ikl p_i² p_k p_l (x_i − x_k)(x_i − x_l): pairs if k = l, otherwise triples.
    a1, a2 = kernels[:, 0], kernels[:, 1]
    b1, b2, c2 = slopes.T
    of_pairs = np.exp(np.multiply.outer(n - 2, log_phi)) @ (2 * (c2 * a2 - b2 * b2))
    of_triples = np.exp(np.multiply.outer(n - 3, log_phi)) @ (c2 * a1 * a1 - 2 * b2 * b1 * a1 + a2 * b1 * b1)
    along = (step * n * (n - 1) / 6) * (of_pairs + (n - 2) * of_triples)
    # ‖J‖_F² = Σp² − 2 Σp³ + (Σp²)², with 1/Γ(3) = 1/2 and 1/Γ(4) = 1/6.
    along = along / (s * s) if s else (n - 1) / n**2
    return first, -_EULER - mean_y, second, second - third + (fourth + pairs) / 6, along


def _normal_quantile(share: float) -> float:
    """Return the value that a standard normal number is below with this probability."""
    from statistics import NormalDist  # slow to import and rarely needed: most curves are in a file

    return NormalDist().inv_cdf(share)


def _log_t(n: FloatArray, s: float) -> tuple[FloatArray, float]:
    """Return the grid of u = ln t and its step: for every n, φ^n is 1 below the grid and 0 above it, to rounding."""
    fewest, most = float(n.min()), float(n.max())
    # Below: n(1 − φ(u)) <= n e^(u + s²/2), and also <= n(P(x > −u − cut) + e^(−cut)).
    cut = 41 + math.log(most)
    low = max(-cut - s * s / 2, -cut + s * _normal_quantile(1e-18 / most))
    # Above: φ(u) <= P(x < ln 45 − u) + e^(−45).
    high = math.log(45) - s * _lowest_maximum(fewest, 41)
    # φ^n falls over a width of s/√(2 ln n) for large s, and of 1 for small s.
    step = _STEP * max(1, s / (1.5 * _saturation(most)))
    return np.arange(low, high + step, step), step


def _kernel_averages(u: FloatArray, s: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the expectations of the kernels at y = u + x.

    These are K_1, K_2, K_3, K_4 and y K_1, shape (len(u), 5); x K_1, x K_2 and x² K_2, up to a shift of x that
    cancels in their use, shape (len(u), 3); and 1 − φ(u), shape (len(u),).
    """
    if s < 1:
        # The normal density is the narrower factor: integrate over its grid, out to where it is 1e-17.
        z = _grid(-8.75, 8.75, min(0.5, _STEP / s) if s > 0 else 0.5)
        weights = normal_pdf(z) * (z[1] - z[0])
        y = u[:, None] + s * z
        powers = np.multiply.outer(np.exp(u), np.exp(s * z))
        first = np.exp(y - powers)
        second, x = first * powers, s * z
        moments = (first, second, second * powers, second * powers**2, first * y)
        kernels = np.stack([moment @ weights for moment in moments], axis=1)
        slopes = np.stack([first @ (x * weights), second @ (x * weights), second @ (x * x * weights)], axis=1)
        return kernels, slopes, -np.expm1(-powers) @ weights
    y = _grid(-40.0, 12.0, _STEP)
    weights = normal_pdf((y - u[:, None]) / s) * (_STEP / s)
    powers = np.exp(y)
    first = np.exp(y - powers)
    kernels = np.stack([first, first * powers, first * powers**2, first * powers**3, first * y], axis=1)
    # 1 − e^(−e^y) does not vanish on the right, but it does minus a normal distribution function, whose average is
    # another one.
    rest = -np.expm1(-powers) - normal_cdf((y + _EULER) / 1.5)
    # y is used for x: subtracting u, which is large where the kernels are not small, would cost precision.
    slopes = np.stack([first * y, first * powers * y, first * powers * y * y], axis=1)
    below = normal_cdf((u + _EULER) / math.hypot(s, 1.5)) + weights @ rest
    return weights @ kernels, weights @ slopes, below


def _max_weight(n: FloatArray, s: float) -> FloatArray:
    """Return E max p: given the largest logit x, the others are independent and below x."""
    if s == 0:
        return 1 / n
    fewest, most = float(n.min()), float(n.max())
    step = 0.3 / max(1, _saturation(most))
    z = np.arange(max(_lowest_maximum(fewest, 39), -8.6), -_normal_quantile(1e-17 / most) + step, step)
    v = np.arange(-38 - math.log(most), 4, _STEP)
    gap, weights = _gaps(s, (float(z[-1]) + 9) * s)  # x − y of another key
    density = normal_pdf((s * z[:, None] - gap) / s) * (weights / s)
    others = normal_cdf(z)[:, None] + density @ np.expm1(np.multiply.outer(-np.exp(-gap), np.exp(v)))  # C(v, x)
    log_others = np.log(np.maximum(others, 1e-300))  # (len(z), len(v))
    kernel = np.exp(v - np.exp(v)) * _STEP
    largest = normal_pdf(z) * step
    values = [count * (largest @ (np.exp((count - 1) * log_others) @ kernel)) for count in n.reshape(-1).tolist()]
    return np.array(values).reshape(n.shape)


@lru_cache(maxsize=1)
def _legendre() -> tuple[FloatArray, FloatArray]:
    return np.polynomial.legendre.leggauss(12)


def _gaps(s: float, longest: float) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights for integrals over x − y from 0 to `longest`, of functions that vanish beyond 45.

    They are those of Gauss–Legendre panels, narrow near 0 and never wider than the normal density allows.
    """
    edges, width = [0.0], 1.5
    while edges[-1] < min(45.0, longest):
        edges.append(edges[-1] + min(width, 2.5 * s))
        width *= 1.3
    nodes, weights = _legendre()
    half = np.diff(edges)[:, None] / 2
    return (np.array(edges[:-1])[:, None] + half * (1 + nodes)).reshape(-1), (half * weights).reshape(-1)


def _one_hot(n: FloatArray, s: float) -> FloatArray:
    """Return P(max p > 0.95) = n P(D < 0) with D = Σ_others e^y − τ e^x and τ = 0.05/0.95 (Gil-Pelaez 1951).

    P(D < 0) = 1/2 − 1/π ∫ Im E e^(iωD) d ln ω, and E e^(iωD) is φ_c(ω)^(n−1) times the conjugate of φ_c(τω), where
    φ_c is the characteristic function of a lognormal.
    """
    log_tau = -16 * _PATH_STEP
    # Σ_others e^y is at least n − 1 times the exponential of their mean, which bounds the probability.
    reach = (log_tau - np.log(n - 1)) / (max(s, 1e-9) * np.sqrt(n / (n - 1)))
    negligible = n * normal_cdf(reach) < 1e-13
    result = np.where(n > ONE_HOT_KEYS, np.nan, 0.0)
    asked = ~negligible & (n <= ONE_HOT_KEYS)
    if not asked.any():
        return result
    counts = n[asked]
    fewest, most = float(counts.min()), float(counts.max())
    cut = 30 + 2 * math.log(most)
    low = max(-cut - s * s / 2, -cut + s * _normal_quantile(1e-13 / most**2))
    high = 5 - log_tau - s * _lowest_maximum(fewest, 33)
    # The speed of the phase is not known in advance, so the step is halved until two interleaved grids agree to 1e-6:
    # the error of their mean is about the square of that. All steps are the path step of `_lognormal_cf` times powers
    # of two.
    doubled = max(math.floor(math.log2(s / (1.5 * _saturation(most)))), 0)
    step, apart = _PATH_STEP * 2.0 ** (doubled + 1), 8 >> doubled
    u = _Even(low, step, math.ceil((high - low) / step) + 1)
    mean = _one_hot_integrand(counts, s, u, log_tau, apart).sum(axis=-1) * step
    while True:
        between = u._replace(first=low + u.step / 2)
        other = _one_hot_integrand(counts, s, between, log_tau, apart).sum(axis=-1) * u.step
        agreed = bool(np.all(counts * np.abs(mean - other) < 1e-6))
        mean = (mean + other) / 2
        if agreed:
            result[asked] = np.clip(counts * (0.5 - mean / math.pi), 0.0, 1.0)
            return result
        u, apart = _Even(low, u.step / 2, 2 * u.size), 2 * apart


class _Even(NamedTuple):
    """Evenly spaced points."""

    first: float
    step: float
    size: int


def _one_hot_integrand(n: FloatArray, s: float, u: _Even, log_tau: float, apart: int) -> FloatArray:
    """Return Im E e^(iωD) at ω = e^u, shape (len(n), u.size).

    If `apart` is not 0, the points u + ln τ are on the same grid, `apart` steps below u.
    """
    if apart:
        both = _lognormal_cf(_Even(u.first - apart * u.step, u.step, apart + u.size), s)
        own, largest = both[apart:], both[: u.size]
    else:
        own, largest = _lognormal_cf(u, s), _lognormal_cf(u._replace(first=u.first + log_tau), s)
    others = np.exp(np.multiply.outer(n - 1, np.log(own)))
    return (others * largest.conj()).imag


def _lognormal_cf(u: _Even, s: float) -> ComplexArray:
    """Return E exp(i e^(u + x)) with x ~ N(0, s²), shape (u.size,).

    The path of integration leaves the real line for the line π/2 above it, where e^(i e^y) decays. The steps of u and
    of the path differ by a power of two, so there are few different normal densities, and the rotations due to the
    path's height are products of a few: computing exponentials for every pair takes several times as long.
    """
    step = _PATH_STEP if s >= 0.5 else _PATH_STEP / 2 ** math.ceil(math.log2(4 * _PATH_STEP / s))
    t, curved, lift, real, end = _path(step)
    points = u.first + u.step * np.arange(u.size)
    own, path = max(round(u.step / step), 1), max(round(step / u.step), 1)  # path steps per step of u, and vice versa
    if own < len(t):
        reach = path * (len(t) - 1) + 1
        distance = (t[0] - u.first + step / path * np.arange(own * (1 - u.size), reach)) / s
        density = sliding_window_view(np.exp(-0.5 * distance * distance), reach)[::-own, ::path]  # (u.size, len(t))
    else:
        distance = (t - points[:, np.newaxis]) / s
        density = np.exp(-0.5 * distance * distance)
    cosine, sine = (density @ real).T
    # Rotations of a few points, times those from these to their neighbours, whose angles are small where densities
    # are not.
    height = lift / s
    few = u.first + u.step * np.arange(_NEAR // 2, u.size + _NEAR // 2, _NEAR)
    there = np.exp(-1j * height * ((t[curved] - few[:, np.newaxis]) / s))
    beside = np.exp(1j * height * (u.step / s * (np.arange(_NEAR)[:, np.newaxis] - _NEAR // 2)))
    rotations = (there[:, np.newaxis] * beside).reshape(-1, len(height))[: u.size]
    turned = (density[:, curved] * rotations) @ (np.exp(0.5 * height * height) * end)
    total = cosine + 1j * sine + turned
    return normal_cdf(-(points + _EULER) / math.hypot(s, 1.5)) + total * (step / (s * _ROOT_2_PI))


@lru_cache(maxsize=8)
def _path(step: float) -> tuple[FloatArray, slice, FloatArray, FloatArray, ComplexArray]:
    """Return the terms that `_lognormal_cf` sums along its path y = t + iη(t), for a step of t.

    They are t; the slice where η > 0; η there; the real and imaginary parts of e^(i e^y) where η is 0, minus the
    normal distribution function that replaces the tail, shape (len(t), 2); and e^(i e^y) dy/dt where η > 0.
    """
    t = _grid(-44.0, 12.0, step)
    curved = slice(int(np.searchsorted(t, -11.0)), int(np.searchsorted(t, 4.5)))
    lift = math.pi / 2 * normal_cdf(t[curved] + 2)
    slope = math.pi / 2 * normal_pdf(t[curved] + 2)
    real = np.zeros((len(t), 2))
    real[: curved.start, 0] = np.cos(np.exp(t[: curved.start]))
    real[: curved.start, 1] = np.sin(np.exp(t[: curved.start]))
    real[:, 0] -= normal_cdf(-(t + _EULER) / 1.5)
    return t, curved, lift, real, np.exp(1j * np.exp(t[curved] + 1j * lift)) * (1 + 1j * slope)


def _grid(low: float, high: float, step: float) -> FloatArray:
    """Return points from `low` to at least `high`."""
    return low + step * np.arange(math.ceil((high - low) / step) + 1)


def _saturation(n: float) -> float:
    """Return √(2 ln n), the logit standard deviation at which softmax saturates; for n below 2, that of two keys."""
    return math.sqrt(2 * math.log(max(n, 2)))


def _lowest_maximum(n: float, cut: float) -> float:
    """Return the z that the largest of n standard normal numbers is below with probability e^(−cut)."""
    share = cut / n
    return _normal_quantile(math.exp(-share)) if share > 0.7 else -_normal_quantile(-math.expm1(-share))

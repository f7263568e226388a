"""The lab's measurement again, from textbook formulas: whole arrays in float64 with every Jacobian written out.

Only the random numbers come from the lab: standardised components and the weights of mechanisms.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from attn_tui.core.lab.sampling import chunks, components
from attn_tui.core.lab.scoring import weights_of
from attn_tui.core.parameters import Parameters

Array: TypeAlias = Any

# How a rule normalises each query and key, and its multiplier as a function of d_k and n.
RULES: dict[str, tuple[str, Callable[[int, int], float]]] = {
    "none": ("none", lambda d, n: 1.0),
    "sqrt_d_k": ("none", lambda d, n: d**-0.5),
    "granite_8b": ("none", lambda d, n: 0.0078125),
    "ssmax": ("none", lambda d, n: 0.43 * math.log(n) * d**-0.5),
    "rms_sqrt_d_k": ("rms", lambda d, n: d**-0.5),
    "rms_none": ("rms", lambda d, n: 1.0),
    "layer_norm_sqrt_d_k": ("layer_norm", lambda d, n: d**-0.5),
    "cosine_sqrt_d_k": ("l2", lambda d, n: d**0.5),
    "cosine_10": ("l2", lambda d, n: 10.0),
    "cosine_log2_n": ("l2", lambda d, n: math.log2(n * n - n)),
}
LARGEST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57_344.0, "float16": 65_504.0, "bfloat16": 3.3895313892515355e38}


@dataclass(frozen=True, eq=False)
class Attention:
    """All numbers of one column; B draws, m queries, n keys."""

    raw: Array  # (B, m, n) scores
    z: Array  # (B, m, n) logits
    p: Array  # (B, m, n) attention weights
    of_sink: Array  # (B, m) weights of the sink
    seen: Array  # (m, n)
    jacobian: Array  # (B, m, n, n) ∂p_i/∂z_j
    d_q: Array  # (B, m, d) ∂L/∂q


def inputs(p: Parameters) -> tuple[Array, Array, Array, Array]:
    """q (B, m, d), k (B, n, d), v (B, n, d_v) and g = ∂L/∂O (B, m, d_v)."""

    def drawn(side: Any, width: int) -> Array:
        each = [[components(p, side, draw, chunk) for chunk in range(chunks(width))] for draw in range(p.batch)]
        return np.array([np.concatenate(parts)[:width].T for parts in each], np.float64)

    own, common, sign = math.sqrt(1 - abs(p.correlation)), math.sqrt(abs(p.correlation)), np.sign(p.correlation)
    shared = drawn("shared", p.d_k)
    q = p.mean_q + p.std_q * (own * drawn("query", p.d_k) + common * shared)
    k = p.mean_k + p.std_k * (own * drawn("key", p.d_k) + common * sign * shared)
    return q, k, drawn("value", p.d_v), drawn("upstream", p.d_v)


def unit(x: Array, how: str) -> tuple[Array, Array]:
    """x (…, d) normalised, and the Jacobian (…, d, d) of that, ∂y_a/∂x_b."""
    d = x.shape[-1]
    eye = np.eye(d)
    if how == "none":
        return x, np.broadcast_to(eye, (*x.shape, d))
    if how == "layer_norm":
        centre = eye - 1 / d
        y, jacobian = unit(x @ centre, "rms")
        return y, jacobian @ centre
    square = np.sum(x * x, axis=-1, keepdims=True) / (d if how == "rms" else 1)
    size = np.sqrt(square)[..., None]
    outer = x[..., :, None] * x[..., None, :] / (d if how == "rms" else 1)
    return x / np.sqrt(square), eye / size - outer / size**3


def mechanism(q: Array, k: Array, p: Parameters, w: Any) -> tuple[Array, Array]:
    """Scores (B, m, n) and their derivatives (B, m, n, d), ∂s_ij/∂q_i."""
    if p.mechanism == "dot_product":
        return np.einsum("bmd,bnd->bmn", q, k), np.broadcast_to(k[:, None], (*q.shape[:2], *k.shape[1:]))
    if p.mechanism == "cosine":
        (a, slopes), (b, _) = unit(q, "l2"), unit(k, "l2")
        return np.einsum("bmd,bnd->bmn", a, b), np.einsum("bnd,bmde->bmne", b, slopes)
    if p.mechanism == "bilinear":
        wk = np.einsum("de,bne->bnd", w.w, k)
        return np.einsum("bmd,bnd->bmn", q, wk), np.broadcast_to(wk[:, None], (*q.shape[:2], *k.shape[1:]))
    units = np.tanh((q @ w.w_q)[:, :, None] + (k @ w.w_k)[:, None] + w.bias)
    return units @ w.v, ((1 - units**2) * w.v) @ w.w_q.T


def weights(p: Parameters, round_each: Callable[[Array], Array] = lambda x: x) -> Any:
    """The weights of the mechanism in float64; None if it has none."""
    found = weights_of(p)
    if found is not None:
        found = type(found)(**{name: round_each(np.float64(each)) for name, each in vars(found).items()})
    return found


def cast(x: Array, name: str) -> tuple[Array, Array]:
    """Numbers rounded to a format by its library, and where they are beyond its largest number.

    Those become ±∞, or ±largest in a format of 8 bits.
    """
    if name not in LARGEST:
        return x, np.full(x.shape, False)
    with np.errstate(over="ignore", invalid="ignore"):
        y = x.astype(np.float32).astype(getattr(ml_dtypes, name, name)).astype(np.float64)
    beyond = ~np.isfinite(y)
    largest = LARGEST[name] if name.startswith("float8") else np.inf
    np.copyto(y, np.copysign(largest, x), where=beyond & ~np.isnan(x))
    return y, beyond


def rounded_scores(a: Array, b: Array, p: Parameters) -> tuple[Array, Array]:
    """Rounded scores (B, m, n) of rounded inputs, and where they overflow."""
    learned = weights(p, lambda x: cast(x, p.precision)[0])
    return cast(mechanism(cast(a, p.precision)[0], cast(b, p.precision)[0], p, learned)[0], p.precision)


def losses(p: Parameters, rule: str) -> dict[str, Array]:
    """The losses of each row (B, m) to the number format, by the names of the catalogue."""
    q, k, _, _ = inputs(p)
    how, multiplier = RULES[rule]
    a, b = unit(q, how)[0], unit(k, how)[0]
    rounded, beyond = rounded_scores(a, b, p)
    exact = mechanism(a, b, p, weights(p))[0]
    seen, sink = visible_to(p), p.sink_logit if p.sink == "logit" else None
    cap = p.softcap or math.inf

    def logits(scores: Array) -> Array:
        z = multiplier(p.d_k, p.n_keys) * scores
        return cap * np.tanh(z / cap) if p.softcap else z

    naive = logits(rounded) > math.log(LARGEST[p.precision])
    with np.errstate(invalid="ignore"):
        low = softmax(logits(rounded), seen, None if sink is None else float(cast(np.array(sink), p.precision)[0]))[0]
    error = np.abs(cast(low, p.precision)[0] - softmax(logits(exact), seen, sink)[0]).sum(axis=-1) / 2
    return {
        "score_overflow": np.mean(beyond, axis=-1, where=seen),
        "naive_exp_overflow": np.mean(naive, axis=-1, where=seen),
        "weight_error": np.where(np.isnan(error), 1, error),
    }


def visible_to(p: Parameters) -> Array:
    """The keys that each query sees, (m, n)."""
    everything = np.full((p.n_queries, p.n_keys), True)
    return np.tril(everything) if p.mask == "causal" else everything


def attention(p: Parameters, rule: str, given: tuple[Array, Array, Array, Array] | None = None) -> Attention:
    """One column: normalise → score → scale → soft-cap → mask → softmax, and back from L = Σ G∘O to q.

    The inputs are drawn unless they are given.
    """
    q, k, v, g = given or inputs(p)
    how, multiplier = RULES[rule]
    c = multiplier(p.d_k, p.n_keys)
    (a, normalise), (b, _) = unit(q, how), unit(k, how)
    raw, slopes = mechanism(a, b, p, weights(p))
    if p.precision in LARGEST:
        raw = np.clip(rounded_scores(a, b, p)[0], -LARGEST[p.precision], LARGEST[p.precision])
    z, along = c * raw, np.full(raw.shape, c)
    if p.softcap:
        along = c / np.cosh(z / p.softcap) ** 2
        z = p.softcap * np.tanh(z / p.softcap)
    seen = visible_to(p)
    shares, of_sink = softmax(z, seen, p.sink_logit if p.sink == "logit" else None)
    eye = np.eye(p.n_keys)
    complement = shares @ (1 - eye) + of_sink  # 1 − p, which would lose its digits as a difference
    jacobian = (shares * complement)[..., None] * eye - shares[..., :, None] * shares[..., None, :] * (1 - eye)
    d_z = np.einsum("bmij,bmj->bmi", jacobian, g @ v.mT)
    d_a = np.einsum("bmn,bmnd->bmd", d_z * along, slopes)
    return Attention(raw, z, shares, of_sink[..., 0], seen, jacobian, np.einsum("bmd,bmde->bme", d_a, normalise))


def softmax(z: Array, seen: Array, sink: float | None) -> tuple[Array, Array]:
    """Weights of the visible keys, 0 for others, and the weight of the sink, with an axis of 1."""
    none = -np.inf if sink is None else sink
    largest = np.maximum(np.where(seen, z, -np.inf).max(axis=-1, keepdims=True), none)
    e = np.exp(np.where(seen, z - largest, -np.inf))
    of_sink = np.exp(none - largest)
    total = e.sum(axis=-1, keepdims=True) + of_sink
    return e / total, of_sink / total


def statistics(of: Attention, band: tuple[float, float]) -> dict[str, float]:
    """The catalogue's statistics of logits and weights over some draws; band is the mean and σ of ±3σ."""
    z, p, visible = of.z[:, of.seen], of.p, of.seen.sum(axis=-1)
    entropy = -np.sum(p * np.log(np.where(p > 0, p, 1)), axis=-1)
    squares = np.sum(of.jacobian**2, axis=(-2, -1))
    row_means = np.sum(of.z, axis=-1, where=of.seen) / visible
    in_rows = np.sum((of.z - row_means[..., None]) ** 2, axis=-1, where=of.seen) / visible
    several = visible > 1
    within = np.sum(in_rows * visible) / np.sum(np.broadcast_to(visible, in_rows.shape))
    found: dict[str, Any] = {
        "logit_mean": z.mean(),
        "logit_variance": z.var(),
        "logit_std": z.std(),
        "logit_excess_kurtosis": np.mean((z - z.mean()) ** 4) / z.var() ** 2 - 3,
        "logit_within_3sd": np.mean(np.abs(z - band[0]) <= 3 * band[1]),
        "logit_variance_within_row": in_rows.mean(),
        "row_mean_share": 1 - within / z.var(),
        "freezing_ratio": np.mean(np.sqrt(in_rows[:, several]) / np.sqrt(2 * np.log(visible[several]))),
        "entropy": entropy.mean(),
        "entropy_fraction": np.mean(entropy[:, several] / np.log(visible[several])),
        "effective_keys": np.exp(entropy).mean(),
        "max_weight": p.max(axis=-1).mean(),
        "one_hot_rows": np.mean(p[:, several].max(axis=-1) > 0.95),
        "sum_squared_weights": np.sum(p**2, axis=-1).mean(),
        "first_key_weight": p[..., 0].mean(),
        "first_key_over_uniform": p[..., 0].mean() / np.mean(1 / visible),
        "sink_weight": of.of_sink.mean() if of.of_sink.any() else math.nan,
        "jacobian_norm": np.sqrt(squares).mean(),
        "jacobian_norm_squared": squares.mean(),
        "dead_rows": np.mean(np.sqrt(squares[:, several]) < 0.01),
        "weight_times_complement": np.mean(np.sum(p * (1 - p), axis=-1) / visible),
    }
    return {name: float(value) for name, value in found.items()}


def estimates(of: Attention, band: tuple[float, float]) -> dict[str, tuple[float, float | None]]:
    """Values without bias and standard errors, by the jackknife that leaves out one draw.

    Extremes have no standard error. Statistics of the gradient keep their bias, and its norms are float32.
    """
    draws = len(of.z)
    whole = statistics(of, band)
    parts = [statistics(without(of, draw), band) for draw in range(draws)]
    found: dict[str, tuple[float, float | None]] = {}
    for name, value in whole.items():
        left = np.array([part[name] for part in parts])
        found[name] = draws * value - (draws - 1) * float(left.mean()), math.sqrt((draws - 1) * left.var())
    z, norms = of.z[:, of.seen], np.float64(np.float32(np.linalg.norm(of.d_q, axis=-1)))
    found |= {"logit_min": (float(z.min()), None), "logit_max": (float(z.max()), None)}
    lefts = [of_norms(np.delete(norms, draw, axis=0)) for draw in range(draws)]
    for name, value in of_norms(norms).items():
        found[name] = value, math.sqrt((draws - 1) * np.var([left[name] for left in lefts]))
    return found


def without(of: Attention, draw: int) -> Attention:
    """All draws but one."""
    left = {name: each if name == "seen" else np.delete(each, draw, axis=0) for name, each in vars(of).items()}
    return Attention(**left)


def of_norms(norms: Array) -> dict[str, float]:
    """The catalogue's statistics of ‖∂L/∂q‖; NaN for what does not exist."""
    rising = np.sort(norms, axis=None)
    rows, squares = rising.size, rising**2
    total = squares.sum()
    return {
        "grad_q_median": (rising[(rows - 1) // 2] + rising[rows // 2]) / 2,
        "grad_q_mean": rising.mean(),
        "grad_q_rms": math.sqrt(squares.mean()),
        "grad_q_top1_share": squares[-math.ceil(rows / 100) :].sum() / total if total else math.nan,
    }

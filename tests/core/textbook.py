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
    "rms_gemma3_27b": ("rms", lambda d, n: 168**-0.5),
    "rms_none": ("rms", lambda d, n: 1.0),
    "layer_norm_sqrt_d_k": ("layer_norm", lambda d, n: d**-0.5),
    "layer_norm_none": ("layer_norm", lambda d, n: 1.0),
    "cosine_1": ("l2", lambda d, n: 1.0),
    "cosine_sqrt_d_k": ("l2", lambda d, n: d**0.5),
    "cosine_10": ("l2", lambda d, n: 10.0),
    "cosine_learned": ("l2", lambda d, n: 20.0),  # by default
    "cosine_log2_n": ("l2", lambda d, n: math.log2(n * n - n)),
}
OF_N = ("ssmax",)  # n is the number of keys that a row sees
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
    d_z: Array  # (B, m, n) ∂L/∂z
    d_q: Array  # (B, m, d) ∂L/∂q
    lost: Array | None = None  # (B, m) weight lost to rounding, NaN for a NaN row, whose z are NaN and p 0

    @property
    def valid(self) -> Array:
        """The rows that are not NaN, (B, m)."""
        return np.full(self.z.shape[:2], True) if self.lost is None else ~np.isnan(self.lost)


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


def normal(x: Array, how: str, p: Parameters) -> tuple[Array, Array]:
    """x (…, d) normalised and times the gain of the norm, if there is a norm, and the Jacobian of that."""
    y, jacobian = unit(x, how)
    gain = 1.0 if how == "none" else p.norm_gain
    return gain * y, gain * jacobian


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


def cast(x: Array, name: str) -> Array:
    """Numbers rounded to a format by its library; in float8 none may be beyond its largest number."""
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(np.float32).astype(getattr(ml_dtypes, name, name)).astype(np.float64)


def stored(x: Array, name: str) -> Array:
    """Tensors (…, rows, d) in a format; in one of 8 bits, each has a scale that makes its largest element LARGEST."""
    if not name.startswith("float8"):
        return cast(x, name)
    size = np.float32(np.abs(x).max(axis=tuple(range(x.ndim))[-2:], keepdims=True))
    scale = np.where(size > 0, size / np.float32(LARGEST[name]), np.float32(1))
    return cast(np.clip(np.float32(x) / scale, -LARGEST[name], LARGEST[name]), name) * scale


def multipliers(p: Parameters, rule: str) -> Array:
    """The multiplier of each row (m, 1); a row that sees one key needs none under rules of the keys it sees."""
    of_n = RULES[rule][1]
    if rule not in OF_N:
        return np.full((p.n_queries, 1), of_n(p.d_k, p.n_keys))
    return np.array([[of_n(p.d_k, int(n)) if n > 1 else 0.0] for n in visible_to(p).sum(axis=-1)])


def in_few_bits(a: Array, b: Array, p: Parameters, c: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Stored keys, scores, logits, weights and the sink's share (B, m); the weights of a NaN row are NaN."""
    name = p.precision

    def rounded(x: Array) -> Array:
        return cast(x, name) if p.arithmetic == "eager" else x

    learned = weights(p, lambda x: stored(x, name))
    if p.mechanism == "cosine":
        a, b = unit(a, "l2")[0], unit(b, "l2")[0]
    a, b = stored(a, name), stored(b, name)
    with np.errstate(invalid="ignore", over="ignore"):
        if p.mechanism == "additive":
            raw = rounded(mechanism(a, b, p, learned)[0])
        else:
            a = stored(a @ learned.w, name) if p.mechanism == "bilinear" else a
            raw = rounded(np.einsum("bmd,bnd->bmn", a, b))
        z = rounded(np.float64(np.float32(c)) * raw)
        if p.softcap:
            z = rounded(rounded(np.tanh(rounded(z / p.softcap))) * p.softcap)
        sink = p.sink_logit if p.sink == "logit" else None
        if sink is not None and not name.startswith("float8"):
            sink = float(cast(np.array(sink), name))
        seen = visible_to(p)
        if p.arithmetic == "eager":
            shares, of_sink = (cast(each, name) for each in softmax(z, seen, sink))
        else:
            below = z - np.where(seen, z, -np.inf).max(axis=-1, keepdims=True)
            factor = {"float8_e4m3fn": 2.0**8, "float8_e5m2": 2.0**15}.get(name, 1.0)
            e = np.exp(np.where(seen, below, -np.inf))
            of_sink = np.zeros(z.shape[:-1])[..., None] if sink is None else np.exp(sink - (z - below)[..., :1])
            total = e.sum(axis=-1, keepdims=True) + of_sink
            shares, of_sink = cast(e * factor, name) / factor / total, of_sink / total
    return b, raw, z, shares, of_sink[..., 0]


def losses(p: Parameters, rule: str) -> dict[str, Array]:
    """The losses of each row (B, m) to the number format, by the names of the catalogue; NaN in NaN rows."""
    q, k, _, _ = inputs(p)
    how = RULES[rule][0]
    c, a, b = multipliers(p, rule), normal(q, how, p)[0], normal(k, how, p)[0]
    _, raw, z, low, _ = in_few_bits(a, b, p, c)
    exact = c * mechanism(a, b, p, weights(p))[0]
    exact = p.softcap * np.tanh(exact / p.softcap) if p.softcap else exact
    seen, sink = visible_to(p), p.sink_logit if p.sink == "logit" else None
    return {
        "score_overflow": np.mean(~np.isfinite(raw), axis=-1, where=seen),
        "naive_exp_overflow": np.mean(~(z <= math.log(LARGEST[p.precision])), axis=-1, where=seen),
        "weight_error": np.abs(low - softmax(exact, seen, sink)[0]).sum(axis=-1) / 2,
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
    how, c = RULES[rule][0], multipliers(p, rule)
    (a, normalise), (b, _) = normal(q, how, p), normal(k, how, p)
    seen = visible_to(p)
    if p.precision in LARGEST:
        b, raw, z, shares, of_sink = in_few_bits(a, b, p, c)
        lost = 1 - shares.sum(axis=-1) - of_sink
        shares, z = np.where(np.isnan(lost)[..., None], 0, shares), np.where(np.isnan(lost)[..., None], np.nan, z)
        slopes = mechanism(a, b, p, weights(p, lambda x: stored(x, p.precision)))[1]
        along = c * (np.maximum(1 - (z / p.softcap) ** 2, 0) if p.softcap else np.full(z.shape, 1.0))
        complement, v = 1 - shares, stored(v, p.precision)
    else:
        raw, slopes = mechanism(a, b, p, weights(p))
        z, along, lost = c * raw, np.full(raw.shape, 1.0) * c, None
        if p.softcap:
            along = c / np.cosh(z / p.softcap) ** 2
            z = p.softcap * np.tanh(z / p.softcap)
        shares, of_sink = softmax(z, seen, p.sink_logit if p.sink == "logit" else None)
        complement = shares @ (1 - np.eye(p.n_keys)) + of_sink  # 1 − p, which would lose its digits as a difference
    eye = np.eye(p.n_keys)
    jacobian = (shares * complement)[..., None] * eye - shares[..., :, None] * shares[..., None, :] * (1 - eye)
    d_z = np.einsum("bmij,bmj->bmi", jacobian, g @ v.mT)
    d_a = np.einsum("bmn,bmnd->bmd", d_z * along, slopes)
    d_q = np.einsum("bmd,bmde->bme", d_a, normalise)
    return Attention(raw, z, shares, of_sink.reshape(z.shape[:2]), seen, jacobian, d_z, d_q, lost)


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
    valid, visible, p = of.valid, of.seen.sum(axis=-1), of.p[of.valid]
    counted = of.seen & np.isfinite(of.z)
    z, every = of.z[counted], np.broadcast_to(visible, valid.shape)[valid]
    number, several = counted.sum(axis=-1)[valid], every > 1
    entropy = -np.sum(p * np.log(np.where(p > 0, p, 1)), axis=-1)
    squares = np.sum(of.jacobian[valid] ** 2, axis=(-2, -1))
    row_means = np.sum(of.z[valid], axis=-1, where=counted[valid]) / number
    in_rows = np.sum((of.z[valid] - row_means[:, None]) ** 2, axis=-1, where=counted[valid]) / number
    within = np.sum(in_rows * number) / np.sum(number)
    found: dict[str, Any] = {
        "logit_mean": z.mean(),
        "logit_variance": z.var(),
        "logit_std": z.std(),
        "logit_excess_kurtosis": np.mean((z - z.mean()) ** 4) / z.var() ** 2 - 3,
        "logit_within_3sd": np.mean(np.abs(z - band[0]) <= 3 * band[1]),
        "logit_variance_within_row": in_rows.mean(),
        "row_mean_share": 1 - within / z.var(),
        "saturation": np.mean(np.sqrt(in_rows[several]) / np.sqrt(2 * np.log(every[several]))),
        "entropy": entropy.mean(),
        "entropy_fraction": np.mean(entropy[several] / np.log(every[several])),
        "effective_keys": np.exp(entropy).mean(),
        "max_weight": p.max(axis=-1).mean(),
        "one_hot_rows": np.mean(p[several].max(axis=-1) > 0.95),
        "sum_squared_weights": np.sum(p**2, axis=-1).mean(),
        "first_key_weight": p[:, 0].mean(),
        "first_key_over_uniform": p[:, 0].mean() / np.mean(1 / every),
        "sink_weight": of.of_sink[valid].mean() if of.of_sink[valid].any() else math.nan,
        "jacobian_norm": np.sqrt(squares).mean(),
        "jacobian_norm_squared": squares.mean(),
        "dead_rows": np.mean(np.sqrt(squares[several]) < 0.01),
        "weight_times_complement": np.mean(np.sum(p * (1 - p), axis=-1) / every),
    }
    if of.lost is not None:
        found |= {"weight_lost": of.lost[valid].mean(), "nan_rows": 1 - valid.mean()}
    return {name: float(value) for name, value in found.items()}


def estimates(of: Attention, band: tuple[float, float]) -> dict[str, tuple[float, float | None]]:
    """Values without bias and standard errors, by the jackknife that leaves out one draw, widened where skewed.

    Extremes have no standard error. Statistics of the gradient keep their bias, and its norms are float32. The error
    of the share of the top 1 % includes what whole rows add to 1 %.
    """
    draws = len(of.z)
    whole = statistics(of, band)
    parts = [statistics(without(of, draw), band) for draw in range(draws)]
    found: dict[str, tuple[float, float | None]] = {}
    for name, value in whole.items():
        left = np.array([part[name] for part in parts])
        found[name] = draws * value - (draws - 1) * float(left.mean()), standard_error(name, left)
    z, norms = of.z[of.seen & np.isfinite(of.z)], np.float64(np.float32(np.linalg.norm(of.d_q, axis=-1)))
    of_logits = np.where(of.valid, np.float64(np.float32(np.linalg.norm(of.d_z, axis=-1))), math.nan)
    found |= {"logit_min": (float(z.min()), None), "logit_max": (float(z.max()), None)}
    for which, names in ((norms, OF_QUERIES), (of_logits, OF_LOGITS)):
        lefts = [of_norms(np.delete(which, draw, axis=0)) for draw in range(draws)]
        for name, of_which in names.items():
            left = np.array([left[of_which] for left in lefts])
            found[name] = of_norms(which)[of_which], standard_error(name, left)
    share, error = found["grad_q_top1_share"]
    if not math.isnan(share):
        found["grad_q_top1_share"] = share, math.hypot(error or 0.0, beyond_1_percent(norms))
    return found


def beyond_1_percent(norms: Array) -> float:
    """The share of Σ‖·‖² in the part of a row by which whole rows exceed 1 % of them."""
    rising = np.sort(norms[~np.isnan(norms)], axis=None) ** 2
    rows = math.ceil(rising.size / 100)
    return (rows - rising.size / 100) * float(rising[-rows] / rising.sum())


SKEWED = (
    "logit_variance", "logit_std", "logit_excess_kurtosis", "row_mean_share",
    "grad_q_median", "grad_q_rms", "grad_q_top1_share", "grad_logits_median", "grad_logits_rms",
)  # fmt: skip
OF_QUERIES = {f"grad_q_{name}": name for name in ("median", "mean", "rms", "top1_share")}
OF_LOGITS = {f"grad_logits_{name}": name for name in ("median", "rms")}


def standard_error(name: str, left: Array) -> float:
    """The jackknife's standard error of a statistic from its values without one draw.

    For skewed statistics it is the longer half of a 95 % interval over 1.96; skewness beyond chance counts.
    """
    draws = len(left)
    plain = math.sqrt((draws - 1) * left.var())
    if name not in SKEWED or not plain > 0:
        return plain
    away = [(float(value) - float(left.mean())) / float(left.std()) for value in left]
    skewness = sum(each**3 for each in away) / draws
    chance = 6 * (draws - 2) / ((draws + 1) * (draws + 3))
    excess = math.sqrt(max(skewness**2 - chance, 0))
    return plain * (1.96 + excess * (2 * 1.96**2 + 1) / (6 * math.sqrt(draws))) / 1.96


def without(of: Attention, draw: int) -> Attention:
    """All draws but one."""
    kept = vars(of).items()
    left = {name: each if name == "seen" or each is None else np.delete(each, draw, axis=0) for name, each in kept}
    return Attention(**left)


def of_norms(norms: Array) -> dict[str, float]:
    """The statistics of norms ‖∂L/∂q‖ or ‖∂L/∂z‖ without those of NaN rows; NaN for what does not exist."""
    rising = np.sort(norms[~np.isnan(norms)], axis=None)
    rows, squares = rising.size, rising**2
    total = squares.sum()
    return {
        "median": (rising[(rows - 1) // 2] + rising[rows // 2]) / 2,
        "mean": rising.mean(),
        "rms": math.sqrt(squares.mean()),
        "top1_share": squares[-math.ceil(rows / 100) :].sum() / total if total else math.nan,
    }

"""The figures of steps and questions against oracles: closed forms, simulations of plain NumPy, and the sample."""

import math
from collections.abc import Callable, Mapping
from functools import cache
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import pytest
import textbook
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.lab.experiment import run
from attn_tui.core.learning.items import ITEMS
from attn_tui.core.learning.measure import ResultCache, read
from attn_tui.core.learning.sources import Difference, FromLab, FromTrial, Quotient, Reading
from attn_tui.core.parameters import Parameters
from attn_tui.core.theory.predict import predict
from cases import for_each
from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]

Array: TypeAlias = Any
Draws: TypeAlias = dict[str, Array]  # arrays whose first axis is of draws

FIGURES = {
    f"{item.word} {name}": figure.source
    for item in ITEMS
    if item.kind in ("step", "question")
    for name, figure in item.figures.items()
}
SOURCES = {
    f"{name} {place}": part
    for name, source in FIGURES.items()
    for place, part in enumerate(
        [source.one, source.other] if isinstance(source, Quotient | Difference) else [source]
    )
}
OF_LAB = {source: name for name, source in SOURCES.items() if isinstance(source, FromLab)}
OF_TRIALS = {source: name for name, source in SOURCES.items() if isinstance(source, FromTrial)}

MULTIPLIERS: dict[str, Callable[[Parameters], float]] = {
    "none": lambda p: 1.0,
    "sqrt_d_k": lambda p: p.d_k**-0.5,
    "two_sqrt_d_k": lambda p: 0.5 * p.d_k**-0.5,
    "d_k": lambda p: 1 / p.d_k,
    "log_d_k": lambda p: 1 / math.log(p.d_k),
    "custom": lambda p: p.multiplier,
    "cosine_1": lambda p: 1.0,
    "cosine_10": lambda p: 10.0,
    "rms_sqrt_d_k": lambda p: p.d_k**-0.5,
    "rms_none": lambda p: 1.0,
}


def components(law: str, rng: np.random.Generator, *shape: int) -> Array:
    match law:
        case "uniform":
            return rng.uniform(-math.sqrt(3), math.sqrt(3), shape)
        case "rademacher":
            return rng.choice([-1.0, 1.0], shape)
        case "laplace":
            return rng.laplace(0, math.sqrt(0.5), shape)
        case _:
            return rng.standard_normal(shape)


def softmax(z: Array) -> Array:
    powers = np.exp(z - z.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def entropy(p: Array) -> Array:
    return -np.sum(p * np.log(np.where(p > 0, p, 1)), axis=-1)


@cache
def simulated(p: Parameters, scaled: bool) -> Draws:
    """Logits z, weights, and the gradients of L = Σ G·O of some draws of the Lab's setting."""
    draws = 256 if p.correlation else 48
    rows = 16 if p.n_keys > 256 else 32
    rng = np.random.default_rng(len(repr(p)) + scaled)
    own, common = math.sqrt(1 - p.correlation), math.sqrt(p.correlation)
    shared = rng.standard_normal((draws, 1, p.d_k))
    q, k = (
        mean + std * (own * components(p.components, rng, draws, count, p.d_k) + common * shared)
        for mean, std, count in ((p.mean_q, p.std_q, rows), (p.mean_k, p.std_k, p.n_keys))
    )
    rule = p.scale if scaled else "none"
    if rule.startswith("cosine"):
        q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    if p.scale.startswith("rms"):  # of both columns
        q, k = (x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True)) for x in (q, k))
    c = MULTIPLIERS[rule](p)
    z = c * q @ k.mT
    z = p.softcap * np.tanh(z / p.softcap) if p.softcap else z
    weights = softmax(z)
    received = rng.standard_normal((draws, rows, p.d_v)) @ rng.standard_normal((draws, p.n_keys, p.d_v)).mT
    d_z = weights * (received - (weights * received).sum(axis=-1, keepdims=True))
    return {"z": z, "p": weights, "d_z": np.linalg.norm(d_z, axis=-1), "d_q": c * np.linalg.norm(d_z @ k, axis=-1)}


def top_share(norms: Array) -> float:
    squares = np.sort(np.square(norms), axis=None)
    return float(squares[-math.ceil(squares.size / 100) :].sum() / squares.sum())


def rms(x: Array) -> float:
    return math.sqrt(np.square(x).mean())


STATISTICS: dict[str, Callable[[Draws], float]] = {
    "logit_mean": lambda of: of["z"].mean(),
    "logit_variance": lambda of: of["z"].var(),
    "logit_std": lambda of: of["z"].std(),
    "logit_within_3sd": lambda of: (abs(of["z"] - of["z"].mean()) <= 3 * of["z"].std()).mean(),
    "max_weight": lambda of: of["p"].max(axis=-1).mean(),
    "entropy": lambda of: entropy(of["p"]).mean(),
    "entropy_fraction": lambda of: entropy(of["p"]).mean() / math.log(of["p"].shape[-1]),
    "grad_logits_median": lambda of: float(np.median(of["d_z"])),
    "grad_logits_rms": lambda of: rms(of["d_z"]),
    "grad_q_median": lambda of: float(np.median(of["d_q"])),
    "grad_q_rms": lambda of: rms(of["d_q"]),
    "grad_q_top1_share": lambda of: top_share(of["d_q"]),
}


def estimate(statistic: Callable[[Draws], float], of: Draws) -> tuple[float, float]:
    """A statistic of all draws, and its standard error by the jackknife that leaves out one of 16 groups of draws."""
    of = {name: x.reshape(16, -1, *x.shape[1:]) for name, x in of.items()}
    left = [statistic({name: np.delete(x, group, axis=0) for name, x in of.items()}) for group in range(16)]
    return statistic(of), math.sqrt(15 * np.var(left))


def shown(source: FromLab) -> tuple[float, float]:
    """The value that a figure shows, the exact one if it is known, and its error."""
    exact = predict(source.parameters).columns[source.scaled].values[source.statistic]
    if exact is not None:
        return exact, 0.0
    value, stderr = run(source.parameters).columns[source.scaled].measured[source.statistic]
    assert value is not None
    return value, stderr or 0.0


@for_each("source", [source for source in OF_LAB if source.statistic != "weight_error"])
def test_figures_of_the_lab_are_those_of_a_simulation(source: FromLab) -> None:
    wanted, error = estimate(STATISTICS[source.statistic], simulated(source.parameters, source.scaled))
    found, own = shown(source)
    assert abs(found - wanted) < 4.5 * math.hypot(error, own) + 1e-9, OF_LAB[source]


@for_each("source", [source for source in OF_LAB if source.statistic == "weight_error"])
def test_misplaced_weight_is_that_of_the_textbook(source: FromLab) -> None:
    p = source.parameters.with_value("batch", 6).with_value("seed", 5)
    each = textbook.losses(p, p.scale if source.scaled else "none")["weight_error"].mean(axis=1)
    found, own = shown(source)
    assert abs(found - each.mean()) < 4.5 * math.hypot(each.std(ddof=1) / math.sqrt(len(each)), own)


# Trials: what each returns, from a closed form, a simulation or the tensors of the sample.

Oracle: TypeAlias = Callable[[tuple[Any, ...]], float | tuple[float, float]]  # value, and error if it is simulated


def of_draws(each: Array) -> tuple[float, float]:
    values: Array = np.asarray(each)
    return values.mean(), values.std(ddof=1) / math.sqrt(len(values))


def weights_above(d_k: int, n: int, limit: float, c: float) -> tuple[float, float]:
    rng = np.random.default_rng(1)
    q, k = rng.standard_normal((64, 32, d_k)), rng.standard_normal((64, n, d_k))
    return of_draws((softmax(c * q @ k.mT) > limit).sum(axis=-1).mean(axis=1))


def additive(d: int, std: float) -> tuple[float, float]:
    rng, variances = np.random.default_rng(2), list[float]()
    for _ in range(128):
        w_q, w_k = rng.normal(0, d**-0.5, (2, d, d))
        scores = np.tanh((rng.standard_normal((8, d)) @ w_q)[:, None] + rng.standard_normal((32, d)) @ w_k)
        variances.append((scores @ rng.normal(0, std, d)).var(axis=1, ddof=1).mean())
    mean, error = of_draws(variances)
    return math.sqrt(mean), error / (2 * math.sqrt(mean))


def share_beyond(d_k: int, bound: float, absolute: bool) -> tuple[float, float]:
    rng = np.random.default_rng(4)
    q, k = rng.standard_normal((2, 64, 1024, d_k))
    scores = (q * k).sum(axis=-1)
    return of_draws(((np.abs(scores) if absolute else scores) > bound).mean(axis=1))


def exp_overflow(d_k: int, name: str, subtracted: bool) -> float | tuple[float, float]:
    return 0.0 if subtracted or name != "float16" else share_beyond(d_k, math.log(65504), absolute=False)


def rotated(d_k: int, away: float, base: float) -> float:
    return math.fsum(math.cos(away * base ** (-pair / d_k)) for pair in range(0, d_k, 2)) / (d_k // 2)


def traffic(d_k: int, tokens: int, what: str) -> float:
    divided = tokens * (tokens if what == "scores" else d_k)
    return 2 * divided / (tokens**2 + 2 * tokens * d_k)


@cache
def sample() -> Mapping[str, float]:
    """Figures of the sample's heads from its tensors, which see all keys."""
    tensors = load_file(sample_path())
    heads: list[dict[str, Any]] = []
    apart, at_once, away, ranks = list[float](), list[float](), list[float](), list[int]()
    for layer in range(6):
        q, k = (np.asarray(tensors[f"layers.{layer}.attn.{side}"][0], np.float64) for side in "qk")
        scores, d, n = q @ k.mT, q.shape[-1], k.shape[1]
        weights, raw = softmax(scores * d**-0.5), softmax(scores)
        distance = abs(np.subtract(*np.indices((n, n))))
        for head, p in enumerate(weights):
            within = scores[head].var(axis=1)
            values = np.linalg.svd(scores[head] - scores[head].mean(axis=1, keepdims=True), compute_uv=False) ** 2
            expected = (np.square(q[head]).sum(axis=1) * k[head].var(axis=0).sum()).mean()
            heads.append({
                "ratio": within.mean() / d,
                "sink": p[:, 0].mean(),
                "saturation": (scores[head].std(axis=1) * d**-0.5 / math.sqrt(2 * math.log(n))).mean(),
                "alignment": within.mean() * d / expected,
                "dimensions": 1 + int(np.count_nonzero(np.cumsum(values) < 0.9 * values.sum())),
                "moved": np.abs(p - raw[head]).sum(axis=1).mean() / 2,
                "before": entropy(p).mean() / math.log(n),
                "after": entropy(raw[head]).mean() / math.log(n),
            })  # fmt: skip
            away.append((p * distance).sum(axis=1).mean())
        apart.append(float(np.mean([np.abs(a - b).sum(axis=1).mean() / 2 for a, b in combinations(weights, 2)])))
        at_once.append(float(np.mean([len(set(keys)) for keys in weights.argmax(axis=-1).T.tolist()])))
        ranks += [int(np.linalg.matrix_rank(scores[0])), int(np.linalg.matrix_rank(scores.sum(axis=0)))]
    of: dict[str, Array] = {name: np.array([head[name] for head in heads]) for name in heads[0]}
    saturated = of["saturation"] >= 1
    found: dict[str, Any] = {
        "all_heads heads": len(heads),
        "all_heads least": of["ratio"].min(),
        "all_heads median": float(np.median(of["ratio"])),
        "all_heads most": of["ratio"].max(),
        "all_heads alignment": float(np.median(of["alignment"])),
        "all_heads dimensions": float(np.median(of["dimensions"])),
        "all_heads sinks": np.count_nonzero(of["sink"] > 0.3),
        "all_heads saturated": np.count_nonzero(saturated),
        "all_heads looking": np.count_nonzero(saturated & (of["sink"] <= 0.3)),
        "heads_apart least": min(apart),
        "heads_apart most": max(apart),
        "heads_at_once keys": float(np.mean(at_once)),
        "heads_at_once near": min(away),
        "heads_at_once far": max(away),
        "heads_at_once rank": ranks[0],
        "heads_at_once full": ranks[1],
        "scale_dropped moved": of["moved"].mean(),
        "scale_dropped before": of["before"].mean(),
        "scale_dropped after": of["after"].mean(),
    }
    return {name: float(value) for name, value in found.items()}


ORACLES: dict[str, Oracle] = {  # of the arguments of a trial
    "weights_above": lambda a: weights_above(*a),
    "additive std": lambda a: additive(*a),
    "projected component": lambda a: a[0] * a[2],
    "projected logits": lambda a: a[4] ** 2 * a[1] * (a[0] * a[2]) * (a[0] * a[3]),
    "weights_of_attention": lambda a: 3 * a[0] * a[1] * a[2] + a[0] ** 2,
    "rotary same": lambda a: rotated(*a),
    "rotary variance": lambda a: a[0],
    "summed_terms": lambda a: a[1],
    "exp_overflow": lambda a: exp_overflow(*a),
    "score_overflow": lambda a: share_beyond(a[0], 65504 / (a[1] ** 2 * a[2]), absolute=True),
    "dividing traffic": lambda a: traffic(*a),
    "softmax_example 0": lambda a: softmax(np.array(a))[0],
    "softmax_example 1": lambda a: softmax(np.array(a))[1],
    "shapes scores": lambda a: a[0] * a[1] * a[2] ** 2,
    "shapes output": lambda a: a[0] * a[1] * a[2] * a[3],
}
ELSEWHERE = {"raced", "through_layers"}  # whose gradients are compared with finite differences
PEAK = "most_responsive"


def name_of(source: FromTrial) -> str:
    return f"{source.trial} {source.part}".strip()


def best_of(source: FromTrial) -> tuple[float, float]:
    reading = read(source, ResultCache())
    if reading.exact is not None:
        return reading.exact, 0.0
    assert reading.measured is not None
    assert reading.measured.value is not None
    return reading.measured.value, reading.measured.stderr or 0.0


def test_every_trial_has_an_oracle() -> None:
    names = {name_of(source) for source in OF_TRIALS if source.trial not in (*ELSEWHERE, PEAK)}
    assert names == {*ORACLES, *sample()}


@for_each("source", [source for source in OF_TRIALS if name_of(source) in ORACLES])
def test_figures_of_trials_are_those_of_oracles(source: FromTrial) -> None:
    wanted = ORACLES[name_of(source)](source.arguments)
    value, error = wanted if isinstance(wanted, tuple) else (wanted, 0.0)
    found, own = best_of(source)
    assert abs(found - value) < 4.5 * math.hypot(error, own) + 1e-9 * max(abs(value), 1), OF_TRIALS[source]


@for_each("source", [source for source in OF_TRIALS if name_of(source) in sample()])
def test_figures_of_the_sample_are_those_of_its_tensors(source: FromTrial) -> None:
    assert best_of(source)[0] == pytest.approx(sample()[name_of(source)], rel=1e-4), OF_TRIALS[source]


@for_each("source", [source for source in OF_TRIALS if source.trial == PEAK and source.arguments[1] < 1024])
def test_softmax_responds_most_at_the_spread_that_is_shown(source: FromTrial) -> None:
    d_k, n = source.arguments
    rng = np.random.default_rng(5)
    scores = rng.standard_normal((64, 64, d_k)) @ rng.standard_normal((64, n, d_k)).mT * d_k**-0.5

    def response(spread: float) -> float:
        p = softmax(spread * scores)
        squares, cubes = (p**2).sum(axis=-1), (p**3).sum(axis=-1)
        return float((squares - 2 * cubes + squares**2).mean())

    peak = best_of(source)[0]
    assert response(peak) > max(response(0.8 * peak), response(1.25 * peak))


def test_figures_known_without_a_measurement() -> None:
    limits = {n: math.sqrt(2 * math.log(n)) for n in (128, 2048)}
    wanted = {
        "3 threshold": limits[128], "3 width": 10, "5 threshold": limits[128], "q1 threshold": limits[128],
        "q12 short": limits[128], "q12 long": limits[2048], "4 root": 256**0.5, "4 narrow_root": 64**0.5,
        "10 largest_power": math.e**24, "10 smallest_power": math.e**-24, "q22 one": 3 * 512 * 64,
    }  # fmt: skip
    found = {name: source.exact for name, source in FIGURES.items() if isinstance(source, Reading)}
    assert found == pytest.approx(wanted)


def test_the_mean_square_of_the_gradient_of_queries_is_the_product_of_its_two_factors() -> None:
    """c is √d_k times as large unscaled, and softmax passes on its own factor; the two make that of ‖∂L/∂q‖."""
    of_step = {name: FIGURES[f"4 {name}"] for name in ("softmax", "ratio")}
    softmax_, ratio = (read(source, ResultCache()).exact for source in of_step.values())
    assert softmax_ is not None
    assert ratio == pytest.approx(16 * softmax_, rel=0.01)
    assert softmax_ == pytest.approx(0.50, abs=0.005)
    assert ratio == pytest.approx(7.93, abs=0.005)

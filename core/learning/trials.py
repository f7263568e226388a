"""Measurements for claims that the Lab does not make, each with its own reproducible random numbers.

As everywhere, ± is a standard error over independent draws of queries and keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..attention.softmax import logits_below, row_statistics, row_sums, shift_rows, softmax
from ..message import message
from ..parameters import Parameters
from ..statistics.measurement import Estimate
from ..theory.predict import predict
from ..theory.quadrature import normal_cdf
from ..theory.score_moments import norm_nodes
from ..training.race import recalled_at_end, results, run
from ..training.settings import Race
from .sources import Reading

_LARGEST = {"float16": 65504.0, "bfloat16": 3.3895e38, "float32": 3.4028e38}  # the largest finite numbers
_SEVEN = np.arange(-3.0, 4.0)


def mean_over_draws(draws: npt.ArrayLike) -> Estimate:
    """Return the mean of `each`, one value per draw, and its standard error."""
    values = np.asarray(draws, dtype=np.float64)
    return Estimate(float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values)))


def jackknife(statistic: Callable[[FloatArray], float], array: FloatArray) -> Estimate:
    """Return a statistic of a curve's mean over draws; `each` has shape (draws, points)."""
    draws = len(array)
    total = array.sum(axis=0)
    without = np.array([statistic((total - one) / (draws - 1)) for one in array])
    return Estimate(statistic(total / draws), math.sqrt((draws - 1) * float(without.var())))


def furthest_from_normal(d_k: int) -> tuple[float, float]:
    """Return where the distribution of q·k/√d_k is furthest from that of N(0, 1), and by how much it is above it."""
    r, weights = norm_nodes(d_k, 0.0)  # given the query, a score is N(0, |q|²)

    def gaps(x: FloatArray) -> FloatArray:
        return normal_cdf(np.multiply.outer(x, math.sqrt(d_k) / r)) @ weights - normal_cdf(x)

    grid = np.linspace(0, 4, 81)  # both laws are symmetric, and one step about the maximum has no other
    near = float(grid[np.abs(gaps(grid)).argmax()])
    at = _highest(lambda x: abs(float(gaps(np.array([x]))[0])), max(near - 0.05, 0.0), near + 0.05)
    return at, float(gaps(np.array([at]))[0])


def distance_from_normal(d_k: int) -> Reading:
    """Measure the Kolmogorov–Smirnov distance between q·k/√d_k and N(0, 1), where theory has it.

    At large d_k its error is larger than it, and the difference there may have either sign.
    """
    at, gap = furthest_from_normal(d_k)
    scores = _scores(_rng(1, d_k), 64, 64, 128, d_k)
    inside = (np.abs(scores) <= at * math.sqrt(d_k)).mean(axis=(1, 2))
    normal = math.erf(at / math.sqrt(2))
    gain = mean_over_draws(math.copysign(0.5, gap) * (inside - normal))
    return Reading(gain._replace(value=abs(gain.value or 0.0)), abs(gap))


def rows_within(d_k: int, n_keys: int, deviations: float) -> Reading:
    """Measure the share of rows all of whose scores are within `deviations` standard deviations of 0."""
    bound = deviations * math.sqrt(d_k)
    r, weights = norm_nodes(d_k, 0.0)
    exact = float(weights @ (1 - 2 * normal_cdf(-bound / r)) ** n_keys)
    scores = _scores(_rng(2, d_k, n_keys), 64, 64, n_keys, d_k)
    return Reading(mean_over_draws((np.abs(scores).max(axis=2) <= bound).mean(axis=1)), exact)


def softmax_example(*logits: float) -> Mapping[str, Reading]:
    """Compute the weights of one row, named by position from 0, their sum and the smallest p(1 − p)."""
    weights = softmax(np.array(logits))
    found = {str(position): float(weight) for position, weight in enumerate(weights)}
    found |= {"sum": float(weights.sum()), "least p(1 − p)": float((weights * (1 - weights)).min())}
    return {name: Reading(None, number) for name, number in found.items()}


def live_entries(d_k: int, n_keys: int, multiplier: float) -> Reading:
    """Measure the share of weights with p(1 − p) above 0.01."""
    weights = softmax(multiplier * _scores(_rng(3, d_k, n_keys), 64, 32, n_keys, d_k))
    return Reading(mean_over_draws((weights * (1 - weights) > 0.01).mean(axis=(1, 2))))


def largest_of_matrix(d_k: int, size: int, multiplier: float) -> Reading:
    """Measure the largest weight of a `size` × `size` matrix."""
    weights = softmax(multiplier * _scores(_rng(4, d_k), 2048, size, size, d_k))
    return Reading(mean_over_draws(weights.max(axis=(1, 2))))


def std_of_one_run(d_k: int, batch: int, tokens: int, tolerance: float) -> Mapping[str, Reading]:
    """Measure the standard deviation of the few scores that one run prints.

    Scores are uncorrelated, so its square has expectation d_k exactly.
    """
    groups, runs = 20, 100
    scores = _scores(_rng(5), groups * runs * batch, tokens, tokens, d_k)
    stds = scores.reshape(groups, runs, -1).std(axis=2, ddof=1)
    near = np.abs(stds - math.sqrt(d_k)) <= tolerance
    squares = np.square(stds).mean(axis=1, keepdims=True)
    return {
        "near": Reading(mean_over_draws(near.mean(axis=1))),
        "unscaled": Reading(jackknife(_root, squares), math.sqrt(d_k)),
        "scaled": Reading(jackknife(_root, squares / d_k), 1.0),
    }


def first_or_last(d_k: int, n_keys: int) -> Mapping[str, Reading]:
    """Measure how often the largest weight, and how much weight, is on the first or the last key."""
    scores = _scores(_rng(6, n_keys), 64, 64, n_keys, d_k)
    largest, weights = scores.argmax(axis=2), softmax(scores)
    found = {
        "largest": ((largest == 0) | (largest == n_keys - 1)).mean(axis=1),
        "weight": (weights[:, :, 0] + weights[:, :, -1]).mean(axis=1),
    }
    return {name: Reading(mean_over_draws(values), 2 / n_keys) for name, values in found.items()}


def cosine(d_k: int, n_keys: int) -> Mapping[str, Reading]:
    """Measure attention by cosine similarity: the standard deviation of its logits and its additional entropy."""
    rng = _rng(7)
    q, k = (rng.standard_normal((64, count, d_k), dtype=np.float32) for count in (64, n_keys))
    lengths = np.linalg.norm(q, axis=2)[:, :, np.newaxis] * np.linalg.norm(k, axis=2)[:, np.newaxis, :]
    scores = q @ k.mT
    cosines = scores / lengths
    entropies = [_entropies(scores_of).mean(axis=1) for scores_of in (cosines, scores / math.sqrt(d_k))]
    # The mean square of one coordinate of a unit vector is 1/d_k, whatever the law of the vector's length.
    squares = np.square(cosines).mean(axis=(1, 2), dtype=np.float64)[:, np.newaxis]
    return {
        "std": Reading(jackknife(_root, squares), 1 / math.sqrt(d_k)),
        "entropy": Reading(mean_over_draws(entropies[0] - entropies[1])),
    }


def most_responsive(d_k: int, n_keys: int) -> Reading:
    """Measure the logit standard deviation that maximises E‖J‖_F², where weights respond most to their logits."""
    draws, rows = 32, max(32, 4096 // n_keys)
    scores = _scores(_rng(8, n_keys), draws, rows, n_keys, d_k)
    shifted = shift_rows(scores.reshape(-1, n_keys))
    grid = np.log(np.geomspace(0.8, 9, 20))
    curve = np.empty((draws, len(grid)))
    for index, c in enumerate((np.exp(grid) / math.sqrt(d_k)).tolist()):
        found = row_statistics(row_sums(logits_below(shifted, c), shifted), shifted.visible)
        curve[:, index] = found.jacobian_norm_squared.reshape(draws, rows).mean(axis=1)

    def peak(mean: FloatArray) -> float:
        top = min(max(int(mean.argmax()), 3), len(grid) - 4)
        near = mean[top - 3 : top + 4]  # the least-squares parabola through these seven points
        slope, bend = float(_SEVEN @ near) / 28, float((_SEVEN**2 - 4) @ near) / 84
        return math.exp(float(grid[top] - slope / (2 * bend) * (grid[1] - grid[0])))

    def exact(log_std: float) -> float:
        p = Parameters(d_k, n_keys, scale="custom", multiplier=math.exp(log_std) / math.sqrt(d_k))
        return predict(p).columns[1].values["jacobian_norm_squared"] or 0.0

    return Reading(jackknife(peak, curve), math.exp(_highest(exact, float(grid[0]), float(grid[-1]))))


def exp_overflow(d_k: int, number_format: str, subtract_largest: bool) -> Reading:
    """Measure the share of unscaled scores whose exponential is infinite in a number format."""
    dtype = np.dtype(getattr(ml_dtypes, number_format, number_format))
    scores = _scores(_rng(9), 64, 64, 128, d_k)
    if subtract_largest:
        scores -= scores.max(axis=2, keepdims=True)
    with np.errstate(over="ignore"):
        infinite = np.isinf(np.exp(scores.astype(dtype)))
    r, weights = norm_nodes(d_k, 0.0)
    bound = math.log(_LARGEST[number_format])
    exact = 0.0 if subtract_largest else float(weights @ normal_cdf(-bound / r))
    return Reading(mean_over_draws(infinite.mean(axis=(1, 2))), exact)


def gradient_growth(first: int, last: int, tokens: int, d_v: int) -> Mapping[str, Reading]:
    """Measure the exponents of d_k with which ‖∂L/∂q‖ grows between two widths, for L = Σ G∘O with G, V ~ N(0, 1)."""
    groups, draws = 24, 100
    logs: dict[str, list[FloatArray]] = {}
    for d_k in (first, last):
        rng = _rng(10, d_k)
        shape = (groups * draws, tokens)
        q, k = (rng.standard_normal((*shape, d_k), dtype=np.float32) for _ in range(2))
        g, v = (rng.standard_normal((*shape, d_v), dtype=np.float32) for _ in range(2))
        for column, c in (("unscaled", 1.0), ("scaled", 1 / math.sqrt(d_k))):
            squares = np.square(query_gradients(q, k, v, g, c)).sum(axis=2, dtype=np.float64).reshape(groups, -1)
            logs.setdefault(message("{column} RMS", column=column), []).append(np.log(squares.mean(axis=1)) / 2)
            logs.setdefault(message("{column} median", column=column), []).append(
                np.log(np.median(squares, axis=1)) / 2
            )
    octaves = math.log(last / first)
    return {name: Reading(mean_over_draws((high - low) / octaves)) for name, (low, high) in logs.items()}


def query_gradients(q: FloatArray, k: FloatArray, v: FloatArray, g: FloatArray, multiplier: float) -> FloatArray:
    """Return ∂L/∂Q of L = Σ G∘softmax(c·QKᵀ)V: c·(P∘(A − rowsum(P∘A)))K with A = GVᵀ."""
    p, a = softmax(multiplier * (q @ k.mT)), g @ v.mT
    return multiplier * (p * (a - (p * a).sum(axis=-1, keepdims=True))) @ k


def additive(d: int, v_std: float) -> Mapping[str, Reading]:
    """Measure additive scores vᵀ tanh(W₁q + W₂k) with d hidden units and W ~ N(0, 1/d).

    Return their standard deviation within a row, exactly v_std·√(d·E Var tanh), and the share of scores in [−1, 1].
    """
    rng, draws, queries, keys = _rng(11, d), 96, 16, 64
    variance, inside = np.empty(draws), np.empty(draws)
    for draw in range(draws):
        w1, w2 = (rng.standard_normal((d, d), dtype=np.float32) / np.float32(math.sqrt(d)) for _ in range(2))
        q, k = (rng.standard_normal((count, d), dtype=np.float32) for count in (queries, keys))
        v = rng.standard_normal(d, dtype=np.float32) * np.float32(v_std)
        scores = np.tanh((q @ w1)[:, np.newaxis] + (k @ w2)) @ v
        variance[draw] = scores.var(axis=1, ddof=1).mean()
        inside[draw] = (np.abs(scores) <= 1).mean()
    return {
        "std": Reading(jackknife(_root, variance[:, np.newaxis]), v_std * math.sqrt(d * _variance_of_unit(d))),
        "inside": Reading(mean_over_draws(inside)),
    }


def _variance_of_unit(d: int) -> float:
    """Return E Var(tanh(a + b) | a, |w|), the variance over keys of one hidden unit of additive attention.

    a = w₁·q and b = w·k are normal given |q| and |w|, whose squares are χ² of d degrees of freedom over d. As d grows
    it tends to 0.28397.
    """
    lengths, weights = norm_nodes(d, 0.0)
    deviations = lengths[:, np.newaxis] / math.sqrt(d)
    step = 1 / 8  # tanh is analytic in a strip of half width π/2: the trapezoidal rule errs by e^(−8π²)
    x = step * np.arange(-96.0, 97)
    densities = step * np.exp(-np.square(x / deviations) / 2) / (deviations * math.sqrt(2 * math.pi))
    units = np.tanh(np.add.outer(x, x))
    variances = np.square(units) @ densities.T - np.square(units @ densities.T)  # at each a and |w|
    return float(weights @ densities @ variances @ weights)


def weights_of_attention(d_model: int, d_k: int, heads: int) -> Reading:
    """Count the entries of W_Q, W_K and W_V of all heads, and of W_O; biases are not counted."""
    shapes = [(d_model, d_k)] * (3 * heads) + [(heads * d_k, d_model)]
    return Reading(None, float(sum(math.prod(shape) for shape in shapes)))


def dividing(d_k: int, tokens: int, what: Literal["scores", "queries"]) -> Mapping[str, Reading]:
    """Count what dividing the scores or the queries adds to the product of queries and keys, as a fraction of it.

    `operations` are arithmetic, a multiply–add counting as two; `traffic` is numbers read from and written to memory:
    each step reads its arrays once and writes its result.
    """
    divided = tokens * tokens if what == "scores" else tokens * d_k
    product = 2 * d_k * tokens**2, tokens**2 + 2 * tokens * d_k
    return {
        "operations": Reading(None, divided / product[0]),
        "traffic": Reading(None, 2 * divided / product[1]),
    }


def additive_over_dot(d_k: int, tokens: int) -> Mapping[str, Reading]:
    """Count the operations and memory traffic of additive scores over those of dot products, as `dividing` does.

    Each pair and component takes an addition, a tanh (counted as one) and a multiply–add. One step writes the tanh of
    all of them to memory; another reads them and v.
    """
    pairs, inputs = tokens**2, 2 * tokens * d_k
    return {
        "operations": Reading(None, 4 * d_k * pairs / (2 * d_k * pairs)),
        "traffic": Reading(None, (inputs + 2 * d_k * pairs + d_k + pairs) / (inputs + pairs)),
    }


def _root(mean: FloatArray) -> float:
    return math.sqrt(float(mean[0]))


def _rng(*trial: int) -> np.random.Generator:
    """Return the random generator of one trial: the same in every run, and separate from other trials'."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(0, spawn_key=trial)))


def _scores(rng: np.random.Generator, draws: int, queries: int, keys: int, d_k: int) -> FloatArray:
    """Return unscaled scores (draws, queries, keys) of standard normal queries and keys."""
    q, k = (rng.standard_normal((draws, count, d_k), dtype=np.float32) for count in (queries, keys))
    return q @ k.mT


def _entropies(logits: FloatArray) -> FloatArray:
    """Return the entropy of each row of logits (draws, rows, n)."""
    weights = softmax(logits)
    return -(weights * np.log(np.maximum(weights, 1e-30))).sum(axis=2, dtype=np.float64)


def _highest(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the argument that maximises a unimodal function, by golden-section search."""
    golden = (math.sqrt(5) - 1) / 2
    one, other = high - golden * (high - low), low + golden * (high - low)
    at_one, at_other = function(one), function(other)
    while high - low > 1e-4:
        if at_one > at_other:
            high, other, at_other = other, one, at_one
            one = high - golden * (high - low)
            at_one = function(one)
        else:
            low, one, at_one = one, other, at_other
            other = low + golden * (high - low)
            at_other = function(other)
    return (low + high) / 2


def raced(race: Race) -> Mapping[str, Reading]:
    """Train under each rule of a race; ± is a standard error over seeds.

    Return of each rule `RULE loss` and `RULE recalled`, at the end, and of each pair `RULE recalled − OTHER`, the
    difference of two that are trained; `RULE under OTHER`, what weights trained under the one recall under the other;
    and `RULE under OTHER − RULE`, how much more that is than under their own rule.
    """
    *_, curves = run(race)
    assert curves.used is not None, "the race has ended"
    recalled = recalled_at_end(curves)
    readings: dict[str, Reading] = {}
    for place, result in enumerate(results(curves)):
        rule, at_home = result.rule, curves.used[place, place]
        readings[f"{rule} loss"] = Reading(Estimate(result.loss, result.loss_error))
        readings[f"{rule} recalled"] = _over_seeds(recalled[place])
        for at, other in enumerate(race.rules):
            readings[f"{rule} recalled − {other}"] = _over_seeds(recalled[place] - recalled[at])
            readings[f"{rule} under {other}"] = _over_seeds(curves.used[place, at])
            readings[f"{rule} under {other} − {rule}"] = _over_seeds(curves.used[place, at] - at_home)
    return readings


def _over_seeds(array: FloatArray) -> Reading:
    """Return the mean over seeds, with a standard error if there are several."""
    return Reading(mean_over_draws(array) if len(array) > 1 else Estimate(float(array[0]), None))


_DIGITS = 12  # after the point: beyond them, sums differ by the order of their terms


def shapes(batch: int, heads: int, tokens: int, d_k: int) -> Mapping[str, Reading]:
    """Compute attention of Q, K and V of shape (batch, heads, tokens, d_k) at once, and head by head.

    Return how many numbers the `scores` and the `output` have, the `sum` of the row furthest from 1, and how far
    `apart` the two outputs are at most.
    """
    rng = np.random.default_rng((23, 2, batch, heads, tokens, d_k))
    q, k, v = rng.standard_normal((3, batch, heads, tokens, d_k))
    scores = q @ k.mT / d_k**0.5
    weights = softmax(scores, None, None)
    output, sums = weights @ v, weights.sum(axis=-1).ravel()
    each = [softmax(q[b, h] @ k[b, h].T / d_k**0.5, None, None) @ v[b, h] for b in range(batch) for h in range(heads)]
    return {
        "scores": Reading(None, float(scores.size)),
        "output": Reading(None, float(output.size)),
        "sum": Reading(None, round(float(sums[np.abs(sums - 1).argmax()]), _DIGITS)),
        "apart": Reading(None, round(float(np.abs(np.array(each).reshape(output.shape) - output).max()), _DIGITS)),
    }


_DRAWS = 16


def through_layers(depth: int, d: int, tokens: int) -> Mapping[str, Reading]:
    """Measure a stack of layers x + attention(LayerNorm(x)), one head each, d_k = d, without a scale and with 1/√d.

    Inputs are standard normal, weights have variance 1/d, and the loss is L = Σ G∘LayerNorm(x), G standard normal.
    `unscaled` and `scaled` are the root mean square of ∂L/∂input, the geometric mean over draws; `ratio` is the one
    over the other, and `over one layer` that ratio over the ratio of a single layer. `alike unscaled` and
    `alike scaled` are the mean cosine of two tokens after the last layer.
    """
    multipliers = {"unscaled": 1.0, "scaled": d**-0.5}
    sizes = {(name, layers): np.empty(_DRAWS) for name in multipliers for layers in (1, depth)}  # logarithms
    alike = {name: np.empty(_DRAWS) for name in multipliers}
    for draw in range(_DRAWS):
        rng = np.random.default_rng((23, 1, depth, d, tokens, draw))
        x, grad = rng.standard_normal((2, tokens, d))
        weights = rng.standard_normal((depth, 3, d, d)) / math.sqrt(d)
        for name, multiplier in multipliers.items():
            for layers in (1, depth):
                gradient, end = input_gradient(x, weights[:layers], multiplier, grad)
                sizes[name, layers][draw] = math.log(np.square(gradient).mean()) / 2
            alike[name][draw] = mean_cosine(end)
    ratio, of_one = (sizes["unscaled", layers] - sizes["scaled", layers] for layers in (depth, 1))
    return {
        "unscaled": _of_logarithms(sizes["unscaled", depth]),
        "scaled": _of_logarithms(sizes["scaled", depth]),
        "ratio": _of_logarithms(ratio),
        "over_one": _of_logarithms(ratio - of_one),
        "alike_unscaled": Reading(mean_over_draws(alike["unscaled"])),
        "alike_scaled": Reading(mean_over_draws(alike["scaled"])),
    }


def input_gradient(
    x: FloatArray, weights: FloatArray, multiplier: float, grad: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return ∂L/∂x of L = Σ grad∘LayerNorm(output), and LayerNorm(output); `weights` are (layers, 3, d, d)."""
    passed: list[tuple[FloatArray, ...]] = []
    for w_q, w_k, w_v in weights:
        h = normalised(x)
        q, k, v = h @ w_q, h @ w_k, h @ w_v
        p = softmax(multiplier * (q @ k.T), None, None)
        passed.append((x, q, k, v, p))
        x = x + p @ v
    back = _before_norm(x, grad)
    for (inside, q, k, v, p), (w_q, w_k, w_v) in zip(reversed(passed), weights[::-1], strict=True):
        of_p = back @ v.T
        of_scores = multiplier * p * (of_p - (p * of_p).sum(axis=1, keepdims=True))
        of_h = of_scores @ k @ w_q.T + of_scores.T @ q @ w_k.T + p.T @ back @ w_v.T
        back = back + _before_norm(inside, of_h)
    return back, normalised(x)


def normalised(x: FloatArray) -> FloatArray:
    """Return LayerNorm of each row, without gain and bias."""
    return (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)


def mean_cosine(x: FloatArray) -> float:
    """Return the mean cosine of two different rows."""
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    rows = len(x)
    return float((np.square(unit.sum(axis=0)).sum() - rows) / (rows * (rows - 1)))


def _before_norm(x: FloatArray, grad: FloatArray) -> FloatArray:
    """Return the gradient of the input of LayerNorm, given that of its output."""
    y = normalised(x)
    mean = (grad * y).mean(axis=1, keepdims=True)
    return (grad - grad.mean(axis=1, keepdims=True) - y * mean) / x.std(axis=1, keepdims=True)


def _of_logarithms(array: FloatArray) -> Reading:
    """Return the geometric mean over draws of what these are the logarithms of, with its standard error."""
    mean, stderr = mean_over_draws(array)
    factor = math.exp(mean or 0.0)
    return Reading(Estimate(factor, factor * (stderr or 0.0)))

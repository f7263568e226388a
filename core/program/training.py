"""The program of training races: associative recall, learned by one layer of attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..scales import Normalise, scale_rule
from ..statistics.measurement import Estimate
from .attention import NORMS
from .lab import VARIABLES, needed, rule_code
from .text import WIDEST, CodePiece, Dialect, assembled, estimated, expected, filled, number, shown

if TYPE_CHECKING:
    from ..training.snapshot import RaceSnapshot

_REMARK = "Where steps are too large, rounding decides how a run ends: such a loss is the same within its ± only."
_TITLES = ("final loss", "recalled", "steps to 90 %", "diverged")

# Of a norm: the normalised vectors, and the function that returns the gradient of the vectors from theirs.
_NORMS: dict[Normalise, str] = {
    "none": "def as_drawn(x):\n    return x, lambda d: d",
    "rms": """\
def rms(x):
    size = np.sqrt((x**2).mean(-1, keepdims=True))
    y = x / size
    return y, lambda d: (d - y * (d * y).mean(-1, keepdims=True)) / size""",
    "layer_norm": """\
def layer_norm(x):
    y, backward = rms(x - x.mean(-1, keepdims=True))
    return y, lambda d: backward(d - d.mean(-1, keepdims=True))""",
    "l2": """\
def unit(x):
    size = np.linalg.norm(x, axis=-1, keepdims=True)
    y = x / size
    return y, lambda d: (d - y * (d * y).sum(-1, keepdims=True)) / size""",
}

_SOFTMAX = """\
def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)"""

_DRAWN = """\
def normal(rngs, *shape):
    return np.stack([rng.standard_normal(shape, np.float32) for rng in rngs])


def integers(rngs, most, *shape):
    return np.stack([rng.integers(0, most, shape) for rng in rngs])"""

_TRAIN = """\
def train(d_k, scale, norm):
    rngs = [np.random.default_rng((seed + i, 71)) for i in range(seeds)]
    shapes = (d_k, width), (d_k, width), (labels, labels)  # of W_q, W_k and W_v
    weights = [normal(rngs, *shape) * shape[1] ** -0.5 for shape in shapes]
    first, second, losses, recalled = [0, 0, 0], [0, 0, 0], [], []
    for step in range(steps):
        x = normal(rngs, batch, n, width)  # keys, each of which is asked again
        y = integers(rngs, labels, batch, n)
        hot = np.eye(labels, dtype=np.float32)[y]
        w_q, w_k, w_v = (w[:, None] for w in weights)
        (q, back_q), (k, back_k), v = norm(x @ w_q.mT), norm(x @ w_k.mT), hot @ w_v.mT
        p = softmax(scale * (q @ k.mT))  # attention weights
        guess = softmax(p @ v)
        losses.append(-np.log((guess * hot).sum(-1)).mean((1, 2)))
        recalled.append((1.0 * (guess.argmax(-1) == y)).mean((1, 2)))
        g_o = (guess - hot) / (batch * n)  # backwards
        g_p = g_o @ v.mT
        g_s = scale * p * (g_p - (p * g_p).sum(-1, keepdims=True))
        g_q, g_k = back_q(g_s @ k), back_k(g_s.mT @ q)
        gradients = (g_q.mT @ x).sum(1), (g_k.mT @ x).sum(1), ((p.mT @ g_o).mT @ hot).sum(1)
        for i, g in enumerate(gradients):
UPDATE
    losses, recalled = np.stack(losses), np.stack(recalled)  # (steps, seeds)
    last = losses[-10:].mean(0)
    kept = last < 2 * log(labels)  # other runs diverged
    there = np.stack([recalled[i : i + 10].mean(0) for i in range(max(steps - 9, 1))]) >= 0.9
    never = 1e9
    taken = np.where(there.any(0) & (steps >= 10), (1.0 * there).argmax(0) + 10, never)
    taken = np.quantile(taken, 0.5)
    taken = taken if taken < never / 4 else np.nan
    return last[kept].mean(), recalled[-10:].mean(), taken, 1 - (1.0 * kept).mean()"""
_UPDATE = {
    "sgd": "            weights[i] -= RATE * g",
    "adam": """\
            first[i] = 0.9 * first[i] + 0.1 * g
            second[i] = 0.999 * second[i] + 0.001 * g**2
            size = np.sqrt(second[i] / (1 - 0.999 ** (step + 1))) + 1e-8
            weights[i] -= RATE / (1 - 0.9 ** (step + 1)) * first[i] / size""",
}


def training_code(races: Sequence[RaceSnapshot], dialect: Dialect, command: str) -> str:
    """Return the program that trains with each rule at each d_k, and prints how it did."""
    race, task = races[0].race, races[0].race.task
    norms: dict[str, Normalise] = {rule: scale_rule(rule).normalise for rule in race.rules}
    kinds = {*norms.values()}
    used: list[Normalise] = [how for how in _NORMS if how in kinds or (how == "rms" and "layer_norm" in kinds)]
    rows = {
        f"{one.rule}, d_k {race.race.d_k}": [
            estimated(Estimate(one.loss, one.loss_error)) if one.diverged < 1 else "nan",
            *map(shown, (one.recalled, one.steps_to_learn, one.diverged)),
        ]
        for race in races
        for one in race.results
    }
    sizes = {VARIABLES[field]: getattr(race.setting, field) for rule in race.rules for field in needed(rule)}
    values = [
        f"seed, seeds, steps, rate = {race.seed}, {race.seeds}, {race.steps}, {number(race.rate)}",
        f"n, width, labels, batch = {task.pairs}, {task.width}, {task.labels}, {task.batch}  # n keys with labels",
        *(f"{name} = {number(value)}" for name, value in sizes.items()),
    ]
    rate = f"rate * min((step + 1) / {race.warm_up}, 1)" if race.warm_up else "rate"
    train = _TRAIN.replace("UPDATE", _UPDATE[race.optimiser]).replace("RATE", rate)
    rules = [f'("{rule}", lambda: ({rule_code(rule, 1.0)}, {NORMS[how]}))' for rule, how in norms.items()]
    loop = [
        "rules = [",
        *(f"    {line}" for line in filled(rules, WIDEST)),
        "]",
        f"for d_k in {[race.race.d_k for race in races]}:",
        "    for rule, how in rules:",
        f'        row = f"{{rule}}, d_k {{d_k}}".ljust({max(map(len, rows)) + 2})',
        '        print(row, *(f"{value:14.4g}" for value in train(d_k, *how())))',
    ]
    pieces = [
        CodePiece("\n".join(values)),
        CodePiece(_DRAWN, defines=True, drawn=True),
        *(CodePiece(_NORMS[how], defines=True) for how in used),
        CodePiece(_SOFTMAX, defines=True),
        CodePiece(train, defines=True),
        CodePiece("\n".join(loop)),
    ]
    return assembled([command, _REMARK], [pieces], expected(_TITLES, rows), dialect)

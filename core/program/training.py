"""The program of training races: associative recall, learned by one layer of attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..scales import Normalise, scale_rule
from ..statistics.measurement import Estimate
from ..training.settings import Race
from .attention import NORMS
from .dialects import Dialect
from .lab import VARIABLES, needed, rule_code
from .text import WIDEST, Piece, assembled, estimated, expected, filled, number, shown

if TYPE_CHECKING:
    from ..tables.runs import Ended

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

_START = """\
    rngs = [np.random.default_rng((seed + i, 71)) for i in range(seeds)]
    shapes = (d_k, width), (d_k, width), (labels, labels)  # of W_q, W_k and W_v
    weights = [normal(rngs, *shape) * shape[1] ** -0.5 for shape in shapes]"""

_RESULT = """\
    losses, recalled = np.stack(losses), np.stack(recalled)  # (steps, seeds)
    last = losses[-10:].mean(0)
    kept = last < 2 * log(labels)  # other runs diverged
    there = np.stack([recalled[i : i + 10].mean(0) for i in range(max(steps - 9, 1))]) >= 0.9
    never = 1e9
    taken = np.where(there.any(0) & (steps >= 10), (1.0 * there).argmax(0) + 10, never)
    taken = np.quantile(taken, 0.5)
    steps_taken = taken if taken < never / 4 else np.nan
    return last[kept].mean(), recalled[-10:].mean(), steps_taken, 1 - (1.0 * kept).mean()"""


def training_code(found: Sequence[Ended], dialect: Dialect, command: str) -> str:
    """Return the program that trains with each rule at each d_k, and prints how it did."""
    race = found[0][0]
    norms: dict[Normalise, None] = {scale_rule(rule).normalise: None for rule in race.rules}
    normalises = {*norms} != {"none"}
    if "layer_norm" in norms:
        norms = {"rms": None, **norms}
    lines: dict[str, list[str]] = {}
    for each, results, _ in found:
        for one in results:
            lines[f"{one.rule}, d_k {each.d_k}"] = [
                estimated(Estimate(one.loss, one.loss_error)) if one.diverged < 1 else "nan",
                shown(one.recalled),
                shown(one.steps_to_learn),
                shown(one.diverged),
            ]
    pieces = [
        Piece(_values(race)),
        Piece(_DRAWN, defines=True, drawn=True),
        *(Piece(_NORMS[how], defines=True) for how in norms if normalises),
        Piece(_SOFTMAX, defines=True),
        Piece(_train(race, normalises), defines=True),
        Piece(_loop(race, [each.d_k for each, *_ in found], max(map(len, lines)), normalises)),
    ]
    return assembled([command, _REMARK], [pieces], expected(_TITLES, lines), dialect)


def _values(race: Race) -> str:
    task = race.task
    more = {VARIABLES[field]: getattr(race.setting, field) for rule in race.rules for field in needed(rule)}
    lines = [
        f"seed, seeds, steps, rate = {race.seed}, {race.seeds}, {race.steps}, {number(race.rate)}",
        f"n, width, labels, batch = {task.pairs}, {task.width}, {task.labels}, {task.batch}  # n pairs of a key and "
        "a label",
    ]
    if more:
        lines.append(f"{', '.join(more)} = {', '.join(map(number, more.values()))}")
    return "\n".join(lines)


def _rate(race: Race) -> str:
    """Return the learning rate of a step."""
    return f"rate * min((step + 1) / {race.warm_up}, 1)" if race.warm_up else "rate"


def _train(race: Race, normalises: bool) -> str:
    """Return the function that trains, with its gradients written out."""
    adam = race.optimiser == "adam"
    signature = f"def train(d_k, scale{', norm' if normalises else ''}):"
    weights = [
        *(["    first, second = [0, 0, 0], [0, 0, 0]"] if adam else []),
        "    losses, recalled = [], []",
        "    for step in range(steps):",
        "        x = normal(rngs, batch, n, width)  # keys, each of which is asked again",
        "        y = integers(rngs, labels, batch, n)",
    ]
    forward = [
        "hot = np.eye(labels, dtype=np.float32)[y]",
        "w_q, w_k, w_v = (w[:, None] for w in weights)",
        *(
            ["(q, back_q), (k, back_k) = norm(x @ w_q.mT), norm(x @ w_k.mT)", "v = hot @ w_v.mT"]
            if normalises
            else ["q, k, v = x @ w_q.mT, x @ w_k.mT, hot @ w_v.mT"]
        ),
        "p = softmax(scale * (q @ k.mT))  # attention weights",
        "guess = softmax(p @ v)",
        "losses.append(-np.log((guess * hot).sum(-1)).mean((1, 2)))",
        "recalled.append((1.0 * (guess.argmax(-1) == y)).mean((1, 2)))",
        "g_o = (guess - hot) / (batch * n)  # backwards",
        "g_p = g_o @ v.mT",
        "g_s = scale * p * (g_p - (p * g_p).sum(-1, keepdims=True))",
        "g_q, g_k = back_q(g_s @ k), back_k(g_s.mT @ q)" if normalises else "g_q, g_k = g_s @ k, g_s.mT @ q",
        "gradients = (g_q.mT @ x).sum(1), (g_k.mT @ x).sum(1), ((p.mT @ g_o).mT @ hot).sum(1)",
    ]
    if adam:
        forward += [
            "for i, g in enumerate(gradients):  # Adam",
            "    first[i] = 0.9 * first[i] + 0.1 * g",
            "    second[i] = 0.999 * second[i] + 0.001 * g**2",
            "    size = np.sqrt(second[i] / (1 - 0.999 ** (step + 1))) + 1e-8",
            f"    weights[i] -= {_rate(race)} / (1 - 0.9 ** (step + 1)) * first[i] / size",
        ]
    else:
        forward += ["for w, g in zip(weights, gradients):", f"    w -= {_rate(race)} * g"]
    body = [f"        {line}" for line in forward]
    return "\n".join([signature, _START, *weights, *body, _RESULT])


def _loop(race: Race, d_ks: Sequence[int], wide: int, normalises: bool) -> str:
    """Return the loop over d_k and rules."""
    rules = [f'("{rule}", {_arguments(rule, normalises)})' for rule in race.rules]
    ends = "," if len(d_ks) == 1 else ""
    how = "scale, norm" if normalises else "scale"
    return "\n".join(
        [
            f"for d_k in ({', '.join(map(str, d_ks))}{ends}):",
            *_rules(rules, how),
            f'        row = f"{{rule}}, d_k {{d_k}}".ljust({wide + 2})',
            f'        print(row, *(f"{{value:14.4g}}" for value in train(d_k, {how})))',
        ]
    )


def _rules(rules: Sequence[str], how: str) -> list[str]:
    """Return the line that loops over rules, or several if they are many."""
    whole = f"    for rule, {how} in ({', '.join(rules)}{',' if len(rules) == 1 else ''}):"
    if len(whole) <= WIDEST:
        return [whole]
    return [f"    for rule, {how} in (", *(f"        {line}" for line in filled(rules, WIDEST - 8)), "    ):"]


def _arguments(rule: str, normalises: bool) -> str:
    norm = f", {NORMS[scale_rule(rule).normalise]}" if normalises else ""
    return f"{rule_code(rule, 1.0)}{norm}"

"""The program of training races: associative recall, learned by one layer of attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...scales import Normalise, scale_rule
from ...statistics.measurement import Estimate
from ...training.settings import Race
from .parts.attention import NORM_NAMES, TORCH_NORMS
from .parts.rule import VARIABLES, needed, rule_code
from .program import WIDEST, Dialect, Piece, assembled, estimated, expected, filled, number, shown

if TYPE_CHECKING:
    from ...tables.runs import Ended

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

_START = """\
    rngs = [np.random.default_rng((seed + i, 71)) for i in range(seeds)]
    normal = lambda *shape: {of}np.stack([rng.standard_normal(shape, np.float32) for rng in rngs]){end}
    shapes = (d_k, width), (d_k, width), (labels, labels)  # of W_q, W_k and W_v
    weights = [normal(*shape) * shape[1] ** -0.5 for shape in shapes]"""

_DRAWN = """\
        x = normal(batch, n, width)  # keys, each of which is asked again
        y = {of}np.stack([rng.integers(0, labels, (batch, n)) for rng in rngs]){end}"""

_ENDS: dict[Dialect, str] = {
    "python": "    losses, recalled = np.array(losses), np.array(recalled)  # (steps, seeds)",
    "torch": "    losses, recalled = torch.stack(losses).numpy(), torch.stack(recalled).numpy()  # (steps, seeds)",
}
_RESULT = """\
    last = losses[-10:].mean(0)
    kept = last < 2 * log(labels)  # other runs diverged
    there = np.lib.stride_tricks.sliding_window_view(recalled, min(10, steps), 0).mean(-1) >= 0.9
    taken = np.median(np.where(there.any(0) & (steps >= 10), there.argmax(0) + 10, np.inf))
    return last[kept].mean(), recalled[-10:].mean(), taken if taken < np.inf else np.nan, 1 - kept.mean()"""


def training_code(found: Sequence[Ended], dialect: Dialect, command: str) -> str:
    """Return the program that trains with each rule at each d_k, and prints how it did."""
    race = found[0][0]
    norms: dict[Normalise, None] = {scale_rule(rule).normalise: None for rule in race.rules}
    normalises = {*norms} != {"none"}
    if dialect == "python" and "layer_norm" in norms:
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
    functions = _functions([*norms], dialect) if normalises else []
    train = _train_numpy(race, normalises) if dialect == "python" else _train_torch(race, normalises)
    pieces = [
        Piece(_values(race)),
        *(Piece(text, defines=True) for text in functions),
        *([Piece(_SOFTMAX, defines=True)] if dialect == "python" else []),
        Piece(train, defines=True),
        Piece(_loop(race, [each.d_k for each, *_ in found], max(map(len, lines)), normalises)),
    ]
    return assembled([command, _REMARK], [pieces], expected(_TITLES, lines), dialect)


def _functions(norms: Sequence[Normalise], dialect: Dialect) -> list[str]:
    if dialect == "python":
        return [_NORMS[how] for how in norms]
    return [f"def {NORM_NAMES[how]}(x):\n    return {TORCH_NORMS.get(how, 'x')}" for how in norms]


def _values(race: Race) -> str:
    task = race.task
    more: dict[str, float] = {}
    for rule in race.rules:
        more |= {VARIABLES[field]: getattr(race.setting, field) for field in needed(rule)}
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


def _train_numpy(race: Race, normalises: bool) -> str:
    """Return the function that trains, with its gradients written out."""
    adam = race.optimiser == "adam"
    signature = f"def train(d_k, scale{', norm' if normalises else ''}):"
    weights = [
        *(["    first, second = [0, 0, 0], [0, 0, 0]"] if adam else []),
        "    losses, recalled = [], []",
        "    for step in range(steps):",
        _DRAWN.format(of="", end=""),
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
        "recalled.append((guess.argmax(-1) == y).mean((1, 2)))",
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
    return "\n".join([signature, _START.format(of="", end=""), *weights, *body, _ENDS["python"], _RESULT])


def _train_torch(race: Race, normalises: bool) -> str:
    """Return the function that trains, with PyTorch's gradients and optimiser."""
    wrapped = {"of": "torch.from_numpy(", "end": ")"}
    name = "Adam" if race.optimiser == "adam" else "SGD"
    signature = f"def train(d_k, scale{', norm' if normalises else ''}):"
    lines = [
        f"    optimiser = torch.optim.{name}([w.requires_grad_() for w in weights], lr=rate)",
        "    losses, recalled = [], []",
        "    for step in range(steps):",
        *([f'        optimiser.param_groups[0]["lr"] = {_rate(race)}'] if race.warm_up else []),
        _DRAWN.format(**wrapped),
        "        hot = torch.nn.functional.one_hot(y, labels).float()",
        "        w_q, w_k, w_v = (w[:, None] for w in weights)",
        f"        q, k, v = {_of('x @ w_q.mT', normalises)}, {_of('x @ w_k.mT', normalises)}, hot @ w_v.mT",
        "        o = (scale * (q @ k.mT)).softmax(-1) @ v",
        "        loss = -(o.log_softmax(-1) * hot).sum(-1).mean((1, 2))",
        "        losses.append(loss.detach())",
        "        recalled.append((o.argmax(-1) == y).double().mean((1, 2)))",
        "        optimiser.zero_grad()",
        "        loss.sum().backward()  # runs do not touch each other",
        "        optimiser.step()",
    ]
    return "\n".join([signature, _START.format(**wrapped), *lines, _ENDS["torch"], _RESULT])


def _of(text: str, normalises: bool) -> str:
    return f"norm({text})" if normalises else text


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
    norm = f", {NORM_NAMES[scale_rule(rule).normalise]}" if normalises else ""
    return f"{rule_code(rule, 1.0)}{norm}"

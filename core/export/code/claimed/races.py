"""The functions of programs for what runs of the training race recall (core/claims/races.py)."""

from __future__ import annotations

from ....scales import multiplier, scale_rule
from ....training.settings import Race
from ..program import Dialect, number

RACED: dict[Dialect, str] = {
    "python": """\
def forward(weights, x, hot, scale):
    w_q, w_k, w_v = (w[:, None] for w in weights)
    q, k, v = x @ w_q.mT, x @ w_k.mT, hot @ w_v.mT
    p = softmax(scale * (q @ k.mT))
    return q, k, v, p, softmax(p @ v)


@cache
def raced(d_k, rules, rate, adam, seeds):  # what is recalled at the end, and used with the scale of another rule
    found = {}
    for rule, scale in rules:
        rngs = [np.random.default_rng((i, 71)) for i in range(seeds)]
        normal = lambda *shape: np.stack([rng.standard_normal(shape, np.float32) for rng in rngs])
        labels = lambda: np.eye(8, dtype=np.float32)[np.stack([rng.integers(0, 8, (8, 16)) for rng in rngs])]
        weights = [normal(*shape) * shape[1] ** -0.5 for shape in ((d_k, 32), (d_k, 32), (8, 8))]
        first, second, recalled = [0, 0, 0], [0, 0, 0], []
        for step in range(1, 201):
            x, hot = normal(8, 16, 32), labels()
            q, k, v, p, guess = forward(weights, x, hot, scale)
            recalled.append((guess.argmax(-1) == hot.argmax(-1)).mean())
            g_o = (guess - hot) / 128  # backwards
            g_p = g_o @ v.mT
            g_s = scale * p * (g_p - (p * g_p).sum(-1, keepdims=True))
            gradients = ((g_s @ k).mT @ x).sum(1), ((g_s.mT @ q).mT @ x).sum(1), ((p.mT @ g_o).mT @ hot).sum(1)
            for i, g in enumerate(gradients):
                if adam:
                    first[i], second[i] = 0.9 * first[i] + 0.1 * g, 0.999 * second[i] + 0.001 * g**2
                    g = first[i] / (1 - 0.9**step) / (np.sqrt(second[i] / (1 - 0.999**step)) + 1e-8)
                weights[i] = weights[i] - rate * g
        found[rule] = np.mean(recalled[-10:])
        x, hot = normal(8, 16, 32), labels()
        for other, c in rules:
            guess = forward(weights, x, hot, c)[-1]
            found[rule, other] = (guess.argmax(-1) == hot.argmax(-1)).mean()
    return found""",
    "torch": """\
def forward(weights, x, hot, scale):
    w_q, w_k, w_v = (w[:, None] for w in weights)
    return (scale * (x @ w_q.mT @ (x @ w_k.mT).mT)).softmax(-1) @ (hot @ w_v.mT)


@cache
def raced(d_k, rules, rate, adam, seeds):  # what is recalled at the end, and used with the scale of another rule
    found = {}
    for rule, scale in rules:
        rngs = [np.random.default_rng((i, 71)) for i in range(seeds)]
        normal = lambda *shape: torch.from_numpy(np.stack([rng.standard_normal(shape, np.float32) for rng in rngs]))
        labels = lambda: torch.from_numpy(np.stack([rng.integers(0, 8, (8, 16)) for rng in rngs]))
        shapes, recalled = ((d_k, 32), (d_k, 32), (8, 8)), []
        weights = [(normal(*shape) * shape[1] ** -0.5).requires_grad_() for shape in shapes]
        optimiser = (torch.optim.Adam if adam else torch.optim.SGD)(weights, lr=rate)
        for _ in range(200):
            x, y = normal(8, 16, 32), labels()
            hot = torch.nn.functional.one_hot(y, 8).float()
            guess = forward(weights, x, hot, scale)
            recalled.append((guess.argmax(-1) == y).double().mean().item())
            optimiser.zero_grad()
            (-(guess.log_softmax(-1) * hot).sum() / 128).backward()  # runs do not touch each other
            optimiser.step()
        found[rule] = np.mean(recalled[-10:])
        x, y = normal(8, 16, 32), labels()
        for other, c in rules:
            guess = forward(weights, x, torch.nn.functional.one_hot(y, 8).float(), c)
            found[rule, other] = (guess.argmax(-1) == y).double().mean().item()
    return found""",
}


def is_raced(race: Race, part: str) -> bool:
    """Return whether the function tells this part of what a race shows."""
    usual = Race(race.d_k, race.rules, race.rate, seeds=race.seeds, optimiser=race.optimiser)
    plain = all(scale_rule(rule).normalise == "none" for rule in race.rules)
    return race == usual and plain and not part.endswith(" loss")


def race_expression(race: Race, part: str) -> str:
    """Return the expression of a part, such as `sqrt_d_k under none − sqrt_d_k` or `none recalled`."""
    rules = ", ".join(f"('{rule}', {number(multiplier(rule, race.setting))})" for rule in race.rules)
    ends = "," if len(race.rules) == 1 else ""
    call = f"raced({race.d_k}, ({rules}{ends}), {number(race.rate)}, {race.optimiser == 'adam'}, {race.seeds})"
    whole, _, less = part.partition(" − ")
    rule, _, other = whole.removesuffix(" recalled").partition(" under ")
    if not less:
        return f"{call}[{_key(rule, other)}]"
    return f"({call}[{_key(rule, other)}] - {call}[{_key(less, rule if other else '')}])"


def _key(rule: str, other: str) -> str:
    return f"'{rule}', '{other}'" if other else f"'{rule}'"

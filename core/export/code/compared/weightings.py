"""The program of a comparison of weightings: what makes weights of the same logits, written out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....lab.weighting.results import CLIP, GATE, MEASURES, NOT_OF_WEIGHTINGS, WEIGHTINGS, WeightingRow
from ....parameters import Parameters, rows_differ
from ....statistics.catalogue import ONE_HOT
from ..parts.attention import mask, norm_call, norm_functions
from ..parts.drawing import draw_function, vectors
from ..parts.rule import scale_code
from ..parts.setting import sizes
from ..program import Dialect, Piece, assembled, expected, number, shown

_HEADINGS = ("sum of p", "entropy", "max weight", "zero weights", "one-hot rows", "Jacobian")

_SOFTMAX: dict[Dialect, str] = {
    "python": """\
def softmax(z, sink=-np.inf):
    top = np.maximum(z.max(-1, keepdims=True), sink)
    return np.exp(z - top) / (np.exp(z - top).sum(-1, keepdims=True) + np.exp(sink - top))""",
    "torch": """\
def softmax(z, sink=-torch.inf):
    return torch.cat([z, torch.full_like(z[..., :1], sink)], -1).softmax(-1)[..., :-1]""",
}
_JACOBIAN: dict[Dialect, str] = {
    "python": """\
def norm(p):  # of diag(p) - p pT
    return np.sqrt((p**2 * ((1 - p) ** 2 + (p**2).sum(-1, keepdims=True) - p**2)).sum(-1))""",
    "torch": """\
def norm(p):  # of diag(p) - p pT
    return (p**2 * ((1 - p) ** 2 + (p**2).sum(-1, keepdim=True) - p**2)).sum(-1).sqrt()""",
}
_ENTMAX: dict[Dialect, str] = {
    "python": """\
def entmax(z, power):  # max(z / power - t, 0) ** power, with t such that they sum to 1; and its Jacobian
    z = (z - z.max(-1, keepdims=True)) / power
    t = np.full_like(z[..., :1], -1)
    for step in 0.5 ** np.arange(1, 60):  # bisection
        t = t + step * ((np.maximum(z - t - step, 0) ** power).sum(-1, keepdims=True) > 1)
    x = np.maximum(z - t, 0)
    s = (x > 0) * x ** (power - 1)
    one, two, three = ((s**each).sum(-1) for each in (1, 2, 3))
    return x**power, np.sqrt(np.maximum(two - 2 * three / one + (two / one) ** 2, 0))""",
    "torch": """\
def entmax(z, power):  # max(z / power - t, 0) ** power, with t such that they sum to 1; and its Jacobian
    z = (z - z.amax(-1, keepdim=True)) / power
    t = torch.full_like(z[..., :1], -1)
    for step in 0.5 ** np.arange(1, 60):  # bisection
        t = t + step * (((z - t - step).clamp(min=0) ** power).sum(-1, keepdim=True) > 1)
    x = (z - t).clamp(min=0)
    s = (x > 0) * x ** (power - 1)
    one, two, three = ((s**each).sum(-1) for each in (1, 2, 3))
    return x**power, (two - 2 * three / one + (two / one) ** 2).clamp(min=0).sqrt()""",
}
_SHOW: dict[Dialect, str] = {
    "python": """\
def show(name, p, jacobian):
    share = p / p.sum(-1, keepdims=True)
    entropy = np.nan if name == "differential" else -(share * np.log(np.maximum(share, 1e-300))).sum(-1).mean()
    zero = (1 - (p > 0).sum(-1) / seen).mean() if name in ("entmax-1.5", "sparsemax") else np.nan
    one_hot = np.nan if name in ("sigmoid", "differential") else (p.max(-1) > ONE_HOT)[..., OF].mean()
    values = p.sum(-1).mean(), entropy, p.max(-1).mean(), zero, one_hot, jacobian.mean()
    print(name.ljust(18), *(f"{value:12.4g}" for value in values))""",
    "torch": """\
def show(name, p, jacobian):
    entropy = torch.special.entr(p / p.sum(-1, keepdim=True)).sum(-1).mean()
    entropy = torch.nan if name == "differential" else entropy
    zero = (1 - (p > 0).sum(-1) / seen).mean() if name in ("entmax-1.5", "sparsemax") else torch.nan
    one_hot = (p.amax(-1) > ONE_HOT)[..., OF].double().mean()
    one_hot = torch.nan if name in ("sigmoid", "differential") else one_hot
    values = p.sum(-1).mean(), entropy, p.amax(-1).mean(), zero, one_hot, jacobian.mean()
    print(name.ljust(18), *(f"{value:12.4g}" for value in values))""",
}


def weightings_code(parameters: Parameters, rows: Sequence[WeightingRow], dialect: Dialect, command: str) -> str:
    """Return the program that prints what is measured of each weighting."""
    usual, sample = Parameters(), rows[0]
    p = replace(parameters, **{name: getattr(usual, name) for name in NOT_OF_WEIGHTINGS}, batch=sample.draws)
    there = [row for row in rows if not row.fault]
    lines = {WEIGHTINGS[row.name].label: [shown(row.estimate(name).value) for name in MEASURES] for row in there}
    blocks = [
        sizes([p]),
        draw_function(p, dialect, False),
        norm_functions([p], dialect),
        Piece(_logits(p, dialect), defines=True),
        *(Piece(each[dialect], defines=True) for each in (_SOFTMAX, _JACOBIAN, _ENTMAX)),
        Piece(_SHOW[dialect].replace("ONE_HOT", number(ONE_HOT)).replace("[..., OF]", _several(p)), defines=True),
        Piece(_drawn(p, sample.rows, any(row.name == "forgetting" for row in there), dialect)),
        Piece(_shown(p, {row.name: row for row in there}, dialect)),
    ]
    return assembled([command], [blocks], expected(_HEADINGS, lines), dialect)


def _several(p: Parameters) -> str:
    """Return what takes the rows that see two keys or more."""
    return "" if p.mask == "none" else "[:, seen > 1]"


def _logits(p: Parameters, dialect: Dialect) -> str:
    """Return the function that computes logits; hidden keys have −∞."""
    scale = scale_code(p)
    library = "np.array({})" if dialect == "python" else "torch.tensor({}).double()"
    if rows_differ(p, p.scale):
        scale = f"{library.format(scale)}[at]"
    names = [norm_call(p, name) for name in ("q", "k")]
    wide = ".astype(np.float64)" if dialect == "python" else ".double()"
    made = f"{scale} * ({names[0]} @ {names[1]}.mT){wide}"
    if p.mask != "none":
        hide = {"python": "np.where(hidden, -np.inf, z)", "torch": "z.masked_fill(hidden, -torch.inf)"}
        return f"def logits(q, k, d_k):\n    z = {made}\n    return {hide[dialect]}"
    return f"def logits(q, k, d_k):\n    return {made}"


def _drawn(p: Parameters, rows: int, forgetting: bool, dialect: Dialect) -> str:
    """Return the lines that draw queries and keys, of which some rows are taken, and compute their logits."""
    library = "np" if dialect == "python" else "torch"
    spread = f"np.linspace(0, m - 1, {rows}).round().astype(int)"
    at = f"{library}.arange(m)" if rows == p.n_queries else spread
    lines = [vectors(p, dialect)]
    if forgetting or rows != p.n_queries or p.mask != "none":
        taken = at if dialect == "python" or rows == p.n_queries else f"torch.from_numpy({spread})"
        lines.append(f"at = {taken}  # rows")
    if rows != p.n_queries:
        lines.append("q = q[:, at]")
    seen = "seen = n"
    if p.mask != "none":
        lines.append(mask(p, dialect).replace("  #", "[at]  #"))
        seen = "seen = (~hidden).sum(-1)  # keys of each row"
    return "\n".join([*lines, seen, "z = logits(q, k, d_k)"])


def _shown(p: Parameters, rows: dict[str, WeightingRow], dialect: Dialect) -> str:
    """Return the lines that compute the weights of each weighting and the norms of its Jacobian, and show them."""
    library = "np" if dialect == "python" else "torch"
    own = f"{library}.linalg.norm(p * (1 - p), {'axis' if library == 'np' else 'dim'}=-1)"
    lines = [
        'show("softmax", softmax(z), norm(softmax(z)))',
        'show("softmax and sink", softmax(z, 0.0), norm(softmax(z, 0.0)))  # a logit of 0 belongs to no key',
        f"p = (1 + {library}.tanh((z - log(n)) / 2)) / 2  # the logistic function of z - ln n",
        f'show("sigmoid", p, {own})',
        'show("entmax-1.5", *entmax(z, 2))',
        'show("sparsemax", *entmax(z, 1))',
    ]
    if "differential" in rows:
        factor = rows["differential"].setting
        lines += [
            f"half, factor = d_k // 2, {factor:.6g}",
            "p = softmax(logits(q[..., :half], k[..., :half], half))",
            "r = softmax(logits(q[..., half:], k[..., half:], half))",
            f'show("differential", p - factor * r, {library}.hypot(norm(p), factor * norm(r)))',
        ]
    if "forgetting" in rows:
        ends = "np.minimum(at, n - 1)" if dialect == "python" else "at.clamp(max=n - 1)"
        age = f"({ends}[:, None] - {library}.arange(n))"
        age = f"np.maximum{age[:-1]}, 0)" if dialect == "python" else f"{age}.clamp(min=0)"
        lines += [f"p = softmax(z + {age} * log({GATE:.10g}))", 'show("forgetting", p, norm(p))']
    top = "z.max((-2, -1), keepdims=True)" if dialect == "python" else "z.amax((-2, -1), keepdim=True)"
    lines += [
        f"clip = {CLIP:g} / {top}.clip({CLIP:g})  # 1 up to {CLIP:g}, of each draw",
        'show("QK-Clip", softmax(clip * z), clip[..., 0] * norm(softmax(clip * z)))',
    ]
    return "\n".join(lines)

"""The program of a comparison of weightings: what makes weights of the same logits, written out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....lab.weighting.results import CLIP, GATE, MEASURES, NOT_OF_WEIGHTINGS, WEIGHTINGS, WeightingRow
from ....parameters import Parameters, rows_differ
from ....statistics.catalogue import ONE_HOT
from ..attention import mask, norm_call, norm_functions
from ..drawing import draw_function, vectors
from ..program import Dialect, Piece, assembled, expected, number, shown
from ..rule import scale_code
from ..setting import sizes

_HEADINGS = ("sum of p", "entropy", "max weight", "zero weights", "one-hot rows", "Jacobian")

_FUNCTIONS: dict[Dialect, str] = {
    "python": """\
def softmax(z, sink=-np.inf):
    top = np.maximum(z.max(-1, keepdims=True), sink)
    e = np.exp(z - top)
    return e / (e.sum(-1, keepdims=True) + np.exp(sink - top))


def entmax(z, power):
    \"\"\"max(z / power - t, 0) ** power, with t such that they sum to 1: by bisection.\"\"\"
    z = (z - z.max(-1, keepdims=True)) / power
    low, high = np.full_like(z[..., :1], -1), np.zeros_like(z[..., :1])
    for _ in range(60):
        t = (low + high) / 2
        more = (np.maximum(z - t, 0) ** power).sum(-1, keepdims=True) > 1
        low, high = np.where(more, t, low), np.where(more, high, t)
    return np.maximum(z - high, 0) ** power


def of_softmax(p):
    \"\"\"The norm of diag(p) - p pT.\"\"\"
    return np.sqrt((p**2 * ((1 - p) ** 2 + (p**2).sum(-1, keepdims=True) - p**2)).sum(-1))


def of_entmax(s):
    \"\"\"The norm of diag(s) - s sT / sum(s).\"\"\"
    one, two, three = s.sum(-1), (s**2).sum(-1), (s**3).sum(-1)
    return np.sqrt(np.maximum(two - 2 * three / one + (two / one) ** 2, 0))""",
    "torch": """\
def softmax(z, sink=-torch.inf):
    return torch.cat([z, torch.full_like(z[..., :1], sink)], -1).softmax(-1)[..., :-1]


def entmax(z, power):
    \"\"\"max(z / power - t, 0) ** power, with t such that they sum to 1: by bisection.\"\"\"
    z = (z - z.amax(-1, keepdim=True)) / power
    low, high = torch.full_like(z[..., :1], -1), torch.zeros_like(z[..., :1])
    for _ in range(60):
        t = (low + high) / 2
        more = ((z - t).clamp(min=0) ** power).sum(-1, keepdim=True) > 1
        low, high = torch.where(more, t, low), torch.where(more, high, t)
    return (z - high).clamp(min=0) ** power


def of_softmax(p):
    \"\"\"The norm of diag(p) - p pT.\"\"\"
    return (p**2 * ((1 - p) ** 2 + (p**2).sum(-1, keepdim=True) - p**2)).sum(-1).sqrt()


def of_entmax(s):
    \"\"\"The norm of diag(s) - s sT / sum(s).\"\"\"
    one, two, three = s.sum(-1), (s**2).sum(-1), (s**3).sum(-1)
    return (two - 2 * three / one + (two / one) ** 2).clamp(min=0).sqrt()""",
}

_LOOP: dict[Dialect, str] = {
    "python": """\
for name, (p, jacobian) in found.items():
    total = p.sum(-1)
    shares = np.maximum(p / total[..., None], 1e-300)
    values = [
        total.mean(),
        np.nan if name == "differential" else -(shares * np.log(shares)).sum(-1).mean(),
        p.max(-1).mean(),
        (1 - (p > 0).sum(-1) / seen).mean() if name in ("entmax-1.5", "sparsemax") else np.nan,
        np.nan if name in ("sigmoid", "differential") else (p.max(-1) > ONE_HOT)[..., OF].mean(),
        jacobian.mean(),
    ]
    print(f"{name:18}", *(f"{value:12.4g}" for value in values))""",
    "torch": """\
for name, (p, jacobian) in found.items():
    total = p.sum(-1)
    values = [
        total.mean(),
        torch.nan if name == "differential" else torch.special.entr(p / total[..., None]).sum(-1).mean(),
        p.amax(-1).mean(),
        (1 - (p > 0).sum(-1) / seen).mean() if name in ("entmax-1.5", "sparsemax") else torch.nan,
        torch.nan if name in ("sigmoid", "differential") else (p.amax(-1) > ONE_HOT)[..., OF].double().mean(),
        jacobian.mean(),
    ]
    print(f"{name:18}", *(f"{value:12.4g}" for value in values))""",
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
        Piece(_FUNCTIONS[dialect], defines=True),
        Piece(_drawn(p, sample.rows, dialect)),
        Piece(_found(p, {row.name: row for row in there}, dialect)),
        Piece(_LOOP[dialect].replace("ONE_HOT", number(ONE_HOT)).replace("[..., OF]", _several(p))),
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


def _drawn(p: Parameters, rows: int, dialect: Dialect) -> str:
    """Return the lines that draw queries and keys, of which some rows are taken, and compute their logits."""
    library = "np" if dialect == "python" else "torch"
    spread = f"np.linspace(0, m - 1, {rows}).round().astype(int)"
    at = f"{library}.arange(m)" if rows == p.n_queries else spread
    lines = [
        vectors(p, dialect),
        f"at = {at if dialect == 'python' or rows == p.n_queries else f'torch.from_numpy({spread})'}  # rows",
        "q = q[:, at]",
    ]
    seen = "seen = n"
    if p.mask != "none":
        lines.append(mask(p, dialect).replace("  #", "[at]  #"))
        seen = "seen = (~hidden).sum(-1)  # keys of each row"
    return "\n".join([*lines, seen, "z = logits(q, k, d_k)"])


def _found(p: Parameters, rows: dict[str, WeightingRow], dialect: Dialect) -> str:
    """Return the lines that compute the weights of each weighting and the norms of its Jacobian."""
    library = "np" if dialect == "python" else "torch"
    lines = [
        "p, found = softmax(z), {}",
        'found["softmax"] = p, of_softmax(p)',
        "p = softmax(z, 0.0)  # a logit of 0 belongs to no key",
        'found["softmax and sink"] = p, of_softmax(p)',
        f"p = (1 + {library}.tanh((z - log(n)) / 2)) / 2  # the logistic function of z - ln n",
        f'found["sigmoid"] = p, {library}.linalg.norm(p * (1 - p), {"axis" if library == "np" else "dim"}=-1)',
        "p = entmax(z, 2)",
        'found["entmax-1.5"] = p, of_entmax(p**0.5)',
        "p = entmax(z, 1)",
        'found["sparsemax"] = p, of_entmax((p > 0) * 1.0)',
    ]
    if "differential" in rows:
        factor = rows["differential"].setting
        lines += [
            f"half, factor = d_k // 2, {factor:.6g}",
            "p, r = softmax(logits(q[..., :half], k[..., :half], half)), "
            "softmax(logits(q[..., half:], k[..., half:], half))",
            f'found["differential"] = p - factor * r, {library}.hypot(of_softmax(p), factor * of_softmax(r))',
        ]
    if "forgetting" in rows:
        ends = "np.minimum(at, n - 1)" if dialect == "python" else "at.clamp(max=n - 1)"
        age = f"({ends}[:, None] - {library}.arange(n))"
        age = f"np.maximum{age[:-1]}, 0)" if dialect == "python" else f"{age}.clamp(min=0)"
        lines += [f"p = softmax(z + {age} * log({GATE:.10g}))", 'found["forgetting"] = p, of_softmax(p)']
    top = "z.max((-2, -1), keepdims=True)" if dialect == "python" else "z.amax((-2, -1), keepdim=True)"
    clip = f"np.where(top > {CLIP:g}, {CLIP:g} / top, 1)"
    if dialect == "torch":
        clip = f"torch.where(top > {CLIP:g}, {CLIP:g} / top, 1.0)"
    lines += [
        f"top = {top}",
        f"clip = {clip}  # of each draw",
        "p = softmax(clip * z)",
        'found["QK-Clip"] = p, clip[..., 0] * of_softmax(p)',
    ]
    return "\n".join(lines)

"""Functions of programs for some of the measurements that the Lab does not make (core/claims/trials.py)."""

from __future__ import annotations

from collections.abc import Iterable

from ....claims.claim import FromTrial
from ....claims.trials import furthest_from_normal
from ..program import Dialect, number
from .counted import COUNTED, Functions
from .layered import LAYERED
from .races import RACED, is_raced, race_expression
from .toured import TOURED

# What these functions share; the numbers drawn are those of the measurements.
_GENERATOR = """\
def generator(*stream):  # as in attn-tui
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(0, spawn_key=stream)))"""
_SCORES: dict[Dialect, str] = {
    "python": """\
def scores(stream, draws, m, n, d_k):
    rng = generator(*stream)
    q, k = (rng.standard_normal((draws, size, d_k), dtype=np.float32) for size in (m, n))
    return q @ k.mT""",
    "torch": """\
def scores(stream, draws, m, n, d_k):
    rng = generator(*stream)
    q, k = (torch.from_numpy(rng.standard_normal((draws, size, d_k), dtype=np.float32)) for size in (m, n))
    return q @ k.mT""",
}
_SOFTMAX: dict[Dialect, str] = {
    "python": """\
def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)""",
    "torch": """\
def softmax(z):
    return z.softmax(-1)""",
}


TRIALS: dict[str, Functions] = (
    COUNTED
    | LAYERED
    | TOURED
    | {
        "largest_of_matrix": Functions(
            """\
def largest_of_matrix(d_k, size, scale):
    return softmax(scale * scores((4, d_k), 2048, size, size, d_k)).max((1, 2)).mean()""",
            """\
def largest_of_matrix(d_k, size, scale):
    return softmax(scale * scores((4, d_k), 2048, size, size, d_k)).amax((1, 2)).mean()""",
        ),
        "live_entries": Functions(
            """\
def live_entries(d_k, n, scale):
    p = softmax(scale * scores((3, d_k, n), 64, 32, n, d_k))
    return (p * (1 - p) > 0.01).mean()""",
            """\
def live_entries(d_k, n, scale):
    p = softmax(scale * scores((3, d_k, n), 64, 32, n, d_k))
    return (p * (1 - p) > 0.01).double().mean()""",
        ),
        "std_of_one_run": Functions(
            """\
@cache
def std_of_one_run(d_k, batch, tokens, tolerance):
    \"\"\"Of 2000 runs, each of which prints the standard deviation of a few scores.\"\"\"
    std = scores((5,), 2000 * batch, tokens, tokens, d_k).reshape(2000, -1).std(1, ddof=1)
    root = np.sqrt((std**2).mean())
    return {"near": (abs(std - d_k**0.5) <= tolerance).mean(), "unscaled": root, "scaled": root / d_k**0.5}""",
            """\
@cache
def std_of_one_run(d_k, batch, tokens, tolerance):
    \"\"\"Of 2000 runs, each of which prints the standard deviation of a few scores.\"\"\"
    std = scores((5,), 2000 * batch, tokens, tokens, d_k).reshape(2000, -1).double().std(1)
    root = (std**2).mean() ** 0.5
    near = ((std - d_k**0.5).abs() <= tolerance).double().mean()
    return {"near": near, "unscaled": root, "scaled": root / d_k**0.5}""",
        ),
        "first_or_last": Functions(
            """\
@cache
def first_or_last(d_k, n):
    s = scores((6, n), 64, 64, n, d_k)
    p, at = softmax(s), s.argmax(-1)
    return {"largest": ((at == 0) | (at == n - 1)).mean(), "weight": (p[..., 0] + p[..., -1]).mean()}""",
            """\
@cache
def first_or_last(d_k, n):
    s = scores((6, n), 64, 64, n, d_k)
    p, at = softmax(s), s.argmax(-1)
    return {"largest": ((at == 0) | (at == n - 1)).double().mean(), "weight": (p[..., 0] + p[..., -1]).mean()}""",
        ),
        "cosine": Functions(
            """\
def entropy(z):
    p = softmax(z)
    return -(p * np.log(np.maximum(p, 1e-30))).sum(-1).mean()


@cache
def cosine(d_k, n):
    rng = generator(7)
    q, k = (rng.standard_normal((64, size, d_k), dtype=np.float32) for size in (64, n))
    s = q @ k.mT
    cos = s / np.linalg.norm(q, axis=-1)[..., None] / np.linalg.norm(k, axis=-1)[:, None]
    return {"std": np.sqrt((cos**2).mean()), "entropy": entropy(cos) - entropy(s / d_k**0.5)}""",
            """\
def entropy(z):
    return torch.special.entr(z.double().softmax(-1)).sum(-1).mean()


@cache
def cosine(d_k, n):
    rng = generator(7)
    q, k = (torch.from_numpy(rng.standard_normal((64, size, d_k), dtype=np.float32)) for size in (64, n))
    s = q @ k.mT
    cos = s / q.norm(dim=-1)[..., None] / k.norm(dim=-1)[:, None]
    return {"std": (cos**2).mean() ** 0.5, "entropy": entropy(cos) - entropy(s / d_k**0.5)}""",
        ),
        "distance_from_normal": Functions(
            """\
def distance_from_normal(d_k, at, sign):  # where the laws are furthest apart
    inside = (abs(scores((1, d_k), 64, 64, 128, d_k)) <= at * d_k**0.5).mean()
    return sign * (inside - erf(at / 2**0.5)) / 2""",
            """\
def distance_from_normal(d_k, at, sign):  # where the laws are furthest apart
    inside = (scores((1, d_k), 64, 64, 128, d_k).abs() <= at * d_k**0.5).double().mean()
    return sign * (inside - erf(at / 2**0.5)) / 2""",
        ),
        "rows_within": Functions(
            """\
def rows_within(d_k, n, deviations):
    return (abs(scores((2, d_k, n), 64, 64, n, d_k)).max(2) <= deviations * d_k**0.5).mean()""",
            """\
def rows_within(d_k, n, deviations):
    largest = scores((2, d_k, n), 64, 64, n, d_k).abs().amax(2)
    return (largest <= deviations * d_k**0.5).double().mean()""",
        ),
        "exp_overflow": Functions(
            """\
def exp_overflow(d_k, dtype, subtract_largest):
    s = scores((9,), 64, 64, 128, d_k)
    s = s - s.max(2, keepdims=True) if subtract_largest else s
    with np.errstate(over="ignore"):
        return np.isinf(np.exp(s.astype({"bfloat16": ml_dtypes.bfloat16}.get(dtype, dtype)))).mean()""",
            """\
def exp_overflow(d_k, dtype, subtract_largest):
    s = scores((9,), 64, 64, 128, d_k)
    s = s - s.amax(2, keepdim=True) if subtract_largest else s
    return s.to(getattr(torch, dtype)).exp().isinf().double().mean()""",
        ),
        "gradient_growth": Functions(
            """\
@cache
def gradient_growth(first, last, tokens, d_v):
    \"\"\"Exponents of d_k with which the gradient of q grows, for L = (g * output).sum().\"\"\"
    found = {}
    for d_k in (first, last):
        rng = generator(10, d_k)
        q, k, g, v = (rng.standard_normal((2400, tokens, d), dtype=np.float32) for d in (d_k, d_k, d_v, d_v))
        for name, scale in ("unscaled", 1.0), ("scaled", d_k**-0.5):
            p, a = softmax(scale * (q @ k.mT)), g @ v.mT
            dq = scale * (p * (a - (p * a).sum(-1, keepdims=True))) @ k
            squares = (dq**2).sum(2, dtype=np.float64).reshape(24, -1)
            for what, of in (f"{name} RMS", squares.mean(1)), (f"{name} median", np.median(squares, 1)):
                found.setdefault(what, []).append(np.log(of).mean() / 2)
    return {name: (high - low) / log(last / first) for name, (low, high) in found.items()}""",
            """\
@cache
def gradient_growth(first, last, tokens, d_v):
    \"\"\"Exponents of d_k with which the gradient of q grows, for L = (g * output).sum().\"\"\"
    found = {}
    for d_k in (first, last):
        rng = generator(10, d_k)
        shapes = [(2400, tokens, d) for d in (d_k, d_k, d_v, d_v)]
        q, k, g, v = (torch.from_numpy(rng.standard_normal(shape, dtype=np.float32)) for shape in shapes)
        for name, scale in ("unscaled", 1.0), ("scaled", d_k**-0.5):
            x = q.clone().requires_grad_()
            (dq,) = torch.autograd.grad((scale * (x @ k.mT)).softmax(-1) @ v, x, g)
            squares = (dq.double() ** 2).sum(2).reshape(24, -1)
            for what, of in (f"{name} RMS", squares.mean(1)), (f"{name} median", squares.quantile(0.5, 1)):
                found.setdefault(what, []).append(of.log().mean() / 2)
    return {name: (high - low) / log(last / first) for name, (low, high) in found.items()}""",
        ),
        "most_responsive": Functions(
            """\
def most_responsive(d_k, n):
    \"\"\"The standard deviation of logits at which the Jacobian is largest: of a parabola through seven points.\"\"\"
    s, at = scores((8, n), 32, max(32, 4096 // n), n, d_k) / d_k**0.5, np.log(np.geomspace(0.8, 9, 20))
    curve = []
    for x in at:
        p = softmax(np.exp(x) * s)
        curve.append((p**2 * ((1 - p) ** 2 + (p**2).sum(-1, keepdims=True) - p**2)).sum(-1).mean())
    top = min(max(np.argmax(curve), 3), len(at) - 4)
    bend, slope, _ = np.polyfit(at[top - 3 : top + 4], curve[top - 3 : top + 4], 2)
    return np.exp(-slope / (2 * bend))""",
            """\
def most_responsive(d_k, n):
    \"\"\"The standard deviation of logits at which the Jacobian is largest: of a parabola through seven points.\"\"\"
    s, at = scores((8, n), 32, max(32, 4096 // n), n, d_k) / d_k**0.5, np.log(np.geomspace(0.8, 9, 20))
    curve = []
    for x in at:
        p = softmax(np.exp(x) * s)
        curve.append((p**2 * ((1 - p) ** 2 + (p**2).sum(-1, keepdim=True) - p**2)).sum(-1).double().mean().item())
    top = min(max(np.argmax(curve), 3), len(at) - 4)
    bend, slope, _ = np.polyfit(at[top - 3 : top + 4], curve[top - 3 : top + 4], 2)
    return np.exp(-slope / (2 * bend))""",
        ),
        "additive": Functions(
            """\
@cache
def additive(d, v_std):
    rng, found = generator(11, d), []
    for _ in range(24):
        w_q, w_k = (rng.standard_normal((d, d), dtype=np.float32) / np.float32(d**0.5) for _ in range(2))
        q, k = (rng.standard_normal((size, d), dtype=np.float32) for size in (16, 64))
        v = rng.standard_normal(d, dtype=np.float32) * np.float32(v_std)
        found.append(np.tanh((q @ w_q)[:, None] + k @ w_k) @ v)
    s = np.array(found)
    return {"std": np.sqrt(s.var(2, ddof=1).mean()), "inside": (abs(s) <= 1).mean()}""",
            """\
@cache
def additive(d, v_std):
    rng, found = generator(11, d), []
    for _ in range(24):
        shapes = (d, d), (d, d), (16, d), (64, d), (d,)
        w_q, w_k, q, k, v = (torch.from_numpy(rng.standard_normal(each, dtype=np.float32)) for each in shapes)
        found.append(((q @ w_q / d**0.5)[:, None] + k @ w_k / d**0.5).tanh() @ (v * v_std))
    s = torch.stack(found)
    return {"std": s.var(2).mean().sqrt(), "inside": (s.abs() <= 1).double().mean()}""",
        ),
        "raced": Functions(RACED["python"], RACED["torch"]),
    }
)


_NOT_MADE = {"all_heads": ("alignment", "dimensions")}  # parts that a program does not return


def trial_functions(sources: Iterable[FromTrial], dialect: Dialect) -> str:
    """Return the functions that these measurements need."""
    names = dict.fromkeys(each.trial for each in sources)
    texts = [TRIALS[name].python if dialect == "python" else TRIALS[name].torch for name in names]
    joined = "\n".join(texts)
    shared = [
        text
        for name, text in (("generator(", _GENERATOR), ("scores(", _SCORES[dialect]), ("softmax(", _SOFTMAX[dialect]))
        if name in joined or (name == "generator(" and "scores(" in joined)
    ]
    return "\n\n\n".join([*shared, *texts])


def has_code(source: FromTrial) -> bool:
    """Return whether a function makes this measurement."""
    if source.part in _NOT_MADE.get(source.trial, ()):
        return False
    return source.trial in TRIALS and (source.trial != "raced" or is_raced(source.arguments[0], source.part))


def trial_expression(source: FromTrial) -> str:
    """Return the expression of a measurement, or of a part of it."""
    arguments: tuple[object, ...] = source.arguments
    if source.trial == "raced":
        return race_expression(source.arguments[0], source.part)
    if source.trial == "distance_from_normal":
        at, gap = furthest_from_normal(source.arguments[0])
        arguments = (*arguments, float(f"{at:.10g}"), 1 if gap > 0 else -1)
    texts = [number(float(each)) if isinstance(each, float) else repr(each) for each in arguments]
    call = f"{source.trial}({', '.join(texts)})"
    return f"{call}['{source.part}']" if source.part else call

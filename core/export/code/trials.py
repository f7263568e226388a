"""Functions of programs for some of the measurements that the Lab does not make (core/claims/trials.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...claims.claim import FromTrial
from .program import Dialect, number

# Scores draw the same numbers as those measurements do.
_SHARED: dict[Dialect, str] = {
    "python": """\
def vectors(stream, draws, m, n, d_k):
    \"\"\"Standard normal queries and keys, as in attn-tui.\"\"\"
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(0, spawn_key=stream)))
    return [rng.standard_normal((draws, size, d_k), dtype=np.float32) for size in (m, n)]


def scores(stream, draws, m, n, d_k):
    q, k = vectors(stream, draws, m, n, d_k)
    return q @ k.mT


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)""",
    "torch": """\
def vectors(stream, draws, m, n, d_k):
    \"\"\"Standard normal queries and keys, as in attn-tui.\"\"\"
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(0, spawn_key=stream)))
    drawn = (rng.standard_normal((draws, size, d_k), dtype=np.float32) for size in (m, n))
    return [torch.from_numpy(each) for each in drawn]


def scores(stream, draws, m, n, d_k):
    q, k = vectors(stream, draws, m, n, d_k)
    return q @ k.mT


def softmax(z):
    return z.softmax(-1)""",
}


class _Code(NamedTuple):
    """A function that returns the result, or its parts by name, in both dialects."""

    python: str
    torch: str


TRIALS: dict[str, _Code] = {
    "largest_of_matrix": _Code(
        """\
def largest_of_matrix(d_k, size, scale):
    return softmax(scale * scores((4, d_k), 2048, size, size, d_k)).max((1, 2)).mean()""",
        """\
def largest_of_matrix(d_k, size, scale):
    return softmax(scale * scores((4, d_k), 2048, size, size, d_k)).amax((1, 2)).mean()""",
    ),
    "live_entries": _Code(
        """\
def live_entries(d_k, n, scale):
    p = softmax(scale * scores((3, d_k, n), 64, 32, n, d_k))
    return (p * (1 - p) > 0.01).mean()""",
        """\
def live_entries(d_k, n, scale):
    p = softmax(scale * scores((3, d_k, n), 64, 32, n, d_k))
    return (p * (1 - p) > 0.01).double().mean()""",
    ),
    "std_of_one_run": _Code(
        """\
def std_of_one_run(d_k, batch, tokens, tolerance):
    \"\"\"Of 2000 runs, each of which prints the standard deviation of a few scores.\"\"\"
    std = scores((5,), 2000 * batch, tokens, tokens, d_k).reshape(2000, -1).std(1, ddof=1)
    root = np.sqrt((std**2).mean())
    return {"near": (abs(std - d_k**0.5) <= tolerance).mean(), "unscaled": root, "scaled": root / d_k**0.5}""",
        """\
def std_of_one_run(d_k, batch, tokens, tolerance):
    \"\"\"Of 2000 runs, each of which prints the standard deviation of a few scores.\"\"\"
    std = scores((5,), 2000 * batch, tokens, tokens, d_k).reshape(2000, -1).double().std(1)
    root = (std**2).mean() ** 0.5
    near = ((std - d_k**0.5).abs() <= tolerance).double().mean()
    return {"near": near, "unscaled": root, "scaled": root / d_k**0.5}""",
    ),
    "first_or_last": _Code(
        """\
def first_or_last(d_k, n):
    s = scores((6, n), 64, 64, n, d_k)
    p, at = softmax(s), s.argmax(-1)
    return {"largest": ((at == 0) | (at == n - 1)).mean(), "weight": (p[..., 0] + p[..., -1]).mean()}""",
        """\
def first_or_last(d_k, n):
    s = scores((6, n), 64, 64, n, d_k)
    p, at = softmax(s), s.argmax(-1)
    return {"largest": ((at == 0) | (at == n - 1)).double().mean(), "weight": (p[..., 0] + p[..., -1]).mean()}""",
    ),
    "cosine": _Code(
        """\
def entropy(z):
    p = softmax(z)
    return -(p * np.log(np.maximum(p, 1e-30))).sum(-1).mean()


def cosine(d_k, n):
    q, k = vectors((7,), 64, 64, n, d_k)
    s = q @ k.mT
    cos = s / np.linalg.norm(q, axis=-1)[..., None] / np.linalg.norm(k, axis=-1)[:, None]
    return {"std": np.sqrt((cos**2).mean()), "entropy": entropy(cos) - entropy(s / d_k**0.5)}""",
        """\
def entropy(z):
    return torch.special.entr(z.double().softmax(-1)).sum(-1).mean()


def cosine(d_k, n):
    q, k = vectors((7,), 64, 64, n, d_k)
    s = q @ k.mT
    cos = s / q.norm(dim=-1)[..., None] / k.norm(dim=-1)[:, None]
    return {"std": (cos**2).mean() ** 0.5, "entropy": entropy(cos) - entropy(s / d_k**0.5)}""",
    ),
}


def trial_functions(sources: Iterable[FromTrial], dialect: Dialect) -> str:
    """Return the functions that these measurements need."""
    names = dict.fromkeys(each.trial for each in sources)
    texts = [TRIALS[name].python if dialect == "python" else TRIALS[name].torch for name in names]
    return "\n\n\n".join([_SHARED[dialect], *texts])


def trial_expression(source: FromTrial) -> str:
    """Return the expression of a measurement, or of a part of it."""
    call = f"{source.trial}({', '.join(number(float(each)) for each in source.arguments)})"
    return f"{call}['{source.part}']" if source.part else call

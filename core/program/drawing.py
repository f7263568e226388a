"""Random queries, keys and values: programs draw the same numbers as the lab.

Components come in chunks of 64, each from a generator seeded by (seed, side, draw, chunk), as `core/lab/sampling.py`
draws them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..attention.computation import Computation
from ..parameters import ComponentLaw, Parameters
from .attention import is_rounded, store
from .text import Piece, number

LARGEST = 1 << 26  # scores of all draws that a program computes at once; of larger settings it takes fewer draws
_COMPONENTS = 150_000_000  # of queries and keys
_TANHS = 1 << 28  # of additive scores, which a program computes for one query after another

# A chunk of standardised components, with `rng` and the number of `vectors`.
_SAMPLE: dict[ComponentLaw, str] = {
    "normal": "rng.standard_normal((64, vectors), dtype=np.float32)",
    "uniform": "(rng.random((64, vectors), dtype=np.float32) - 0.5) * 12**0.5",
    "laplace": "rng.laplace(scale=0.5**0.5, size=(64, vectors)).astype(np.float32)",
    "rademacher": "rng.integers(0, 2, (64, vectors), dtype=np.int8).astype(np.float32) * 2 - 1",
    "student_t": "(rng.standard_t({nu}, (64, vectors)) * ({nu_less} / {nu}) ** 0.5).astype(np.float32)",
}
_SQUARE = """\
def square(rng, size):  # normal entries, drawn shell by shell: a larger matrix contains this one
    w = np.empty((size, size), np.{dtype})
    for i in range(size):
        shell = rng.standard_normal(2 * i + 1) * size**-0.5{gain}
        w[:i, i], w[i, : i + 1] = shell[:i], shell[i:]
    return w"""
_VECTOR = """\
def vector(rng, size):
    return (rng.standard_normal(size) * size**-0.5{gain}).astype(np.{dtype})"""


def draws_of(p: Parameters) -> int:
    """Return the draws that a program takes: all, unless they are too large."""
    pairs, vectors = p.n_queries * p.n_keys, (p.n_queries + p.n_keys) * p.d_k
    most = min(LARGEST // pairs, _COMPONENTS // vectors)
    if p.mechanism == "additive":
        most = min(most, _TANHS // (pairs * p.d_k), LARGEST // (p.n_keys * p.d_k))
    return min(p.batch, max(most, 2))


def remarks(sides: Sequence[Parameters]) -> list[str]:
    """Return what is to be said about the draws of a program."""
    fewer = next((p for p in sides if draws_of(p) < p.batch), None)
    if fewer is None:
        return []
    said = "The first {} draws; the expected values are of all {}, which take longer, or more memory."
    return [said.format(draws_of(fewer), fewer.batch)]


def draw_functions(p: Parameters, gradients: bool) -> Sequence[Piece]:
    """Return the functions that draw vectors and learned weights.

    With `gradients`, values and gradients are drawn too, which are normal whatever the law of components is.
    """
    law, normal = (_SAMPLE[name].format(nu=p.degrees_of_freedom, nu_less=p.degrees_of_freedom - 2)
                   for name in (p.components, "normal"))  # fmt: skip
    drawn = f"    x = [{law} for rng in rngs]"
    if gradients and p.components != "normal":
        drawn = f"    if stream < 3:\n    {drawn}\n    else:  # values, and the gradient of the output\n"
        drawn += f"        x = [{normal} for rng in rngs]"
    exact = ".astype(np.float64)" if p.precision == "float64" else ""
    lines = [
        "def draw(stream, vectors, width):  # a generator for each draw and every 64 components, as in attn-tui",
        "    seeds = [SeedSequence(seed, spawn_key=(stream, *at)) for at in np.ndindex(batch, -(-width // 64))]",
        "    rngs = [Generator(SFC64(each)) for each in seeds]",
        drawn,
        f"    return np.reshape(x, (batch, -1, vectors))[:, :width].mT{exact}",
    ]
    gain = "" if p.gain == 1 else f" * {number(p.gain)}"
    dtype = "float64" if p.precision == "float64" else "float32"
    square = _SQUARE.format(gain=gain * (p.mechanism == "bilinear"), dtype=dtype)
    learned = {"bilinear": [square], "additive": [square, _VECTOR.format(gain=gain, dtype=dtype)]}
    texts = "\n".join(lines), "\n\n\n".join(learned.get(p.mechanism, ()))
    return [Piece(text, defines=True, drawn=True) for text in texts]


def drawn_lines(p: Parameters, c: Computation, gradients: bool) -> str:
    """Return the lines that draw queries, keys and learned weights, and say which keys are hidden."""
    wide = (p.mean_q or p.mean_k) and p.precision == "float32" and p.mechanism == "dot_product"
    precise = ".astype(np.float64)" if wide else ""
    lines = [f"q, k = draw(0, m, d_k){precise}, draw(1, n, d_k){precise}"]
    if p.correlation:
        size, sign = number(abs(p.correlation)), "+" if p.correlation > 0 else "-"
        lines += [
            f"shared = {size}**0.5 * draw(2, 1, d_k)  # what all q and k have in common: correlation "
            f"{number(p.correlation)}",
            f"q, k = (1 - {size}) ** 0.5 * q + shared, (1 - {size}) ** 0.5 * k {sign} shared",
        ]
    placed = [_placed("q", p.mean_q, p.std_q), _placed("k", p.mean_k, p.std_k)]
    lines += [f"q, k = {', '.join(placed)}"] if placed != ["q", "k"] else []
    stored = f"{store(c)}({{}})" if is_rounded(c) else "{}"
    rng = "rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(5,)))"
    if p.mechanism == "bilinear":
        lines += [rng, f"w = {stored.format('square(rng, d_k)')}"]
    elif p.mechanism == "additive":
        both = (stored.format(f"square(rngs[{at}], d_k)") for at in (0, 1))
        v = "vector(rngs[2], d_k)"
        v = f"{stored.format(f'{v}[None]')}[0]" if is_rounded(c) else v
        lines += [rng, "rngs = rng.spawn(3)", f"w_q, w_k = {', '.join(both)}", f"w_v = {v}"]
    lines += ["hidden = np.arange(n) > np.arange(m)[:, None]  # the causal mask"] if p.mask != "none" else []
    if gradients:
        lines.append("v, g = draw(3, n, d_v), draw(4, m, d_v)  # values, and the gradient of the output")
    return "\n".join(lines)


def _placed(name: str, mean: float, std: float) -> str:
    found = name if std == 1 else f"{number(std)} * {name}"
    return found if mean == 0 else f"{number(mean)} + {found}"

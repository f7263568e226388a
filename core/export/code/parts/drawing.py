"""Random queries, keys and values: the program draws the same numbers as the lab.

Components come in chunks of 64, each from a generator seeded by (seed, side, draw, chunk), as `core/lab/sampling.py`
draws them.
"""

from __future__ import annotations

from ....parameters import ComponentLaw, Parameters
from ..program import Dialect, Piece, number
from .rounding import is_rounded, store_function

_LARGEST = 1 << 26  # scores of all draws that a program computes at once; of larger settings it takes fewer draws
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


def draws_of(p: Parameters) -> int:
    """Return the draws that a program takes: all, unless they are too large."""
    pairs, vectors = p.n_queries * p.n_keys, (p.n_queries + p.n_keys) * p.d_k
    most = min(_LARGEST // pairs, _COMPONENTS // vectors)
    if p.mechanism == "additive":
        most = min(most, _TANHS // (pairs * p.d_k), _LARGEST // (p.n_keys * p.d_k))
    return min(p.batch, max(most, 2))


def draw_function(p: Parameters, dialect: Dialect, loss: bool) -> Piece:
    """Return the function that draws vectors; with `loss`, also the normal values whatever the law is."""
    made = "np.reshape(x, (batch, -1, vectors))[:, :width].mT"
    if dialect == "torch":
        made = "torch.from_numpy(np.reshape(x, (batch, -1, vectors)))[:, :width].mT"
    if p.precision == "float64":
        made += ".astype(np.float64)" if dialect == "python" else ".double()"
    lines = [
        "def draw(stream, vectors, width):  # a generator for each draw and every 64 components, as in attn-tui",
        "    seeds = [SeedSequence(seed, spawn_key=(stream, *at)) for at in np.ndindex(batch, -(-width // 64))]",
        *_drawn(p, loss),
        f"    return {made}",
    ]
    return Piece("\n".join(lines), defines=True)


def _drawn(p: Parameters, loss: bool) -> list[str]:
    """Return the lines that draw chunks from the seeds; values and gradients are normal whatever the law is."""
    if p.components == "normal":
        return [f"    x = [{_sample(p, 'normal').replace('rng.', 'Generator(SFC64(each)).')} for each in seeds]"]
    rngs, law = (
        "    rngs = [Generator(SFC64(each)) for each in seeds]",
        f"x = [{_sample(p, p.components)} for rng in rngs]",
    )
    if not loss:
        return [rngs, f"    {law}"]
    normal = f"        x = [{_sample(p, 'normal')} for rng in rngs]"
    return [
        rngs,
        "    if stream < 3:",
        f"        {law}",
        "    else:  # values, and the gradient of the output",
        normal,
    ]


def _sample(p: Parameters, law: ComponentLaw) -> str:
    return _SAMPLE[law].format(nu=p.degrees_of_freedom, nu_less=p.degrees_of_freedom - 2)


def vectors(p: Parameters, dialect: Dialect) -> str:
    """Return the lines that draw queries and keys, with their correlation, means and standard deviations."""
    lines = ["q, k = draw(0, m, d_k), draw(1, n, d_k)"]
    precise = {"python": ".astype(np.float64)", "torch": ".double()"}[dialect]
    if (p.mean_q or p.mean_k) and p.precision == "float32" and p.mechanism == "dot_product":
        lines = [f"q, k = draw(0, m, d_k){precise}, draw(1, n, d_k){precise}"]
    if p.correlation:
        size, sign = number(abs(p.correlation)), "+" if p.correlation > 0 else "-"
        lines += [
            f"shared = {size}**0.5 * draw(2, 1, d_k)  # what all q and k have in common: correlation "
            f"{number(p.correlation)}",
            f"q, k = (1 - {size}) ** 0.5 * q + shared, (1 - {size}) ** 0.5 * k {sign} shared",
        ]
    placed = [_placed("q", p.mean_q, p.std_q), _placed("k", p.mean_k, p.std_k)]
    if placed != ["q", "k"]:
        lines.append(f"q, k = {', '.join(placed)}")
    return "\n".join(lines)


def _placed(name: str, mean: float, std: float) -> str:
    found = name if std == 1 else f"{number(std)} * {name}"
    return found if mean == 0 else f"{number(mean)} + {found}"


_SQUARE = '''\
def square(rng, size):
    """Normal entries, drawn shell by shell: a larger matrix contains this one."""
    w = np.empty((size, size), np.float32)
    for i in range(size):
        shell = rng.standard_normal(2 * i + 1) * size**-0.5{gain}
        w[:i, i], w[i, : i + 1] = shell[:i], shell[i:]
    return {w}'''


def weights_function(p: Parameters, dialect: Dialect) -> Piece:
    """Return the function that draws a matrix of learned weights, if the mechanism has one."""
    if p.mechanism not in ("additive", "bilinear"):
        return Piece("", defines=True)
    gain = f" * {number(p.gain)}" if p.mechanism == "bilinear" and p.gain != 1 else ""
    text = _SQUARE.format(gain=gain, w=_tensor("w", dialect))
    if p.precision == "float64":
        text = text.replace("np.float32", "np.float64")
    return Piece(text, defines=True)


def weights(p: Parameters, dialect: Dialect) -> str:
    """Return the lines that draw the learned weights of the mechanism, as stored in a rounded format."""
    rng = "rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(5,)))"
    stored = is_rounded(p)
    store = f"{store_function(p)}({{}})" if stored else "{}"
    if p.mechanism == "bilinear":
        return f"{rng}\nw = {store.format('square(rng, d_k)')}"
    if p.mechanism == "additive":
        dtype = "np.float64" if p.precision == "float64" else "np.float32"
        gain = "" if p.gain == 1 else f" * {number(p.gain)}"
        v = f"(rngs[2].standard_normal(d_k) * d_k**-0.5{gain}).astype({dtype})"
        v = _tensor(v, dialect)
        return (
            f"{rng}\nrngs = rng.spawn(3)\n"
            f"w_q, w_k = {store.format('square(rngs[0], d_k)')}, {store.format('square(rngs[1], d_k)')}\n"
            f"w_v = {store.format(v + '[None]') + '[0]' if stored else v}"
        )
    return ""


def _tensor(text: str, dialect: Dialect) -> str:
    return f"torch.from_numpy({text})" if dialect == "torch" else text

"""The printer of a Computation: lines that make logits z and attention weights p of q and k.

The program has its arrays under these names: `scale`, and where there are such, `hidden`, `bias`, `sink` and the
mechanism's weights w, or w_q, w_k and w_v. Several computations share lines if only norms and factors of q and k
differ, which are then `norm` and `factor`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..attention.computation import Computation
from ..attention.formats import number_format
from ..attention.visibility import Slope
from ..scales import Normalise
from .text import CodePiece, number

NORMS: dict[Normalise, str] = {"none": "as_drawn", "rms": "rms", "layer_norm": "layer_norm", "l2": "unit"}
_NORMS: dict[Normalise, str] = {
    "rms": "x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-12)",
    "layer_norm": "(x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True).clip(1e-6)",
    "l2": "x / np.linalg.norm(x, axis=-1, keepdims=True).clip(1e-6)",
}


def is_rounded(c: Computation) -> bool:
    """Return whether numbers are rounded to a format of less than 32 bits."""
    return number_format(c.precision).rounded


def is_eager(c: Computation) -> bool:
    """Return whether scores, logits and weights are rounded, and not only what is multiplied."""
    return is_rounded(c) and c.arithmetic == "eager"


def store(c: Computation) -> str:
    """Return the name of the function that stores a tensor in the format."""
    return "stored" if number_format(c.precision).scaled else "rounded"


def stores_sink(c: Computation) -> bool:
    """Return whether the sink's logit is stored in the format."""
    return c.sink is not None and is_rounded(c) and not number_format(c.precision).scaled


def rounding_functions(c: Computation) -> CodePiece:
    """Return the functions that round numbers and store tensors, if the format needs them."""
    if not is_rounded(c):
        return CodePiece("", defines=True)
    form, library = number_format(c.precision), "np" if c.precision == "float16" else "ml_dtypes"
    text = f"def rounded(x):\n    return x.astype({library}.{c.precision}).astype(np.float32)"
    if form.scaled:
        text += (
            f"\n\n\ndef stored(x):  # with a scale that takes the largest element of a tensor to {form.largest:g}\n"
            f"    size = np.abs(x).max((-2, -1), keepdims=True) / {form.largest:g}\n"
            "    return rounded(x / size) * size"
        )
    return CodePiece(text, defines=True)


def norm_functions(several: Sequence[Computation]) -> CodePiece:
    """Return the functions that normalise queries and keys."""
    used: dict[Normalise, None] = dict.fromkeys(how for c in several for how in c.norms if how != "none")
    cosine = several[0].mechanism == "cosine"  # a gain before it makes no difference
    if cosine:
        used["l2"] = None
    gain = "" if several[0].gain == 1 or cosine else f"{several[0].gain:g} * "
    texts = [f"def {NORMS[how]}(x):\n    return {gain}{_NORMS[how]}" for how in used]
    return CodePiece("\n\n\n".join(texts), defines=True)


def signature(several: Sequence[Computation]) -> str:
    """Return the first line of the function `measure`."""
    norms = {c.norms for c in several}
    norm = "" if len(norms) == 1 else ", norm=lambda x: x" if ("none", "none") in norms else ", norm"
    return f"def measure(scale{norm}{', factor=1.0' if any(c.factor != 1 for c in several) else ''}):"


def call(c: Computation, several: Sequence[Computation], scale: str, factor: str) -> str:
    """Return the call of `measure` for one of the computations that share it."""
    arguments = [scale, *([factor] if c.factor != 1 else [])]
    if len({computation.norms for computation in several}) > 1 and (c.factor != 1 or c.norms[0] != "none"):
        arguments.insert(1, "lambda x: x" if c.norms[0] == "none" else NORMS[c.norms[0]])
    return f"measure({', '.join(arguments)})"


def logit_lines(several: Sequence[Computation], cap: str = "") -> list[str]:
    """Return the lines that make logits z, of which hidden ones are −∞.

    `cap` is the name of a soft-cap that is not yet known.
    """
    c = several[0]
    rounded, eager, stored = is_rounded(c), is_eager(c), store(c)
    shared = len({computation.norms for computation in several}) > 1
    q, k = (
        f"norm({name})" if shared else name if how == "none" else f"{NORMS[how]}({name})"
        for name, how in zip("kq" if c.swapped else "qk", c.norms, strict=True)
    )
    if c.mechanism == "cosine":
        q, k = f"unit({q})", f"unit({k})"
    lines: list[str] = []
    if rounded:
        lines.append(f"x, y = {stored}({q}), {stored}({k})  # as stored in {c.precision}")
        q, k = "x", "y"
    if any(computation.factor != 1 for computation in several):
        both = f"{stored}(factor * {q}), {stored}(factor * {k})" if rounded else f"factor * {q}, factor * {k}"
        lines.append(f"x, y = {both}  # the scale of q and k, not of their score")
        q, k = "x", "y"
    if c.mechanism == "bilinear" and rounded:
        lines.append(f"x = {stored}(x @ w)")
    elif c.mechanism == "bilinear":
        q = f"{q} @ w"
    scores = f"{q} @ {k}.mT"
    if c.mechanism == "additive":
        lines.append(f"a, b = {q} @ w_q, {k} @ w_k")
        scores = "np.stack([np.tanh(a[:, i, None] + b) @ w_v for i in range(m)], 1)"
    if eager:
        lines.append(f"z = rounded(rounded({scores}) * scale)  # eager: each result is rounded")
    else:
        lines.append(f"z = scale * {scores if c.mechanism == 'additive' else f'({scores})'}  # logits")
    if cap or c.softcap:
        cap = cap or number(c.softcap or 0)
        capped = f"rounded(rounded(np.tanh(rounded(z / {cap}))) * {cap})" if eager else f"{cap} * np.tanh(z / {cap})"
        lines.append(f"z = {capped}  # soft-cap")
    if c.biases:
        lines.append(f"z = rounded(z + {_bias(c)})" if eager else f"z = z + {_bias(c)}")
    if c.visibility is not None:
        lines.append("z = np.where(hidden, -np.inf, z)")
    return lines


def _bias(c: Computation) -> str:
    """Return the bias as it is added: in a format as it is stored there, ALiBi only in eager arithmetic."""
    if c.precision == "float64":
        return "bias"
    stored = is_eager(c) or (is_rounded(c) and not any(isinstance(bias, Slope) for bias in c.biases))
    return "rounded(bias)" if stored and not number_format(c.precision).scaled else "bias.astype(np.float32)"


def weight_lines(c: Computation, sink: str = "") -> list[str]:
    """Return the lines that make weights p of logits z and, in rounded formats, the sink's `share`.

    `sink` is the name of a sink that is not yet known.
    """
    rounded, eager, has_sink = is_rounded(c), is_eager(c), bool(sink) or c.sink is not None
    exact = c.precision == "float64"
    top = "z.max(-1, keepdims=True)" + ".clip(sink)" * (has_sink and (eager or not rounded))
    lines = [f"top = {top}"] if has_sink else []
    away, sunk = ("z - top" if has_sink else f"z - {top}"), "sink - top"
    lines.append(f"e = np.exp({away})" if exact or rounded else f"e = np.exp(({away}).astype(np.float64))")
    total = "e.sum(-1, keepdims=True)"
    if has_sink:
        of_sink = f"np.exp({sunk})" if exact else f"np.exp(({sunk}).astype(np.float64))"
        lines.append(f"total = {total} + {of_sink}  # the sink belongs to no key")
        total = "total"
    if not rounded:
        return [*lines, f"p = e / {total}  # attention weights"]
    if eager:
        lines.append(f"p = rounded(e / {total})  # attention weights")
        share = "rounded(np.exp(sink - top) / total)[..., 0]"
    else:
        room = 2 ** number_format(c.precision).headroom
        powers = f"rounded({room} * e) / {room}" if room > 1 else "rounded(e)"
        lines.append(f"p = {powers} / {total}.astype(np.float64)  # fused: only e^(x - max) is rounded")
        share = "(np.exp((sink - top).astype(np.float64)) / total)[..., 0]"
    return [*lines, *([f"share = {share}"] if has_sink else [])]


def gradient_lines(several: Sequence[Computation], rows: str) -> list[str]:
    """Return the lines that make the norms dq of the gradients of queries, of some rows, of plain dot products."""
    c = several[0]
    rounded = is_rounded(c)
    values, keys = (f"{store(c)}(v)", "y") if rounded else ("v", "k")
    dz = "p * (dp - (p * dp).sum(-1, keepdims=True))"
    lines = [f"dp = (g @ {values}.mT).astype(np.float64)  # of L = (g * output).sum()"]
    if c.softcap:
        z = "z" if c.visibility is None else "np.where(hidden, 0, z)"
        dz += f" * (1 - ({z} / {number(c.softcap)}) ** 2)"
    scale = "factor * scale" if any(computation.factor != 1 for computation in several) else "scale"
    lines.append(f"dz = {scale} * {dz}")
    return [*lines, f"dq = np.linalg.norm(dz @ {keys}.astype(np.float64), axis=-1){rows}"]

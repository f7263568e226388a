"""From queries and keys to attention weights: the lines of the function `measure` that compute logits and weights."""

from __future__ import annotations

from collections.abc import Sequence

from ....attention.formats import number_format
from ....parameters import Parameters
from ....scales import Normalise, scale_rule
from ..program import Dialect, Piece
from .rounding import is_eager, is_rounded, store_function
from .rule import factor_code

# The functions that normalise queries and keys: root mean square, LayerNorm, length.
_NORMS: dict[Dialect, dict[Normalise, str]] = {
    "python": {
        "rms": "x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-12)",
        "layer_norm": "(x - x.mean(-1, keepdims=True)) / np.maximum(x.std(-1, keepdims=True), 1e-6)",
        "l2": "x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-6)",
    },
    "torch": {
        "rms": "x * (x.pow(2).mean(-1, keepdim=True) + 1e-12).rsqrt()",
        "layer_norm": "torch.nn.functional.layer_norm(x, x.shape[-1:], eps=1e-12)",
        "l2": "torch.nn.functional.normalize(x, dim=-1)",
    },
}
NORM_NAMES: dict[Normalise, str] = {"none": "as_drawn", "rms": "rms", "layer_norm": "layer_norm", "l2": "unit"}

TORCH_NORMS = _NORMS["torch"]


def norm_of(p: Parameters) -> Normalise:
    """Return how the rule normalises queries and keys."""
    return scale_rule(p.scale).normalise


def norm_call(p: Parameters, name: str) -> str:
    """Return the expression of queries or keys, normalised as the rule says."""
    return name if norm_of(p) == "none" else f"{NORM_NAMES[norm_of(p)]}({name})"


def norm_functions(sides: Sequence[Parameters], dialect: Dialect) -> Piece:
    """Return the functions that normalise queries and keys for these settings."""
    p = sides[0]
    used: dict[Normalise, None] = dict.fromkeys(norm_of(each) for each in sides if norm_of(each) != "none")
    if p.mechanism == "cosine":
        used["l2"] = None  # a gain before it makes no difference
    gain = "" if p.norm_gain == 1 or p.mechanism == "cosine" else f"{p.norm_gain:g} * "
    texts: list[str] = []
    for how in used:
        texts.append(f"def {NORM_NAMES[how]}(x):\n    return {gain}{_NORMS[dialect][how]}")
    return Piece("\n\n\n".join(texts), defines=True)


def mask(p: Parameters, dialect: Dialect) -> str:
    """Return the line that says which keys are hidden, if there is a mask."""
    if p.mask == "none":
        return ""
    library = "np" if dialect == "python" else "torch"
    return f"hidden = {library}.arange(n) > {library}.arange(m)[:, None]  # the causal mask"


def call(p: Parameters, sides: Sequence[Parameters], scale: str) -> str:
    """Return the call of `measure` for one of the settings that share it."""
    norm, factor = NORM_NAMES[norm_of(p)], factor_code(p)
    arguments = [scale, *([factor] if factor else [])]
    if len({norm_of(each) for each in sides}) > 1 and (factor or norm_of(p) != "none"):
        arguments.insert(1, "lambda x: x" if norm_of(p) == "none" else norm)
    return f"measure({', '.join(arguments)})"


def signature(sides: Sequence[Parameters]) -> str:
    """Return the first line of `measure`."""
    norms = {norm_of(each) for each in sides}
    norm = "" if len(norms) == 1 else ", norm=lambda x: x" if "none" in norms else ", norm"
    factor = ", factor=1.0" if any(map(factor_code, sides)) else ""
    return f"def measure(scale{norm}{factor}):"


def logit_lines(sides: Sequence[Parameters], dialect: Dialect, query: str, bias: str = "") -> list[str]:
    """Return the lines that compute logits z, to which the expression `bias` is added; hidden keys have −∞."""
    p, eager = sides[0], is_eager(sides[0])
    differ = len({norm_of(each) for each in sides}) > 1
    own = "norm" if differ else NORM_NAMES[norm_of(p)] if norm_of(p) != "none" else ""
    names = [f"{own}({name})" if own else name for name in (query, "k")]
    lines: list[str] = []
    if p.mechanism == "cosine":
        names = [f"unit({name})" for name in names]
    if is_rounded(p):
        lines.append(
            f"x, y = {', '.join(f'{store_function(p)}({name})' for name in names)}  # as stored in {p.precision}"
        )
        names = ["x", "y"]
        if any(map(factor_code, sides)):
            both = ", ".join(f"{store_function(p)}(factor * {name})" for name in names)
            lines.append(f"x, y = {both}  # the scale of q and k, not of their score")
        if p.mechanism == "bilinear":
            lines.append(f"x = {store_function(p)}(x @ w)")
    lines += _scores(p, dialect, names)
    if not is_rounded(p) and p.mechanism != "additive":
        scores = lines.pop().removeprefix("s = ")
        lines.append(f"z = scale * ({scores})  # logits")
    elif eager:
        lines.append("z = rounded(rounded(s) * scale)  # eager: each result is rounded")
    else:
        lines.append("z = scale * s  # logits")
    if p.softcap:
        cap = f"{p.softcap:g}"
        tanh = "np.tanh" if dialect == "python" else "torch.tanh"
        text = f"rounded(rounded({tanh}(rounded(z / {cap}))) * {cap})" if eager else f"{cap} * {tanh}(z / {cap})"
        lines.append(f"z = {text}  # soft-cap")
    if bias:
        lines.append(f"z = rounded(z + {bias})" if eager else f"z = z + {bias}")
    if p.mask != "none":
        hide = {"python": "np.where(hidden, -np.inf, z)", "torch": "z.masked_fill(hidden, -torch.inf)"}
        lines.append(f"z = {hide[dialect]}")
    return lines


def _scores(p: Parameters, dialect: Dialect, names: Sequence[str]) -> list[str]:
    """Return the lines that compute the scores s of queries and keys with these names."""
    q, k = names
    if p.mechanism == "additive":
        stack = "np.stack" if dialect == "python" else "torch.stack"
        tanh, axis = ("np.tanh", "axis=1") if dialect == "python" else ("torch.tanh", "dim=1")
        return [
            f"a, b = {q} @ w_q, {k} @ w_k",
            f"s = {stack}([{tanh}(a[:, i, None] + b) @ w_v for i in range(m)], {axis})",
        ]
    if p.mechanism == "bilinear" and not is_rounded(p):
        return [f"s = {q} @ w @ {k}.mT"]
    return [f"s = {q} @ {k}.mT"]


def weight_lines(p: Parameters, dialect: Dialect) -> list[str]:
    """Return the lines that compute attention weights p of logits z and, in rounded formats, the sink's share."""
    if dialect == "torch":
        return _weights_torch(p)
    low, eager, sink = is_rounded(p), is_eager(p), p.sink != "none"
    exact = "" if low else ", dtype=np.float64"
    lines = [f"e = np.exp(z - z.max(-1, keepdims=True){exact})"]
    if sink:
        top = "np.maximum(z.max(-1, keepdims=True), sink)" if eager or not low else "z.max(-1, keepdims=True)"
        lines = [f"top = {top}", f"e = np.exp(z - top{exact})"]
    total = "e.sum(-1, keepdims=True)"
    if sink:
        lines.append(f"total = {total} + np.exp(sink - top, dtype=np.float64)  # the sink belongs to no key")
        total = "total"
    if not low:
        return [*lines, f"p = e / {total}  # attention weights"]
    if eager:
        lines.append(f"p = rounded(e / {total})  # attention weights")
        share = "rounded(np.exp(sink - top) / total)[..., 0]"
    else:
        room = 2 ** number_format(p.precision).headroom
        powers = f"rounded({room} * e) / {room}" if room > 1 else "rounded(e)"
        lines.append(f"p = {powers} / {total}.astype(np.float64)  # fused: only e^(x - max) is rounded")
        share = "(np.exp(sink - top, dtype=np.float64) / total)[..., 0]"
    return [*lines, *([f"share = {share}"] if sink else [])]


def _weights_torch(p: Parameters) -> list[str]:
    low, eager, sink = is_rounded(p), is_eager(p), p.sink != "none"
    if low and not eager:
        lines = ["e = (z - z.amax(-1, keepdim=True)).exp()"]
        total = "e.sum(-1, keepdim=True).double()"
        if sink:
            lines = ["top = z.amax(-1, keepdim=True)", "e = (z - top).exp()"]
            lines.append(f"total = {total} + (sink - top).double().exp()  # the sink belongs to no key")
            total = "total"
        room = 2 ** number_format(p.precision).headroom
        powers = f"rounded({room} * e) / {room}" if room > 1 else "rounded(e)"
        lines.append(f"p = {powers} / {total}  # fused: only e^(x - max) is rounded")
        return [*lines, *(["share = ((sink - top).double().exp() / total)[..., 0]"] if sink else [])]
    wide = "z" if eager else "z.double()"
    lines = [f"p = {wide}.softmax(-1)  # attention weights"]
    if sink:
        lines = [
            "with_sink = torch.cat([z, torch.full_like(z[..., :1], sink)], -1)  # the sink belongs to no key",
            f"p = with_sink{'' if eager else '.double()'}.softmax(-1)",
        ]
        if eager:
            lines.append("share, p = rounded(p[..., -1]), p[..., :-1]")
        else:
            lines.append("p = p[..., :-1]  # attention weights")
    return [*lines, *(["p = rounded(p)"] if eager else [])]

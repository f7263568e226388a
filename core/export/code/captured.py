"""The program of a captured head: its queries and keys from the file, and the statistics under its scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...captures.capture import Capture, HeadSubject, Layer, Tensor
from ...errors import InputError
from ...parameters import Parameters
from ...scales import SCALE_RULES, scale_rule
from ...statistics.catalogue import STATISTIC
from ...statistics.column_names import column_names
from ...statistics.measurement import Column, Estimate, Measurement
from .attention import call, logit_lines, mask, norm_functions, signature, weight_lines
from .program import Dialect, NoCodeError, Piece, assembled, estimated, expected, number
from .rule import rule_code
from .statistics import OF_REPORTS, chosen, seen_line, statistics_lines

_EIGHT_BITS = "float8"


def head_code(capture: Capture, head: Measurement[HeadSubject], dialect: Dialect, command: str) -> str:
    """Return the program that prints the statistics of a head; raise NoCodeError if it needs many lines."""
    layer, at = head.subject.layer, head.subject.head
    _check(layer, head.columns, dialect)
    columns = [_without_errors(column) for column in head.columns]
    sides = [_side(layer, column) for column in columns]
    p = sides[0]
    names = chosen(p, columns, OF_REPORTS, dialect)
    body = [
        *logit_lines(sides, dialect, "q"),
        *weight_lines(p, dialect),
        *statistics_lines(p, names, columns, dialect),
    ]
    shared = layer.heads // layer.kv_heads
    files = dict.fromkeys(each.path for each in (*layer.q, *layer.k))
    drawn = [
        *([f"file = {_opened(layer.q[0])}"] if len(files) == 1 else []),
        _vectors("q", layer.q, at, layer, dialect),
        _vectors("k", layer.k, at // shared, layer, dialect),
        "m, n, d_k = q.shape[1], k.shape[1], q.shape[2]",
        mask(p, dialect),
        seen_line(p, names),
    ]
    if layer.sinks is not None:
        drawn.append(f"sink = float({_read(layer.q[0], layer, dialect, layer.sinks)}.reshape(-1)[{at}])")
    letters = "ab"[: len(columns)]
    calls = [
        f"{letter} = {call(side, sides, _scale(layer, column))}"
        for letter, side, column in zip(letters, sides, columns, strict=True)
    ]
    rows = {STATISTIC[name].label: [estimated(column.measured[name]) for column in head.columns] for name in names}
    wide = max(map(len, rows)) + 2
    show = "".join(f"{{{letter}[name]:12.4g}}" for letter in letters)
    end = [f"for name in {letters[-1]}:", f'    print(f"{{name:{wide}}}{show}")']
    pieces = [
        Piece("\n".join(filter(None, drawn))),
        norm_functions(sides, dialect),
        Piece("\n".join([signature(sides), *(f"    {line}" for line in body)]), defines=True),
        Piece("\n".join(calls)),
    ]
    return assembled([command], [pieces], [*end, *expected(column_names(head.columns), rows)], dialect)


def _check(layer: Layer, columns: Sequence[Column], dialect: Dialect) -> None:
    """Raise NoCodeError, with the reason, for what a few lines cannot reproduce."""
    reasons = {
        "it has a mask": layer.mask is not None,
        "it has a bias": layer.bias is not None,
        "it has a window or chunks": layer.window is not None or layer.chunk is not None,
        "only some queries are stored": layer.rows is not None,
        "its scales are of texts or queries": layer.scales is not None,
        "its causal mask is of a rectangle": layer.causal is not None and layer.queries != layer.keys,
        "its rows have different multipliers": any(column.multipliers is not None for column in columns),
        "its file is not .safetensors or .npz": any(
            each.path.suffix not in (".safetensors", ".npz") for each in (*layer.q, *layer.k)
        ),
        f"NumPy has no {layer.dtype}; Tab, or --format torch": dialect == "python" and _EIGHT_BITS in layer.dtype,
    }
    reason = next((reason for reason, holds in reasons.items() if holds), None)
    if reason is not None:
        raise NoCodeError(f"No short program prints this head: {reason}.")


def _without_errors(column: Column) -> Column:
    """Return the column without standard errors: statistics of captures are of these texts, with no bias removed."""
    return replace(column, measured={name: Estimate(each.value, None) for name, each in column.measured.items()})


def _side(layer: Layer, column: Column) -> Parameters:
    """Return parameters that stand for the layer under the rule of a column."""
    rule = column.rule if column.rule != "file" else "none"
    try:
        return Parameters(
            d_k=layer.d_k,
            n_keys=layer.keys,
            n_queries=layer.queries,
            scale=rule,
            mask="none" if layer.causal is None else "causal",
            softcap=layer.softcap or 0.0,
            sink="none" if layer.sinks is None else "logit",
            precision="float64" if layer.dtype == "float64" else "float32",
        )
    except InputError as error:  # longer, or wider, than the Lab
        raise NoCodeError(f"No short program prints this head: {error}.") from None


def _scale(layer: Layer, column: Column) -> str:
    """Return what scores as stored are multiplied by."""
    if column.rule == "file":
        return number(column.multiplier / layer.own_factor)
    rule = scale_rule(column.rule)
    known = column.rule in SCALE_RULES and column.rule != "custom" and {*rule.needs} <= {"d_k", "n_keys"}
    text = rule_code(column.rule, column.multiplier) if known else number(column.multiplier)
    if rule.normalise != "none" or layer.own_factor == 1:
        return text
    return f"{text} / {number(layer.own_factor)}"  # a factor that the stored q and k contain


def _vectors(name: str, parts: Sequence[Tensor], head: int, layer: Layer, dialect: Dialect) -> str:
    """Return the line that reads one head, (texts, tokens, d_k)."""
    found = [_read(part, layer, dialect) + _head(part, head, dialect) for part in parts]
    wide = "float64" if layer.dtype == "float64" else "float32"
    if dialect == "python":
        joined = found[0] if len(found) == 1 else f"np.concatenate([{', '.join(found)}], -1)"
        return f"{name} = {joined}.astype(np.{wide})"
    joined = found[0] if len(found) == 1 else f"torch.cat([{', '.join(found)}], -1)"
    return f"{name} = {joined}.{'double' if wide == 'float64' else 'float'}()"


def _opened(tensor: Tensor) -> str:
    """Return the expression that opens the file of a tensor."""
    return f"{'load_file' if tensor.path.suffix == '.safetensors' else 'np.load'}({str(tensor.path)!r})"


def _read(tensor: Tensor, layer: Layer, dialect: Dialect, name: str | None = None) -> str:
    """Return the expression that reads a tensor, or another one of its file; `file` is the only file of a layer."""
    alone = all(each.path == tensor.path for each in (*layer.q, *layer.k))
    text = f"{'file' if alone else _opened(tensor)}[{(name or tensor.name)!r}]"
    return f"torch.from_numpy({text})" if dialect == "torch" and tensor.path.suffix != ".safetensors" else text


def _head(tensor: Tensor, head: int, dialect: Dialect) -> str:
    """Return what takes one head, (texts, tokens, d_k), from a tensor."""
    axes = list(tensor.axes)
    text = "" if tensor.as_stored else f".reshape{tensor.shape}"
    if "head" in axes:
        places = ", ".join([":"] * axes.index("head") + [str(head)])
        text += f"[{places}]"
        axes.remove("head")
    if "batch" not in axes:
        text += "[None]"
        axes.insert(0, "batch")
    order = tuple(axes.index(axis) for axis in ("batch", "token", "d_k"))
    if order == (0, 1, 2):
        return text
    return f"{text}.{'transpose' if dialect == 'python' else 'permute'}{order}"

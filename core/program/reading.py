"""The lines that read one head of a capture: queries, keys, which keys are hidden, biases and the sink."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..captures.capture import HeadSubject, MaskTensor, Tensor
from ..captures.features import MASKS
from ..message import message
from .text import WIDEST, Dialect, NoCodeError, code_of, number

# The features of captures that programs print. A head with another one has no program.
PRINTED = {
    *MASKS, "scale", "head_scales", "scales", "prescaled", "causal", "alignment", "window", "chunk", "softcap",
    "row_factors", "bias", "slopes", "sinks", "rows", "attention", "mask_true", "over_queries",
}  # fmt: skip
_LARGEST = 1 << 26  # scores of a head that a program computes at once
_OF_ML_DTYPES = ("bfloat16", "float8")  # NumPy's own files do not hold them
_SIZES = "m, n, d_k = q.shape[1], k.shape[1], q.shape[2]"


@dataclass(frozen=True)
class HeadCode:
    """How a program reads a head. Its lines make q, k, m, n, d_k and, where there is one, hidden, bias and sink."""

    lines: Sequence[str]
    reader: HeadReader
    hides: bool  # whether `hidden` exists
    some_rows: bool  # whether rows may see no key
    of_texts: bool  # whether `hidden` differs between texts: (texts, m, n), else (m, n)


@dataclass(frozen=True)
class HeadReader:
    """How the program reads tensors; `alone` is the layer's only file, open as `file`."""

    alone: Path | None
    short: bool  # whether numbers are in float32: they will be rounded to a format

    def tensor(self, path: Path, name: str) -> str:
        """Return the expression of a whole tensor."""
        text = "file" if path == self.alone else opened(path)
        text += "" if path.suffix == ".npy" else f"[{name!r}]"
        return text if path.suffix == ".safetensors" else f"np.array({text})"

    def numbers(self, text: str) -> str:
        """Return an expression in float64, or in float32."""
        return f"{text}.astype(np.float{32 if self.short else 64})"

    def vectors(self, name: str, parts: Sequence[Tensor], head: int) -> str:
        """Return the line that reads one head, (texts, tokens, d_k), whose components may be in several tensors."""
        tensors = [self.tensor(part.path, part.name) + _one_head(part, head) for part in parts]
        joined = tensors[0] if len(tensors) == 1 else f"np.concatenate([{', '.join(tensors)}], -1)"
        return f"{name} = {self.numbers(joined)}"


def loaded(
    subject: HeadSubject,
    dialect: Dialect,
    *,
    by_position: bool = False,
    key_head: int | None = None,
    masked: bool = True,
    short: bool = False,
) -> HeadCode:
    """Return how a head is read; raise NoCodeError if a program cannot.

    `by_position`: the positions of queries are needed. `key_head` is another than the head's own. Not `masked`: which
    keys the file hides is of no interest. `short`: numbers are in float32.
    """
    layer, extras = subject.layer, subject.extras
    reader = _reader(subject, dialect, short)
    before, after = layer.window or (None, None)
    after = 0 if layer.causal is not None else after
    limits = [
        *([] if after is None else [f"j > i{f' + {after}' * bool(after)}"]),
        *([] if before is None else [f"j < i - {before}"]),
        *([] if layer.chunk is None else [f"j // {layer.chunk} != i // {layer.chunk}"]),
    ]
    masks = [mask for mask in extras.masks if not mask.of_queries]
    of_queries = [mask for mask in extras.masks if mask.of_queries]
    lengths = extras.lengths
    if not masked:
        limits, lengths, of_queries, masks = [], None, [], [mask for mask in masks if mask.adds]
    of_texts = bool(masked and (any(mask.hides for mask in masks) or of_queries or lengths))
    placed = bool(limits or extras.slope is not None or by_position or extras.padding)
    placed |= any(mask.of_tokens for mask in extras.masks)
    lines = [_positions(subject)] if placed else []
    if limits or lengths or extras.slope is not None:
        lines.append("i, j = at[:, None], np.arange(n)" if placed else "j = np.arange(n)")
    hidden = _Sum("hidden", " | ")
    bias = _Sum("bias", " + ")
    if lengths is not None:
        hidden.add(f"(j >= np.array({list(lengths)})[:, None, None])  # tokens of each text", lines)
    for mask in masks:
        if mask.adds:
            bias.add(reader.numbers(_mask(mask, reader)), lines)
        if mask.hides and masked:
            hidden.add(_hidden(mask, reader, "bias" if mask.adds and bias.count == 1 else ""), lines)
    if extras.slope is not None:
        bias.add(f"-{number(extras.slope)} * abs(i - j)  # ALiBi", lines)
    if of_texts:
        size = "(len(q), m, n)"  # if only queries are left out, nothing is hidden so far
        made = f"np.broadcast_to(hidden, {size})" if hidden.count else f"np.zeros({size}, dtype=bool)"
        lines.append(f"hidden = {made}")
        hidden.count += 1
    if extras.padding and masked:
        lines.append("hidden = hidden | hidden.all(-2)[:, at, None]  # a token hidden from all is padding")
    if limits:
        hidden.add(f"({') | ('.join(limits)})", lines)
    for each in of_queries:
        hidden.add(f"{_left_out(each, reader)}[..., None]  # queries that do not count", lines)
    if extras.sink is not None:
        lines.append(f"sink = {number(extras.sink)}  # the logit of no key, of this head")
    group = layer.heads // layer.kv_heads
    vectors = [
        *([f"file = {opened(reader.alone)}"] if reader.alone else []),
        reader.vectors("q", layer.q, subject.head),
        reader.vectors("k", layer.k, subject.head // group if key_head is None else key_head),
        _SIZES,
    ]
    some_rows = of_texts or (masked and (before is not None or layer.chunk is not None))
    return HeadCode([*vectors, *lines], reader, hidden.count > 0, some_rows, of_texts)


@dataclass
class _Sum:
    """An array that several lines make, each adding to it."""

    name: str
    sign: str
    count: int = 0

    def add(self, text: str, lines: list[str]) -> None:
        """Write the line that adds an expression."""
        lines.append(f"{self.name} = {f'{self.name}{self.sign}' if self.count else ''}{text}")
        self.count += 1


def without_unused(program: str) -> str:
    """Return a program without the sizes of queries and keys, if nothing in it needs them."""
    rest = program.replace(f"{_SIZES}\n", "")
    return program if re.search(r"\b(m|n|d_k)\b", code_of(rest)) else rest


def _reader(subject: HeadSubject, dialect: Dialect, short: bool) -> HeadReader:
    """Return the reader of a head's tensors; raise NoCodeError, with the reason, if a program cannot read them."""
    layer, extras = subject.layer, subject.extras
    paths = {tensor.path for tensor in (*layer.q, *layer.k)} | {mask.path for mask in extras.masks}
    paths |= set() if extras.scales is None else {extras.scales[0]}
    suffixes = {path.suffix for path in paths}
    others = [name for name in layer.features if name not in PRINTED]
    reasons = {
        message("its file is not .safetensors, .npz or .npy"): bool(suffixes - {".safetensors", ".npz", ".npy"}),
        message("NumPy files of {dtype} need more", dtype=layer.dtype): (
            layer.dtype.startswith(_OF_ML_DTYPES) and suffixes != {".safetensors"}
        ),
        message("NumPy has no {dtype}; Tab, or --format torch", dtype=layer.dtype): dialect == "python"
        and "float8" in layer.dtype,
        message("programs do not have {names}", names=", ".join(others)): bool(others),
        message("its scores take too much memory"): layer.batch * layer.queries * layer.keys > _LARGEST,
    }
    reason = next((reason for reason, holds in reasons.items() if holds), None)
    if reason is not None:
        raise NoCodeError("No short program prints this head: {reason}.", reason=reason)
    return HeadReader(next(iter(paths)) if len(paths) == 1 and suffixes != {".npy"} else None, short)


def opened(path: Path) -> str:
    """Return the expression that opens a file."""
    return f"{'load_file' if path.suffix == '.safetensors' else 'np.load'}({str(path)!r})"


def _one_head(tensor: Tensor, head: int) -> str:
    """Return what takes one head, (texts, tokens, d_k), from a tensor."""
    axes = list(tensor.axes)
    text = "" if tensor.as_stored else f".reshape{tensor.shape}"
    if "head" in axes:
        along = axes.index("head")
        text += f"[{', '.join([':'] * along + [str(head if tensor.shape[along] > 1 else 0)])}]"
        axes.remove("head")
    if "batch" not in axes:
        text += "[None]"
        axes.insert(0, "batch")
    order = tuple(axes.index(axis) for axis in ("batch", "token", "d_k"))
    return text if order == (0, 1, 2) else f"{text}.transpose{order}"


def _mask(used: MaskTensor, reader: HeadReader) -> str:
    """Return the expression of one head of a mask, (texts or 1, m or 1, n)."""
    text = f"{reader.tensor(used.path, used.name)}.reshape{used.shape}[:, {used.head}]"
    return f"{text}[:, at]" if used.of_tokens and used.shape[2] > 1 else text


def _hidden(used: MaskTensor, reader: HeadReader, name: str) -> str:
    """Return the expression that says which keys a mask hides; `name` holds its numbers, if it is not empty."""
    if isinstance(used.form, str):
        return f"{'~' * (used.form == 'visible')}{_mask(used, reader)}.astype(bool)"
    return f"({name or reader.numbers(_mask(used, reader))} <= {number(used.form)})"


def _left_out(used: MaskTensor, reader: HeadReader) -> str:
    """Return the expression that says which queries a mask leaves out."""
    rows = f"{reader.tensor(used.path, used.name)}.astype(bool).reshape{used.shape}{'[:, at]' * used.of_tokens}"
    if isinstance(used.form, str):
        return f"{'~' * (used.form != 'hidden')}{rows}"
    return f"({rows} <= {number(used.form)})"


def _positions(subject: HeadSubject) -> str:
    """Return the line with the positions of queries among the keys."""
    layer, listed = subject.layer, subject.extras.positions
    if listed is not None:
        first, last = min(listed), max(listed)
        step = max((last - first) // max(len(listed) - 1, 1), 1)
        if listed == tuple(range(first, last + 1, step)):
            return f"at = np.arange({first}, {last + 1}, {step})  # positions of queries"
        return textwrap.fill(f"at = np.array([{', '.join(map(str, listed))}])", WIDEST, subsequent_indent="    ")
    ends = "n - m, n" if layer.alignment == "bottom_right" and layer.queries != layer.keys else "m"
    return f"at = np.arange({ends})  # positions of queries"

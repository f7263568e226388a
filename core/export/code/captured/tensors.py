"""Expressions that read the tensors of a capture from its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ....captures.capture import HeadSubject, Tensor
from ....message import message
from ..program import Dialect, NoCodeError

_LARGEST = 1 << 26  # scores of a head that a program computes at once
_OF_ML_DTYPES = ("bfloat16", "float8")  # NumPy's own files do not hold them


@dataclass(frozen=True)
class Reader:
    """How the program reads tensors; `alone` is the layer's only file, open as `file`."""

    dialect: Dialect
    alone: Path | None
    short: bool = False  # whether numbers are in float32: they will be rounded to a format

    def tensor(self, path: Path, name: str) -> str:
        """Return the expression of a whole tensor."""
        text = opened(path)
        if path.suffix != ".npy":
            text = f"{'file' if path == self.alone else text}[{name!r}]"
        return f"torch.from_numpy({text})" if self.dialect == "torch" and path.suffix != ".safetensors" else text

    def numbers(self, text: str) -> str:
        """Return an expression in float64, or in float32."""
        if self.dialect == "torch":
            return f"{text}.float()" if self.short else f"{text}.double()"
        return f"{text}.astype(np.float32)" if self.short else f"{text}.astype(np.float64)"

    def flags(self, text: str) -> str:
        """Return an expression as booleans."""
        return f"{text}.astype(bool)" if self.dialect == "python" else f"{text}.bool()"

    def vectors(self, name: str, parts: Sequence[Tensor], head: int) -> str:
        """Return the line that reads one head, (texts, tokens, d_k), whose components may be in several tensors."""
        found = [self.tensor(part.path, part.name) + _head(part, head, self.dialect) for part in parts]
        if len(found) == 1:
            return f"{name} = {self.numbers(found[0])}"
        joined = f"{'np.concatenate' if self.dialect == 'python' else 'torch.cat'}([{', '.join(found)}], -1)"
        return f"{name} = {self.numbers(joined)}"


def reader_of(subject: HeadSubject, dialect: Dialect, short: bool = False) -> Reader:
    """Return the reader of a head's tensors, `short` in float32.

    Raise NoCodeError, with the reason, if a program cannot read them.
    """
    layer, understood = subject.layer, subject.understood
    paths = {each.path for each in (*layer.q, *layer.k)} | {each.path for each in understood.masks}
    if understood.scales is not None:
        paths.add(understood.scales[0])
    suffixes = {path.suffix for path in paths}
    reasons = {
        message("its file is not .safetensors, .npz or .npy"): bool(suffixes - {".safetensors", ".npz", ".npy"}),
        message("NumPy files of {dtype} need more", dtype=layer.dtype): (
            layer.dtype.startswith(_OF_ML_DTYPES) and suffixes != {".safetensors"}
        ),
        message("NumPy has no {dtype}; Tab, or --format torch", dtype=layer.dtype): dialect == "python"
        and "float8" in layer.dtype,
        message("its scores take too much memory"): layer.batch * layer.queries * layer.keys > _LARGEST,
    }
    reason = next((reason for reason, holds in reasons.items() if holds), None)
    if reason is not None:
        raise NoCodeError("No short program prints this head: {reason}.", reason=reason)
    return Reader(dialect, next(iter(paths)) if len(paths) == 1 and suffixes != {".npy"} else None, short)


def opened(path: Path) -> str:
    """Return the expression that opens a file."""
    return f"{'load_file' if path.suffix == '.safetensors' else 'np.load'}({str(path)!r})"


def _head(tensor: Tensor, head: int, dialect: Dialect) -> str:
    """Return what takes one head, (texts, tokens, d_k), from a tensor."""
    axes = list(tensor.axes)
    text = "" if tensor.as_stored else f".reshape{tensor.shape}"
    if "head" in axes:
        along = axes.index("head")
        of_group = tensor.shape[along]
        places = ", ".join([":"] * along + [str(head if of_group > 1 else 0)])
        text += f"[{places}]"
        axes.remove("head")
    if "batch" not in axes:
        text += "[None]"
        axes.insert(0, "batch")
    order = tuple(axes.index(axis) for axis in ("batch", "token", "d_k"))
    if order == (0, 1, 2):
        return text
    return f"{text}.{'transpose' if dialect == 'python' else 'permute'}{order}"

"""The options of commands that read captures, and the heads that they choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from ...core.captures.files import ENDINGS, CaptureError
from ...core.message import message
from ...core.plain import plain
from ..settings.parse import UsageError
from .parser import Parser

if TYPE_CHECKING:
    from ...core.captures.capture import Capture, Layer

Head: TypeAlias = "tuple[Layer, int]"

_CAPTURES = message("captured queries and keys: {endings}, or a folder", endings=ENDINGS)


def add_file(parser: Parser, nargs: str | None = None) -> None:
    """Add the file as a positional argument."""
    parser.add("file", "file", metavar="FILE", nargs=nargs, help=_CAPTURES)


def add_files(parser: Parser) -> None:
    """Add one file or several as positional arguments."""
    parser.add("file", "file", metavar="FILE", nargs="+", help=_CAPTURES)


def add_axes(parser: Parser) -> None:
    """Add the option that names the axes of the tensors."""
    parser.add(
        "file",
        "--axes",
        metavar="AXES",
        help="the axes of each tensor of queries and keys, if the file lacks them or has them wrong, such as "
        "batch,token,head,d_k",
    )


def add_mask_true(parser: Parser) -> None:
    """Add the option that says what True means in masks."""
    parser.add(
        "file",
        "--mask-true",
        metavar="WORD",
        choices=("visible", "hidden"),
        help="what True and 1 in masks mean: visible, as in scaled_dot_product_attention, or hidden, as in "
        "nn.MultiheadAttention",
    )


def add_tensor(parser: Parser) -> None:
    """Add the option that names the tensors."""
    parser.add(
        "file",
        "--tensor",
        metavar="NAMES",
        help="the tensors of queries and keys, if their names do not tell, such as 'q=h.*.foo,k=h.*.bar'; * is the "
        "number of the layer, and v=NAME may follow",
    )


def head_number(text: str) -> int:
    """Return the number of a head; raise UsageError if it is not one."""
    try:
        head = int(text)
    except ValueError:
        head = -1
    if head < 0:
        raise UsageError("--head: must be a whole number from 0 up, not {text!r}", text=text)
    return head


def chosen_heads(capture: Capture, layer: str | None, head: int | None) -> list[Head]:
    """Return the heads with this layer and number, None meaning any; raise CaptureError if there are none."""
    layers = [found for found in capture.layers if layer is None or layer in (str(found.index), found.name)]
    if not layers:
        there = ranges([found.index for found in capture.layers])
        raise CaptureError(
            "{path}: no layer {layer}; the file has layers {there}",
            path=plain(capture.path),
            layer=plain(layer),
            there=there,
        )
    chosen = [(found, h) for found in layers for h in range(found.heads) if head is None or h == head]
    if not chosen:
        last, path = max(found.heads for found in layers) - 1, plain(capture.path)
        if layer is None:
            raise CaptureError(
                "{path}: no head {head}; its layers have heads 0 to {last}", path=path, head=head, last=last
            )
        raise CaptureError(
            "{path}: no head {head}; layer {layer} has heads 0 to {last}",
            path=path,
            head=head,
            layer=plain(layer),
            last=last,
        )
    return chosen


def ranges(numbers: Sequence[int]) -> str:
    """Return `32`, `0 to 5`, or `0, 2, 7`."""
    found = sorted(set(numbers))
    if len(found) > 2 and found[-1] - found[0] == len(found) - 1:
        return message("{first} to {last}", first=found[0], last=found[-1])
    return ", ".join(map(str, found[:12])) + (", …" if len(found) > 12 else "")

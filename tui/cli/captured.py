"""The options of commands that read captures, and the heads that they choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from ...core.captures.files import ENDINGS, CaptureError
from ...core.errors import InputError
from ...core.message import message
from ...core.plain import plain
from ..settings.parse import UsageError
from .parser import Given, Parser

if TYPE_CHECKING:
    from ...core.captures.capture import Capture, Layer
    from ...core.diagnosis.configuration import Configuration

Head: TypeAlias = "tuple[Layer, int]"

_LARGEST = 1 << 23  # bytes of a configuration
_PROJECT = Path("pyproject.toml")
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


def add_config(parser: Parser) -> None:
    """Add the option that names the model's configuration."""
    parser.add(
        "file",
        "--config",
        metavar="FILE",
        help="the model's config.json: it says which scale is expected, instead of the capture",
    )


def add_expect(parser: Parser) -> None:
    """Add the option that says which scale is expected."""
    parser.add(
        "file",
        "--expect",
        metavar="FORMULA",
        help="the multiplier that is intended: a rule, a number or a formula such as '1/sqrt(d)'",
    )


def expected_rule(given: Given) -> str | None:
    """Return the expected rule or formula, from the option or the project; raise UsageError if it is none."""
    from ...core.diagnosis.configuration import expecting

    where, expect = "--expect", given.get("expect")
    if expect is None:
        where, expect = project_place("expect"), project_settings().get("expect")
        if isinstance(expect, bool) or not isinstance(expect, str | int | float | None):
            raise UsageError(
                "{where}: must be {kind}, not {value!r}", where=where, kind=message("a formula"), value=expect
            )
        expect = None if expect is None else str(expect)
    try:
        expecting(expect)
    except InputError as error:
        raise UsageError("{where}: {reason}", where=where, reason=error) from error
    return expect


def project_place(key: str) -> str:
    """Return where the project sets a key."""
    return f"{_PROJECT}: tool.attn-tui.check.{key}"


def project_settings() -> Mapping[str, object]:
    """Return [tool.attn-tui.check] of pyproject.toml in this folder; raise UsageError if it cannot be read."""
    import tomllib

    try:
        section: object = tomllib.loads(_PROJECT.read_text("utf-8"))
    except (FileNotFoundError, IsADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise UsageError("{path}: cannot be read: {reason}", path=_PROJECT, reason=error) from error
    for key in ("tool", "attn-tui", "check"):
        section = cast("dict[str, object]", section).get(key) if isinstance(section, dict) else None
    return cast("dict[str, object]", section) if isinstance(section, dict) else {}


def read_configuration(path: Path | None) -> Configuration | None:
    """Return the configuration in a file; raise InputError if it cannot be read."""
    if path is None:
        return None
    from ...core.captures.files import opened
    from ...core.diagnosis.configuration import parse_configuration

    with opened(path) as (stream, _):
        text = stream.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise InputError("{path}: must have at most {largest} bytes", path=plain(path), largest=_LARGEST)
    return parse_configuration(text.decode("utf-8", "replace"), plain(path))


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

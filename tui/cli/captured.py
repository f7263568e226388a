"""The options of commands that read captures, and the heads that they choose."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ...core.captures.capture import Meaning
from ...core.captures.files import ENDINGS, CaptureError
from ...core.errors import InputError
from ...core.files import read_file
from ...core.message import message, plain
from ..compute.question import option
from ..settings.parse import UsageError
from .output import Output, say
from .parser import Arguments, Given, part
from .project import project_place, project_settings
from .working import USUAL, Work, results_of

if TYPE_CHECKING:
    from ...core.captures.capture import Capture, Layer
    from ...core.captures.head import CaptureFile
    from ...core.diagnosis.configuration import Configuration
    from ...core.work.heads import Source
    from ...core.work.part import Part

R = TypeVar("R")
Head: TypeAlias = "tuple[Layer, int]"

CAPTURES = message("captured queries and keys: {endings}, or a folder", endings=ENDINGS)


@dataclass(frozen=True)
class Hints(Arguments):
    """How files are read that do not tell everything of themselves."""

    axes: str | None = option(
        "file",
        "--axes",
        "AXES",
        "the axes of each tensor of queries and keys, if the file lacks them or has them wrong, such as "
        "batch,token,head,d_k",
    )
    mask_true: Meaning | None = option(
        "file",
        "--mask-true",
        "WORD",
        "what True and 1 in masks mean: visible, as in scaled_dot_product_attention, or hidden, as in "
        "nn.MultiheadAttention",
        choices=("visible", "hidden"),
    )
    tensor: str | None = option(
        "file",
        "--tensor",
        "NAMES",
        "the tensors of queries and keys, if their names do not tell, such as 'q=h.*.foo,k=h.*.bar'; * is the "
        "number of the layer, and v=NAME may follow",
    )
    work: Work = part(Work, USUAL)

    @property
    def hints(self) -> tuple[str | None, Meaning | None, str | None]:
        """The arguments of `open_capture` after the path."""
        return self.axes, self.mask_true, self.tensor


@dataclass(frozen=True)
class CaptureArguments(Hints):
    """The files of captured heads."""

    files: tuple[Path, ...] = option(
        "file", "", "FILE", CAPTURES, nargs="+", read=lambda names: tuple(map(Path, names))
    )


@dataclass(frozen=True)
class Expected(CaptureArguments):
    """Files, and which scale is expected of their heads."""

    config: Path | None = option(
        "file",
        "--config",
        "FILE",
        "the model's config.json: it says which scale is expected, instead of the capture",
        read=Path,
    )
    expect: str | None = option(
        "file",
        "--expect",
        "FORMULA",
        "the multiplier that is intended: a rule, a number or a formula such as '1/sqrt(d)'",
    )


def expected_rule(given: Given) -> str | None:
    """Return the expected rule or formula, from the option or the project; raise UsageError if it is none."""
    from ...core.diagnosis.configuration import expecting

    where, expect = "--expect", given.get("expect")
    if expect is None:
        where, expect = project_place("expect"), project_settings().get("expect")
    try:
        expecting(expect)
    except InputError as error:
        raise UsageError("{where}: {reason}", where=where, reason=error) from error
    return expect


def read_configuration(path: Path | None) -> Configuration | None:
    """Return the configuration in a file; raise InputError if it cannot be read."""
    if path is None:
        return None
    from ...core.diagnosis.configuration import parse_configuration

    try:
        return parse_configuration(read_file(path), plain(path))
    except FileNotFoundError as error:
        raise InputError("{path}: no such file", path=plain(path)) from error


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


def opened(
    request: CaptureArguments, output: Output, others: Sequence[Path] = (), given: Configuration | None = None
) -> list[CaptureFile]:
    """Return the captures of a request, after their notes are said; raise InputError if one cannot be read.

    `others` are files that the output must not overwrite either, `given` is the user's configuration.
    """
    from ...core.captures.reader import open_captures
    from ...core.diagnosis.disagreement import with_disagreements

    found = open_captures(request.files, *request.hints)
    captures = [with_disagreements(each, given) for each in found]
    output.check([*request.files, *others, *(file for capture in captures for file in capture.files)])
    for path, capture in zip(request.files, captures, strict=True):
        for note in capture.notes:
            whole = message("{path}: {note}", path=plain(path), note=note) if len(captures) > 1 else note
            say(message("note: {note}", note=whole), output.messages)
    return captures


def on_heads(
    work: Callable[..., Iterator[tuple[float, R | None]]],
    captures: Sequence[CaptureFile],
    chosen: Sequence[Sequence[Head]],
    arguments: tuple[Any, ...],
    what: str,
    request: CaptureArguments,
    output: Output,
) -> Generator[R | InputError, None, None]:
    """Yield the result of some `core.work.heads` for each head chosen of each capture, in order."""
    from ...core.work.heads import check_files, parts, source_of, with_layer

    plan: list[Part[Any]] = []
    sources: list[Source] = []
    for path, capture, heads in zip(request.files, captures, chosen, strict=True):
        sources.append(source_of(capture, path, *request.hints, exact=request.work.by_content))
        plan += parts(work, sources[-1:], (((layer.position, head), layer) for layer, head in heads), arguments)
    layers = (layer for heads in chosen for layer, _ in heads)
    with closing(results_of(plan, request.work, what, output, partial(check_files, sources))) as results:
        for layer, result in zip(layers, results, strict=True):
            yield result if isinstance(result, InputError) else with_layer(result, layer)

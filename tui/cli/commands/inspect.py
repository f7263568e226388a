"""attn-tui inspect: the attention statistics of captured heads."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ....core.captures.capture import NOTHING, Capture, HeadSubject, Layer, Meaning, Told
from ....core.captures.kinds.catalogue import ENDINGS
from ....core.errors import InputError
from ....core.parameters import FIELD
from ....core.scales import SCALE_RULES, rules_that_need, scale_rule
from ....core.statistics.measurement import Measurement
from ....core.statistics.status import MEANINGS
from ...settings.parse import UsageError, no_effect, value_of, with_scale
from ...views.glyphs import Glyphs
from ..command import Command, Given
from ..output import Output, say, screen_glyphs
from ..parser import Parser
from ..progress import ProgressLine

if TYPE_CHECKING:
    from ....core.captures.reader import CaptureFile
    from ..parallel import Steps

Head: TypeAlias = tuple[Layer, int]

_SCALE = replace(FIELD["scale"], choices=("file", *SCALE_RULES))


@dataclass(frozen=True)
class InspectRequest:
    """The heads to measure and their scale; without layer and head, every head."""

    file: Path
    layer: str | None = None
    head: int | None = None
    scale: str | None = None  # a name of SCALE_RULES or a formula; None and "file" mean the file's scale
    multiplier: float = 1.0
    axes: str | None = None
    mask_true: Meaning | None = None
    told: Told = NOTHING  # what the file may not say
    every_rule: bool = False  # replay every scale rule instead
    worst: int | None = None  # only this many heads, worst first, with reasons
    remarks: tuple[str, ...] = ()


def add_file(parser: Parser, nargs: str | None = None) -> None:
    """Add the file as a positional argument."""
    parser.add("file", "file", metavar="FILE", nargs=nargs, help=f"captured queries and keys: {ENDINGS}, or a folder")


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


# Options for what a file may not say, and the fields of Told.
_TOLD = (
    ("context_factor", "context_factor"),
    ("position", "position"),
    ("layer_index", "layer"),
    ("temperature", "temperature"),
)


def _add_options(parser: Parser) -> None:
    title = "heads and scale"
    add_file(parser)
    add_axes(parser)
    add_mask_true(parser)
    parser.add(title, "--layer", metavar="I", help="only this layer, by number or name")
    parser.add(title, "--head", metavar="H", help="only this head; the first is 0")
    parser.add(
        title,
        "--scale",
        metavar="RULE",
        suggest=("file", *SCALE_RULES),
        help="file (default), one of the scale rules below, a number, or a formula such as 'log(n)/sqrt(d)'. A list "
        "of heads uses this scale instead of the file's; a single head is shown under both, by default unscaled and "
        "with the file's scale",
    )
    parser.add(title, "--multiplier", metavar="X", help="the multiplier of --scale custom (not a divisor)")
    parser.add(
        title,
        "--rules",
        metavar="all",
        choices=("all",),
        help="replay every scale rule on 64 rows of each head: how far attention would be from the original, and "
        "which rule makes a frozen head healthy",
    )
    parser.add(
        title,
        "--worst",
        metavar="N",
        help="only the N heads most worth a look, worst first, each with the reason for its status: those whose "
        "scale the evidence contradicts, the others by σ / √(2 ln n), healthy ones last",
    )
    parser.add(
        title,
        "--context-factor",
        metavar="X",
        help=f"how many times longer the context was made after training, if the file lacks the model's "
        f"configuration; used by {_users('context_factor')}",
    )
    parser.add(
        title,
        "--position",
        metavar="N",
        help=f"the position of the last query, if the text is not the start of its context; used by "
        f"{_users('position')}",
    )
    parser.add(
        title,
        "--layer-index",
        metavar="N",
        help=f"the number of the layer, from 0, if the file does not say it; used by {_users('layer')}",
    )
    parser.add(
        title,
        "--temperature",
        metavar="X",
        help=f"the factor of cosines that the head learned; used by {_users('temperature')}",
    )
    parser.add_output()
    parser.add_rules(SCALE_RULES)


def _users(name: str) -> str:
    """Name the rules whose multiplier depends on a setting."""
    return ", ".join(rules_that_need(name))


def _request(given: Given) -> InspectRequest:
    texts = with_scale(given)
    scale = texts.get("scale")
    if scale is not None:
        scale = str(value_of(_SCALE, scale))
    custom = float(value_of(FIELD["multiplier"], texts.get("multiplier", "1")))
    needs = () if scale in (None, "file") else scale_rule(scale).needs
    told: dict[str, Any] = {}
    if "rules" in given and (scale == "file" or scale in SCALE_RULES):
        raise UsageError("--rules all replays every rule; leave out --scale, or give it a formula")
    if "worst" in given and (scale is not None or "rules" in given):
        raise UsageError("--worst ranks heads at the file's scale; leave out --scale and --rules")
    remarks = [no_effect("--multiplier")] if "multiplier" in texts and scale != "custom" else []
    for option, name in _TOLD:
        if option in given:
            words = f"--{option.replace('_', '-')}"
            told[name] = value_of(FIELD[name], given[option], words)
            remarks += [] if name in needs else [no_effect(words)]
    return InspectRequest(
        Path(given["file"]),
        given.get("layer"),
        head_number(given["head"]) if "head" in given else None,
        scale,
        custom,
        given.get("axes"),
        given.get("mask_true"),
        Told(**told),
        "rules" in given,
        _count(given["worst"]) if "worst" in given else None,
        tuple(remarks),
    )


def _count(text: str) -> int:
    """Return the number of heads to rank; raise UsageError if it is not one."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise UsageError(f"--worst: must be a whole number from 1 up, not {text!r}")
    return int(text)


def head_number(text: str) -> int:
    """Return the number of a head; raise UsageError if it is not one."""
    try:
        head = int(text)
    except ValueError:
        head = -1
    if head < 0:
        raise UsageError(f"--head: must be a whole number from 0 up, not {text!r}")
    return head


def run(request: InspectRequest, output: Output) -> int:
    """Measure and print heads of a capture; return the exit code, 2 if some heads cannot be read."""
    from ....core.captures.reader import open_capture
    from ....core.export.inspect import head_markdown, heads_markdown, inspect_csv, inspect_json
    from ...panes.capture.ranking.printed import SHOWN
    from ...views.results.table import Contents
    from ..printing import whole_table

    capture = open_capture(request.file, request.axes, request.mask_true)
    output.check((request.file, *capture.files))
    messages = screen_glyphs(output.ascii_only)
    for note in capture.notes:
        say(f"note: {note}", messages)
    chosen = chosen_heads(capture, request.layer, request.head)
    if request.every_rule:
        from ..replaying import print_replay

        formulas = () if request.scale is None else (request.scale,)
        return print_replay(capture, chosen, request.told, output, formulas)
    one = len(chosen) == 1 and request.worst is None
    other = request.scale or "file"
    names = ("none" if other == "file" else other, "file") if one else (other,)
    heads, refusal = _measure_heads(capture, chosen, names, request.multiplier, request.told)
    left_out = len(chosen) - len(heads)
    because: list[tuple[str, ...]] | None = None
    if request.worst is not None:
        heads, because = _worst(capture, heads, request.worst)
    spell = output.glyphs.say
    output.emit(
        {
            "json": lambda: inspect_json(capture, heads, because),
            "csv": lambda: inspect_csv(heads),
            "markdown": lambda: (
                head_markdown(capture, heads[0], spell)
                if one
                else heads_markdown(capture, heads, SHOWN, spell, because)
            ),
            "table": lambda: (
                whole_table(_head_title(capture, heads[0]), Contents(heads[0].columns), output)
                if one
                else _list_table(capture, heads, output, because)
            ),
        }
    )
    if refusal is None:
        return 0
    say(f"{refusal} ({left_out} of {len(chosen)} heads are left out)", messages)
    return 2


def chosen_heads(capture: Capture, layer: str | None, head: int | None) -> list[Head]:
    """Return the heads with this layer and number, None meaning any; raise CaptureError if there are none."""
    from ....core.captures.files import CaptureError, plain

    layers = [found for found in capture.layers if layer is None or layer in (str(found.index), found.name)]
    if not layers:
        there = _ranges([found.index for found in capture.layers])
        raise CaptureError(f"{plain(capture.path)}: no layer {plain(layer)}; the file has layers {there}")
    chosen = [(found, h) for found in layers for h in range(found.heads) if head is None or h == head]
    if not chosen:
        whose = f"layer {plain(layer)} has" if layer is not None else "its layers have"
        last = max(found.heads for found in layers) - 1
        raise CaptureError(f"{plain(capture.path)}: no head {head}; {whose} heads 0 to {last}")
    return chosen


def _measure_heads(
    capture: CaptureFile, chosen: Sequence[Head], rules: Sequence[str], multiplier: float, told: Told
) -> tuple[list[Measurement[HeadSubject]], InputError | None]:
    """Measure the readable heads; return them and the first error, or raise that error if no head is readable."""
    from ....core.captures.heads import named_rule, stream_head
    from ..parallel import of_each

    def work(own: Sequence[CaptureFile], place: Head) -> Steps[Measurement[HeadSubject]]:
        layer, head = place
        return stream_head(own[0], layer, head, [named_rule(rule, layer, multiplier, told) for rule in rules])

    heads: list[Measurement[HeadSubject]] = []
    refusal: InputError | None = None
    with ProgressLine(f"measuring {len(chosen)} heads") as progress:
        for found in of_each([capture], chosen, work, progress):
            if isinstance(found, InputError):
                refusal = refusal or found
            else:
                heads.append(found)
    if refusal is not None and not heads:
        raise refusal
    return heads, refusal


def _worst(
    capture: CaptureFile, heads: Sequence[Measurement[HeadSubject]], count: int
) -> tuple[list[Measurement[HeadSubject]], list[tuple[str, ...]]]:
    """Return the heads most worth a look, worst first, and why."""
    from ....core.blas import one_blas_thread
    from ....core.diagnosis.heads.ranking import rank
    from ....core.diagnosis.reading import file_configuration

    with ProgressLine(f"explaining {len(heads)} heads") as progress, one_blas_thread():
        for fraction, ranked in rank(capture, heads, file_configuration(capture)):
            progress.show(fraction)
            if ranked is not None:
                return [head for head, _ in ranked[:count]], [each.because for _, each in ranked[:count]]
    raise AssertionError("ranking ends with its result")


def _head_title(capture: Capture, head: Measurement[HeadSubject]) -> list[str]:
    layer = head.subject.layer
    return [*_file_words(capture, [layer]), f"layer {layer.index}", f"head {head.subject.head}"]


def _file_words(capture: Capture, layers: Sequence[Layer]) -> list[str]:
    """Return what a title says about the file and these layers."""
    from ....core.captures.files import plain

    words = [plain(capture.path.name)]
    words += [text for text in (capture.model, capture.licence) if text]
    words.append(f"d_k {_ranges([layer.d_k for layer in layers])}")
    words.append(f"{_ranges([layer.keys for layer in layers])} tokens")
    batch = layers[0].batch
    return [*words, f"{batch} texts"] if batch > 1 else words


def _scale_words(heads: Sequence[Measurement[HeadSubject]], glyphs: Glyphs) -> str:
    """Return what a title says about the scale of a list of heads."""
    from ...views.results.table import column_title

    columns = [head.columns[0] for head in heads]
    titles = dict.fromkeys(column_title(column, glyphs) for column in columns)
    return f"scale: {next(iter(titles))}" if len(titles) == 1 else f"scale: {len(titles)}, by layer"


def _ranges(numbers: Sequence[int]) -> str:
    """Return `32`, `0 to 5`, or `0, 2, 7`."""
    found = sorted(set(numbers))
    if len(found) > 2 and found[-1] - found[0] == len(found) - 1:
        return f"{found[0]} to {found[-1]}"
    return ", ".join(map(str, found[:12])) + (", …" if len(found) > 12 else "")


def _list_table(
    capture: Capture,
    heads: Sequence[Measurement[HeadSubject]],
    output: Output,
    because: Sequence[tuple[str, ...]] | None,
) -> str:
    """Return a title and a table with one line per head; with reasons, they end the lines."""
    from rich.text import Text

    from ....core.statistics.catalogue import STATISTIC
    from ...panes.capture.ranking.printed import head_list
    from ...panes.capture.ranking.ranked import RankedHead, ranked_lines
    from ...views.lines import as_text
    from ..printing import printed, title_lines

    glyphs, width = output.glyphs, output.width if output.on_screen else None
    words = [*_file_words(capture, [head.subject.layer for head in heads]), _scale_words(heads, glyphs)]
    title = title_lines(words, output.text_width, glyphs)
    if because is None:
        return printed([title, Text(), head_list(heads, width, glyphs)], output)
    ranked = [
        RankedHead(head.subject.layer.index, head.subject.head, head.columns[0].measured, reasons)
        for head, reasons in zip(heads, because, strict=True)
    ]
    lines = ranked_lines(ranked, STATISTIC["freezing_ratio"], width, glyphs)
    return printed([title, Text(), as_text(lines)], output)


COMMAND = Command(
    usage="""attn-tui inspect FILE [--layer I] [--head H] [--scale RULE] [--worst N]
                        [--axes AXES] [--format FORMAT] [-o FILE]""",
    description="""\
Read captured queries and keys and print the statistics of their attention: one
line per head, or the whole table and histograms of a single head. If some heads
cannot be read, the others are still printed and the exit status is 2. A head's
status is the first of these words that applies:
"""
    + "\n".join(
        textwrap.fill(meaning, 78, initial_indent=f"  {word.ljust(9)} ", subsequent_indent=" " * 12)
        for word, meaning in MEANINGS.items()
    ),
    examples="""\
examples:
  attn-tui inspect heads.npz                              every head
  attn-tui inspect heads.npz --layer 3 --head 5           one head in full
  attn-tui inspect heads.npz --worst 10                   where to look first
  attn-tui inspect heads.npz --scale 0.125                another multiplier
  attn-tui inspect heads.npz --axes batch,token,head,d_k  which axis is which
  attn-tui inspect heads.npz --format csv | grep one_hot_rows
""",
    add_options=_add_options,
    request=_request,
    run=run,
)

"""attn-tui inspect: the attention statistics of captured heads."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....core.captures.capture import NOTHING, Capture, HeadSubject, Layer, Meaning, Told
from ....core.message import message
from ....core.parameters import FIELD, UNSCALED
from ....core.scales import SCALE_RULES, rules_that_need, scale_rule
from ....core.statistics.measurement import Measurement
from ....core.statistics.status import MEANINGS
from ...settings.parse import UsageError, no_effect, value_of, with_scale
from ...views.glyphs import Glyphs
from ...views.reproduce import in_shell
from ..captured import add_axes, add_file, add_mask_true, chosen_heads, head_number, ranges
from ..command import Command, Given
from ..output import WITH_CODE, Output, say, screen_glyphs
from ..parser import Parser
from ..progress import ProgressLine
from ..working import USUAL, Work, add_work, on_heads, readable, work_of

if TYPE_CHECKING:
    from ....core.captures.reader import CaptureFile

_SCALE = replace(FIELD["scale"], choices=("file", *SCALE_RULES))


@dataclass(frozen=True)
class InspectRequest:
    """The heads to measure and their scale; without layer and head, every head."""

    file: Path
    layer: str | None = None
    head: int | None = None
    scale: str | None = None  # of B: a name of SCALE_RULES or a formula; None and "file" mean the file's scale
    against: str | None = (
        None  # the same of A, if a single head is shown; None: unscaled, or the file's beside `scale`
    )
    multiplier: float = 1.0
    axes: str | None = None
    mask_true: Meaning | None = None
    told: Told = NOTHING  # what the file may not say
    every_rule: bool = False  # replay every scale rule instead
    worst: int | None = None  # only this many heads, worst first, with reasons
    remarks: tuple[str, ...] = ()
    work: Work = USUAL


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
        "of heads uses this scale instead of the file's; of a single head, it is that of column B",
    )
    parser.add(
        title,
        "--against",
        metavar="RULE",
        suggest=("unscaled", "file", *SCALE_RULES),
        help="the scale of column A, if a single head is shown: unscaled (default), file (default with --scale), a "
        "scale rule, or a formula",
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
        help=message(
            "how many times longer the context was made after training, if the file lacks the model's "
            "configuration; used by {users}",
            users=_users("context_factor"),
        ),
    )
    parser.add(
        title,
        "--position",
        metavar="N",
        help=message(
            "the position of the last query, if the text is not the start of its context; used by {users}",
            users=_users("position"),
        ),
    )
    parser.add(
        title,
        "--layer-index",
        metavar="N",
        help=message(
            "the number of the layer, from 0, if the file does not say it; used by {users}", users=_users("layer")
        ),
    )
    parser.add(
        title,
        "--temperature",
        metavar="X",
        help=message("the factor of cosines that the head learned; used by {users}", users=_users("temperature")),
    )
    add_work(parser)
    parser.add_output(WITH_CODE)
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
    against = _against(given["against"]) if "against" in given else None
    needs = {need for rule in (scale, against) if rule not in (None, "file") for need in scale_rule(str(rule)).needs}
    told: dict[str, Any] = {}
    if "rules" in given and (scale == "file" or scale in SCALE_RULES):
        raise UsageError("--rules all replays every rule; leave out --scale, or give it a formula")
    if "worst" in given and (scale is not None or "rules" in given):
        raise UsageError("--worst ranks heads at the file's scale; leave out --scale and --rules")
    if against is not None and ("worst" in given or "rules" in given):
        raise UsageError("--against: only with a single head; leave out --worst and --rules")
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
        against,
        custom,
        given.get("axes"),
        given.get("mask_true"),
        Told(**told),
        "rules" in given,
        _count(given["worst"]) if "worst" in given else None,
        tuple(remarks),
        work_of(given),
    )


def _against(text: str) -> str:
    """Return the scale rule of A; raise UsageError if there is none with this name."""
    return "none" if text.strip() == UNSCALED else str(value_of(_SCALE, text, "--against"))


def _count(text: str) -> int:
    """Return the number of heads to rank; raise UsageError if it is not one."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise UsageError("--worst: must be a whole number from 1 up, not {text!r}", text=text)
    return int(text)


def run(request: InspectRequest, output: Output) -> int:
    """Measure and print heads of a capture; return the exit code, 2 if some heads cannot be read."""
    from ....core.captures.reader import open_capture
    from ....core.export.code.captured.head import head_code
    from ....core.export.inspect import head_markdown, heads_markdown, inspect_csv, inspect_json
    from ....core.work import heads as working
    from ...panes.capture.ranking.printed import SHOWN
    from ...views.results.table import Contents
    from ..printing import whole_table

    capture = open_capture(request.file, request.axes, request.mask_true)
    output.check((request.file, *capture.files))
    messages = screen_glyphs(output.ascii_only)
    for note in capture.notes:
        say(message("note: {note}", note=note), messages)
    chosen = chosen_heads(capture, request.layer, request.head)
    coded = output.format in ("python", "torch")
    if coded and (request.every_rule or request.worst is not None or len(chosen) > 1):
        raise UsageError(
            "--format: {format} prints one head; give --layer and --head, and neither --rules nor --worst",
            format=output.format,
        )
    if request.every_rule:
        from ..replaying import print_replay

        arguments = (request.told, () if request.scale is None else (request.scale,))
        what = message("replaying {count} heads", count=len(chosen))
        results = on_heads(working.replay_rules, capture, chosen, arguments, what, request, output)
        return print_replay(capture, len(chosen), results, output)
    one = len(chosen) == 1 and request.worst is None
    other = request.scale or "file"
    if request.against is not None and not one:
        raise UsageError("--against: only with a single head; give --layer and --head")
    names = (request.against or ("none" if other == "file" else "file"), other) if one else (other,)
    arguments = (names, request.multiplier, request.told)
    what = message("measuring {count} heads", count=len(chosen))
    heads, refusal = readable(on_heads(working.measure, capture, chosen, arguments, what, request, output))
    left_out = len(chosen) - len(heads)
    because: list[tuple[str, ...]] | None = None
    if request.worst is not None:
        heads, because = _worst(capture, heads, request.worst)
    spell = output.glyphs.say
    output.emit(
        {
            "json": lambda: inspect_json(capture, heads, because),
            "csv": lambda: inspect_csv(heads),
            "python": lambda: spell(head_code(heads[0], "python", _command(request))),
            "torch": lambda: spell(head_code(heads[0], "torch", _command(request))),
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
    say(
        message(
            "{refusal} ({left_out} of {count} heads are left out)",
            refusal=refusal,
            left_out=left_out,
            count=len(chosen),
        ),
        messages,
    )
    return 2


def _command(request: InspectRequest) -> str:
    """Return the command that prints this head."""
    options: dict[str, object] = {
        "layer": request.layer,
        "head": request.head,
        "scale": request.scale,
        "against": request.against,
        "axes": request.axes,
    }
    if request.scale == "custom":
        options["scale"] = request.multiplier
    words = [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]
    return in_shell(["attn-tui", "inspect", str(request.file), *words])


def _worst(
    capture: CaptureFile, heads: Sequence[Measurement[HeadSubject]], count: int
) -> tuple[list[Measurement[HeadSubject]], list[tuple[str, ...]]]:
    """Return the heads most worth a look, worst first, and why."""
    from ....core.blas import one_blas_thread
    from ....core.diagnosis.heads.ranking import rank
    from ....core.diagnosis.reading import file_configuration

    with ProgressLine(message("explaining {count} heads", count=len(heads))) as progress, one_blas_thread():
        for fraction, ranked in rank(capture, heads, file_configuration(capture)):
            progress.show(fraction)
            if ranked is not None:
                return [head for head, _ in ranked[:count]], [each.because for _, each in ranked[:count]]
    raise AssertionError("ranking ends with its result")


def _head_title(capture: Capture, head: Measurement[HeadSubject]) -> list[str]:
    layer = head.subject.layer
    return [
        *_file_words(capture, [layer]),
        message("layer {index}", index=layer.index),
        message("head {head}", head=head.subject.head),
    ]


def _file_words(capture: Capture, layers: Sequence[Layer]) -> list[str]:
    """Return what a title says about the file and these layers."""
    from ....core.captures.files import plain

    words = [plain(capture.path.name)]
    words += [text for text in (capture.model, capture.licence) if text]
    words.append(f"d_k {ranges([layer.d_k for layer in layers])}")
    words.append(message("{ranges} tokens", ranges=ranges([layer.keys for layer in layers])))
    batch = layers[0].batch
    return [*words, message("{batch} texts", batch=batch)] if batch > 1 else words


def _scale_words(heads: Sequence[Measurement[HeadSubject]], glyphs: Glyphs) -> str:
    """Return what a title says about the scale of a list of heads."""
    from ...views.results.table import column_title

    columns = [head.columns[0] for head in heads]
    titles = dict.fromkeys(column_title(column, glyphs) for column in columns)
    return (
        message("scale: {next}", next=next(iter(titles)))
        if len(titles) == 1
        else message("scale: {count}, by layer", count=len(titles))
    )


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
    usage="""attn-tui inspect FILE [--layer I] [--head H] [--worst N]
                        [--scale RULE] [--against RULE]
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
  attn-tui inspect heads.npz --layer 3 --head 5 --scale d_k --against sqrt_d_k
  attn-tui inspect heads.npz --worst 10                   where to look first
  attn-tui inspect heads.npz --scale 0.125                another multiplier
  attn-tui inspect heads.npz --axes batch,token,head,d_k  which axis is which
  attn-tui inspect heads.npz --format csv | grep one_hot_rows
""",
    add_options=_add_options,
    request=_request,
    run=run,
)

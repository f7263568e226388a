"""attn-tui inspect: the attention statistics of captured heads."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....core.captures.capture import Capture, HeadContext, HeadSubject, Layer
from ....core.captures.settings import (
    AS_IN_FILE,
    FILE,
    HEAD_FIELD,
    HeadSetting,
    changes_of_a,
    setting_of_a,
)
from ....core.errors import InputError, ParameterError
from ....core.message import message, name, plain, reason_of
from ....core.parameters import FIELD, ROUNDED, UNSCALED
from ....core.scales import SCALE_RULES, rules_that_need, scale_rule
from ....core.statistics.catalogue import STATISTIC
from ....core.statistics.measurement import Measurement
from ....core.statistics.status import MEANINGS
from ...compute.question import in_shell, option, option_words
from ...language.cells import aligned, cells
from ...settings.parse import UsageError, no_effect, value_of, whole_number, with_scale
from ...views.glyphs import Glyphs
from ...views.numbers import signed
from ..captured import CaptureArguments, chosen_heads, head_number, on_heads, opened, ranges
from ..output import CODE, LISTED, Output
from ..parser import METAVARS, Command, Given, arguments, parameter_help
from ..working import Results, complete, one_engine

if TYPE_CHECKING:
    from ....core.captures.head import CaptureFile
    from ....core.diagnosis.results import Replay
    from ....core.program.text import Dialect
    from ....core.tables.heads import HeadMeasurement, Inspected
    from ....core.tables.table import Table


def worst(
    captures: Sequence[CaptureFile], heads: Sequence[Inspected], count: int, request: CaptureArguments, output: Output
) -> list[Inspected]:
    """Return the heads most worth a look, worst first, and why; `heads` are in the order of the captures."""
    from ....core.diagnosis.heads.ranking import Known, rank
    from ....core.work import heads as working

    asked = {(head.subject.layer.path, head.subject.layer.position) for head, _ in heads}
    layers = [[layer for layer in each.layers if (layer.path, layer.position) in asked] for each in captures]
    chosen = [[(layer, head) for layer in each for head in range(layer.heads)] for each in layers]
    known: dict[tuple[Path, int], dict[int, Known]] = {}
    what = message("explaining {number} heads", number=len(heads))
    for layer, head, each in complete(on_heads(working.explain, captures, chosen, (), what, request, output)):
        known.setdefault((layer.path, layer.position), {})[head] = each
    return [*rank([head for head, _ in heads], known)[:count]]


def head_text(capture: Capture, head: HeadMeasurement, output: Output) -> str:
    """Return a head in full, for a terminal."""
    from ...views.results.table import Contents
    from ..printing import whole_table

    layer = head.subject.layer
    title = [
        *_file_words([capture], [layer]),
        message("layer {index}", index=layer.index),
        message("head {head}", head=head.subject.head),
    ]
    return whole_table(title, Contents(head.columns), output)


def _file_words(captures: Sequence[Capture], layers: Sequence[Layer]) -> list[str]:
    """Return what a title says about the files and these layers."""
    from ....core.tables.heads import files_words

    words = files_words(captures, lambda capture: plain(capture.path.name))
    words.append(f"d_k {ranges([layer.d_k for layer in layers])}")
    words.append(message("{numbers} tokens", numbers=ranges([layer.keys for layer in layers])))
    batches = [layer.batch for layer in layers]
    return [*words, message("{numbers} texts", numbers=ranges(batches))] if max(batches) > 1 else words


def _scale_words(heads: Sequence[Measurement[HeadSubject]], glyphs: Glyphs) -> str:
    """Return what a title says about the scale of a list of heads."""
    from ....core.diagnosis.disagreement import scale_disagreement
    from ...views.results.table import column_title

    columns = [head.columns[0] for head in heads]
    titles = dict.fromkeys(column_title(column, glyphs) for column in columns)
    if len(titles) == 1:
        return message("scale: {scale}", scale=next(iter(titles)))
    layers = dict.fromkeys(head.subject.layer for head in heads)
    said = scale_disagreement([*layers]) if columns[0].rule == "file" else ""
    numbers = sorted(column.multiplier for column in columns)
    return said or message("scale: × {low:.4g} to × {high:.4g}, by layer", low=numbers[0], high=numbers[-1])


def list_text(captures: Sequence[Capture], heads: Sequence[Inspected], output: Output) -> str:
    """Return a title and a table with one line per head; with reasons, they end the lines."""
    from ...panes.capture.view import RankedHead, ranked_lines
    from ..printing import head_list, page

    glyphs, width = output.glyphs, output.width if output.on_screen else None
    measured, layers = [head for head, _ in heads], [head.subject.layer for head, _ in heads]
    title = [*_file_words(captures, layers), _scale_words(measured, glyphs)]
    if heads[0][1] is None:
        return page(output, title, "", head_list(measured, width, glyphs))
    ranked = [
        RankedHead(
            layer.index,
            head.subject.head,
            head.columns[0].measured,
            explained.because,
            file=layer.file,
            verdict=explained.verdict,
        )
        for layer, (head, explained) in zip(layers, heads, strict=True)
        if explained is not None
    ]
    return page(output, title, "", ranked_lines(ranked, STATISTIC["saturation"], width, glyphs))


_INDENT = "  "  # of further names of a row
_CHANGE = 4  # the column of the change of the entropy


def print_replay(captures: Sequence[CaptureFile], results: Results[Replay], asked: int, output: Output) -> int:
    """Print the replays of `asked` heads; return the exit code, 2 if some heads cannot be read."""
    from ....core.tables.heads import replay_table

    return results.emit(
        output, lambda heads: _tables(heads, output), lambda heads: replay_table(captures, heads, asked)
    )


def _tables(heads: Sequence[Replay], output: Output) -> str:
    """Return a table for each file, after its name if there are several."""
    from ....core.tables.heads import by_file

    return "\n".join(
        (f"{output.glyphs.say(name)}\n" if name else "") + _table(own, output) for name, own in by_file(heads)
    )


def _table(heads: Sequence[Replay], output: Output) -> str:
    """Return a table with a line for each rule, and what is said below it."""
    from ....core.tables.heads import replay_grid, replay_remarks

    say = output.glyphs.say
    header, lines, _ = replay_grid(heads)
    rows = [[say(name(rules)), *(signed(say(each), output.glyphs) for each in figures)] for rules, *figures in lines]
    table = [[*map(say, header)], *rows]
    shown = aligned(_folded(table, output.width) if output.on_screen else table, to_left=(0,))
    below = replay_remarks(heads)
    said = [line for text in map(say, below) for line in _lines(text, output.text_width)]
    text = "\n".join([*shown, *([""] if below else []), *said])
    return f"{text}\n"


def _folded(table: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Return a table that fits a screen: rules with the same multiplier fill several lines.

    If even the longest name has no room, the change of the entropy is left out.
    """
    longest = max(cells(word) for names, *_ in table for word in names.split()) + len(_INDENT)
    if width - _width(table) < longest:
        table = [[*row[:_CHANGE], *row[_CHANGE + 1 :]] for row in table]
    folded: list[list[str]] = []
    for names, *figures in table:
        first, *more = _lines(names, max(width - _width(table), longest) - len(_INDENT))
        folded += [[first, *figures], *([f"{_INDENT}{line}", *("" for _ in figures)] for line in more)]
    return folded


def _width(table: Sequence[Sequence[str]]) -> int:
    """Return the width of all columns but the first, with what separates them."""
    return sum(max(map(cells, column)) + 2 for column in [*zip(*table, strict=True)][1:])


def _lines(text: str, width: int) -> list[str]:
    from ...views.lines import wrapped

    return ["".join(part for part, _ in line).rstrip() for line in wrapped(text, width)]


_TITLE = "heads and scale"


def _setting(name: str) -> Any:
    """Return the option of a field of head settings; it stays text, for they are read together."""
    field = HEAD_FIELD[name]
    words = parameter_help(field, field.accepted, field.format(getattr(AS_IN_FILE, name)))
    return option(_TITLE, field.option, METAVARS[field.kind], words, suggest=field.choices)


def _users(name: str) -> str:
    """Name the rules whose multiplier depends on a setting."""
    return ", ".join(rules_that_need(name))


def _context(name: str, flag: str, metavar: str, words: str) -> Any:
    """Return the option of a parameter that a file may not say."""
    return option(_TITLE, flag, metavar, words, read=lambda text: value_of(FIELD[name], text, flag))


@dataclass(frozen=True)
class InspectArguments(CaptureArguments):
    """The heads to measure and their settings; without layer and head, every head."""

    layer: str | None = option(_TITLE, "--layer", "I", "only this layer, by number or name")
    head: int | None = option(_TITLE, "--head", "H", "only this head; the first is 0", read=head_number)
    scale: str | None = option(
        _TITLE,
        "--scale",
        "RULE",
        "file (default), a name of `attn-tui help rules`, a number, or a formula such as 'log(n)/sqrt(d)'. A "
        "list of heads uses this scale instead of the file's; of a single head, it is that of column B",
        suggest=("file", *SCALE_RULES),
    )
    against: str | None = option(
        _TITLE,
        "--against",
        "A",
        "what column A is, if a single head is shown: B with another scale, format, arithmetic or soft-cap, "
        "such as unscaled (default), file (default with --scale), precision=float16 or d_k,softcap=0",
        suggest=(UNSCALED, *HEAD_FIELD["scale"].choices),
    )
    multiplier: str | None = _setting("multiplier")
    precision: str | None = _setting("precision")
    arithmetic: str | None = _setting("arithmetic")
    softcap: str | None = _setting("softcap")
    rules: str | None = option(
        _TITLE,
        "--rules",
        "all",
        "replay every scale rule on 64 rows of each head: how far attention would be from the original, and "
        "which rule makes a saturated head healthy",
        choices=("all",),
    )
    worst: int | None = option(
        _TITLE,
        "--worst",
        "N",
        "only the N heads most worth a look, worst first, each with the reason for its status: those whose "
        "scale the evidence contradicts, the others by σ / √(2 ln n), healthy ones last",
        read=lambda text: whole_number("--worst", text),
    )
    context_factor: float | None = _context(
        "context_factor",
        "--context-factor",
        "X",
        message(
            "how many times longer the context was made after training, if the file lacks the model's "
            "configuration; used by {users}",
            users=_users("context_factor"),
        ),
    )
    position: int | None = _context(
        "position",
        "--position",
        "N",
        message(
            "the position of the last query, if the text is not the start of its context; used by {users}",
            users=_users("position"),
        ),
    )
    layer_index: int | None = _context(
        "layer",
        "--layer-index",
        "N",
        message(
            "the number of the layer, from 0, if the file does not say it; used by {users}", users=_users("layer")
        ),
    )
    temperature: float | None = _context(
        "temperature",
        "--temperature",
        "X",
        message("the factor of cosines that the head learned; used by {users}", users=_users("temperature")),
    )
    setting: HeadSetting = AS_IN_FILE  # of B

    @property
    def context(self) -> HeadContext:
        """What the file may not say."""
        given = {field: getattr(self, name) for name, field in _TOLD.items() if getattr(self, name) is not None}
        return HeadContext(**given)


# Options for what a file may not say, and the fields of HeadContext.
_TOLD = {
    "context_factor": "context_factor",
    "position": "position",
    "layer_index": "layer",
    "temperature": "temperature",
}


def _check(given: Given) -> InspectArguments:
    texts = with_scale(given)
    named = {name: texts[name] for name in HEAD_FIELD if name in texts}
    setting = AS_IN_FILE.with_values({name: value_of(HEAD_FIELD[name], text) for name, text in named.items()})
    against = given.get("against")
    a = setting if against is None else _against(setting, against)
    needs = {need for each in (setting, a) if each.scale != FILE for need in scale_rule(each.scale).needs}
    if "rules" in given and (texts.get("scale") == FILE or texts.get("scale") in SCALE_RULES):
        raise UsageError("--rules all replays every rule; leave out --scale, or give it a formula")
    others = [HEAD_FIELD[name].option for name in ("precision", "arithmetic", "softcap") if name in named]
    if "rules" in given and others:
        raise UsageError("--rules all replays heads in exact arithmetic; leave out {option}", option=others[0])
    if "worst" in given and ("scale" in texts or "rules" in given):
        raise UsageError("--worst ranks heads at the file's scale; leave out --scale and --rules")
    if "worst" in given and others:
        raise UsageError("--worst ranks heads as the file says; leave out {option}", option=others[0])
    if against is not None and ("worst" in given or "rules" in given):
        raise UsageError("--against: only with a single head; leave out --worst and --rules")
    idle = [HEAD_FIELD[name].option for name in named if _is_idle(name, setting) and _is_idle(name, a)]
    if against is not None:
        idle += [f"--against {name}" for name in changes_of_a(against) if _is_idle(name, a)]
    idle += [f"--{name.replace('_', '-')}" for name, field in _TOLD.items() if name in given and field not in needs]
    return arguments(InspectArguments, given, setting=setting, remarks=tuple(map(no_effect, idle)))


def _against(b: HeadSetting, text: str) -> HeadSetting:
    """Return A's setting; raise UsageError if the text is not accepted."""
    try:
        return setting_of_a(b, text)
    except ParameterError as error:
        refusal = UsageError("--against: {reason}", reason=reason_of(str(error), "against"))
        refusal.pointer = error.pointer
        raise refusal from None


def _is_idle(name: str, setting: HeadSetting) -> bool:
    """Return whether a value has no effect beside the others."""
    return (name == "multiplier" and setting.scale != "custom") or (
        name == "arithmetic" and setting.precision not in ROUNDED
    )


def run(request: InspectArguments, output: Output) -> int:
    """Measure and print heads of captures; return the exit code, 2 if some heads cannot be read."""
    with one_engine(request.work) as work:
        return _inspect(replace(request, work=work), output)


def _inspect(request: InspectArguments, output: Output) -> int:
    from ....core.tables.heads import apart_of, inspect_table
    from ....core.work import heads as working

    captures = opened(request, output)
    chosen = [chosen_heads(capture, request.layer, request.head) for capture in captures]
    asked = sum(map(len, chosen))
    one = asked == 1 and request.worst is None and request.rules is None
    if output.format in CODE and not one:
        raise UsageError(
            "--format: {format} prints one head of one file; give --layer and --head, and neither --rules nor "
            "--worst",
            format=output.format,
        )
    if request.rules is not None:
        arguments = (request.context, () if request.scale is None else (request.scale,))
        what = message("replaying {number} heads", number=asked)
        replays = on_heads(working.replay_rules, captures, chosen, arguments, what, request, output)
        return print_replay(captures, Results(replays, asked, "heads"), asked, output)
    if request.against is not None and not one:
        raise UsageError("--against: only with a single head; give --layer and --head")
    b = request.setting
    against = request.against or (UNSCALED if b.scale == FILE else FILE)
    settings = (_against(b, against), b) if one else (b,)
    arguments = (settings, request.context)
    what = message("measuring {number} heads", number=asked)
    measured = on_heads(working.measure, captures, chosen, arguments, what, request, output)
    results = Results((_without_reasons(each) for each in measured), asked, "heads")

    def text(heads: Sequence[Inspected]) -> str:
        return head_text(captures[0], heads[0][0], output) if one else list_text(captures, heads, output)

    def table(heads: Iterable[Inspected], asked: int = asked * len(settings)) -> Table[Inspected]:
        return inspect_table(captures, heads, asked, apart_of(settings), whole=one)

    if request.worst is None:
        words = option_words(replace(request, files=request.files[:1]))
        command = in_shell(["attn-tui", "inspect", *words])

        def code(heads: Sequence[Inspected], dialect: Dialect) -> str:
            from ....core.program.captured import head_code

            return head_code(heads[0][0], dialect, command)

        return results.emit(output, text, table, code)
    if heads := worst(captures, results.all(), request.worst, request, output):
        output.emit(lambda: text(heads), lambda: table(heads, len(heads)))
    return results.code(output)


def _without_reasons(head: HeadMeasurement | InputError) -> Inspected | InputError:
    return head if isinstance(head, InputError) else (head, None)


COMMAND = Command(
    usage="""attn-tui inspect FILE... [--layer I] [--head H] [--worst N]
                        [--scale RULE] [--precision NAME] [--against A]
                        [--axes AXES] [--tensor NAMES]
                        [--format FORMAT] [-o FILE]""",
    description="""\
Read captured queries and keys and print the statistics of their attention: one
line per head, or the whole table and histograms of a single head. Of several
files, each line names its file, and options apply to all. If some heads
cannot be read, the others are still printed and the exit status is 2. A head's
status is the first of these words that applies:
"""
    + "\n".join(
        textwrap.fill(meaning, 78, initial_indent=f"  {word.ljust(10)} ", subsequent_indent=" " * 13)
        for word, meaning in MEANINGS.items()
    ),
    examples="""\
examples:
  attn-tui inspect heads.npz                              every head
  attn-tui inspect heads.npz --layer 3 --head 5           one head in full
  attn-tui inspect heads.npz --layer 3 --head 5 --scale d_k --against sqrt_d_k
  attn-tui inspect heads.npz --layer 3 --head 5 --against precision=bfloat16
  attn-tui inspect heads.npz --worst 10                   where to look first
  attn-tui inspect heads.npz --scale 0.125                another multiplier
  attn-tui inspect heads.npz --axes batch,token,head,d_k  which axis is which
  attn-tui inspect heads.npz --format csv | grep one_hot_rows
""",
    arguments=InspectArguments,
    run=run,
    formats=(*LISTED, *CODE),
    check=_check,
)

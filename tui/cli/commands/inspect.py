"""attn-tui inspect: the attention statistics of captured heads."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....core.captures.capture import CaptureContents, HeadSubject, Layer
from ....core.captures.settings import AS_IN_FILE, FILE, HEAD_FIELD, HeadSetting, changes_of_a
from ....core.diagnosis.groups import numbers_in_words
from ....core.message import message, name, plain
from ....core.parameters import ROUNDED
from ....core.questions.captures.inspect import OF_CONTEXT, InspectCaptures, against_setting
from ....core.questions.parse import UsageError, no_effect, value_of, with_scale
from ....core.scales import SCALE_RULES, scale_rule
from ....core.statistics.catalogue import STATISTIC
from ....core.statistics.measurement import Measurement
from ....core.statistics.status import MEANINGS
from ...language.cells import aligned, cells
from ...views.glyphs import Glyphs
from ...views.numbers import signed
from ..captured import head_results, opened
from ..output import CODE, LISTED, Output
from ..parser import CliCommand, Given, arguments
from ..working import CommandRequest, ResultStream, Work, command_request, complete, one_engine

if TYPE_CHECKING:
    from ....core.diagnosis.results import Replay
    from ....core.tables.heads import HeadMeasurement, Inspected


def head_text(capture: CaptureContents, head: HeadMeasurement, output: Output) -> str:
    """Return a head in full, for a terminal."""
    from ...views.results.table import TableContents
    from ..printing import whole_table

    layer = head.subject.layer
    title = [
        *_file_words([capture], [layer]),
        message("layer {index}", index=layer.index),
        message("head {head}", head=head.subject.head),
    ]
    return whole_table(title, TableContents(head.columns), output)


def _file_words(captures: Sequence[CaptureContents], layers: Sequence[Layer]) -> list[str]:
    """Return what a title says about the files and these layers."""
    from ....core.tables.heads import files_words

    words = files_words(captures, lambda capture: plain(capture.path.name))
    words.append(f"d_k {numbers_in_words(layer.d_k for layer in layers)}")
    words.append(message("{numbers} tokens", numbers=numbers_in_words(layer.keys for layer in layers)))
    batches = [layer.batch for layer in layers]
    return [*words, message("{numbers} texts", numbers=numbers_in_words(batches))] if max(batches) > 1 else words


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


def list_text(captures: Sequence[CaptureContents], heads: Sequence[Inspected], output: Output) -> str:
    """Return a title and a table with one line per head; with reasons, they end the lines."""
    from ...views.results.ranked import RankedHead, ranked_lines
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
    rows = [
        [say(name(rules)), *(signed(say(figure), output.glyphs) for figure in figures)] for rules, *figures in lines
    ]
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


def _request(given: Given) -> CommandRequest[InspectCaptures]:
    texts = with_scale(given)
    named = {name: texts[name] for name in HEAD_FIELD if name in texts}
    setting = AS_IN_FILE.with_values({name: value_of(HEAD_FIELD[name], text) for name, text in named.items()})
    against = given.get("against")
    a = setting if against is None else against_setting(setting, against)
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
    idle += [
        f"--{name.replace('_', '-')}" for name, field in OF_CONTEXT.items() if name in given and field not in needs
    ]
    return command_request(arguments(InspectCaptures, given, setting=setting), given, map(no_effect, idle))


def _is_idle(name: str, setting: HeadSetting) -> bool:
    """Return whether a value has no effect beside the others."""
    return (name == "multiplier" and setting.scale != "custom") or (
        name == "arithmetic" and setting.precision not in ROUNDED
    )


def run(request: CommandRequest[InspectCaptures], output: Output) -> int:
    """Measure and print heads of captures; return the exit code, 2 if some heads cannot be read."""
    with one_engine(request.work) as work:
        return _inspect(request.question, work, output)


def _inspect(question: InspectCaptures, work: Work, output: Output) -> int:
    question = opened(question, work, output)
    number, one = question.asked, question.is_whole
    if output.format in CODE and not one:
        raise UsageError(
            "--format: {format} prints one head of one file; give --layer and --head, and neither --rules nor "
            "--worst",
            format=output.format,
        )
    if question.against is not None and not one:
        raise UsageError("--against: only with a single head; give --layer and --head")
    what = message("measuring {number} heads", number=number)
    if question.rules is not None:
        what = message("replaying {number} heads", number=number)
    results = ResultStream(question.heads(head_results(question, work, what, output)), number, "heads")
    if question.rules is not None:
        return results.emit(output, lambda heads: _tables(heads, output), question.table)

    def text(heads: Sequence[Inspected]) -> str:
        return (
            head_text(question.captures[0], heads[0][0], output)
            if one
            else list_text(question.captures, heads, output)
        )

    if question.worst is None:
        return results.emit(output, text, question.table, question.code)
    if measured := results.all():
        parts = question.parts_of(question.reasons(measured))
        what = message("explaining {number} heads", number=len(measured))
        heads = question.ranked(measured, complete(head_results(question, work, what, output, parts)))
        output.emit(lambda: text(heads), lambda: question.table(heads))
    return results.code(output)


COMMAND = CliCommand(
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
    options=(InspectCaptures, Work),
    request=_request,
    run=run,
    formats=(*LISTED, *CODE),
)

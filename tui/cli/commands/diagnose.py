"""attn-tui diagnose: which scale a captured head really used, and what else was done to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ....core.errors import InputError
from ....core.message import counted, joined, message, plain
from ...compute.question import in_shell, option, option_words
from ...settings.parse import UsageError
from ...views.lines import Line, wrapped
from ..captured import Expected, chosen_heads, expected_rule, head_number, on_heads, opened, read_configuration
from ..output import CODE, LISTED, Output
from ..parser import Command, Given, arguments
from ..working import Results

if TYPE_CHECKING:
    from ....core.captures.capture import Capture, Layer
    from ....core.tables.diagnosis import Diagnosed


@dataclass(frozen=True)
class DiagnoseArguments(Expected):
    """The heads to diagnose; without layer and head, every head."""

    layer: str | None = option("heads", "--layer", "I", "only this layer, by number or name")
    head: int | None = option("heads", "--head", "H", "only this head; the first is 0", read=head_number)


def _check(given: Given) -> DiagnoseArguments:
    return arguments(DiagnoseArguments, given, expect=expected_rule(given))


def run(request: DiagnoseArguments, output: Output) -> int:
    """Diagnose heads of captures and print the verdicts; return the exit code, 2 if some heads cannot be read."""
    from ....core.diagnosis.configuration import expecting
    from ....core.diagnosis.verdict import at_birth
    from ....core.tables.diagnosis import Diagnosed, diagnosis_table
    from ....core.work import heads as working

    given = read_configuration(request.config)
    captures = opened(request, output, given=given)
    chosen = [chosen_heads(capture, request.layer, request.head) for capture in captures]
    asked = sum(map(len, chosen))
    if output.format in CODE:
        from ....core.program.diagnosis import diagnosis_code

        if asked > 1:
            raise UsageError(
                "--format: {format} prints one head of one file; give --layer and --head", format=output.format
            )
        [(layer, head)] = [each for heads in chosen for each in heads]
        words = option_words(replace(request, files=request.files[:1]))
        command = in_shell(["attn-tui", "diagnose", *words])
        output.emit(
            code=lambda dialect: diagnosis_code(
                captures[0], layer, head, expecting(request.expect, given), dialect, command
            )
        )
        return 0
    what = message("diagnosing {number} heads", number=asked)
    found = on_heads(working.diagnose, captures, chosen, (given, request.expect), what, request, output)
    first: dict[Path, Layer] = {}
    heads = (
        each if isinstance(each, InputError) else Diagnosed(*each[:2], at_birth(each[2], each[0], first))
        for each in found
    )
    return Results(heads, asked, "heads").emit(
        output,
        lambda heads: _table(captures, heads, output),
        lambda heads: diagnosis_table(captures, heads, asked),
    )


def _table(captures: Sequence[Capture], heads: Sequence[Diagnosed], output: Output) -> str:
    """Return a line for each run of heads with the same verdict, each with its explanation."""
    from ....core.tables.diagnosis import summary
    from ....core.tables.heads import files_words
    from ...views.results.diagnosis import diagnosis_lines
    from ..printing import page

    words = files_words(captures, lambda capture: plain(capture.path.name))
    sources = dict.fromkeys(message("expected from {source}", source=each.verdict.expected.words) for each in heads)
    words += [*sources][:1] if len(sources) == 1 else []
    counts = summary(heads)["verdicts"]
    found = (
        counted("{number} {verdict}", "{number} {verdict}", count, verdict=word)
        for word, count in counts.items()
        if count
    )
    words.append(joined(found, ", "))
    glyphs, width = output.glyphs, output.text_width
    lines: list[Line] = []
    for verdict, explanation in diagnosis_lines(heads, glyphs):
        lines.append(((glyphs.say(verdict), "text"),))
        for text in explanation:
            for line in wrapped(glyphs.say(text), width - 4):
                lines.append((("    ", "text"), *line))
    if counts["no-evidence"]:
        hint = glyphs.say(
            "without evidence: `attn-tui inspect FILE --rules all` shows what every scale rule would do to a head"
        )
        lines += [(), *wrapped(hint, width, "dim")]
    return page(output, words, "", lines)


COMMAND = Command(
    usage="""attn-tui diagnose FILE... [--config FILE] [--expect FORMULA] [--layer I]
                        [--head H] [--axes AXES] [--mask-true WORD]
                        [--tensor NAMES] [--format FORMAT] [-o FILE]""",
    description="""\
Find out which multiplier the scores of captured heads were really given, and
what else was done to them, from what attention returned: its weights, the
log-sum-exp of its rows (lse), or its output with the values (o and v). A head
is
  healthy      if the expected scale explains the evidence,
  cause        if something else does: its name follows, and those of causes
               that would leave the same numbers,
  undecided    if the evidence does not determine the multiplier,
  unexplained  if nothing known explains it,
  no-evidence  if the file has only q and k, which cannot tell.
Of several files, each is diagnosed by itself, and options apply to all.
docs/diagnose.md explains every cause.""",
    examples="""\
examples:
  attn-tui diagnose capture.safetensors                        every head
  attn-tui diagnose capture.safetensors --layer 3 --head 5     one head
  attn-tui diagnose capture.safetensors --config config.json   what is expected
  attn-tui diagnose capture.safetensors --expect '1/sqrt(d)'   what is intended
  attn-tui diagnose step-*.safetensors --format jsonl          several files
""",
    arguments=DiagnoseArguments,
    run=run,
    formats=(*LISTED, *CODE),
    check=_check,
)

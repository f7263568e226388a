"""attn-tui compare: the first stage of attention at which two captures differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....core.message import message, plain
from ....core.questions.captures.compare import CompareCaptures
from ...views.lines import Line, wrapped
from ..captured import head_results, opened
from ..output import CODE, LISTED, Output, say
from ..parser import CliCommand, arguments
from ..working import CommandRequest, Work, command_request, complete

if TYPE_CHECKING:
    from ....core.captures.capture import CaptureContents
    from ....core.diagnosis.comparing.results import Comparison

_DIFFERENT = 1  # the exit code


def run(request: CommandRequest[CompareCaptures], output: Output) -> int:
    """Compare two captures and print the differences; return the exit code: 0 if there are none, else 1."""
    question = opened(request.question, request.work, output)
    comparison = question.result(complete(head_results(question, request.work, message("comparing"), output)))
    for note in comparison.notes:
        say(message("note: {note}", note=note), output.messages)
    output.answer(question, comparison, lambda: _table(question.captures, comparison, output))
    return _DIFFERENT if comparison.differs else 0


def _table(captures: Sequence[CaptureContents], comparison: Comparison, output: Output) -> str:
    from ...views.results.comparison import LEGEND, change_lines, difference_lines, reasons, stage_lines
    from ..printing import page

    glyphs, width = output.glyphs, output.text_width
    names = [plain(capture.path.name) for capture in captures]
    words = [
        message("{reference} and {test}", reference=names[0], test=names[1]),
        *(text for text in (captures[1].model,) if text),
    ]

    def text(indent: int, sentence: str) -> list[Line]:
        pad = " " * indent
        return [((pad, "text"), *line) for line in wrapped(glyphs.say(sentence), width - indent)]

    blank: Line = ()
    lines = difference_lines(comparison, glyphs, width)
    screen = output.width if output.on_screen else None
    lines += [blank, *stage_lines(comparison, glyphs, screen)]
    legend = glyphs.say(LEGEND)
    if screen is None:
        lines.append(((legend, "dim"),))
    else:
        lines += wrapped(legend.replace("   ", "; "), screen, "dim")
    for number, (heading, explanation) in enumerate(reasons(comparison)):
        lines += [] if number else [blank]
        lines.append(((glyphs.say(heading), "text"),))
        lines += text(4, explanation)
    if most := change_lines(comparison, glyphs, screen):
        lines += [blank, *most]
    return page(output, words, "", lines)


COMMAND = CliCommand(
    usage="""attn-tui compare REF TEST [--layer I] [--head H] [--axes AXES]
                        [--mask-true WORD] [--tensor NAMES]
                        [--format FORMAT] [-o FILE]""",
    description="""\
Compare two captures of a model and name the first stage at which they differ,
by layer and head: q·kᵀ, multiplier, soft-cap, bias, mask, sink, log-sum-exp,
weights, values, output. q and k may be in another basis (rotated, permuted)
and heads in another order: only their products count. Differences are judged
against the rounding of the number formats. Where files have weights, lse or o
and v, what was really done is compared; otherwise, what the files say. Of
different texts, only what does not depend on them is compared. The exit status
is 0 if nothing differs, 1 if something does, and 2 if a file cannot be read.
docs/diagnose.md explains the stages.""",
    examples="""\
examples:
  attn-tui compare reference.safetensors test.safetensors
  attn-tui compare fp32.safetensors bf16.safetensors --layer 3
  attn-tui compare old.npz new.npz --format json
""",
    options=(CompareCaptures, Work),
    request=lambda given: command_request(arguments(CompareCaptures, given), given),
    run=run,
    formats=(*LISTED, *CODE),
)

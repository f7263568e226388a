"""attn-tui diagnose: which scale a captured head really used, and what else was done to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....core.message import message, plain
from ....core.questions.captures.diagnose import DiagnoseCaptures
from ..captured import expected_rule, head_results, opened
from ..output import CODE, LISTED, Output
from ..parser import CliCommand, Given, arguments
from ..working import CommandRequest, ResultStream, Work, command_request

if TYPE_CHECKING:
    from ....core.captures.capture import CaptureContents
    from ....core.diagnosis.groups import HeadVerdict


def _request(given: Given) -> CommandRequest[DiagnoseCaptures]:
    return command_request(arguments(DiagnoseCaptures, given, expect=expected_rule(given)), given)


def run(request: CommandRequest[DiagnoseCaptures], output: Output) -> int:
    """Diagnose heads of captures and print the verdicts; return the exit code, 2 if some heads cannot be read."""
    question = opened(request.question, request.work, output)
    if output.format in CODE:
        output.emit(code=lambda dialect: question.code((), dialect))
        return 0
    what = message("diagnosing {number} heads", number=question.asked)
    found = question.heads(head_results(question, request.work, what, output))
    return ResultStream(found, question.asked, "heads").emit(
        output, lambda heads: _table(question.captures, heads, output), question.table
    )


def _table(captures: Sequence[CaptureContents], heads: Sequence[HeadVerdict], output: Output) -> str:
    """Return what q·k was multiplied by in layers that agree, each fault once, and how many heads are wrong."""
    from ....core.tables.diagnosis import evidence_words, verdict_counts
    from ....core.tables.heads import files_words
    from ...views.results.diagnosis import diagnosis_lines
    from ..printing import page

    words = files_words(captures, lambda capture: plain(capture.path.name))
    sources = dict.fromkeys(message("expected from {source}", source=head.verdict.expected.words) for head in heads)
    words += [*sources][:1] if len(sources) == 1 else []
    glyphs, width = output.glyphs, output.text_width
    lines = diagnosis_lines(heads, glyphs, width)
    last = [*evidence_words(heads), verdict_counts(heads)]
    if any(head.verdict.word == "no-evidence" for head in heads):
        hint = message("`attn-tui inspect FILE --rules all` shows what every scale rule would do to a head")
        last.insert(0, message("without evidence: {hint}", hint=hint))
    elif any(head.verdict.is_unusual for head in heads):
        last.insert(0, message("Say what is intended with --expect FORMULA or --config FILE."))
    return page(output, words, "", lines, *last)


COMMAND = CliCommand(
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
  attn-tui diagnose capture.safetensors -o heads.html          a page to send
  attn-tui diagnose step-*.safetensors --format jsonl          several files
""",
    options=(DiagnoseCaptures, Work),
    request=_request,
    run=run,
    formats=(*LISTED, *CODE),
)

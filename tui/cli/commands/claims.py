"""attn-tui claims: tests of what study notes say about √d_k."""

from __future__ import annotations

from ....core.message import message
from ....core.questions.learn import ReadItems, all_claims
from ..output import CODE, LISTED, Output
from ..parser import CliCommand
from ..working import CommandRequest, Work, answer, command_request


def run(request: CommandRequest[ReadItems], output: Output) -> int:
    """Test every claim and print the verdicts; return the exit code."""
    from ...views.results.claims import claims_report
    from ..printing import page

    output.check()
    question = request.question
    figures = answer(question, request.work, message("testing {number} claims", number=len(question.items)), output)
    outcomes = [item.outcome for item in figures]
    return output.answer(
        question, figures, lambda: page(output, (), claims_report(outcomes, output.text_width, output.glyphs))
    )


COMMAND = CliCommand(
    usage="attn-tui claims [--executor NAME] [--format FORMAT] [-o FILE]",
    description="""\
Test what widely copied study notes say about √d_k. Each claimed figure stands
beside the one measured now, with its standard error, and the exact value if
theory has one. The verdict is computed from them: true, true only in a limit,
true or false depending on the measure, false, or not testable here. This takes
some seconds.""",
    examples="""\
examples:
  attn-tui claims                        every claim, its figures and verdict
  attn-tui claims --format markdown      one line per claim
  attn-tui claims --format python        programs of what the Lab tests
  attn-tui claims --format json | jq '.claims[] | .id + ": " + .verdict'
""",
    options=(Work,),
    request=lambda given: command_request(all_claims(), given),
    run=run,
    formats=(*LISTED, *CODE),
)

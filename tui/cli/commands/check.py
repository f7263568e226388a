"""attn-tui check: fail if captured heads are beyond limits, or their scale is not the expected one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....core.message import message
from ....core.questions.captures.check import CheckCaptures
from ..captured import expected_rule, head_results, opened
from ..output import CODE, LISTED, Output, OutputFormat, say
from ..parser import CliCommand, Given, arguments
from ..project import project_settings
from ..working import CommandRequest, Work, command_request, complete

if TYPE_CHECKING:
    from ....core.tables.check import FileCheck

_FORMATS: tuple[OutputFormat, ...] = (*LISTED, "junit", "github", *CODE)
_FOUND = 1  # the exit code if there are findings


def _request(given: Given) -> CommandRequest[CheckCaptures]:
    project, expect = project_settings(), expected_rule(given)
    allow = (*project.get("allow", ()), *given.get("allow", ()))
    strict = project.get("strict", False) or given["strict"]
    question = arguments(CheckCaptures, project | given | {"allow": allow, "strict": strict}, expect=expect)
    return command_request(question, given)


def run(request: CommandRequest[CheckCaptures], output: Output) -> int:
    """Check captures and print the findings; return the exit code: 0 without findings, else 1."""
    from ....core.tables.check import check_github, check_junit

    question = opened(request.question, request.work, output)
    what = message("checking {number} heads", number=question.asked)
    checked = question.result(complete(head_results(question, request.work, what, output)))
    for note in (note for file in checked if file.comparison is not None for note in file.comparison.notes):
        say(message("note: baseline: {note}", note=note), output.messages)
    output.emit(
        lambda: _table(checked, question, output),
        lambda: question.table(checked),
        lambda dialect: question.code(checked, dialect),
        others={"junit": lambda: check_junit(checked), "github": lambda: check_github(checked)},
    )
    failed = any(file.findings or (question.strict and file.not_judged) for file in checked)
    return _FOUND if failed else 0


def _table(checked: Sequence[FileCheck], question: CheckCaptures, output: Output) -> str:
    """Return a block for each fault, one for what follows from it, and a line that counts the heads."""
    from ....core.tables.check import check_counts, check_statements, right_statements
    from ...views.results.diagnosis import statement_lines
    from ..printing import page

    told = [statement for file in checked for statement in check_statements(file)]
    if not any(file.findings for file in checked):
        told += [statement for file in checked for statement in right_statements(file)]
    lines = statement_lines(told, output.glyphs, output.text_width)
    return page(output, (), "", lines, *_advice(checked, question), check_counts(checked))


def _advice(checked: Sequence[FileCheck], question: CheckCaptures) -> list[str]:
    """Return what to do about heads that are not judged."""
    lines: list[str] = []
    if any(file.judged["no_evidence"] for file in checked):
        lines.append(
            message("No evidence: the file needs lse, weights, or o and v, as `attn-tui record` writes them.")
        )
    if question.expect is None and any(
        head.verdict.is_unusual or (head.verdict.word == "undecided" and not head.verdict.note)
        for file in checked
        for head in file.heads
    ):
        lines.append(message("Undecided: say what is intended with --expect FORMULA or --config FILE."))
    return lines


COMMAND = CliCommand(
    usage="""attn-tui check FILE... [--config FILE] [--expect FORMULA] [--strict]
                        [--baseline OLD] [limits] [--allow PATTERN]
                        [--format FORMAT] [-o FILE]""",
    description="""\
Check the heads of captures, for scripts and continuous integration. Each file
is checked by itself. Findings are: numbers that are not finite, logits that are
too large, heads whose logits or whose queries or keys hardly differ, a file
whose heads are nearly all one-hot, layers that disagree without a reason, and,
where the file has weights, lse or o and v, every cause that `attn-tui diagnose`
finds.
Limits, expect and strict also come from the section [tool.attn-tui.check] of
pyproject.toml in the current folder.""",
    examples="""\
examples:
  attn-tui check capture.safetensors
  attn-tui check capture.safetensors --config config.json --format github
  attn-tui check capture.safetensors --expect '1/sqrt(d)' --strict
  attn-tui check capture.safetensors --max-logit 50 --allow '*:scale-other'
  attn-tui check step-*.safetensors --format junit -o findings.xml
  attn-tui check new.safetensors --baseline old.safetensors --format junit
""",
    options=(CheckCaptures, Work),
    request=_request,
    run=run,
    formats=_FORMATS,
)

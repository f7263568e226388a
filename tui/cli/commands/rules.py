"""attn-tui rules: all scale rules on the same queries and keys, or mechanisms over d_k."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from sys import maxsize
from typing import TYPE_CHECKING

from ....core.lab.results import NOT_OF_MECHANISMS, SETTINGS, RuleRow
from ....core.message import joined, message
from ....core.parameters import FIELD, FIELDS, parameters_from
from ....core.questions.parse import no_effect, parameter_values
from ....core.questions.rules import CompareRules
from ..output import CODE, LISTED, Output
from ..parser import CliCommand, Given, arguments
from ..working import CommandRequest, Work, answer, command_request, time_words

if TYPE_CHECKING:
    from ....core.tables.rules import ComparedMechanisms, RulesResult

_ALWAYS = ("d_k", "n_keys", "n_queries", "batch", "components", "precision", "seed")  # in every title
_LONG = 60.0  # seconds of one core beyond which fewer draws and queries are measured, unless these are given
_LEAST = {"batch": 2, "n_queries": 16}


def _request(given: Given) -> CommandRequest[CompareRules]:
    values = parameter_values(given)
    parameters = parameters_from(values)
    question = arguments(CompareRules, given, parameters=parameters)
    unused = NOT_OF_MECHANISMS if question.mechanisms else ("against",)
    idle = [name for name in values if name in unused]
    if not question.mechanisms:
        idle += [n for n in values if n not in (*unused, *SETTINGS) and not FIELD[n].applies(parameters)]
    options = [FIELD[name].option for name in idle]
    if question.mechanisms:
        options += [option for option in ("--sort", "--reverse") if given.get(option[2:])]
        question = replace(question, sort="rule", reverse=False)
    question, fewer = _with_fewer(question, values)
    return command_request(question, given, (*map(no_effect, options), *fewer))


def _with_fewer(question: CompareRules, given: Mapping[str, object]) -> tuple[CompareRules, tuple[str, ...]]:
    """Return the question with fewer draws and queries, if nobody chose them and they take long, and a remark."""
    first, names = question.parameters, [name for name in _LEAST if name not in given]
    for name in names:
        while _seconds(question) > _LONG and (number := getattr(question.parameters, name)) > _LEAST[name]:
            fewer = replace(question.parameters, **{name: max(number // 2, _LEAST[name])})
            question = replace(question, parameters=fewer)
    p = question.parameters
    if p == first:
        return question, ()
    words = (
        "{n_keys:,} keys: {batch} draws of {n_queries} queries are measured instead of {usual_batch} of "
        "{usual_queries}, which take about {time}; --batch and --n-queries choose them"
    )
    usual_time = time_words(_seconds(replace(question, parameters=first)))
    remark = message(words, n_keys=p.n_keys, batch=p.batch, n_queries=p.n_queries, usual_batch=first.batch,
                     usual_queries=first.n_queries, time=usual_time)  # fmt: skip
    return question, (remark,)


def _seconds(question: CompareRules) -> float:
    return sum(part.seconds for part in question.parts())


def run(request: CommandRequest[CompareRules], output: Output) -> int:
    """Measure and print; return the exit code."""
    output.check()
    question = replace(request.question, form=output.format, ascii_only=output.ascii_only)
    what = message("measuring scale rules")
    if question.mechanisms:
        what = message("comparing mechanisms")
    rows = answer(question, request.work, what, output)
    return output.answer(question, rows, lambda: _table(question, rows, output))


def _table(question: CompareRules, found: RulesResult | ComparedMechanisms, output: Output) -> str:
    from ....core.tables import rules as tables
    from ....core.tables.table import CommandLine
    from ...views.grid import IN_CSV
    from ...views.results.mechanisms import mechanism_lines
    from ...views.results.rules import HEAD, RuleTableContents, left_out, rows_of, table_lines, words_of
    from ..printing import page

    p, glyphs, width, command = found.parameters, output.glyphs, output.text_width, CommandLine(question.line())
    if isinstance(found, tables.RulesResult):
        rows: Mapping[str, RuleRow] = {row.rule: row for row in found.shown}
        shown = RuleTableContents([*rows], rows, found.saturation, found.order, p.scale, d_k=p.d_k)
        said = tables.remarks(found)
        if missing := left_out(output.width, 0, found.order.column):
            said.append(message(IN_CSV, columns=joined(map(words_of, missing), ", ")))
        lines = table_lines(shown, output.width, 0, HEAD + len(rows_of([*rows], found.order, maxsize)), glyphs)
        return page(output, tables.rules_words(p, _ALWAYS), "", lines, "", *said, command)
    lines = mechanism_lines(found.rows, width, glyphs)
    return page(output, tables.mechanisms_words(p, _ALWAYS), "", lines, command)


COMMAND = CliCommand(
    usage="""attn-tui rules [--sort COLUMN] [--reverse] [parameters]
                      [--format FORMAT] [-o FILE]
       attn-tui rules --mechanisms [parameters] [--format FORMAT] [-o FILE]""",
    description="""\
Apply every scale rule to the same queries and keys and print one line per rule:
the deviation of its logits over √(2 ln n), at which softmax saturates, as a dot
with its way from d_k 16 to 256; its multiplier, largest weight, entropy, a word
of status, the deviation itself, the typical gradient of a query, dead rows, and
scores that the number format cannot hold. A row holds what
attn-tui report --scale RULE measures. JSON and CSV have entropy over d_k, too,
measured on a sample of the rows, with nested draws.

With --mechanisms, compare mechanisms at d_k 16 to 1024 instead, each under its
usual rule and without a soft-cap: their statistics, the largest score drawn,
and the bound of their scores, if they have one.

The last line is the command that prints the same output again.""",
    examples="""\
examples:
  attn-tui rules                                    d_k 64, 128 keys
  attn-tui rules --d-k 512 --sort entropy_fraction  another width, sorted
  attn-tui rules --precision float16 --sort score-overflow
  attn-tui rules --position 131071 --context-factor 32 --format markdown
  attn-tui rules --format json | jq '.rules[] | [.rule, .multiplier]'
  attn-tui rules --mechanisms --format csv -o mechanisms.csv
""",
    options=(CompareRules, Work),
    add=lambda parser: parser.add_fields(FIELDS),
    request=_request,
    run=run,
    formats=(*LISTED, *CODE),
)

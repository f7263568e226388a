"""attn-tui report: the table, summary and histograms of the Lab."""

from __future__ import annotations

from dataclasses import dataclass

from ....core.message import message
from ....core.parameters import FIELD, FIELDS, Parameters
from ....core.questions.lab import Measure
from ....core.questions.parse import parameters_of
from ....core.questions.question import flag
from ..output import WITH_CODE, Output
from ..parser import Arguments, CliCommand, Given, arguments
from ..working import SERIAL, answer, time_words

_ALWAYS = ("d_k", "n_keys", "n_queries", "batch", "scale", "components", "seed")  # in every title


@dataclass(frozen=True)
class ReportArguments(Arguments):
    """A measurement of these parameters."""

    parameters: Parameters
    dry_run: bool = flag("work", "--dry-run", "do nothing, but say how long it takes one core")


def _request(given: Given) -> ReportArguments:
    parameters, remarks = parameters_of(given)
    return arguments(ReportArguments, given, parameters=parameters, remarks=remarks)


def run(request: ReportArguments, output: Output) -> int:
    """Measure and print what the Lab shows; return the exit code."""
    from ....core.tables.statistics import notable_words
    from ...views.results.table import with_theory
    from ..printing import whole_table

    output.check()
    p = request.parameters
    if request.dry_run:
        from ....core.work.sweeps import report_seconds

        text = message("about {time}", time=time_words(report_seconds(p)))
        output.write([output.messages.say(text) + "\n"])
        return 0
    question = Measure(p)
    report = answer(question, SERIAL, message("computing"), output)
    words, contents = notable_words(p, FIELD, _ALWAYS), with_theory(report.measurement, report.theory)
    return output.answer(question, report, lambda: whole_table(words, contents, output, report.theory.curves))


COMMAND = CliCommand(
    usage="attn-tui report [parameters] [--format FORMAT] [-o FILE]",
    description="""\
Draw random queries and keys and print the statistics of their attention,
unscaled and under a scale rule, or in any two settings (--against): the table,
summary and histograms of the Lab.
Every ± is a standard error over the independent draws of the batch, or ±≥ a
lower bound of it if what decides is too rare for a few draws; theory is the
exact value, if one is known.""",
    examples="""\
examples:
  attn-tui report                                   d_k 64, scaled by 1/√d_k
  attn-tui report --d-k 512 --scale d_k             another width, another rule
  attn-tui report --scale 0.05                      your own multiplier
  attn-tui report --against d_k                     two rules side by side
  attn-tui report --against precision=bfloat16      two number formats
  attn-tui report --n-keys 4096 --mask causal       a long context
  attn-tui report --components student_t --d-k 16   heavy tails
  attn-tui report --format json | jq '.columns[1].measured.entropy'
  attn-tui report --format csv -o report.csv        one line per value
  attn-tui report --format python                   NumPy code that prints them
""",
    options=(ReportArguments,),
    add=lambda parser: parser.add_fields(FIELDS),
    request=_request,
    run=run,
    formats=WITH_CODE,
)

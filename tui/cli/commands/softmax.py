"""attn-tui softmax: the softmax of a few scores, step by step."""

from __future__ import annotations

from typing import Any

from ....core.attention.worked_example import (
    EXAMPLE_FIELD,
    EXAMPLE_FIELDS,
    EXAMPLE_PARAMETERS,
    Example,
    irrelevant,
    multiplier_of,
    parse_scores,
    relevant,
    scores_text,
    start_scores,
)
from ....core.errors import ParameterError
from ....core.field import Field
from ....core.message import Message, message, reason_of
from ....core.parameters import FIELD, setting_a
from ....core.questions.parse import UsageError, no_effect, parameters_of, value_of
from ....core.questions.softmax import WorkOut
from ....core.scales import scale_rule
from ..output import WITH_CODE, Output
from ..parser import CliCommand, Given, Parser, parameter_help
from ..working import CommandRequest


def _help(field: Field) -> Message:
    value = getattr(Example(), field.name)
    if field.name != "scores":
        return parameter_help(field, field.accepted, field.format(value))
    takes = message("2 to 8 numbers, each {accepted}; multiples of √d_k", accepted=field.accepted)
    return parameter_help(field, takes, scores_text(value))


def _add_example(parser: Parser) -> None:
    parser.add_fields(EXAMPLE_FIELDS, title=message("scores and logits"), help=_help)
    parser.add_fields(FIELD[name] for name in EXAMPLE_PARAMETERS)


def _request(given: Given) -> CommandRequest[WorkOut]:
    names = [name for name in ("temperature", "shift") if name in given]
    values: dict[str, Any] = {name: float(value_of(EXAMPLE_FIELD[name], given[name])) for name in names}
    if "scores" in given:
        try:
            values["scores"] = parse_scores(given["scores"])
        except ParameterError as error:
            raise UsageError("--scores: {reason}", reason=reason_of(str(error), "scores")) from None
    parameters, remarks = parameters_of({name: text for name, text in given.items() if name in EXAMPLE_PARAMETERS})
    remarks += tuple(no_effect(f"--against {FIELD[name].option[2:]}") for name in irrelevant(parameters))
    parameters = relevant(parameters)
    values.setdefault("scores", start_scores(parameters.d_k))
    example = Example(**values)
    sides = parameters, setting_a(parameters)
    for side in sides:
        multiplier_of(side)
    needs = [name for side in sides for name in scale_rule(side.scale).needs]
    remarks += tuple(
        no_effect(FIELD[name].option) for name in ("d_k", "n_keys") if name in given and name not in needs
    )
    return CommandRequest(WorkOut(example, parameters), remarks=remarks)


def run(request: CommandRequest[WorkOut], output: Output) -> int:
    """Work out the example and print it; return the exit code."""
    from ...views.results.softmax import softmax_lines
    from ..printing import page

    output.check()
    question, steps = request.question, request.question.answer()
    return output.answer(
        question, steps, lambda: page(output, (), softmax_lines(steps, output.text_width, output.glyphs))
    )


COMMAND = CliCommand(
    usage="""attn-tui softmax [--scores X,X,...] [--temperature X] [--shift X]
                        [--scale RULE] [--d-k N] [--format FORMAT] [-o FILE]""",
    description="""\
Work out the softmax of a few scores step by step, unscaled beside scaled:
logits, exponentials after subtracting the largest logit, weights, p(1-p), the
Jacobian, the entropy, and the exponentials without the subtraction in a number
format.""",
    examples="""\
examples:
  attn-tui softmax                                the scores of the study notes
  attn-tui softmax --scores 1,2,3 --scale 0.5     other scores and multiplier
  attn-tui softmax --scores -24,-10,0,10,24 --d-k 256
  attn-tui softmax --temperature 8                what temperature sqrt(64) does
  attn-tui softmax --shift 800                    same weights, exp overflows
  attn-tui softmax --precision float16            where exp overflows in float16
  attn-tui softmax --format json | jq '.columns[1].weights'
""",
    add=_add_example,
    request=_request,
    run=run,
    formats=WITH_CODE,
)

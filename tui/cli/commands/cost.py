"""attn-tui cost: the parameters, KV cache and FLOPs of a layer of attention."""

from __future__ import annotations

from argparse import SUPPRESS
from dataclasses import replace

from ....core.attention.cost import SHAPE_FIELDS, LayerShape
from ....core.attention.presets import PRESETS
from ....core.message import message
from ....core.questions.cost import CountCost
from ....core.questions.parse import value_of
from ..output import WITH_CODE, Output
from ..parser import CliCommand, Given, Parser
from ..working import CommandRequest


def _add_layer(parser: Parser) -> None:
    title = "the layer and its use"
    parser.add(
        title,
        "--model",
        metavar="NAME",
        choices=PRESETS,
        help="start from the layer of a well-known model, at its longest context; other options override its values",
    )
    parser.add(title, "--preset", dest="model", choices=PRESETS, help=SUPPRESS)  # its former name
    parser.add_fields(SHAPE_FIELDS, LayerShape(), title, alone={"bias": "all"})
    wide = max(map(len, PRESETS)) + 2
    models = "\n".join(f"{preset.name.ljust(wide)}{preset.title}" for preset in PRESETS.values())
    parser.add_text(message("models"), models)


def _request(given: Given) -> CommandRequest[CountCost]:
    preset = PRESETS.get(given.get("model", ""))
    values = {field.name: value_of(field, given[field.name]) for field in SHAPE_FIELDS if field.name in given}
    return CommandRequest(CountCost(replace(preset.layer if preset else LayerShape(), **values), preset))


def run(request: CommandRequest[CountCost], output: Output) -> int:
    """Count and print; return the exit code."""
    from ....core.tables.cost import cost_blocks
    from ...views.grid import block_lines
    from ..printing import page

    output.check()
    question, found = request.question, request.question.answer()
    blocks = cost_blocks(found, question.preset)
    return output.answer(
        question, found, lambda: page(output, (), block_lines(blocks, output.text_width, output.glyphs))
    )


COMMAND = CliCommand(
    usage="""attn-tui cost [--model NAME] [--d-model N] [--heads N] [...]
                     [--format FORMAT] [-o FILE]""",
    description="""\
Count what a layer of attention costs: its parameters matrix by matrix, the
bytes of its KV cache per token and per context, its FLOPs for the next token
and for the whole context, and the d_k that follows from its shape. With
--kv-latent, attention is latent as in DeepSeek-V3.""",
    examples="""\
examples:
  attn-tui cost --d-model 512 --heads 8              the Transformer paper
  attn-tui cost --d-model 4096 --heads 32 --kv-heads 8 --layers 32
  attn-tui cost --model llama-3-8b                   a real model
  attn-tui cost --model deepseek-v3                  one with latent attention
  attn-tui cost --model llama-3-8b --context 131072 --cache-format float16
  attn-tui cost --model gpt2 --format json | jq .kv_cache.bytes_per_token
""",
    add=_add_layer,
    request=_request,
    run=run,
    formats=WITH_CODE,
)

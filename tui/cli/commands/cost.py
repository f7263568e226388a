"""attn-tui cost: the parameters, KV cache and FLOPs of a layer of attention."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....core.attention.cost import SHAPE_FIELDS, Layer, cost
from ....core.attention.presets import PRESETS, Preset
from ....core.message import message
from ...settings.parse import value_of
from ..output import WITH_CODE, Output
from ..parser import METAVARS, Command, Given, Parser, parameter_help


@dataclass(frozen=True)
class CostRequest:
    """The layer, and the preset it is based on."""

    layer: Layer
    preset: Preset | None = None
    remarks: tuple[str, ...] = ()


def _add_options(parser: Parser) -> None:
    title = "the layer and its use"
    parser.add_output(WITH_CODE)
    parser.add(
        title,
        "--preset",
        metavar="NAME",
        choices=PRESETS,
        help="start from the layer of a well-known model, at its longest context; other options override its values",
    )
    usual = Layer()
    for field in SHAPE_FIELDS:
        value = getattr(usual, field.name)
        text = parameter_help(field, field.accepted, "" if value is None else field.format(value))
        alone = {"nargs": "?", "const": "all"} if field.name == "bias" else {}
        parser.add(
            title,
            field.option,
            dest=field.name,
            metavar=METAVARS[field.kind],
            help=text,
            suggest=field.choices,
            **alone,
        )
    wide = max(map(len, PRESETS)) + 2
    models = "\n".join(f"{preset.name.ljust(wide)}{preset.model}" for preset in PRESETS.values())
    parser.add_text(message("presets"), models)


def _request(given: Given) -> CostRequest:
    preset = PRESETS.get(given.get("preset", ""))
    values = {field.name: value_of(field, given[field.name]) for field in SHAPE_FIELDS if field.name in given}
    return CostRequest(replace(preset.layer if preset else Layer(), **values), preset)


def run(request: CostRequest, output: Output) -> int:
    """Count and print; return the exit code."""
    from ...panes.heads.requests import CountCost
    from ...panes.heads.view import cost_lines
    from ..printing import page

    output.check()
    found, preset, glyphs = cost(request.layer), request.preset, output.glyphs
    question = CountCost(request.layer, preset)
    output.emit(
        lambda: page(output, (), cost_lines(found, output.text_width, glyphs, preset)),
        lambda: question.table(found),
        lambda dialect: question.code(found, dialect),
    )
    return 0


COMMAND = Command(
    usage="""attn-tui cost [--preset NAME] [--d-model N] [--heads N] [...]
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
  attn-tui cost --preset llama-3-8b                  a real model
  attn-tui cost --preset deepseek-v3                 one with latent attention
  attn-tui cost --preset llama-3-8b --context 131072 --cache-format float16
  attn-tui cost --preset gpt2 --format json | jq .kv_cache.bytes_per_token
""",
    add_options=_add_options,
    request=_request,
    run=run,
)

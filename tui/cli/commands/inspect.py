"""attn-tui inspect: the attention statistics of captured heads."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....core.captures.capture import NOTHING, Meaning, Told
from ....core.errors import InputError
from ....core.message import message
from ....core.parameters import FIELD, UNSCALED
from ....core.scales import SCALE_RULES, rules_that_need, scale_rule
from ....core.statistics.status import MEANINGS
from ...settings.parse import UsageError, no_effect, value_of, whole_number, with_scale
from ...views.reproduce import in_shell
from ..captured import add_axes, add_files, add_mask_true, chosen_heads, head_number
from ..command import Command, Given
from ..output import CODE, LISTED, Output
from ..parser import Parser
from ..results import Results
from ..working import USUAL, Work, add_work, on_heads, one_engine, opened, work_of

if TYPE_CHECKING:
    from ....core.export.inspect import HeadMeasurement, Inspected

_SCALE = replace(FIELD["scale"], choices=("file", *SCALE_RULES))


@dataclass(frozen=True)
class InspectRequest:
    """The heads to measure and their scale; without layer and head, every head."""

    files: tuple[Path, ...]
    layer: str | None = None
    head: int | None = None
    scale: str | None = None  # of B: a name of SCALE_RULES or a formula; None and "file" mean the file's scale
    against: str | None = (
        None  # the same of A, if a single head is shown; None: unscaled, or the file's beside `scale`
    )
    multiplier: float = 1.0
    axes: str | None = None
    mask_true: Meaning | None = None
    told: Told = NOTHING  # what the file may not say
    every_rule: bool = False  # replay every scale rule instead
    worst: int | None = None  # only this many heads, worst first, with reasons
    remarks: tuple[str, ...] = ()
    work: Work = USUAL


# Options for what a file may not say, and the fields of Told.
_TOLD = (
    ("context_factor", "context_factor"),
    ("position", "position"),
    ("layer_index", "layer"),
    ("temperature", "temperature"),
)


def _add_options(parser: Parser) -> None:
    title = "heads and scale"
    add_files(parser)
    add_axes(parser)
    add_mask_true(parser)
    parser.add(title, "--layer", metavar="I", help="only this layer, by number or name")
    parser.add(title, "--head", metavar="H", help="only this head; the first is 0")
    parser.add(
        title,
        "--scale",
        metavar="RULE",
        suggest=("file", *SCALE_RULES),
        help="file (default), one of the scale rules below, a number, or a formula such as 'log(n)/sqrt(d)'. A list "
        "of heads uses this scale instead of the file's; of a single head, it is that of column B",
    )
    parser.add(
        title,
        "--against",
        metavar="RULE",
        suggest=("unscaled", "file", *SCALE_RULES),
        help="the scale of column A, if a single head is shown: unscaled (default), file (default with --scale), a "
        "scale rule, or a formula",
    )
    parser.add(title, "--multiplier", metavar="X", help="the multiplier of --scale custom (not a divisor)")
    parser.add(
        title,
        "--rules",
        metavar="all",
        choices=("all",),
        help="replay every scale rule on 64 rows of each head: how far attention would be from the original, and "
        "which rule makes a frozen head healthy",
    )
    parser.add(
        title,
        "--worst",
        metavar="N",
        help="only the N heads most worth a look, worst first, each with the reason for its status: those whose "
        "scale the evidence contradicts, the others by σ / √(2 ln n), healthy ones last",
    )
    parser.add(
        title,
        "--context-factor",
        metavar="X",
        help=message(
            "how many times longer the context was made after training, if the file lacks the model's "
            "configuration; used by {users}",
            users=_users("context_factor"),
        ),
    )
    parser.add(
        title,
        "--position",
        metavar="N",
        help=message(
            "the position of the last query, if the text is not the start of its context; used by {users}",
            users=_users("position"),
        ),
    )
    parser.add(
        title,
        "--layer-index",
        metavar="N",
        help=message(
            "the number of the layer, from 0, if the file does not say it; used by {users}", users=_users("layer")
        ),
    )
    parser.add(
        title,
        "--temperature",
        metavar="X",
        help=message("the factor of cosines that the head learned; used by {users}", users=_users("temperature")),
    )
    add_work(parser)
    parser.add_output((*LISTED, *CODE))
    parser.add_rules(SCALE_RULES)


def _users(name: str) -> str:
    """Name the rules whose multiplier depends on a setting."""
    return ", ".join(rules_that_need(name))


def _request(given: Given) -> InspectRequest:
    texts = with_scale(given)
    scale = texts.get("scale")
    if scale is not None:
        scale = str(value_of(_SCALE, scale))
    custom = float(value_of(FIELD["multiplier"], texts.get("multiplier", "1")))
    against = _against(given["against"]) if "against" in given else None
    needs = {need for rule in (scale, against) if rule not in (None, "file") for need in scale_rule(str(rule)).needs}
    told: dict[str, Any] = {}
    if "rules" in given and (scale == "file" or scale in SCALE_RULES):
        raise UsageError("--rules all replays every rule; leave out --scale, or give it a formula")
    if "worst" in given and (scale is not None or "rules" in given):
        raise UsageError("--worst ranks heads at the file's scale; leave out --scale and --rules")
    if against is not None and ("worst" in given or "rules" in given):
        raise UsageError("--against: only with a single head; leave out --worst and --rules")
    remarks = [no_effect("--multiplier")] if "multiplier" in texts and scale != "custom" else []
    for option, name in _TOLD:
        if option in given:
            words = f"--{option.replace('_', '-')}"
            told[name] = value_of(FIELD[name], given[option], words)
            remarks += [] if name in needs else [no_effect(words)]
    return InspectRequest(
        tuple(map(Path, given["file"])),
        given.get("layer"),
        head_number(given["head"]) if "head" in given else None,
        scale,
        against,
        custom,
        given.get("axes"),
        given.get("mask_true"),
        Told(**told),
        "rules" in given,
        whole_number("--worst", given["worst"]) if "worst" in given else None,
        tuple(remarks),
        work_of(given),
    )


def _against(text: str) -> str:
    """Return the scale rule of A; raise UsageError if there is none with this name."""
    name, equals, rule = (word.strip() for word in text.partition("="))
    if equals and name not in ("scale", "rule"):
        raise UsageError(
            "--against: A of a captured head differs from B in the scale rule only, not in {name!r}", name=name
        )
    rule = rule if equals else name
    return "none" if rule == UNSCALED else str(value_of(_SCALE, rule, "--against"))


def run(request: InspectRequest, output: Output) -> int:
    """Measure and print heads of captures; return the exit code, 2 if some heads cannot be read."""
    with one_engine(request.work) as work:
        return _inspect(replace(request, work=work), output)


def _inspect(request: InspectRequest, output: Output) -> int:
    from ....core.export.inspect import inspect_listing
    from ....core.work import heads as working
    from ..inspecting import print_head, print_list, worst

    captures = opened(request, output)
    chosen = [chosen_heads(capture, request.layer, request.head) for capture in captures]
    asked = sum(map(len, chosen))
    one = asked == 1 and request.worst is None and not request.every_rule
    if output.format in CODE and not one:
        raise UsageError(
            "--format: {format} prints one head of one file; give --layer and --head, and neither --rules nor "
            "--worst",
            format=output.format,
        )
    if request.every_rule:
        from ..replaying import print_replay

        arguments = (request.told, () if request.scale is None else (request.scale,))
        what = message("replaying {number} heads", number=asked)
        replays = on_heads(working.replay_rules, captures, chosen, arguments, what, request, output)
        return print_replay(captures, Results(replays, asked, "heads"), asked, output)
    if request.against is not None and not one:
        raise UsageError("--against: only with a single head; give --layer and --head")
    other = request.scale or "file"
    names = (request.against or ("none" if other == "file" else "file"), other) if one else (other,)
    arguments = (names, request.multiplier, request.told)
    what = message("measuring {number} heads", number=asked)
    measured = on_heads(working.measure, captures, chosen, arguments, what, request, output)
    results = Results((_without_reasons(each) for each in measured), asked, "heads")
    listing = inspect_listing(captures, asked * len(names))
    heads: list[Inspected] = []
    if request.worst is not None:
        heads = worst(captures, results.all(), request.worst, request, output)
        if heads and output.is_streamed:
            output.stream(replace(listing, asked=len(heads)), heads)
    elif output.is_streamed:
        results.stream(listing, output)
    else:
        heads = [*results]
    if heads and not output.is_streamed:
        if one:
            print_head(captures[0], heads[0][0], _command(request), output)
        else:
            print_list(captures, heads, output)
    return results.code(output)


def _without_reasons(head: HeadMeasurement | InputError) -> Inspected | InputError:
    return head if isinstance(head, InputError) else (head, None)


def _command(request: InspectRequest) -> str:
    """Return the command that prints this head."""
    options: dict[str, object] = {
        "layer": request.layer,
        "head": request.head,
        "scale": request.scale,
        "against": request.against,
        "axes": request.axes,
    }
    if request.scale == "custom":
        options["scale"] = request.multiplier
    words = [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]
    return in_shell(["attn-tui", "inspect", str(request.files[0]), *words])


COMMAND = Command(
    usage="""attn-tui inspect FILE... [--layer I] [--head H] [--worst N]
                        [--scale RULE] [--against RULE]
                        [--axes AXES] [--format FORMAT] [-o FILE]""",
    description="""\
Read captured queries and keys and print the statistics of their attention: one
line per head, or the whole table and histograms of a single head. Of several
files, each line names its file, and options apply to all. If some heads
cannot be read, the others are still printed and the exit status is 2. A head's
status is the first of these words that applies:
"""
    + "\n".join(
        textwrap.fill(meaning, 78, initial_indent=f"  {word.ljust(9)} ", subsequent_indent=" " * 12)
        for word, meaning in MEANINGS.items()
    ),
    examples="""\
examples:
  attn-tui inspect heads.npz                              every head
  attn-tui inspect heads.npz --layer 3 --head 5           one head in full
  attn-tui inspect heads.npz --layer 3 --head 5 --scale d_k --against sqrt_d_k
  attn-tui inspect heads.npz --worst 10                   where to look first
  attn-tui inspect heads.npz --scale 0.125                another multiplier
  attn-tui inspect heads.npz --axes batch,token,head,d_k  which axis is which
  attn-tui inspect heads.npz --format csv | grep one_hot_rows
""",
    add_options=_add_options,
    request=_request,
    run=run,
)

"""attn-tui diagnose: which scale a captured head really used, and what else was done to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ....core.captures.capture import Meaning
from ....core.errors import InputError
from ....core.message import counted, joined, message
from ....core.plain import plain
from ...compute.question import in_shell
from ...settings.parse import UsageError
from ...views.lines import Line, wrapped
from ..captured import (
    add_axes,
    add_config,
    add_expect,
    add_files,
    add_mask_true,
    add_tensor,
    chosen_heads,
    expected_rule,
    head_number,
    read_configuration,
)
from ..output import CODE, LISTED, Output
from ..parser import Command, Given, Parser
from ..results import Results
from ..working import USUAL, Work, add_work, on_heads, opened, work_of

if TYPE_CHECKING:
    from ....core.captures.capture import Capture, Layer
    from ....core.tables.diagnosis import Diagnosed


@dataclass(frozen=True)
class DiagnoseRequest:
    """The heads to diagnose; without layer and head, every head."""

    files: tuple[Path, ...]
    layer: str | None = None
    head: int | None = None
    config: Path | None = None
    expect: str | None = None
    axes: str | None = None
    mask_true: Meaning | None = None
    tensor: str | None = None
    remarks: tuple[str, ...] = ()
    work: Work = USUAL


def _add_options(parser: Parser) -> None:
    title = "heads"
    add_files(parser)
    add_axes(parser)
    add_mask_true(parser)
    add_tensor(parser)
    add_config(parser)
    add_expect(parser)
    parser.add(title, "--layer", metavar="I", help="only this layer, by number or name")
    parser.add(title, "--head", metavar="H", help="only this head; the first is 0")
    add_work(parser)
    parser.add_output((*LISTED, *CODE))


def _request(given: Given) -> DiagnoseRequest:
    return DiagnoseRequest(
        tuple(map(Path, given["file"])),
        given.get("layer"),
        head_number(given["head"]) if "head" in given else None,
        Path(given["config"]) if "config" in given else None,
        expected_rule(given),
        given.get("axes"),
        given.get("mask_true"),
        given.get("tensor"),
        work=work_of(given),
    )


def run(request: DiagnoseRequest, output: Output) -> int:
    """Diagnose heads of captures and print the verdicts; return the exit code, 2 if some heads cannot be read."""
    from ....core.diagnosis.configuration import expecting
    from ....core.diagnosis.verdict import at_birth
    from ....core.program.diagnosis import diagnosis_code
    from ....core.tables.diagnosis import Diagnosed, diagnosis_table
    from ....core.work import heads as working

    given = read_configuration(request.config)
    captures = opened(request, output, given=given)
    chosen = [chosen_heads(capture, request.layer, request.head) for capture in captures]
    asked = sum(map(len, chosen))
    if output.format in CODE:
        if asked > 1:
            raise UsageError(
                "--format: {format} prints one head of one file; give --layer and --head", format=output.format
            )
        [(layer, head)] = [each for heads in chosen for each in heads]
        command = _command(request)
        output.emit(
            code=lambda dialect: diagnosis_code(
                captures[0], layer, head, expecting(request.expect, given), dialect, command
            )
        )
        return 0
    what = message("diagnosing {number} heads", number=asked)
    found = on_heads(working.diagnose, captures, chosen, (given, request.expect), what, request, output)
    first: dict[Path, Layer] = {}
    heads = (
        each if isinstance(each, InputError) else Diagnosed(*each[:2], at_birth(each[2], each[0], first))
        for each in found
    )
    return Results(heads, asked, "heads").emit(
        output,
        lambda heads: _table(captures, heads, output),
        lambda heads: diagnosis_table(captures, heads, asked),
    )


def _command(request: DiagnoseRequest) -> str:
    """Return the command that diagnoses this head."""
    options = {
        "config": request.config,
        "expect": request.expect,
        "layer": request.layer,
        "head": request.head,
        "axes": request.axes,
    }
    options |= {"mask-true": request.mask_true, "tensor": request.tensor}
    words = [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]
    return in_shell(["attn-tui", "diagnose", str(request.files[0]), *words])


def _table(captures: Sequence[Capture], heads: Sequence[Diagnosed], output: Output) -> str:
    """Return a line for each run of heads with the same verdict, each with its explanation."""
    from ....core.tables.diagnosis import summary
    from ....core.tables.heads import files_words
    from ...views.results.diagnosis import diagnosis_lines
    from ..printing import page

    words = files_words(captures, lambda capture: plain(capture.path.name))
    sources = dict.fromkeys(message("expected from {source}", source=each.verdict.expected.words) for each in heads)
    words += [*sources][:1] if len(sources) == 1 else []
    counts = summary(heads)["verdicts"]
    found = (
        counted("{number} {verdict}", "{number} {verdict}", count, verdict=word)
        for word, count in counts.items()
        if count
    )
    words.append(joined(found, ", "))
    glyphs, width = output.glyphs, output.text_width
    lines: list[Line] = []
    for verdict, explanation in diagnosis_lines(heads, glyphs):
        lines.append(((glyphs.say(verdict), "text"),))
        for text in explanation:
            for line in wrapped(glyphs.say(text), width - 4):
                lines.append((("    ", "text"), *line))
    if counts["no-evidence"]:
        hint = glyphs.say(
            "without evidence: `attn-tui inspect FILE --rules all` shows what every scale rule would do to a head"
        )
        lines += [(), *wrapped(hint, width, "dim")]
    return page(output, words, "", lines)


COMMAND = Command(
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
  attn-tui diagnose step-*.safetensors --format jsonl          several files
""",
    add_options=_add_options,
    request=_request,
    run=run,
)

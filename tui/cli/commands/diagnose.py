"""attn-tui diagnose: which scale a captured head really used, and what else was done to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ....core.captures.capture import Meaning
from ....core.errors import InputError
from ....core.message import message
from ...views.lines import Line, wrapped
from ..captured import add_axes, add_file, add_mask_true, chosen_heads, head_number
from ..command import Command, Given
from ..output import Output, say, screen_glyphs
from ..parser import Parser
from ..working import USUAL, Work, add_work, on_heads, readable, work_of

if TYPE_CHECKING:
    from ....core.captures.capture import Capture
    from ....core.captures.reader import CaptureFile
    from ....core.diagnosis.configuration import Configuration
    from ....core.export.diagnosing.diagnosis import Diagnosed


_LARGEST = 1 << 23  # bytes of a configuration


@dataclass(frozen=True)
class DiagnoseRequest:
    """The heads to diagnose; without layer and head, every head."""

    file: Path
    layer: str | None = None
    head: int | None = None
    config: Path | None = None
    axes: str | None = None
    mask_true: Meaning | None = None
    remarks: tuple[str, ...] = ()
    work: Work = USUAL


def _add_options(parser: Parser) -> None:
    title = "heads"
    add_file(parser)
    add_axes(parser)
    add_mask_true(parser)
    add_config(parser)
    parser.add(title, "--layer", metavar="I", help="only this layer, by number or name")
    parser.add(title, "--head", metavar="H", help="only this head; the first is 0")
    add_work(parser)
    parser.add_output()


def add_config(parser: Parser) -> None:
    """Add the option that names the model's configuration."""
    parser.add(
        "file",
        "--config",
        metavar="FILE",
        help="the model's config.json: it says which scale is expected, instead of the capture",
    )


def _request(given: Given) -> DiagnoseRequest:
    return DiagnoseRequest(
        Path(given["file"]),
        given.get("layer"),
        head_number(given["head"]) if "head" in given else None,
        Path(given["config"]) if "config" in given else None,
        given.get("axes"),
        given.get("mask_true"),
        work=work_of(given),
    )


def read_configuration(path: Path | None) -> Configuration | None:
    """Return the configuration in a file; raise InputError if it cannot be read."""
    if path is None:
        return None
    from ....core.captures.files import opened, plain
    from ....core.diagnosis.configuration import parse_configuration

    with opened(path) as (stream, _):
        text = stream.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise InputError("{path}: must have at most {largest} bytes", path=plain(path), largest=_LARGEST)
    return parse_configuration(text.decode("utf-8", "replace"), plain(path))


def run(request: DiagnoseRequest, output: Output) -> int:
    """Diagnose heads of a capture and print the verdicts; return the exit code, 2 if some heads cannot be read."""
    from ....core.captures.reader import open_capture
    from ....core.export.diagnosing.diagnosis import diagnosis_csv, diagnosis_json, diagnosis_markdown

    given = read_configuration(request.config)
    capture = open_capture(request.file, request.axes, request.mask_true)
    output.check((request.file, *capture.files))
    messages = screen_glyphs(output.ascii_only)
    for note in capture.notes:
        say(message("note: {note}", note=note), messages)
    heads, refusal, left_out = diagnose_heads(capture, request, given, output)
    output.emit(
        {
            "json": lambda: diagnosis_json(capture, heads),
            "csv": lambda: diagnosis_csv(heads),
            "markdown": lambda: diagnosis_markdown(heads, output.glyphs.say),
            "table": lambda: _table(capture, heads, output),
        }
    )
    if refusal is None:
        return 0
    say(
        message(
            "{refusal} ({left_out} of {left_out2} heads are left out)",
            refusal=refusal,
            left_out=left_out,
            left_out2=left_out + len(heads),
        ),
        messages,
    )
    return 2


def diagnose_heads(
    capture: CaptureFile, request: DiagnoseRequest, given: Configuration | None, output: Output
) -> tuple[list[Diagnosed], InputError | None, int]:
    """Return the verdicts, the first error, and how many heads cannot be read; raise that error if all cannot."""
    from ....core.export.diagnosing.diagnosis import Diagnosed
    from ....core.work import heads as working

    chosen = chosen_heads(capture, request.layer, request.head)
    what = message("diagnosing {count} heads", count=len(chosen))
    found, refusal = readable(on_heads(working.diagnose, capture, chosen, (given,), what, request, output))
    return [Diagnosed(*each) for each in found], refusal, len(chosen) - len(found)


def _table(capture: Capture, heads: Sequence[Diagnosed], output: Output) -> str:
    """Return a line for each run of heads with the same verdict, each with its explanation."""
    from rich.text import Text

    from ....core.captures.files import plain
    from ....core.export.diagnosing.diagnosis import summary
    from ...views.lines import as_text
    from ...views.results.diagnosis import diagnosis_lines
    from ..printing import printed, title_lines

    words = [plain(capture.path.name), *(text for text in (capture.model, capture.licence) if text)]
    sources = dict.fromkeys(message("expected from {words}", words=each.verdict.expected.words) for each in heads)
    words += [*sources][:1] if len(sources) == 1 else []
    counts = summary(heads)["verdicts"]
    words.append(", ".join(f"{count} {word}" for word, count in counts.items() if count))
    glyphs, width = output.glyphs, output.text_width
    lines: list[Line] = []
    for verdict, explanation in diagnosis_lines(heads):
        lines.append(((glyphs.say(verdict), "text"),))
        for text in explanation:
            for line in wrapped(glyphs.say(text), width - 4):
                lines.append((("    ", "text"), *line))
    if counts["no-evidence"]:
        hint = "without evidence: `attn-tui inspect FILE --rules all` shows what every scale rule would do to a head"
        lines += [(), *wrapped(glyphs.say(hint), width, "dim")]
    return printed([title_lines(words, width, glyphs), Text(), as_text(lines)], output)


COMMAND = Command(
    usage="""attn-tui diagnose FILE [--config FILE] [--layer I] [--head H]
                        [--axes AXES] [--mask-true WORD]
                        [--format FORMAT] [-o FILE]""",
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
docs/diagnose.md explains every cause.""",
    examples="""\
examples:
  attn-tui diagnose capture.safetensors                        every head
  attn-tui diagnose capture.safetensors --layer 3 --head 5     one head
  attn-tui diagnose capture.safetensors --config config.json   what is expected
  attn-tui diagnose capture.safetensors --format json          for a script
""",
    add_options=_add_options,
    request=_request,
    run=run,
)

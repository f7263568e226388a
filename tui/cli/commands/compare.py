"""attn-tui compare: the first stage of attention at which two captures differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ....core.captures.files import CaptureError
from ....core.message import message, plain
from ...compute.question import in_shell, option, option_words
from ...views.lines import Line, wrapped
from ..captured import Hints, chosen_heads, head_number
from ..output import CODE, LISTED, Output, say
from ..parser import Command
from ..working import Work, complete, results_of

if TYPE_CHECKING:
    from ....core.captures.capture import Capture
    from ....core.captures.head import CaptureFile
    from ....core.diagnosis.comparing.results import Comparison, HeadComparison
    from ....core.work.heads import Source

_DIFFERENT = 1  # the exit code


@dataclass(frozen=True)
class CompareArguments(Hints):
    """The two files; without layer and head, every head of the reference is compared."""

    reference: Path = option("files", "", "REF", "the capture to compare with", read=Path)
    test: Path = option("files", "", "TEST", "the capture to compare", read=Path)
    layer: str | None = option("heads", "--layer", "I", "only this layer of the reference, by number or name")
    head: int | None = option(
        "heads", "--head", "H", "only this head of the reference; the first is 0", read=head_number
    )


def run(request: CompareArguments, output: Output) -> int:
    """Compare two captures and print the differences; return the exit code: 0 if there are none, else 1."""
    from ....core.captures.reader import open_capture
    from ....core.tables.diagnosis import compare_table
    from ....core.work.heads import source_of

    paths = (request.reference, request.test)
    reference, test = (open_capture(path, *request.hints) for path in paths)
    output.check((*paths, *reference.files, *test.files))
    messages = output.messages
    for capture in (reference, test):
        for note in capture.notes:
            say(message("note: {file}: {note}", file=capture.path.name, note=note), messages)
    sources = [
        source_of(each, path, *request.hints, exact=request.work.by_content)
        for each, path in zip((reference, test), paths, strict=True)
    ]
    found = compare_captures(reference, test, sources, request.work, output, request.layer, request.head)
    for note in found.notes:
        say(message("note: {note}", note=note), messages)
    output.emit(
        lambda: _table(reference, test, found, output),
        lambda: compare_table(reference, test, found),
        lambda _: _code(found, request),
    )
    return _DIFFERENT if found.differs else 0


def _code(found: Comparison, request: CompareArguments) -> str:
    """Return the program of the head that the comparison speaks of first."""
    from ....core.program.library import opened, pair_code

    first = found.ranked[0] if found.first is None else max(found.first[1], key=lambda each: each.change)
    words = option_words(replace(request, layer=str(first.layer.index), head=first.head))
    one, other = (opened(path, *request.hints) for path in (request.reference, request.test))
    return pair_code(one, other, first, in_shell(["attn-tui", "compare", *words]))


def compare_captures(
    reference: CaptureFile,
    test: CaptureFile,
    sources: Sequence[Source],
    work: Work,
    output: Output,
    layer: str | None = None,
    head: int | None = None,
) -> Comparison:
    """Compare heads of two captures; raise InputError if one cannot be read or nothing can be compared.

    `sources` tell workers how to open them.
    """
    from ....core.diagnosis.comparing.compare import plan
    from ....core.diagnosis.comparing.results import Comparison
    from ....core.work import heads as working

    chosen = {(each.position, number) for each, number in chosen_heads(reference, layer, head)}
    whole = plan(reference, test)
    pairs = [each for each in whole.pairs if (each.layer.position, each.head) in chosen]
    if not pairs:
        raise CaptureError(
            "{reference} and {test}: no head is in both", reference=plain(reference.path), test=plain(test.path)
        )
    parts = working.parts(working.compare_pair, sources, ((pair, pair.layer) for pair in pairs))
    heads: list[HeadComparison] = complete(
        results_of(parts, work, message("comparing"), output, partial(working.check_files, sources))
    )
    found = Comparison(tuple(heads), whole.missing, whole.notes)
    return found if layer is None and head is None else replace(found, missing=())


def _table(reference: Capture, test: Capture, found: Comparison, output: Output) -> str:
    from ...views.results.comparison import LEGEND, change_lines, reasons, sentences, stage_lines
    from ..printing import page

    glyphs, width = output.glyphs, output.text_width
    names = [plain(each.path.name) for each in (reference, test)]
    words = [
        message("{reference} and {test}", reference=names[0], test=names[1]),
        *(text for text in (test.model,) if text),
    ]

    def text(indent: int, sentence: str) -> list[Line]:
        pad = " " * indent
        return [((pad, "text"), *line) for line in wrapped(glyphs.say(sentence), width - indent)]

    blank: Line = ()
    lines: list[Line] = []
    for sentence in sentences(found):
        lines += text(0, sentence)
    screen = output.width if output.on_screen else None
    lines += [blank, *stage_lines(found, glyphs, screen)]
    legend = glyphs.say(LEGEND)
    if screen is None:
        lines.append(((legend, "dim"),))
    else:
        lines += wrapped(legend.replace("   ", "; "), screen, "dim")
    for number, (heading, explanation) in enumerate(reasons(found)):
        lines += [] if number else [blank]
        lines.append(((glyphs.say(heading), "text"),))
        lines += text(4, explanation)
    if most := change_lines(found, glyphs, screen):
        lines += [blank, *most]
    return page(output, words, "", lines)


COMMAND = Command(
    usage="""attn-tui compare REF TEST [--layer I] [--head H] [--axes AXES]
                        [--mask-true WORD] [--tensor NAMES]
                        [--format FORMAT] [-o FILE]""",
    description="""\
Compare two captures of a model and name the first stage at which they differ,
by layer and head: q·kᵀ, multiplier, soft-cap, bias, mask, sink, log-sum-exp,
weights, values, output. q and k may be in another basis (rotated, permuted)
and heads in another order: only their products count. Differences are judged
against the rounding of the number formats. Where files have weights, lse or o
and v, what was really done is compared; otherwise, what the files say. Of
different texts, only what does not depend on them is compared. The exit status
is 0 if nothing differs, 1 if something does, and 2 if a file cannot be read.
docs/diagnose.md explains the stages.""",
    examples="""\
examples:
  attn-tui compare reference.safetensors test.safetensors
  attn-tui compare fp32.safetensors bf16.safetensors --layer 3
  attn-tui compare old.npz new.npz --format json
""",
    arguments=CompareArguments,
    run=run,
    formats=(*LISTED, *CODE),
)

"""attn-tui check: fail if captured heads are beyond limits, or their scale is not the expected one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....core.diagnosis.limits import LIMITS, Limits, limit
from ....core.message import counted, joined, message
from ...compute.question import flag, in_shell, option, option_words
from ..captured import (
    Expected,
    chosen_heads,
    expected_rule,
    on_heads,
    opened,
    read_configuration,
)
from ..output import CODE, LISTED, Output, OutputFormat, say
from ..parser import Command, Given, arguments
from ..project import project_settings
from ..working import complete, one_engine
from .compare import compare_captures

if TYPE_CHECKING:
    from ....core.captures.head import CaptureFile
    from ....core.diagnosis.check import Figures
    from ....core.tables.diagnosis import Checked

_FORMATS: tuple[OutputFormat, ...] = (*LISTED, "junit", "github", *CODE)
_FOUND = 1  # the exit code if there are findings


def _limit(name: str, words: str) -> Any:
    """Return the option that is a limit; `words` are what it is, and its default."""
    return option("limits", name, "X", words, read=lambda value: limit(value, name), write="{:g}".format)


@dataclass(frozen=True)
class CheckArguments(Expected):
    """The files to check, and the limits."""

    strict: bool = flag("file", "--strict", "fail, too, if a head is not judged")
    baseline: Path | None = option(
        "file", "--baseline", "OLD", "an earlier capture of the same model to compare with", read=Path
    )
    max_logit: float | None = _limit("--max-logit", message("the largest |logit|, before a soft-cap; default 100"))
    max_capped: float | None = _limit(
        "--max-capped", message("the largest share of logits beyond 2 soft-caps; default 0.5")
    )
    min_spread: float | None = _limit(
        "--min-spread", message("the least standard deviation of logits within rows; default 0.01")
    )
    min_token_spread: float | None = _limit(
        "--min-token-spread", message("the least share of q and of k that differs between tokens; default 0.05")
    )
    min_file_entropy: float | None = _limit(
        "--min-file-entropy", message("the least median of entropy / ln n over the heads of the file; default 0.2")
    )
    min_entropy: float | None = _limit(
        "--min-entropy", message("the least entropy / ln n of a head; not checked by default")
    )
    max_one_hot: float | None = _limit(
        "--max-one-hot", message("the largest share of one-hot rows; not checked by default")
    )
    max_first_key: float | None = _limit(
        "--max-first-key", message("the largest weight on the first key; not checked by default")
    )
    allow: tuple[str, ...] = option(
        "limits",
        "--allow",
        "PATTERN",
        "accept findings whose place and rule match, such as 'layers.0.*:max-logit' or '*:scale-other'; may be "
        "repeated",
        action="append",
        default=(),
        read=tuple,
    )

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are set."""
        return {name: value for name in LIMITS if (value := getattr(self, name)) is not None}


def _check(given: Given) -> CheckArguments:
    project, expect = project_settings(), expected_rule(given)
    allow = (*project.get("allow", ()), *given.get("allow", ()))
    strict = project.get("strict", False) or given["strict"]
    return arguments(CheckArguments, project | given | {"allow": allow, "strict": strict}, expect=expect)


def run(request: CheckArguments, output: Output) -> int:
    """Check captures and print the findings; return the exit code: 0 without findings, else 1."""
    with one_engine(request.work) as work:
        return _checked_files(replace(request, work=work), output)


def _checked_files(request: CheckArguments, output: Output) -> int:
    from ....core.captures.reader import open_capture
    from ....core.tables.diagnosis import check_github, check_junit, check_table
    from ....core.work import heads as working

    given = read_configuration(request.config)
    old = None if request.baseline is None else open_capture(request.baseline, *request.hints)
    captures = opened(request, output, () if old is None else old.files, given)
    chosen = [chosen_heads(capture, None, None) for capture in captures]
    what = message("checking {number} heads", number=sum(map(len, chosen)))
    found = iter(
        complete(on_heads(working.check_figures, captures, chosen, (given, request.expect), what, request, output))
    )
    limits = Limits(**request.limits, set=frozenset(request.limits))
    checked = [
        _checked(number, capture, [*islice(found, len(heads))], limits, old, request, output)
        for number, (capture, heads) in enumerate(zip(captures, chosen, strict=True))
    ]
    output.emit(
        lambda: _table(checked, request, output.glyphs.say),
        lambda: check_table(checked),
        lambda _: _code(request, captures, checked),
        others={"junit": lambda: check_junit(checked), "github": lambda: check_github(checked)},
    )
    failed = any(each.findings or (request.strict and each.not_judged) for each in checked)
    return _FOUND if failed else 0


def _code(request: CheckArguments, captures: Sequence[CaptureFile], checked: Sequence[Checked]) -> str:
    """Return the program of the first head with a finding, else of the first head."""
    from ....core.program.library import checked_code, opened

    at = {(number, each.layer, each.head) for number, file in enumerate(checked) for each in file.findings}
    heads = [(number, each) for number, file in enumerate(checked) for each in file.heads]
    known = [head for head in heads if head[1].largest_logit is not None] or heads
    number, chosen = next((head for head in known if (head[0], head[1].layer, head[1].head) in at), known[0])
    words = option_words(replace(request, files=(request.files[number],), strict=False))
    file = opened(captures[number].path, *request.hints)
    return checked_code(file, chosen, in_shell(["attn-tui", "check", *words]))


def _checked(
    number: int,
    capture: CaptureFile,
    heads: Sequence[Figures],
    limits: Limits,
    old: CaptureFile | None,
    request: CheckArguments,
    output: Output,
) -> Checked:
    """Return what is found in one file of the request."""
    from ....core.diagnosis.check import changes, findings
    from ....core.tables.diagnosis import Checked
    from ....core.work.heads import source_of

    found = findings(heads, limits, capture.disagreements)
    if old is not None and request.baseline is not None:
        paths = (request.baseline, request.files[number])
        sources = [
            source_of(each, path, *request.hints, exact=request.work.by_content)
            for each, path in zip((old, capture), paths, strict=True)
        ]
        comparison = compare_captures(old, capture, sources, request.work, output)
        for note in comparison.notes:
            say(message("note: baseline: {note}", note=note), output.messages)
        found += [
            each if each.layer is None else replace(each, layer=capture.layers[each.layer.position])
            for each in changes(comparison)
        ]
    allowed = [each for each in found if each.allowed(request.allow)]
    name = capture.layers[0].file if len(request.files) > 1 else ""
    return Checked(capture, heads, [each for each in found if each not in allowed], allowed, name)


def _table(checked: Sequence[Checked], request: CheckArguments, say: Callable[[str], str]) -> str:
    """Return a line for each finding, one that counts heads by their verdicts, and what to do about the rest."""
    lines = [
        message("{place}: {finding}", place=file.place(each), finding=each.message)
        for file in checked
        for each in file.findings
    ]
    lines += [
        message("allowed: {place}: {finding}; the scale is as expected", place=file.place(each), finding=each.message)
        for file in checked
        for each in file.allowed
        if each.mild
    ]
    lines += [
        message("note: {place}: {note}", place=place, note=note) for file in checked for place, note in file.notes
    ]
    judged = {name: sum(file.judged[name] for file in checked) for name in checked[0].judged}
    left = judged["undecided"] + judged["no_evidence"]
    allowed = sum(len(each.allowed) for each in checked)
    counts = [message("{number} healthy", number=judged["healthy"])]
    counts.append(counted("{number} finding", "{number} findings", sum(len(each.findings) for each in checked)))
    counts += [message("{number} allowed", number=allowed)] if allowed else []
    if left:
        reasons = [message("no evidence")] if judged["no_evidence"] else []
        reasons += [message("undecided")] if judged["undecided"] else []
        counts.append(message("{number} not judged ({reasons})", number=left, reasons=joined(reasons, " · ")))
    heads = counted("{number} head", "{number} heads", sum(len(each.heads) for each in checked))
    if len(checked) > 1:
        heads = joined([counted("{number} file", "{number} files", len(checked)), heads], ", ")
    if judged["no_evidence"]:
        lines.append(
            message("No evidence: the file needs lse, weights, or o and v, as `attn-tui record` writes them.")
        )
    if request.expect is None and any(
        each.verdict.is_unusual or (each.verdict.verdict == "undecided" and not each.verdict.note)
        for file in checked
        for each in file.heads
    ):
        lines.append(message("Undecided: say what is intended with --expect FORMULA or --config FILE."))
    lines.append(message("{heads}: {counts}", heads=heads, counts=joined(counts, ", ")))
    return "".join(f"{say(line)}\n" for line in lines)


COMMAND = Command(
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
    arguments=CheckArguments,
    run=run,
    formats=_FORMATS,
    check=_check,
)

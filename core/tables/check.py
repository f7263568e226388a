"""The findings of checks, as a table, as JUnit XML and as annotations of a build on GitHub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, TypeAlias

from ..diagnosis.comparing.results import downstream_words
from ..diagnosis.groups import WRONG, faults_of, groups
from ..message import counted, joined, message, plain
from .diagnosis import fault_statement, fault_statements, group_entry, head_mark, page_title, worst_pictures
from .heads import files_entry
from .table import Block, Cell, HeadMark, Statement, Table, VerdictMap, entry, grid, table_of, text_cell

if TYPE_CHECKING:
    from ..captures.capture import CaptureContents, Layer
    from ..diagnosis.check import HeadFigures, LimitFinding
    from ..diagnosis.comparing.results import Comparison
    from ..diagnosis.groups import FaultGroup


_OF_BASELINE = {f"baseline-{stage}": label for stage, label in WRONG.items()}


@dataclass(frozen=True)
class FileCheck:
    """The result of a check of one file."""

    capture: CaptureContents
    heads: Sequence[HeadFigures] = field(repr=False)
    findings: Sequence[LimitFinding]
    allowed: Sequence[LimitFinding]
    name: str = ""  # of the file, if there are several
    comparison: Comparison | None = field(default=None, repr=False)  # with the baseline, the reference

    @property
    def groups(self) -> Sequence[FaultGroup]:
        """The findings, those of one fault together; a stage differs from the baseline only where it is not wrong."""
        found = groups(replace(finding.fault, file=self.name) for finding in self.findings)
        told = {
            (group.fault.label, place) for group in found if group.rule not in _OF_BASELINE for place in group.heads
        }
        return [
            group
            for group in found
            if not group.heads or not all((_OF_BASELINE.get(group.rule), place) in told for place in group.heads)
        ]

    @property
    def judged(self) -> Mapping[str, int]:
        """Return how many heads are healthy, have a finding, allowed or not, are downstream, and are not judged."""
        states = self.states
        return {
            "healthy": states.count("healthy"),
            "with_findings": states.count("cause"),
            "undecided": states.count("undecided"),
            "no_evidence": states.count("no-evidence"),
            "downstream": states.count("downstream"),
        }

    @property
    def states(self) -> Sequence[str]:
        """What is said of every head, as keys of MARKS: `cause` for a finding, `downstream`, or its verdict."""
        found = {(finding.layer, finding.head) for finding in (*self.findings, *self.allowed) if not finding.mild}
        later = () if self.comparison is None else self.comparison.downstream
        places = {(head.test_layer.position, head.test_head) for head in later}
        states: list[str] = []
        for head in self.heads:
            if (head.layer, head.head) in found:
                states.append("cause")
            elif (head.layer.position, head.head) in places:
                states.append("downstream")
            else:
                word = head.verdict.word
                states.append(word if word in ("healthy", "no-evidence") else "undecided")
        return states

    @property
    def not_judged(self) -> int:
        """The number of heads on which there is no verdict."""
        return self.judged["undecided"] + self.judged["no_evidence"]

    @property
    def notes(self) -> Sequence[tuple[str, str]]:
        """Return notes on heads and where they are; one that all heads of a layer have, once."""
        by_head: dict[tuple[Layer, str], list[HeadFigures]] = {}
        for head in self.heads:
            if head.verdict.note:
                by_head.setdefault((head.layer, head.verdict.note), []).append(head)
        return [
            (place, note)
            for (layer, note), heads in by_head.items()
            for place in (
                [layer.place] if len(heads) == layer.heads else [layer.place_of(head.head) for head in heads]
            )
        ]

    def place(self, finding: LimitFinding) -> str:
        """Return where a finding is, for people."""
        return finding.place if finding.layer is not None or not self.name else self.name


def check_statements(file: FileCheck) -> Iterator[Statement]:
    """Yield what is said of each fault, of what is allowed, of what follows from it, and notes."""
    compared, later = file.comparison, file.comparison is not None and file.comparison.downstream
    yield from fault_statements(() if later else file.heads, file.groups)
    for finding in file.allowed:
        if finding.mild:
            yield Statement(message("allowed"), joined([file.place(finding), finding.message], ": "))
    if compared is not None and later:
        yield Statement(message("downstream"), downstream_words(compared), (), "downstream")
    for place, note in file.notes:
        yield Statement(message("note"), joined([place, note], ": "))


def right_statements(file: FileCheck) -> Iterator[Statement]:
    """Yield what is said of heads that are right: which scale, and by which evidence."""
    yield from map(fault_statement, _right(file))


def _right(file: FileCheck) -> list[FaultGroup]:
    healthy = [head for head in file.heads if head.verdict.word == "healthy"]
    return groups(fault for head in healthy for fault in faults_of(head))


def check_counts(checked: Sequence[FileCheck]) -> str:
    """Return the line that counts heads: `32 heads: 8 wrong, 24 right`."""
    judged = {name: sum(file.judged[name] for file in checked) for name in checked[0].judged}
    left = judged["undecided"] + judged["no_evidence"]
    allowed = sum(len(file.allowed) for file in checked)
    of_files = sum(finding.layer is None for file in checked for finding in file.findings)
    counts = [
        counted("{number} wrong", "{number} wrong", judged["with_findings"]),
        counted("{number} right", "{number} right", judged["healthy"]),
        counted("{number} downstream", "{number} downstream", judged["downstream"]),
        counted("{number} finding of the file", "{number} findings of the file", of_files),
        counted("{number} allowed", "{number} allowed", allowed),
    ]
    numbers = (judged["with_findings"], judged["healthy"], judged["downstream"], of_files, allowed)
    shown = [words for words, number in zip(counts, numbers, strict=True) if number]
    if left:
        reasons = [message("no evidence")] if judged["no_evidence"] else []
        reasons += [message("undecided")] if judged["undecided"] else []
        shown.append(message("{number} not judged ({reasons})", number=left, reasons=joined(reasons, " · ")))
    heads = counted("{number} head", "{number} heads", sum(len(file.heads) for file in checked))
    if len(checked) > 1:
        heads = joined([counted("{number} file", "{number} files", len(checked)), heads], ", ")
    return message("{heads}: {counts}", heads=heads, counts=joined(shown, ", "))


Found: TypeAlias = tuple[FileCheck, "LimitFinding", bool]  # where a finding is, and whether it is allowed


def check_table(checked: Sequence[FileCheck]) -> Table[Found]:
    """Return the findings, those that are allowed last, and the figures of every head."""
    found = [(file, finding, False) for file in checked for finding in file.findings]
    return table_of(
        "check-2",
        files_entry([file.capture for file in checked]),
        "findings",
        [*found, *((file, finding, True) for file in checked for finding in file.allowed)],
        _FOUND,
        lambda: _page(checked),
        tail=lambda _: {
            "groups": [group_entry(group, file.capture.path) for file in checked for group in file.groups],
            "heads": [entry(_CHECKED, head) for file in checked for head in file.heads],
        },
        after={
            "summary": {
                name: sum(len(getattr(file, name)) for file in checked) for name in ("heads", "findings", "allowed")
            }
            | {name: sum(file.judged[name] for file in checked) for name in checked[0].judged}
        },
    )


def _page(checked: Sequence[FileCheck]) -> Iterator[Block]:
    found = [(file, finding, False) for file in checked for finding in file.findings]
    yield page_title([file.capture for file in checked])
    yield check_counts(checked)
    for file in checked:
        yield from check_statements(file)
        yield from () if found else right_statements(file)
    yield VerdictMap([mark for file in checked for mark in _marks(file)])
    for file in checked:
        yield worst_pictures([file.capture], [*file.groups, *([] if found else _right(file))], file.heads)
    if found:
        yield grid(_FOUND, found)


def _marks(file: FileCheck) -> Iterator[HeadMark]:
    rules: dict[tuple[Layer | None, int | None], list[str]] = {}
    for finding in (*file.findings, *file.allowed):
        rules.setdefault((finding.layer, finding.head), []).append(finding.rule)
    for head, state in zip(file.heads, file.states, strict=True):
        yield head_mark(head, state, rules.get((head.layer, head.head), ()))


_FOUND: Sequence[Cell[Found]] = (
    text_cell("place", lambda finding: finding[0].place(finding[1])),
    Cell("file", str, lambda finding: str((finding[1].layer or finding[0].capture).path)),
    Cell("layer", str, lambda finding: None if finding[1].layer is None else str(finding[1].layer.index)),
    Cell("layer_name", str, lambda finding: None if finding[1].layer is None else finding[1].layer.name),
    Cell("head", int, lambda finding: finding[1].head),
    Cell("rule", str, lambda finding: finding[1].rule, "rule"),
    Cell("message", str, lambda finding: finding[1].message, "finding"),
    Cell("value", float, lambda finding: finding[1].value, "value"),
    Cell("limit", float, lambda finding: finding[1].limit, "limit"),
    Cell("allowed", bool, lambda finding: finding[2]),
)
_CHECKED: Sequence[Cell[HeadFigures]] = (
    Cell("file", str, lambda head: str(head.layer.path)),
    Cell("layer", str, lambda head: str(head.layer.index)),
    Cell("layer_name", str, "layer.name"),
    Cell("head", int),
    *(Cell(name, float) for name in ("max_logit", "capped", "spread", "token_spread")),
    *(Cell(name, float) for name in ("entropy_fraction", "one_hot_rows", "first_key_weight")),
    Cell("verdict", str, "verdict.word"),
    Cell("note", str, lambda head: head.verdict.note or None),
)


def check_junit(checked: Sequence[FileCheck]) -> str:
    """Return JUnit XML: for each file a suite with a test case for each head, and one for the file.

    A case is failed if it has findings.
    """
    suites = [_suite(file) for file in checked]
    cases, failed = (sum(numbers) for numbers in zip(*((c, f) for _, c, f in suites), strict=True))
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuites tests="{cases}" failures="{failed}" errors="0">',
            *(text for text, _, _ in suites),
            "</testsuites>",
            "",
        ]
    )


def _suite(checked: FileCheck) -> tuple[str, int, int]:
    """Return the suite of a file, how many test cases it has, and how many of them are failed."""
    of_head: dict[tuple[str, int], list[LimitFinding]] = {(_class(e), e.head): [] for e in checked.heads}
    of_file: list[LimitFinding] = []
    for finding in checked.findings:
        if finding.layer is None or finding.head is None:
            of_file.append(finding)
        else:
            of_head.setdefault((_class(finding), finding.head), []).append(finding)
    cases = [_case(name, f"head {head}", findings) for (name, head), findings in of_head.items()]
    cases.append(_case("file", "all heads", of_file))
    failed = sum(bool(findings) for findings in (*of_head.values(), of_file))
    name = _attribute(f"attn-tui check {plain(str(checked.capture.path))}")
    start = f'  <testsuite name={name} tests="{len(cases)}" failures="{failed}" errors="0">'
    return "\n".join([start, *cases, "  </testsuite>"]), len(cases), failed


def _class(thing: HeadFigures | LimitFinding) -> str:
    assert thing.layer is not None
    return f"layer {thing.layer.index} {thing.layer.name}"


def _attribute(text: str) -> str:
    return f'"{escape(text)}"'


def _case(name: str, head: str, findings: Sequence[LimitFinding]) -> str:
    start = f"    <testcase classname={_attribute(plain(name))} name={_attribute(head)}"
    if not findings:
        return f"{start}/>"
    failures = [
        f"      <failure type={_attribute(finding.rule)} message={_attribute(plain(finding.message))}>"
        f"{escape(plain(f'{finding.place}: {finding.message}'), quote=False)}</failure>"
        for finding in findings
    ]
    return "\n".join([f"{start}>", *failures, "    </testcase>"])


def check_github(checked: Sequence[FileCheck]) -> str:
    """Return a workflow command of GitHub Actions for each fault, whatever the number of its heads."""
    return "".join(
        f"::error file={_property(str(file.capture.path))},title={_property(f'attn-tui {group.rule}')}::"
        f"{_data(f'{group.fault.label}: {group.sentence}')}\n"
        for file in checked
        for group in file.groups
    )


def _data(text: str) -> str:
    return plain(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

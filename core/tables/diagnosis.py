"""What is found out about captured heads: verdicts, differences between captures, and the findings of checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

from ..diagnosis.comparing.results import FIGURES, difference_in_words, downstream_words, same_before
from ..diagnosis.groups import WRONG, HeadVerdict, faults_of, groups, place_in_words
from ..diagnosis.results import ORDER, STAGES
from ..message import counted, joined, message, plain
from .formats import NONE, digits
from .heads import files_entry
from .table import Block, Cell, Table, entry, grid, table_of, text_cell

if TYPE_CHECKING:
    from pathlib import Path

    from ..captures.capture import CaptureContents, Layer
    from ..diagnosis.check import HeadFigures, LimitFinding
    from ..diagnosis.comparing.results import Comparison, HeadComparison, Stage, State
    from ..diagnosis.groups import FaultGroup
    from ..diagnosis.results import StageName


def diagnosis_table(
    captures: Sequence[CaptureContents], heads: Iterable[HeadVerdict], asked: int
) -> Table[HeadVerdict]:
    """Return `asked` verdicts, as they come."""

    def page() -> list[Block]:
        found = [*heads]
        several = any(each.layer.file for each in found)
        return [grid(_DIAGNOSED if several else _DIAGNOSED[1:], found)]

    return table_of(
        "diagnosis-2", files_entry(captures, "notes"), "heads", heads, _DIAGNOSED, page,
        tail=lambda found: {"groups": [*map(group_entry, groups_of(found))], "summary": summary(found)}, asked=asked,
    )  # fmt: skip


_DIAGNOSED: Sequence[Cell[HeadVerdict]] = (
    text_cell("file", lambda each: each.layer.file),
    Cell("file", str, lambda each: str(each.layer.path)),
    Cell("layer", str, lambda each: str(each.layer.index), "layer"),
    Cell("layer_name", str, "layer.name"),
    Cell("head", int, label="head"),
    Cell("verdict", str, "verdict.verdict", "verdict"),
    Cell(
        "cause", str, "verdict.cause", "cause",
        lambda each: ", ".join(" = ".join((one.cause, *one.also)) for one in each.verdict.findings)
        or " = ".join(each.verdict.maybe) or NONE,
    ),
    Cell("also", list, "verdict.also"),
    Cell("findings", object, lambda each: [
        {"cause": one.cause, "also": list(one.also), "says": str(one.says)} for one in each.verdict.findings
    ]),
    Cell("multiplier", float, "verdict.multiplier", "multiplier"),
    Cell("multiplier_error", float, "verdict.multiplier_error"),
    Cell("inside", float, "verdict.expected.inside"),
    Cell("expected", float, "verdict.expected.multiplier", "expected"),
    Cell("expected_from", str, "verdict.expected.words"),
    Cell("evidence", str, "verdict.evidence", "evidence"),
    Cell("misfit", float, "verdict.misfit", "misfit"),
    Cell("says", str, "verdict.says"),
    Cell(
        "consequence", object,
        lambda each: None if each.verdict.consequence is None else asdict(each.verdict.consequence),
    ),
)  # fmt: skip


def groups_of(heads: Sequence[HeadVerdict]) -> list[FaultGroup]:
    """Return verdicts, those of one fault together."""
    return groups(fault for each in heads for fault in faults_of(each))


def group_entry(group: FaultGroup, file: Path | None = None) -> dict[str, Any]:
    """Return a fault and its heads as JSON has them; `file` is that of a fault without heads."""
    used = group.used
    path = group.heads[0][0].path if group.heads else file
    return {
        "what": str(group.fault.label),
        "cause": group.rule,
        "also": list(group.fault.also),
        "file": str(path),
        "heads": [{"layer": str(layer.index), "layer_name": layer.name, "head": head} for layer, head in group.heads],
        "multiplier": None if used is None else {"least": used[0], "most": used[1]},
        "says": str(group.sentence),
    }


def summary(heads: Sequence[HeadVerdict]) -> dict[str, Any]:
    """Return how many heads have each verdict, and each cause."""
    words = Counter(each.verdict.verdict for each in heads)
    causes = Counter(one.cause for each in heads for one in each.verdict.findings)
    names = ("healthy", "cause", "undecided", "unexplained", "no-evidence")
    return {
        "verdicts": {name: words[name] for name in names},
        "causes": [{"cause": cause, "heads": count} for cause, count in causes.most_common()],
    }


def verdict_counts(heads: Sequence[HeadVerdict]) -> str:
    """Return `32 heads: 8 wrong, 24 right`."""
    verdicts = [each.verdict for each in heads]
    unusual = sum(each.is_unusual for each in verdicts)
    words = Counter(each.verdict for each in verdicts)
    found = (
        (words["cause"] + words["unexplained"], message("wrong")),
        (words["healthy"], message("right")),
        (unusual, message("unusual")),
        (words["undecided"] - unusual, message("undecided")),
        (words["no-evidence"], message("without evidence")),
    )
    counts = joined([message("{number} {word}", number=number, word=word) for number, word in found if number], ", ")
    number = counted("{number} head", "{number} heads", len(verdicts))
    return message("{heads}: {counts}", heads=number, counts=counts)


def evidence_words(heads: Sequence[HeadVerdict]) -> list[str]:
    """Return by which evidence heads were judged, and how closely it is explained; nothing without evidence."""
    kinds = [STAGES[name] for name in ORDER if any(each.verdict.evidence == name for each in heads)]
    misfits = [each.verdict.misfit for each in heads if each.verdict.misfit is not None and not each.verdict.is_wrong]
    if not kinds:
        return []
    said = message("by the {kinds}", kinds=joined(kinds, ", "))
    if not misfits:
        return [said]
    words = "{said}, explained to {misfit:.2g} × rounding"
    return [message(words, said=said, misfit=max(misfits))]


# The comparison of two captures.

# The stages whose difference is a number.
_MEASURED: tuple[StageName, ...] = ("qk", "multiplier", "lse", "weights", "v", "o")
_STATES: tuple[State, ...] = ("same", "differs", "follows", "downstream", "not-compared")


def compare_table(reference: CaptureContents, test: CaptureContents, found: Comparison) -> Table[HeadComparison]:
    """Return every stage and figure of every head, in the order of their first difference."""
    first = found.first
    head = {
        "reference": {"path": str(reference.path), "model": reference.model},
        "test": {"path": str(test.path), "model": test.model},
        "notes": found.notes,
        "missing": found.missing,
        "differs": found.differs,
        "first": None
        if first is None
        else {
            "stage": first[0].name,
            "layer": str(first[1][0].layer.index),
            "layer_name": first[1][0].layer.name,
            "heads": [each.head for each in first[1]],
            "says": first[0].says,
        },
        "stages": {name: counts(found, name) for name in ORDER},
    }
    return table_of(
        "compare-2", head, "heads", found.ranked, _COMPARED,
        lambda: [*verdict(found), *found.missing, *found.notes, grid(_COMPARED, found.ranked)],
    )  # fmt: skip


def _first(each: HeadComparison, word: Callable[[Stage], str]) -> str | None:
    return None if each.first is None else word(each.first)


def _stages(each: HeadComparison) -> dict[str, Any]:
    return {
        stage.name: {"state": stage.state, "says": stage.says}
        | ({"change": stage.change} if stage.name in _MEASURED else {})
        for stage in each.stages
    }


def _state(number: int) -> Cell[HeadComparison]:
    return Cell(ORDER[number], str, lambda each: each.stages[number].state, in_json=False)


def _figure(side: str, name: str) -> Cell[HeadComparison]:
    return Cell(f"{side}_{name}", float, lambda each: getattr(getattr(each, side), name, None), in_json=False)


_COMPARED: Sequence[Cell[HeadComparison]] = (
    Cell("layer", str, lambda each: str(each.layer.index), "layer"),
    Cell("layer_name", str, "layer.name"),
    Cell("head", int, label="head"),
    Cell("test_layer", str, lambda each: str(each.test_layer.index)),
    Cell("test_head", int, label="other head"),
    Cell("first", str, lambda each: _first(each, lambda stage: stage.name), "first difference",
         lambda each: _first(each, lambda stage: STAGES[stage.name]) or NONE),
    Cell("stages", object, _stages),
    *map(_state, range(len(ORDER))),
    Cell("reference", object, lambda each: each.reference and asdict(each.reference)),
    Cell("test", object, lambda each: each.test and asdict(each.test)),
    *(_figure(side, name) for name in FIGURES for side in ("reference", "test")),
    Cell("divergence", float, label="KL, nats"),
    Cell("changed_rows", float),
    text_cell("multiplier", lambda each: changed(each, "multiplier")),
    text_cell("entropy", lambda each: changed(each, "entropy")),
    Cell("says", str, lambda each: _first(each, lambda stage: stage.says), "what differs", in_json=False),
)  # fmt: skip


def counts(found: Comparison, stage: StageName) -> dict[str, int]:
    """Return how many heads have each state at a stage."""
    states = Counter(each.stages[ORDER.index(stage)].state for each in found.heads)
    return {state: states[state] for state in _STATES}


def verdict(found: Comparison) -> list[str]:
    """Return what a comparison found: outputs that are not compared, then the first difference."""
    heads = len(found.heads)
    if found.first is None:
        same = "{number} heads" if found.missing else "{number} heads, everything that can be compared is the same"
        return [*not_compared(found), message(same, number=heads)]
    stage, where = found.first
    template = "first difference: {stage}, {place}: {difference}"
    place = place_in_words([(each.layer, each.head) for each in where])
    return [
        *not_compared(found),
        message(template, stage=STAGES[stage.name], place=place, difference=difference_in_words(where)),
        *(words for words in (same_before(found), downstream_words(found)) if words),
        difference_counts(found),
    ]


def not_compared(found: Comparison) -> list[str]:
    """Return why outputs of layers are not compared."""
    words = "output of layer {layer} not compared: {why}"
    return [message(words, layer=layer, why=why) for layer, why in found.changed.items()]


def difference_counts(found: Comparison) -> str:
    """Return `32 heads: 8 differ, 8 downstream, 16 the same`."""
    differ, later = sum(each.first is not None for each in found.heads), len(found.downstream)
    same = len(found.heads) - differ - later
    numbers = ((differ, "{number} differ"), (later, "{number} downstream"), (same, "{number} the same"))
    counts = joined([message(words, number=number) for number, words in numbers if number], ", ")
    heads = counted("{number} head", "{number} heads", len(found.heads))
    return message("{heads}: {counts}", heads=heads, counts=counts)


def changed(each: HeadComparison, name: str) -> str:
    """Return a figure as `0.125` or, where it differs, `0.125 to 0.1325`."""
    before, after = (digits(getattr(side, name, None)) for side in (each.reference, each.test))
    return before if before == after else message("{before} to {after}", before=before, after=after)


# The findings of a check.


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
        found = groups(replace(each.fault, file=self.name) for each in self.findings)
        told = {(each.fault.label, place) for each in found if each.rule not in _OF_BASELINE for place in each.heads}
        return [
            each
            for each in found
            if not each.heads or not all((_OF_BASELINE.get(each.rule), place) in told for place in each.heads)
        ]

    @property
    def judged(self) -> Mapping[str, int]:
        """Return how many heads are healthy, have a finding, allowed or not, are downstream, and are not judged."""
        found = {(each.layer, each.head) for each in (*self.findings, *self.allowed) if not each.mild}
        rest = [each for each in self.heads if (each.layer, each.head) not in found]
        later = () if self.comparison is None else self.comparison.downstream
        places = {(each.test_layer.position, each.test_head) for each in later}
        downstream = [each for each in rest if (each.layer.position, each.head) in places]
        words = [each.verdict.verdict for each in rest if (each.layer.position, each.head) not in places]
        return {
            "healthy": words.count("healthy"),
            "with_findings": len(self.heads) - len(rest),
            "undecided": len(words) - words.count("healthy") - words.count("no-evidence"),
            "no_evidence": words.count("no-evidence"),
            "downstream": len(downstream),
        }

    @property
    def not_judged(self) -> int:
        """The number of heads on which there is no verdict."""
        return self.judged["undecided"] + self.judged["no_evidence"]

    @property
    def notes(self) -> Sequence[tuple[str, str]]:
        """Return notes on heads and where they are; one that all heads of a layer have, once."""
        found: dict[tuple[Layer, str], list[HeadFigures]] = {}
        for each in self.heads:
            if each.verdict.note:
                found.setdefault((each.layer, each.verdict.note), []).append(each)
        return [
            (place, note)
            for (layer, note), heads in found.items()
            for place in (
                [layer.place]
                if len(heads) == layer.heads
                else [message("{place} head {head}", place=layer.place, head=each.head) for each in heads]
            )
        ]

    def place(self, each: LimitFinding) -> str:
        """Return where a finding is, for people."""
        return each.place if each.layer is not None or not self.name else self.name


def check_counts(checked: Sequence[FileCheck]) -> str:
    """Return the line that counts heads: `32 heads: 8 wrong, 24 right`."""
    judged = {name: sum(file.judged[name] for file in checked) for name in checked[0].judged}
    left = judged["undecided"] + judged["no_evidence"]
    allowed = sum(len(each.allowed) for each in checked)
    of_files = sum(each.layer is None for file in checked for each in file.findings)
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
    heads = counted("{number} head", "{number} heads", sum(len(each.heads) for each in checked))
    if len(checked) > 1:
        heads = joined([counted("{number} file", "{number} files", len(checked)), heads], ", ")
    return message("{heads}: {counts}", heads=heads, counts=joined(shown, ", "))


Found: TypeAlias = tuple[FileCheck, "LimitFinding", bool]  # where a finding is, and whether it is allowed


def check_table(checked: Sequence[FileCheck]) -> Table[Found]:
    """Return the findings, those that are allowed last, and the figures of every head."""
    found = [(file, each, False) for file in checked for each in file.findings]
    return table_of(
        "check-2",
        files_entry([each.capture for each in checked]),
        "findings",
        [*found, *((file, each, True) for file in checked for each in file.allowed)],
        _FOUND,
        lambda: [grid(_FOUND, found)],
        tail=lambda _: {
            "groups": [group_entry(each, file.capture.path) for file in checked for each in file.groups],
            "heads": [entry(_CHECKED, each) for file in checked for each in file.heads],
        },
        after={
            "summary": {
                name: sum(len(getattr(each, name)) for each in checked) for name in ("heads", "findings", "allowed")
            }
            | {name: sum(each.judged[name] for each in checked) for name in checked[0].judged}
        },
    )


_FOUND: Sequence[Cell[Found]] = (
    text_cell("place", lambda found: found[0].place(found[1])),
    Cell("file", str, lambda found: str((found[1].layer or found[0].capture).path)),
    Cell("layer", str, lambda found: None if found[1].layer is None else str(found[1].layer.index)),
    Cell("layer_name", str, lambda found: None if found[1].layer is None else found[1].layer.name),
    Cell("head", int, lambda found: found[1].head),
    Cell("rule", str, lambda found: found[1].rule, "rule"),
    Cell("message", str, lambda found: found[1].message, "finding"),
    Cell("value", float, lambda found: found[1].value, "value"),
    Cell("limit", float, lambda found: found[1].limit, "limit"),
    Cell("allowed", bool, lambda found: found[2]),
)
_CHECKED: Sequence[Cell[HeadFigures]] = (
    Cell("file", str, lambda each: str(each.layer.path)),
    Cell("layer", str, lambda each: str(each.layer.index)),
    Cell("layer_name", str, "layer.name"),
    Cell("head", int),
    *(Cell(name, float) for name in ("largest_logit", "capped", "spread", "token_spread")),
    *(Cell(name, float) for name in ("entropy_fraction", "one_hot_rows", "first_key_weight")),
    Cell("verdict", str, "verdict.verdict"),
    Cell("note", str, lambda each: each.verdict.note or None),
)


def check_junit(checked: Sequence[FileCheck]) -> str:
    """Return JUnit XML: for each file a suite with a test case for each head, and one for the file.

    A case is failed if it has findings.
    """
    suites = [_suite(each) for each in checked]
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
    for each in checked.findings:
        if each.layer is None or each.head is None:
            of_file.append(each)
        else:
            of_head.setdefault((_class(each), each.head), []).append(each)
    cases = [_case(name, f"head {head}", found) for (name, head), found in of_head.items()]
    cases.append(_case("file", "all heads", of_file))
    failed = sum(bool(found) for found in (*of_head.values(), of_file))
    name = _attribute(f"attn-tui check {plain(str(checked.capture.path))}")
    start = f'  <testsuite name={name} tests="{len(cases)}" failures="{failed}" errors="0">'
    return "\n".join([start, *cases, "  </testsuite>"]), len(cases), failed


def _class(each: HeadFigures | LimitFinding) -> str:
    assert each.layer is not None
    return f"layer {each.layer.index} {each.layer.name}"


def _attribute(text: str) -> str:
    return f'"{escape(text)}"'


def _case(name: str, head: str, found: Sequence[LimitFinding]) -> str:
    start = f"    <testcase classname={_attribute(plain(name))} name={_attribute(head)}"
    if not found:
        return f"{start}/>"
    failures = [
        f"      <failure type={_attribute(each.rule)} message={_attribute(plain(each.message))}>"
        f"{escape(plain(f'{each.place}: {each.message}'), quote=False)}</failure>"
        for each in found
    ]
    return "\n".join([f"{start}>", *failures, "    </testcase>"])


def check_github(checked: Sequence[FileCheck]) -> str:
    """Return a workflow command of GitHub Actions for each fault, whatever the number of its heads."""
    return "".join(
        f"::error file={_property(str(file.capture.path))},title={_property(f'attn-tui {each.rule}')}::"
        f"{_data(f'{each.fault.label}: {each.sentence}')}\n"
        for file in checked
        for each in file.groups
    )


def _data(text: str) -> str:
    return plain(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

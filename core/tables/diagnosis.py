"""What is found out about captured heads: verdicts, and differences between captures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..diagnosis.comparing.results import FIGURES, difference_in_words, downstream_words, same_before
from ..diagnosis.groups import HeadVerdict, faults_of, groups, place_in_words, right_layers
from ..diagnosis.results import ORDER, STAGES, Verdict, amount
from ..message import counted, joined, message, plain
from .formats import NONE, digits
from .heads import files_entry, files_words, head_picture
from .table import (
    Block,
    Cell,
    Heading,
    HeadMark,
    Picture,
    Pictures,
    Statement,
    Table,
    Tone,
    VerdictMap,
    grid,
    table_of,
    text_cell,
)

if TYPE_CHECKING:
    from pathlib import Path

    from ..captures.capture import CaptureContents
    from ..diagnosis.comparing.results import Comparison, HeadComparison, Stage, State
    from ..diagnosis.groups import FaultGroup, HeadVerdict
    from ..diagnosis.results import Consequence, StageName


def diagnosis_table(
    captures: Sequence[CaptureContents], heads: Iterable[HeadVerdict], asked: int
) -> Table[HeadVerdict]:
    """Return `asked` verdicts, as they come."""

    def page() -> list[Block]:
        found = [*heads]
        several = any(head.layer.file for head in found)
        told = groups_of(found)
        return [
            page_title(captures),
            verdict_counts(found),
            *evidence_words(found),
            *fault_statements(found, sorted(told, key=lambda group: group.rule == "healthy")),
            VerdictMap([head_mark(head) for head in found]),
            worst_pictures(captures, told, found),
            grid(_DIAGNOSED if several else _DIAGNOSED[1:], found),
        ]

    return table_of(
        "diagnosis-2", files_entry(captures, "notes"), "heads", heads, _DIAGNOSED, page,
        tail=lambda found: {"groups": [*map(group_entry, groups_of(found))], "summary": summary(found)}, asked=asked,
    )  # fmt: skip


_DIAGNOSED: Sequence[Cell[HeadVerdict]] = (
    text_cell("file", lambda head: head.layer.file),
    Cell("file", str, lambda head: str(head.layer.path)),
    Cell("layer", str, lambda head: str(head.layer.index), "layer"),
    Cell("layer_name", str, "layer.name"),
    Cell("head", int, label="head"),
    Cell("verdict", str, "verdict.word", "verdict"),
    Cell(
        "cause", str, "verdict.cause", "cause",
        lambda head: ", ".join(" = ".join((one.cause, *one.also)) for one in head.verdict.findings)
        or " = ".join(head.verdict.maybe) or NONE,
    ),
    Cell("also", list, "verdict.also"),
    Cell("findings", object, lambda head: [
        {"cause": one.cause, "also": list(one.also), "says": str(one.says)} for one in head.verdict.findings
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
        lambda head: None if head.verdict.consequence is None else _numbers(head.verdict.consequence),
    ),
)  # fmt: skip


def _numbers(consequence: Consequence) -> dict[str, float]:
    """Return the numbers of a consequence, without the rows that the app draws."""
    return {name: value for name, value in asdict(consequence).items() if isinstance(value, float)}


def groups_of(heads: Sequence[HeadVerdict]) -> list[FaultGroup]:
    """Return verdicts, those of one fault together."""
    return groups(fault for head in heads for fault in faults_of(head))


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
    words = Counter(head.verdict.word for head in heads)
    causes = Counter(one.cause for head in heads for one in head.verdict.findings)
    names = ("healthy", "cause", "undecided", "unexplained", "no-evidence")
    return {
        "verdicts": {name: words[name] for name in names},
        "causes": [{"cause": cause, "heads": count} for cause, count in causes.most_common()],
    }


def verdict_counts(heads: Sequence[HeadVerdict]) -> str:
    """Return `32 heads: 8 wrong, 24 right`."""
    verdicts = [head.verdict for head in heads]
    unusual = sum(verdict.is_unusual for verdict in verdicts)
    words = Counter(verdict.word for verdict in verdicts)
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
    kinds = [STAGES[name] for name in ORDER if any(head.verdict.evidence == name for head in heads)]
    misfits = [head.verdict.misfit for head in heads if head.verdict.misfit is not None and not head.verdict.is_wrong]
    if not kinds:
        return []
    said = message("by the {kinds}", kinds=joined(kinds, ", "))
    if not misfits:
        return [said]
    words = "{said}, explained to {misfit:.2g} × rounding"
    return [message(words, said=said, misfit=max(misfits))]


def page_title(captures: Sequence[CaptureContents]) -> Heading:
    """Return the title of a page: the file, or how many, and the model if all have the same."""
    return Heading(joined(files_words(captures, lambda capture: plain(capture.path.name)), " · "))


def fault_statement(group: FaultGroup, right: str = "") -> Statement:
    """Return what is said of a fault and its heads; `right` says which other layers are right."""
    fault = group.fault
    if group.rule == "healthy":
        return Statement(fault.label, group.place, (joined([fault.expected, group.why], ", "),), "right")
    sentences = [group.why, group.effect, right]
    if fault.rule not in ("undecided", "unexplained", "no-evidence"):
        sentences.append(message("cause: {names}", names=group.names))
    tone: Tone = "wrong" if fault.severe else "neutral" if fault.rule == "no-evidence" else "undecided"
    if not (group.amounts and fault.expected):
        return Statement(fault.label, group.place, tuple(sentences), tone)
    used = message("is {used}", used=group.amounts)
    return Statement(fault.label, group.place, tuple(sentences), tone, used, fault.expected)


def fault_statements(heads: Sequence[HeadVerdict], found: Iterable[FaultGroup]) -> Iterator[Statement]:
    """Yield what is said of faults of these heads, and which other layers are right where it is of the multiplier."""
    for group in found:
        yield fault_statement(group, right_layers(heads, group) if group.used is not None else "")


# Of a verdict, or of what a comparison says of a head: the tone of its mark, and the word for it.
MARKS: Mapping[str, tuple[Tone, str]] = {
    "healthy": ("right", message("right")),
    "cause": ("wrong", message("wrong")),
    "unexplained": ("wrong", message("wrong")),
    "undecided": ("undecided", message("undecided")),
    "no-evidence": ("neutral", message("without evidence")),
    "downstream": ("downstream", message("downstream")),
    "differs": ("wrong", message("differs")),
    "same": ("right", message("same")),
}


def head_mark(head: HeadVerdict, state: str = "", rules: Sequence[str] = ()) -> HeadMark:
    """Return the mark of a head: its causes, or the given rules, and the multiplier.

    `state` is a key of MARKS, by default the verdict.
    """
    verdict = head.verdict
    causes = rules or [" = ".join((one.cause, *one.also)) for one in verdict.findings]
    used = [] if verdict.multiplier is None else [amount(verdict.multiplier)]
    return HeadMark(head.layer, head.head, *MARKS[state or verdict.word], joined([*causes, *used], ", "))


_PICTURED = 6  # heads


def worst_pictures(
    captures: Sequence[CaptureContents], groups: Iterable[FaultGroup], heads: Iterable[HeadVerdict]
) -> Pictures:
    """Return pictures of the first head of each fault, what is wrong first: as it was, and as it should be."""
    verdicts = {(head.layer, head.head): head.verdict for head in heads}
    places = [(group, group.heads[0]) for group in groups if group.heads]
    places.sort(key=lambda place: (not place[0].fault.severe, place[0].rule == "healthy"))

    def draw() -> Iterator[Picture]:
        for group, (layer, head) in places[:_PICTURED]:
            verdict: Verdict = verdicts[layer, head]
            expected = verdict.expected.multiplier
            scales: list[tuple[str, float | None]] = [(message("as the file says"), None)]
            if group.fault.expected and group.rule != "healthy" and group.fault.used and expected is not None:
                scales = [
                    (message("is {used}", used=amount(group.fault.used)), group.fault.used),
                    (group.fault.expected, expected),
                ]
            yield head_picture(captures, layer, head, group.rule, scales)

    return Pictures(draw)


# The comparison of two captures.

# The stages whose difference is a number.
_MEASURED: tuple[StageName, ...] = ("qk", "multiplier", "lse", "weights", "v", "o")
_STATES: tuple[State, ...] = ("same", "differs", "follows", "downstream", "not-compared")


def compare_table(reference: CaptureContents, test: CaptureContents, comparison: Comparison) -> Table[HeadComparison]:
    """Return every stage and figure of every head, in the order of their first difference."""
    first = comparison.first
    head = {
        "reference": {"path": str(reference.path), "model": reference.model},
        "test": {"path": str(test.path), "model": test.model},
        "notes": comparison.notes,
        "missing": comparison.missing,
        "differs": comparison.differs,
        "first": None
        if first is None
        else {
            "stage": first[0].name,
            "layer": str(first[1][0].layer.index),
            "layer_name": first[1][0].layer.name,
            "heads": [layer.head for layer in first[1]],
            "says": first[0].says,
        },
        "stages": {name: counts(comparison, name) for name in ORDER},
    }
    return table_of(
        "compare-2", head, "heads", comparison.ranked, _COMPARED,
        lambda: [
            Heading(
                message("{reference} and {test}", reference=plain(reference.path.name), test=plain(test.path.name))
            ),
            *difference_statements(comparison),
            *comparison.notes,
            VerdictMap([_compared_mark(head) for head in comparison.heads]),
            Pictures(lambda: _compared_pictures(reference, test, comparison)),
            grid(_COMPARED, comparison.ranked),
        ],
    )  # fmt: skip


def difference_statements(comparison: Comparison) -> list[str | Statement]:
    """Return what differs first, what is downstream of it, what one capture lacks, and how many heads differ."""
    if comparison.first is None:
        return [*verdict(comparison), *comparison.missing]
    stage, heads = comparison.first
    where = place_in_words([(head.layer, head.head) for head in heads])
    says = joined([STAGES[stage.name], difference_in_words(heads)], ": ")
    told = [Statement(message("FIRST DIFFERENCE"), where, (says, same_before(comparison)), "wrong")]
    if comparison.downstream:
        told.append(Statement(message("downstream"), downstream_words(comparison), (), "downstream"))
    return [*told, *not_compared(comparison), *comparison.missing, difference_counts(comparison)]


def _compared_mark(comparison: HeadComparison) -> HeadMark:
    state = "downstream" if comparison.is_downstream else "same" if comparison.first is None else "differs"
    says = "" if comparison.first is None else joined([STAGES[comparison.first.name], comparison.first.says], ": ")
    return HeadMark(comparison.layer, comparison.head, *MARKS[state], says)


def _compared_pictures(
    reference: CaptureContents, test: CaptureContents, comparison: Comparison
) -> Iterator[Picture]:
    """Yield pictures of the heads that changed most, in both captures."""
    changed = [head for head in comparison.ranked if head.first is not None][: _PICTURED // 2]
    for each in changed or comparison.ranked[:1]:
        by_file = each.first is None or each.first.name != "multiplier" or each.reference is None or each.test is None
        one, other = (
            head_picture([capture], layer, head, "", [(plain(capture.path.name), None if by_file else multiplier)])
            for capture, layer, head, multiplier in (
                (reference, each.layer, each.head, each.reference and each.reference.multiplier),
                (test, each.test_layer, each.test_head, each.test and each.test.multiplier),
            )
        )
        why = "" if each.first is None else STAGES[each.first.name]
        yield Picture(joined([one.title, *([why] if why else [])], " · "), [*one.matrices, *other.matrices])


def _first(comparison: HeadComparison, word: Callable[[Stage], str]) -> str | None:
    return None if comparison.first is None else word(comparison.first)


def _stages(comparison: HeadComparison) -> dict[str, Any]:
    return {
        stage.name: {"state": stage.state, "says": stage.says}
        | ({"change": stage.change} if stage.name in _MEASURED else {})
        for stage in comparison.stages
    }


def _state(number: int) -> Cell[HeadComparison]:
    return Cell(ORDER[number], str, lambda head: head.stages[number].state, in_json=False)


def _figure(side: str, name: str) -> Cell[HeadComparison]:
    return Cell(f"{side}_{name}", float, lambda head: getattr(getattr(head, side), name, None), in_json=False)


_COMPARED: Sequence[Cell[HeadComparison]] = (
    Cell("layer", str, lambda head: str(head.layer.index), "layer"),
    Cell("layer_name", str, "layer.name"),
    Cell("head", int, label="head"),
    Cell("test_layer", str, lambda head: str(head.test_layer.index)),
    Cell("test_head", int, label="other head"),
    Cell("first", str, lambda head: _first(head, lambda stage: stage.name), "first difference",
         lambda head: _first(head, lambda stage: STAGES[stage.name]) or NONE),
    Cell("stages", object, _stages),
    *map(_state, range(len(ORDER))),
    Cell("reference", object, lambda head: head.reference and asdict(head.reference)),
    Cell("test", object, lambda head: head.test and asdict(head.test)),
    *(_figure(side, name) for name in FIGURES for side in ("reference", "test")),
    Cell("divergence", float, label="KL, nats"),
    Cell("changed_rows", float),
    text_cell("multiplier", lambda head: changed(head, "multiplier")),
    text_cell("entropy", lambda head: changed(head, "entropy")),
    Cell("says", str, lambda head: _first(head, lambda stage: stage.says), "what differs", in_json=False),
)  # fmt: skip


def counts(comparison: Comparison, stage: StageName) -> dict[str, int]:
    """Return how many heads have each state at a stage."""
    states = Counter(head.stages[ORDER.index(stage)].state for head in comparison.heads)
    return {state: states[state] for state in _STATES}


def verdict(comparison: Comparison) -> list[str]:
    """Return what a comparison found: outputs that are not compared, then the first difference."""
    heads = len(comparison.heads)
    if comparison.first is None:
        same = (
            "{number} heads" if comparison.missing else "{number} heads, everything that can be compared is the same"
        )
        return [*not_compared(comparison), message(same, number=heads)]
    stage, where = comparison.first
    template = "first difference: {stage}, {place}: {difference}"
    place = place_in_words([(head.layer, head.head) for head in where])
    return [
        *not_compared(comparison),
        message(template, stage=STAGES[stage.name], place=place, difference=difference_in_words(where)),
        *(words for words in (same_before(comparison), downstream_words(comparison)) if words),
        difference_counts(comparison),
    ]


def not_compared(comparison: Comparison) -> list[str]:
    """Return why outputs of layers are not compared."""
    words = "output of layer {layer} not compared: {why}"
    return [message(words, layer=layer, why=why) for layer, why in comparison.changed.items()]


def difference_counts(comparison: Comparison) -> str:
    """Return `32 heads: 8 differ, 8 downstream, 16 the same`."""
    differ, later = sum(head.first is not None for head in comparison.heads), len(comparison.downstream)
    same = len(comparison.heads) - differ - later
    words = (
        counted("{number} differs", "{number} differ", differ),
        counted("{number} downstream", "{number} downstream", later),
        counted("{number} the same", "{number} the same", same),
    )
    counts = joined([word for word, number in zip(words, (differ, later, same), strict=True) if number], ", ")
    heads = counted("{number} head", "{number} heads", len(comparison.heads))
    return message("{heads}: {counts}", heads=heads, counts=counts)


def changed(comparison: HeadComparison, name: str) -> str:
    """Return a figure as `0.125` or, where it differs, `0.125 to 0.1325`."""
    before, after = (digits(getattr(side, name, None)) for side in (comparison.reference, comparison.test))
    return before if before == after else message("{before} to {after}", before=before, after=after)

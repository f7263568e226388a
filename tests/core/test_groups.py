"""One fault is one group, whatever the number of its heads; what differs is told apart."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from attn_tui.core.captures.capture import Layer, sample_path
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.expectation import expectation, expectations
from attn_tui.core.diagnosis.groups import (
    Fault,
    FaultGroup,
    HeadVerdict,
    faults_of,
    groups,
    numbers_in_words,
    place_in_words,
    right_layers,
)
from attn_tui.core.diagnosis.results import Expected, Finding, Product, Verdict, Word
from attn_tui.core.message import message, plain
from attn_tui.core.tables.diagnosis import fault_statement, head_mark
from cases import for_each

HEADS = 8
SAMPLE = open_capture(sample_path()).layers[0]
ROOT = 32**-0.5
TWICE = Finding("scale-twice", "applied twice", ("scale-1-over-d",))


def layer(index: int, name: str = "blocks.{}.attn", heads: int = HEADS) -> Layer:
    return replace(SAMPLE, position=index, index=index, name=plain(name.format(index)), heads=heads)


LAYERS = tuple(map(layer, range(32)))


def verdict(word: Word = "healthy", used: float | None = ROOT, *found: Finding, error: float = 1e-9) -> Verdict:
    expected = Expected(ROOT, "1/√32", formula="1/√32")
    multiplier = None if used is None else Product(used)
    return Verdict(word, "", expected, findings=found, multiplier=multiplier, multiplier_error=error)


def judged(*found: tuple[int, int, Verdict]) -> list[HeadVerdict]:
    return [HeadVerdict(LAYERS[index], head, each) for index, head, each in found]


def of(heads: Sequence[HeadVerdict]) -> list[FaultGroup]:
    return groups(fault for each in heads for fault in faults_of(each))


def where(group: FaultGroup) -> set[tuple[int, int]]:
    return {(layer.index, head) for layer, head in group.heads}


@for_each("layers", [[2], [0, 1, 2], [0, 5, 31], [*range(32)]])
def test_one_fault_is_one_group_in_any_number_of_layers(layers: list[int]) -> None:
    wrong = verdict("cause", 1 / 32, TWICE)
    found = of(judged(*((i, head, wrong if i in layers else verdict()) for i in range(32) for head in range(HEADS))))
    faults = [group for group in found if group.rule != "healthy"]
    assert [group.rule for group in faults] == ["scale-twice"]
    assert where(faults[0]) == {(index, head) for index in layers for head in range(HEADS)}
    assert faults[0].used == (1 / 32, 1 / 32)
    assert len(found) == (1 if len(layers) == 32 else 2)


def test_faults_of_other_causes_labels_and_expectations_are_groups_of_their_own() -> None:
    missing = verdict("cause", 1.0, Finding("scale-missing", "the scores were not scaled"))
    capped = verdict("cause", ROOT, Finding("softcap-extra", "logits are bent", stage="softcap"))
    elsewhere = replace(verdict("cause", 1 / 32, TWICE), expected=Expected(0.5, "1/2"))
    found = of(
        judged(
            (3, 0, missing),
            (0, 0, verdict("cause", 1 / 32, TWICE)),
            (0, 1, elsewhere),
            (1, 0, capped),
            (3, 1, missing),
            (4, 0, verdict("no-evidence", None)),
            (5, 0, replace(verdict("undecided"), suspect=TWICE)),
        )
    )
    assert [(group.rule, sorted(where(group))) for group in found] == [
        ("scale-twice", [(0, 0)]),
        ("scale-twice", [(0, 1)]),
        ("softcap-extra", [(1, 0)]),
        ("scale-missing", [(3, 0), (3, 1)]),
        ("no-evidence", [(4, 0)]),
        ("scale-twice", [(5, 0)]),
    ]
    assert len({group.fault.label for group in found}) == 4  # of scale, of the soft-cap, not judged, unusual
    assert [group.fault.severe for group in found] == [True, True, True, True, False, False]
    assert [fault_statement(group).tone for group in found] == ["wrong"] * 4 + ["neutral", "undecided"]
    [healthy] = of(judged((0, 0, verdict())))
    assert fault_statement(healthy).tone == "right"


@for_each(
    ("judgement", "state", "rules", "tone", "says"),
    [
        (verdict(), "", (), "right", "× 0.1768"),
        (
            verdict("cause", 1 / 32, TWICE),
            "",
            (),
            "wrong",
            "scale-twice = scale-1-over-d, × 0.03125",
        ),
        (verdict("cause", 1 / 32, TWICE), "", ("max-logit", "spread"), "wrong", "max-logit, spread, × 0.03125"),
        (verdict("cause", None, replace(TWICE, also=())), "downstream", (), "downstream", "scale-twice"),
    ],
)
def test_the_mark_of_a_head_is_its_causes_or_the_rules_that_it_breaks(
    judgement: Verdict, state: str, rules: Sequence[str], tone: str, says: str
) -> None:
    mark = head_mark(HeadVerdict(LAYERS[1], 3, judgement), state, rules)
    assert (mark.layer, mark.head, mark.tone, mark.says) == (LAYERS[1], 3, tone, says)


def test_all_causes_of_a_head_are_told() -> None:
    capped = Finding("softcap-extra", "logits are bent", stage="softcap")
    found = of(judged((0, 0, verdict("cause", 1.0, TWICE, capped))))
    assert [group.rule for group in found] == ["scale-twice", "softcap-extra"]
    assert [group.used for group in found] == [(1.0, 1.0), None]  # a number beside what it is of
    assert [bool(group.fault.expected) for group in found] == [True, False]


def test_files_are_not_mixed() -> None:
    files = [replace(LAYERS[2], file=name) for name in ("a", "b")]
    found = of([HeadVerdict(each, 0, verdict("cause", 1 / 32, TWICE)) for each in files])
    assert [group.layers for group in found] == [(files[0],), (files[1],)]
    assert all(group.place.startswith(f"{each.file}: ") for group, each in zip(found, files, strict=True))


def test_what_is_said_of_a_file_is_told_each_by_itself() -> None:
    texts = [message("only one file has layer {number}", number=number) for number in (4, 5)]
    found = groups(Fault("DIFFERENT", "baseline-missing", text) for text in texts)
    assert [group.why for group in found] == texts
    assert all(not group.heads for group in found)
    assert right_layers(judged((0, 0, verdict())), found[0]) == ""


@for_each(
    ("used", "error", "expected"),
    [
        ([1 / 128, 1 / 128 * (1 + 1e-8)], 1e-13, (1 / 128, 1 / 128 * (1 + 1e-8))),  # the same at four digits
        ([1 / 128, 1 / 126], 1e-4, None),  # their errors explain it
        ([1 / 128, 1 / 64], 1e-5, (1 / 128, 1 / 64)),
        ([0.5, 0.6, 0.7], 1e-3, (0.5, 0.7)),
        ([0.5, 0.6, 0.7], 0.05, None),
        ([-0.5, -0.5001], 1e-9, None),
        ([-0.7, -0.5], 1e-9, (-0.7, -0.5)),
    ],
)
def test_a_range_is_told_only_where_heads_differ_by_more_than_their_errors(
    used: list[float], error: float, expected: tuple[float, float] | None
) -> None:
    heads = judged(*((2, head, verdict("cause", each, TWICE, error=error)) for head, each in enumerate(used)))
    [group] = of(heads)
    assert group.used is not None
    least, most = group.used
    if expected is None or most - least < 1e-6 * abs(most):
        assert least == most
        assert min(used) <= least <= max(used)
    else:
        assert (least, most) == expected
    numbers = [part for part in group.amounts.split() if part not in ("×", "to")]
    assert numbers == [f"{each:.4g}" for each in dict.fromkeys(group.used)]


def test_of_several_causes_a_group_has_the_one_that_explains_most_of_its_heads() -> None:
    """Rounding puts one or the other first; both are true of a head."""
    found = of(
        judged(
            (0, 0, verdict("cause", 1 / 32, Finding("scale-fixed", "a number", ("scale-1-over-d", "scale-other")))),
            (0, 1, verdict("cause", 1 / 32, Finding("scale-1-over-d", "1/d_k", ("scale-fixed",)))),
            (1, 0, verdict("cause", 1 / 32, Finding("scale-1-over-d", "1/d_k", ()))),
        )
    )
    [group] = found
    assert (group.rule, group.fault.why) == ("scale-1-over-d", "1/d_k")
    assert group.fault.also == ()  # no other explains all three
    assert where(group) == {(0, 0), (0, 1), (1, 0)}


def test_of_causes_that_explain_as_many_heads_the_one_named_first_most_often_is_told() -> None:
    one, other = Finding("a", "as a", ("b",)), Finding("b", "as b", ("a",))
    [group] = of(judged(*((2, head, verdict("cause", 0.5, each)) for head, each in enumerate((one, other, other)))))
    assert (group.rule, group.fault.also) == ("b", ("a",))


def test_words_that_are_not_true_of_all_heads_name_the_head_they_are_of() -> None:
    def parts(ratio: float) -> Finding:
        return Finding("scale-by-component", message("{ratio:.4g} × as much", ratio=ratio))

    found = of(judged(*((5, head, verdict("cause", None, parts(1.5 + head))) for head in (3, 6))))
    [group] = found
    assert where(group) == {(5, 3), (5, 6)}
    assert "layer 5" in group.why
    assert "head 3" in group.why
    assert "1.5" in group.why or "4.5" in group.why
    [same] = of(judged(*((5, head, verdict("cause", None, parts(2.0))) for head in (3, 6))))
    assert "head" not in same.why


def test_a_group_of_heads_beyond_a_limit_names_the_one_that_passes_it_most() -> None:
    degrees = {0: 3.0, 1: 90.0, 2: 7.0}
    faults = [
        Fault("BEYOND", "max-logit", message("logit {value}", value=degree), layer(number), 1, degree=degree)
        for number, degree in degrees.items()
    ]
    [group] = groups(faults)
    assert group.why == "logit 90.0 (layer 1 head 1)"
    assert where(group) == {(0, 1), (1, 1), (2, 1)}


def test_a_group_is_in_the_order_of_layers_whatever_order_heads_come_in() -> None:
    wrong = verdict("cause", 1 / 32, TWICE)
    [group] = of(judged((5, 1, wrong), (0, 3, wrong), (5, 0, wrong), (0, 1, wrong)))
    assert [(each.index, head) for each, head in group.heads] == [(0, 1), (0, 3), (5, 0), (5, 1)]


@for_each(
    ("heads", "words"),
    [
        ([(2, 0, 8)], "layer 2, all 8 heads (blocks.2.attn)"),
        ([(0, 0, 8), (1, 0, 8), (2, 0, 8)], "layers 0–2, all 24 heads (blocks.*.attn)"),
        ([(0, 0, 8), (1, 0, 8)], "layers 0 and 1, all 16 heads (blocks.*.attn)"),
        ([(2, 3, 4)], "layer 2, head 3 (blocks.2.attn)"),
        ([(2, 3, 6), (4, 3, 6)], "layers 2 and 4, heads 3–5 (blocks.*.attn)"),
        ([(2, 3, 6), (4, 3, 5)], "layers 2 and 4, 5 of 16 heads (blocks.*.attn)"),
    ],
)
def test_places_in_words(heads: list[tuple[int, int, int]], words: str) -> None:
    places = [(LAYERS[index], head) for index, start, end in heads for head in range(start, end)]
    assert place_in_words(places) == words


def test_a_layer_s_only_head_is_called_so() -> None:
    assert place_in_words([(layer(2, heads=1), 0)]).startswith("layer 2, its only head")


@for_each(
    ("names", "modules"),
    [
        (["h.0.attn", "h.1.attn"], "h.*.attn"),
        (["h.0.attn.1", "h.1.attn.1"], "h.*.attn.1"),
        (["h.0.attn.0", "h.1.attn.1"], "h.*.attn.*"),
        (["h.0.self", "h.1.cross"], ""),  # there is no pattern that is not true of others, too
        (["h.0.attn", "call 1"], ""),
        (["0", "1"], ""),
    ],
)
def test_modules_have_a_star_where_their_names_differ_in_a_number(names: list[str], modules: str) -> None:
    words = place_in_words([(layer(index, name), 0) for index, name in enumerate(names)])
    assert words.endswith(f" ({modules})" if modules else "head 0")


@for_each(
    ("numbers", "words"),
    [
        ([3], "3"),
        ([2, 0], "0 and 2"),
        ([0, 1], "0 and 1"),
        ([5, 0, 4, 1, 3, 2, 2], "0–5"),
        ([0, 1, 2, 5, 7, 8, 9], "0–2, 5 and 7–9"),
    ],
)
def test_numbers_in_words(numbers: list[int], words: str) -> None:
    assert numbers_in_words(numbers) == words


def test_the_name_of_a_file_is_no_module() -> None:
    unnamed = replace(LAYERS[0], file="step-3.npz", name=plain("step-3.npz: layer 0"))
    assert place_in_words([(unnamed, 0)]) == "step-3.npz: layer 0, head 0"
    named = replace(LAYERS[0], file="step-3.npz", name=plain("step-3.npz: h.0.attn"))
    assert place_in_words([(named, 0)]) == "step-3.npz: layer 0, head 0 (h.0.attn)"


def test_many_numbers_are_cut_and_the_last_is_named() -> None:
    words = numbers_in_words(range(0, 100, 2))
    assert words.startswith("0, 2, 4,")
    assert words.endswith("98")
    assert len(words) < 30


def test_runs_of_layers_that_follow_each_other_are_apart() -> None:
    wrong = verdict("cause", 1 / 32, TWICE)
    places = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (4, 0), (5, 0)]
    [group] = of(judged(*((*each, wrong) for each in places)))
    runs = [(run.layer_numbers, run.head_numbers) for run in group.runs]
    assert runs == [("0 and 1", "0 and 1"), ("2", "0"), ("4 and 5", "0")]
    assert [place for run in group.runs for place in run.heads] == [*group.heads]


def test_layers_beside_a_fault_are_right_only_if_all_their_heads_are() -> None:
    heads = judged(
        *((index, head, verdict()) for index in (0, 1, 3) for head in (0, 1)),
        (2, 0, verdict("cause", 1 / 32, TWICE)),
        (2, 1, verdict()),
        (4, 0, verdict()),
        (4, 1, verdict("undecided")),
    )
    [fault] = [group for group in of(heads) if group.rule == "scale-twice"]
    assert "0, 1 and 3" in right_layers(heads, fault)
    assert "4" not in right_layers(heads, fault)
    assert right_layers(judged((2, 0, verdict("cause", 1 / 32, TWICE))), fault) == ""


@pytest.mark.parametrize("word", ["cause", "undecided", "healthy"])
def test_a_sentence_has_the_place_the_product_and_the_expectation(word: Word) -> None:
    used = ROOT if word == "healthy" else 1 / 32
    each = verdict(word, used, *([TWICE] if word == "cause" else []))
    if word == "undecided":
        each = replace(each, suspect=TWICE)
    [group] = of(judged((2, 0, each)))
    assert "layer 2, head 0 (blocks.2.attn)" in group.sentence
    assert "× 0.1768 = 1/√32" in group.sentence
    assert ("× 0.03125" in group.sentence) == (word != "healthy")


def test_candidates_of_what_is_intended_are_counted_and_the_most_frequent_is_one_of_them() -> None:
    found = [verdict(used=used) for used in (0.3, ROOT, 1 / 32, 0.3, 0.30001, None)]
    heads = judged(*((i, 0, each) for i, each in enumerate(found)))
    stated = [Product(ROOT), Product(ROOT), None, Product(0.3), Product(1.0), Product(0.3)]
    assert [(each.rule, each.multiplier, each.fits) for each in expectations(heads, stated)] == [
        (None, ROOT, 2), ("sqrt_d_k", pytest.approx(ROOT), 1), ("d_k", 1 / 32, 1), ("none", 1, 0), ("0.3", 0.3, 3),
    ]  # fmt: skip
    assert [each.rule for each in expectations(heads[1:2], stated[1:2])] == [None, "sqrt_d_k", "d_k", "none"]
    assert [each.rule for each in expectations(heads[-1:], [None])] == [None, "sqrt_d_k", "d_k", "none"]
    assert expectations([], []) == []
    near = judged(*((0, head, verdict(used=0.2, error=error)) for head, error in enumerate((1e-9, 0.1))))
    assert expectation("sqrt_d_k", near).fits == 1
    layered = judged(*((i, 0, verdict(used=ROOT / (i + 1))) for i in range(3)))
    assert expectation("inverse_layer", layered).fits == 3


@for_each(
    ("judgement", "doubtful", "ratio"),
    [
        (verdict(), False, 1), (verdict("cause", 1.0, TWICE), True, 1 / ROOT),
        (verdict("unexplained", None), True, None),
        (verdict("undecided", ROOT / 2), False, 0.5), (replace(verdict("undecided"), suspect=TWICE), True, 1),
        (replace(verdict("undecided"), conflict=True), True, 1), (verdict("no-evidence", None), False, None),
        (replace(verdict(), expected=Expected(ROOT, "", unknown="unknown")), False, None),
    ],
)  # fmt: skip
def test_heads_that_somebody_has_to_look_at(judgement: Verdict, doubtful: bool, ratio: float | None) -> None:
    assert judgement.is_doubtful is doubtful
    assert judgement.ratio == (ratio if ratio is None else pytest.approx(ratio))

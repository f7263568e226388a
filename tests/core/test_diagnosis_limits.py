"""What `check` finds: figures beyond their limits, what failed, and what differs from a baseline."""

import math
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.check import HeadFigures, LimitFinding, Limits, changes, findings
from attn_tui.core.diagnosis.comparing.results import Comparison, HeadComparison, Stage
from attn_tui.core.diagnosis.comparing.results import PairFigures as Means
from attn_tui.core.diagnosis.limits import LIMITS
from attn_tui.core.diagnosis.results import Expected, Product, Verdict
from attn_tui.core.tables.check import FileCheck, check_junit, check_statements
from cases import for_each

LAYER = open_capture(sample_path()).layers[0]
HEALTHY = Verdict("healthy", "as expected", Expected(0.125, "the file"))
UNEXPLAINED = replace(HEALTHY, word="unexplained", misfit=30.0, evidence="lse")
USUAL = HeadFigures(LAYER, 3, HEALTHY, 5.0, 1.0, 1.0, 0.7, 0.0, 0.1)
MEANS = Means(Product(0.125), 1.0, 2.0, 0.5, 0.3, 0.0, 0.1)
NONE: dict[str, Any] = {name: math.inf if name.startswith("max") else 0.0 for name in LIMITS}
SAME = HeadComparison(LAYER, 3, LAYER, 3, (Stage("qk", "same", ""),), MEANS, MEANS, None, None)


def rules(*heads: HeadFigures, disagreements: tuple[str, ...] = (), limits: Any = NONE) -> list[tuple[str, bool]]:
    return [(each.rule, each.mild) for each in findings(heads, Limits(**limits), disagreements)]


@for_each(
    ("name", "limit", "value", "rule"),
    [
        ("max_logit", "max_logit", 50.0, "max-logit"), ("capped", "max_capped", 0.5, "capped"),
        ("spread", "min_spread", 0.01, "min-spread"), ("token_spread", "min_token_spread", 0.01, "token-spread"),
        ("entropy_fraction", "min_entropy", 0.02, "entropy"), ("one_hot_rows", "max_one_hot", 0.9, "one-hot"),
        ("first_key_weight", "max_first_key", 0.9, "first-key"),
    ],
)  # fmt: skip
def test_a_figure_beyond_its_limit_is_found(name: str, limit: str, value: float, rule: str) -> None:
    figures: Any = replace(USUAL, **{name: value})
    least = limit.startswith("min")
    for bound, found in ((value, False), (value * (1.01 if least else 0.99), True)):
        assert [each for each, _ in rules(figures, limits=NONE | {limit: bound})] == [rule] * found
    assert rules(replace(figures, **{name: None}), limits=NONE | {limit: value}) == []


def test_the_file_has_a_least_median_entropy_that_is_mild_if_most_heads_are_healthy() -> None:
    low = replace(USUAL, entropy_fraction=0.2)
    wrong = replace(low, verdict=UNEXPLAINED)
    unread = replace(USUAL, entropy_fraction=None)
    limits = NONE | {"min_file_entropy": 0.25}
    assert rules(unread, unread, limits=limits) == []
    assert rules(low, USUAL, USUAL, unread, limits=limits) == []
    assert rules(low, low, low, limits=limits) == [("file-entropy", True)]
    assert rules(low, low, wrong, limits=limits) == [("unexplained", False), ("file-entropy", False)]
    assert rules(low, wrong, wrong, limits=limits)[-1] == ("file-entropy", False)


def test_layers_that_disagree_are_found_unless_a_scale_is_wrong() -> None:
    assert rules(USUAL, disagreements=("layers 0 and 1",)) == [("inconsistent", False)]


@for_each(
    ("pattern", "head", "file"),
    [
        ("layers.0.3:one-hot", True, False), ("layers.0.*:*", True, False), (":one-hot", True, True),
        ("layers.0.3:", True, False), ("*:one-hot", True, True), ("file:one-hot", False, True),
        ("one-hot", True, True),
        ("layers.1.3:one-hot", False, False), ("layers.0.3:entropy", False, False), ("entropy", False, False),
    ],
)  # fmt: skip
def test_a_pattern_names_a_place_and_a_rule(pattern: str, head: bool, file: bool) -> None:
    of_head = LimitFinding(LAYER, 3, "one-hot", "", None, None)
    of_file = replace(of_head, layer=None, head=None)
    assert (of_head.allowed([pattern]), of_file.allowed([pattern])) == (head, file)
    assert not of_head.allowed([])
    assert replace(of_head, mild=True).allowed([])


@for_each(
    ("edits", "found"),
    [
        ({}, None),
        ({"test": replace(MEANS, spread=3.9)}, None), ({"test": replace(MEANS, spread=4.0)}, "baseline-spread"),
        ({"test": replace(MEANS, spread=0.25)}, "baseline-spread"), ({"test": replace(MEANS, spread=0.26)}, None),
        ({"test": replace(MEANS, spread=9.0), "divergence": 0.0}, None),
        ({"test": None}, None), ({"reference": None}, None), ({"reference": replace(MEANS, spread=0.0)}, None),
        ({"stages": (Stage("multiplier", "differs", "x"), Stage("mask", "differs", "y"))}, "baseline-multiplier"),
    ],
)  # fmt: skip
def test_a_head_differs_from_its_baseline_in_its_first_stage_or_in_its_spread(
    edits: dict[str, Any], found: str | None
) -> None:
    compared = Comparison((replace(SAME, **edits),), (), ())
    assert [each.rule for each in changes(compared)] == ([] if found is None else [found])
    missing = replace(compared, missing=("only the reference has layer 1 (x)",))
    assert changes(missing)[-1].rule == "baseline-missing"


@for_each(
    ("edits", "change"),
    [
        ({}, 0.0), ({"divergence": 0.3}, 0.3), ({"test": replace(MEANS, entropy_fraction=0.3)}, 0.2),
        ({"test": None}, 0.0), ({"reference": None}, 0.0), ({"test": replace(MEANS, entropy_fraction=None)}, 0.0),
        ({"reference": replace(MEANS, entropy_fraction=None)}, 0.0),
    ],
)  # fmt: skip
def test_a_head_changed_by_its_divergence_or_its_entropy(edits: dict[str, Any], change: float) -> None:
    assert replace(SAME, **edits).change == pytest.approx(change)
    assert math.isfinite(replace(SAME, **edits).change)


def test_a_checked_file_tells_notes_once_a_layer_and_what_is_allowed_if_nobody_chose_its_limit() -> None:
    capture = open_capture(sample_path())
    heads = [replace(USUAL, head=head, verdict=replace(HEALTHY, note="not followed")) for head in range(LAYER.heads)]
    mild, chosen = (LimitFinding(None, None, "file-entropy", "low", 0.2, 0.25, mild) for mild in (True, False))
    for some, places in ((heads, [LAYER.place]), (heads[:2], [LAYER.place_of(0), LAYER.place_of(1)])):
        file = FileCheck(capture, some, [], [mild, chosen])
        assert file.notes == [(place, "not followed") for place in places]
        assert [each.label for each in check_statements(file)] == ["allowed", *["note"] * len(places)]
    of_head = LimitFinding(LAYER, 1, "max-logit", "large", 99.0, 50.0)
    for name in ("", "a.npz"):
        file = FileCheck(capture, heads, [], [], name)
        assert (file.place(mild), file.place(of_head)) == (name or "file", LAYER.place_of(1))


@for_each(
    "places", [[], [(0, "max-logit")], [(0, "max-logit"), (0, "entropy"), (2, "entropy")], [(None, "file-entropy")]]
)
def test_junit_has_a_case_for_each_head_and_one_for_the_file(places: list[tuple[int | None, str]]) -> None:
    heads = [replace(USUAL, head=head) for head in range(3)]
    found = [LimitFinding(None if head is None else LAYER, head, rule, "beyond", 1.0, 2.0) for head, rule in places]
    suites = ElementTree.fromstring(check_junit([FileCheck(open_capture(sample_path()), heads, found, [])] * 2))
    failed = len({head for head, _ in places})
    assert (suites.get("tests"), suites.get("failures")) == ("8", str(2 * failed))
    [suite, _] = suites
    assert (suite.get("tests"), suite.get("failures"), len(suite)) == ("4", str(failed), 4)
    assert sum(case.find("failure") is not None for case in suite) == failed

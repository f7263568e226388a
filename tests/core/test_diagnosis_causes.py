"""Every cause is named, from every kind of evidence that shows it."""

import numpy as np
import pytest
from attn_tui.core.diagnosis.subject import Kind
from attn_tui.core.diagnosis.verdict import diagnose
from faults import FAULTS, UNSEEN, injected
from injection import FORMATS, KINDS, Head, case_of, random_head, real_head, subject_of

HEADS = (real_head(3, 1), random_head(64, 96, True), random_head(48, 80, False, 2.0, seed=1))
SEEN = [(fault, kind) for fault in FAULTS for kind in KINDS if (fault, kind) not in UNSEEN]
# Each format with each kind of evidence and each head once; `test_a_fault_is_named` has one of them.
SQUARE = [
    (each, kind, HEADS[(i + j) % 3]) for i, each in enumerate(FORMATS) for j, kind in enumerate(KINDS) if i or j != 1
]
# Each fault with one kind of evidence, each kind in turn.
SHOWING = [[case for case in SEEN if case[0] == fault] for fault in FAULTS]
QUICK = [cases[number % len(cases)] for number, cases in enumerate(SHOWING)]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [case if case in QUICK else pytest.param(*case, marks=pytest.mark.slow) for case in SEEN],
)
def test_a_fault_is_named(fault: str, kind: Kind) -> None:
    verdict = diagnose(subject_of(injected(random_head(32, 48, True), "float32", fault), "float32", kind))
    assert FAULTS[fault][0] in (verdict.cause, *verdict.also)
    assert verdict.word == "cause"


@pytest.mark.slow
@pytest.mark.parametrize(("number_format", "kind", "head"), SQUARE, ids=lambda each: getattr(each, "name", each))
def test_few_faults_are_missed_in_any_format(number_format: str, kind: Kind, head: Head) -> None:
    faults = [fault for fault, seen in SEEN if seen == kind]
    missed: list[tuple[str, str, str | None]] = []
    for fault in faults:
        verdict = diagnose(subject_of(injected(head, number_format, fault), number_format, kind))
        if FAULTS[fault][0] not in (verdict.cause, *verdict.also):
            missed.append((fault, verdict.word, verdict.cause))
    assert len(missed) <= 0.05 * len(faults), missed


@pytest.mark.parametrize("number_format", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_healthy_heads_are_never_accused(number_format: str, kind: Kind) -> None:
    heads = [real_head(layer, head) for layer in range(6) for head in range(0, 12, 4)]
    heads += [
        random_head(d, n, c, s, d) for d, n, c, s in ((32, 40, True, 1), (80, 70, False, 3), (192, 60, True, 1))
    ]
    verdicts = [diagnose(subject_of(case_of(head, number_format), number_format, kind)) for head in heads]
    assert {verdict.word for verdict in verdicts} <= {"healthy", "undecided"}
    assert sum(verdict.word == "healthy" for verdict in verdicts) >= len(heads) - 2


@pytest.mark.parametrize(
    ("number_format", "kind", "tolerance"),
    [("float32", kind, 1e-5) for kind in KINDS]
    + [("float16", "weights", 4e-4), ("float16", "lse", 1e-5), ("float16", "o", 1e-3)]
    + [("bfloat16", "weights", 2e-3), ("bfloat16", "lse", 1e-5), ("bfloat16", "o", 7e-3)],
)
def test_the_multiplier_is_known_precisely(number_format: str, kind: Kind, tolerance: float) -> None:
    for head, factor in zip((*HEADS, HEADS[0]), (0.3, 1.0, 1.06, 2.0), strict=True):
        case = case_of(head, number_format)
        case.multiplier *= factor
        verdict = diagnose(subject_of(case, number_format, kind))
        assert verdict.multiplier == pytest.approx(case.multiplier, rel=tolerance)
        assert (verdict.word == "healthy") == (factor == 1.0)


def test_the_error_of_the_multiplier_is_honest() -> None:
    ratios: list[float] = []
    for seed in range(20):
        case = case_of(random_head(32, 48, True, seed=seed), "bfloat16")
        verdict = diagnose(subject_of(case, "bfloat16", "weights"))
        assert verdict.multiplier is not None
        assert verdict.multiplier_error is not None
        ratios.append((verdict.multiplier - case.multiplier) / verdict.multiplier_error)
    assert 0.3 < np.std(ratios) < 3

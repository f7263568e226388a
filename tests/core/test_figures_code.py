"""The code of claims, and of the tour's figures: it prints the numbers that its comments say."""

from dataclasses import replace

import pytest
from attn_tui.core.claims.about_training import TRAINING
from attn_tui.core.claims.catalogue import CLAIMS
from attn_tui.core.claims.claim import Claim, FromTrial, Outcome, without_figures
from attn_tui.core.claims.examine import examine
from attn_tui.core.export.code.claimed.figures import card_code, claim_code, claims_code
from attn_tui.core.export.code.claimed.trials import TRIALS
from attn_tui.core.export.code.program import Dialect, NoCodeError
from attn_tui.core.learning.card import question_card, step_card
from attn_tui.core.learning.compute import readings
from attn_tui.core.learning.questions.catalogue import QUESTIONS
from attn_tui.core.learning.tour.steps import STEPS
from printed_code import INSTALLED, compared, expected_in, printed_by

_TESTED = [claim for claim in CLAIMS if claim.figures]


def is_raced(text: str) -> bool:
    return "def raced" in text


def examined(claim: Claim) -> Outcome:
    return replace(examine(claim), claim=without_figures(claim))


@pytest.mark.slow
@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize("claim", _TESTED, ids=lambda claim: claim.id)
def test_the_code_of_a_claim_prints_its_figures(claim: Claim, dialect: Dialect) -> None:
    outcome = examined(claim)
    text = claim_code(outcome, dialect, "attn-tui claims")
    if not claim.scores:
        assert [*expected_in(text)] == [finding.label for finding in outcome.findings]
    if claim in TRAINING:
        assert_near(text)
    else:
        assert compared(text) == ""


def assert_near(text: str) -> None:
    """Run a program that trains; rounding may move a run, and so a figure by a few of its errors."""
    for line, (name, [(value, stderr)]) in zip(printed_by(text), expected_in(text).items(), strict=True):
        assert float(line.removeprefix(name)) == pytest.approx(value, abs=4 * stderr + 0.01)


def test_every_claim_that_is_tested_has_code_and_others_say_why() -> None:
    for claim in CLAIMS:
        if not claim.figures:
            with pytest.raises(NoCodeError, match="No code: The claim is about"):
                claim_code(Outcome(claim, (), "not testable here", claim.untestable), "python", "attn-tui claims")


def test_programs_of_several_claims_follow_each_other() -> None:
    chosen = [each for each in CLAIMS if each.id in ("softmax-of-20", "softmax-of-101", "bleu-table")]
    text = claims_code([examined(claim) for claim in chosen], "python", "attn-tui claims")
    assert text.count("# expected") == 2
    assert [line.split()[-1] for line in printed_by(text)] == ["0.9999", "4.54e-05", "0.7311"]


@pytest.mark.slow
@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize("number", range(1, len(STEPS) + 1))
def test_the_code_of_every_step_prints_its_figures(number: int, dialect: Dialect) -> None:
    step = STEPS[number - 1]
    card = step_card(number, step, readings(step.figures))
    text = card_code(card, [step.figures[name] for name in step.table], dialect, "attn-tui learn")
    if is_raced(text):
        assert_near(text)
    else:
        assert compared(text) == ""


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, len(QUESTIONS) + 1))
def test_the_code_of_every_question_prints_its_figures(number: int) -> None:
    question = QUESTIONS[number - 1]
    card = question_card(number, question, readings(question.figures))
    text = card_code(card, [*question.figures.values()], "python", "attn-tui learn")
    if is_raced(text):
        assert_near(text)
    else:
        assert compared(text) == ""


def test_every_function_of_a_measurement_is_used_by_a_claim_or_the_tour() -> None:
    sources = [each for claim in CLAIMS for each in without_figures(claim).sources]
    sources += [figure.source for item in (*STEPS, *QUESTIONS) for figure in item.figures.values()]
    assert {*TRIALS} <= {each.trial for each in sources if isinstance(each, FromTrial)}

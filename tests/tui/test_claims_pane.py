"""The Claims pane: the list with its verdicts, and the selected claim in full."""

import pickle
from collections.abc import Callable

import pytest
from attn_tui.core.claims import catalogue
from attn_tui.core.claims.catalogue import CLAIMS
from attn_tui.core.claims.claim import Claim, without_figures
from attn_tui.core.claims.examine import examine
from attn_tui.core.questions.claims import CheckClaims
from attn_tui.tui.panes.claims.pane import ClaimsPane
from attn_tui.tui.panes.softmax.pane import SoftmaxPane
from attn_tui.tui.panes.train.pane import TrainPane
from stage import SMALL, Stage, played


async def complete(stage: Stage) -> ClaimsPane:
    """Open the pane and wait until every claim has its verdict."""
    pane = await stage.opened(ClaimsPane)
    await stage.until(lambda: len(pane.claims.outcomes) == len(CLAIMS))
    await stage.still()
    return pane


def row(stage: Stage, pane: ClaimsPane, claim: str) -> str:
    title = next(each.title for each in CLAIMS if each.id == claim)
    return next(line for line in stage.part(pane.claims) if line[1:].startswith(f"{title} "))


@played(hold=True)
async def test_claims_are_listed_at_once_and_get_their_verdicts_one_by_one(stage: Stage) -> None:
    pane, engine = await stage.opened(ClaimsPane), stage.engine
    await stage.until(lambda: engine.at_rest)
    first, second, *_ = CLAIMS
    for reply, tested in zip(engine.held_for(CheckClaims), range(3), strict=False):
        engine.deliver(reply)
        await stage.still()
        assert f"{tested} of {len(CLAIMS)}" in stage.text
        assert ("…" in row(stage, pane, first.id)) == (tested < 1)
        assert ("…" in row(stage, pane, second.id)) == (tested < 2)
        assert ("Nothing was tested." in stage.words(pane.text)) == (tested >= 1)
        assert first.statement[:30] in stage.words(pane.text)


@played()
async def test_the_cursor_moves_over_the_claims_and_shows_each_in_full(stage: Stage) -> None:
    pane = await complete(stage)
    steps = {"down": 1, "j": 2, "up": 1, "k": 0}
    for key, at in [*steps.items(), ("up", 0), ("end", -1), ("down", -1), ("home", 0)]:
        await stage.press(key)
        assert pane.claims.chosen is CLAIMS[at]
        assert row(stage, pane, CLAIMS[at].id).startswith("▌")
        assert CLAIMS[at].statement[:30] in stage.words(pane.text)


@played(size=(200, 60), claims=True)
async def test_a_large_screen_has_the_figures_of_all_claims_in_place(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "CLAIMS", CLAIMS[:5])
    pane = await stage.opened(ClaimsPane)
    await stage.until(lambda: len(pane.claims.outcomes) == 5)
    places = set[int]()
    for _ in range(4):
        places |= {at for at, line in enumerate(stage.lines) if "all figures" in line}
        await stage.press("down")
    assert len(places) == 1


@played(size=(80, 14))
async def test_another_claim_is_shown_from_its_top(stage: Stage) -> None:
    pane = await complete(stage)
    await stage.press("pagedown")
    assert pane.text.top > 0
    await stage.press("down")
    assert pane.text.top == 0


@played()
async def test_enter_opens_the_pane_that_shows_the_claim_if_there_is_one(stage: Stage) -> None:
    kinds: dict[str, Callable[[Claim], object]] = {
        "Claims": lambda claim: not (claim.parameters or claim.scores or claim.race),
        "Lab": lambda claim: claim.parameters and not (claim.scores or claim.race),
        "Train": lambda claim: claim.race,
        "Softmax": lambda claim: claim.scores,
    }
    for pane, of_this_kind in kinds.items():
        at, claim = next((at, claim) for at, claim in enumerate(CLAIMS) if of_this_kind(claim))
        await complete(stage)
        await stage.press("home", *["down"] * at, "enter")
        assert stage.app.active == pane
        assert stage.asked == (claim.parameters or SMALL) or pane != "Lab"
        assert "No pane shows this claim" in stage.text or pane != "Claims"
    softmax, scores = stage.pane(SoftmaxPane), next(claim.scores for claim in CLAIMS if claim.scores)
    await stage.until(lambda: softmax.worked and softmax.worked.example.scores == scores)
    train = stage.app.panes["Train"]
    assert isinstance(train, TrainPane)
    assert train.race == next(claim.race for claim in CLAIMS if claim.race)


@played()
async def test_claims_are_tested_once_and_again_on_r(stage: Stage) -> None:
    def asked() -> int:
        return sum(each.kind is CheckClaims and each.request is not None for each in engine.asked)

    pane, engine = await complete(stage), stage.engine
    stage.app.action_pane("Lab")
    await complete(stage)
    assert asked() == 1
    engine.hold = True
    await stage.press("r")
    await stage.until(lambda: engine.at_rest)
    engine.deliver(engine.held_for(CheckClaims)[0])
    await stage.still()
    assert "Nothing was tested." not in stage.text
    engine.let_go()
    await complete(stage)
    assert asked() == 2
    assert "Nothing was tested." in stage.words(pane.text)


@played(hold=True, claims=True)
async def test_a_claim_has_the_verdict_that_core_computes(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = next(claim for claim in CLAIMS if claim.id == "softmax-unscaled-example")
    outcome = examine(claim)
    monkeypatch.setattr(catalogue, "CLAIMS", [claim])
    pane, engine = await stage.opened(ClaimsPane), stage.engine
    await stage.until(lambda: engine.at_rest)
    for reply in engine.held_for(CheckClaims):
        engine.deliver(pickle.loads(pickle.dumps(reply)))  # as from another process
    await stage.still()
    found = pane.claims.outcomes[claim.id]
    assert found.claim == without_figures(claim)
    assert (found.verdict, found.findings) == (outcome.verdict, outcome.findings)
    assert outcome.reason in stage.words(pane.text)

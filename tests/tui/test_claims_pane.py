"""Claims in the Learn pane: the list with its verdicts, and the selected claim in full."""

import pickle
from collections.abc import Callable

import pytest
from attn_tui.core.learning.claim import Claim
from attn_tui.core.learning.claims import catalogue
from attn_tui.core.learning.claims.catalogue import CLAIMS
from attn_tui.core.learning.measure import examine
from attn_tui.core.questions.learn import ItemFigures, ReadItems
from attn_tui.tui.panes.learn.pane import LearnPane
from attn_tui.tui.panes.softmax.pane import SoftmaxPane
from attn_tui.tui.panes.train.pane import TrainPane
from stage import SMALL, Stage, played


async def first(stage: Stage) -> LearnPane:
    """Open the pane and show its first claim."""
    pane = await stage.opened(LearnPane)
    pane.show_item(CLAIMS[0].id)
    await stage.still()
    return pane


async def complete(stage: Stage) -> LearnPane:
    """Show the first claim, and wait until every claim has its verdict."""
    pane = await first(stage)
    await stage.until(lambda: len(pane.outcomes) == len(CLAIMS))
    await stage.still()
    return pane


def row(stage: Stage, pane: LearnPane, claim: Claim) -> str:
    number = CLAIMS.index(claim) + 1
    return next(line for line in stage.part(pane.list) if line[1:].startswith(f"{number:2} {claim.title[:8]}"))


@played(hold=True, claims=True)
async def test_claims_are_listed_at_once_and_get_their_verdicts_as_they_come(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attn_tui.core.questions.request.BATCH_INTERVAL", -1.0)
    claims = [claim for claim in CLAIMS if claim.id in ("softmax-of-20", "softmax-of-101", "bleu-table")]
    monkeypatch.setattr(catalogue, "CLAIMS", claims)
    pane, engine = await stage.opened(LearnPane), stage.engine
    pane.show_item(claims[0].id)
    await stage.until(lambda: engine.at_rest)
    tested = 0
    for reply in engine.held_for(ReadItems):
        engine.deliver(reply)
        await stage.still()
        assert f"{len(pane.outcomes)} of {len(CLAIMS)}" in stage.text
        assert len(pane.outcomes) in (tested, tested + 1)
        tested = len(pane.outcomes)
        assert ("…" in row(stage, pane, claims[0])) == (tested < 1)
        assert ("…" in row(stage, pane, claims[1])) == (tested < 2)
        assert ("Verdict:" in stage.words(pane.text)) == (tested >= 1)
        assert claims[0].statement[:30] in stage.words(pane.text)
    assert tested == 3


@played()
async def test_the_cursor_moves_over_the_claims_and_shows_each_in_full(stage: Stage) -> None:
    pane = await complete(stage)
    steps = {"down": 1, "j": 2, "up": 1, "k": 0}
    for key, at in [*steps.items(), ("end", -1), ("up", -2)]:
        await stage.press(key)
        assert pane.item.content is CLAIMS[at]
        assert row(stage, pane, CLAIMS[at]).startswith("▌")
        assert CLAIMS[at].statement[:30] in stage.words(pane.text)


@played(size=(200, 60), claims=True)
async def test_a_large_screen_has_the_figures_of_all_claims_in_place(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "CLAIMS", CLAIMS[:5])
    pane = await first(stage)
    await stage.until(lambda: len(pane.outcomes) == 5)
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
async def test_e_opens_the_pane_that_shows_the_claim_if_there_is_one(stage: Stage) -> None:
    kinds: dict[str, Callable[[Claim], object]] = {
        "Learn": lambda claim: not (claim.parameters or claim.scores or claim.race),
        "Lab": lambda claim: claim.parameters and not (claim.scores or claim.race),
        "Train": lambda claim: claim.race,
        "Softmax": lambda claim: claim.scores,
    }
    for pane, of_this_kind in kinds.items():
        claim = next(claim for claim in CLAIMS if of_this_kind(claim))
        (await complete(stage)).show_item(claim.id)
        await stage.press("E")
        assert stage.app.active == pane
        assert stage.asked == (claim.parameters or SMALL) or pane != "Lab"
        assert "No tab shows this claim" in stage.text or pane != "Learn"
    softmax, scores = stage.pane(SoftmaxPane), next(claim.scores for claim in CLAIMS if claim.scores)
    await stage.until(lambda: softmax.worked and softmax.worked.example.scores == scores)
    train = stage.app.panes["Train"]
    assert isinstance(train, TrainPane)
    assert train.race == next(claim.race for claim in CLAIMS if claim.race)


@played()
async def test_claims_are_tested_once_and_again_on_r(stage: Stage) -> None:
    def asked() -> int:
        requests = [each.request for each in engine.asked if isinstance(each.request, ReadItems)]
        return sum(request.first.kind == "claim" for request in requests)

    pane, engine = await complete(stage), stage.engine
    stage.app.action_pane("Lab")
    await complete(stage)
    assert asked() == 1
    engine.hold = True
    await stage.press("r")
    await stage.until(lambda: engine.at_rest)
    assert "Verdict:" not in stage.text
    engine.let_go()
    await complete(stage)
    assert asked() == 2
    assert "Verdict:" in stage.words(pane.text)


@played(hold=True)
async def test_a_claim_that_is_sought_is_tested_before_the_others(stage: Stage) -> None:
    pane = await first(stage)
    pane.show_item(CLAIMS[-1].id)
    await stage.still()
    requests = [each.request for each in stage.engine.asked if isinstance(each.request, ReadItems)]
    assert [request.items[:2] for request in requests[-2:]] == [
        (CLAIMS[0].id, CLAIMS[1].id), (CLAIMS[-1].id, CLAIMS[0].id)
    ]  # fmt: skip
    assert {*requests[-1].items} == {claim.id for claim in CLAIMS}


@played(claims=True)
async def test_claims_go_on_being_tested_while_another_item_is_read(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "CLAIMS", CLAIMS[-3:])
    pane = await stage.opened(LearnPane)
    pane.show_item(CLAIMS[-1].id)
    await stage.press("home")
    await stage.until(lambda: len(pane.outcomes) == 3, "all claims")
    assert pane.item.number == 1
    assert pane.is_current


@played(hold=True, claims=True)
async def test_a_claim_has_the_verdict_that_core_computes(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = next(claim for claim in CLAIMS if claim.id == "softmax-unscaled-example")
    outcome = examine(claim)
    monkeypatch.setattr(catalogue, "CLAIMS", [claim])
    pane, engine = await stage.opened(LearnPane), stage.engine
    pane.show_item(claim.id)
    await stage.until(lambda: engine.at_rest)
    for reply in engine.held_for(ReadItems):
        engine.deliver(pickle.loads(pickle.dumps(reply)))  # as from another process
    await stage.still()
    assert ItemFigures(claim.id, pane.found[claim.id]).outcome == pane.outcomes[claim.id] == outcome
    assert outcome.reason in stage.words(pane.text)

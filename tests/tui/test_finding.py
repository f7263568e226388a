"""Finding rules and claims by words, and stepping to those of note."""

import math

import pytest
from attn_tui.core.learning.claim import Bounds
from attn_tui.core.learning.claims.catalogue import CLAIMS
from attn_tui.core.learning.items import AT, ITEMS
from attn_tui.core.learning.sources import Reading
from attn_tui.core.parameters import Parameters
from attn_tui.core.questions.learn import ItemFigures, ReadItems
from attn_tui.core.questions.request import Work
from attn_tui.core.theory.prediction import status_given
from attn_tui.tui.panes.learn.pane import LearnPane
from attn_tui.tui.panes.pane import next_where
from attn_tui.tui.panes.rules.pane import RulesPane
from attn_tui.tui.widgets.picker import ChoiceScreen
from stage import Stage, played

pytestmark = pytest.mark.usefixtures("short_rule_grids")

FALSE = (2, 9)  # claims that do not hold in the tests below


@pytest.fixture(autouse=True)
def verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test claims at once: two are false, those that can be tested are true otherwise."""

    def found(item: str) -> dict[str, Reading]:
        wrong = item in [CLAIMS[at].id for at in FALSE]
        figures = CLAIMS[AT[item] - AT[CLAIMS[0].id]].figures
        return {each.label: Reading(None, 1e99 if wrong else within(each.claimed)) for each in figures}

    def work(request: ReadItems, _: object) -> Work:
        yield [ItemFigures(item, found(item)) for item in request.items if ITEMS[AT[item]].kind == "claim"]

    monkeypatch.setattr(ReadItems, "work", work)


def within(claimed: Bounds) -> float:
    return claimed.low if math.isfinite(claimed.low) else claimed.high if math.isfinite(claimed.high) else 0.0


async def claims(stage: Stage) -> LearnPane:
    """Open the claims, and wait for their verdicts."""
    pane = await stage.opened(LearnPane)
    pane.show_item(CLAIMS[0].id)
    await stage.at_rest()
    return pane


def test_the_next_wanted_item_is_found_around_the_end_of_a_list() -> None:
    wanted = [False, True, False, True]
    assert [next_where(wanted, at, 1) for at in range(4)] == [1, 3, 3, 1]
    assert [next_where(wanted, at, -1) for at in range(4)] == [3, 3, 1, 1]
    assert next_where([False, True], 1, 1) == 1
    assert next_where([False, False], 0, 1) is None
    assert next_where([], 0, 1) is None


@played()
async def test_n_steps_to_claims_that_are_not_simply_true(stage: Stage) -> None:
    pane = await claims(stage)
    seen: list[int] = []
    for key in ("n", "n", "n", "N"):
        await stage.press(key)
        seen.append(pane.item.number - 1)
    assert seen == [2, 9, 2, 9]


@pytest.mark.parametrize("size", [(40, 12), (120, 40)], ids=str)
@played()
async def test_slash_finds_a_claim_by_its_words(stage: Stage, size: tuple[int, int]) -> None:
    pane = await claims(stage)
    claim = CLAIMS[9]
    await stage.press("/")
    assert isinstance(stage.app.screen, ChoiceScreen)
    await stage.press(*" ".join(claim.statement.split()[:5]))
    assert "false" in stage.text
    await stage.press("enter")
    assert pane.item.content is claim


@played(Parameters(n_keys=16, n_queries=8, batch=2))
async def test_n_steps_to_rules_that_are_not_healthy_and_slash_finds_one(stage: Stage) -> None:
    pane = await stage.complete(RulesPane)
    names = [*pane.table.shown.names]
    status = {name: status_given(pane.saturation[name], pane.rows[name].measured) for name in names}
    wanted = [name for name in names if status[name] != "healthy"]
    assert 1 < len(wanted) < len(names)
    seen: set[str] = set()
    for _ in wanted:
        await stage.press("n")
        seen.add(pane.cursor)
    assert seen == {*wanted}
    await stage.press("N", "n")
    assert status[pane.cursor] != "healthy"
    await stage.press("/", *"swin", "enter")
    assert pane.cursor in ("cosine_10", "cosine_learned")
    before = stage.asked
    await stage.press("M", "/", *"deberta", "enter")
    assert pane.view == "rules"
    assert pane.cursor == "sqrt_three_d_k"
    assert stage.asked == before, "the cursor moves, and nothing is set"

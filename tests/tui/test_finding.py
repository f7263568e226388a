"""Finding rules and claims by words, and stepping to those of note."""

import pytest
from attn_tui.core.claims.catalogue import CLAIMS
from attn_tui.core.claims.claim import Outcome
from attn_tui.core.parameters import Parameters
from attn_tui.core.questions.claims import CheckClaims, ClaimList
from attn_tui.core.questions.request import Work
from attn_tui.core.theory.prediction import status_given
from attn_tui.tui.panes.claims.pane import ClaimsPane
from attn_tui.tui.panes.pane import next_where
from attn_tui.tui.panes.rules.pane import RulesPane
from attn_tui.tui.widgets.picker import ChoiceScreen
from stage import Stage, played

pytestmark = pytest.mark.usefixtures("short_rule_grids")

FALSE = (2, 9)  # claims that do not hold in the tests below


@pytest.fixture(autouse=True)
def verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer CheckClaims at once: two claims are false, one cannot be tested, the others are true."""

    def work(*_: object) -> Work:
        yield ClaimList(CLAIMS)
        for at, claim in enumerate(CLAIMS):
            verdict = "does not hold" if at in FALSE else "not testable here" if at == 5 else "holds"
            yield Outcome(claim, (), verdict, "Set by the test.")

    monkeypatch.setattr(CheckClaims, "work", work)


def test_the_next_wanted_item_is_found_around_the_end_of_a_list() -> None:
    wanted = [False, True, False, True]
    assert [next_where(wanted, at, 1) for at in range(4)] == [1, 3, 3, 1]
    assert [next_where(wanted, at, -1) for at in range(4)] == [3, 3, 1, 1]
    assert next_where([False, True], 1, 1) == 1
    assert next_where([False, False], 0, 1) is None
    assert next_where([], 0, 1) is None


@played()
async def test_n_steps_to_claims_that_are_not_simply_true(stage: Stage) -> None:
    pane = await stage.opened(ClaimsPane)
    await stage.at_rest()
    seen: list[int] = []
    for key in ("n", "n", "n", "N"):
        await stage.press(key)
        seen.append(pane.claims.cursor)
    assert seen == [2, 9, 2, 9]


@pytest.mark.parametrize("size", [(40, 12), (120, 40)], ids=str)
@played()
async def test_slash_finds_a_claim_by_its_words(stage: Stage, size: tuple[int, int]) -> None:
    pane = await stage.opened(ClaimsPane)
    await stage.at_rest()
    claim = CLAIMS[9]
    await stage.press("/")
    assert isinstance(stage.app.screen, ChoiceScreen)
    await stage.press(*" ".join(claim.statement.split()[:5]))
    assert "false" in stage.text
    await stage.press("enter")
    assert pane.claims.chosen is claim


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

"""The Rules pane as people use it: rules side by side, sorted, explained, taken to the Lab."""

from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.attention.scales import SCALE_RULES
from attn_tui.core.lab import rules
from attn_tui.core.lab.rule_rows import RULES, SORTABLE, Order
from attn_tui.core.parameters import Parameters
from attn_tui.tui.messages import Failed, RuleCurvesReady
from attn_tui.tui.panes.rules import RulesPane
from attn_tui.tui.views.glyphs import ASCII, UNICODE
from attn_tui.tui.views.rules import COLUMNS, words_of
from attn_tui.tui.widgets.help_screen import HelpScreen
from test_app import SIZES, SMALL, Stage, play
from test_take_away import Taken, agree, refusal, succeeds, take


@pytest.fixture(autouse=True)
def short_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few d_k, so that tests are quick."""
    monkeypatch.setattr("attn_tui.core.lab.rule_curves.LAST", 16)
    monkeypatch.setattr("attn_tui.core.lab.rule_curves.DRAWS", 2)
    monkeypatch.setattr("attn_tui.core.lab.mechanisms.D_KS", (16, 64))


async def complete(stage: Stage) -> RulesPane:
    """The pane, with everything on it that was asked for."""
    pane = await stage.opened(RulesPane)
    await known(stage, pane)
    return pane


async def known(stage: Stage, pane: RulesPane) -> None:
    await stage.until(lambda: succeeds(lambda: pane.numbers("csv")), "the numbers")
    await stage.still()


def measured(p: Parameters) -> dict[str, Any]:
    return {row.rule: row for step in rules.stream(p) for row in step.rows}


def values(pane: RulesPane, column: str) -> dict[str, float | None]:
    return {name: row.value(column) for name, row in pane.rows.items()}


def test_every_rule_is_a_row_of_what_the_lab_measures() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        expected = measured(SMALL)
        for column in SORTABLE:
            assert values(pane, column) == pytest.approx({n: row.value(column) for n, row in expected.items()})
        lines = stage.part(pane.table)
        shown = [line for line in lines if any(rule.label in line[:17] for rule in SCALE_RULES.values())]
        assert len(shown) == len(RULES)
        (lab,) = (line for line in lines if line.startswith("▌◆"))
        assert lab[2:].startswith("1/√d_k ")
        assert "Vaswani" in stage.words(pane.words)
        assert f"{100 * (pane.rows['sqrt_d_k'].value('entropy_fraction') or 0):.2f}" in lab

    play(script)


def test_rows_are_sorted_by_keys() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        for column in SORTABLE[1:]:
            await stage.press("s")
            assert pane.order == Order(column)
            assert list(pane.table.shown.names) == [row.rule for row in Order(column).of(pane.rows.values())]
            assert f"by {words_of(column)}, largest first" in stage.lines[1]
            assert "▼" in stage.lines[2]
            await stage.press("r")
            expected = Order(column, reverse=True)
            assert list(pane.table.shown.names) == [row.rule for row in expected.of(pane.rows.values())]
            assert "▲" in stage.lines[2]
            assert pane.cursor == "sqrt_d_k"
        await stage.press("s")
        assert list(pane.table.shown.names) == [*RULES]
        await stage.press("S")
        assert pane.order == Order(SORTABLE[-1])

    play(script, replace(SMALL, d_k=1))


def test_the_cursor_walks_over_the_rows_and_explains_each() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        for keys, name in (
            (["home"], RULES[0]),
            (["down", "j"], RULES[2]),
            (["k", "up", "up"], RULES[0]),
            (["pagedown"], RULES[10]),
            (["end", "down"], RULES[-1]),
            (["pageup"], RULES[-11]),
        ):
            await stage.press(*keys)
            assert pane.cursor == name
            assert SCALE_RULES[name].formula in stage.words(pane.words)
            assert any(line.startswith("▌") and SCALE_RULES[name].label in line for line in stage.part(pane.table))

    play(script, size=(80, 24))


def test_enter_takes_the_rule_to_the_lab() -> None:
    async def script(stage: Stage) -> None:
        await complete(stage)
        await stage.press("down", "right", "enter")
        assert stage.app.active == "Lab"
        assert stage.asked == replace(SMALL, d_k=65, scale=RULES[2])
        await stage.settled()
        pane = await complete(stage)
        assert any(line.startswith("▌◆1/d_k ") for line in stage.part(pane.table))

    play(script)


def test_what_the_lab_cannot_take_is_said() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        await stage.press("down", "down", "enter")
        assert pane.cursor == "log_d_k"
        assert stage.app.active == "Rules"
        assert "Not for the Lab: 1/ln d_k has no value at d_k = 1." in stage.words(pane.words)
        assert any("1/ln d_k        has no value at d_k = 1" in line for line in stage.part(pane.table))
        await stage.press("up")
        assert "Not for the Lab" not in stage.words(pane.words)

    play(script, replace(SMALL, d_k=1))


def test_keys_change_the_question_and_the_rows_and_the_lab_follow() -> None:
    steps: list[tuple[str, dict[str, Any]]] = [
        ("right", {"d_k": 65}), ("l", {"d_k": 66}), ("h", {"d_k": 65}), ("left", {"d_k": 64}), ("d", {"d_k": 128}),
        ("D", {"d_k": 64}), ("w", {"d_k": 80}), ("W", {"d_k": 64}), ("]", {"n_keys": 32}), ("[", {"n_keys": 16}),
        ("f", {"precision": "float16"}), ("c", {"components": "uniform"}), ("x", {"mask": "causal"}),
        ("n", {"seed": 1}),
    ]  # fmt: skip

    async def script(stage: Stage) -> None:
        pane, asked = await complete(stage), SMALL
        for number, (key, changes) in enumerate(steps):
            asked = replace(asked, **changes)
            await stage.press(key)
            assert stage.asked == pane.parameters == asked
            if number in (1, 13):
                await known(stage, pane)
                expected = {name: row.value("max_weight") for name, row in measured(asked).items()}
                assert values(pane, "max_weight") == pytest.approx(expected, rel=1e-5)
                assert not pane.table.shown.stale
                assert not pane.table.shown.stale_curves

    play(script)


def test_a_burst_of_keys_ends_with_the_rows_of_the_last_one() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        stage.send(*["right"] * 40)
        await stage.until(lambda: stage.asked.d_k == 104)
        await known(stage, pane)
        assert values(pane, "logit_std")["none"] == measured(replace(SMALL, d_k=104))["none"].value("logit_std")

    play(script)


def test_rows_keep_their_places_and_stand_back_until_all_are_new() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        await stage.press("s", "s")
        through, held = pane.deliver, []
        pane.deliver = held.append  # type: ignore[method-assign]
        before = list(pane.table.shown.names)
        await stage.press("d", "d", "d")
        await stage.until(lambda: [m for m in held if getattr(m, "fraction", 0) == 1 and m.question.d_k == 512])
        await stage.until(lambda: set(pane.table.shown.stale) == {*RULES}, "rows that stand back")
        assert "d_k 512" in stage.lines[0]
        assert "0 of 29 scale rules" in refusal(lambda: pane.numbers("json"))
        last = [message for message in held if getattr(message, "question", None) == pane._asked["rules"]]
        first = last[0]
        first.fraction, rows = 0.5, first.rows
        first.rows = [row for row in rows if row.rule != "custom"]
        through(first)
        await stage.until(lambda: len(pane.table.shown.stale) < len(RULES), "a first part")
        assert "custom" in pane.table.shown.stale
        assert pane.table.shown.names == before
        for message in last[1:]:
            through(message)
        whole = type(first)("rules", first.question, rows, 1.0)
        through(whole)
        await stage.until(lambda: not pane.table.shown.stale, "all rows")
        assert pane.table.shown.names == [row.rule for row in pane.order.of(measured(stage.asked).values())]
        assert pane.table.shown.names != before

    play(script, replace(SMALL, d_k=64, batch=4))


def test_out_of_sight_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = rules.stream

    def stream(p: Parameters, *others: Any) -> Any:
        asked.append(p.d_k)
        return real(p, *others)

    monkeypatch.setattr(rules, "stream", stream)

    async def script(stage: Stage) -> None:
        await complete(stage)
        stage.app.action_pane("Lab")
        await stage.press("right", "right")
        await stage.settled()
        assert asked == [64]
        await stage.press("s")  # the rule makes no difference to the rows
        await complete(stage)
        assert asked == [64, 66]
        stage.app.action_pane("Lab")
        await complete(stage)
        assert asked == [64, 66]

    play(script)


def test_what_fails_is_said_until_something_else_is_asked_for() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        assert pane.curves is not None
        pane.deliver(Failed("rules", "not enough memory"))
        await stage.until(lambda: "not enough memory." in stage.text)
        pane.deliver(RuleCurvesReady("curves", replace(SMALL, d_k=Parameters.d_k), pane.curves))
        await stage.still()
        assert "not enough memory." in stage.text
        await stage.press("right")
        assert "not enough memory." not in stage.text

    play(script)


@pytest.mark.parametrize("begun", [True, False])
def test_what_fails_of_mechanisms_is_said(begun: bool) -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        if begun:
            await stage.press("m")
            await known(stage, pane)
        else:
            pane.compute = lambda *_: None  # type: ignore[method-assign]
            await stage.press("m")
            assert "Measuring mechanisms" in stage.text
        pane.deliver(Failed("mechanisms", "not enough memory"))
        await stage.until(lambda: "not enough memory." in stage.text)
        assert "Measuring" not in stage.text
        assert ("bound of |score|" in stage.text) == begun

    play(script)


def test_mechanisms_stand_in_place_of_rules_and_their_bounds_are_told() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        await stage.press("m")
        await stage.until(lambda: "lies within ±‖v‖₁" in stage.text)
        assert pane.file_name == "mechanisms"
        assert not pane.table.display
        assert "bound of |score|" in stage.text
        await stage.press("down", "enter")
        assert stage.app.active == "Rules"
        await stage.press("m")
        await stage.still()
        assert pane.table.display
        assert pane.file_name == "rules-d64"

    play(script)


def test_mechanisms_stand_back_while_others_are_measured() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        await stage.press("m")
        await known(stage, pane)
        before = stage.part(pane.mechanisms)
        await stage.press("d")  # d_k makes no difference
        assert succeeds(lambda: pane.numbers("json"))
        through, held = pane.deliver, []
        pane.deliver = held.append  # type: ignore[method-assign]
        await stage.press("]")
        await stage.until(lambda: pane.mechanisms.dimmed)
        assert stage.part(pane.mechanisms) == before
        assert "still being measured" in refusal(lambda: pane.numbers("json"))
        await stage.until(lambda: held and held[-1].fraction == 1)
        for message in held:
            through(message)
        await known(stage, pane)
        assert not pane.mechanisms.dimmed
        assert stage.part(pane.mechanisms) != before

    play(script)


def test_the_rule_can_be_read_in_full() -> None:
    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        while pane.cursor != "cosine_log2_n":
            await stage.press("down")
        await stage.still()
        assert "more lines: i" in stage.text
        await stage.press("i")
        await stage.still()
        assert "± " in stage.words(pane.words)
        assert "arXiv 2010.04245" in stage.words(pane.words)
        assert not pane.table.display
        await stage.press("i")
        await stage.still()
        assert pane.table.display

    play(script, size=(80, 20))


@pytest.mark.parametrize("size", SIZES[:2], ids=str)
def test_all_columns_and_rows_can_be_reached(size: tuple[int, int]) -> None:
    async def script(stage: Stage) -> None:
        await complete(stage)
        titles = {"multiplier", "std", "/ ln n %", "weight %", "∂L/∂q", "rows %", "flow %", "4 to 16"}
        assert len(titles) == len(COLUMNS)
        seen = {title for title in titles if title in stage.lines[3]}
        assert ("v: " in stage.lines[1]) == (seen != titles)
        for _ in COLUMNS:
            await stage.press("v")
            await stage.still()
            seen |= {title for title in titles if title in stage.lines[3]}
        assert seen == titles
        names: set[str] = set()
        for key in ("home", "pagedown", "pagedown", "end"):
            await stage.press(key)
            lines = stage.lines
            names |= {name for name in RULES if any(SCALE_RULES[name].label in line[:17] for line in lines)}
        assert names == {*RULES}
        assert ("more rows" in stage.text) == (size[1] < 40)

    play(script, size=size)


def test_it_does_without_other_characters() -> None:
    async def script(stage: Stage) -> None:
        await complete(stage)
        for key in ("s", "i", "i", "m"):
            await stage.press(key)
            await stage.still()
            assert stage.text.isascii()

    play(script, glyphs=ASCII)


def test_before_anything_is_measured_there_are_no_numbers() -> None:
    pane = RulesPane(SMALL, UNICODE)
    assert refusal(lambda: pane.numbers("json")) == "0 of 29 scale rules have been measured at d_k 64 so far."
    pane._answered = {"rules": SMALL}
    assert refusal(lambda: pane.numbers("json")) == "Entropy over d_k is still being measured."


def test_the_help_explains_the_column() -> None:
    async def script(stage: Stage) -> None:
        await complete(stage)
        await stage.press("s", "s", "?")
        assert isinstance(stage.app.screen, HelpScreen)
        await stage.still()
        assert "Softmax over n keys freezes" in stage.text

    play(script, size=(120, 60))


@pytest.mark.parametrize(
    ("keys", "parameters"),
    [
        ([], SMALL),
        (["right", "s", "s", "r", "f"], replace(SMALL, scale="custom", multiplier=0.3, layer=2)),
        (["m"], replace(SMALL, scale="mup", softcap=3.0)),
    ],
    ids=["at once", "sorted", "mechanisms"],
)
def test_the_command_prints_the_numbers_of_the_pane(
    keys: list[str], parameters: Parameters, capsys: pytest.CaptureFixture[str]
) -> None:
    taken: list[Taken] = []

    async def script(stage: Stage) -> None:
        pane = await complete(stage)
        await stage.press(*keys)
        await known(stage, pane)
        taken.append(take(pane))

    play(script, parameters)
    agree(taken, capsys)

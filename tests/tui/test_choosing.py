"""Choosing from a list: its keys, its mouse, and what is set, which is nothing before a row is chosen."""

from dataclasses import replace

import pytest
from attn_tui.core.attention.presets import PRESETS
from attn_tui.core.parameters import FIELD, FIELDS
from attn_tui.tui.panes.heads.pane import HeadsPane
from attn_tui.tui.panes.softmax.pane import SoftmaxPane
from attn_tui.tui.panes.sweep.pane import SweepPane
from attn_tui.tui.views.fields.choices import choices_of
from attn_tui.tui.views.fields.panel import applicable
from attn_tui.tui.widgets.picker import ChoiceScreen
from cases import present
from stage import SMALL, Stage, played
from textual import events
from textual.geometry import Offset

RULES = [row.value for row in choices_of(FIELD["scale"])]


async def opened(stage: Stage, *keys: str) -> ChoiceScreen:
    """Press keys that open a list."""
    await stage.press(*keys)
    screen = stage.screen(ChoiceScreen)
    return screen


async def to_field(stage: Stage, name: str) -> None:
    """Move the cursor of the Lab's panel to a field."""
    names = [field.name for field in applicable(stage.asked)]
    await stage.press("p", *(["tab"] * names.index(name) or ["tab", "shift+tab"]))
    assert stage.panel.cursor == name


def is_open(stage: Stage) -> bool:
    return isinstance(stage.app.screen, ChoiceScreen)


@pytest.mark.parametrize("name", [field.name for field in FIELDS if field.kind == "choice" and field.applies(SMALL)])
@played(idle=True)
async def test_a_list_of_the_lab_shows_what_its_rows_do_enter_keeps_and_escape_restores(
    stage: Stage, name: str
) -> None:
    await to_field(stage, name)
    before = stage.asked
    screen = await opened(stage, "enter")
    chosen = present(screen.text.choices.chosen)
    assert chosen.value == getattr(before, name), "the cursor is on the current value"
    last = choices_of(FIELD[name])[-1].value
    await stage.press("end")
    assert getattr(stage.asked, name) == last
    await stage.press("escape")
    assert stage.asked == before
    await opened(stage, "enter", "end")
    await stage.press("enter")
    assert not is_open(stage)
    assert getattr(stage.asked, name) == last
    assert stage.panel.cursor == name
    assert stage.panel.has_focus
    await stage.press("escape", "u")
    assert stage.asked == before, "one undo restores what stood before"


@played(idle=True)
async def test_enter_on_a_number_opens_no_list_and_the_palette_opens_that_of_a(stage: Stage) -> None:
    await to_field(stage, "n_keys")
    await stage.press("enter", "3", "2", "enter")
    assert not is_open(stage)
    assert stage.asked == replace(SMALL, n_keys=32)
    await stage.press("ctrl+p", *"set against")
    await stage.press("enter")
    assert is_open(stage)
    await stage.press(*FORMULA, "enter")
    assert stage.asked.against == FORMULA


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (120, 40)], ids=str)
@played(settled=True)
async def test_typing_filters_and_escape_cancels(stage: Stage, size: tuple[int, int]) -> None:
    screen = await opened(stage, "/", *"cosine cyndx")
    assert [row.value for row in screen.text.choices.rows] == ["cosine_log2_n"]
    assert any("cosine_log2_n" in line for line in stage.part(screen.text))
    await stage.press("escape")
    assert not is_open(stage)
    assert stage.asked == SMALL
    screen = await opened(stage, "/", *"xyzzyq", "enter")
    assert is_open(stage), "there is nothing to choose"
    await stage.press("ctrl+u", *"de", "backspace", *"eberta", "enter")
    assert stage.asked == replace(SMALL, scale="sqrt_three_d_k")


@played(settled=True, size=(80, 24))
async def test_keys_that_move_in_the_list(stage: Stage) -> None:
    screen = await opened(stage, "/")

    async def at(*keys: str) -> int:
        await stage.press(*keys)
        chosen = present(screen.text.choices.chosen)
        assert chosen.value in stage.words(screen.text)
        return RULES.index(chosen.value)

    assert await at("home") == 0
    assert await at("up") == 0
    assert await at("down", "down") == 2
    page = await at("pagedown") - 2
    assert page > 3
    assert await at("pageup") == 2
    assert await at("end") == len(RULES) - 1
    assert await at("pagedown") == len(RULES) - 1


@pytest.mark.parametrize("size", [(40, 12), (80, 24)], ids=str)
@played(settled=True)
async def test_the_wheel_moves_and_a_click_chooses(stage: Stage, size: tuple[int, int]) -> None:
    screen = await opened(stage, "/", "home")
    for kind in (events.MouseScrollDown, events.MouseScrollDown, events.MouseScrollUp):
        await stage.scroll(kind, (4, 5), screen.text)
    assert screen.text.choices.cursor == 1
    await stage.click((screen.text.region.x, stage.place("1/ln d_k", screen.text).y))
    assert is_open(stage), "a click on the border"
    assert screen.text.choices.cursor == 1
    await stage.click("1/ln d_k", screen.text)
    assert not is_open(stage)
    assert stage.asked == replace(SMALL, scale="log_d_k")
    screen = await opened(stage, "/")
    await stage.click("Esc cancel", screen.text)
    assert not is_open(stage)


@played(settled=True)
async def test_a_second_click_on_a_choice_opens_its_list(stage: Stage) -> None:
    await stage.press("p")
    for _ in range(2):
        assert not is_open(stage)
        await stage.click("mechanism", stage.panel)
    assert is_open(stage)


@pytest.mark.parametrize(("seconds", "apart"), [(-1.0, 0), (60.0, 1)])
@played(settled=True)
async def test_a_click_later_or_elsewhere_is_for_the_list_that_the_first_has_opened(
    stage: Stage, seconds: float, apart: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attn_tui.tui.terminal.typeahead._DOUBLE", seconds)
    await stage.press("tab")
    stage.panel.cursor = "against"
    at = stage.place("against", stage.panel) + Offset(12, 0)  # where a row of the list comes
    for place in (at, at + Offset(apart, 0)):
        for kind in (events.MouseDown, events.MouseUp):
            stage.mouse(kind, place)
            await stage.still()
    assert not is_open(stage)


@played(settled=True)
async def test_a_double_click_that_opens_or_closes_a_list_does_nothing_else(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attn_tui.tui.terminal.typeahead._DOUBLE", 60.0)  # seconds, however slow the machine is
    await stage.press("tab")
    stage.panel.cursor = "against"
    await press_twice(stage, stage.place("against", stage.panel) + Offset(12, 0))  # where a row of the list comes
    screen = stage.screen(ChoiceScreen)
    assert stage.asked == SMALL
    await press_twice(stage, stage.place("1/ln d_k", screen.text))
    assert not is_open(stage)
    assert stage.asked == replace(SMALL, against="log_d_k")


async def press_twice(stage: Stage, at: Offset) -> None:
    for kind in (events.MouseDown, events.MouseUp) * 3:  # a third click goes where the second does
        stage.mouse(kind, at)
        await stage.still()


@pytest.mark.slow
@played()
async def test_lists_of_statistics_models_and_rules_in_other_panes(stage: Stage) -> None:
    sweep = await stage.opened(SweepPane)
    for end, kept in (("escape", "entropy"), ("enter", "one_hot_rows")):
        await opened(stage, "/", *"one-hot")
        assert sweep.plot.statistic.name == "one_hot_rows", "a live list shows what its row does"
        await stage.press(end)
        assert not is_open(stage)
        assert sweep.plot.statistic.name == kept
    await stage.press("u")
    assert sweep.plot.statistic.name == "entropy"
    await stage.press("s", *"deberta", "enter", "a", *"1/d_k", "enter")
    assert (stage.asked.scale, stage.asked.against) == ("sqrt_three_d_k", "d_k")
    await stage.press("s", *"1/sqrt(3*d)", "enter")
    assert stage.asked == replace(SMALL, scale="1/sqrt(3*d)", against="d_k")
    await stage.press("u", "u", "u")
    assert stage.asked == SMALL
    heads = await stage.opened(HeadsPane)
    await stage.press("/", *"llama 2 70b", "enter")
    assert heads.preset is PRESETS["llama-2-70b"]
    assert heads.shape.as_layer() == PRESETS["llama-2-70b"].layer
    await stage.opened(SoftmaxPane)
    await stage.press("/", *"deberta", "enter")
    assert stage.asked.scale == "sqrt_three_d_k"


@played(size=(80, 24))
async def test_a_click_on_the_title_of_the_sweep_opens_the_list_of_statistics(stage: Stage) -> None:
    sweep = await stage.opened(SweepPane)
    await stage.click((2, -1), sweep.plot)
    assert is_open(stage)


FORMULA = "log(n)/sqrt(d)"


@played(settled=True, size=(80, 24))
async def test_a_faulty_formula_is_pointed_at_and_cannot_be_chosen(stage: Stage) -> None:
    screen = await opened(stage, "/", *"log(n)/sqr(d)")
    await stage.still()
    lines = stage.part(screen.text)
    at = next(number for number, line in enumerate(lines) if line.startswith("  log(n)/sqr(d)"))
    assert lines[at + 1].index("^") == lines[at].index("sqr")
    assert "unknown name sqr" in lines[at + 2]
    await stage.press("enter")
    assert is_open(stage)
    assert stage.asked == SMALL
    await stage.press("ctrl+u", *"zzz(")
    assert "Not a formula" in stage.text
    await stage.press("ctrl+u", *"zzz")
    assert "Nothing contains these words" in stage.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ("1/d_k", "d_k"),
        ("1/√d_k", "sqrt_d_k"),
        ("1/d", "1/d"),
        ("ssm", "ssmax"),
        ("0.1", "0.1"),
        ("2*sqrt(d)", "2*sqrt(d)"),
    ],
)
@played(settled=True)
async def test_names_of_rules_come_before_formulas_that_cannot_be_meant(stage: Stage, words: str, rule: str) -> None:
    await opened(stage, "/", *words)
    await stage.press("enter")
    assert stage.asked.scale == rule


@played(settled=True)
async def test_enter_on_a_opens_the_list_of_its_rules_and_keeps_what_else_it_sets(stage: Stage) -> None:
    stage.app.change(replace(SMALL, against="precision=bfloat16"))
    await to_field(stage, "against")
    screen = await opened(stage, "enter")
    chosen = present(screen.text.choices.chosen)
    assert chosen.value == SMALL.scale, "what A has now"
    await stage.press(*"unscaled", "enter")
    assert stage.asked.against == "unscaled,precision=bfloat16"
    await opened(stage, "enter", *FORMULA)
    await stage.press("enter")
    assert stage.asked.against == f"{FORMULA},precision=bfloat16"


@pytest.mark.slow
@played(settled=True)
async def test_a_list_sets_in_what_a_differs_from_b(stage: Stage) -> None:
    stage.lab.go_to_field("against")
    await stage.answered()
    chosen = ["unscaled,precision=bfloat16", "d_k,precision=bfloat16", "d_k,precision=bfloat16,components=laplace"]
    for words, against in zip(("bf16", "1/d_k", "laplace"), chosen, strict=True):
        await stage.press("enter", *words, "enter")
        assert stage.asked.against == against
    for words, against in (("normal", "d_k,precision=bfloat16"), ("float32", "d_k")):
        await stage.press("enter", *words, "enter")
        assert stage.asked.against == against, "B's own value is no difference"
    await stage.opened(SweepPane)
    await stage.press("a", *"laplace", "enter")
    assert stage.asked.against == "d_k,components=laplace"

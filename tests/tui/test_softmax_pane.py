"""The Softmax pane: scores are stepped and typed, and every result follows."""

from collections.abc import Sequence

import pytest
from attn_tui.core.attention.worked_example import MOST, WorkedExample, start_scores
from attn_tui.core.parameters import Parameters
from attn_tui.tui.panes.softmax.pane import SoftmaxPane
from cases import present
from digits import shows_number
from stage import Stage, played, refusal


async def opened(stage: Stage) -> SoftmaxPane:
    pane = await stage.opened(SoftmaxPane)
    await stage.at_rest()
    await stage.press("v", *["left"] * 4)
    return pane


async def worked_out(stage: Stage, pane: SoftmaxPane) -> Sequence[WorkedExample]:
    """Wait for both columns of the current example and return them."""
    await stage.until(lambda: pane.is_current)
    await stage.still()
    return present(pane.worked).sides


def top(stage: Stage) -> str:
    """Return the line with the formula or an error."""
    return stage.lines[1].strip()


@played()
async def test_it_starts_with_the_example_under_the_scale_width_and_format_of_the_lab(stage: Stage) -> None:
    pane = await opened(stage)
    assert pane.example.scores == start_scores(64)
    assert [side.multiplier for side in await worked_out(stage, pane)] == [1, 0.125]
    assert "scaled × 0.125 (1/√d_k, d_k 64)" in stage.text
    assert "5 scores" in stage.lines[0]
    await stage.press("L", "F", "F", "S")
    assert (stage.asked.d_k, stage.asked.precision, stage.asked.scale) == (128, "bfloat16", "d_k")
    assert (await worked_out(stage, pane))[1].multiplier == 1 / 128
    stage.app.action_pane("Lab")
    await stage.press("up")
    await stage.opened(SoftmaxPane)
    assert (await worked_out(stage, pane))[1].multiplier == 1 / 256
    await stage.press("H")
    assert stage.asked.d_k == 128


@played()
async def test_a_chooses_what_the_first_column_is(stage: Stage) -> None:
    pane = await opened(stage)
    await stage.press("A", "A")
    assert [side.multiplier for side in await worked_out(stage, pane)] == [1 / 64, 0.125]
    assert "scaled × 0.0156 (1/d_k" in stage.text
    assert "--against d_k" in pane.command()
    await stage.press("a", *"cosine_log2_n", "enter")  # a rule that normalises
    assert stage.asked.against == "cosine_log2_n"
    assert [side.multiplier for side in await worked_out(stage, pane)] == [1, 0.125]
    assert "using × 1 instead" in stage.words(pane.text)


@played()
async def test_keys_step_the_score_with_the_cursor(stage: Stage) -> None:
    pane = await opened(stage)
    stage.send("up", "k", "k", "j", "right", "l", "left", "shift+down", "shift+down", "shift+up", "down")
    await stage.answered()
    assert pane.example.scores == (-22, -11, 0, 10, 24)
    stage.send(*["right"] * 9, "shift+down", *["left"] * 9, "up")
    await stage.answered()
    assert pane.example.scores == (-21, -11, 0, 10, 23.9)
    _, scaled = await worked_out(stage, pane)
    assert [round(x, 9) for x in scaled.logits] == [-2.625, -1.375, 0, 1.25, 2.9875]


@played()
async def test_a_score_is_typed_in_place_and_every_keystroke_counts(stage: Stage) -> None:
    pane = await opened(stage)
    await stage.press("right", "1", "2")
    assert pane.example.scores[1] == 12
    assert "Enter accepts" in top(stage)
    await stage.press(".", "5", "home", "3", "enter")
    assert pane.example.scores[1] == 312.5
    await worked_out(stage, pane)
    assert "logit x" in top(stage)
    await stage.press("-", "1", "e", "-", "2")
    assert pane.example.scores[1] == -0.01
    await stage.press("up")
    assert pane.example.scores[1] == 0
    await stage.press("enter", "backspace", "7", "escape")
    assert pane.example.scores[1] == 0
    await stage.press("right", "right", "backspace")
    assert pane.example.scores == (-24, 0, 0, 1, 24)
    await stage.press("escape")
    assert pane.example.scores == (-24, 0, 0, 10, 24)
    for key, at in (("right", 4), ("left", 2), ("tab", 4), ("shift+tab", 2), ("enter", 3), ("home", 3)):
        await stage.press("7", key)
        assert (pane.example.scores[3], pane.editing.at) == (7, at)
        await stage.press(*["left"] * 4, "right", "right", "right")


@played()
async def test_text_that_is_not_a_score_is_explained_and_nothing_is_lost(stage: Stage) -> None:
    pane = await opened(stage)
    before = pane.worked
    await stage.press("-", "-")
    assert "from -1000 to 1000" in top(stage)
    assert pane.example.scores == start_scores(64)
    assert pane.worked is before
    for ask in (pane.command, lambda: pane.numbers("json")):
        assert "from -1000 to 1000" in refusal(ask)
    await stage.press("backspace", "9", "9", "9", "9")
    assert "from -1000 to 1000" in top(stage)
    assert pane.example.scores == start_scores(64)
    await stage.until(lambda: pane.text.dimmed)
    await stage.press("escape")
    assert pane.example.scores == start_scores(64)
    assert "logit x" in top(stage)
    await stage.press("5", "e", "right", "left", "up")
    assert pane.example.scores[0] == start_scores(64)[0] + 1
    assert "logit x" in top(stage)


@played()
async def test_scores_are_added_and_removed_between_two_and_eight(stage: Stage) -> None:
    pane = await opened(stage)
    await stage.press("right", "]", "7")
    assert pane.example.scores == (-24, -10, 7, 0, 10, 24)
    stage.send(*["]"] * 5)
    await stage.answered()
    assert len(pane.example.scores) == MOST
    assert f"not {MOST + 1}" in top(stage)
    stage.send(*["right"] * 9, *["["] * 9)
    await stage.answered()
    assert len(pane.example.scores) == 2
    assert "not 1" in top(stage)
    assert pane.editing.at == 1
    await stage.press("left")
    assert "logit x" in top(stage)


@played()
async def test_keys_step_temperature_and_shift_and_reset_everything(stage: Stage) -> None:
    pane = await opened(stage)
    weights = [pytest.approx(side.weights, rel=1e-12) for side in await worked_out(stage, pane)]
    stage.send(*["}"] * 8)
    await stage.until(lambda: pane.example.shift == 800)
    assert [side.weights for side in await worked_out(stage, pane)] == weights
    assert stage.text.count("5 of 5 overflow: no weights") == 2
    assert "unscaled × 1 + 800" in stage.text
    assert "Adding 800 to every logit changes no weight" in stage.words(pane.text)
    await stage.press("{", "(", ")", ")")
    assert pane.example.shift == 710
    await stage.press("t", "t", "t")
    unscaled, _ = await worked_out(stage, pane)
    assert unscaled.weights == weights[1]
    stage.send(*["T"] * 4)
    await stage.answered()
    assert pane.example.temperature == 0.5
    await stage.press("up", "]", "R")
    assert (pane.example.scores, pane.example.temperature, pane.example.shift) == (start_scores(64), 1, 0)


@played(Parameters(scale="cosine_10"))
async def test_under_a_rule_that_normalises_the_default_rule_is_used(stage: Stage) -> None:
    pane = await opened(stage)
    assert (await worked_out(stage, pane))[1].multiplier == 0.125
    assert "10·cos(q, k) normalises queries and keys" in stage.words(pane.text)
    assert "--scale" not in pane.command()


@played(Parameters(softcap=50))
async def test_a_remark_says_that_soft_cap_and_sink_are_ignored(stage: Stage) -> None:
    pane = await opened(stage)
    assert "soft-cap and sink are ignored" in stage.words(pane.text)


@played()
async def test_there_are_no_numbers_while_results_are_computed_and_a_click_selects_a_score(stage: Stage) -> None:
    pane = await opened(stage)
    stage.engine.hold = True
    await stage.press("up")
    for ask in (pane.command, lambda: pane.numbers("json")):
        assert "still being computed" in refusal(ask)
    stage.engine.let_go()
    await worked_out(stage, pane)
    assert "-23" in pane.command()
    for y, at in ((8, 4), (4, 0), (6, 2), (3, 2), (20, 2)):
        await stage.click((9, y - 1), pane.text)
        assert pane.editing.at == at


@played(size=(80, 24))
async def test_a_small_screen_scrolls_and_follows_the_cursor(stage: Stage) -> None:
    pane = await opened(stage)
    await stage.press("]", "]", "]")
    assert "more lines (PgDn)" in stage.text
    await stage.press(*["pagedown"] * 4)
    assert "naive: exp(x)" in stage.text
    assert "more lines" not in stage.text
    await stage.press("left")
    assert "▸" in stage.text
    assert pane.text.top == 0


@played(Parameters(d_k=4), size=(80, 24))
async def test_its_page_shows_the_largest_weights_and_what_the_marked_score_does(
    stage: Stage,
) -> None:
    pane = await stage.opened(SoftmaxPane)
    await stage.at_rest()
    assert pane.editing.at == 4
    assert shows_number(stage.lines, 97)
    assert any("+0.031" in line and "+0.156" in line for line in stage.lines)
    await stage.click((9, stage.place("−2.5").y - 1), pane.text)
    assert pane.editing.at == 1
    await stage.press("1", "0", "0", "0", "0")
    assert "from −1000 to 1000" in stage.text or "from -1000 to 1000" in stage.text
    await stage.press("escape", "L")
    await stage.at_rest()
    assert pane.example.scores == start_scores(8)
    await stage.press("up", "L")
    assert pane.example.scores[1] == -3.0

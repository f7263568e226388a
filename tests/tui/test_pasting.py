"""What is pasted is typed into the value at hand, and does nothing else."""

import pytest
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.heads.pane import HeadsPane
from attn_tui.tui.panes.softmax.pane import SoftmaxPane
from attn_tui.tui.panes.train.pane import TrainPane
from cases import present
from stage import SMALL, Stage, played
from textual import events


async def paste(stage: Stage, text: str) -> None:
    stage.app.post_message(events.Paste(text))
    await stage.answered()


@pytest.mark.parametrize("pane", ["Lab", "Sweep", "Rules"])
@played()
async def test_a_pasted_number_is_d_k_at_once(stage: Stage, pane: str) -> None:
    await stage.show(pane)
    await paste(stage, "25\nq")
    assert stage.asked.d_k == 25
    await paste(stage, "6")
    assert stage.asked.d_k == 256
    for refused in ("q", "４２", "1_0", "s\n", "9" * 5000):
        await stage.press("escape")
        await paste(stage, refused)
        assert (stage.asked, stage.app.pane.is_typing) == (SMALL, True), refused


@played(idle=True)
async def test_a_field_takes_what_is_pasted(stage: Stage) -> None:
    stage.lab.go_to_field("mask")
    await stage.answered()
    await paste(stage, "  causal \n")
    assert stage.asked.mask == "causal"
    await stage.press("enter", "escape")
    softmax = await stage.opened(SoftmaxPane)
    await paste(stage, "-2.5e1")
    assert softmax.example.scores[softmax.editing.at] == -25
    heads = await stage.opened(HeadsPane)
    await paste(stage, "1024")
    assert heads.shape.values[heads.shape.cursor] == 1024
    train = await stage.opened(TrainPane)
    train.settings.cursor = "rate"
    await paste(stage, "0.25")
    assert train.race.rate == 0.25


@played()
async def test_a_path_is_pasted_where_capture_asks_for_one(stage: Stage) -> None:
    pane = await stage.head()
    await stage.press("b")
    await paste(stage, "/some/path q.npz\nq")
    assert present(pane.verdict.draft).text == "/some/path q.npz"


@pytest.mark.slow
@pytest.mark.parametrize("pane", PANES)
@played(idle=True)
async def test_what_is_pasted_runs_no_key(stage: Stage, pane: str) -> None:
    await stage.show(pane)
    for text in ("e", "q?", "<", "", "\n", "s", "R", "零"):
        await paste(stage, text)
        assert (stage.app.active, stage.asked, len(stage.app.screen_stack)) == (pane, SMALL, 1), text
        assert stage.app.is_running
        await stage.press("escape")

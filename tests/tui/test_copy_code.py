"""The key that shows and copies the code of what a pane shows."""

import pytest
from attn_tui.core.claims import catalogue
from attn_tui.core.claims.catalogue import CLAIMS
from attn_tui.core.program.lab import report_code
from attn_tui.tui.panes.claims.pane import ClaimsPane
from attn_tui.tui.panes.learn.items import AT
from attn_tui.tui.panes.learn.pane import LearnPane
from attn_tui.tui.widgets.modal import CodeScreen
from clipboard import copies
from stage import Stage, played


@played(settled=True)
async def test_capital_y_shows_and_copies_the_code_of_the_lab(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = copies(stage, monkeypatch)
    await stage.press("Y")
    await stage.still()
    assert isinstance(stage.app.screen, CodeScreen)
    answer = stage.lab.answer
    assert answer is not None
    assert copied == [report_code(answer.measurement, "python", stage.lab.command())]
    assert "import numpy as np" in "\n".join(stage.lines)
    await stage.press("end")
    assert "# entropy" in "\n".join(stage.lines)
    await stage.press("escape")
    assert not isinstance(stage.app.screen, CodeScreen)


@played(settled=True)
async def test_tab_turns_to_pytorch_and_back(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = copies(stage, monkeypatch)
    await stage.press("Y", "tab")
    await stage.still()
    assert "code: PyTorch" in "\n".join(stage.lines)
    await stage.press("tab")
    await stage.still()
    assert "code: NumPy" in "\n".join(stage.lines)
    assert "import torch" in copied[1]
    assert copied[0] == copied[2]


@pytest.mark.slow
@pytest.mark.usefixtures("short_rule_grids")
@pytest.mark.parametrize("pane", ["Sweep", "Softmax", "Rules", "Heads", "Capture", "Train", "Watch"])
@played(settled=True)
async def test_capital_y_copies_a_program_in_each_of_these_panes(
    stage: Stage, pane: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = copies(stage, monkeypatch)
    stage.app.action_pane(pane)
    await stage.at_rest()
    await stage.press("Y")
    await stage.until(lambda: bool(copied), "a program")
    assert copied[0].startswith(f"# {stage.app.pane.command().partition(' --')[0]}")
    assert "# expected" in copied[0]


@pytest.mark.slow
@played(settled=True)
async def test_a_claim_that_is_tested_has_code_and_another_says_why_not(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = copies(stage, monkeypatch)
    wanted = ("softmax-of-20", "bleu-table", "train-equals-inference")
    monkeypatch.setattr(catalogue, "CLAIMS", [claim for claim in CLAIMS if claim.id in wanted])
    pane = await stage.opened(ClaimsPane)
    await stage.until(lambda: len(pane.claims.outcomes) == len(wanted), "the claims")
    pane.show_claim("softmax-of-20")
    await stage.press("Y")
    await stage.until(lambda: bool(copied), "a program")
    assert "softmax-of-20" in copied[0]
    await stage.press("escape")
    pane.show_claim("bleu-table")
    await stage.press("Y")
    await stage.until(lambda: "trained translation models" in stage.words(stage.app.notice), "a notice")
    assert len(copied) == 1
    pane.show_claim("train-equals-inference")
    await stage.press("Y")
    await stage.until(lambda: len(copied) > 1, "a program")
    assert "train-equals-inference" in copied[1]


@pytest.mark.slow
@played(settled=True)
async def test_a_step_of_the_tour_shows_its_code_after_the_answer(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = copies(stage, monkeypatch)
    pane = await stage.opened(LearnPane)
    await stage.until(lambda: pane.is_current, "the figures")
    await stage.press("escape", "Y")
    await stage.until(lambda: stage.app.notice.display, "a notice")
    assert not copied
    await stage.press("enter")
    await stage.press("Y")
    await stage.until(lambda: bool(copied), "a program")
    assert copied[0].startswith("# attn-tui learn 1")
    await stage.press("escape", *["down"] * AT["training"], "enter")
    await stage.until(lambda: pane.is_current, "the figures")
    await stage.press("Y")
    await stage.until(lambda: len(copied) > 1, "a program")
    assert "STEPS[" in copied[1]

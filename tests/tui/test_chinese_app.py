"""What the app says in Chinese over its panes, and what may be typed in Chinese."""

import pytest
from attn_tui.core.parameters import FIELD
from attn_tui.tui.views.fields.choices import choices_of
from attn_tui.tui.views.glyphs import IN_LANGUAGE
from rich.cells import cell_len
from stage import Stage, played

ZH = IN_LANGUAGE["zh"]
SAID = "注意力权重得分" * 25


@pytest.mark.parametrize("begin", ["", "a"])
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@played(glyphs=ZH, settled=True)
async def test_a_message_loses_no_character_at_the_edges_of_panels(
    stage: Stage, size: tuple[int, int], begin: str
) -> None:
    stage.app.say(begin + SAID)
    await stage.until(lambda: "得分注意" in stage.text, "the message")
    shown = "".join(line for line in stage.lines if {*line} <= {*begin, *SAID, " "})
    assert shown.replace(" ", "") == begin + SAID
    assert {cell_len(line) for line in stage.lines} == {size[0]}


@pytest.mark.parametrize(("field", "text", "value"), [("mask", "因果", "causal"), ("components", "拉普", "laplace")])
@played(glyphs=ZH, settled=True)
async def test_a_choice_can_be_typed_in_chinese(stage: Stage, field: str, text: str, value: str) -> None:
    stage.lab.panel.focus()
    stage.lab.panel.cursor = field
    await stage.press(*text, "enter")
    await stage.settled()
    assert getattr(stage.app.parameters, field) == value
    await stage.press(*"不存在")
    await stage.until(lambda: "没有包含 '不存在' 的选项" in "".join(stage.text.split("\n")), "the reason")
    assert getattr(stage.app.parameters, field) == value


@played(glyphs=ZH, settled=True)
async def test_a_number_refuses_a_chinese_character_with_the_reason(stage: Stage) -> None:
    stage.lab.panel.focus()
    stage.lab.panel.cursor = "d_k"
    await stage.press("因", "9")
    await stage.until(lambda: "必须是 1 到 16384 的整数" in stage.text, "the reason")
    await stage.press("enter")
    await stage.settled()
    assert stage.app.parameters.d_k == 64
    await stage.press("9", "enter")
    await stage.settled()
    assert stage.app.parameters.d_k == 9


def test_names_of_scale_rules_are_those_of_the_command_line() -> None:
    shown = {ZH.say(row.name) for row in choices_of(FIELD["scale"])}
    assert {"none", "sqrt_d_k"} <= shown
    assert {ZH.say(row.name) for row in choices_of(FIELD["mask"])} == {"无", "因果"}

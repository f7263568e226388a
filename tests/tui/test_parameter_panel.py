"""The fields of the Lab: the cursor, stepping, typing, and rejected values."""

from dataclasses import replace

import pytest
from attn_tui.core.models import MODELS
from attn_tui.core.parameters import FIELD, FIELDS, Parameters
from attn_tui.core.questions.lab import Report
from attn_tui.tui.views.fields.panel import applicable
from attn_tui.tui.views.glyphs import UNICODE
from attn_tui.tui.views.numbers import aligned
from cases import for_each
from digits import shows_number
from stage import SMALL, Stage, numbers, played


def to_field(name: str) -> list[str]:
    """Return the keys that show all fields, and move the cursor to one."""
    return ["p", *["tab"] * [field.name for field in applicable(SMALL)].index(name)]


@played(settled=True)
async def test_tab_moves_over_the_fields_that_have_an_effect_and_then_to_the_table(stage: Stage) -> None:
    await stage.press("v", "p")
    for field in applicable(SMALL)[1:]:  # from d_k on; the model stands before it
        await stage.press("tab")
        assert stage.app.focused is stage.panel
        assert stage.panel.cursor == field.name
        (marked,) = (line for line in stage.part(stage.panel) if "◂" in line)
        assert marked.split()[0] == field.label.split()[0]
    await stage.press("tab")
    assert stage.app.focused is stage.table
    await stage.press("shift+tab")
    assert stage.app.focused is stage.panel
    await stage.press("shift+tab")
    assert stage.panel.cursor == applicable(SMALL)[-2].name
    await stage.press("escape")
    assert stage.app.focused is stage.lab


STEPS = [  # of a field, by keys, and its value then
    ("d_k", "up", 128),
    ("d_k", "down", 32),
    ("d_k", "right right", 66),
    ("d_k", "left", 63),
    ("n_keys", "up", 32),
    ("n_keys", "right", 17),
    ("n_queries", "left", 7),
    ("batch", "down", 2),
    ("batch", "up right", 5),
    ("scale", "up", "d_k"),
    ("scale", "left", "none"),
    ("mask", "up up", "none"),
    ("components", "down", "student_t"),
    ("mean_q", "up up up", 0.3),
    ("mean_q", "left", -0.1),
    ("mean_k", "- 2 . 5", -2.5),
    ("std_q", "0 . 5 enter", 0.5),
    ("std_k", "1 e - 2", 0.01),
    ("correlation", "down", -0.05),
    ("seed", "4 2", 42),
    ("seed", "down", 0),
    ("n_keys", "2 0 backspace", 2),
    ("n_keys", "backspace", 1),  # the last digit of 16
    ("n_keys", "3 2 escape", 16),
    ("n_keys", "3 tab", 3),
    ("n_keys", "l s R", 16),  # elsewhere these letters are shortcuts
    ("mask", "C A U shift+tab", "causal"),
    ("scale", "1 / d _ k right left", "d_k"),
    ("precision", "b f tab", "bfloat16"),
    ("components", "S t u d e n t space t up down", "student_t"),
]


@played(idle=True)
async def test_a_field_with_the_focus_is_stepped_and_typed_into(stage: Stage) -> None:
    stage.app.screen.set_focus(stage.panel)
    for name, keys, value in STEPS:
        stage.panel.drop()
        stage.panel.cursor = name
        stage.app.change(SMALL)
        await stage.press(*keys.split())
        assert getattr(stage.asked, name) == value, (name, keys)


@played()
async def test_fields_appear_and_disappear_with_the_choice_that_they_depend_on(stage: Stage) -> None:
    await stage.press("v")
    await stage.settled()
    await stage.press(*to_field("scale"), "down", "down", "tab")
    assert stage.asked.scale == "custom"
    assert stage.panel.cursor == "multiplier"
    await stage.press("2", ".", "5")
    await stage.settled()
    assert stage.measurement.columns[1].multiplier == 2.5
    assert "scaled × 2.5" in stage.part(stage.table)[0]
    assert any(line.split()[:1] == ["multiplier"] and "2.5" in line for line in stage.part(stage.panel))
    await stage.press("shift+tab", "up")
    await stage.settled()
    assert not any(line.split()[:1] == ["multiplier"] and "2.5" in line for line in stage.part(stage.panel))


@played()
async def test_digits_in_the_table_set_d_k(stage: Stage) -> None:
    stage.app.screen.set_focus(stage.table)
    await stage.press("9", "enter")
    assert stage.asked.d_k == 9


@for_each("end", ["enter", "tab", "shift+tab", "up,down"])
@played(idle=True)  # its context would take seconds
async def test_a_model_is_named_while_it_is_typed_and_sets_the_rest_once_accepted(stage: Stage, end: str) -> None:
    stage.app.screen.set_focus(stage.panel)
    stage.panel.cursor = "model"
    await stage.press(*"deep")
    assert any("deep_ DeepSeek-V3" in line for line in stage.part(stage.panel))
    assert stage.asked == SMALL
    await stage.press(*end.split(","))
    assert stage.asked == SMALL.with_value("model", "deepseek-v3")
    assert stage.panel.editing is None


@played()
async def test_escape_leaves_all_as_it_was_before_a_model_was_typed(stage: Stage) -> None:
    stage.app.screen.set_focus(stage.panel)
    stage.panel.cursor = "model"
    await stage.press(*"gpt", "escape")
    assert stage.asked == SMALL
    assert stage.panel.editing is None
    await stage.press(*"gpt2", "escape", "escape", "right")
    assert stage.asked == replace(SMALL, d_k=SMALL.d_k + 1)


@played(idle=True)
async def test_a_command_of_the_palette_accepts_the_model_that_is_typed(stage: Stage) -> None:
    stage.app.screen.set_focus(stage.panel)
    stage.panel.cursor = "model"
    await stage.press(*"deep")
    stage.send("ctrl+p", *"redraw", "enter")
    await stage.until(lambda: stage.asked.seed == 1, "the command")
    assert stage.asked == replace(SMALL.with_value("model", "deepseek-v3"), seed=1)


@played(settled=True)
async def test_letters_that_name_no_choice_are_refused_with_the_nearest(stage: Stage) -> None:
    await stage.press("v")
    await stage.settled()
    stage.app.screen.set_focus(stage.panel)
    stage.panel.cursor = "mask"
    await stage.press(*"casual")
    assert stage.asked == SMALL
    await stage.still()
    assert stage.table.dimmed
    assert "did you mean causal" in stage.words(stage.lab.results.words)
    await stage.press("ctrl+u", "c", "a", "enter")
    assert stage.asked.mask == "causal"


@played(settled=True)
async def test_a_click_moves_the_cursor_to_a_field(stage: Stage) -> None:
    await stage.press("p")
    first = next(field for field in FIELDS if stage.part(stage.panel)[0].strip().startswith(field.label))
    for name in ("mask", "n_keys", first.name, "seed"):
        at = next(y for y, line in enumerate(stage.part(stage.panel)) if line.strip().startswith(FIELD[name].label))
        await stage.click((2, at), stage.panel)
        assert (stage.app.focused, stage.panel.cursor) == (stage.panel, name)
        await stage.still()
        assert "◂" in stage.part(stage.panel)[at]
    await stage.press("4", "2", "enter")
    assert stage.asked == replace(SMALL, seed=42)


# Rejected values


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "typed", "correction", "value"),
    [
        ("0", "0_", "backspace 9", 9),
        ("5 backspace", "_", "9", 9),
        ("9 9 9 9 9", "99999_", "backspace backspace backspace backspace", 9),
        ("9 9 9 9 9", "99999_", "right", 65),
        ("tab -", "-_", "backspace 9", 9),
        ("tab 1 e 1", "1e1_", "backspace backspace", 1),
        ("0", "0_", "escape", 64),
        ("tab -", "-_", "escape", 64),
    ],
)
@played(settled=True)
async def test_until_a_rejected_edit_is_corrected_the_last_numbers_are_dimmed_with_the_reason(
    stage: Stage, keys: str, typed: str, correction: str, value: int
) -> None:
    await stage.press("v")
    await stage.settled()
    for key in keys.split():
        await stage.press(key)
        if stage.panel.editing and stage.panel.editing.objection is None:
            await stage.settled()
    assert stage.asked == SMALL, "nothing is clamped, and the beginning of the text is not kept"
    assert stage.app.changed_settings()["parameters"].get("d_k") is None
    await stage.until(lambda: stage.measurement.subject == SMALL)
    await stage.still()
    assert stage.table.dimmed
    assert stage.lab.results.histograms.dimmed
    assert len(stage.styles(stage.table)) == 1
    entropy = stage.measurement.columns[0].measured["entropy"].value
    assert aligned(entropy, UNICODE).strip() in "".join(stage.part(stage.table)), "the numbers stay"
    assert shows_number(stage.lines, typed)
    assert FIELD["d_k"].accepted in stage.words(stage.lab.results.words)
    await stage.press(*correction.split())
    assert stage.asked.d_k == value
    await stage.settled()
    assert len(stage.styles(stage.table)) > 1
    assert FIELD["d_k"].accepted not in stage.words(stage.lab.results.words)


@played(settled=True)
async def test_a_model_sets_the_lab_and_says_when_it_was_changed(stage: Stage) -> None:
    await stage.press("p", "tab", "shift+tab", *"gemma-2-", "enter")
    assert stage.asked == replace(SMALL, **MODELS["gemma-2-27b"].parameters, model="gemma-2-27b")
    assert stage.asked.softcap == 50
    await stage.press("escape", *"16")
    assert stage.part(stage.panel)[0].strip().removeprefix("model ").strip() == "Gemma 2 27B, changed"
    await stage.press("escape")
    assert stage.part(stage.panel)[0].split(maxsplit=1)[1].strip() == "Gemma 2 27B"
    assert stage.lab.command() == "attn-tui report --model gemma-2-27b --n-queries 8 --batch 2"
    await stage.press("u")
    assert stage.asked == SMALL


@played(settled=True)
async def test_a_late_answer_is_shown_dimmed_while_an_edit_is_rejected(stage: Stage) -> None:
    await stage.press("v")
    await stage.settled()
    stage.engine.hold = True
    await stage.press("up", "right")
    assert stage.asked.d_k == 129
    await stage.until(
        lambda: any(
            isinstance(reply.content, Report) and reply.content.parameters == stage.asked
            for reply in stage.engine.held
        ),
        "an answer on its way",
    )
    await stage.press("0")
    assert stage.table.dimmed
    stage.engine.let_go()
    await stage.until(lambda: stage.measurement.subject.d_k == 129)
    await stage.still()
    assert stage.panel.editing is not None
    assert stage.table.dimmed
    assert FIELD["d_k"].accepted in stage.words(stage.lab.results.words)


@pytest.mark.parametrize(
    ("key", "parameters"),
    [("S", replace(SMALL, d_k=1, scale="d_k")), ("left", replace(SMALL, d_k=2, scale="log_d_k"))],
)
@played(settled=True)
async def test_a_scale_without_a_value_is_refused_with_a_reason_and_the_numbers_stay(
    stage: Stage, key: str, parameters: Parameters
) -> None:
    await stage.press("v")
    await stage.settled()
    before = stage.part(stage.table)
    await stage.press(key)
    assert stage.table.dimmed
    said = stage.words(stage.lab.results.words)
    assert "1/ln d_k has no value at d_k = 1" in said
    assert ("for scale 1/d_k" if key == "S" else f"for d_k {parameters.d_k}") in said
    assert stage.part(stage.table) == before
    await stage.press("up")
    await stage.settled()
    assert numbers(stage.measurement) == numbers(stage.expected)
    assert "no value" not in stage.text


@played(replace(SMALL, d_k=1), settled=True)
async def test_a_scale_without_a_value_can_be_stepped_past(stage: Stage) -> None:
    for _ in FIELD["scale"].choices:
        await stage.press("S")
    await stage.settled()
    assert stage.asked == replace(SMALL, d_k=1)


EAGER = replace(SMALL, precision="bfloat16", arithmetic="eager")
NO_EAGER = "arithmetic: must be fused with format float8 e4m3; no kernel rounds scores to it."


async def notice(stage: Stage) -> str:
    """Return the message at the bottom of the screen."""
    await stage.until(lambda: stage.app.notice.display, "a notice")
    await stage.still()
    return stage.words(stage.app.notice)


@pytest.mark.slow
@played(EAGER, settled=True)
async def test_a_format_that_the_arithmetic_excludes_is_refused_with_the_reason(stage: Stage) -> None:
    await stage.press("F")
    assert NO_EAGER in await notice(stage)
    assert stage.app.parameters == EAGER
    await stage.press("p", *["tab"] * [field.name for field in applicable(EAGER)].index("precision"), "up")
    assert NO_EAGER in await notice(stage)
    assert stage.app.parameters == EAGER
    assert not stage.lab.is_stale
    await stage.press("tab", "up", "shift+tab", "up")
    assert stage.app.parameters == replace(EAGER, precision="float8_e4m3fn", arithmetic="fused")
    await stage.press("tab", "up")
    assert NO_EAGER in await notice(stage)

"""The Heads pane: keys change the shape of a layer, its cost follows, and Enter opens the Lab with its d_k."""

import pytest
from attn_tui.core.attention.cost import SHAPE_FIELDS, LayerShape, cost
from attn_tui.core.attention.presets import PRESETS
from attn_tui.core.parameters import FIELD
from attn_tui.tui.panes.heads.pane import ROWS, HeadsPane
from attn_tui.tui.views.lines import Role, line_width
from attn_tui.tui.widgets.picker import ChoiceScreen
from cases import present
from stage import SIZES, SMALL, Stage, played, refusal


async def opened(stage: Stage) -> HeadsPane:
    pane = await stage.opened(HeadsPane)
    return pane


async def started_from(stage: Stage, name: str) -> HeadsPane:
    pane = await opened(stage)
    while pane.preset is None or pane.preset.name != name:
        await stage.press("P")
    return pane


async def at(stage: Stage, pane: HeadsPane, field: str) -> None:
    """Move the cursor to a field."""
    await stage.press(*["up"] * len(SHAPE_FIELDS))
    while pane.topic.name != field:
        await stage.press("down")


@played()
async def test_presets_wrap_around_and_the_cost_follows_each_step(stage: Stage) -> None:
    pane = await opened(stage)
    seen = [pane.preset]
    for _ in PRESETS:
        await stage.press("P")
        seen.append(pane.preset)
        assert pane.text.cost == cost(present(pane.preset).layer)
    assert seen == [None, *PRESETS.values()]
    await stage.press("P")
    assert pane.preset is None
    assert pane.text.cost == cost(LayerShape())
    await stage.press("right")
    assert pane.text.cost == cost(LayerShape(1024))
    await at(stage, pane, "kv_heads")
    await stage.press("left", "left")
    assert pane.text.cost == cost(LayerShape(1024, 8, 2))
    assert "grouped-query" in stage.lines[0]
    await stage.press("backspace")
    assert pane.text.cost == cost(LayerShape(1024))
    await at(stage, pane, "d_k")
    await stage.press("L", "shift+right", "H")
    assert pane.text.cost == cost(LayerShape(1024, d_k=129))
    await at(stage, pane, "cache_format")
    await stage.press("right")
    assert pane.text.cost == cost(LayerShape(1024, d_k=129, cache_format="float8_e4m3fn"))


@played()
async def test_an_impossible_shape_is_explained_and_the_last_figures_are_dimmed(stage: Stage) -> None:
    pane = await opened(stage)
    await at(stage, pane, "heads")
    await stage.press("H", "enter")
    assert "not divisible by 7" in stage.words(pane.shape)
    assert "d_k" not in stage.lines[0]
    assert pane.text.dimmed
    assert pane.text.cost == cost(LayerShape())
    assert stage.app.active == "Heads"
    for ask in (pane.command, lambda: pane.numbers("json")):
        assert "not divisible by 7" in refusal(ask)
    await stage.press("left")
    assert not pane.text.dimmed
    assert pane.text.cost == cost(LayerShape(heads=4))


@played()
async def test_enter_opens_the_lab_with_the_model_or_the_d_k_of_a_changed_one(stage: Stage) -> None:
    pane = await started_from(stage, "gemma-2-27b")
    assert "1/√144 multiplies scores by 0.08333" in stage.words(pane.text)
    await stage.press("enter")
    assert stage.app.active == "Lab"
    assert stage.asked == SMALL.with_value("model", "gemma-2-27b")
    stage.app.change(SMALL)
    pane = await started_from(stage, "palm-540b")
    await at(stage, pane, "layers")
    await stage.press("right", "enter")
    assert (stage.asked.d_k, stage.asked.model) == (256, "none")


@played()
async def test_a_d_k_beyond_the_bounds_of_the_lab_is_refused(stage: Stage) -> None:
    pane = await opened(stage)
    await at(stage, pane, "heads")
    await stage.press("left", "left", "left", "up", *["right"] * 6)
    assert pane.shape.as_layer().width > FIELD["d_k"].high
    await stage.press("enter")
    assert stage.app.active == "Heads"
    assert pane.shape.objection
    assert pane.shape.objection in stage.words(pane.shape)
    assert not pane.text.dimmed
    await stage.press("left")
    assert not pane.shape.objection


@pytest.mark.parametrize("size", SIZES, ids=str)
@played()
async def test_no_line_is_cut_and_the_last_one_can_be_reached(stage: Stage, size: tuple[int, int]) -> None:
    pane = await started_from(stage, "llama-3.1-405b")
    await at(stage, pane, "cache_format")
    await stage.press("right")
    whole = pane.text.write(pane.text.room.width, pane.text.room.height)
    assert max(map(line_width, whole)) <= pane.text.room.width
    await stage.press(*["pagedown"] * len(whole))
    last = "".join(text for text, _ in whole[-1])
    assert last in stage.text


@played()
async def test_a_field_that_follows_from_others_is_dim(stage: Stage) -> None:
    pane = await opened(stage)

    def roles(name: str) -> set[Role]:
        row = [field.name if field else "" for field in ROWS].index(name)
        return {role for text, role in pane.shape.compose_lines(*pane.shape.size)[row] if text.strip()}

    await at(stage, pane, "layers")
    assert "dim" in roles("d_k")
    await at(stage, pane, "d_k")
    await stage.press("right", "down")
    assert "dim" not in roles("d_k")


@pytest.mark.parametrize("name", ["kv_latent", "q_latent", "rotary"])
@played()
async def test_a_width_that_may_be_0_is_stepped_down_to_it_and_up_from_it(stage: Stage, name: str) -> None:
    pane = await opened(stage)
    await at(stage, pane, name)
    values: list[object] = []
    for key in ("left", "right", "right", "left", "left", "left"):
        await stage.press(key)
        values.append(pane.shape.values[name])
    assert values == [0, 1, 2, 1, 0, 0]


@pytest.mark.parametrize(
    ("name", "word", "value"),
    [("bias", "qwen2", "qkv"), ("cache_format", "fp8", "float8_e4m3fn"), ("mask", "encoder", "none")],
)
@played()
async def test_enter_on_a_choice_opens_its_list(stage: Stage, name: str, word: str, value: str) -> None:
    pane = await stage.opened(HeadsPane)
    names = [field.name for field in SHAPE_FIELDS]
    await stage.press(*["down"] * names.index(name))
    assert "Enter choose" in stage.lines[-1]
    before = pane.shape.values[name]
    await stage.press("enter", *word, "enter")
    assert pane.shape.values[name] == value != before
    assert stage.app.active == "Heads"
    await stage.press("u")
    assert pane.shape.values[name] == before
    await stage.click(f"{pane.shape.field.label} ", pane.shape)
    assert isinstance(stage.app.screen, ChoiceScreen)

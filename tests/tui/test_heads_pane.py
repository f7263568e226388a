"""The Heads pane as people use it: a shape is stepped, its cost follows, its d_k goes to the Lab."""

import pytest
from attn_tui.core.attention.cost import Layer, cost
from attn_tui.core.attention.presets import PRESETS
from attn_tui.core.errors import InputError
from attn_tui.tui.panes.heads import HeadsPane
from attn_tui.tui.views.cost import cost_lines
from attn_tui.tui.views.glyphs import ASCII, Glyphs
from attn_tui.tui.views.lines import Role
from attn_tui.tui.widgets.help_screen import HelpScreen
from test_app import SIZES, Stage, play
from test_take_away import Taken, agree, take


async def opened(stage: Stage) -> HeadsPane:
    pane = await stage.opened(HeadsPane)
    await stage.still()
    return pane


async def started_from(stage: Stage, name: str) -> HeadsPane:
    pane = await opened(stage)
    while pane.preset is None or pane.preset.name != name:
        await stage.press("p")
    return pane


def said(pane: HeadsPane) -> str:
    """What the panel says in alert, as one line."""
    assert pane.shape.size.width >= 20
    return " ".join(text.strip() for line in pane.shape._lines for text, role in line if role == "alert")


async def at(stage: Stage, pane: HeadsPane, field: str) -> None:
    await stage.press(*["up"] * 10)
    while pane.topic.name != field:
        await stage.press("down")


def test_keys_step_the_shape_and_the_cost_follows() -> None:
    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        assert pane.text.cost == cost(Layer())
        await stage.press("right")
        assert pane.text.cost == cost(Layer(1024))
        await at(stage, pane, "kv_heads")
        await stage.press("left", "left")
        assert pane.text.cost == cost(Layer(1024, 8, 2))
        assert "grouped-query" in stage.lines[0]
        await stage.press("backspace")
        assert pane.text.cost == cost(Layer(1024))
        await at(stage, pane, "d_k")
        await stage.press("plus", "plus", "minus")
        assert pane.text.cost == cost(Layer(1024, d_k=129))
        await at(stage, pane, "cache_format")
        await stage.press("right")
        assert pane.text.cost == cost(Layer(1024, d_k=129, cache_format="float8_e4m3fn"))

    play(script)


def test_presets_go_round() -> None:
    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        seen = [pane.preset]
        for _ in PRESETS:
            await stage.press("p")
            seen.append(pane.preset)
            assert pane.preset is not None
            assert pane.text.cost == cost(pane.preset.layer)
        assert seen == [None, *PRESETS.values()]
        await stage.press("p")
        assert pane.preset is None
        await stage.press("P")
        assert pane.preset is seen[-1]

    play(script)


def test_a_shape_that_is_none_is_said_and_the_figures_stand_back() -> None:
    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        await at(stage, pane, "heads")
        await stage.press("minus", "enter")
        assert "heads: 7 do not divide" in said(pane)
        assert "no such layer" in stage.lines[0]
        assert pane.text.dimmed
        assert pane.text.cost == cost(Layer())
        assert stage.app.active == "Heads"
        for ask in (pane.command, lambda: pane.numbers("json")):
            with pytest.raises(InputError, match=r"There is no such layer: heads: 7 do not divide .*\.$"):
                ask()
        await stage.press("left")
        assert not pane.text.dimmed
        assert pane.text.cost == cost(Layer(heads=4))

    play(script)


def test_a_model_s_d_k_goes_to_the_lab() -> None:
    async def script(stage: Stage) -> None:
        await started_from(stage, "palm-540b")
        await stage.press("enter")
        assert stage.app.active == "Lab"
        assert stage.asked.d_k == 256

    play(script)


def test_what_the_lab_cannot_take_is_said() -> None:
    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        await at(stage, pane, "heads")
        await stage.press("left", "left", "left", "up", *["right"] * 6)
        assert pane.shape.as_layer().width == 32_768
        await stage.press("enter")
        assert stage.app.active == "Heads"
        assert "Not for the Lab" in said(pane)
        assert not pane.text.dimmed
        await stage.press("left")
        assert "Not for the Lab" not in said(pane)

    play(script)


@pytest.mark.parametrize(
    ("preset", "field", "keys"),
    [
        (None, "d_model", []),
        (None, "bias", ["right"]),
        ("gpt2", "heads", ["minus"] * 6),
        ("llama-3-8b", "kv_heads", ["backspace"]),
        ("gemma-7b", "d_k", ["backspace"]),
        ("bert-base", "mask", ["right"]),
    ],
)
def test_the_command_prints_the_numbers_of_the_pane(
    preset: str | None, field: str, keys: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    taken: list[Taken] = []

    async def script(stage: Stage) -> None:
        pane = await (started_from(stage, preset) if preset else opened(stage))
        await at(stage, pane, field)
        await stage.press(*keys)
        taken.append(take(pane))

    play(script)
    agree(taken, capsys)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_no_line_of_a_model_is_cut(size: tuple[int, int]) -> None:
    async def script(stage: Stage) -> None:
        pane = await started_from(stage, "llama-3.1-405b")
        await at(stage, pane, "cache_format")
        await stage.press("right")
        assert pane.text.cost is not None
        width = pane.text.size.width
        whole = cost_lines(pane.text.cost, width, pane.glyphs, pane.preset)
        assert max(len("".join(text for text, _ in line)) for line in whole) <= width
        await stage.press(*["pagedown"] * 4)
        last = "".join(text for text, _ in whole[-1])
        assert last in stage.text

    play(script, size=size)


@pytest.mark.parametrize("glyphs", [ASCII], ids=["ascii"])
def test_it_does_without_other_characters(glyphs: Glyphs) -> None:
    async def script(stage: Stage) -> None:
        await started_from(stage, "gpt2")
        assert stage.text.isascii()

    play(script, glyphs=glyphs)


def test_the_help_explains_the_field_with_the_cursor() -> None:
    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        await at(stage, pane, "kv_heads")
        await stage.press("?")
        assert isinstance(stage.app.screen, HelpScreen)
        await stage.still()
        assert "key heads (h_kv)" in stage.text
        assert "What a layer of attention costs" in stage.text

    play(script)


def test_what_follows_is_dim() -> None:
    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        await stage.press(*["down"] * 5)

        def roles(y: int) -> set[Role]:
            return {role for text, role in pane.shape._lines[y] if text.strip()}

        assert "dim" in roles(3)
        await at(stage, pane, "d_k")
        await stage.press("right", "down")
        assert "dim" not in roles(3)

    play(script)

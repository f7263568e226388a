"""Keys that arrive together do what they do one by one: each goes to where the one before has led."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from attn_tui.tui.app.export_screen import ExportScreen
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.settings.declared import Settings
from attn_tui.tui.widgets.picker import ChoiceScreen
from monkey import Endless
from stage import SMALL, LocalEngine, Stage, play, played
from textual import events
from textual.geometry import Offset


@pytest.fixture
def no_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make the engine answer nothing: results come later than keys that arrive together."""
    monkeypatch.chdir(tmp_path)  # exports are written here
    monkeypatch.setattr(LocalEngine, "send", Mock())


NAMED = {
    "⏎": "enter", "⎋": "escape", "⇥": "tab", "⇤": "shift+tab", "→": "right", "←": "left", "↑": "up", "↓": "down",
    "⌫": "backspace", "⌃": "ctrl+p", "⇟": "pagedown", "⇞": "pageup", "⌂": "home", "⌁": "end",
}  # fmt: skip


def keys_of(burst: str) -> list[str]:
    return [NAMED.get(character, character) for character in burst if character != " "]


def state(stage: Stage) -> dict[str, Any]:
    """Return everything that keys change, and what is on screen unless something covers it."""
    app, screen = stage.app, stage.app.screen
    focus = screen.focused
    found: dict[str, Any] = {
        "undo": app.state,
        "screens": [type(each).__name__ for each in app.screen_stack],
        "focus": type(focus).__name__,
        "typing": app.pane.is_typing,
        "text": stage.text if len(app.screen_stack) == 1 else "",
    }
    if "Lab" in app.panes:
        found["panel"] = stage.panel.cursor, stage.panel.editing
    if isinstance(screen, ChoiceScreen):
        found["list"] = screen.text.choices.words, screen.text.choices.cursor
    if isinstance(screen, ExportScreen):
        found["form"] = screen.form.path
    return found


def after(pane: str, burst: str, size: tuple[int, int], *, together: bool) -> dict[str, Any]:
    """Return the state after these keys, which arrive together or one by one."""
    found: list[dict[str, Any]] = []

    async def script(stage: Stage) -> None:
        await stage.at_rest()
        keys = keys_of(burst)
        for some in [keys] if together else [[key] for key in keys]:
            stage.send(*some)
            await stage.answered()
            await stage.at_rest()
        found.append(state(stage))

    play(script, size=size, kind=Endless, first_pane=pane)
    return found[0]


BURSTS = [
    ("Capture", "/2/5⏎"),
    ("Rules", "/yarn⏎"),
    ("Learn", "⎋/overflow⏎"),
    ("Lab", "/bf16⏎ ?↓q 12"),
    ("Lab", ">12 <7 >>3"),
    ("Heads", "e-of-mine⏎ ⎋"),
    ("Train", "⌃redraw⏎ ⌃softmax⏎→5"),
    ("Learn", "sqrt(64)⏎"),
    ("Learn", "↓12⎋⎋⌫5"),
    ("Lab", "⇥⇥ zzé√ab ⎋ 7⇥3⇥2⎋"),
    ("Softmax", "12⏎ →→ ⌃rules⏎ /yarn⏎"),
    ("Sweep", "⌃heads⏎ ⇥⇥8 <<"),
    ("Watch", "⌃⎋ K⎋ ⌃↓↓⏎ >v"),
]


@pytest.mark.slow
@pytest.mark.usefixtures("no_results")
@pytest.mark.parametrize(("pane", "burst"), BURSTS)
def test_keys_that_arrive_together_do_what_they_do_one_by_one(pane: str, burst: str) -> None:
    size = (120, 40)
    assert after(pane, burst, size, together=True) == after(pane, burst, size, together=False)


WORDS = [
    "/yarn⏎", "/2/5⏎", "/bf16⏎", "/zzz⏎⎋", "/a⎋", ">", "<", ">12", "<7", ">>3", "⇥", "⇥d⏎", "⇥⇥64⏎", "⇥⇥⇥32",
    "⇤", "5", "12", "99999", "0", "-", "1e9", "⎋", "⏎", "→→→", "←", "↑", "↓", "⌫⌫", "?⎋", "?↓↓q", "?", "K",
    "⌃lab⏎", "⌃softcap⏎", "⌃heads⏎", "⌃llama⏎", "⌃softmax⏎→", "⌃rules⏎/yarn⏎", "⌃⎋", "⌃↓⏎", "zzé√ab", "é", "ca",
    "⏎ca⏎", "⏎⏎", "⏎↓⏎", "b⎋", "e⎋", "⇞", "⇟", *"sSamfcxd][viozguRrpPthjkl⌂⌁",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("no_results")
@pytest.mark.parametrize("seed", range(6))
def test_random_keys_that_arrive_together_do_what_they_do_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    pane, size = chance.choice([*PANES]), chance.choice([(120, 40), (60, 20)])
    burst = "".join(chance.choice(WORDS) for _ in range(6))
    assert after(pane, burst, size, together=True) == after(pane, burst, size, together=False), burst


@played(settled=True)
async def test_letters_after_the_key_that_opens_a_list_filter_it(stage: Stage) -> None:
    stage.send(*"/yarn")
    await stage.answered()
    assert stage.screen(ChoiceScreen).text.choices.words == "yarn"


@played(settled=True)
async def test_escape_and_a_letter_that_arrive_as_alt_and_the_letter_are_both_pressed(stage: Stage) -> None:
    await stage.press("s")
    await stage.app.do_last(events.Key("alt+shift+s", "S"))
    await stage.answered()
    assert len(stage.app.screen_stack) == 1
    assert stage.asked.scale != SMALL.scale
    await stage.app.do_last(events.Key("alt+shift+s", None))  # with a protocol that tells them apart
    await stage.app.do_last(events.Key("alt+2", "2"))
    await stage.answered()
    assert stage.app.pane.NAME == "Softmax"


@played(settled=True)
async def test_what_is_typed_into_the_palette_is_done_before_what_follows(stage: Stage) -> None:
    stage.send("ctrl+p", *"redraw", "enter", "right")
    await stage.answered()
    assert (stage.asked.seed, stage.asked.d_k) == (1, SMALL.d_k + 1)
    assert len(stage.app.screen_stack) == 1


@pytest.mark.parametrize(("settings", "says"), [(None, "q quits."), (Settings(keys={"quit": "Z"}), "Z quits.")])
def test_ctrl_c_names_the_key_that_quits(settings: Settings | None, says: str) -> None:
    async def script(stage: Stage) -> None:
        await stage.press("ctrl+c")
        assert says in stage.lines[-2] + stage.lines[-1]
        assert "ctrl+q" not in stage.text

    play(script, settings=settings)


@played(settled=True)
async def test_a_paste_and_keys_keep_their_order(stage: Stage) -> None:
    stage.send("tab", "1")
    stage.app.post_message(events.Paste("2"))
    stage.send("8", "enter")
    await stage.answered()
    assert stage.asked.d_k == 128


def clicked(stage: Stage, at: Offset) -> None:
    """Click without waiting for the app."""
    for kind in (events.MouseDown, events.MouseUp):
        stage.mouse(kind, at)


@played(settled=True)
async def test_keys_after_a_click_are_for_what_it_opens(stage: Stage) -> None:
    await stage.press("p", "tab")
    at = stage.place("mask ", stage.panel)
    stage.send("right")
    for _ in range(2):  # the second one opens the list
        clicked(stage, at)
    stage.send(*"caus", "enter", "escape", "right")
    await stage.answered()
    assert (stage.asked.mask, stage.asked.d_k) == ("causal", SMALL.d_k + 2)  # one step in the field, one outside


@played(settled=True)
async def test_a_click_on_a_key_of_the_bottom_bar_comes_before_keys_typed_after_it(stage: Stage) -> None:
    clicked(stage, stage.place("? help"))
    stage.send("down", "escape", "right")
    await stage.answered()
    assert len(stage.app.screen_stack) == 1
    assert stage.asked.d_k == SMALL.d_k + 1


@pytest.mark.slow
@played(settled=True)
async def test_keys_go_on_if_something_else_closes_the_screen_they_were_for(stage: Stage) -> None:
    for turns in range(20):
        await stage.press("?")
        stage.send("home", "end")
        for _ in range(turns):
            await asyncio.sleep(0)
        (stage.app.screen.dismiss if turns % 2 else stage.app.pop_screen)()
        stage.send("right")
        await stage.answered()
    assert stage.asked.d_k == SMALL.d_k + 20


@played(settled=True)
async def test_keys_that_wait_are_dropped_when_the_app_quits(stage: Stage) -> None:
    stage.send("right", "q", "right", "right")
    await stage.until(lambda: not stage.app.is_running, "the end")
    assert stage.asked.d_k == SMALL.d_k + 1


@pytest.mark.parametrize("keys", [["right"] * 60, [*"12", "escape"] * 10], ids=["held", "typed"])
@played(settled=True)
async def test_no_key_is_lost_in_a_flood(stage: Stage, keys: Sequence[str]) -> None:
    stage.send(*keys)
    await stage.answered()
    assert stage.asked.d_k == SMALL.d_k + 60 * (keys[0] == "right")

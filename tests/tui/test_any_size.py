"""Every screen from 1 x 1 up: whatever is open, the app neither stops nor grows."""

import signal
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from types import FrameType
from typing import NoReturn

import pytest
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.claims.requests import CheckClaims
from attn_tui.tui.settings.declared import Settings
from attn_tui.tui.views.lines import line_width
from memory import peak_memory
from stage import FOREVER, Stage, play, untested_claims
from textual.command import CommandList

pytestmark = pytest.mark.slow

FLAT = [(1, 1), (2, 12), (39, 12), (120, 11), (200, 1), (1, 200)]
# Every width and every height that is very small, each with some of the other.
SIZES = [
    *product(range(1, 21), (1, 2, 5, 12)), *product((1, 3, 20), range(1, 13)),
    *((120, 11), (200, 1), (39, 12), (40, 11), (40, 12)),
]  # fmt: skip
MOST_MEMORY = 100e6  # bytes that the app may hold at once

# What may be open: the keys that open it in the Lab, and how many screens there are then.
OPEN: dict[str, tuple[tuple[str, ...], int]] = {
    "the greeting": ((), 1),
    "the notice": (("y",), 1),
    "help": (("?",), 2),
    "all keys": (("K",), 2),
    "the form": (("e",), 2),
    "the question": (("e", "enter"), 2),
    "the palette": (("ctrl+p",), 2),
    "found commands": (("ctrl+p", "d"), 2),
}
KEYS = ["up", "down", "left", "right", "pageup", "pagedown", "home", "end", "tab", "x", "backspace", "delete"]


@contextmanager
def no_hang() -> Generator[None]:
    """Fail if this takes so long that it will not end."""

    def stop(_: int, __: FrameType | None) -> NoReturn:
        pytest.fail("the app hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, FOREVER)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


async def shown_at(stage: Stage, width: int, height: int) -> None:
    """Resize, and wait until every line fills the screen exactly."""

    def fits() -> bool:
        return [line_width(((line, "text"),)) for line in stage.lines] == [width] * height

    await stage.resize(width, height)
    await stage.until(fits, f"screen of {width} x {height}")
    await stage.answered()
    assert fits()


def show_at(sizes: Sequence[tuple[int, int]], name: str) -> None:
    """Let the app with this open take keys at each size; fail if it hangs or shows anything else."""
    Path("attn-tui-lab-d64.svg").touch()  # so that the form asks whether to replace it
    keys, screens = OPEN[name]

    async def script(stage: Stage) -> None:
        await stage.settled()
        await stage.press(*keys)
        if "ctrl+p" in keys:
            await stage.until(lambda: any(each.option_count for each in stage.app.screen.query(CommandList)), "list")
        assert len(stage.app.screen_stack) == screens
        assert stage.app.notice.display == (screens == 1)
        for size in sizes:
            with no_hang():
                await shown_at(stage, *size)
                if screens > 1:
                    stage.send(*KEYS)
                    await stage.answered()
                    assert len(stage.app.screen_stack) == screens
        await shown_at(stage, 120, 40)

    play(script, settings=Settings(path=Path("config.toml").absolute(), hint=name == "the greeting"))


@pytest.mark.parametrize("name", OPEN)
def test_small_sizes_are_shown_and_take_keys(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    show_at(SIZES[::9], name)


@pytest.mark.soak
@pytest.mark.parametrize("name", OPEN)
def test_every_size_is_shown_and_needs_little_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert peak_memory(lambda: show_at(SIZES, name), warm_up=False) < MOST_MEMORY


@pytest.mark.parametrize("name", PANES)
@pytest.mark.parametrize(
    "sizes", [FLAT[::2], pytest.param(FLAT[1::2], marks=pytest.mark.soak)], ids=["some", "others"]
)
def test_every_pane_takes_keys_at_sizes_too_small_for_it(
    name: str, sizes: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CheckClaims, "work", untested_claims)

    async def script(stage: Stage) -> None:
        stage.app.action_pane(name)
        for size in sizes:
            with no_hang():
                await shown_at(stage, *size)
                stage.send("y", *KEYS, "v", "t", "y")
                await stage.answered()
                await stage.still()
        assert stage.app.active == name

    play(script)

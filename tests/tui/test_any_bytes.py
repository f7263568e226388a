"""Whatever bytes a terminal sends, the app stays alive, takes the next key, and needs no more memory."""

import asyncio
import itertools
import os
import random
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attn_tui.tui.app.export_screen import ExportScreen
from attn_tui.tui.panes.lab.pane import LabPane
from attn_tui.tui.panes.softmax.pane import SoftmaxPane
from attn_tui.tui.terminal.driver import TerminalDriver
from memory import peak_memory
from monkey import Endless
from stage import Stage, play
from textual import events
from textual.geometry import Size

BATCH = 20  # strings between checks
MOST_MEMORY = 100e6  # bytes that the app may hold at once

# Ends what a string has begun: a sequence, a paste, a string of the terminal.
END = b"\x18\x1b[201~\x1b\\\x1b[27u"
CHECK = b"\x1b[24~"  # F12, which nothing uses

KEYS = [b"\x1b[A", b"\x1b[B", b"\x1b[C", b"\x1b[D", b"\x1b[5~", b"\x1b[6~", b"\r", b"\t", b"\x1b[Z", b"\x1b", b"\x7f"]
PIECES = [
    *[bytes([code]) for code in range(256)],
    *KEYS,
    *[b"\x1b", b"\x1b[", b"\x1b[<", b"\x1b[?", b"\x1bO", b"\x1b]", b"\x1bP", b"\x1b_", b"\x1b\\", b"\x07", b"\x1b[M"]
    * 4,
    *[b";", b":", b"0", b"1", b"48", b"65", b"97", b"-1", b"1114111", b"1114112", b"55296", b"9" * 20, b"9" * 60] * 2,
    *[b"u", b"~", b"m", b"M", b"t", b"R", b"c", b"n", b"$y", b"S", b"@"] * 2,
    *[b"\x1b[97:65;5u", b"\x1b[97;5:3u", b"\x1b[1114112u", b"\x1b[55296;1;55296u", b"\x1b[;;u", b"\x1b[1;99999999u"],
    *[b"\x1b[48;40;120;800;1200t", b"\x1b[48;0;0;0;0t", b"\x1b[48;12;40;0;0t"],
    *[
        b"\x1b[<0;999999;999999M",
        b"\x1b[<0;3;3M\x1b[<0;3;3m",
        b"\x1b[<99999999;1;1M",
        b"\x1b[<64;9;9M",
        b"\x1b[<32;-1;0M",
    ],
    *[b"\x1b[200~", b"\x1b[201~", b"pasted \xe8\xaf\x8d\x00\x1b[31m", b"\x1b[I", b"\x1b[O"],
    *[b"\x1b[?2026;1$y", b"\x1b[?2048;2$y", b"\x1b[1;1R", b"\x1b[99999;99999R", b"\x1b]11;rgb:1/2/3\x1b\\"],
    *["é".encode(), "词".encode(), "👩‍👩‍👧".encode(), b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc3", b"\xf0\x9f"],
]

FULL = 600_000  # bytes that no pipe holds


class Enduring(Endless):
    """An app that no key ends, that counts F12, and that handles no key while it is busy."""

    seen = 0
    busy = False

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and not event.is_forwarded:
            self.seen += event.key == "f12"
            while self.busy:
                await asyncio.sleep(0.001)
        await super().on_event(event)


def some_bytes(chance: random.Random) -> bytes:
    """Return a random mixture of sequences, parts of them, keys and noise."""
    return b"".join(chance.choices(PIECES, k=chance.randint(1, 12)))


@contextmanager
def terminal(stage: Stage, blocking: bool = True) -> Generator[Callable[[bytes], int]]:
    """Read input for the app as from a terminal, in the driver's own thread; yield what sends it bytes."""
    source, sink = os.pipe()
    os.set_blocking(sink, blocking)
    before = {number: signal.getsignal(number) for number in (signal.SIGTSTP, signal.SIGCONT)}
    driver = TerminalDriver(stage.app)
    for number, handler in before.items():
        signal.signal(number, handler)
    driver.fileno = source
    thread = threading.Thread(target=driver.run_input_thread, name="input of a test")
    thread.start()
    try:
        yield lambda data: os.write(sink, data)
    finally:
        os.write(driver._stop_writer, b".")  # pyright: ignore[reportPrivateUsage]
        thread.join()
        for end in (source, sink):
            os.close(end)


def send_random(strings: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send the app random strings; fail if one ends it, or keeps it from the next key."""
    chance = random.Random(0)

    async def script(stage: Stage) -> None:
        await stage.settled()
        monkeypatch.setattr(stage.engine, "send", stage.engine.asked.append)  # measure nothing more
        app, size = stage.app, Size(*stage.app.size)
        assert isinstance(app, Enduring)
        with terminal(stage) as send:
            for number in range(1, strings // BATCH + 1):
                batch = [some_bytes(chance) for _ in range(BATCH)]
                for string in batch:
                    send(string)
                send(END + CHECK)
                await stage.until(lambda number=number: app.seen == number, f"key after {batch}")
                assert app.is_running
                if len(app.screen_stack) > 1:
                    await stage.press("escape")
                if number % 20 == 0:
                    app.post_message(events.Resize(size, size))
        await stage.answered()

    play(script, size=(60, 16), kind=Enduring)


@pytest.mark.soak
def test_many_random_bytes_need_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert peak_memory(lambda: send_random(300, monkeypatch), warm_up=False) < MOST_MEMORY


@pytest.mark.slow
def test_what_the_app_has_not_taken_stays_in_the_terminal() -> None:
    async def script(stage: Stage) -> None:
        app = stage.app
        assert isinstance(app, Enduring)
        app.busy = True
        sent = refused = 0
        with terminal(stage, blocking=False) as send:
            while refused < 20:  # in a row
                try:
                    sent += send(CHECK * 200)
                    refused = 0
                except BlockingIOError:
                    refused += 1
                    await asyncio.sleep(0.005)
                assert sent < FULL
            app.busy = False
            await stage.until(lambda: app.message_queue_size == 0, "end")
        await stage.answered()

    play(script, kind=Enduring)


def test_a_held_key_does_not_keep_the_app_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for a reply up to a limit; after that, it takes only what has come."""
    waits: list[float] = []

    def select(wait: float) -> bool:
        waits.append(wait)
        return wait > 0 and len(waits) < 9

    clock = SimpleNamespace(monotonic=itertools.count().__next__)
    monkeypatch.setattr("attn_tui.tui.terminal.driver.time", clock)
    pacing = SimpleNamespace(outstanding=True, final_wait=4, replied=list[int]().append)
    drain: Any = TerminalDriver._drain  # pyright: ignore[reportPrivateUsage]
    drain(SimpleNamespace(_pacing=pacing, _read=lambda: b"a"), SimpleNamespace(select=select))
    assert waits == [3, 2, 1, 0]


@pytest.mark.parametrize("size", [(99_999, 99_999), (0, 0), (1_200, 30)])
def test_the_size_that_is_laid_out_is_bounded(size: tuple[int, int]) -> None:
    async def script(stage: Stage) -> None:
        app = stage.app
        assert isinstance(app, Enduring)
        with terminal(stage) as send:
            send(f"\x1b[48;{size[1]};{size[0]};0;0t".encode() + CHECK)
            await stage.until(lambda: app.seen, "the key")
        assert all(1 <= cells <= 1_000 for cells in app.size)

    play(script, kind=Enduring)


def test_text_that_is_typed_without_end_is_bounded_and_explained() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        for pane, keys in ((LabPane, ()), (LabPane, ("tab", "tab")), (SoftmaxPane, ())):
            await stage.opened(pane)
            await stage.press("escape", *keys)
            stage.send(*"9" * 45)
            await stage.still()
            assert "9" * 41 not in stage.text
            assert "at most 40 characters" in " ".join(stage.text.split())
            await stage.press("backspace")
            assert "at most 40 characters" not in " ".join(stage.text.split())
            await stage.press("escape")

    play(script)


def test_a_path_that_is_typed_without_end_is_bounded_and_explained() -> None:
    async def script(stage: Stage) -> None:
        await stage.press("e")
        form = stage.screen(ExportScreen)
        before = form.form.path.text
        for _ in range(3):
            stage.app.post_message(events.Paste("a" * 4000))
            await stage.answered()
        assert form.form.path.text == before.removesuffix(".svg") + "a" * 4000 + ".svg"
        assert form.form.objection == "must be at most 4096 characters"
        await stage.press("backspace")
        assert len(form.form.path.text) == len(before) + 3999
        assert not form.form.objection

    play(script)

"""The app while its engine is stopped: it takes keys, starts another one, and can be left."""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from digits import shows_number
from terminal_session import EVEN_STEPS, RIGHT, Session, opened

KEYS = 400  # their requests are more than a connection holds


@contextmanager
def stopped(ignored: int) -> Generator[Session]:
    """Open the app, and stop its engine, which is restarted after so many reports of silence."""
    first = f"{EVEN_STEPS}; from attn_tui.tui.compute import process; process._IGNORED = {ignored}"
    with opened("--no-config", first=first) as session:
        pid = session.process.pid
        engine = int(Path(f"/proc/{pid}/task/{pid}/children").read_text())
        os.kill(engine, signal.SIGSTOP)
        try:
            yield session
        finally:
            with suppress(ProcessLookupError):
                os.kill(engine, signal.SIGKILL)


def press_keys(session: Session) -> None:
    session.send(KEYS * RIGHT)
    session.until(lambda: shows_number(session.screen.lines, 64 + KEYS), "d_k")


def test_keys_are_shown_and_q_quits() -> None:
    with stopped(ignored=1_000_000) as session:
        press_keys(session)
        session.send(b"\x03")
        session.sees("q quits")
        session.quit()
        session.assert_no_process_left()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_ends_it(number: signal.Signals) -> None:
    with stopped(ignored=1_000_000) as session:
        press_keys(session)
        session.signal(number)
        assert session.ended() == 128 + number
        session.assert_restored()
        session.assert_no_process_left()


def test_another_engine_answers() -> None:
    with stopped(ignored=2) as session:
        session.send(RIGHT)
        session.sees("The computing process did not respond; restarting it.")
        session.shows(65)
        session.send(RIGHT)
        session.shows(66)
        session.quit()
        session.assert_no_process_left()

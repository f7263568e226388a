"""The app in a pseudo-terminal, shared by tests that leave it as they found it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest
from terminal_session import Session, opened


@pytest.fixture(scope="session")
def once() -> Iterator[Callable[[], Session]]:
    """Open the app when a test first needs it; leave it by q when all have had it."""
    with ExitStack() as stack:

        def leave(session: Session) -> None:
            session.quit()
            session.assert_no_process_left()

        @cache
        def shared() -> Session:
            session = stack.enter_context(opened("--no-config"))
            stack.callback(leave, session)
            return session

        yield shared


@pytest.fixture
def session(once: Callable[[], Session]) -> Session:
    """The app in the Lab at d_k 64, in a terminal that never replies; other tests use it, before and after."""
    once().send(b"64\r")
    once().shows(64).quiet()
    return once()

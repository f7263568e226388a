"""Takes what is typed and clicked as if it came slowly: each event once the one before has had its effect.

Textual sends a key on to the widget with the focus as soon as it arrives, while bindings run only after the key has
bubbled back to the app. Of keys that arrive together, those after one that opens a list, moves the focus or shows
another pane would therefore go to where the focus was. Here they wait, in order. A key on which nothing but bindings
can act is not sent at all.

Every message queue is first in, first out. So a callback that is sent after a key along the same path, from the
widget to the app, arrives when the key has had its effect. If the focus is elsewhere by then, a callback along its
path arrives when the new widget, or the new screen, is ready. While more waits, few frames are painted.

Of a double click whose first click opens or closes a screen, the second would press what has come under the mouse; it
is dropped.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from inspect import isawaitable
from typing import Any, Generic, TypeAlias, TypeVar

from textual import events
from textual.dom import DOMNode
from textual.errors import NoWidget
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget

from .paced_app import PacedApp

ReturnType = TypeVar("ReturnType")
_FRAME = 0.1  # seconds between frames while input waits
_DOUBLE = 0.5  # seconds between the clicks of a double click
Input: TypeAlias = events.InputEvent | events.Paste
Place: TypeAlias = tuple[Screen[Any], Widget | None]  # the screen on top, and its widget with the focus


class TypeAheadApp(PacedApp[ReturnType], Generic[ReturnType]):
    """An app that takes a key, a paste or a mouse event once the one before has had its effect."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead: deque[Input | Callable[[], object]] = deque()  # what waits
        self._acting = False  # whether something was taken that may not have had its effect
        self._pressed: tuple[events.MouseDown, Screen[Any]] | None = None  # the last button, and the screen then

    @property
    def changes_soon(self) -> bool:
        return super().changes_soon or (bool(self._ahead) and time.monotonic() - self.last_frame < _FRAME)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, (events.InputEvent, events.Paste)) and not event.is_forwarded:
            await self.do_last(event)
        else:
            await super().on_event(event)

    async def take(self, event: Input) -> None:
        """Send an event to the widget that it is for, or act on a key that is for none."""
        if self._receiver(event) is None:
            event._set_forwarded()  # pyright: ignore[reportPrivateUsage]  # as if it had bubbled back
            if isinstance(event, events.Key) and await self._check_bindings(event.key, priority=True):
                return
        await super().on_event(event)

    def simulate_key(self, key: str) -> None:
        """Press a key, as if it was typed before everything that waits."""
        self.do_next(events.Key(key, None))

    def do_next(self, action: Input | Callable[[], object]) -> None:
        """Take an event, or call a function, when what was taken last has had its effect."""
        self._ahead.appendleft(action)
        self.call_later(self._take_next)

    async def do_last(self, action: Input | Callable[[], object]) -> None:
        """Take an event, or call a function, when everything that waits has had its effect."""
        self._ahead += self._apart(action) if isinstance(action, events.Key) else [action]
        await self._take_next()

    def _apart(self, event: events.Key) -> Sequence[events.Key]:
        """Return Escape and a key for Alt and that key, sent alike, unless Alt and it do something."""
        typed = event.character
        if not event.key.startswith("alt+") or not typed or event.key in self.screen.active_bindings:
            return [event]
        key = typed if typed.isalpha() else event.key.rpartition("+")[2]
        return [events.Key("escape", None), events.Key(key, typed)]

    async def _take_next(self) -> None:
        """Take what waits, up to the first whose effect has to be awaited."""
        while self._ahead and not self._acting and self.is_running and self.return_code is None:
            action = self._ahead.popleft()
            self._acting = not isinstance(action, events.MouseMove)
            if isinstance(action, events.MouseEvent) and self._under(action) is None:
                self._acting = False  # Textual would remove the focus, without which no key works
                continue
            if isinstance(action, events.MouseDown) and self._repeats(action):
                self._acting = False
                continue
            before, receiver = (self.screen, self.focused), self._receiver(action)
            if isinstance(action, (events.InputEvent, events.Paste)):
                await self.take(action)
            elif isawaitable(done := action()):
                await done
            if self._acting:
                self._await_effect(receiver, before)
        self.delay_or_paint()

    def _receiver(self, action: object) -> Widget | None:
        """Return the widget to which an event is sent; None for a key on which nothing but bindings can act."""
        under = self._under(action) if isinstance(action, events.MouseEvent) else None
        receiver = under or self.focused or self.screen
        if isinstance(action, events.Key) and not any(map(_takes_keys, receiver.ancestors_with_self[:-1])):
            return None
        return receiver

    def _under(self, event: events.MouseEvent) -> Widget | None:
        """Return the widget under the mouse, if the event is on the screen as it is laid out."""
        with suppress(NoWidget):
            return self.mouse_captured or self.get_widget_at(event.x, event.y)[0]
        return None

    def _repeats(self, press: events.MouseDown) -> bool:
        """Return whether a press belongs to a double click that has opened or closed a screen; remember it."""
        before, self._pressed = self._pressed, (press, self.screen)
        if before is None or press.time - before[0].time > _DOUBLE or press.screen_offset != before[0].screen_offset:
            return False
        self._pressed = press, before[1]  # also for a third
        return self.screen is not before[1]

    def _await_effect(self, receiver: Widget | None, before: Place) -> None:
        """Go on when everything sent to `receiver` has passed through it, and through its ancestors to the app.

        After that the app is passed, because a widget that takes the focus does so by a message to the app.
        """
        ancestors = () if receiver is None else receiver.ancestors_with_self
        self._pass((*ancestors, self), partial(self._go_on, before))

    def _pass(self, pumps: Sequence[MessagePump], then: Callable[[], object]) -> None:
        """Call `then` after each of `pumps`, one after the other, has handled its messages; skip closed ones."""
        for at, pump in enumerate(pumps, 1):
            if pump.call_later(partial(self._pass, pumps[at:], then) if at < len(pumps) else then):
                return

    async def _go_on(self, before: Place) -> None:
        """End the effect if the focus is still at `before`; otherwise once the widget with the focus is ready."""
        receiver = self.focused or self.screen
        if (self.screen, self.focused) != before:
            self._await_effect(receiver, (self.screen, self.focused))
        elif not receiver.size:  # it has no place yet
            self.call_after_refresh(self._end_effect)
        else:
            await self._end_effect()

    async def _end_effect(self) -> None:
        self._acting = False
        await self._take_next()


def _takes_keys(node: DOMNode) -> bool:
    """Return whether a node acts on keys besides those of its bindings."""
    return hasattr(node, "on_key") or type(node)._on_key is not Widget._on_key  # pyright: ignore

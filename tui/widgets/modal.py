"""What all screens over the pane have in common: they ignore keys that arrive after the one that closed them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual import events
from textual.await_complete import AwaitComplete

if TYPE_CHECKING:
    from textual.screen import ModalScreen

    Base = ModalScreen[Any]
else:
    Base = object  # not a widget: a screen inherits the CSS of its first base that is one


class Modal(Base):
    """Makes a screen over the pane ignore keys that arrive in one read with the key that closes it.

    The app sends keys to a screen without waiting for their effects. Therefore this screen runs its bindings itself,
    before the next key, instead of in the app, and passes no key on to the pane.
    """

    @property
    def on_top(self) -> bool:
        """Whether this screen takes keys: it is open, and no other screen is over it."""
        return self.app.screen is self  # pyright: ignore[reportUnknownMemberType]

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Close the screen, unless it is already closed: Textual would close the screen below."""
        return super().dismiss(result) if self.on_top else AwaitComplete.nothing()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, (events.Key, events.Paste)) and not self.on_top:
            event.stop()
        else:
            await super().on_event(event)

    async def _on_key(self, event: events.Key) -> None:
        event.stop()
        bound = self.active_bindings.get(event.key)
        if bound is not None:
            await self.app.run_action(bound.binding.action, bound.node)  # pyright: ignore[reportUnknownMemberType]

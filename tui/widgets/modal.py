"""What all screens over the pane have in common: they close once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.await_complete import AwaitComplete

if TYPE_CHECKING:
    from textual.screen import ModalScreen

    Base = ModalScreen[Any]
else:
    Base = object  # not a widget: a screen inherits the CSS of its first base that is one


class Modal(Base):
    """Makes a screen over the pane close once, however often it is dismissed."""

    @property
    def on_top(self) -> bool:
        """Whether this screen takes keys: it is open, and no other screen is over it."""
        return self.app.screen is self  # pyright: ignore[reportUnknownMemberType]

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Close the screen, unless it is already closed: Textual would close the screen below."""
        return super().dismiss(result) if self.on_top else AwaitComplete.nothing()

"""The smallest Textual app: one line that counts keys."""

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static


class Bare(App[None]):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("right", "count", "count")]

    def compose(self) -> ComposeResult:
        self.count = 0
        self.line = Static("count 0")
        yield self.line

    def action_count(self) -> None:
        self.count += 1
        self.line.update(f"count {self.count}")


if __name__ == "__main__":
    Bare().run()

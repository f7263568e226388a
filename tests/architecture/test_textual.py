"""The private parts of Textual that the app uses, and why; another version may lack them."""

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
LIBRARIES = ("textual", "rich")

# By module: each private part, what it does, and what the app would do without it.
PRIVATE = {
    "tui.app.app": {
        "textual.css.stylesheet.Stylesheet._variables": "tells whether the theme has changed since the style sheets "
        "were parsed: they would be parsed twice as the app starts",
    },
    "tui.app.paned_app": {
        "textual.app.App._driver": "writes OSC 9, which is no part of a frame: alerts would only ring the bell",
    },
    "tui.terminal.diff_screen": {
        "textual._compositor": "has the frames of a screen: whole lines would be sent instead of differences",
        "textual._compositor.ChopsUpdate": "is a frame of changed regions: they would be sent whole",
        "textual._compositor.CompositorUpdate": "is a frame of any kind: differences could not be sent as one",
        "textual._compositor.LayoutUpdate": "is a frame of a whole screen: it would be sent whole",
        "textual.app.App._display": "sends each frame: differences could not take its place",
        "textual.app.App._fatal_error": "reports an error with all local variables: a crash would take seconds, and "
        "have no report of ours",
    },
    "tui.terminal.driver": {
        "textual.driver.Driver._size": "is the size until the first Resize: that of Rich would be "
        "taken, which has no bound",
        "textual.drivers.linux_driver.LinuxDriver._file": "is what the driver writes to: nothing would be seen where "
        "stderr is redirected, and a closed terminal would stop the writing thread, for which the app waits",
        "textual.drivers.linux_driver.LinuxDriver._get_terminal_size": "measures the terminal: one that reports "
        "99999 columns would have the app lay them out",
        "textual.drivers.linux_driver.LinuxDriver._must_signal_resume": "has the app paint everything again: after "
        "SIGSTOP and SIGCONT the screen would stay as others left it",
    },
    "tui.terminal.paced_app": {
        "textual._compositor.Compositor._full_map_invalidated": "has all widgets arranged again: a new one that is "
        "asked for its size would get no Resize (Textual issue 5024)",
        "textual._compositor.Compositor._visible_map": "tells whether a widget has scrolled since the layout: its "
        "place would be the one before",
        "textual.screen.Screen._compositor": "holds these two",
        "textual.screen.Screen._screen_resized": "lays a screen out in a size: two sizes on their way would bring "
        "each other back without end",
    },
    "tui.terminal.typeahead": {
        "textual.app.App._check_bindings": "runs the binding of a key: keys that no widget takes would do nothing",
        "textual.message.Message._set_forwarded": "marks a key as bubbled back to the app: it would be sent to the "
        "widget with the focus once more",
        "textual.widget.Widget._on_key": "tells which widgets take keys besides those of bindings: a field would not "
        "get what is typed",
    },
    "tui.widgets.lines": {
        "textual.screen.Screen._dirty_widgets": "are painted with the next frame: `refresh` would send two messages "
        "for each widget",
        "textual.widget.Widget._exchange_repaint_regions": "is asked by each frame what to paint: contents would be "
        "composed once a change, not once a frame",
        "textual.widget.Widget._repaint_regions": "are painted again: a key would paint the whole widget",
    },
}


@cache
def modules() -> dict[str, tuple[ModuleType, str]]:
    """Return the modules of tui and their sources, by name."""
    found: dict[str, tuple[ModuleType, str]] = {}
    for path in sorted((ROOT / "tui").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if "root" not in path.parts and path.stem not in ("__init__", "__main__"):  # root is attn_tui itself
            found[name] = importlib.import_module(f"attn_tui.{name}"), path.read_text()
    return found


def is_library(module: str) -> bool:
    return module.split(".")[0] in LIBRARIES


def classes_of(module: ModuleType) -> list[type]:
    return [each for each in [*vars(module).values()] if isinstance(each, type)]


@cache
def library_classes() -> frozenset[type]:
    """Return all loaded classes of Textual and Rich."""
    loaded = [module for name, module in [*sys.modules.items()] if is_library(name)]
    return frozenset(each for module in loaded for each in classes_of(module) if is_library(each.__module__))


@cache
def parts(owner: type) -> set[str]:
    """Return the private names of a class itself and of its instances."""
    try:
        source = inspect.getsource(owner)
    except (OSError, TypeError):
        source = ""
    return {*filter(is_private, (*vars(owner), *re.findall(r"\bself\.(\w+)", source)))}


def is_private(name: str) -> bool:
    return bool(re.match("_[a-zA-Z]", name)) and name not in ("_replace", "_asdict")  # of a named tuple


def library_bases(own: type, others: frozenset[type]) -> set[type]:
    """Return the classes of Textual and Rich below a class, and below those of `others` that it is mixed into."""
    below = [own, *(each for each in others if own in each.__mro__)]
    return {base for each in below for base in each.__mro__ if is_library(base.__module__)}


def uses(module: ModuleType, source: str, others: frozenset[type] = frozenset()) -> Iterator[str]:
    """Yield the private names of Textual and Rich that a module uses or overrides."""
    tree = ast.parse(source)
    anywhere = {name for each in library_classes() for name in parts(each)}
    elsewhere: set[str] = set()  # what is imported from other libraries
    own: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(where), level=0) if is_library(where):
                yield from (alias.name for alias in node.names if "._" in where or is_private(alias.name))
            case ast.Import() | ast.ImportFrom():
                elsewhere |= {alias.asname or alias.name for alias in node.names}
            case ast.ClassDef():
                kind = vars(module).get(node.name)
                bases = library_bases(kind, others) if isinstance(kind, type) else set[type]()
                theirs = {name for each in bases for name in parts(each)}
                for each in ast.walk(node):
                    match each:
                        case ast.Attribute(attr=name) if ast.unparse(each.value) in ("self", "cls", "super()"):
                            own.add(each)
                        case (
                            ast.FunctionDef(name=name)
                            | ast.AsyncFunctionDef(name=name)
                            | ast.Name(id=name, ctx=ast.Store())
                        ):
                            pass
                        case _:
                            continue
                    yield from {name} & theirs
            case _:
                pass
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=value, attr=name) if node not in own and ast.unparse(value) not in elsewhere:
                yield from {name} & anywhere
            case ast.Call(func=ast.Name(id="getattr" | "hasattr" | "setattr"), args=[_, ast.Constant(str(name)), *_]):
                yield from {name} & anywhere
            case _:
                pass


def exists(part: str) -> bool:
    """Return whether the installed version has a private part, given with all its names."""
    path, _, name = part.rpartition(".")
    try:
        owner = pkgutil.resolve_name(path)
    except (ImportError, AttributeError):
        return False
    if not isinstance(owner, type):
        return hasattr(owner, name) or importlib.util.find_spec(part) is not None
    return any(name in parts(base) for base in owner.__mro__)


@pytest.mark.parametrize("module", PRIVATE)
def test_the_installed_textual_has_the_private_parts_that_a_module_uses(module: str) -> None:
    gone = [f"{part} {why}" for part, why in PRIVATE[module].items() if not exists(part)]
    assert not gone, f"{module} needs what Textual {version('textual')} lacks"


def test_every_private_part_that_is_used_has_a_reason_and_no_other_has() -> None:
    others = frozenset(each for module, _ in modules().values() for each in classes_of(module))
    found = {name: {*uses(module, source, others)} for name, (module, source) in modules().items()}
    assert {name: used for name, used in found.items() if used} == {
        name: {part.rpartition(".")[2] for part in reasons} for name, reasons in PRIVATE.items()
    }


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("def f(screen): screen._dirty_widgets.clear()", {"_dirty_widgets"}),
        ("def f(app): return getattr(app, '_driver')", {"_driver"}),
        ("from textual._compositor import Compositor as C", {"Compositor"}),
        ("class A(Widget):\n  def f(self): return self._repaint_regions, self._ours", {"_repaint_regions"}),
        ("class A(Widget):\n  def _on_key(self, event): pass", {"_on_key"}),
        ("class A(Widget):\n  def f(self): super()._exchange_repaint_regions()", {"_exchange_repaint_regions"}),
        ("class A(Widget):\n  _size = 3", {"_size"}),
        ("class A:\n  def f(self): self._size = self._driver", set[str]()),
        ("import os\ndef f(): os._exit(0)", set[str]()),
    ],
)
def test_a_private_part_is_found_in_any_form(code: str, names: set[str]) -> None:
    source = f"from textual.widget import Widget\n{code}"
    module = ModuleType("tried")
    exec(source, vars(module))
    assert {*uses(module, source)} == names


def test_a_part_that_is_gone_is_noticed() -> None:
    assert not exists("textual.app.App._never_there")
    assert not exists("textual.app.Gone._driver")
    assert not exists("textual._gone.Compositor")

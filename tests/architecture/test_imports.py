"""Who may import whom, read from the sources. docs/architecture.md gives the reasons."""

import ast
import re
import runpy
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from attn_tui.core import VERSION

ROOT = Path(__file__).parents[2]
SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for package in ("core", "tui")
    for path in sorted((ROOT / package).rglob("*.py"))
}
SETUP = runpy.run_path(str(ROOT / "setup.py"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS = PYPROJECT["tool"]["setuptools"]

# The packages, layer by layer: a package imports only from itself and from lower layers. `core` and `tui.panes` stand
# for the modules directly in these folders.
LAYERS = (
    ("core.recorder",),
    ("core",),
    ("core.attention",),
    ("core.statistics",),
    ("core.lab", "core.theory", "core.captures"),
    ("core.diagnosis", "core.watching", "core.training"),
    ("core.learning", "core.work"),
    ("core.tables",),
    ("core.program",),
    ("core.questions",),
    ("core.api",),
    ("tui.language",),
    ("tui.views", "tui.compute"),
    ("tui.terminal",),
    ("tui.settings", "tui.widgets"),
    ("tui.panes",),
    tuple(f"tui.panes.{path.parent.name}" for path in sorted((ROOT / "tui/panes").glob("*/pane.py"))),
    ("tui.app",),
    ("tui.cli",),
)
LAYER = {package: layer for layer, packages in enumerate(LAYERS) for package in packages}

# What a package must not import, although it is in a lower layer or a library.
NEVER = {
    "core": ("rich", "textual", "subprocess", "multiprocessing", "pickle", "signal"),
    "tui.views": ("textual", "core.files"),
    "tui.terminal": ("core", "tui.compute"),
    "tui.compute": ("rich", "textual"),
    "tui.widgets": ("tui.compute",),
    "tui.cli.commands": ("tui.panes",),
}
MAY = {("core.recorder.session", "signal"): "errors of the program's signal handlers are the program's"}

# What parses texts, by library, and the modules that may call it: one for all texts from outside, and those whose
# texts are our own.
PARSERS = {
    "ast": ("literal_eval",),
    "json": ("load", "loads", "decoder", "JSONDecoder"),
    "tomlkit": ("load", "loads", "parse", "TOMLFile"),
    "tomllib": ("load", "loads"),
}
PARSE = {
    "core.texts": "texts from outside",
    "core.api": "the JSON of a result that it wrote itself",
    "core.recorder.reports": "what the recorder tells the program that started it",
    "core.recorder.options": "the options of the program that started it; it imports nothing of attn-tui",
    "tui.language.po": "the texts of the catalogue",
}

# The modules that measure. Only requests and commands call them; other modules may import their types.
MEASURING = (
    "core.lab.experiment",
    "core.lab.sweep",
    "core.work.sweeps",
    "core.lab.rules",
    "core.lab.rule_curves",
    "core.lab.mechanisms",
    "core.captures.heads",
)


@cache
def imports(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Return the import statements of a file, also those inside functions."""
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]


def imported(module: str) -> set[str]:
    """Return the full names of what a module imports, also inside functions; our own start with core or tui."""
    names: set[str] = set()
    package = module.split(".")[:-1]
    for node in imports(SOURCES[module]):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        else:
            base = package[: len(package) - node.level + 1] if node.level else []
            names |= {".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names}
    return names


def below(name: str, root: str) -> bool:
    """Return whether the dotted name is the root or below it."""
    return name == root or name.startswith(root + ".")


@cache
def package_of(name: str) -> str:
    """Return the package of one of our modules: the longest package name that its name begins with."""
    return max((package for package in LAYER if below(name, package)), key=len, default="tui")


def own_imports(module: str) -> set[str]:
    return {name for name in imported(module) if name.split(".")[0] in ("core", "tui")}


def test_a_module_imports_from_its_own_package_and_from_lower_layers() -> None:
    higher = [
        f"{module} imports {name}"
        for module in SOURCES
        if not module.endswith("__init__")
        for name in own_imports(module)
        if package_of(name) != package_of(module) and LAYER[package_of(name)] >= LAYER[package_of(module)]
    ]
    assert not higher


def test_only_the_recorder_and_engines_use_threads_and_addresses() -> None:
    for module in SOURCES:
        if below(module, "core") and not any(below(module, each) for each in ("core.recorder", "core.work")):
            for name in imported(module):
                assert not any(below(name, each) for each in ("threading", "ctypes")), f"{module} imports {name}"


@pytest.mark.parametrize(("package", "never"), NEVER.items())
def test_forbidden_imports(package: str, never: tuple[str, ...]) -> None:
    modules = [module for module in SOURCES if below(module, package) and not below(module, "core.work")]
    assert modules
    for module in modules:
        for name in imported(module):
            assert (module, name) in MAY or not any(below(name, each) for each in never), f"{module} imports {name}"


def test_the_recorder_imports_pytorch_and_the_standard_library_alone() -> None:
    modules = [module for module in SOURCES if below(module, "core.recorder")]
    assert modules
    for module in modules:
        for name in imported(module):
            root = name.split(".")[0]
            assert root in {*sys.stdlib_module_names, "torch", "attn_tui_recorder"} or below(name, "core.recorder"), (
                f"{module} imports {name}"
            )


def test_what_a_module_imports_at_its_top_is_a_dependency() -> None:
    """What is optional is imported inside functions, which say what is missing."""
    found = (re.match(r"\w+", each) for each in PYPROJECT["project"]["dependencies"])
    declared = {*sys.stdlib_module_names, "attn_tui", *(each[0] for each in found if each)}
    for module, path in SOURCES.items():
        for node in ast.parse(path.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            undeclared = {name.split(".")[0] for name in names} - declared
            assert undeclared <= ({"torch"} if below(module, "core.recorder") else set()), f"{module}: {undeclared}"


def test_only_its_command_imports_the_recorder() -> None:
    for module in SOURCES:
        if not below(module, "core.recorder") and module != "tui.cli.commands.record":
            others = [name for name in imported(module) if not below(name, "core.recorder.files.whole")]
            assert not any(below(name, "core.recorder") for name in others), module


def test_the_recorder_runs_on_the_oldest_python_that_has_its_pytorch() -> None:
    for module, path in SOURCES.items():
        if below(module, "core.recorder"):
            ast.parse(path.read_text(), feature_version=(3, 10))


def parsers(path: Path) -> set[str]:
    """Return the parsers of PARSERS that a file names, such as json.loads, whatever it calls their library."""
    found: set[str] = set()
    called: dict[str, str] = {}
    for node in imports(path):
        if isinstance(node, ast.Import):
            called |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif node.module in PARSERS and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.add(f"{called.get(node.value.id)}.{node.attr}")
    return found & {f"{library}.{name}" for library, names in PARSERS.items() for name in names}


def test_one_module_parses_texts_from_outside() -> None:
    found = {module: parsers(path) for module, path in SOURCES.items()}
    assert {module for module, names in found.items() if names} == {*PARSE}


def test_a_parser_is_found_under_any_name(tmp_path: Path) -> None:
    for number, (code, name) in enumerate(
        (
            ("import json\njson.loads(x)", "json.loads"),
            ("import json as j\nread = j.load", "json.load"),
            ("def f():\n    from json import JSONDecoder as D", "json.JSONDecoder"),
            ("import tomllib\ntomllib.loads(x)", "tomllib.loads"),
            ("from tomlkit import parse", "tomlkit.parse"),
        )
    ):
        file = tmp_path / f"{number}.py"
        file.write_text(code)
        assert parsers(file) == {name}


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {
        module: {n if n in SOURCES else n.rpartition(".")[0] for n in own_imports(module)} - {module}
        for module in SOURCES
    }
    left = dict(graph)
    while free := [m for m, needs in left.items() if not needs & left.keys()]:  # those that import nothing left
        left = {m: needs for m, needs in left.items() if m not in free}
    assert not left, "these modules import each other, or a module that does"


def test_only_requests_and_commands_measure() -> None:
    for module in SOURCES:
        if below(module, "tui.compute") or below(module, "tui.cli.commands") or module.endswith("requests"):
            continue
        for name in imported(module) if below(module, "tui") else ():
            source, _, taken = name.rpartition(".")
            assert name not in MEASURING, f"{module} imports {name}"
            assert source not in MEASURING or taken[0].isupper(), f"{module} imports {name}, which is not a type"


def test_imports_of_our_own_are_relative() -> None:
    for module, path in SOURCES.items():
        if below(module, "tui.cli.root"):  # installed as `attn_tui` itself
            continue
        for node in imports(path):
            absolute = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                absolute = [node.module or ""]
            assert not [name for name in absolute if name.split(".")[0] in ("attn_tui", "core", "tui")], module


def test_a_name_of_a_class_stands_in_one_module() -> None:
    """So that it can be searched; private classes are found beside their use."""
    named = Counter(
        node.name
        for path in SOURCES.values()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert not [name for name, count in named.items() if count > 1]


def test_no_folder_of_core_holds_more_than_14_modules() -> None:
    for folder in (ROOT / "core").iterdir():
        if folder.is_dir():
            assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= 14, folder


def test_no_test_file_imports_another() -> None:
    for path in (ROOT / "tests").rglob("*.py"):
        assert not re.search(r"^\s*(from|import) (\w+\.)*test_", path.read_text(), re.M), path


def test_modules_that_tests_share_have_different_names() -> None:
    shared = [
        path.stem for path in (ROOT / "tests").glob("*/*.py") if not path.stem.startswith(("test_", "conftest"))
    ]
    assert not [*(Counter(shared) - Counter(set(shared)))]


def test_every_file_that_is_not_a_module_is_installed_with_its_package() -> None:
    """A catalogue is not: setup.py compiles it."""
    patterns = SETUPTOOLS["package-data"]
    folders = {path.parent for path in SOURCES.values()}
    for package in SETUP["packages"]():
        parts = package.split(".")[1:]
        folder = ROOT.joinpath(*parts) if parts else ROOT / SETUPTOOLS["package-dir"]["attn_tui"]
        matched = [set(folder.glob(pattern)) for pattern in patterns.get(package, [])]
        assert all(matched), f"{package}: a pattern matches nothing"
        data = [each for each in folder.rglob("*") if each.is_dir() and each.name != "__pycache__"]
        own = [folder, *(each for each in data if not folders & {each, *each.parents} - {folder, *folder.parents})]
        files = {
            path
            for each in own
            for path in each.iterdir()
            if path.is_file() and path.suffix not in (".py", ".po", ".mo")
        }
        assert files == set().union(*matched), package


def test_the_version_is_the_first_of_the_changelog_and_a_development_one_until_it_has_a_date() -> None:
    found = re.search(r"^## \[([\d.]+)\] - (.+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert found
    assert found[1] + (".dev0" if found[2] == "unreleased" else "") == VERSION

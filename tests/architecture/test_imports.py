"""Who may import whom, read from the sources; design and reasons: core computes, tui shows, arrows run down only."""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for package in ("core", "tui")
    for path in sorted((ROOT / package).rglob("*.py"))
}
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]

# Each floor of core may import from its own room and from lower floors.
FLOORS = (
    {"arrays", "errors", "landmarks", "blas", "memory", "interpolation"},
    {"parameters"},
    {"attention"},
    {"statistics"},
    {"lab", "captures"},
    {"export"},
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

# What measures, and the only modules of tui that may have it measured.
MEASURING = (
    "core.lab.experiment",
    "core.lab.sweep",
    "core.lab.rules",
    "core.lab.rule_curves",
    "core.lab.mechanisms",
    "core.captures.heads",
)
MAY_MEASURE = ("tui.work", "tui.plain")

# What the lab draws and measures with, and what theory predicts with instead: neither may lean on the other.
DRAWING = {"core.lab.experiment", "core.lab.sampling"}
THEORY = {
    f"core.lab.{name}" for name in ("theory", "curves", "quadrature", "query_norm", "score_law", "score_moments")
}

every_module = pytest.mark.parametrize("module", SOURCES)


def imported(module: str) -> set[str]:
    """Full dotted names of what a module imports, at its top or inside functions; our own start with core or tui."""
    names: set[str] = set()
    package = module.split(".")[:-1]
    for node in ast.walk(ast.parse(SOURCES[module].read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            names |= {".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names}
    return names


def own(module: str) -> set[str]:
    """The modules of our own that a module imports, without the names it takes from them."""
    return {
        known for name in imported(module) for known in SOURCES if known == name or known == name.rpartition(".")[0]
    }


def known_to(module: str) -> set[str]:
    """The modules of our own that a module imports, and those that they import, and so on; with itself."""
    known, unread = {module}, [module]
    while unread:
        new = own(unread.pop()) - known
        known |= new
        unread += new
    return known


def below(module: str, root: str) -> bool:
    return module == root or module.startswith(root + ".")


@every_module
def test_imports_of_our_own_are_relative(module: str) -> None:
    for node in ast.walk(ast.parse(SOURCES[module].read_text())):
        absolute = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            absolute = [node.module or ""]
        assert not [name for name in absolute if name.split(".")[0] in ("attn_tui", "core", "tui")]


@pytest.mark.parametrize("module", [name for name in SOURCES if below(name, "core")])
def test_core_knows_neither_terminal_nor_tui(module: str) -> None:
    assert not [name for name in imported(module) if name.split(".")[0] in ("rich", "textual", "tui")]


@pytest.mark.parametrize("module", [name for name in SOURCES if name.count(".") and below(name, "core")])
def test_arrows_of_core_run_down_only(module: str) -> None:
    if module == "core.__init__":
        return
    room = module.split(".")[1]
    for name in imported(module):
        if below(name, "core"):
            other = name.split(".")[1]
            assert other == room or FLOOR[other] < FLOOR[room], f"{module} imports {name}"


def test_every_room_of_core_has_its_floor() -> None:
    assert {name.split(".")[1] for name in SOURCES if below(name, "core")} == {"__init__", *FLOOR}


@pytest.mark.parametrize(("one", "other"), [("lab", "captures"), ("captures", "lab")])
def test_the_lab_and_captures_do_not_know_each_other(one: str, other: str) -> None:
    modules = [name for name in SOURCES if below(name, f"core.{one}")]
    assert len(modules) > 5
    for module in modules:
        assert not [name for name in known_to(module) if below(name, f"core.{other}")], module


@pytest.mark.parametrize("module", sorted(THEORY))
def test_theory_does_not_know_how_the_experiment_draws_or_measures(module: str) -> None:
    assert not known_to(module) & DRAWING


def test_the_experiment_does_not_know_what_theory_says() -> None:
    assert known_to("core.lab.theory") >= THEORY
    for module in DRAWING:
        assert not known_to(module) & THEORY, module


@pytest.mark.parametrize("module", [name for name in SOURCES if below(name, "tui.views")])
def test_views_know_results_and_rich_but_no_textual(module: str) -> None:
    for name in imported(module):
        assert not below(name, "textual"), name
        assert not below(name, "tui") or below(name, "tui.views"), name


@pytest.mark.parametrize(
    "module", [n for n in SOURCES if below(n, "tui") and not any(below(n, may) for may in MAY_MEASURE)]
)
def test_only_the_compute_thread_and_plain_output_measure(module: str) -> None:
    for name in imported(module):
        source, _, taken = name.rpartition(".")
        assert name not in MEASURING, name
        assert source not in MEASURING or taken[0].isupper(), f"{name} is more than a type"


@every_module
def test_no_module_tells_more_than_one_story(module: str) -> None:
    assert len(SOURCES[module].read_text().splitlines()) <= 400


def test_packages_on_disk_are_the_packages_that_are_installed() -> None:
    on_disk = {f"attn_tui.{'.'.join(path.parent.relative_to(ROOT).parts)}" for path in SOURCES.values()}
    assert sorted(SETUPTOOLS["packages"]) == sorted(on_disk)


def test_every_file_that_is_no_module_is_installed_with_its_package() -> None:
    folders = {package: ROOT.joinpath(*package.split(".")[1:]) for package in SETUPTOOLS["packages"]}
    patterns = SETUPTOOLS["package-data"]
    matched = {package: [set(folders[package].glob(glob)) for glob in globs] for package, globs in patterns.items()}
    assert all(all(files) for files in matched.values()), "a pattern matches nothing"
    for package, folder in folders.items():
        files = {path for path in folder.iterdir() if path.is_file() and path.suffix != ".py"}
        assert files == set().union(*matched.get(package, [])), package

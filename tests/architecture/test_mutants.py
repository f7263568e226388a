"""Which tests watch over which sources, and the small faults that they are tried with."""

import ast
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rooms import ROOMS, ROOT, Room, room_of


@pytest.fixture
def mutants() -> ModuleType:
    """The tool, where its library is installed."""
    pytest.importorskip("cosmic_ray", reason="needs cosmic-ray: make .venv/installed-for-mutants")
    import mutants

    return mutants


def test_every_source_is_in_the_room_of_its_nearest_folder() -> None:
    for path in (path for package in ("core", "tui") for path in (ROOT / package).rglob("*.py")):
        relative = path.relative_to(ROOT).as_posix()
        near = {
            each: room for room in ROOMS for each in room.sources.split() if f"{relative}/".startswith(f"{each}/")
        }
        assert room_of(relative) is near[max(near, key=len)], relative
    assert room_of("core/captures/files/stored.py").name == "captures"
    assert room_of("core/scales.py").name == "parameters"
    assert room_of("tui/cli/commands/record.py").name == "recorder"


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_rooms_name_sources_and_tests_that_exist(room: Room) -> None:
    assert all((ROOT / each).exists() for each in room.sources.split())
    folder = ""
    for word in room.tests.split():
        folder = word if word.endswith("/") else folder
        assert word == folder or list((ROOT / "tests" / folder).glob(f"test_{word}.py")), word
    assert len(room.files()) == len(set(room.files())) > 0


def test_mutants_change_each_place_and_stay_python(mutants: Any, tmp_path: Path) -> None:
    source = tmp_path / "source.py"
    source.write_text(
        "@decorated(once=True)\n"
        "def decide(a: int | None, b: bool = False) -> int | None:\n"
        "    if (a is not None\n"
        "            and a < 3  # a comment\n"
        "            and not b):\n"
        "        return -a\n"
        "    found: int | None = a or 1\n"
        "    return found\n"
        "if found := decide(1): pass\n"
        "if TYPE_CHECKING: list(zip((), strict=True))\n"
    )
    drawn = [mutant for place in mutants.places(str(source)) for mutant in place]
    found = [mutant for mutant in drawn if mutants.is_python(mutant)]
    assert [mutant.operator for mutant in drawn if mutant not in found] == ["AddNot"]  # if not found := …
    codes = [mutant.code(source.read_text()) for mutant in found]
    functions: list[Any] = [ast.parse(code).body[0] for code in codes]
    tests = {ast.unparse(function.body[0].test) for function in functions}
    values = {ast.unparse(function.body[1].value) for function in functions}
    assert source.read_text() not in codes
    assert {"a < 3 and (not b)", "a is not None and (not b)", "a is not None and a < 3"} < tests
    assert {"a is not None and a <= 3 and (not b)", "a is not None and a < 3 and b"} < tests
    assert values == {"a or 1", "a and 1", "a or 2", "a or 0", "a", "1"}
    assert all(code.count("int | None") == 3 and "once=True" in code for code in codes)  # declarations stay
    assert all(mutant.diff(source.read_text()).count("\n+") >= 2 for mutant in found)


def test_lines_changed_are_those_of_the_new_text(mutants: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    diff = (
        "--- a/core/a.py\n+++ b/core/a.py\n@@ -3 +4,2 @@ def f\n-x\n+y\n+z\n@@ -9,2 +11,0 @@\n-x\n-y\n@@ -20 +19 @@\n"
    )

    def git(*_words: str) -> str:
        return diff

    monkeypatch.setattr(mutants, "git", git)
    assert mutants.lines_changed("HEAD") == {"core/a.py": {4, 5, 19}}


def test_a_room_has_the_same_mutants_alone_and_in_a_larger_sample(mutants: Any) -> None:
    watching, training = (next(room for room in ROOMS if room.name == name) for name in ("watching", "training"))
    both = mutants.drawn([watching, training], None, 6, 1)
    assert [len(both[room]) for room in (watching, training)] == [3, 3]
    assert mutants.drawn([training], None, 5, 1)[training][:3] == both[training]
    assert mutants.drawn([training], None, 3, 2)[training] != both[training]
    assert mutants.drawn([training], {"core/training/race.py": {1}}, None, 1) == {}


def test_the_score_counts_what_was_tried_and_is_rounded_down(mutants: Any) -> None:
    outcomes = {("lab", "killed"): 198, ("lab", "too long"): 1, ("lab", "survived"): 1, ("recorder", "not tried"): 2}
    assert mutants.score(Counter(outcomes)).splitlines()[2:] == [
        "| lab | 198 | 1 | 1 | 0 | 99 % |",
        "| recorder | 0 | 0 | 0 | 2 | – |",
        "| all | 198 | 1 | 1 | 2 | 99 % |",
    ]
    assert mutants.score(Counter()).count("\n") == 1


def test_tests_that_fail_without_a_mutant_judge_none(
    mutants: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mutants, "TESTS", "-c 'raise SystemExit(1)'")
    monkeypatch.chdir(tmp_path)
    for name in ("PYTHONPATH", "KERAS_BACKEND", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONDONTWRITEBYTECODE"):
        monkeypatch.setenv(name, "")  # restored at the end
    (training,) = (room for room in ROOMS if room.name == "training")
    drawn = mutants.drawn([training], {"core/training/race.py": set(range(60, 90))}, 2, 0)[training]
    room = replace(training, environment=sys.prefix)
    copy = mutants.copy_project(tmp_path)
    assert list(mutants.tried(room, drawn, copy)) == ["not tried", "not tried"]
    monkeypatch.setattr(mutants, "TESTS", "-c ''")  # which pass with any mutant
    assert list(mutants.tried(room, drawn, copy)) == ["survived", "survived"]
    assert all((copy / mutant.path).read_text() == (ROOT / mutant.path).read_text() for mutant in drawn)
    same = "-c 'from attn_tui.core.training import race; assert open(race.__file__).read() == open(\"{}\").read()'"
    monkeypatch.setattr(mutants, "TESTS", same.format(ROOT / "core/training/race.py"))
    assert list(mutants.tried(room, drawn, copy)) == ["killed", "killed"]


def test_nothing_is_left_of_a_run_that_is_ended(mutants: Any, tmp_path: Path) -> None:
    words = [sys.executable, mutants.__file__, "--sample", "1", "--room", "training"]
    with subprocess.Popen(words, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.DEVNULL) as run:
        while not [*tmp_path.glob("*/project/core")] and run.poll() is None:
            time.sleep(0.05)
        run.terminate()
    assert (run.returncode, [*tmp_path.iterdir()]) == (128 + signal.SIGTERM, [])


def test_an_operand_decides_if_the_whole_was_ever_another_one_without_it(
    mutants: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import operands

    assert mutants.TESTS == operands.TESTS
    noting = operands.Noting("a.py")
    text = noting.text(
        "def both(x, y):\n    return x and y > 0\n\n\ndef either(x, y):\n    return 1 if x or y else 0\n"
    )
    (tmp_path / "operands_seen.py").write_text(operands.SEEN)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("OPERANDS", str(tmp_path / "seen"))
    found: dict[str, Any] = {}
    exec(text, found)
    assert [found["both"](True, 1), found["both"](0, 1), found["either"](1, 1), found["either"](1, 0)] == [
        True,
        0,
        1,
        1,
    ]
    assert {*noting.operands} == {"a.py:2:11 0", "a.py:2:11 1", "a.py:6:16 0", "a.py:6:16 1"}
    assert {*(tmp_path / "seen").read_text().splitlines()} == {"a.py:2:11 0", "a.py:6:16 0"}

"""Small faults (mutants) that tests should notice, each tried with the tests of its room.

`--since HEAD~3` tries one mutant at every place in lines changed since then; `--sample 200 --seed 1` tries 200, as
many in every room. Sources are changed in a temporary copy. Prints mutants that survive as diffs, and the score by
room: the share that tests killed. Exit code 1 if any survived or was not tried.
"""

from __future__ import annotations

import argparse
import difflib
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from rooms import ROOMS, ROOT, Room, room_of

parso: Any = import_module("parso")  # neither has types
trees: Any = import_module("cosmic_ray.ast")
mutating: Any = import_module("cosmic_ray.mutating")
plugins: Any = import_module("cosmic_ray.plugins")

# Operators of cosmic-ray that are plausible slips; of others, such as + to <<, any test dies that runs the line.
SLIPS = {
    "": "NumberReplacer AddNot ReplaceAndWithOr ReplaceOrWithAnd ReplaceTrueWithFalse ReplaceFalseWithTrue "
    "ZeroIterationForLoop ExceptionReplacer ReplaceBreakWithContinue ReplaceContinueWithBreak",
    "ReplaceUnaryOperator_": "Delete_Not Delete_USub Delete_Invert",
    "ReplaceComparisonOperator_": "Eq_NotEq NotEq_Eq Is_IsNot IsNot_Is Lt_LtE LtE_Lt Gt_GtE GtE_Gt Lt_Gt "
    "Gt_Lt LtE_GtE GtE_LtE",
    "ReplaceBinaryOperator_": "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_FloorDiv Pow_Mul BitAnd_BitOr "
    "BitOr_BitAnd",
}
LEAST, TIMES = 20.0, 4.0  # limit of a mutant: seconds, and times what its tests take without a mutant
OUTCOMES = ("killed", "too long", "survived", "not tried")
TESTS = "-m pytest -x -p no:cacheprovider --hypothesis-profile few --hypothesis-seed 0 -m 'not slow and not soak'"


class DropOperand:
    """Leave out an operand of `and` or `or`: killed only where some test has it decide alone."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Yield where the operands are."""
        if node.type in ("and_test", "or_test"):
            yield from ((operand.start_pos, operand.end_pos) for operand in node.children[::2])

    def mutate(self, node: Any, index: int) -> Any:
        """Return the node without operand `index`, and without the operator before it or, of the first, after it."""
        if index:
            return parso.parse(
                "".join(each.get_code() for each in node.children[: 2 * index - 1] + node.children[2 * index + 1 :])
            )
        rest = "".join(each.get_code() for each in node.children[2:])
        return parso.parse(node.get_first_leaf().prefix + rest.lstrip())


OPERATORS: dict[str, Callable[[], Any]] = {"DropOperand": DropOperand} | {
    start + end: plugins.get_operator(f"core/{start}{end}") for start, ends in SLIPS.items() for end in ends.split()
}


@dataclass(frozen=True)
class Mutant:
    """A file with the change that an operator makes at its `occurrence`, which touches `lines`."""

    path: str
    operator: str
    occurrence: int
    lines: range

    def code(self, text: str) -> str:
        """Return the file's text with this change."""
        return mutating.mutate_code(text, OPERATORS[self.operator](), self.occurrence)

    def diff(self, text: str) -> str:
        """Return what it changes in the file's text."""
        before, after = text.splitlines(), self.code(text).splitlines()
        return "\n".join(difflib.unified_diff(before, after, self.path, self.operator, n=1, lineterm=""))


def main() -> int:
    """Draw mutants, try them, and print the survivors and the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", metavar="COMMIT", help="only lines changed since this commit")
    parser.add_argument("--sample", metavar="N", type=int, help="try N mutants, as many in every room; default: all")
    parser.add_argument("--seed", type=int, default=0, help="of the draw of places, and of a mutant at each place")
    parser.add_argument("--room", action="append", choices=[room.name for room in ROOMS], help="only this one")
    given = parser.parse_args()
    if given.since is None and given.sample is None:
        parser.error("which mutants? --since HEAD~3 takes lines changed since then, --sample 200 draws 200")
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))  # removes the copy
    changed = None if given.since is None else lines_changed(given.since)
    rooms = [room for room in ROOMS if given.room is None or room.name in given.room]
    by_room = drawn(rooms, changed, given.sample, given.seed)
    print(f"{sum(map(len, by_room.values()))} mutants in {len(by_room)} rooms", flush=True)
    outcomes: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = copy_project(Path(folder).resolve())
        for room, mutants in by_room.items():
            outcomes.update((room.name, word) for word in tried(room, mutants, copy))
    print(score(outcomes))
    return int(any(word in ("survived", "not tried") for _, word in outcomes))


def lines_changed(commit: str) -> dict[str, set[int]]:
    """Return the lines of sources, by file, that differ from those at `commit`. New files must be known to Git."""
    lines: dict[str, set[int]] = defaultdict(set)
    path = ""
    for line in git("diff", "--unified=0", "--no-ext-diff", commit, "--", "core", "tui").splitlines():
        if line.startswith("+++ "):
            path = line.removeprefix("+++ b/")
        elif found := re.match(r"@@ -\S+ \+(\d+),?(\d*) @@", line):
            lines[path].update(range(int(found[1]), int(found[1]) + int(found[2] or 1)))
    return lines


def drawn(
    rooms: list[Room], changed: dict[str, set[int]] | None, sample: int | None, seed: int
) -> dict[Room, list[Mutant]]:
    """Return one mutant a place, by room: of lines in `changed`, and at most `sample`, where these are not None.

    A room's are the same whatever the other rooms, and the first of a larger sample.
    """
    by_room: dict[Room, list[Mutant]] = {}
    paths = git("ls-files", "core/*.py", "tui/*.py").splitlines()
    for room in rooms:
        chance = random.Random(f"{room.name} {seed}")
        inside = (path for path in paths if room_of(path) is room and (changed is None or path in changed))
        near = (
            place for path in inside for place in places(path) if changed is None or changed[path] & {*place[0].lines}
        )
        by_room[room] = [chance.choice(place) for place in near]
        if sample is not None:
            chance.shuffle(by_room[room])
    turns = zip_longest(*(filter(is_python, mutants) for mutants in by_room.values()))
    in_turn = ((room, mutant) for turn in turns for room, mutant in zip(rooms, turn, strict=True) if mutant)
    found: dict[Room, list[Mutant]] = defaultdict(list)
    for room, mutant in islice(in_turn, sample):
        found[room].append(mutant)
    return {room: found[room] for room in rooms if room in found}


def is_python(mutant: Mutant) -> bool:
    """Return whether a mutant can be compiled: `if not found := …` cannot."""
    try:
        compile(mutant.code((ROOT / mutant.path).read_text()), mutant.path, "exec")
    except SyntaxError:
        return False
    return True


def places(path: str) -> list[list[Mutant]]:
    """Return the mutants of a file by the place that they change; annotations, decorators and the like have none."""
    found: dict[tuple[tuple[int, int], tuple[int, int]], list[Mutant]] = defaultdict(list)
    nodes = [(node, is_declaration(node)) for node in trees.ast_nodes(trees.get_ast((ROOT / path).read_text()))]
    for name, operator in ((name, make()) for name, make in OPERATORS.items()):
        positions = (
            (position, declared) for node, declared in nodes for position in operator.mutation_positions(node)
        )
        for occurrence, ((start, end), declared) in enumerate(positions):
            if not declared:
                found[start, end].append(Mutant(path, name, occurrence, range(start[0], end[0] + 1)))
    return [found[place] for place in sorted(found)]


def is_declaration(node: Any) -> bool:
    """Return whether a node is inside an annotation or a decorator, or is a check that changes no correct program."""
    if node.type == "if_stmt" and node.children[1].get_code().strip() == "TYPE_CHECKING":
        return True
    if node.parent is not None and node.parent.get_code().strip() == "strict=True":
        return True
    marks = {"tfpdef": ":", "annassign": ":", "funcdef": "->"}
    while (parent := node.parent) is not None:
        before = node.get_previous_sibling()
        if parent.type == "decorator" or (
            before is not None and marks.get(parent.type) == getattr(before, "value", "")
        ):
            return True
        node = parent
    return False


def copy_project(folder: Path) -> Path:
    """Copy files that Git knows or would add, link them under the installed name, and return the copy."""
    copy, package = folder / "project", folder / "names" / "attn_tui"
    for name in git("ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    package.mkdir(parents=True)
    for target in (copy / "core", copy / "tui", *(copy / "tui/cli/root").iterdir()):
        (package / target.name).symlink_to(target)
    once = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONDONTWRITEBYTECODE"), "1")
    os.environ |= {"PYTHONPATH": str(package.parent), "KERAS_BACKEND": "jax"} | once
    os.chdir(copy)  # where tests run
    return copy


def tried(room: Room, mutants: Iterable[Mutant], copy: Path) -> Iterator[str]:
    """Yield the outcome of each mutant with the tests of its room; print it."""
    python = ROOT / room.environment / "bin" / "python"
    if not python.exists():
        print(f"{room.name}: not tried; `make {room.environment}/installed` installs what its tests need")
        yield from ("not tried" for _ in mutants)
        return
    used = subprocess.check_output([python, "-c", "import attn_tui.core as core; print(core.__path__[0])"], text=True)
    if not Path(used.strip()).resolve().samefile(copy / "core"):
        raise SystemExit(f"{python} imports {used.strip()} instead of the copy at {copy}")
    # Once: tests keep no bytecode, since that of a mutant could be taken for the next one's.
    subprocess.run([python, "-m", "compileall", "-q", "core", "tui"], check=True)
    command = [str(python), *shlex.split(TESTS), *room.files()]
    begun = time.monotonic()
    word, output = outcome(command, 3600)
    took = time.monotonic() - begun
    if word != "survived":
        print(output[-2000:], f"{room.name}: not tried; its tests fail without a mutant", sep="\n")
        yield from ("not tried" for _ in mutants)
        return
    print(f"{room.name}: tests take {took:.0f} s without a mutant", flush=True)
    for mutant in mutants:
        source = copy / mutant.path
        text, status = source.read_text(), source.stat()
        source.write_text(mutant.code(text))  # newer than its bytecode
        word, _ = outcome(command, max(LEAST, TIMES * took))
        source.write_text(text)
        os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
        print(f"{room.name}: {word}: {mutant.path}:{mutant.lines[0]} {mutant.operator}", flush=True)
        if word == "survived":
            print(mutant.diff(text), flush=True)
        yield word


def outcome(command: list[str], seconds: float) -> tuple[str, str]:
    """Return the outcome of tests, and what they print; end what they started, also when this program is ended."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as tests:
        try:
            output, _ = tests.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            return "too long", str(error)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(tests.pid, signal.SIGKILL)
    return "killed" if tests.returncode else "survived", output


def score(outcomes: Counter[tuple[str, str]]) -> str:
    """Return a table of the outcomes by room, with the share killed of those tried, rounded down."""
    counts = [(room.name, [outcomes[room.name, word] for word in OUTCOMES]) for room in ROOMS]
    counts.append(("all", [sum(column) for column in zip(*(row for _, row in counts), strict=True)]))
    table = [("room", *OUTCOMES, "score"), ("---",) * (len(OUTCOMES) + 2)]
    for name, (killed, too_long, survived, untried) in counts:
        found = killed + too_long
        share = f"{100 * found // (found + survived)} %" if found + survived else "–"
        if found + survived + untried:
            table.append((name, *map(str, (killed, too_long, survived, untried)), share))
    return "\n".join(f"| {' | '.join(row)} |" for row in table)


def git(*words: str) -> str:
    """Return what Git prints of this project."""
    return subprocess.check_output(["git", *words], cwd=ROOT, text=True)


if __name__ == "__main__":
    sys.exit(main())

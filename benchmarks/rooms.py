"""Rooms of the house, and the test files that watch over each: `benchmarks/mutants.py` runs them for a mutant."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Room:
    """Folders and files of sources, and its tests: a folder of `tests/`, then its files without `test_` and `.py`."""

    name: str
    sources: str
    tests: str
    environment: str = ".venv"  # where its tests run

    def files(self) -> list[str]:
        """Return its test files in the order of the words, which is that in which they run."""
        found: dict[Path, None] = {}
        folder = ""
        for word in self.tests.split():
            if word.endswith("/"):
                folder = word
            else:
                found |= dict.fromkeys(sorted((ROOT / "tests" / folder).glob(f"test_{word}.py")))
        return [path.relative_to(ROOT).as_posix() for path in found]


ROOMS = (
    Room(
        "parameters",
        "core",
        "core/ parameters scales formula* grid models texts sources against api report_code cli/ refusals "
        "report_command command_help outside_text overwriting tui/ files language settings views/ panel bars "
        "docs/ json_page",
    ),
    Room(
        "attention",
        "core/attention",
        "core/ softmax scores computation precision cost row_gradients worked_example arithmetic "
        "low_precision_reference against_textbook golden",
    ),
    Room(
        "statistics",
        "core/statistics",
        "core/ summary tally histogram survey status merge coverage against_textbook golden",
    ),
    Room(
        "lab",
        "core/lab",
        "core/ experiment* components sampling against lab_extremes sweep rules against_textbook golden",
    ),
    Room("theory", "core/theory", "core/ predict score_law saturation quadrature normalised_theory deviations"),
    Room(
        "captures",
        "core/captures",
        "core/ capture_* captured_formats calls save heads head_attention arrays docs/ capture_page",
    ),
    Room(
        "diagnosis",
        "core/diagnosis",
        "core/ diagnosis_* arrays groups scale_by_position replay cli/ check_command diagnose_command several_files "
        "docs/ diagnose_page",
    ),
    Room(
        "judgement",
        "core/diagnosis/judgement",
        "core/ diagnosis_reading diagnosis_conventions diagnosis_verdicts diagnosis_agreement diagnosis_coarse "
        "diagnosis_recorded diagnosis_extremes arrays calibration",
    ),
    Room(
        "comparing",
        "core/diagnosis/comparing",
        "core/ comparing* score_change diagnosis_extremes cli/ compare_command",
    ),
    Room("heads", "core/diagnosis/heads", "core/ head* capture_features cli/ inspect_command"),
    Room("watching", "core/watching", "core/ watching cli/ watch_command views/ watching_view"),
    Room("training", "core/training", "core/ training cli/ train_command refusals command_help docs/ json_page"),
    Room("learning", "core/learning", "core/ learning* claim* cli/ learn_command tui/ learn_pane"),
    Room("work", "core/work", "core/ work sweep* rules cli/ executors resuming tui/ workers executor"),
    Room(
        "tables",
        "core/tables",
        "core/ table export cost api worked_example groups diagnosis_limits cli/ *_command json_lines html "
        "views/ cost_view watching_view",
    ),
    Room(
        "questions",
        "core/questions core/api",
        "core/ api arrays calls library_code views/ notice cli/ refusals reproduce *_command code_format json_lines "
        "executors resuming",
    ),
    Room("programs", "core/program", "core/ *_code cli/ code_format"),
    Room(
        "recorder",
        "core/recorder tui/cli/commands/record.py",
        "recorder/ options pieces operations layouts weights fused row_factors passes steps caches not_finite "
        "recorded_files reading assertion command students vllm",
        ".venv-torch",
    ),
    Room(
        "JAX",
        " ".join(f"core/captures/calls/jax_{name}.py" for name in ("functions", "place", "recording")),
        "core/ record_jax*",
        ".venv-jax",
    ),
    Room("views", "tui/views", "views/ * docs/ pictures"),
    Room("command line", "tui/cli", "cli/ * tui/ open_app"),
    Room(
        "terminal",
        "tui/terminal tui/language tui/settings",
        "tui/ reader cells contrast terminal_output any_bytes diff_screen frames language settings saved_settings "
        "keymap typeahead connection pacing pasting choosing stop_and_resume slow_terminal resizing",
    ),
    Room(
        "engine",
        "tui/compute",
        "tui/ engine executor process_engine schedule workers prefetch stopped_engine pacing pane_requests "
        "cli/ reproduce",
    ),
    Room(
        "panes",
        "tui/panes",
        "views/ every_view sweep_* rules_view softmax_view heatmap attention_views capture_facts help_view "
        "tui/ *_pane panes small capture_* sweep_* rules_* lab_* formula_rule current choosing selecting clicks "
        "exported_numbers entropy_curve finding help pane_requests docs/ pictures",
    ),
    Room("app", "tui", "tui/ * docs/ pictures"),
)


def room_of(path: str) -> Room:
    """Return the room of a source file: its own, or that of the nearest folder above it."""
    rooms = {each: room for room in ROOMS for each in room.sources.split()}
    return next(rooms[each.as_posix()] for each in (Path(path), *Path(path).parents) if each.as_posix() in rooms)

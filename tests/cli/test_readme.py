"""The READMEs and guides show what their commands print, each in its language; links of the README are absolute."""

import re
import runpy
import subprocess
from pathlib import Path

import pytest
from cli_runner import Captured, out_of
from rich.cells import cell_len

ROOT = Path(__file__).parents[2]
PAGES = {"en": ("README.md", "docs/guide.md", "docs/diagnose.md"), "zh": ("README.zh.md", "docs/guide.zh.md")}
BLOCKS = sorted(
    {
        (language, *block)
        for language, pages in PAGES.items()
        for page in pages
        for block in re.findall(r"```console\n\$ ([^\n]*)\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    }
)


def lines(text: str) -> list[str]:
    """Return the lines that are not blank."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def in_shell(program: str, command: str) -> str:
    """What a command prints in Bash, where attn-tui is this program."""
    code = f"attn-tui() {{ {program}; }}\n{command}"
    return subprocess.run(["bash", "-c", code], capture_output=True, text=True, encoding="utf-8", check=False).stdout


def test_there_are_commands() -> None:
    assert len(BLOCKS) > 10


@pytest.mark.parametrize(
    ("language", "command", "shown"),
    [pytest.param(*block, marks=pytest.mark.slow if "claims" in block[1] else ()) for block in BLOCKS],
    ids=[f"{language}: {command}" for language, command, _ in BLOCKS],
)
def test_a_command_prints_what_the_readme_shows(
    language: str, command: str, shown: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell says which words attn-tui gets; this process runs them, and the shell does the rest."""
    monkeypatch.chdir(ROOT)
    for name, value in {"ATTN_TUI_LANG": language, "COLUMNS": "80", "FOLDER": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    in_shell('echo "$*" >> "$FOLDER/calls"', command)
    for call in (tmp_path / "calls").read_text().splitlines():
        (tmp_path / call.replace("/", "_")).write_text(out_of(call.split(), __name__, capsys), "utf-8")
    assert lines(in_shell('cat "$FOLDER/${*//\\//_}"', command)) == lines(shown)


@pytest.mark.slow
def test_claims_are_chinese_in_80_cells(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    chinese = out_of(["claims", "--lang", "zh"], __name__, capsys)
    assert len(re.findall("[\u4e00-\u9fff]", chinese)) > 1000
    assert [line for line in chinese.splitlines() if cell_len(line) > 80] == []


def test_an_index_shows_no_relative_link() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    absolute = runpy.run_path(str(ROOT / "setup.py"))["readme_of_index"]
    with_address, without = absolute(readme, "https://host.example/owner/attn-tui"), absolute(readme, None)
    assert "![" in with_address
    assert "(https://host.example/owner/attn-tui/blob/HEAD/docs/index.md)" in with_address
    assert re.findall(r"\]\((?!https://)", with_address + without) == []

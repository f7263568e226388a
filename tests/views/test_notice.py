"""The message about a copied command."""

import re
import subprocess

from attn_tui.core.questions.question import in_shell
from attn_tui.tui.views.glyphs import ASCII, UNICODE
from attn_tui.tui.views.lines import line_width
from attn_tui.tui.views.notice import continued, copied_lines
from cases import for_each

WORDS = [
    ["attn-tui", "report"],
    ["attn-tui", "report", "--d-k", "512", "--n-keys", "4096", "--scale", "custom", "--multiplier", "0.05"],
    ["attn-tui", "inspect", "/a/very/long/path/" + "x" * 90 + "/file.npz", "--layer", "0", "--head", "3"],
    ["attn-tui", "inspect", "it's a $HOME with blanks.npz", "--head", "0"],
    ["attn-tui", "inspect", "\x1b[31m some blanks.npz", "--head", "0"],
]


@for_each("width", [40, 80])
@for_each("words", WORDS)
def test_a_shell_reads_the_lines_of_a_command_as_the_command(words: list[str], width: int) -> None:
    lines = continued(in_shell(words), width)
    assert all(line_width(((line, "key"),)) <= width for line in lines)
    script = "printf '%s\\0' " + "\n".join(lines)
    result = subprocess.run(["bash", "-c", script], capture_output=True, check=True, timeout=300)
    assert result.stdout.decode().split("\0")[:-1] == words


def test_a_command_stands_beside_the_message_or_below_it_whole() -> None:
    word = "a b" * 30
    lines = continued(in_shell(["attn-tui", "inspect", word]), 40)
    assert word in "".join(lines)
    (line,) = copied_lines("attn-tui report --d-k 512", 80, UNICODE)
    assert line[-1] == ("attn-tui report --d-k 512", "key")
    assert "Copied" in line[0][0]
    said, *command = copied_lines("attn-tui report --d-k 512", 40, ASCII)
    assert "Copied" in said[0][0]
    assert command == [(("attn-tui report --d-k 512", "key"),)]
    said, *_ = copied_lines("attn-tui report --d-k 512", 40, UNICODE)
    assert said[0][0].strip().endswith("it):")
    assert line_width(said) <= 40


@for_each("width", [*range(-1, 12), 40, 200])
@for_each(
    "word",
    ["a" * 300, "a b" * 30, f"a{' ' * 300}b", "词" * 90, "\u3000" * 90, "e\u0301" * 200, "\U0001f469\u200d" * 40],
)
def test_any_command_is_split_at_any_width(word: str, width: int) -> None:
    command = in_shell(["attn-tui", "inspect", word])
    lines = continued(command, width)
    assert len(lines) <= len(command)
    whole, split = (re.sub(r"[\s\\]", "", text) for text in (command, "".join(lines)))
    assert split == whole

"""docs/capture-format.md: its examples run, and what it says of names and metadata is what the reader accepts."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from attn_tui.core.captures.axes import LARGEST, MOST_HEADS, MOST_TEXTS
from attn_tui.core.captures.features import ALIASES, OF_ENTRIES
from attn_tui.core.captures.files import LARGEST_HEADER, CaptureError, numpy_files
from attn_tui.core.captures.files.stored import FLOATS
from attn_tui.core.captures.head import read_head
from attn_tui.core.captures.metadata import Metadata
from attn_tui.core.captures.naming import partner
from attn_tui.core.captures.reader import open_capture
from cases import for_each
from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

PAGE = (Path(__file__).parents[2] / "docs" / "capture-format.md").read_text("utf-8")
NUMPY, PYTORCH, *CONVERTERS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)


def section(title: str) -> str:
    """The text under a heading."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """The cells of the tables in a text, without headers."""
    tables = re.findall(r"^\|.*\|\n\|[-|]+\|\n((?:\|.*\|\n?)+)", text, re.M)
    return [[cell.strip() for cell in line[1:-1].split("|")] for table in tables for line in table.splitlines()]


def words(text: str) -> list[str]:
    """The texts set as code."""
    return re.findall(r"`([^`\n]+)`", text)


def write(folder: Path, extra: dict[str, np.ndarray] | None = None, **metadata: str) -> Path:
    """A capture of one layer, and further tensors and metadata."""
    q = np.random.default_rng(0).normal(size=(1, 2, 3, 4)).astype(np.float32)
    known = {"schema": "attn-tui/qk-2", "scale": "0.5", "causal": "no"}
    path = folder / "heads.safetensors"
    save_file({"layers.0.attn.q": q, "layers.0.attn.k": q, **(extra or {})}, path, known | metadata)
    return path


def test_the_numpy_example_writes_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(NUMPY, "NumPy example", "exec"), {})
    [name] = re.findall(r"^attn-tui inspect (.*)$", section("NumPy"), re.M)
    capture = open_capture(name)
    names = ("index", "heads", "kv_heads", "batch", "queries", "keys", "d_k", "scale", "causal", "mask")
    layers = [[str(getattr(layer, name)) for name in names] for layer in capture.layers]
    assert layers == rows(section("NumPy"))
    assert capture.notes == ()
    assert (capture.model, capture.lengths) == ("an example", (12, 9))
    for layer in capture.layers:
        visibility = read_head(capture, layer, 3).visibility
        assert visibility is not None
        [visible] = visibility.of(slice(1, 2), slice(None))
        np.testing.assert_array_equal(visible, np.tri(12, dtype=bool) & (np.arange(12) < 9))


def test_the_pytorch_example_compiles_and_writes_the_file_that_is_inspected() -> None:
    compile(PYTORCH, "PyTorch example", "exec")
    [name] = re.findall(r"^attn-tui inspect (.*)$", section("PyTorch"), re.M)
    assert f'save_file(tensors, "{name}", metadata)' in PYTORCH


def test_the_converters_compile() -> None:
    assert len(CONVERTERS) == 2
    for converter in CONVERTERS:
        compile(converter, "converter", "exec")


def test_the_tables_of_names_keys_and_tensors_are_current() -> None:
    renewed = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "tables.py"))["renewed_captures"]
    assert renewed(PAGE) == PAGE, "run `make docs`"


def test_other_names_of_keys_are_documented() -> None:
    assert {*ALIASES} <= {*words(section("Metadata").partition("are other names of")[0])}


def test_the_documented_values_of_causal_are_accepted(tmp_path: Path) -> None:
    [accepted] = [values for key, values, _ in rows(section("Metadata")) if key == "`causal`"]
    for value in words(accepted):
        assert Metadata(tmp_path, {"causal": value}).layer(0, 0, 1).causal is not None, value


def test_the_documented_keys_of_an_entry_of_layers_are_known() -> None:
    told = words(section("Metadata").partition("**Layers.**")[2].partition("Without any")[0])
    assert set(told) == {"layers", *OF_ENTRIES}


def test_every_example_of_a_name_is_recognised() -> None:
    examples = [word for word in words(section("Names").partition("- The word")[2]) if "3" in word]
    assert examples
    assert all(partner(name) for name in examples if "mask" not in name)


def test_every_format_is_documented() -> None:
    assert set(FLOATS) <= set(words(section("Kinds of files")))


def test_the_limits_are_documented() -> None:
    limits = section("Limits and refusals")
    for limit in (LARGEST, MOST_HEADS, MOST_TEXTS, LARGEST_HEADER, numpy_files.MOST_TEXTS):
        assert f"{limit:,}" in limits
    assert f"{LARGEST_HEADER >> 20} MiB" in limits
    assert f"{numpy_files.LARGEST_TEXT >> 20} MiB" in limits


def test_the_examples_of_tensors_that_are_refused_are_refused(tmp_path: Path) -> None:
    named = (
        section("Limits and refusals").partition("may change attention by its name")[2].partition("listed above")[0]
    )
    assert len(words(named)) >= 3
    for name in words(named):
        capture = open_capture(write(tmp_path, {f"layers.0.attn.{name}": np.ones(2, np.float32)}))
        with pytest.raises(CaptureError, match=f"{name}' may change attention"):
            read_head(capture, capture.layers[0], 0)


@for_each("link", re.findall(r"\]\(([^)]+)\)", PAGE))
def test_links_lead_to_headings(link: str) -> None:
    file, _, target = link.partition("#")
    page = (Path(__file__).parents[2] / "docs" / file).read_text("utf-8") if file else PAGE
    headings = re.findall(r"^## (.*)$", page, re.M)
    assert target in [re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-")) for heading in headings]

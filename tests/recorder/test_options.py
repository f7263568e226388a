"""What is asked of the recorder, which files are its own, and where those of ranks and steps go."""

import importlib
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.recorder.options import (
    Options,
    earlier_file,
    files_of,
    foreign_file,
    is_of_run,
    problem,
    recorded_files,
    size_in_bytes,
    wanted_layer,
    with_earlier_files,
)
from cases import for_each
from pytorch import torch

folders: Any = importlib.import_module("attn_tui.core.recorder.files.folder")
WHOLE = Options("a.safetensors")
STEPS = Options("run", every=10)


@for_each(
    ("layers", "number", "name", "wanted"),
    [
        (None, 7, "h.7", True), ("3", 3, "", True), ("3", 4, "", False), ("3", 2, "", False), ("3", 13, "", False),
        ("0,4,8-11", 0, "", True), ("0,4,8-11", 1, "", False), ("0,4,8-11", 4, "", True), ("0,4,8-11", 8, "", True),
        ("0,4,8-11", 11, "", True), ("0,4,8-11", 12, "", False), ("0,4,8-11", 7, "", False),
        ("1234567", 1234567, "", False), ("h\\.1", 1, "h.1", True), ("h\\.1", 1, "h.2", False),
        ("attn$", 0, "h.0.attn", True), ("attn$", 0, "h.0.attn.q", False),
    ],
)  # fmt: skip
def test_layers_are_numbers_ranges_or_an_expression_for_names(
    layers: str | None, number: int, name: str, wanted: bool
) -> None:
    assert wanted_layer(layers, number, name) == wanted


@for_each("name", ["rows", "batch", "every", "max_steps", "keep", "max_bytes"])
def test_numbers_are_at_least_1(name: str) -> None:
    usual = STEPS if name == "every" else WHOLE
    assert problem(usual) is None
    assert problem(replace(usual, **{name: 1})) is None
    assert problem(replace(usual, **{name: 0})) == (name, "must be at least 1, not 0")


@for_each(
    ("options", "name"),
    [
        (replace(WHOLE, ranks="all"), None), (replace(WHOLE, ranks="1"), "ranks"),
        (replace(WHOLE, layers="("), "layers"), (Options("run"), "path"), (replace(WHOLE, every=2), "path"),
        (replace(STEPS, layers="0-3,attn"), None),
    ],
)  # fmt: skip
def test_what_is_not_valid_is_named(options: Options, name: str | None) -> None:
    found = problem(options)
    assert (found and found[0]) == name


@for_each(
    ("text", "size"),
    [("256M", 256 << 20), ("1.5G", 3 << 29), ("300k", 300 << 10), ("300K", 300 << 10), ("1000000", 1_000_000),
     ("2T", 2 << 40), ("1MiB", 1 << 20), ("1MB", 1 << 20), ("7B", 7), (" 5 ", 5), ("1.123456k", 1150),
     *((text, None) for text in ("", "M", "1.5.2", "-1", "1m", "1.1234567k", "1" * 16, "1MM", "lots"))],
)  # fmt: skip
def test_a_size_has_a_unit_of_1024(text: str, size: int | None) -> None:
    if size is None:
        with pytest.raises(ValueError, match="not a size"):
            size_in_bytes(text)
    else:
        assert size_in_bytes(text) == size


def test_options_are_read_back_from_the_environment() -> None:
    full = replace(
        WHOLE, tokens=("a", "b"), query_tokens=("c",), reports=("/proc/1/fd/3", "pipe:[1]"), since=1.5, process=7,
        earlier=(("a.safetensors", 1, 2),), every=None, values=True, expect="1/d",
    )  # fmt: skip
    for options in (WHOLE, STEPS, full):
        assert Options.from_json(options.to_json()) == options


def files(folder: Path, *names: str, content: bytes = b"weights") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def test_files_of_a_recording_are_those_of_all_its_processes_and_ranks(tmp_path: Path) -> None:
    own = ("a.safetensors", "a.rank0.safetensors", "a.process12.safetensors", "a.rank1.process3-2.safetensors")
    others = ("aa.safetensors", "a.old.safetensors", "a.rank.safetensors", "a.npz")
    steps = ("run/step-000010.safetensors", "run/rank1/step-000010.safetensors")
    files(tmp_path, *own, *others, *steps, "run/last.safetensors", "run/rank1/x/step-000010.safetensors")
    assert {*files_of(Options(str(tmp_path / "a.safetensors")))} == {tmp_path / name for name in own}
    assert {*files_of(Options(str(tmp_path / "run"), every=1))} == {tmp_path / name for name in steps}


@for_each(
    ("name", "options", "foreign"),
    [
        ("a.safetensors", WHOLE, True), ("a.safetensors", replace(WHOLE, overwrite=True), False),
        ("a.rank1.safetensors", WHOLE, False), ("a.rank1.safetensors", replace(WHOLE, ranks="all"), True),
        ("a.process1.safetensors", WHOLE, False), ("run/step-000001.safetensors", STEPS, True),
        ("run/rank1/step-000001.safetensors", STEPS, False), ("run/last.safetensors", STEPS, False),
        ("run/rank1/step-000001.safetensors", replace(STEPS, ranks="all"), True),
    ],
)  # fmt: skip
@for_each("content", [b"weights", b""])  # an empty file has nothing to lose
def test_a_file_that_may_not_be_replaced_is_named_if_it_would_be(
    name: str, options: Options, foreign: bool, content: bytes, tmp_path: Path
) -> None:
    folder = tmp_path / f"{len(list(tmp_path.iterdir()))}.rank3.of"
    files(folder, name, content=content)
    found = foreign_file(replace(options, path=str(folder / options.path)))
    assert found == (folder / name if foreign and content else None)


def test_a_file_of_a_run_was_written_since_it_began(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    options = with_earlier_files(replace(WHOLE, path=str(path)))
    assert abs(options.since - time.time()) < 100
    assert not is_of_run(path, options)  # there is none
    assert earlier_file(options) is None
    files(tmp_path, path.name)
    for since, of_run in ((-1, True), (0, True), (1, False)):
        os.utime(path, ns=(10**18, 10**18))
        begun = replace(options, since=1e9 + since)
        assert is_of_run(path, begun) == of_run
        assert earlier_file(begun) == (None if of_run else path)
        assert recorded_files(begun) == []  # it is not a recording
    os.utime(path, (2e9, 2e9))  # dated later than now, as by another clock
    later = with_earlier_files(options)
    assert not is_of_run(path, later)
    os.utime(path, (2e9, 2e9 + 1))
    assert is_of_run(path, later)
    assert earlier_file(replace(later, since=3e9, every=1)) is None


@for_each(
    ("variables", "found"),
    [
        ({}, (0, 1)), ({"RANK": "2", "WORLD_SIZE": "4"}, (2, 4)), ({"RANK": "", "SLURM_PROCID": "3"}, (3, 1)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "SLURM_PROCID": "3"}, (1, 2)),
        ({"RANK": "x", "SLURM_NTASKS": "8"}, (0, 8)),
    ],
)  # fmt: skip
@for_each("ranks", ["0", "all"])
def test_ranks_of_a_distributed_run_have_files_of_their_own(
    variables: dict[str, str], found: tuple[int, int], ranks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")
    with monkeypatch.context() as patch:
        for name in named:
            patch.delenv(name, raising=False)
        for name, value in variables.items():
            patch.setenv(name, value)
        assert folders.rank_and_size() == found
        apart = ranks == "all" and found[1] > 1
        one = folders.Folder(Options(str(tmp_path / "a.safetensors"), ranks=ranks, overwrite=True))
        name = f"a.rank{found[0]}.safetensors" if apart else "a.safetensors"
        assert one.write(None, {}, {}) == one.write(3, {}, {}) == tmp_path / name
        steps = folders.Folder(Options(str(tmp_path / "run"), every=1, ranks=ranks, overwrite=True))
        where = tmp_path / "run" / (f"rank{found[0]}" if apart else "")
        assert steps.write(7, {"x": torch.ones(2)}, {}) == where / "step-000007.safetensors"


def test_only_a_file_that_was_there_before_is_replaced(tmp_path: Path) -> None:
    options = replace(WHOLE, path=str(tmp_path / "a.safetensors"), since=time.time() - 100)
    folder = folders.Folder(options)
    assert not folder.replaces_earlier(0)
    files(tmp_path, "a.safetensors")
    assert not folder.replaces_earlier(0)
    os.utime(tmp_path / "a.safetensors", (0, 0))
    assert folder.replaces_earlier(0)


def test_a_file_that_the_program_has_put_there_stays_and_the_oldest_beyond_those_to_keep_go(tmp_path: Path) -> None:
    folder = folders.Folder(Options(str(tmp_path / "run"), every=1, keep=2))
    ours = {"versions": '{"attn-tui": "1"}'}
    assert folder.write(1, {}, ours).name == "step-000001.safetensors"
    files(tmp_path, "run/step-000002.safetensors")
    beside = [folder.write(2, {}, ours).name for _ in range(2)]
    assert beside == [f"step-000002.process{os.getpid()}.safetensors"] * 2
    folder.write(3, {}, ours)
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert left == {"step-000002.safetensors", beside[0], "step-000003.safetensors"}

"""The settings file, and the environment variables that override it."""

import errno
import os
import stat
import tomllib
from pathlib import Path
from typing import Any, cast

import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.field import Field
from attn_tui.core.parameters import FIELDS, Parameters
from attn_tui.core.questions.parse import whole_number
from attn_tui.tui.app.keys import with_accepted_keys
from attn_tui.tui.settings.declared import SETTINGS, Setting, Settings, non_default, variable_of
from attn_tui.tui.settings.store import config_file, load, save, save_on_exit
from attn_tui.tui.terminal.themes import names
from cases import for_each

# A value of each setting that is not the default.
OTHER = {
    row.name: not row.default
    if isinstance(row.default, bool)
    else [*(row.choices() or ["dask:tcp://10.0.0.1:8786"])][-1]
    for row in SETTINGS
}


@pytest.fixture
def path(own_config: Path) -> Path:
    return config_file()


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# The file


def test_the_file_is_in_the_config_directory_and_without_it_settings_have_defaults(
    own_config: Path, path: Path
) -> None:
    assert config_file() == own_config / "attn-tui" / "config.toml"
    assert load(path, {}) == Settings(path=path)
    assert all(row.default == getattr(Settings(), row.name) for row in SETTINGS)
    for row in SETTINGS:
        row.check(row.default)


def test_without_a_path_nothing_is_read_or_saved(path: Path) -> None:
    write(path, "ascii = true")
    assert load(None, {}) == Settings()
    assert save_on_exit(load(None, {}), {"theme": "attn-light"}) == ()
    assert path.read_text() == "ascii = true"


@pytest.mark.parametrize("name", OTHER)
def test_a_setting_is_saved_and_loaded(path: Path, name: str) -> None:
    save(path, {name: OTHER[name]})
    assert load(path, {}) == Settings(**cast(Any, {name: OTHER[name]}), path=path)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_a_parameter_is_saved_and_loaded(path: Path, field: Field) -> None:
    value = field.stepped(getattr(Parameters(), field.name), 1)
    changed = non_default(Parameters().with_value(field.name, value))
    assert changed == {field.name: value}
    save(path, {"parameters": changed})
    assert load(path, {}) == Settings(parameters=changed, path=path)


def test_parameters_with_their_default_values_are_not_saved() -> None:
    assert non_default(Parameters()) == {}


def test_a_new_file_is_toml_after_a_comment(path: Path) -> None:
    save(path, {"theme": "attn-light", "parameters": {"d_k": 80}})
    text = path.read_text()
    assert text.startswith("# ")
    assert tomllib.loads(text) == {"theme": "attn-light", "parameters": {"d_k": 80}}
    assert list(path.parent.iterdir()) == [path]


def test_saving_keeps_comments_and_unchanged_values(path: Path) -> None:
    text = """\
# mine
theme = "nord"  # because of the snow

[keys]
quit = "ctrl+x"  # as ever
lab.redraw = "n"

[parameters]
# wide
d_k = 512
seed = 3
"""
    save(write(path, text), {"theme": "attn-light", "parameters": {"d_k": 80}})
    expected = text.replace('"nord"', '"attn-light"').replace("512", "80").replace("seed = 3\n", "")
    assert path.read_text() == expected
    assert load(path, {}).keys == {"quit": "ctrl+x", "lab.redraw": "n"}


@pytest.mark.parametrize("changes", [{"theme": "attn-light"}, {"hint": False, "learn": {"at": "q1"}}])
def test_saving_keeps_the_line_ends_and_the_byte_order_mark_of_the_file(path: Path, changes: dict[str, Any]) -> None:
    text = '# mine\ntheme = "nord"  # snow\n\n[parameters]\nd_k = 512\nseed = 3'
    save(write(path, text), changes | {"parameters": {"d_k": 80, "n_keys": 3}})
    plain, settings = path.read_bytes(), load(path, {})
    assert b"# mine\n" in plain
    assert b"# snow\n" in plain
    for mark in (b"", b"\xef\xbb\xbf"):
        save(
            write(path, mark + text.replace("\n", "\r\n").encode()),
            changes | {"parameters": {"d_k": 80, "n_keys": 3}},
        )
        assert path.read_bytes() == mark + plain.replace(b"\n", b"\r\n")
        assert load(path, {}) == settings


def test_saving_leaves_other_lines_of_a_file_with_both_line_ends_as_they_are(path: Path) -> None:
    save(write(path, 'lang = "zh"\r\nascii = true\ntheme = "nord"\r\n'), {"theme": "attn-light", "hint": False})
    assert path.read_bytes() == b'lang = "zh"\r\nascii = true\ntheme = "attn-light"\r\nhint = false\n'


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ('keys.lab.redraw = "n"', {"hint": False}),  # to which tomlkit would add without a new line
        ('[keys]\nquit = "x"', {"parameters": {"d_k": 80}}),
        ('keys.quit = "x"\nparameters.seed = 9\nparameters.d_k = 3\n', {"parameters": {"d_k": 80}}),
        ('keys.quit = "x"\nparameters.seed = 9\nparameters.d_k = 3\n', {"parameters": {}}),
        ("[parameters]\nd_k = 3\n[keys]\nquit = 'x'\n[learn]\nat = 'q'\n", {"learn": {"at": "r", "done": ["q"]}}),
    ],
)
def test_saving_loses_nothing_or_is_refused(path: Path, text: str, changes: dict[str, Any]) -> None:
    problems = save_on_exit(Settings(path=write(path, text)), changes)
    assert all("without loss" in problem for problem in problems)
    assert tomllib.loads(path.read_text()) == tomllib.loads(text) | ({} if problems else changes)


def test_saving_unchanged_values_does_not_write_the_file(path: Path) -> None:
    save(path, {"parameters": {"d_k": 80}})
    os.utime(path, (1, 1))
    save(path, {"parameters": {"d_k": 80}})
    assert path.stat().st_mtime == 1


def test_saving_keeps_the_file_s_mode_and_follows_a_link(path: Path, tmp_path: Path) -> None:
    target = write(tmp_path / "dotfiles" / "attn.toml", "")
    target.chmod(0o600)
    path.parent.mkdir()
    path.symlink_to(target)
    save(path, {"hint": False})
    assert path.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert load(path, {}).hint is False


def test_settings_saved_by_another_process_are_kept(path: Path) -> None:
    settings = load(path, {})
    save(path, {"theme": "attn-light"})
    assert save_on_exit(settings, {"parameters": {"d_k": 80}}) == ()
    assert load(path, {}) == Settings(theme="attn-light", parameters={"d_k": 80}, path=path)


@pytest.mark.parametrize("data", [b"theme = ", b"\xff\xfe", b"parameters = 3"])
def test_a_file_that_is_no_longer_valid_is_not_overwritten(path: Path, data: bytes) -> None:
    settings = load(path, {})
    write(path, data)
    (problem,) = save_on_exit(settings, {"parameters": {"d_k": 80}})
    assert problem.startswith(f"{path}: ")
    assert path.read_bytes() == data


def test_a_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    file = write(tmp_path / "file", "")
    (problem,) = save_on_exit(Settings(path=file / "attn-tui" / "config.toml"), {"hint": False})
    assert os.strerror(errno.ENOTDIR) in problem


# Errors in the file


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("theme = ", ["TOML"]),
        ("theme", ["TOML"]),
        ("a = " + "[" * 10_000, ["nested deeper than 100 levels"]),
        (".".join(["a"] * 3000) + " = 1", ["nested deeper than 100 levels"]),
        ("[" + ".".join(["a"] * 3000) + "]", ["nested deeper than 100 levels"]),
        ("[parameters]\nseed = " + "9" * 5000, ["more than 308 digits"]),
        ("[parameters]\nmultiplier = " + "9" * 400, ["more than 308 digits"]),
        ("[parameters]\nmultiplier = " + "9" * 308, ["parameters.multiplier: ", "from 1e-06 to 1000"]),
        ("[parameters]\nmultiplier = 1e999", ["parameters.multiplier: ", "inf"]),
        ("# " + "x" * (8 << 20), ["at most 8388608 bytes"]),
        (b"\xff\xfe\x00", ["UTF-8"]),
        ('theme = "mauve"', ["theme: ", "'mauve'", *names()]),
        ("theme = 3", ["theme: ", "3", *names()]),
        ("theme = [1]", ["theme: ", "[1]", *names()]),
        ('executor = "gpu"', ["executor: ", "'gpu'", "threads[:N]"]),
        ('executor = "threads:0"', ["executor: ", "from 1 to"]),
        ("executor = 3", ["executor: ", "3"]),
        ("ascii = 1", ["ascii: ", "1", "true or false"]),
        ('colour = "red"', ["colour: "]),
        ("asci = true", ["asci: ", "ascii?"]),
        ("[theme]\na = 1", ["theme.a: "]),
        ("[parameters]\nd_k = 0", ["parameters.d_k: ", "0", "1 to 16384"]),
        ("[parameters]\nn_keys = true", ["parameters.n_keys: ", "True", "whole number"]),
        ('[parameters]\nd_k = "64"', ["parameters.d_k: ", "'64'", "whole number"]),
        ("[parameters]\nmean_q = nan", ["parameters.mean_q: ", "nan", "number from -100"]),
        ('[parameters]\nscale = "sqrt"', ["parameters.scale: ", "'sqrt'", "sqrt_d_k"]),
        ("[parameters]\ndk = 3", ["parameters.dk: ", "parameters.d_k?"]),
        ("parameters = 3", ["parameters: "]),
        ("[keys]\nquit = 3", ["keys.quit: "]),
    ],
)
def test_an_error_is_reported_in_one_line_and_settings_are_not_saved(
    path: Path, text: str | bytes, words: list[str]
) -> None:
    settings = load(write(path, text), {})
    assert settings.path is None
    (problem,) = settings.problems
    assert problem.startswith(f"{path}: ")
    assert "\n" not in problem
    assert [word for word in words if word not in problem.removeprefix(f"{path}: ")] == []


def test_other_settings_apply_in_spite_of_an_error(path: Path) -> None:
    settings = load(write(path, "ascii = true\n[parameters]\nd_k = 0\nseed = 2\nmean_q = 1"), {})
    assert settings.ascii
    assert settings.parameters == {"seed": 2, "mean_q": 1.0}
    assert len(settings.problems) == 1


def test_what_is_no_regular_file_is_reported_and_not_waited_for(path: Path) -> None:
    path.mkdir(parents=True)
    pipe = path / "pipe"
    os.mkfifo(pipe)
    for place, says in ((path, "is a directory"), (pipe, "is not a regular file"), (Path(os.devnull), "is not a")):
        settings = load(place, {})
        assert settings.path is None
        assert settings.problems[0].startswith(f"{place}: {says}")
        (problem,) = save_on_exit(Settings(path=place), {"hint": False})
        assert problem.startswith(f"{place}: settings not saved: {says}")


# The environment


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_a_variable_overrides_the_file_unless_it_is_empty(path: Path, setting: Setting) -> None:
    save(path, {setting.name: setting.default})
    assert getattr(load(path, {setting.variable: str(OTHER[setting.name])}), setting.name) == OTHER[setting.name]
    assert getattr(load(path, {setting.variable: ""}), setting.name) == setting.default


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_the_variable_of_a_parameter_overrides_the_file(path: Path, field: Field) -> None:
    usual = getattr(Parameters(), field.name)
    other = field.stepped(usual, 1)
    save(path, {"parameters": {field.name: usual, "batch": 5}})
    assert load(path, {variable_of(field): field.format(other)}).parameters[field.name] == other


@pytest.mark.parametrize(("text", "value"), [("1", True), ("yes", True), ("On", True), ("0", False), ("no", False)])
def test_a_flag_accepts_the_usual_words(text: str, value: bool) -> None:
    assert load(None, {"ATTN_TUI_ASCII": text}).ascii is value


def test_a_model_of_the_environment_replaces_what_the_file_has_of_its_attention(path: Path) -> None:
    save(path, {"parameters": {"d_k": 5, "batch": 7}})
    parameters = load(path, {"ATTN_TUI_MODEL": "gpt2"}).parameters
    assert ("d_k" in parameters, parameters["batch"]) == (False, 7)


def test_a_number_as_the_scale_means_the_custom_rule() -> None:
    assert load(None, {"ATTN_TUI_SCALE": "0.05"}).parameters == {"scale": "custom", "multiplier": 0.05}


@for_each(
    ("name", "text", "accepted"),
    [
        ("ATTN_TUI_THEME", "mauve", "attn-dark"),
        ("ATTN_TUI_ASCII", "maybe", "true or false"),
        ("ATTN_TUI_D_K", "0", "1 to 16384"),
        ("ATTN_TUI_N_KEYS", "many", "1 to 1048576"),
        ("ATTN_TUI_SCALE", "sqrt", "sqrt_d_k"),
        ("ATTN_TUI_KEYS", "quit", "lab.redraw=n"),
        ("ATTN_TUI_KEYS", "lab.redraw=", "lab.redraw=n"),
    ],
)
def test_an_invalid_variable_is_an_error(name: str, text: str, accepted: str) -> None:
    with pytest.raises(InputError) as refused:
        load(None, {name: text})
    assert str(refused.value).startswith(f"{name}: ")
    assert repr(text) in str(refused.value)
    assert accepted in str(refused.value)


def test_whole_numbers_are_from_1_up_below_a_billion() -> None:
    assert [whole_number("--n", text) for text in ("1", "999999999")] == [1, 999_999_999]
    for text in ("0", "1000000000", "", "-1", "1.5", "²", "9" * 5000):
        with pytest.raises(InputError, match="--n: must be"):
            whole_number("--n", text)


def test_an_unknown_variable_is_reported_and_settings_are_still_saved(path: Path) -> None:
    settings = load(path, {"ATTN_TUI_DK": "3", "TERM": "xterm"})
    (problem,) = settings.problems
    assert problem.startswith("ATTN_TUI_DK: ")
    assert "ATTN_TUI_D_K?" in problem
    assert settings.path == path


# Keys


def test_keys_in_the_environment_override_those_in_the_file(path: Path) -> None:
    write(path, '[keys]\nquit = "Z"\nhelp = "F2"')
    environment = {"ATTN_TUI_KEYS": "quit=ctrl+x lab.redraw=n"}
    keys = with_accepted_keys(load(path, environment), environment).keys
    assert keys == {"quit": "ctrl+x", "help": "f2", "lab.redraw": "n"}


def test_invalid_keys_are_ignored_and_reported(path: Path) -> None:
    write(path, '[keys]\nquit = "Z"\nlab.view = "s"\nlab.redarw = "n"\n')
    environment = {"ATTN_TUI_KEYS": "help=nothing"}
    settings = with_accepted_keys(load(path, environment), environment)
    assert settings.keys == {"quit": "Z"}
    assert settings.path is None, "the file is not saved"
    of_help, of_redraw, of_view = sorted(settings.problems, key=lambda problem: problem.split(": ")[1])
    assert of_help.startswith("ATTN_TUI_KEYS: help: ")
    assert "'nothing'" in of_help
    assert of_redraw.startswith(f"{path}: keys.lab.redarw: ")
    assert "lab.redraw?" in of_redraw
    assert of_view.startswith(f"{path}: keys.lab.view: s ")
    assert "choose the scale rule" in of_view


def test_an_invalid_key_in_the_environment_does_not_prevent_saving(path: Path) -> None:
    environment = {"ATTN_TUI_KEYS": "help=nothing"}
    assert with_accepted_keys(load(path, environment), environment).path == path

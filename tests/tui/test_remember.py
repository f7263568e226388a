"""What is remembered from one time to the next: the settings file, and the environment over it."""

import os
import stat
import tomllib
from pathlib import Path

import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.parameters import FIELDS, Field, Parameters
from attn_tui.tui.remember import config_file, leave, load, save
from attn_tui.tui.settings import SETTINGS, Setting, Settings, unusual, variable_of
from attn_tui.tui.themes import names

OTHER = {"theme": "attn-light", "ascii": True, "mouse": False, "hint": False}  # than the default


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "attn-tui" / "config.toml"


def written(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def problem(text: str | bytes, path: Path) -> str:
    """The one thing that is wrong with a file of this text, and which is not to be saved."""
    settings = load(written(path, text), {})
    assert settings.path is None, "it is never written"
    assert len(settings.problems) == 1
    assert settings.problems[0].startswith(f"{path}: ")
    assert settings.problems[0].endswith("settings are not saved")
    assert "\n" not in settings.problems[0]
    return settings.problems[0].removeprefix(f"{path}: ").rpartition(";")[0]


# The file


def test_the_file_stands_in_the_config_directory(own_config: Path) -> None:
    assert config_file() == own_config / "attn-tui" / "config.toml"


def test_without_a_file_everything_is_as_usual(path: Path) -> None:
    assert load(path, {}) == Settings(path=path)


def test_with_no_file_asked_for_nothing_is_read_or_saved(path: Path) -> None:
    written(path, "ascii = true")
    assert load(None, {}) == Settings()
    assert leave(load(None, {}), {"theme": "attn-light"}) == ()
    assert path.read_text() == "ascii = true"


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_is_saved_and_read_again(path: Path, setting: Setting) -> None:
    name = setting.name
    save(path, {name: OTHER[name]})
    assert load(path, {}) == Settings(**{name: OTHER[name]}, path=path)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_every_parameter_is_saved_and_read_again(path: Path, field: Field) -> None:
    before = Parameters()
    value = field.stepped(getattr(before, field.name), 1)
    after = before.with_value(field.name, value)
    assert unusual(after) == {field.name: value}
    save(path, {"parameters": unusual(after)})
    settings = load(path, {})
    assert settings.problems == ()
    assert Parameters(**settings.parameters) == after  # type: ignore[arg-type]


def test_parameters_that_are_as_usual_again_leave_the_file() -> None:
    assert unusual(Parameters()) == {}


def test_saving_keeps_comments_and_everything_that_was_not_changed(path: Path) -> None:
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
    save(written(path, text), {"theme": "attn-light", "parameters": {"d_k": 80}})
    expected = text.replace('"nord"', '"attn-light"').replace("512", "80").replace("seed = 3\n", "")
    assert path.read_text() == expected
    assert load(path, {}).keys == {"quit": "ctrl+x", "lab.redraw": "n"}


def test_saving_what_is_there_already_leaves_the_file_untouched(path: Path) -> None:
    save(path, {"parameters": {"d_k": 80}})
    os.utime(path, (1, 1))
    save(path, {"parameters": {"d_k": 80}})
    assert path.stat().st_mtime == 1


def test_saving_keeps_the_file_s_mode_and_follows_a_link_to_it(path: Path, tmp_path: Path) -> None:
    target = written(tmp_path / "dotfiles" / "attn.toml", "")
    target.chmod(0o600)
    path.parent.mkdir()
    path.symlink_to(target)
    save(path, {"hint": False})
    assert path.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert load(path, {}).hint is False


def test_saving_leaves_no_other_file_behind(path: Path) -> None:
    save(path, {"hint": False})
    assert list(path.parent.iterdir()) == [path]


def test_what_somebody_else_saved_in_the_meantime_stays(path: Path) -> None:
    settings = load(path, {})
    save(path, {"theme": "attn-light"})
    assert leave(settings, {"parameters": {"d_k": 80}}) == ()
    assert load(path, {}) == Settings(theme="attn-light", parameters={"d_k": 80}, path=path)


@pytest.mark.parametrize("text", ["theme = ", "\xff\xfe", "parameters = 3"])
def test_a_file_that_broke_in_the_meantime_is_not_overwritten(path: Path, text: str) -> None:
    settings = load(path, {})
    data = text.encode("latin-1")
    written(path, data)
    (said,) = leave(settings, {"parameters": {"d_k": 80}})
    assert said.startswith(f"{path}: settings are not saved")
    assert path.read_bytes() == data


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    file = written(tmp_path / "file", "")
    (said,) = leave(Settings(path=file / "attn-tui" / "config.toml"), {"hint": False})
    assert "settings are not saved: Not a directory" in said


# What is not understood


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("theme = ", "is not TOML: Invalid value (at end of document)"),
        ("theme", "is not TOML: Expected '=' after a key in a key/value pair (at end of document)"),
        (b"\xff\xfe\x00", "is not UTF-8"),
        ("a = " + "[" * 10_000, "is not TOML"),
        ('theme = "mauve"', "theme: 'mauve' is not accepted; it takes one of attn-dark, attn-light, "),
        ("theme = 3", "theme: 3 is not accepted; it takes one of attn-dark"),
        ("theme = [1]", "theme: [1] is not accepted; it takes one of attn-dark"),
        ("ascii = 1", "ascii: 1 is not accepted; it takes true or false"),
        ('colour = "red"', "colour: there is no such setting"),
        ("asci = true", "asci: there is no such setting (did you mean ascii?)"),
        ("[theme]\na = 1", "theme.a: there is no such setting"),
        ("[parameters]\nd_k = 0", "parameters.d_k: 0 is not accepted; it takes a whole number from 1 to 16384"),
        ("[parameters]\nn_keys = true", "parameters.n_keys: True is not accepted; it takes a whole number"),
        ('[parameters]\nd_k = "64"', "parameters.d_k: '64' is not accepted; it takes a whole number"),
        ("[parameters]\nmean_q = nan", "parameters.mean_q: nan is not accepted; it takes a number from -100"),
        ('[parameters]\nscale = "sqrt"', "parameters.scale: 'sqrt' is not accepted; it takes one of none"),
        ("[parameters]\ndk = 3", "parameters.dk: there is no such setting (did you mean parameters.d_k?)"),
        ("parameters = 3", "parameters: there is no such setting"),
        ("[keys]\nquit = 3", "keys.quit: there is no such setting"),
    ],
)
def test_what_is_not_understood_is_said_in_one_line_and_the_file_is_left_alone(
    path: Path, text: str | bytes, words: str
) -> None:
    assert problem(text, path).startswith(words)


def test_what_is_understood_holds_beside_what_is_not(path: Path) -> None:
    settings = load(written(path, "ascii = true\n[parameters]\nd_k = 0\nseed = 2\nmean_q = 1"), {})
    assert settings.ascii
    assert settings.parameters == {"seed": 2, "mean_q": 1.0}
    assert len(settings.problems) == 1


def test_a_directory_in_the_file_s_place_is_said(path: Path) -> None:
    path.mkdir(parents=True)
    settings = load(path, {})
    assert (settings.path, settings.problems[0].startswith(f"{path}: is not a file")) == (None, True)


# The environment


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_has_a_variable_that_goes_before_the_file(path: Path, setting: Setting) -> None:
    name, variable = setting.name, setting.variable
    save(path, {name: getattr(Settings(), name)})
    assert getattr(load(path, {variable: str(OTHER[name])}), name) == OTHER[name]
    assert getattr(load(path, {variable: ""}), name) == getattr(Settings(), name), "an empty one is none"


@pytest.mark.parametrize(("text", "value"), [("1", True), ("yes", True), ("On", True), ("0", False), ("no", False)])
def test_a_flag_is_given_in_the_usual_words(text: str, value: bool) -> None:
    assert load(None, {"ATTN_TUI_ASCII": text}).ascii is value


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_every_parameter_has_a_variable_that_goes_before_the_file(path: Path, field: Field) -> None:
    usual = getattr(Parameters(), field.name)
    other = field.stepped(usual, 1)
    save(path, {"parameters": {field.name: usual, "batch": 5}})
    settings = load(path, {variable_of(field): field.format(other)})
    assert settings.parameters[field.name] == other


def test_a_number_for_the_scale_is_the_custom_rule_as_it_is_on_the_command_line() -> None:
    assert load(None, {"ATTN_TUI_SCALE": "0.05"}).parameters == {"scale": "custom", "multiplier": 0.05}


def test_keys_of_the_environment_go_before_those_of_the_file(path: Path) -> None:
    written(path, '[keys]\nquit = "z"\nhelp = "F2"')
    assert load(path, {"ATTN_TUI_KEYS": "quit=ctrl+x lab.redraw=n"}).keys == {
        "quit": "ctrl+x", "help": "f2", "lab.redraw": "n"
    }  # fmt: skip


def test_keys_that_cannot_be_are_left_out_and_said(path: Path) -> None:
    written(path, '[keys]\nquit = "z"\nlab.view = "s"\nlab.redarw = "n"\n')
    settings = load(path, {"ATTN_TUI_KEYS": "help=nothing"})
    assert settings.keys == {"quit": "z"}
    assert settings.path is None
    kept = "; this is left out, and settings are not saved"
    assert set(settings.problems) == {
        f"{path}: keys.lab.view: s is taken already, for 'next scale rule'{kept}",
        f"{path}: keys.lab.redarw: there is no such action (did you mean lab.redraw?); K shows all of them{kept}",
        "ATTN_TUI_KEYS: help: 'nothing' is no key; n, ?, f2, pageup and ctrl+x are some; this is left out",
    }


def test_a_key_of_the_environment_that_cannot_be_does_not_keep_settings_from_being_saved(path: Path) -> None:
    assert load(path, {"ATTN_TUI_KEYS": "help=nothing"}).path == path


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("ATTN_TUI_THEME", "mauve", "'mauve' is not accepted; it takes one of attn-dark"),
        ("ATTN_TUI_ASCII", "maybe", "'maybe' is not accepted; it takes true or false"),
        ("ATTN_TUI_D_K", "0", "'0' is not accepted; it takes a whole number from 1 to 16384"),
        ("ATTN_TUI_N_KEYS", "many", "'many' is not accepted; it takes a whole number from 1 to 8192"),
        ("ATTN_TUI_SCALE", "sqrt", "'sqrt' is not accepted; it takes one of none"),
        ("ATTN_TUI_KEYS", "quit", "'quit' is not accepted; it takes words like lab.redraw=n"),
    ],
)
def test_a_variable_that_is_not_accepted_is_refused_by_its_name(name: str, text: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        load(None, {name: text})
    assert str(refused.value).startswith(f"{name}: {words}")


def test_a_variable_that_is_none_of_ours_is_said(path: Path) -> None:
    settings = load(path, {"ATTN_TUI_DK": "3"})
    assert settings.problems == ("ATTN_TUI_DK: there is no such setting (did you mean ATTN_TUI_D_K?)",)
    assert settings.path == path, "it does not keep settings from being saved"


def test_the_default_theme_is_one(path: Path) -> None:
    assert Settings().theme in names()
    assert {setting.name: setting.default for setting in SETTINGS} == {
        setting.name: getattr(Settings(), setting.name) for setting in SETTINGS
    }


def test_the_first_file_says_what_it_is_and_is_toml(path: Path) -> None:
    save(path, {"theme": "attn-light", "parameters": {"d_k": 80}})
    text = path.read_text()
    assert text.startswith("# The settings of attn-tui")
    assert tomllib.loads(text) == {"theme": "attn-light", "parameters": {"d_k": 80}}

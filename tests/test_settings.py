"""Settings: where each value comes from, in which order, and what is said of one that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from wheelmem.settings import Settings, SettingsError, load_settings


def test_the_order_is_defaults_file_environment_block(tmp_path: Path) -> None:
    assert load_settings(tmp_path, env={}).look_up("arm_timeout") == (5.0, "default")
    (tmp_path / "wheelmem.toml").write_text('arm_timeout = 2\narms = ["keyword"]\n[weights]\nkeyword = 2\n[mine]\ndepth = 3\n')
    settings = load_settings(tmp_path, env={})
    assert settings.look_up("arm_timeout") == (2.0, str(tmp_path / "wheelmem.toml"))
    assert settings["arms"] == ("keyword",)
    assert settings["weights"] == {"keyword": 2.0}
    assert settings.define("mine.depth", 1, "how deep") == 3
    settings = load_settings(tmp_path, env={"WHEELMEM_ARM_TIMEOUT": "3.5", "WHEELMEM_MINE_DEPTH": "7"})
    assert settings.look_up("arm_timeout") == (3.5, "$WHEELMEM_ARM_TIMEOUT")
    assert settings.define("mine.depth", 1, "how deep") == 7
    assert settings.with_block({"arm_timeout": 1, "mine": {"depth": 9}})["mine.depth"] == 9
    assert settings["mine.depth"] == 7


def test_the_seeds_own_variables_are_heard() -> None:
    assert load_settings(Path("nowhere"), env={"MW_DATA_DIR": "/somewhere"}).look_up("data_dir") == ("/somewhere", "$MW_DATA_DIR")
    settings = Settings(env={"HONCHO_URL": "http://one", "WHEELMEM_HONCHO_URL": ""})
    assert settings.define("honcho.url", "", "address", env=("HONCHO_URL",)) == "http://one"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("arm_timeout", "soon", "setting arm_timeout must be a number, not 'soon' (from $WHEELMEM_ARM_TIMEOUT)"),
        ("limit", "2.5", "setting limit must be a whole number, not '2.5' (from $WHEELMEM_LIMIT)"),
        ("weights", "keyword=much", "setting weights must be name=number pairs, not 'keyword=much' (from $WHEELMEM_WEIGHTS)"),
    ],
)
def test_a_value_that_cannot_be_read_is_named(name: str, value: str, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        _ = load_settings(Path("nowhere"), env={f"WHEELMEM_{name.upper()}": value})[name]
    assert str(refused.value) == said


def test_a_secret_is_not_repeated() -> None:
    settings = Settings(env={"WHEELMEM_KEY": "hunter2"})
    with pytest.raises(SettingsError) as refused:
        settings.define("key", 1, "a number that is secret", secret=True)
    assert "hunter2" not in str(refused.value)


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    (tmp_path / "wheelmem.toml").write_text("limit = = 3")
    with pytest.raises(SettingsError, match=r"wheelmem\.toml is no TOML"):
        load_settings(tmp_path, env={})

"""A user without an account and without ``HOME``, as services and containers have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.device.attached import list_path
from mepof.home import home
from mepof.source.keyring import own_directory


def no_account(user: int) -> None:
    raise KeyError(user)


def test_what_is_looked_up_below_a_home_directory_is_not_there_without_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "MEPOF_PHONES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", no_account)
    monkeypatch.chdir(tmp_path)
    for path in (home(), list_path(), own_directory()):
        assert not path.exists()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert (home(), list_path()) == (tmp_path, tmp_path / ".config/mepof/phones.toml")

"""The list of a workplace's phones, and which of them a process gets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mepof.device.attached import attached, claim, model_of
from mepof.device.flashing import check_permission
from mepof.device.phone import DEVICE
from mepof.device.phone_journal import Entry, Journal
from mepof.device.protocol import flashable
from mepof.errors import EnvironmentLack, InputError, WorkError

PHONE = '[[phone]]\nname = "{name}"\nfastboot = "tcp:127.0.0.1:1"\nmodel = "model.toml"\n'
MODEL = 'title = "a phone"\nsource = "nowhere"\n'


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "phones.toml"
    monkeypatch.setenv("MEPOF_PHONES", str(path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "model.toml").write_text(MODEL)
    return path


def test_a_workplace_without_phones_says_where_to_list_them(workplace: Path) -> None:
    with pytest.raises(EnvironmentLack, match=r"phones.toml does not exist"):
        attached()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "`phone` is missing"),
        (PHONE.format(name="a").replace("fastboot", "adb"), "`fastboot` is missing, or `place`"),
        ("phone = []", "phone"),
        (PHONE.format(name="a") * 2, "`a` occurs twice"),
        (PHONE.format(name="../a"), "must be letters"),
        (PHONE.format(name="a") + "adbb = '1'\n", "unknown key `adbb`"),
    ],
)
def test_a_wrong_list_is_refused(workplace: Path, text: str, why: str) -> None:
    workplace.write_text(text)
    with pytest.raises(InputError, match=why):
        attached()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("flash = 'both'", "flash"),
        ("boot_seconds = 0", "boot_seconds"),
        ("header_version = 5", "header_version"),
        ("rot = 'su'", "unknown key `rot`"),
    ],
)
def test_a_wrong_model_is_refused(workplace: Path, line: str, why: str) -> None:
    workplace.write_text(PHONE.format(name="a"))
    (workplace.parent / "model.toml").write_text(f"{MODEL}{line}\n")
    with pytest.raises(InputError, match=why):
        model_of(attached()[0])


CLAIM = "from mepof.device.attached import claim; print(claim().name, flush=True); input()"


def test_each_process_gets_a_phone_of_its_own(workplace: Path) -> None:
    workplace.write_text(PHONE.format(name="a") + PHONE.format(name="b"))
    other = subprocess.Popen(
        [sys.executable, "-c", CLAIM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "a\n"
    assert claim().name == "b"
    assert claim().name == "b", "a process keeps its phone"
    third = subprocess.run(
        [sys.executable, "-c", CLAIM], capture_output=True, text=True, check=False, timeout=60
    )
    assert "every phone is in use: a, b" in third.stderr
    other.kill()
    other.communicate()


def test_what_a_session_gives_depends_on_the_model(workplace: Path) -> None:
    workplace.write_text(PHONE.format(name="a"))
    before = DEVICE.identity("arm64")
    assert DEVICE.describe("arm64").cpu == "a phone"
    (workplace.parent / "model.toml").write_text(MODEL + "boot_seconds = 60\n")
    assert DEVICE.identity("arm64") != before


def test_flashing_is_off_unless_the_user_says_so() -> None:
    with pytest.raises(InputError, match="the program flashes a phone"):
        check_permission()
    with pytest.raises(InputError, match="the device qemu cannot be flashed"):
        flashable("qemu")


ENTRY = Entry("begun", "b", "a", "boot_b", "/saved", "0" * 64, "1" * 64, 4096)


def test_a_line_of_the_journal_that_was_cut_off_does_not_count(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "phone/journal.jsonl")
    assert journal.last() is None
    journal.add(ENTRY)
    assert journal.unsettled() is None
    journal.add(Entry("flashing", "b", "a", "boot_b", "/saved", "0" * 64, "1" * 64, 4096))
    with journal.path.open("a") as file:
        file.write('{"at": "2026-')
    found = journal.unsettled()
    assert found is not None
    assert found.stage == "flashing"
    journal.add(ENTRY)
    assert journal.last() == ENTRY


def test_a_file_that_is_not_a_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text("hello\n")
    with pytest.raises(WorkError, match="is not a phone's journal: hello"):
        Journal(path).last()

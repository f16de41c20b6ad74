"""The list of a workplace's phones, and which of them a process gets."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from writers.boot_image import arm64_kernel
from writers.played_bench import Bench

from mepof.bootimg.compression import compress
from mepof.bootimg.directory import packed
from mepof.bootimg.image import write
from mepof.device import flashing, phone
from mepof.device.attached import attached, claim, model_of, reserve
from mepof.device.flashing import check_permission
from mepof.device.phone import DEVICE
from mepof.device.phone_journal import Entry, Journal
from mepof.device.protocol import flashable
from mepof.errors import EnvironmentLack, InputError, Interrupted, WorkError

PHONE = '[[phone]]\nname = "{name}"\nfastboot = "{name}-1"\nmodel = "model.toml"\n'
TWO = PHONE.format(name="a") + PHONE.format(name="b")
NEW_IMAGE = "header_version = 4\n[files]\nkernel = 'kernel'\n"
PROGRAMS = {
    "fastboot": "#!/bin/sh\ncat '{root}/fastboot-devices'\n",
    "adb": "#!/bin/sh\ngrep -q \"^$2\" '{root}/adb-devices' && echo device\n",
}
MODEL = 'title = "a phone"\nsource = "nowhere"\n'


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "phones.toml"
    monkeypatch.setenv("MEPOF_PHONES", str(path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "model.toml").write_text(MODEL)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, script in PROGRAMS.items():
        (programs / name).write_text(script.format(root=tmp_path))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    turn_on(path, fastboot="ab")
    return path


def turn_on(workplace: Path, fastboot: str = "", adb: str = "") -> None:
    """Have phones, by their letters, in fastboot or with their system up, and no others."""
    for program, phones in (("fastboot", fastboot), ("adb", adb)):
        listed = "".join(f"{name}-1\t{program}\n" for name in phones)
        (workplace.parent / f"{program}-devices").write_text(listed)


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
        (
            PHONE.format(name="a") + PHONE.format(name="b").replace("b-1", "a-1"),
            "`a-1` occurs twice",
        ),
        (PHONE.format(name="../a"), "must be letters"),
        (PHONE.format(name="a") + "adbb = '1'\n", "unknown key `adbb`"),
    ],
)
def test_a_wrong_list_is_refused(workplace: Path, text: str, why: str) -> None:
    workplace.write_text(text)
    with pytest.raises(InputError, match=why):
        attached()


@pytest.mark.parametrize("wanted", ["b", "0123ABCD"])
def test_one_of_several_phones_is_chosen_as_adb_does(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    b = PHONE.format(name="b").replace("b-1", "0123ABCD")
    workplace.write_text(PHONE.format(name="a") + b)
    monkeypatch.setenv("ANDROID_SERIAL", wanted)
    assert claim().name == "b"
    monkeypatch.setenv("ANDROID_SERIAL", "c")
    with pytest.raises(InputError, match=r"`c`, and .* lists no such phone"):
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


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("image = 'none.img'", "none.img cannot be read"),
        ("image = 'text.img'", "text.img is not an Android boot image"),
        ("image = 'init_boot.img'", "init_boot.img has no kernel"),
        ("image = 'boot.img'\nheader_version = 2", "has a header of version 4, not 2"),
        ("image = 'odd.img'", "the kernel in .*odd.img begins like none that mepof knows"),
        ("limits = 'none.toml'", "none.toml"),
        ("limits = 'model.toml'", "model.toml:3: unknown key `limits`"),
    ],
)
def test_what_a_model_names_is_read_before_anything_is_built(
    workplace: Path, line: str, why: str
) -> None:
    DEVICE.check("arm64")  # programs are checked on other machines too
    root = workplace.parent
    workplace.write_text(PHONE.format(name="a"))
    (root / "text.img").write_text("text")
    (root / "kernel").write_bytes(arm64_kernel())
    (root / "odd").write_bytes(b"UNCOMPRESSED_IMG" + arm64_kernel())
    images = (
        ("boot", NEW_IMAGE),
        ("init_boot", "header_version = 4\n"),
        ("odd", NEW_IMAGE.replace("'kernel'", "'odd'")),
    )
    for name, described in images:
        (root / "bootimg.toml").write_text(described)
        (root / f"{name}.img").write_bytes(write(packed(root)))
    (root / "model.toml").write_text(f"{MODEL}image = 'boot.img'\nheader_version = 4\n")
    DEVICE.check("arm64")
    with pytest.raises(InputError, match="has a kernel for arm64, not for x86-64") as told:
        DEVICE.check("x86-64")
    assert told.value.remedy == "write `set arch arm64`, or correct `image` in the model"
    workplace.write_text(
        PHONE.format(name="a") + PHONE.format(name="b").replace("model.toml", "other.toml")
    )
    (root / "other.toml").write_text(MODEL)
    DEVICE.check("x86-64")  # the phone b may be one
    workplace.write_text(PHONE.format(name="a"))
    (root / "model.toml").write_text(f"{MODEL}{line}\n")
    with pytest.raises(InputError, match=why):
        DEVICE.check("arm64")


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        (None, "correct `model` of the phone a in .*/phones.toml"),
        ("image = 'none.img'", "correct `image` in the model"),
        ("limits = 'none.toml'", "correct `limits` in the model"),
    ],
)
def test_a_file_of_a_phone_that_does_not_exist_has_a_remedy(
    workplace: Path, model: str | None, remedy: str
) -> None:
    workplace.write_text(PHONE.format(name="a"))
    if model is None:
        (workplace.parent / "model.toml").unlink()
    else:
        (workplace.parent / "model.toml").write_text(f"{MODEL}{model}\n")
    with pytest.raises(InputError, match=rf"No such file or directory \({remedy}\)$"):
        DEVICE.check("arm64")


CLAIM = "from mepof.device.attached import claim; print(claim().name, flush=True); input()"


def test_each_process_gets_a_phone_of_its_own(workplace: Path) -> None:
    workplace.write_text(TWO)
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


def test_a_phone_that_is_given_back_starts_its_system_and_is_free(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.on()
    at = f'fastboot = "tcp:127.0.0.1:{bench.port}"\nadb = "127.0.0.1:{bench.adb_port}"'
    path = tmp_path / "phones.toml"
    path.write_text(PHONE.format(name="a").replace('fastboot = "a-1"', at))
    (tmp_path / "model.toml").write_text(MODEL)
    monkeypatch.setenv("MEPOF_PHONES", str(path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    claimed = DEVICE.claim("arm64")
    assert claimed is not None and claimed.reserve is not None and claimed.release is not None
    claimed.reserve(print, threading.Event())
    handset = phone.claimed(tmp_path)
    phone._left[handset.name] = handset
    handset.to_fastboot()
    claimed.release()
    handset.wait_for_system(None)
    other = subprocess.run(
        [sys.executable, "-c", CLAIM], input="\n", stdout=subprocess.PIPE, text=True, check=True
    )
    assert other.stdout == "a\n"


def test_a_phone_is_in_use_whatever_another_list_calls_it(workplace: Path) -> None:
    workplace.write_text(PHONE.format(name="a"))
    assert claim().name == "a"
    other = workplace.with_name("other.toml")
    other.write_text(PHONE.format(name="b").replace("b-1", "a-1"))
    done = subprocess.run(
        [sys.executable, "-c", CLAIM],
        env={**os.environ, "MEPOF_PHONES": str(other)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "every phone is in use: b" in done.stderr


@pytest.mark.parametrize("where", ["fastboot", "adb"])
def test_a_phone_that_is_off_is_passed_over(workplace: Path, where: str) -> None:
    workplace.write_text(TWO)
    turn_on(workplace, **{where: "b"})
    said = list[str]()
    assert claim(said.append).name == "b"
    assert said == ["using b: no answer by adb or fastboot from a"]
    other = subprocess.run(
        [sys.executable, "-c", CLAIM], capture_output=True, text=True, check=False, timeout=60
    )
    assert "every phone that answers is in use: b" in other.stderr, "a run waits for it"


def test_the_first_phone_is_waited_for_if_none_answers(workplace: Path) -> None:
    workplace.write_text(TWO)
    turn_on(workplace)
    said = list[str]()
    assert claim(said.append).name == "a"
    assert said == []


@pytest.fixture
def permitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flashing, "_permission", threading.Event())
    flashing.permit()


@pytest.mark.usefixtures("permitted")
@pytest.mark.parametrize(("on", "waits"), [("ab", False), ("b", True), ("", True)])
def test_a_run_that_flashes_takes_the_first_phone_though_it_does_not_answer_yet(
    workplace: Path, tmp_path: Path, on: str, waits: bool
) -> None:
    workplace.write_text(TWO)
    turn_on(workplace, fastboot=on)
    said = list[str]()
    claimed = DEVICE.claim("arm64")
    assert claimed is not None and claimed.reserve is not None
    assert claimed == DEVICE.claim("arm64"), "two steps do not use it at once"
    claimed.reserve(said.append, threading.Event())
    first = "using a, the first phone in the list that no other run uses"
    wait = ": waiting for it, since no other is flashed instead (see ANDROID_SERIAL)"
    assert said == [first + wait * waits]
    turn_on(workplace, fastboot="b")
    assert phone.claimed(tmp_path).name == "a", "and keeps it"


@pytest.mark.usefixtures("permitted")
def test_a_run_that_flashes_says_that_it_takes_another_phone_than_the_first(
    workplace: Path, tmp_path: Path
) -> None:
    workplace.write_text(TWO)
    with Run(tmp_path, "one", "first") as one:
        assert one.says() == "first a"
        assert phone.claimed(tmp_path).name == "b"
    said = (tmp_path / "phone.log").read_text()
    assert said == "using b, the first phone in the list that no other run uses\n"


RUN = """
import sys
from pathlib import Path
from mepof.device.attached import claim
from mepof.device.phone import DEVICE
from mepof.events import StepNote
from mepof.plan.body import Resources
from mepof.plan.engine import Engine
from mepof.plan.model import Plan, Step
from mepof.plan.store import Store

class Body:
    phase = "run"
    def resources(self, step):
        return Resources(device=DEVICE.claim("arm64"))
    def identity(self, step):
        return {}
    def run(self, context):
        (context.output / "made").write_text("by any phone")
        print(context.step.id, claim().name, flush=True)
        if context.step.id == "first":
            assert input() == "go on"

def sink(event):
    if isinstance(event, StepNote):
        print(event.text, flush=True)

root, name, *steps = sys.argv[1:]
plan = Plan("a program.", 7, tuple(Step(each, "toy", {"step": each}, {}) for each in steps), ())
Engine(Store(Path(root) / "store"), {"toy": Body()}, 1, sink).run(plan, Path(root) / name)
print("ended", flush=True)
assert input() == "leave"
"""


class Run:
    """A process that runs steps on a phone, with the store that the others use."""

    def __init__(self, root: Path, name: str, *steps: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN, root, name, *steps],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def says(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip()

    def told(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()


def test_two_runs_with_one_store_use_two_phones_at_once(workplace: Path, tmp_path: Path) -> None:
    workplace.write_text(TWO)
    with Run(tmp_path, "one", "first") as one:
        assert one.says() == "first a"
        with Run(tmp_path, "two", "second") as two:
            assert two.says() == "second b"
            assert two.says() == "ended"


def test_a_run_waits_for_the_only_phone_until_another_run_ends(
    workplace: Path, tmp_path: Path
) -> None:
    workplace.write_text(PHONE.format(name="a"))
    with Run(tmp_path, "one", "first", "second") as one:
        assert one.says() == "first a"
        with Run(tmp_path, "two", "second") as two:
            assert two.says() == "waiting: every phone is in use: a"
            one.told("go on")
            # The one that waits has no lock that this step, which is its own, would wait for.
            assert one.says() == "second a"
            assert one.says() == "ended"
            one.told("leave")
            assert two.says() == "ended", "what it waited to make had been made"


def test_a_wait_for_a_phone_can_be_given_up(workplace: Path) -> None:
    workplace.write_text(PHONE.format(name="a"))
    other = subprocess.Popen(
        [sys.executable, "-c", CLAIM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "a\n"
    cancel, said = threading.Event(), list[str]()

    def note(line: str) -> None:
        said.append(line)
        cancel.set()

    with pytest.raises(Interrupted):
        reserve(note, cancel)
    assert said == ["waiting: every phone is in use: a"]
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


def test_a_missing_program_is_found_before_anything_is_built(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workplace.write_text(PHONE.format(name="a"))
    root = workplace.parent
    (root / "kernel").write_bytes(compress(arm64_kernel(), "lz4-legacy"))
    (root / "bootimg.toml").write_text(NEW_IMAGE)
    (root / "boot.img").write_bytes(write(packed(root)))
    (root / "model.toml").write_text(f"{MODEL}image = 'boot.img'\n")
    monkeypatch.setenv("PATH", str(root / "programs"))
    for program in ("lz4", "fastboot"):
        with pytest.raises(EnvironmentLack, match=f"{program} is not installed") as told:
            DEVICE.identity("arm64")
        assert told.value.remedy == f"apt-get install {program}"
        (root / "programs/fastboot").unlink(missing_ok=True)


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

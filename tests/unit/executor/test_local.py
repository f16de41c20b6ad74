"""Running on this machine: the store, and the files in the output directory."""

from __future__ import annotations

import errno
import os
import shutil
import tarfile
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from mepof import registry
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.events import Event, StepNote, unheard
from mepof.executor.local import LocalExecutor, _copy, _files, copy_finished, copy_results
from mepof.executor.programs import WrongProgram, compiled
from mepof.executor.stores import store_of
from mepof.g4 import Source
from mepof.kernel.modules import Module, Modules
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.engine import RunResult, StepResult
from mepof.plan.journal import read_runs
from mepof.plan.model import Plan, Result, Step
from mepof.plan.store import default_store


def test_the_store_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("MEPOF_STORE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert default_store() == Path("/home/me/.cache/mepof")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert default_store() == Path("/cache/mepof")
    monkeypatch.setenv("MEPOF_STORE", "/store")
    assert default_store() == Path("/store")


def test_apps_find_their_packages_in_the_store_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for former in ("/store", None):
        monkeypatch.setenv("MEPOF_STORE", former or "")
        if former is None:
            monkeypatch.delenv("MEPOF_STORE")
        before = default_store()
        with store_of(tmp_path, None, unheard):
            assert default_store() == tmp_path
        assert default_store() == before


def test_the_error_for_a_user_without_a_home_names_the_variable_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("MEPOF_STORE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(InputError, match="set MEPOF_STORE"):
        default_store()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("my store", "a blank"),
        ("my\nstore", "a blank"),
        ("a:b", "a colon"),
        ("a,b", "a comma"),
        *((f"a{sign}b", f"`{sign}`") for sign in "$%='\"`\\()<>&;|"),
        ("a\udcff", "is not UTF-8"),
    ],
)
def test_a_store_path_that_make_cannot_handle_is_refused(
    tmp_path: Path, name: str, why: str
) -> None:
    with pytest.raises(InputError) as caught:
        LocalExecutor(tmp_path / name, 1)
    assert caught.value.message.endswith(why) and caught.value.message.isprintable()
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_a_store_that_make_cannot_handle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("my disk")
    with pytest.raises(InputError, match="/my disk/store: its path contains a blank"):
        LocalExecutor(tmp_path / "link/store", 1)


def test_a_store_path_of_other_signs_is_used(tmp_path: Path) -> None:
    LocalExecutor(tmp_path / "ä#~+@[1]", 1)


def test_an_impossible_store_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for root in (tmp_path / "file", tmp_path / "file/store"):
        with pytest.raises(InputError, match="cannot be used: Not a directory"):
            LocalExecutor(root, 1)
    LocalExecutor(tmp_path / "new/store", 1)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_program_is_compiled_with_the_installed_words() -> None:
    made = compiled(Source("p.g4", "opt /src pgo rand kbench O2.\neval plain;opt pipe."))
    assert {result.kind for result in made.results} == {"image", "profile", "report"}
    with pytest.raises(WrongProgram, match="unknown algorithm"):
        compiled(Source("p.g4", "opt /src nonesuch rand kbench."))


def test_a_plug_in_that_cannot_be_used_stops_only_programs_that_name_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    point = EntryPoint("mine", "mepof.algorithm.pgo:Pgo", "mepof.algorithm")
    monkeypatch.setattr(
        registry, "entry_points", lambda group: [point] if group == point.group else []
    )
    registry._names.cache_clear()
    compiled(Source("p.g4", "opt /src pgo rand kbench."))
    for algorithm in ("mine", "mine+propeller"):
        with pytest.raises(EnvironmentLack, match=r"the algorithm `mine`, .*, is a class"):
            compiled(Source("p.g4", f"opt /src {algorithm} rand kbench."))


def test_every_result_leaves_its_files_in_the_output_directory(tmp_path: Path) -> None:
    (tmp_path / "kernel.profdata").touch()
    (tmp_path / "profile.json").touch()
    wanted = {
        "image": {"x.img": tmp_path / "kernel"},
        "profile": {"x.profdata": tmp_path / "kernel.profdata"},
        "report": {
            "x/report.json": tmp_path / "report.json",
            "x/report.html": tmp_path / "report.html",
            "x/cases.csv": tmp_path / "cases.csv",
            "x/means.csv": tmp_path / "means.csv",
            "x/images.csv": tmp_path / "images.csv",
            "x/comparisons.csv": tmp_path / "comparisons.csv",
            "x/boots.csv": tmp_path / "boots.csv",
        },
        "measurement": {},
    }
    for kind, files in wanted.items():
        assert _files(Result("x", kind, "step"), tmp_path) == files  # type: ignore[arg-type]


def test_each_package_of_a_kernel_has_its_name(tmp_path: Path) -> None:
    for name in ("package.deb", "package.headers.deb"):
        (tmp_path / name).touch()
    assert _files(Result("x", "package", "step"), tmp_path) == {
        "x.deb": tmp_path / "package.deb",
        "x.headers.deb": tmp_path / "package.headers.deb",
    }


def test_the_modules_of_a_kernel_are_packed_beside_its_image(tmp_path: Path) -> None:
    build = tmp_path / "build"
    (build / "modules").mkdir(parents=True)
    (build / "modules/veth.ko").write_bytes(b"module")
    (build / "kernel").touch()
    (build / "vmlinux").write_bytes(b"Linux version 6.12.95 (someone)")
    Modules(modules=(Module(name="veth", path="drivers/net/veth.ko", needs=(), text=1),)).write(
        build
    )
    plan = Plan("", 0, (), (Result("x", "image", "build"),))
    step = StepResult("0" * 64, build, True, 0.0, "1" * 64)
    (tmp_path / "out").mkdir()
    files = copy_results(RunResult({"build": step}, plan), tmp_path / "out")
    assert list(files) == ["x.img", "x.modules.tar"]
    with tarfile.open(files["x.modules.tar"]) as tar:
        assert tar.getnames()[0] == "lib/modules/6.12.95/kernel/drivers/net/veth.ko"


@pytest.mark.parametrize(("stored", "copied"), [(0o444, 0), (0o555, 0o111)])
def test_a_result_that_is_a_program_can_be_run(tmp_path: Path, stored: int, copied: int) -> None:
    (tmp_path / "kernel").write_bytes(b"kernel")
    (tmp_path / "kernel").chmod(stored)
    _copy(tmp_path / "kernel", tmp_path / "out/x.img")
    assert (tmp_path / "out/x.img").stat().st_mode & 0o111 == copied


def test_a_result_that_does_not_fit_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, target: Path) -> None:
        target.write_bytes(b"a part of it")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(OSError, match="No space left"):
        _copy(tmp_path / "kernel", tmp_path / "out/x.img")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("taken", ["plan.json", "x.img"])
def test_a_directory_in_the_place_of_a_result_is_named(tmp_path: Path, taken: str) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made/kernel").write_bytes(b"kernel")
    (tmp_path / "out" / taken).mkdir(parents=True)
    plan = Plan("", 0, (), (Result("x", "image", "build"),))
    step = StepResult("0" * 64, tmp_path / "made", True, 0.0, "1" * 64)
    with pytest.raises(InputError, match=rf"{taken} cannot be written: Is a directory") as caught:
        copy_results(RunResult({"build": step}, plan), tmp_path / "out")
    assert "--out" in str(caught.value.remedy)
    assert [path.name for path in (tmp_path / "out").iterdir() if path.name[0] == "."] == []


class Kernels:
    """Makes images; those of a step with the parameter ``bad`` fail."""

    kind = "image"
    phase: Phase = "build"

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        return {}

    def run(self, context: StepContext) -> None:
        if "bad" in context.params:
            raise WorkError("it does not boot", "look at it")
        (context.output / "kernel").write_text(str(context.params))

    @staticmethod
    def all() -> Mapping[str, Kernels]:
        return dict.fromkeys(("image", "kernel-build"), Kernels())


def test_a_failed_variant_leaves_the_results_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mepof.executor.local.BODIES", Kernels)
    names = ("bad", *"abcdef")
    steps = tuple(Step(name, "image", {name: 1}) for name in names)
    plan = Plan("", 0, steps, tuple(Result(name, "image", name) for name in names))
    out = tmp_path / "out"
    with pytest.raises(WorkError, match=r"bad: it does not boot") as caught:
        LocalExecutor(tmp_path / "store", 1).run(plan, out, unheard)
    assert {path.stem for path in out.glob("*.img")} == set("abcdef")
    assert (out / "plan.json").is_file()
    text = str(caught.value.remedy)
    assert text.startswith("look at it; ")
    assert text.endswith(f"; finished and copied to {out}: a.img, b.img, c.img, d.img and 2 more")
    assert read_runs(out)[-1].state == "failed"


def test_a_result_that_cannot_be_copied_does_not_hide_the_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mepof.executor.local.BODIES", Kernels)
    steps = (Step("bad", "image", {"bad": 1}), Step("good", "image"))
    plan = Plan("", 0, steps, (Result("good", "image", "good"),))
    (tmp_path / "out/good.img").mkdir(parents=True)
    with pytest.raises(WorkError, match="bad: it does not boot") as caught:
        LocalExecutor(tmp_path / "store", 1).run(plan, tmp_path / "out", unheard)
    assert "what is finished is not copied" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("share", "tool", "notes"), [(True, "ls", 1), (True, "ccache", 0), (False, "ls", 0)]
)
def test_kernels_that_share_no_objects_are_noted_once_and_only_where_they_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: bool, tool: str, notes: int
) -> None:
    monkeypatch.setattr("mepof.executor.local.BODIES", Kernels)
    (tmp_path / "bin").mkdir()
    shutil.copy("/bin/true", tmp_path / "bin" / tool)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    steps = tuple(Step(name, "kernel-build", {"name": name, "share": share}) for name in "ab")
    plan = Plan("", 0, steps, tuple(Result(name, "image", name) for name in "ab"))
    said: list[Event] = []
    executor = LocalExecutor(tmp_path / "store", 1)
    for _ in range(2):  # the second time both are cached
        executor.run(plan, tmp_path / "out", said.append)
    found = [event.text for event in said if isinstance(event, StepNote)]
    assert len(found) == notes
    assert all("each of 2 kernels compiles all of its files: apt-get" in text for text in found)


def test_results_that_are_not_in_this_store_are_not_copied(tmp_path: Path) -> None:
    made = StepResult("0" * 64, tmp_path / "elsewhere", True, 0.0, "1" * 64)
    plan = Plan("", 0, (), (Result("x", "image", "build"),))
    (tmp_path / "out").mkdir()
    assert copy_finished(tmp_path / "out", RunResult({"build": made}, plan)) == ""


def test_the_first_report_is_at_the_top_of_the_output_directory(tmp_path: Path) -> None:
    assert sorted(_files(Result("report", "report", "step"), tmp_path)) == [
        *("boots.csv", "cases.csv", "comparisons.csv", "images.csv", "means.csv"),
        *("report.html", "report.json"),
    ]

"""Apps of the user: descriptions, what they lay into a guest, and what is refused."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mepof.app.apps import load_app, memory_of
from mepof.app.laid import Laid
from mepof.app.launch import command_files
from mepof.app.own import OwnApp, check_distinct_apps, check_program_arch, load_own
from mepof.app.own_files import (
    GUEST_DIRECTORIES,
    all_files,
    check_distinct_files,
    image_of,
    own_files,
)
from mepof.app.starts import check_start, closure
from mepof.errors import EnvironmentLack, InputError
from mepof.steps import guest
from mepof.toolchain import shared_libraries

EXAMPLE = Path(__file__).parents[3] / "examples/sqlite-app/app.toml"
ACTION = '[[action]]\nname = "a"\nargv = ["/shop/run", "x"]\nseconds = 5\n'
SCRIPT = "#!/bin/busybox sh\n"


def described(directory: Path, *lines: str, action: str = ACTION) -> Path:
    """A description in a directory of its own, with `directory = "rootfs"` beside it."""
    path = directory / "shop" / "app.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(('title = "Shop"', *lines, "", action)))
    program = path.parent / "rootfs/shop/run"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(SCRIPT)
    program.chmod(0o755)
    return path


def laid(path: Path, arch: str = "x86-64") -> dict[str, Laid]:
    """What is laid, if every command can start there."""
    app = load_own(path)
    files = all_files(app, path, arch)
    command_files(app, image_of(app, path, arch), files, arch)
    return files


ROOTFS = 'directory = "rootfs"'


def test_an_app_is_known_by_its_title(tmp_path: Path) -> None:
    app = load_own(described(tmp_path, "memory = 1024"))
    assert (app.name, app.actions[0].argv) == ("Shop", ("/shop/run", "x"))
    assert memory_of([load_app("kbench"), app]) == 1024
    # The files of both are there at once.
    assert memory_of([app, load_app("kbench"), app]) == 2 * (1024 - 192) + 192


@pytest.mark.parametrize(
    ("lines", "action", "message"),
    [
        ((), "", "`action` is missing from the app"),
        (("action = []",), "", "there is no action"),
        ((), ACTION + ACTION, "`a` occurs twice"),
        ((), ACTION.replace('"/shop/run", "x"', ""), "`a` has no argv, and there is no image"),
        ((), ACTION.replace("/shop/run", ""), "the argv of `a` cannot be run"),
        ((), ACTION.replace("/shop/run", "a\\u0000"), "the argv of `a` cannot be run"),
        (
            (),
            ACTION.replace('["/shop/run", "x"]', "[]"),
            ":5: `action.0..argv`: `a` has no argv, and there is no image",
        ),
        (
            (),
            ACTION.replace('argv = ["/shop/run", "x"]\n', ""),
            ":3: `action.0..argv`: `a` has no argv, and there is no image",
        ),
        ((), ACTION.replace("/shop/run", ""), ":5: `action.0..argv`: the argv of `a` cannot be"),
        (
            ("[[setup]]", 'name = "s"', "seconds = 1", 'argv = ["/x"]', 'ready.argv = [""]'),
            ACTION,
            ":6: `setup.0..ready.argv`: the argv of `s` cannot be run",
        ),
        (
            (),
            ACTION.replace('["/shop/run", "x"]', '"/shop/run x"'),
            r""":5: `action.0..argv`: must be an array, such as `."/shop/run", "x".`""",
        ),
        (
            (),
            ACTION.replace('["/shop/run", "x"]', "'/shop/run \"x\" | wc'"),
            r'such as `."/bin/sh", "-ec", "/shop/run ."x." . wc".`',
        ),
        ((), ACTION.replace('["/shop/run", "x"]', "3"), ":5: `action.0..argv` must be an array"),
        ((), ACTION.replace("= 5", "= 0"), "must be greater than 0"),
        ((), ACTION + 'inputs = "x"', "unknown key `inputs`.*`input`"),
        ((), ACTION + "check = {stauts = 1}", "unknown key `stauts`.*`status`"),
        ((), ACTION + "check = {status = 256}", "must be less than or equal to 255"),
        (("memory = 100",), ACTION, "must be greater than or equal to 512"),
        (("memory = 65537",), ACTION, ":2: `memory` must be less than or equal to 65536"),
        ((), ACTION.replace("= 5", "= 0.09"), "`action.0..seconds`: must be from 0.1 to 86400"),
        ((), ACTION.replace("= 5", "= 86401"), "`action.0..seconds`: must be from 0.1 to 86400"),
        (
            (),
            ACTION + 'input = "a\\nb"',
            ":7: `action.0..input` must be the path of a file, on one",
        ),
        ((), ACTION + "check = {output = []}", "`action.0..check.output`: must be a text or sev"),
        ((), ACTION + 'user = ""', "`action.0..user`: must begin with a user's number or name"),
        ((), ACTION + 'user = ":0"', "`action.0..user`: must begin with a user's number or name"),
        (('suites = ["ipc"]',), ACTION, "only installed apps have suites"),
        (('directroy = "rootfs"',), ACTION, "unknown key `directroy`.*`directory`"),
        (
            ('files = [{from = "a", to = "b"}]',),
            ACTION,
            ":2: `files.0..to` must be an absolute path in the guest, of a file and not a dir",
        ),
        ((), ACTION.replace('"a"', '"A b"'), ":4: `action.0..name` must consist of lower case"),
        ((), ACTION + 'workdir = "srv"', ":7: `action.0..workdir` must be an absolute path in"),
        ((), ACTION + "check = {output = ''}", "`action.0..check.output` must have at least 1"),
        ((), ACTION + "check.output = ['a', '']", "`action.0..check.output.1.` must have at le"),
        (('name = "x"',), ACTION, "unknown key `name`"),
        (
            ('packages = ["a1", "b1"]', 'leave_out = ["c1", "b1"]'),
            ACTION,
            ":3: `leave_out`: `b1` is one of the `packages`",
        ),
        (('leave_out = ["c1"]',), ACTION, "there are no `packages` to leave `c1` out of"),
    ],
)
def test_a_wrong_description_is_one_line_with_its_location(
    tmp_path: Path, lines: tuple[str, ...], action: str, message: str
) -> None:
    path = described(tmp_path, *lines, action=action)
    with pytest.raises(InputError, match=message) as raised:
        load_own(path)
    assert str(raised.value).startswith(f"{path}:")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("lines", "action", "remedy"),
    [
        (
            (),
            ACTION + "xyz = 1",
            "known: argv, check, environment, input, name, seconds, user, workdir",
        ),
        (
            ("xyz = 1",),
            ACTION,
            "known: action, directory, environment, files, image, leave_out, memory, packages, "
            "program, setup, title",
        ),
    ],
)
def test_the_keys_that_are_suggested_are_those_of_the_page(
    tmp_path: Path, lines: tuple[str, ...], action: str, remedy: str
) -> None:
    with pytest.raises(InputError, match="unknown key `xyz`") as raised:
        load_own(described(tmp_path, *lines, action=action))
    assert raised.value.remedy == remedy


@pytest.mark.parametrize("title", ["kbench", "ipc", "", "two\\nlines"])
def test_a_title_is_one_line_and_not_an_installed_app(tmp_path: Path, title: str) -> None:
    path = described(tmp_path)
    path.write_text(path.read_text().replace("Shop", title))
    with pytest.raises(InputError, match=r"is an installed app|must be one line"):
        load_own(path)


def test_apps_that_a_report_could_not_keep_apart_are_refused(tmp_path: Path) -> None:
    app = load_own(described(tmp_path))
    with pytest.raises(InputError, match="two apps are called `Shop`"):
        check_distinct_apps([app, app])
    other = app.model_copy(update={"name": "Other"})
    with pytest.raises(InputError, match="`Shop` and `Other` both have an action `a`"):
        check_distinct_apps([app, load_app("kbench"), other])
    check_distinct_apps([app, load_app("kbench")])


def test_two_apps_do_not_lay_different_files_at_one_path(tmp_path: Path) -> None:
    paths = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        paths.append(described(tmp_path / name, ROOTFS))
    apps = [(load_own(path), path) for path in paths]
    check_distinct_files(apps)
    # What mepof lays for both is the same, but not what one of them has in its place.
    for path in paths:
        path.write_text(path.read_text().replace("[[action]]", "[[action]]\nuser = 1000"))
    apps = [(load_own(path), path) for path in paths]
    check_distinct_files(apps, "x86-64")
    (paths[0].parent / "rootfs/etc").mkdir()
    (paths[0].parent / "rootfs/etc/passwd").write_text("root:x:0:0::/:\n")
    with pytest.raises(InputError, match="lay different files at /etc/passwd"):
        check_distinct_files(apps, "x86-64")
    (paths[1].parent / "rootfs/shop/run").write_text("#!/bin/busybox ash\n")
    with pytest.raises(InputError, match="lay different files at /shop/run"):
        check_distinct_files(apps)


def test_a_directory_is_laid_as_it_is_with_single_files_beside_it(tmp_path: Path) -> None:
    path = described(tmp_path, ROOTFS, 'files = [{from = "data.sql", to = "/data/init.sql"}]')
    root = path.parent
    (root / "data.sql").write_text("x")
    (root / "rootfs/var/empty").mkdir(parents=True)
    (root / "rootfs/shop/again").symlink_to("run")
    assert laid(path) == {
        "data/init.sql": Laid(root / "data.sql"),
        "shop": Laid(),
        "shop/again": Laid(link="run"),
        "shop/run": Laid(root / "rootfs/shop/run", executable=True),
        "var": Laid(),
        "var/empty": Laid(),
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('directory = ".."', "is outside of the description's directory"),
        ('directory = "/usr"', "/usr is outside of the description's directory"),
        ('directory = "linked"', "is outside of the description's directory"),
        ('directory = "none"', "none does not exist .*a path below "),
        ('directory = "app.toml"', "app.toml is not a directory"),
        ('files = [{from = "none", to = "/x"}]', "none does not exist"),
        ('files = [{from = "../x", to = "/x"}]', "is outside of the description's directory"),
        ('files = [{from = "rootfs", to = "/x"}]', "rootfs is not a regular file"),
        ('files = [{from = "fifo", to = "/x"}]', "fifo is not a regular file"),
        ('files = [{from = "app.toml", to = "/a/../x"}]', "`/a/../x` has `..` in it"),
        ('files = [{from = "app.toml", to = "/."}]', "`/.` is the root of the guest"),
        ('files = [{from = "large", to = "/x"}]', "/x has 4.0 GiB"),
        ('files = [{from = "app.toml", to = "/tmp/x"}]', "the guest mounts /tmp"),
        ('files = [{from = "app.toml", to = "/init"}]', "/init is a file of the guest's own"),
        ('files = [{from = "app.toml", to = "/bin"}]', "/bin is a directory of every guest"),
        (
            'files = [{from = "app.toml", to = "/x"}, {from = "rootfs/shop/run", to = "/x"}]',
            "/x would be two files",
        ),
    ],
)
def test_what_cannot_be_laid_into_a_guest_is_refused(
    tmp_path: Path, line: str, message: str
) -> None:
    path = described(tmp_path, line)
    os.mkfifo(path.parent / "fifo")
    (path.parent / "linked").symlink_to(tmp_path)
    with (path.parent / "large").open("wb") as large:
        large.truncate(1 << 32)
    with pytest.raises(InputError, match=message):
        own_files(load_own(path), path)


def test_a_name_is_any_that_text_has(tmp_path: Path) -> None:
    path = described(tmp_path, ROOTFS)
    names = ["a\N{NO-BREAK SPACE}b", "\U0001fae8", "caf\u00e9"]
    for name in names:
        (path.parent / "rootfs" / name).touch()
    assert {*names} <= {*own_files(load_own(path), path)}
    for name in (os.fsdecode(b"caf\xe9"), "two\nlines"):
        wrong = path.parent / "rootfs" / name
        wrong.touch()
        with pytest.raises(InputError, match="is not a name that a guest can have"):
            own_files(load_own(path), path)
        wrong.unlink()


def test_sockets_and_pipes_in_a_directory_are_refused(tmp_path: Path) -> None:
    path = described(tmp_path, ROOTFS)
    with socket.socket(socket.AF_UNIX) as unix:
        here = Path.cwd()
        os.chdir(path.parent / "rootfs")  # a socket's path has a short limit
        try:
            unix.bind("s")
        finally:
            os.chdir(here)
        with pytest.raises(InputError, match="rootfs/s is neither a file, a directory nor a link"):
            own_files(load_own(path), path)


def test_a_guests_directory_is_not_replaced_by_a_link(tmp_path: Path) -> None:
    path = described(tmp_path, ROOTFS)
    (path.parent / "rootfs/bin").symlink_to("usr/bin")
    with pytest.raises(InputError, match="/bin is a directory of every guest") as raised:
        own_files(load_own(path), path)
    assert "is laid by `image`" in str(raised.value.remedy)
    assert set(guest._DIRECTORIES) == GUEST_DIRECTORIES


def test_an_action_whose_program_is_not_in_the_guest_is_named(tmp_path: Path) -> None:
    path = described(tmp_path)
    with pytest.raises(InputError, match="the action `a` runs /shop/run, which is not in the"):
        laid(path)
    path = described(tmp_path, ROOTFS)
    (path.parent / "rootfs/shop/run").chmod(0o644)
    with pytest.raises(InputError, match="the action `a` runs /shop/run, which is not executable"):
        laid(path)


def test_a_program_of_a_similar_name_is_suggested() -> None:
    files = {"usr/bin/lua5.4": Laid(b"", executable=True), "srv/lua": Laid(b"")}
    with pytest.raises(InputError, match="runs lua, which is not in the guest") as caught:
        check_start("the action `a`", "lua", files, "x86-64")
    assert str(caught.value.remedy).startswith("did you mean `lua5.4`? Otherwise lay it there")


@pytest.mark.parametrize("written", ["java", "/usr/bin/java"])
def test_a_program_of_the_same_name_elsewhere_is_suggested(written: str) -> None:
    there = "usr/lib/jvm/java-17/bin/java"
    files = {
        "etc/java": Laid(b"settings"),
        "usr/share/java": Laid(),
        "usr/bin/jav": Laid(b"x", executable=True),
        there: Laid(b"x", executable=True),
    }
    with pytest.raises(InputError, match=f"runs {written}, which is not in the guest") as caught:
        check_start("the action `a`", written, files, "x86-64")
    assert str(caught.value.remedy).startswith(f"did you mean `/{there}`? Otherwise lay it there")


def test_a_program_without_its_interpreter_or_library_is_refused(tmp_path: Path) -> None:
    path = described(tmp_path, ROOTFS)
    run = path.parent / "rootfs/shop/run"
    run.write_text("#!/bin/sh\n")
    with pytest.raises(InputError, match="action `a` runs /shop/run, which needs /bin/sh, which"):
        laid(path)
    run.write_text("not a program\n")
    with pytest.raises(InputError, match="which is neither an ELF program nor a script"):
        laid(path)
    run.write_bytes(Path("/bin/true").resolve().read_bytes())
    with pytest.raises(
        InputError, match=r"which needs .*ld-linux.*, which is not in the"
    ) as raised:
        laid(path)
    assert "`[[program]]` takes a program of this machine" in str(raised.value.remedy)
    with pytest.raises(InputError, match="which is not built for arm64"):
        laid(path, "arm64")
    subprocess.run(["cc", "-c", "-x", "c", "-o", run, "-"], input=b"int a;", check=True)
    run.chmod(0o755)
    with pytest.raises(InputError, match="which is an object file or a core dump"):
        laid(path)


def test_a_program_is_taken_with_what_it_names_at_the_paths_where_that_is_looked_up() -> None:
    of = {each.name: each for each in shared_libraries.closure("/bin/true", None)}
    loader, libc = of["ld-linux-x86-64.so.2"], of["libc.so.6"]
    files = {
        "bin/true": Laid(Path("/bin/true"), executable=True),
        "lib64/ld-linux-x86-64.so.2": Laid(link="/srv/loader"),
        "srv/loader": Laid(loader),
        "usr/lib/libc.so.6": Laid(libc),
        "usr/lib/libm.so.6": Laid(libc),
    }
    assert closure("it", "bin/true", files, "x86-64") == {
        "bin/true": files["bin/true"],
        "lib64/ld-linux-x86-64.so.2": Laid(loader),
        "usr/lib/libc.so.6": Laid(libc),
    }


@pytest.mark.parametrize(
    ("line", "missing", "package"),
    [
        ("#!/bin/sh -e", "/bin/sh", "dash"),
        ("#! /usr/bin/env python3", "/usr/bin/env", "coreutils"),
        ("#!/opt/env python3", "python3", "python3-minimal"),
        ("#!/opt/env python", "python", None),
    ],
)
def test_what_a_script_names_is_refused_with_its_package(
    line: str, missing: str, package: str | None
) -> None:
    files = {
        "opt/run": Laid(f"{line}\n".encode(), executable=True),
        "opt/env": Laid(Path("/bin/busybox").read_bytes(), executable=True),
        # Not a program.
        "usr/share/bug/python3": Laid(b"text"),
    }
    with pytest.raises(InputError, match=f"needs {missing}, which is not in the guest") as caught:
        check_start("the action `a`", "/opt/run", files, "x86-64")
    expected = "`packages`" if package is None else f"`packages` (`{package}` has it)"
    assert str(caught.value.remedy).startswith(f"lay it there by {expected} or `directory`")


@pytest.mark.parametrize("words", ["python3", "-S python2", "A=1 python2", ""])
def test_what_env_finds_is_there_or_left_to_itself(words: str) -> None:
    program = Laid(Path("/bin/busybox").read_bytes(), executable=True)
    files = {"usr/bin/env": program, "usr/bin/python3": Laid(link="py"), "usr/bin/py": program}
    files["run"] = Laid(f"#!/usr/bin/env {words}\n".encode(), executable=True)
    check_start("the action `a`", "/run", files, "x86-64")


def test_a_script_of_another_systems_editor_is_refused(tmp_path: Path) -> None:
    path = described(tmp_path, ROOTFS)
    run = path.parent / "rootfs/shop/run"
    run.write_bytes(b"#!/bin/busybox sh\r\necho\r\n")
    with pytest.raises(InputError, match="runs /shop/run, which has lines that end in CR LF") as e:
        laid(path)
    assert e.value.remedy == f"sed -i 's/\\r$//' {run}"


def test_a_program_with_its_own_libraries_can_start(tmp_path: Path) -> None:
    path = described(tmp_path, ROOTFS)
    root = path.parent / "rootfs"
    program, *libraries = sorted(
        shared_libraries.closure("/bin/true", "coreutils"), key=lambda p: p.name != "true"
    )
    (root / "shop/run").write_bytes(program.read_bytes())
    for library in libraries:
        target = root / str(library).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(library.read_bytes())
    assert laid(path)
    next(root.rglob("libc.so.6")).unlink()
    with pytest.raises(InputError, match=r"needs libc\.so\.6, which is not in the guest"):
        laid(path)


TRUE = '[[program]]\npath = "/bin/true"\npackage = "coreutils"\n'


def test_a_program_of_this_machine_brings_its_libraries(tmp_path: Path) -> None:
    action = ACTION.replace("/shop/run", "true")
    found = laid(described(tmp_path, action=TRUE + action))
    expected = shared_libraries.closure("/bin/true", "coreutils")
    assert set(found) == {str(each).lstrip("/") for each in expected}
    assert all(each.executable for each in found.values())


def test_a_program_that_is_not_installed_is_named_with_a_remedy(tmp_path: Path) -> None:
    program = TRUE.replace("/bin/true", "/usr/bin/no-such").replace("coreutils", "no-such")
    with pytest.raises(EnvironmentLack, match="/usr/bin/no-such is not installed") as raised:
        laid(described(tmp_path, action=program + ACTION))
    assert raised.value.remedy == "apt-get install no-such"


def test_a_program_of_ones_own_needs_no_package(tmp_path: Path) -> None:
    own = '[[program]]\npath = "/bin/true"\n'
    action = ACTION.replace("/shop/run", "/bin/true")
    assert "bin/true" in laid(described(tmp_path, action=own + action))
    with pytest.raises(InputError, match="/home/me/none does not exist") as raised:
        laid(described(tmp_path, action=own.replace("/bin/true", "/home/me/none") + ACTION))
    assert str(raised.value.remedy).startswith("build it, correct its path")
    with pytest.raises(InputError, match=r"`program\[0\].path`: must be an absolute path"):
        laid(described(tmp_path, action=own.replace("/bin/true", "./true") + ACTION))


def test_a_program_below_what_the_guest_mounts_is_refused() -> None:
    with TemporaryDirectory(dir="/tmp") as directory:
        copy = shutil.copy("/bin/true", directory)
        own = f'[[program]]\npath = "{copy}"\n'
        wrong = f"{copy} would be hidden, because the guest mounts"
        with pytest.raises(InputError, match=wrong) as raised:
            laid(described(Path(directory), action=own + ACTION))
        # What must be laid elsewhere is a program of this machine.
        assert raised.value.remedy is not None
        assert raised.value.remedy.startswith(f"install {copy} elsewhere")


def test_a_program_of_this_machine_is_refused_for_another_architecture(tmp_path: Path) -> None:
    app = load_own(described(tmp_path, action=TRUE + ACTION))
    check_program_arch(app, "x86-64")
    with pytest.raises(InputError, match="takes /bin/true from this machine, which does not run"):
        check_program_arch(app, "arm64")


def test_a_link_in_place_of_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    path = described(tmp_path, ROOTFS, 'files = [{from = "app.toml", to = "/data/x"}]')
    (path.parent / "rootfs/data").symlink_to("/etc")
    with pytest.raises(InputError, match="/data/x is below /data, "):
        laid(path)


def test_the_descriptions_on_the_page_are_some(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs/apps.md"
    found: list[list[str]] = []
    for text in re.findall(r"^```toml\n(.*?)^```$", page.read_text(), re.M | re.S):
        (tmp_path / "app.toml").write_text(text)
        found.append([action.name for action in load_own(tmp_path / "app.toml").actions])
    assert found == [["import", "refuse"], ["buy"], ["insert"], ["get"]]


def test_the_example_is_an_app_whose_files_can_be_laid() -> None:
    app = load_own(EXAMPLE)
    assert isinstance(app, OwnApp)
    assert [action.name for action in app.actions] == ["order", "search", "ship", "compact"]
    named = {word.removeprefix(".read /") for a in app.actions for word in a.argv if "read" in word}
    assert named <= own_files(app, EXAMPLE).keys()

"""The kernel of a distribution as it comes: the drivers of the agent's port are modules."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mepof.arch import get
from mepof.device import agent, module_archive, modules
from mepof.device.protocol import DEVICES, INITRAMFS, Session
from mepof.executor.local import LocalExecutor
from mepof.kernel.modules import collect
from mepof.plan.model import Plan
from mepof.process import run

pytestmark = [
    pytest.mark.boot,
    pytest.mark.patient,
    pytest.mark.skipif(shutil.which("apt-get") is None, reason="there is no apt-get"),
]

PACKAGE = "linux-image-amd64"
#: Of its thousands of modules, those in these places.
PLACES = ("kernel/drivers/virtio/", "kernel/drivers/char/virtio_console", "kernel/fs/fat/")


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """Debian's kernel, as if mepof had built it."""
    depends = run(["apt-cache", "depends", PACKAGE]).output
    name = next(line.split()[1] for line in depends.splitlines() if "Depends: linux-image" in line)
    run(["apt-get", "-o", "APT::Sandbox::User=root", "download", name], cwd=tmp_path)
    (package,) = tmp_path.glob("*.deb")
    run(["dpkg-deb", "--extract", package, tmp_path])
    made = tmp_path / "build"
    made.mkdir()
    for installed, file in (("vmlinuz", "kernel"), ("config", "config")):
        (found,) = tmp_path.glob(f"boot/{installed}-*")
        shutil.copy(found, made / file)
    (tree,) = (*tmp_path.glob("lib/modules/*"), *tmp_path.glob("usr/lib/modules/*"))
    for packed in [*tree.glob("kernel/**/*.ko.xz")]:
        if packed.relative_to(tree).as_posix().startswith(PLACES):
            run(["unxz", packed])
    order = (tree / "modules.order").read_text().split()
    (tree / "modules.order").write_text(
        "".join(f"{path}\n" for path in order if path.startswith(PLACES))
    )
    collect(tree, made)
    target = get("x86-64").guest
    assert target is not None
    module_archive.write_archive(made, target, "objcopy", tmp_path, run)
    return made


def test_a_kernel_whose_drivers_are_modules_answers(
    build: Path, executor: LocalExecutor, plan: Plan, tmp_path: Path
) -> None:
    only = Plan(plan.program, plan.seed, (plan.step("guest"),), ())
    guest = executor.run(only, tmp_path / "out", lambda event: None).run.steps["guest"].path
    listed = agent.Get("/proc/modules")
    session = Session("x86-64", build / "kernel", guest / INITRAMFS, (listed,), 1)
    (reply,) = modules.boot(
        DEVICES.get("qemu"), session, build, tmp_path / "boot", run, lambda count: None
    ).replies
    assert isinstance(reply, agent.GetResult)
    loaded = {line.split()[0] for line in reply.data.decode().splitlines()}
    assert {"virtio_console", "virtio_pci", "vfat"} <= loaded

"""``app-programs``: the archive of what an app that the user describes adds to a guest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from mepof.app.android import AndroidApps, load_described
from mepof.app.apps import BASE_MEMORY
from mepof.app.laid import Laid, write_archive
from mepof.app.launch import PROGRAM, command_files
from mepof.app.own import OwnApp, check_program_arch
from mepof.app.own_files import all_files, image_of, own_files, packages_of
from mepof.errors import InputError
from mepof.kernel.overlay import files_digest, native_directory
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import HostInput, Input, Step
from mepof.spec.app_programs import AppPrograms
from mepof.toolchain import guest

_MIB = 1 << 20


class AppProgramsBody:
    """Makes ``archive.cpio``."""

    kind = AppPrograms.kind
    phase: Phase = "build"

    def check(self, step: Step) -> None:
        """Refuse a wrong description, files that cannot be laid into a guest, and programs of
        another architecture."""
        asked, description = _asked(step)
        app = load_described(description)
        if isinstance(app, OwnApp):
            check_program_arch(app, asked.arch)
            own_files(app, description)

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        # The step's input is the description alone: the files that it names are counted here.
        asked, description = _asked(step)
        app = load_described(description)
        if isinstance(app, AndroidApps):
            return {}
        files = files_of(app, description, asked.arch)
        _check_memory(app, files)
        return {
            "launch": _sources_digest(),
            **guest.identity(guest.target(asked.arch)),
            **{f"package {name}": str(p) for name, p in packages_of(app, asked.arch).items()},
            **{f"/{path}": laid.digest() for path, laid in sorted(files.items())},
        }

    def run(self, context: StepContext) -> None:
        asked = AppPrograms[Path].of(context.step, context.inputs)
        app = load_described(asked.app)
        if isinstance(app, AndroidApps):  # which the phone has
            write_archive({}, context.output / "archive.cpio")
            return
        if left_out := image_of(app, asked.app, asked.arch).left_out:
            named = ", ".join(left_out)
            context.note(f"left out of the image, as devices and FIFOs are: {named}")
        compiler = guest.target(asked.arch).compiler
        source = native_directory() / "launch"
        context.run(["make", "-C", source, f"OUT={context.work}", f"GUEST_CC={compiler}"])
        files = {
            **files_of(app, asked.app, asked.arch),
            PROGRAM: Laid(context.work / "launch", executable=True),
        }
        write_archive(files, context.output / "archive.cpio")


def files_of(app: OwnApp, description: Path, arch: str) -> dict[str, Laid]:
    """All that a described app adds to a guest, except the program that starts its commands."""
    files = all_files(app, description, arch)
    image = image_of(app, description, arch)
    try:
        return {**files, **command_files(app, image, files, arch)}
    except InputError as error:  # which names an action or a setup
        raise InputError(f"{description}: {error.message}", error.remedy) from error


def archives(suites: Mapping[str, Path], apps: Iterable[Path | None]) -> tuple[Path, ...]:
    """What is laid over a guest: programs of suites, and then those of the user's apps.

    Args:
        suites: their artifacts by name.
        apps: the artifacts of apps; None for one that adds nothing.
    """
    laid = (*(path for _, path in sorted(suites.items())), *apps)
    return tuple(path / "archive.cpio" for path in laid if path is not None)


def _asked(step: Step) -> tuple[AppPrograms[Input], Path]:
    asked = AppPrograms[Input].of(step, step.inputs)
    if not isinstance(asked.app, HostInput):
        raise InputError(f"{step.id} needs a file of the user's that describes its app")
    return asked, Path(asked.app.path)


def _check_memory(app: OwnApp, files: Mapping[str, Laid]) -> None:
    """Refuse files that the guest cannot unpack: the kernel would panic without naming them."""
    taken = sum(laid.size for laid in files.values()) // _MIB
    # The guest holds the archive and, for a moment, what is unpacked from it, which may take half
    # of the memory.
    needed = BASE_MEMORY + 2 * taken
    if app.memory < needed:
        raise InputError(
            f"the files of the app {app.title} take {taken} MiB, which does not fit in "
            f"a guest with {app.memory} MiB of memory",
            f"write `memory = {-(-needed // 64) * 64}`",
        )


@cache
def _sources_digest() -> str:
    root = native_directory()
    found = (path for name in ("launch", "abi") for path in (root / name).rglob("*"))
    return files_digest(root, sorted(path for path in found if path.is_file()))


BODY = AppProgramsBody()

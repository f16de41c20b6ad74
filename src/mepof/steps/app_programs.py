"""``app-programs``: the archive of what an app that the user describes adds to a guest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mepof.app.laid import Laid
from mepof.app.own import all_files, check_program_arch, load_own, own_files
from mepof.device.initramfs import Entry, archive, tree
from mepof.errors import InputError
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.digest import file_digest
from mepof.plan.model import HostInput, Input, Step
from mepof.spec.app_programs import AppPrograms


class AppProgramsBody:
    """Makes ``archive.cpio``."""

    kind = AppPrograms.kind
    phase: Phase = "build"

    def check(self, step: Step) -> None:
        """Refuse a wrong description, files that cannot be laid into a guest, and programs of
        another architecture."""
        asked, description = _asked(step)
        app = load_own(description)
        check_program_arch(app, asked.arch)
        own_files(app, description)

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        # The step's input is the description alone: the files that it names are counted here.
        asked, description = _asked(step)
        files = all_files(load_own(description), description, asked.arch)
        return {f"/{path}": _digest(laid) for path, laid in sorted(files.items())}

    def run(self, context: StepContext) -> None:
        asked = AppPrograms[Path].of(context.step, context.inputs)
        files = all_files(load_own(asked.app), asked.app, asked.arch)
        entries = tree(_entry(path, laid) for path, laid in files.items())
        (context.output / "archive.cpio").write_bytes(archive(entries))


def _asked(step: Step) -> tuple[AppPrograms[Input], Path]:
    asked = AppPrograms[Input].of(step, step.inputs)
    if not isinstance(asked.app, HostInput):
        raise InputError(f"{step.id} needs a file of the user's that describes its app")
    return asked, Path(asked.app.path)


def _entry(path: str, laid: Laid) -> Entry:
    if laid.link is not None:
        return Entry(path, 0o777, link=laid.link)
    if laid.source is None:
        return Entry(path, 0o755)
    return Entry(path, 0o755 if laid.executable else 0o644, _contents(laid.source))


def _contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _digest(laid: Laid) -> str:
    if laid.link is not None:
        return f"link {laid.link}"
    if laid.source is None:
        return "directory"
    try:
        return f"{'program' if laid.executable else 'file'} {file_digest(laid.source)}"
    except OSError as error:
        raise InputError(f"{laid.source} cannot be read: {error.strerror}") from error


BODY = AppProgramsBody()

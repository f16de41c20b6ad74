"""Boots of builds: their modules are loaded before anything else is done in the guest.

:mod:`mepof.device.module_archive` makes the archive in a build that they come in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mepof.device import agent, recorder_trace
from mepof.device.module_archive import DIRECTORY, LIST, LOADER, archive_of
from mepof.device.protocol import Boot, BootFailure, Outcome, Session
from mepof.kernel.modules import Modules, code_sections
from mepof.process import Completed

# Of the guest's time; a module waits for its hardware, if for anything.
_SECONDS = 120.0


class ModuleNotLoaded(BootFailure):
    """A module of the build did not load."""


@dataclass(frozen=True)
class LoadedModule:
    """A module in a running kernel.

    Attributes:
        sections: the addresses of its sections with code, by name.
    """

    name: str
    sections: Mapping[str, int]


def boot(
    device: Boot,
    session: Session,
    build: Path,
    directory: Path,
    runner: Callable[..., Completed],
    replied: Callable[[int], None],
) -> Outcome:
    """Run a session on a device, with the modules of the build loaded before the requests.

    Where branches are recorded, the trace says where the modules were.

    Args:
        build: the directory of a build, or a bootable image, which has no modules.

    Raises:
        ModuleNotLoaded: a module does not load; the message has the kernel's reason.
        BootFailure: the kernel panicked, hung or reset.
    """
    config = build / "config"
    if config.is_file():
        session = replace(session, config=config.read_text(encoding="utf-8"))
    modules = archive_of(build)
    if modules is None:
        return device.boot(session, directory, runner, replied)
    interlude = session.interlude
    if interlude is not None:
        interlude = replace(interlude, after=interlude.after + 1)
    load = agent.Exec((f"/{DIRECTORY}/{LOADER}", f"/{DIRECTORY}/{LIST}"), _SECONDS)
    with_modules = replace(
        session,
        archives=(modules, *session.archives),
        requests=(load, *session.requests),
        interlude=interlude,
    )
    try:
        outcome = device.boot(
            with_modules, directory, runner, lambda count: replied(max(0, count - 1))
        )
    except BootFailure as error:
        # One that loads no modules has not come up.
        error.replies = error.replies[1:] if error.replies else None
        raise
    loaded = _loaded(outcome.replies[0])
    if outcome.branches is not None:
        recorder_trace.add_mappings(outcome.branches, _mappings(build, loaded))
    return replace(outcome, replies=outcome.replies[1:])


def _loaded(reply: agent.Reply) -> tuple[LoadedModule, ...]:
    """The modules that the loader reports, in the order in which it loaded them."""
    lines = reply.text.splitlines() if isinstance(reply, agent.ExecResult) else []
    if not isinstance(reply, agent.ExecResult) or reply.status != 0:
        # Its reason is its last line.
        why = lines[-1] if lines else "the program that loads modules did not run"
        raise ModuleNotLoaded(
            f"a module did not load in the guest: {why}",
            "build it in, or leave it out of the configuration",
        )
    found: dict[str, dict[str, int]] = {}
    for line in lines:
        match line.split():
            case ["loaded", name]:
                found[name] = {}
            case ["section", name, section, address] if name in found:
                found[name][section] = int(address, 16)
    return tuple(LoadedModule(name, sections) for name, sections in found.items())


def _mappings(build: Path, loaded: tuple[LoadedModule, ...]) -> list[recorder_trace.Mapping]:
    sizes = {
        module.name: code_sections(module.file(build)) for module in Modules.read(build).modules
    }
    return [
        recorder_trace.Mapping(f"[{module.name}]", section, address, sizes[module.name][section])
        for module in loaded
        for section, address in sorted(module.sections.items())
        if section in sizes.get(module.name, {})
    ]

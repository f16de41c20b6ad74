"""``mepof phone``: a virtual phone that the real ``fastboot`` and ``adb`` talk to."""

from __future__ import annotations

import hashlib
import re
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from mepof.bootimg.model import read_model
from mepof.cli.application import completing
from mepof.errors import InputError
from mepof.kernel.image import read_image
from mepof.phone.factory import HEADER_VERSIONS, images, ramdisk
from mepof.phone.faults import IN_FASTBOOT, IN_KERNEL, Faults, read_fault
from mepof.phone.machine import Qemu
from mepof.phone.phone import Phone
from mepof.phone.server import ADDRESS
from mepof.phone.state import Storage, limits_of, model_of
from mepof.plan.interrupt import ended_by_sigterm

# It stands in the kernel's command line.
_SERIAL = re.compile(r"[\w.-]{1,64}", re.ASCII)
_FAULTS = tuple(sorted((*IN_FASTBOOT, *IN_KERNEL)))


def phone(
    directory: Annotated[
        Path,
        typer.Argument(
            help="Directory of the phone's state; created if it does not exist.", metavar="DIR"
        ),
    ],
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, help="Port of fastboot; 0 for any that is free.", metavar="N"
        ),
    ] = 5554,
    udp: Annotated[bool, typer.Option("--udp", help="Speak fastboot over UDP, not TCP.")] = False,
    adb_port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port of adb.", metavar="N")
    ] = 5556,
    kernel: Annotated[
        Path | None,
        typer.Option(
            help="Kernel of a new phone, which decides its architecture. Without one, the phone "
            "stays in fastboot.",
            metavar="IMAGE",
        ),
    ] = None,
    header: Annotated[
        int,
        typer.Option(
            min=HEADER_VERSIONS[0],
            max=HEADER_VERSIONS[-1],
            help="Header version of a new phone's boot image.",
            metavar="N",
        ),
    ] = 2,
    model: Annotated[
        Path | None,
        typer.Option(
            help="Description of the phone model, a TOML file.  [default: one with 1 GiB]",
            metavar="FILE",
        ),
    ] = None,
    serial: Annotated[
        str | None,
        typer.Option(
            help="Serial number.  [default: one of its own, derived from the path of DIR]",
            metavar="TEXT",
        ),
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            help=f"What goes wrong: {', '.join(_FAULTS)}. Repeat it for several. To limit one "
            f"of {', '.join(IN_KERNEL)} to one way of starting, append @ram, @a or @b.",
            metavar="NAME",
            autocompletion=completing(*_FAULTS),
        ),
    ] = None,
) -> None:
    """Emulate a phone, until interrupted.

    It listens on the loopback interface. A new one is locked.

    Raises:
        InputError: the model or the state in the directory is wrong, a port is taken, or
            another process plays this phone.
        EnvironmentLack: a program is missing that makes or runs a system.
    """
    faults = Faults(tuple(map(read_fault, fault or ())))
    if serial is not None and not _SERIAL.fullmatch(serial):
        raise InputError(
            f"`{serial}` is not a serial number",
            "write up to 64 letters, digits, `_`, `-` and `.`",
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{directory} cannot be created: {error.strerror}") from error
    storage = Storage(directory, model_of(None))
    lock = storage.claim()
    known = storage.load()
    arch = known.arch
    if kernel is not None:
        if arch is not None or (directory / "state.json").exists():
            raise InputError(f"{directory} is a phone already", "leave out --kernel")
        arch = read_image(kernel).arch
    described = model_of(arch) if model is None else read_model(model)
    storage = Storage(directory, described, serial)
    machine = None
    if arch is not None:
        machine = Qemu(arch, directory, adb_port, described.size, typer.echo)

    def make() -> None:
        if kernel is None or arch is None:
            return
        with tempfile.TemporaryDirectory(prefix="mepof-") as work:
            made = images(kernel.read_bytes(), ramdisk(arch, Path(work)), header, described)
        for name, data in made.items():
            for slot in ("a", "b"):
                storage.write(f"{name}_{slot}", data)
        (directory / "limits.toml").write_text(limits_of(described), encoding="utf-8")
        trusted = (hashlib.sha256(made["boot"]).hexdigest(),)
        storage.save(known.model_copy(update={"arch": arch, "b": known.a, "trusted": trusted}))

    made_phone = Phone(
        storage, described, machine, port, typer.echo, udp=udp, faults=faults, make=make
    )
    with lock, ended_by_sigterm():
        typer.echo(f"fastboot -s {'udp' if udp else 'tcp'}:{ADDRESS}:{made_phone.port} getvar all")
        if machine is not None:
            typer.echo(f"adb connect {ADDRESS}:{adb_port}")
        made_phone.on()

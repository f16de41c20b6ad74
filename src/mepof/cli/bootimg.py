"""``mepof bootimg``: show, unpack, pack and plan Android boot images."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from mepof.bootimg.compression import NAMES, decompress, recognise
from mepof.bootimg.device_tree import table_entries, trees_of
from mepof.bootimg.directory import DESCRIPTION, packed, unpacked
from mepof.bootimg.image import BootImage, Bytes, write
from mepof.bootimg.kernel import describe, kernel_of, replaced
from mepof.bootimg.mediatek import split, under_same
from mepof.bootimg.mistaken import mistaken
from mepof.bootimg.model import read_model
from mepof.bootimg.partition import fit
from mepof.bootimg.plan import plan
from mepof.bootimg.reader import parse, read_file
from mepof.bootimg.summary import Summary, summary, summary_of
from mepof.bootimg.tail import with_changes
from mepof.cli.application import Commands, completing
from mepof.cli.bootimg_plan import plan_document, plan_lines, works
from mepof.cli.output import Json, print_json
from mepof.disk import replacing
from mepof.errors import InputError, MepofError, WorkError
from mepof.plan.disk_full import means_full
from mepof.profile.published import is_special

app = Commands(help="Show, unpack, pack and plan Android boot images.")

ImageFile = Annotated[
    Path, typer.Argument(help="boot.img, init_boot.img or vendor_boot.img.", metavar="IMAGE")
]
_COMPRESSIONS = ("none", *NAMES)
# Boot loaders load a ramdisk of any form; "data" is what an unknown program compressed.
_MAY_BE_RAMDISK = ("a ramdisk", "data", "a file system", "a uImage")


@app.command("show")
def show(
    image: Annotated[
        Path,
        typer.Argument(help="Boot image; vbmeta.img and dtbo.img, too.", metavar="IMAGE"),
    ],
    as_json: Json = False,
) -> None:
    """Say what an image holds, and whether a boot loader will accept it.

    Raises:
        InputError: it is not an image of a boot partition, or is damaged.
    """
    found = summary(read_file(image), str(image))
    if as_json:
        _print_json("show", image, found)
    else:
        _print(image, found)


@app.command("unpack")
def unpack(
    image: ImageFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory to create.", metavar="DIR")],
    decompress_kernel: Annotated[
        bool, typer.Option("--decompress", help="Also write the decompressed kernel.")
    ] = False,
) -> None:
    """Write the parts of an image, and a description, to a directory.

    Raises:
        InputError: the image is damaged, or the directory is not empty.
        EnvironmentLack: the program that decompresses the kernel is missing.
    """
    data = read_file(image)
    _refuse_dtbo(image, data)
    parsed = parse(data, str(image))
    files = dict(unpacked(parsed).files)
    if decompress_kernel:
        kernel = describe(parsed.section("kernel"))
        if recognise(kernel.payload):
            files["kernel.decompressed"] = decompress(kernel.payload, f"the kernel in {image}")
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise InputError(f"{out} is not empty", "name a new directory")
        try:
            for name, content in files.items():
                (out / name).write_bytes(content)
        except OSError:
            for name in files:
                with suppress(OSError):
                    (out / name).unlink()
            raise
    except OSError as error:
        raise _unwritable(out, error) from error
    typer.echo(f"{out / DESCRIPTION}: {len(files) - 1} files beside it", err=True)


@app.command("pack")
def pack(
    source: Annotated[
        Path,
        typer.Argument(
            help="Directory of `mepof bootimg unpack`, or a boot image.", metavar="SOURCE"
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Image to write.", metavar="FILE")],
    kernel: Annotated[
        Path | None,
        typer.Option(
            help="Kernel in place of the one in SOURCE: compressed like it, and followed by the "
            "same device trees.",
            metavar="FILE",
        ),
    ] = None,
    compression: Annotated[
        str | None,
        typer.Option(
            help=f"Compression of the kernel: {', '.join(_COMPRESSIONS)}.  [default: as before]",
            metavar="NAME",
            autocompletion=completing(*_COMPRESSIONS),
        ),
    ] = None,
    ramdisk: Annotated[
        Path | None, typer.Option(help="Ramdisk in place of the one in SOURCE.", metavar="FILE")
    ] = None,
    dtb: Annotated[
        Path | None,
        typer.Option(help="Device tree in place of the one in SOURCE.", metavar="FILE"),
    ] = None,
    cmdline: Annotated[
        str | None, typer.Option(help="Kernel command line.", metavar="TEXT")
    ] = None,
    as_json: Json = False,
) -> None:
    """Build an image from a directory or another image.

    Raises:
        InputError: the source is wrong, or the result does not fit.
        EnvironmentLack: the program that compresses the kernel is missing.
    """
    if compression is not None and compression not in _COMPRESSIONS:
        raise InputError(
            f"unknown compression `{compression}`", f"known: {', '.join(_COMPRESSIONS)}"
        )
    if source.is_file() and out.exists() and out.samefile(source):
        raise InputError(f"{out} is the source", "name another file with --out")
    image = _source(source)
    changed: dict[str, Bytes] = {}
    if kernel is not None or compression is not None:
        former = kernel_of(image, str(source))
        new = read_file(kernel) if kernel else former
        changed["kernel"] = replaced(former, new, compression, str(kernel or source))
    for name, path in (("ramdisk", ramdisk), ("dtb", dtb)):
        if path is not None:
            _has(image, name, source)
            new = read_file(path)
            if name == "dtb":
                _check_device_trees(path, new)
            else:
                _check_ramdisk(path, new)
            changed[name] = under_same(image.section(name), new)
    result = with_changes(image, changed, cmdline, source)
    data = write(result)
    _write(out, data)
    found = summary_of(result, data, str(out))
    if as_json:
        _print_json("pack", out, found)
    else:
        _print(out, found, err=is_special(out))


@app.command("plan")
def plan_addresses(
    images: Annotated[
        list[Path],
        typer.Argument(
            help="Images that are loaded together: boot.img, vendor_boot.img, init_boot.img.",
            metavar="IMAGE",
        ),
    ],
    model: Annotated[
        Path, typer.Option(help="Description of the phone model, a TOML file.", metavar="FILE")
    ],
    kernel: Annotated[
        Path | None,
        typer.Option(help="Kernel in place of the one in boot.img.", metavar="FILE"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Find addresses at which nothing overlaps in memory.

    Exits with status 1 if there are none, if an image is too large for its partition, or if the
    boot loader does not decompress the kernel.

    Raises:
        InputError: an image or the model is wrong.
        EnvironmentLack: a program that compresses kernels is missing.
    """
    described = read_model(model)
    parsed = [parse(read_file(path), str(path)) for path in images]
    if kernel is not None:
        number = next((n for n, each in enumerate(parsed) if each.section("kernel")), None)
        if number is None:
            raise InputError("none of the images has a kernel", "name boot.img as well")
        former = parsed[number].section("kernel")
        section = replaced(former, read_file(kernel), None, str(kernel))
        parsed[number] = parsed[number].with_sections(kernel=section)
    found = plan(parsed, described)
    fits = [each for each in (fit(image, described) for image in parsed) if each]
    if as_json:
        document = plan_document(found, described.start, fits)
        print_json({"schema": "mepof-bootimg-plan/1", **document})
    else:
        for line in plan_lines(found, described.start, fits):
            typer.echo(line)
    if not works(found, fits):
        raise typer.Exit(WorkError.exit_status)


def _source(source: Path) -> BootImage:
    if source.is_dir():
        return packed(source)
    data = read_file(source)
    _refuse_dtbo(source, data)
    return parse(data, str(source))


def _has(image: BootImage, name: str, source: Path) -> None:
    sections = image.layout.sections
    if name not in sections:
        remedy = "it has " + ", ".join(sections)
        if name == "ramdisk" and f"vendor_{name}" in sections:
            remedy = "`mepof bootimg unpack` it, replace files of its vendor_ramdisk, and pack that"
        raise InputError(f"{source}: {image.kind} of version {image.version} has no {name}", remedy)


def _check_device_trees(path: Path, data: Bytes) -> None:
    _, data = split(data)
    if data and not trees_of(data) and table_entries(data) is None:
        raise InputError(f"{path} is not a device tree", "name a .dtb of the kernel's build")


def _check_ramdisk(path: Path, data: Bytes) -> None:
    """Refuse what is known to be something else."""
    _, data = split(data)
    what = mistaken(data)[0].replace(" without a boot image", "")
    if what and not what.startswith(_MAY_BE_RAMDISK):
        raise InputError(
            f"{path} is not a ramdisk, but {what}", "name a cpio archive, compressed or not"
        )


def _refuse_dtbo(path: Path, data: Bytes) -> None:
    if table_entries(data) is not None:
        raise InputError(
            f"{path} is a dtbo image, which mepof leaves as it is", "name a boot image"
        )


def _write(path: Path, data: bytes) -> None:
    try:
        if is_special(path):
            path.write_bytes(data)
            return
        with replacing(path.resolve()) as partial:  # through a link, as a plain write would go
            partial.write_bytes(data)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> MepofError:
    kind = WorkError if means_full(error) else InputError
    return kind(f"{path} cannot be written: {error.strerror}")


def _print(path: Path, found: Summary, err: bool = False) -> None:
    typer.echo(f"{path}: {found.kind}, {found.size} bytes", err=err)
    width = max((len(name) for name, _ in found.facts), default=0)
    for name, value in found.facts:
        typer.echo(f"  {name:{width}}  {value}".rstrip(), err=err)
    width = max((len(part.name) for part in found.parts), default=0)
    for part in found.parts:
        address = "" if part.address is None else f"to {part.address:#010x}"
        row = f"  {part.name:{width}}  {part.size:>10}  at {part.offset:#010x}  {address:13}"
        typer.echo(f"{row}  {part.what}".rstrip(), err=err)
    for line in found.findings:
        typer.echo(line, err=err)


def _print_json(verb: str, path: Path, found: Summary) -> None:
    document = {**asdict(found), "facts": dict(found.facts)}
    print_json({"schema": f"mepof-bootimg-{verb}/1", "file": str(path), **document})

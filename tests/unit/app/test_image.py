"""Images in every form: layers over one another, and what is refused."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import subprocess
import tarfile
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

import pytest

from mepof.app.image.layers import without_link
from mepof.app.image.read import read_image
from mepof.app.laid import Laid, resolve
from mepof.app.launch import command_files
from mepof.app.own import load_own
from mepof.app.own_files import all_files, image_of, own_files
from mepof.errors import InputError

Member = tuple[str, bytes | None, dict[str, object]]


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEPOF_STORE", str(tmp_path / "store"))
    return tmp_path / "store"


def layer(*members: Member) -> bytes:
    """A tar archive: a name, its content or None, and further attributes of the member."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, data, attributes in members:
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE if data is None else tarfile.REGTYPE
            info.mode = 0o755
            info.size = len(data or b"")
            for key, value in attributes.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(data or b""))
    return file.getvalue()


def link(name: str, to: str) -> Member:
    return name, b"", {"type": tarfile.SYMTYPE, "linkname": to}


def zstd(data: bytes) -> bytes:
    return subprocess.run(["zstd", "-qc"], input=data, capture_output=True, check=True).stdout


def layout(
    path: Path, *layers: bytes, arch: str = "amd64", tag: str | None = None, **settings: object
) -> Path:
    """Write an image; a second call adds one."""
    blobs = path / "blobs/sha256"
    blobs.mkdir(parents=True, exist_ok=True)

    def put(data: bytes) -> dict[str, object]:
        digest = sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {"mediaType": "x", "digest": f"sha256:{digest}", "size": len(data)}

    config = {"architecture": arch, "os": "linux", "config": settings}
    manifest = {
        "config": put(json.dumps(config).encode()),
        "layers": [put(each) for each in layers],
    }
    descriptor = put(json.dumps(manifest).encode())
    if tag is not None:
        descriptor["annotations"] = {"org.opencontainers.image.ref.name": tag}
    index = path / "index.json"
    known = json.loads(index.read_text())["manifests"] if index.exists() else []
    index.write_text(json.dumps({"manifests": [*known, descriptor]}))
    (path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return path


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
def test_a_later_layer_lies_over_an_earlier_one(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    lower = layer(
        ("opt", None, {}),
        ("opt/a", b"old", {}),
        ("opt/b", b"gone", {}),
        ("data", None, {}),
        ("data/hidden", b"x", {}),
        ("usr/bin", None, {}),
        ("usr/bin/tool", b"tool", {"mode": 0o4755, "uid": 7, "gid": 8}),
        link("bin", "usr/bin"),
    )
    upper = layer(
        ("opt/a", b"new", {}),
        ("opt/.wh.b", b"", {}),
        ("data/.wh..wh..opq", b"", {}),
        ("data/seen", b"y", {}),
        ("bin/late", b"late", {}),
        ("usr/bin/again", b"", {"type": tarfile.LNKTYPE, "linkname": "usr/bin/tool"}),
        ("tmp/x", b"not laid", {}),
    )
    image = read_image(layout(tmp_path / "oci", pack(lower), pack(upper)), None, "x86-64")
    files = {p: laid.content() for p, laid in image.files.items() if laid.source is not None}
    assert files == {
        "opt/a": b"new",
        "data/seen": b"y",
        "usr/bin/tool": b"tool",
        "usr/bin/again": b"tool",
        "usr/bin/late": b"late",
    }
    tool = image.files["usr/bin/tool"]
    assert (tool.permissions, tool.owner) == (0o4755, (7, 8))


def hard_link(name: str, to: str) -> Member:
    return name, b"", {"type": tarfile.LNKTYPE, "linkname": to}


def test_a_hard_link_is_another_name_of_whatever_it_links(tmp_path: Path) -> None:
    members = layer(
        link("etc/mtab", "/proc/self/mounts"),
        hard_link("etc/mtab2", "etc/mtab"),
        ("tmp/x", b"not laid by this name", {}),
        hard_link("opt/x", "tmp/x"),
        ("var/pipe", b"", {"type": tarfile.FIFOTYPE}),
        hard_link("var/pipe2", "var/pipe"),
        hard_link("tmp/y", "tmp/gone"),
    )
    image = read_image(layout(tmp_path / "oci", members), None, "x86-64")
    assert {*image.files} == {"etc/mtab", "etc/mtab2", "opt/x"}
    assert image.files["etc/mtab2"] == Laid(link="/proc/self/mounts")
    assert image.files["opt/x"].content() == b"not laid by this name"
    assert image.left_out == ("/var/pipe", "/var/pipe2")
    for wrong in ("none", "opt"):
        members = layer(("opt", None, {}), hard_link("b", wrong))
        with pytest.raises(InputError, match=r"`b` is a hard link to .*, which is not a file"):
            read_image(layout(tmp_path / wrong, members), None, "x86-64")


def test_the_guests_directories_may_be_links_in_an_image(tmp_path: Path) -> None:
    members = layer(
        link("etc", "usr/etc"),
        ("usr/etc/passwd", b"web:x:7:8::/:\n", {}),
        ("usr/etc/ssl/cert", b"x", {}),
        link("root", "var/roothome"),
        link("tmp", "sysroot/tmp"),
        ("tmp/x", b"x", {}),
    )
    layout(tmp_path / "oci", members)
    path = described(tmp_path, "oci")
    found = all_files(load_own(path), path, "x86-64")
    assert found["etc/passwd"] == Laid(link="/usr/etc/passwd")
    assert found["etc/ssl"] == Laid(link="/usr/etc/ssl")
    assert not {"etc", "root", "tmp"} & found.keys()


def test_a_directory_of_the_users_goes_where_a_link_of_the_image_leads(tmp_path: Path) -> None:
    members = layer(
        link("lib", "usr/lib"), ("usr/lib/libc.so.6", b"libc", {}), link("srv", "nowhere")
    )
    layout(tmp_path / "oci", members)
    for name in ("lib/plug.so", "srv/page"):
        (tmp_path / "rootfs" / name).parent.mkdir(parents=True)
        (tmp_path / "rootfs" / name).touch()
    path = described(tmp_path, "oci")
    path.write_text('directory = "rootfs"\n' + path.read_text())
    found = all_files(load_own(path), path, "x86-64")
    assert found["lib"] == Laid(link="usr/lib")
    assert {"usr/lib/libc.so.6", "usr/lib/plug.so"} <= found.keys()


def test_an_image_says_how_it_starts(tmp_path: Path) -> None:
    image = read_image(
        layout(
            tmp_path / "oci",
            layer(),
            Entrypoint=["/run"],
            Cmd=["-x"],
            Env=["A=b=c"],
            WorkingDir="/srv",
            User="web",
            StopSignal="SIGQUIT",
        ),
        None,
        "x86-64",
    )
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert (image.argv, image.environment) == (("/run", "-x"), (("PATH", path), ("A", "b=c")))
    assert (image.directory, image.user, image.stop) == ("/srv", "web", "SIGQUIT")
    own = layout(tmp_path / "own", layer(), Env=["PATH=/opt/bin"])
    assert read_image(own, None, "x86-64").environment == (("PATH", "/opt/bin"),)


def test_an_image_has_its_working_directory(tmp_path: Path) -> None:
    files = layer(("opt", None, {"uid": 7}), link("work", "opt"), ("srv/x", b"", {}))
    for number, (directory, made) in enumerate(
        [("/work/dir", {"opt/dir": Laid()}), ("/opt", {}), ("/srv", {}), ("/tmp/x", {}), ("/", {})]
    ):
        path = layout(tmp_path / str(number), files, WorkingDir=directory)
        without = layout(tmp_path / f"{number}-without", files)
        laid = read_image(path, None, "x86-64").files
        assert laid == read_image(without, None, "x86-64").files | made


LOCALHOST = Laid(b"127.0.0.1 localhost\n")


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ((), LOCALHOST),
        ((("etc/hosts", b"", {}),), LOCALHOST),
        ((link("etc/hosts", "../run/hosts"),), Laid(link="../run/hosts")),
        ((("etc/hosts", b"::1 localhost\n", {}),), None),
    ],
)
def test_an_image_without_hosts_knows_localhost(
    tmp_path: Path, members: tuple[Member, ...], expected: Laid | None
) -> None:
    image = read_image(layout(tmp_path / "oci", layer(*members)), None, "x86-64")
    path = described(tmp_path, "oci")
    found = all_files(load_own(path), path, "x86-64")
    assert found == {**image.files, "etc/hosts": expected or image.files["etc/hosts"]}


def test_of_several_images_the_architecture_or_the_tag_decides(tmp_path: Path) -> None:
    both = layout(tmp_path / "oci", layer(), arch="amd64", Cmd=["x86"])
    layout(both, layer(), arch="arm64", Cmd=["arm"])
    assert read_image(both, None, "x86-64").argv == ("x86",)
    assert read_image(both, None, "arm64").argv == ("arm",)
    # Debian's packages for it have another name, armel.
    layout(both, layer(), arch="arm", Cmd=["arm 32"])
    assert read_image(both, None, "arm").argv == ("arm 32",)
    tagged = layout(tmp_path / "tagged", layer(), tag="1", Cmd=["one"])
    layout(tagged, layer(), tag="2", Cmd=["two"])
    assert read_image(tagged, "2", "x86-64").argv == ("two",)
    with pytest.raises(InputError, match="has 2 images for linux/amd64") as raised:
        read_image(tagged, None, "x86-64")
    assert raised.value.remedy == 'name one: `image = "tagged:1"`; known: 1, 2'
    variants = layout(tmp_path / "variants", layer(), arch="amd64", Cmd=["v1"])
    layout(variants, layer(), arch="amd64", Cmd=["v3"])
    with pytest.raises(InputError, match="has 2 images for linux/amd64") as raised:
        read_image(variants, None, "x86-64")
    assert "to a layout of its own" in str(raised.value.remedy)
    with pytest.raises(InputError, match="has no image `3`") as raised:
        read_image(tagged, "3", "x86-64")
    assert raised.value.remedy == "known: 1, 2"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: (path / "oci-layout").unlink(), "is not an OCI image layout"),
        (lambda path: (path / "index.json").write_text("{"), "index.json is not of an image"),
        (lambda path: (path / "index.json").unlink(), "is not complete: index.json is missing"),
        (
            lambda path: (path / "index.json").write_text('{"manifests": []}'),
            r"has no image: its index\.json lists none \(write it again",
        ),
        (
            lambda path: (path / "index.json").write_text(
                '{"manifests": [{"digest": "x", "platform": {"os": "windows"}}]}'
            ),
            "has no image for Linux: its indexes list none",
        ),
        (
            lambda path: [p.unlink() for p in (path / "blobs/sha256").iterdir()],
            "is not complete: blobs/sha256/",
        ),
        (
            lambda path: [p.write_bytes(b"{}") for p in (path / "blobs/sha256").iterdir()],
            "is damaged: its SHA-256 is not its name",
        ),
    ],
)
def test_a_damaged_layout_is_named(
    tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    path = layout(tmp_path / "oci", layer())
    damage(path)
    with pytest.raises(InputError, match=message):
        read_image(path, None, "x86-64")


def test_a_digest_is_not_a_path(tmp_path: Path) -> None:
    path = layout(tmp_path / "oci", layer())
    (path / "index.json").write_text('{"manifests": [{"digest": "sha256:../../../etc/passwd"}]}')
    with pytest.raises(InputError, match="is not a SHA-256 digest"):
        read_image(path, None, "x86-64")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (layer(("../x", b"", {})), r"`\.\./x` leads outside of its root"),
        (layer(("p", b"", {"type": b"Z"})), "is neither a file, a directory nor a"),
        (layer(("h", b"", {"type": tarfile.LNKTYPE, "linkname": "none"})), "is a hard link to"),
        (layer(link("a", "b"), link("b", "a"), ("a/x", b"", {})), "form a loop"),
        (b"not a tar archive" * 100, "is not a tar archive"),
        (gzip.compress(layer(("a", b"x" * 4000, {})), mtime=0)[:-20], "is damaged"),
        (zstd(layer(("a", b"x" * 4000, {})))[:-9], "is damaged"),
    ],
)
def test_a_layer_that_cannot_be_laid_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        read_image(layout(tmp_path / "oci", data), None, "x86-64")
    if "damaged" in message:
        assert raised.value.remedy == "copy it again, or write it again by what made it"


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
def test_a_tarball_that_ends_early_has_a_remedy(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path = tarball(tmp_path / "root", ("etc/x", os.urandom(4000), {}))
    path.write_bytes(pack(path.read_bytes()[:2000])[: 2000 if pack is bytes else -9])
    with pytest.raises(InputError, match="root is damaged: ") as raised:
        read_image(path, None, "x86-64")
    assert raised.value.remedy == "copy it again, or write it again by what made it"


def test_devices_and_fifos_in_a_layer_are_left_out(tmp_path: Path) -> None:
    lower = layer(("run/initctl", b"a file", {}), ("run/x", b"", {}))
    upper = layer(
        ("run/initctl", b"", {"type": tarfile.FIFOTYPE}),
        ("lib/null", b"", {"type": tarfile.CHRTYPE}),
        ("dev/null", b"", {"type": tarfile.CHRTYPE}),
    )
    image = read_image(layout(tmp_path / "oci", lower, upper), None, "x86-64")
    assert image.files.keys() == {"run/x"}
    assert image.left_out == ("/run/initctl", "/lib/null")


def described(directory: Path, image: str) -> Path:
    path = directory / "app.toml"
    path.write_text(f'title = "I"\nimage = "{image}"\n[[action]]\nname = "a"\nseconds = 9\n')
    return path


@pytest.mark.parametrize(
    ("image", "message", "remedy"),
    [
        ("none", "the image `none` is not below", "docker://none oci:BASE/none"),
        (
            "ghcr.io/acme/shop:1.2",
            "the image `ghcr.io/acme/shop:1.2` is not below",
            "skopeo copy docker://ghcr.io/acme/shop:1.2 oci:BASE/shop, and name shop",
        ),
        (
            "docker://acme/shop:1.2",
            "the image `docker://acme/shop:1.2` is not below",
            "skopeo copy docker://acme/shop:1.2 oci:BASE/shop, and name shop",
        ),
        ("oci:web:1", "is named as for skopeo", 'write `image = "web:1"`'),
        ("docker-archive:web.tar", "is named as for skopeo", 'write `image = "web.tar"`'),
        ("./none", "none does not exist", "name a path below BASE"),
        (
            "root.tar.lz4",
            "is compressed by lz4, not a tarball",
            "unlz4 BASE/root.tar.lz4 BASE/root.tar",
        ),
        ("none.tar.gz", "none.tar.gz does not exist", "name a path below BASE"),
        ("docker", "it has no file oci-layout", "to another directory: skopeo copy docker-daemon:"),
        ("dir", "is an image as `podman save", "skopeo copy dir:BASE/dir oci:BASE/dir-oci, and"),
        ("app.toml", "app.toml is not a tarball: ", "name an OCI image layout, what `docker save`"),
        (
            "root.squashfs",
            "root.squashfs is a squashfs image, not a tarball",
            "sqfs2tar BASE/root.squashfs > BASE/root.tar, of squashfs-tools-ng; and name root.tar",
        ),
        ("root.ext4", "root.ext4 is an ext4 image, not a tarball", "tar -C /mnt -cf BASE/root.tar"),
        ("./pipe", "pipe is neither a file nor a directory", "copy what it gives"),
    ],
)
def test_what_is_not_a_layout_is_refused_before_anything_is_built(
    tmp_path: Path, image: str, message: str, remedy: str
) -> None:
    (tmp_path / "docker").mkdir()
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir/manifest.json").write_text("{}")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "root.tar.lz4").write_bytes(b"\x04\x22\x4d\x18" + bytes(2000))
    (tmp_path / "root.squashfs").write_bytes(b"hsqs" + bytes(2000))
    (tmp_path / "root.ext4").write_bytes(bytes(0x438) + b"\x53\xef" + bytes(2000))
    path = described(tmp_path, image)
    with pytest.raises(InputError, match=message) as raised:
        own_files(load_own(path), path)
    assert remedy.replace("BASE", str(tmp_path)) in str(raised.value.remedy)


def test_a_pipe_for_an_index_is_refused(tmp_path: Path) -> None:
    image = layout(tmp_path / "oci", layer())
    (image / "index.json").unlink()
    os.mkfifo(image / "index.json")
    with pytest.raises(InputError, match=r"index\.json is neither a file nor a directory"):
        read_image(image, None, "x86-64")


def test_an_image_of_another_architecture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no image for linux/arm64, only for amd64"):
        read_image(layout(tmp_path / "oci", layer()), None, "arm64")


def test_links_stay_inside_of_the_guest() -> None:
    files = {"a": Laid(link="../../etc"), "lib": Laid(link="/usr/lib"), "usr/lib/x": Laid(b"")}
    assert resolve("a/passwd", files) == "etc/passwd"
    assert resolve("lib/x", files) == "usr/lib/x"
    assert resolve("lib/../../y", files) == "y"


def test_the_guests_bin_becomes_a_directory_of_links() -> None:
    files = {"bin": Laid(link="usr/bin"), "usr/bin/sh": Laid(b"", executable=True)}
    without_link(files, "bin")
    assert files["bin/sh"] == Laid(link="/usr/bin/sh")
    assert "bin" not in files


def tarball(path: Path, *members: Member, pack: Callable[[bytes], bytes] = bytes) -> Path:
    path.write_bytes(pack(layer(*members)))
    return path


def docker_archive(
    path: Path,
    *layers: bytes,
    tags: Sequence[str] = (),
    damage: Mapping[str, object] = MappingProxyType({}),
) -> Path:
    """Write what `docker save` wrote before it wrote layouts; the last layer is a link to the first
    if both are the same."""
    digests = [f"sha256:{sha256(each).hexdigest()}" for each in layers]
    config: dict[str, object] = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": ["/run"], "WorkingDir": "/srv"},
        "rootfs": {"type": "layers", "diff_ids": digests},
        **damage,
    }
    names = [f"{number}/layer.tar" for number, _ in enumerate(layers)]
    entry = {"Config": "c.json", "RepoTags": list(tags) or None, "Layers": names}
    members: list[Member] = [("c.json", json.dumps(config).encode(), {})]
    for name, data in zip(names, layers, strict=True):
        same = name != names[0] and data == layers[0]
        members.append(link(name, f"../{names[0]}") if same else (name, data, {}))
    return tarball(path, *members, ("manifest.json", json.dumps([entry]).encode(), {}))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress, zstd])
def test_a_layout_may_be_in_a_tarball(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    written = layout(tmp_path / "oci", layer(("srv/a", b"a", {})), tag="1", Cmd=["/run"])
    members: list[Member] = [
        (f"./{path.relative_to(written)}", path.read_bytes(), {})
        for path in written.rglob("*")
        if path.is_file()
    ]
    # `docker save` writes both since version 25.
    saved = tarball(tmp_path / "saved", *members, ("manifest.json", b"[]", {}), pack=pack)
    assert read_image(saved, "1", "x86-64") == read_image(written, "1", "x86-64")


def test_a_layout_may_list_images_for_other_machines_without_what_is_in_them(
    tmp_path: Path,
) -> None:
    path = layout(tmp_path / "oci", layer(), Cmd=["/run"])
    index = json.loads((path / "index.json").read_text())
    other = {"digest": f"sha256:{'0' * 64}", "platform": {"os": "linux", "architecture": "arm64"}}
    (path / "index.json").write_text(json.dumps({"manifests": [other, *index["manifests"]]}))
    assert read_image(path, None, "x86-64").argv == ("/run",)
    with pytest.raises(InputError, match="no image for linux/arm64, only for amd64"):
        read_image(layout(tmp_path / "other", layer()), None, "arm64")


def test_an_archive_of_docker_is_an_image(tmp_path: Path) -> None:
    first, second = layer(("opt/a", b"old", {})), layer(("opt/a", b"new", {}))
    archive = docker_archive(tmp_path / "saved.tar", first, second, first, tags=["acme/shop:1"])
    for name in (None, "1", "acme/shop:1"):
        image = read_image(archive, name, "x86-64")
        assert image.files["opt/a"].content() == b"old"
        assert (image.argv, image.directory) == (("/run",), "/srv")
    with pytest.raises(InputError, match="has no image `2`") as raised:
        read_image(archive, "2", "x86-64")
    assert "known: acme/shop:1" in str(raised.value.remedy)
    with pytest.raises(InputError, match="has no image for linux/arm64, only for amd64"):
        read_image(archive, None, "arm64")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"rootfs": {"diff_ids": [f"sha256:{'0' * 64}"]}}, "its SHA-256 is not the image's"),
        ({"rootfs": {"diff_ids": []}}, "has 1 layers, and digests of 0"),
        ({"rootfs": {"diff_ids": ["sha256:../../x"]}}, "is not a SHA-256 digest"),
        ({"architecture": None}, r"c\.json is not of an image"),
    ],
)
def test_a_damaged_archive_of_docker_is_named(
    tmp_path: Path, damage: dict[str, object], message: str
) -> None:
    archive = docker_archive(tmp_path / "saved.tar", layer(("a", b"", {})), damage=damage)
    with pytest.raises(InputError, match=message):
        read_image(archive, None, "x86-64")


def test_an_image_keeps_an_init_of_its_own_and_the_guest_its(tmp_path: Path) -> None:
    own = layer(("init", b"#!/bin/busybox sh\n", {}), ("srv", None, {}))
    layout(tmp_path / "oci", own, Entrypoint=["/init"])
    description = described(tmp_path, "oci")
    app = load_own(description)
    files = all_files(app, description, "x86-64")
    assert "init" not in files
    assert files["mepof/init"].content() == b"#!/bin/busybox sh\n"
    image = image_of(app, description, "x86-64")
    command = command_files(app, image, files, "x86-64")["mepof/actions/a"].content()
    assert command.startswith(b"a/init\0") and b"\0P\0" in command


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress, zstd])
def test_a_tarball_of_a_root_file_system_is_laid_as_it_is(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path = tarball(
        tmp_path / "root",
        (".", None, {}),
        ("./usr/bin/tool", b"tool", {"mode": 0o4755, "uid": 7, "gid": 8}),
        link("./bin", "usr/bin"),
        link("./init", "usr/bin/tool"),
        ("./dev/null", b"", {"type": tarfile.CHRTYPE}),
        ("./tmp/x", b"not laid", {}),
        pack=pack,
    )
    image = read_image(path, None, "x86-64")
    assert image.files.keys() == {"usr/bin/tool", "bin", "mepof/init"}
    assert image.files["mepof/init"].link == "/usr/bin/tool"
    tool = image.files["usr/bin/tool"]
    assert (tool.content(), tool.permissions, tool.owner) == (b"tool", 0o4755, (7, 8))
    with pytest.raises(InputError, match="is a root file system, which has no tag `1`"):
        read_image(path, "1", "x86-64")


@pytest.mark.parametrize(
    ("members", "remedy"),
    [
        ((("a.txt", b"", {}),), "pack the root directory of a system"),
        (
            (("rootfs/etc/passwd", b"", {}),),
            "its files are below rootfs/: pack it by tar -C rootfs -cf TARBALL .",
        ),
    ],
)
def test_a_tarball_of_something_else_is_refused(
    tmp_path: Path, members: tuple[Member, ...], remedy: str
) -> None:
    path = tarball(tmp_path / "x.tar", *members)
    with pytest.raises(InputError, match="neither an image nor a root file system") as raised:
        read_image(path, None, "x86-64")
    assert remedy in str(raised.value.remedy)


def test_what_is_compressed_and_not_a_tarball_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rootfs.cpio.gz"
    path.write_bytes(gzip.compress(b"070701" + b"0" * 2000))
    with pytest.raises(InputError, match="is a cpio archive, not a tarball") as raised:
        read_image(path, None, "x86-64")
    assert f"bsdtar -cf {tmp_path}/rootfs.tar @{path}" in str(raised.value.remedy)


def test_a_name_with_a_colon_is_that_of_a_file_if_there_is_one(tmp_path: Path) -> None:
    tarball(tmp_path / "root:2.tar", ("etc/x", b"", {}))
    path = described(tmp_path, "root:2.tar")
    assert image_of(load_own(path), path, "x86-64").files.keys() == {"etc/x"}


def test_a_tarball_that_is_cut_off_is_damaged(tmp_path: Path) -> None:
    path = tarball(tmp_path / "root.tar", ("etc/x", b"x" * 5000, {}))
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(InputError, match=r"damaged|not a tar archive"):
        read_image(path, None, "x86-64")

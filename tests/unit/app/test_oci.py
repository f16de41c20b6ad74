"""OCI image layouts: layers over one another, and what is refused."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from mepof.app.laid import Laid, resolve
from mepof.app.layers import without_link
from mepof.app.oci import read_image
from mepof.app.own import load_own
from mepof.app.own_files import all_files, own_files
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
        ),
        None,
        "x86-64",
    )
    assert (image.argv, image.environment) == (("/run", "-x"), (("A", "b=c"),))
    assert (image.directory, image.user) == ("/srv", "web")


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
    with pytest.raises(InputError, match="has 2 images"):
        read_image(tagged, None, "x86-64")
    with pytest.raises(InputError, match="has no image `3`") as raised:
        read_image(tagged, "3", "x86-64")
    assert raised.value.remedy == "known: 1, 2"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: (path / "oci-layout").unlink(), "is not an OCI image layout"),
        (lambda path: (path / "index.json").write_text("{"), "index.json is not of an OCI image"),
        (lambda path: (path / "index.json").unlink(), "cannot read .*index.json"),
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
    with pytest.raises(InputError, match=message):
        read_image(layout(tmp_path / "oci", data), None, "x86-64")


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
        ("none", "the image `none` is not a directory below", "docker://none oci:BASE/none"),
        (
            "ghcr.io/acme/shop:1.2",
            "the image `ghcr.io/acme/shop:1.2` is not a directory below",
            "skopeo copy docker://ghcr.io/acme/shop:1.2 oci:BASE/shop, and name shop",
        ),
        (
            "docker://acme/shop:1.2",
            "the image `docker://acme/shop:1.2` is not a directory below",
            "skopeo copy docker://acme/shop:1.2 oci:BASE/shop, and name shop",
        ),
        ("./none", "none does not exist", "name a path below BASE"),
        ("docker", "it has no file oci-layout", "to another directory: skopeo copy docker-daemon:"),
        (
            "oci.tar",
            "oci.tar is not an OCI image layout: it is a file",
            "mkdir BASE/oci-oci && tar -xf BASE/oci.tar -C BASE/oci-oci, and name oci-oci",
        ),
        (
            "save.tar:1",
            "save.tar is not an OCI image layout: it is a file",
            "skopeo copy docker-archive:BASE/save.tar oci:BASE/save-oci, and name save-oci",
        ),
        ("app.toml", "app.toml is not an OCI image layout: it is a file, not a directory", ""),
        ("./pipe", "pipe is neither a file nor a directory", "copy what it gives"),
    ],
)
def test_what_is_not_a_layout_is_refused_before_anything_is_built(
    tmp_path: Path, image: str, message: str, remedy: str
) -> None:
    (tmp_path / "docker").mkdir()
    os.mkfifo(tmp_path / "pipe")
    both = layer(("./oci-layout", b"{}", {}), ("./manifest.json", b"[]", {}))
    (tmp_path / "oci.tar").write_bytes(both)
    (tmp_path / "save.tar").write_bytes(layer(("manifest.json", b"[]", {})))
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

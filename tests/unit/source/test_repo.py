"""Android's manifests."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.errors import InputError
from mepof.source.protocol import parse, source_of
from mepof.source.repo import SOURCE, base_url, read_manifest, within

from .conftest import Recorder, commit, files, git

MANIFEST = """<?xml version="1.0" encoding="UTF-8"?>
<manifest>
  <remote name="aosp" fetch=".." review="https://example.org/"/>
  <default revision="main-kernel" remote="aosp" sync-j="4"/>
  <project path="build/kernel" name="kernel/build"/>
  <project path="common" name="kernel/common" revision="android15-6.6">
    <linkfile src="." dest=".source_date_epoch_dir"/>
  </project>
  <project path="common-modules/virtual" name="kernel/common-modules/virtual"/>
  <project path="prebuilts/clang" name="platform/prebuilts/clang" clone-depth="1"/>
</manifest>
"""
VENDOR = """<manifest>
  <remote name="aosp" fetch=".."/>
  <remote name="vendor" fetch="https://vendor.example.org/git/" revision="refs/heads/rel"/>
  <default revision="m" remote="aosp"/>
  <project path="private/msm" name="kernel/msm"/>
  <project path="private/msm/techpack/audio" name="audio" remote="vendor"/>
  <project path="private/msm-extra" name="extra"/>
</manifest>
"""
URL = "https://example.org/kernel/manifest"


def projects(**manifests: str) -> dict[str, str]:
    """The URL and revision of each project by its path; `a` is the file `a.xml`."""
    texts = {f"{name}.xml": text for name, text in manifests.items()}
    found = read_manifest(texts.get, "default.xml", URL)
    return {project.path: f"{project.url} {project.revision}" for project in found}


def test_a_manifest_is_read_as_repo_reads_it() -> None:
    found = projects(default=MANIFEST)
    assert found["common"] == "https://example.org/kernel/common android15-6.6"
    assert found["build/kernel"] == "https://example.org/kernel/build main-kernel"
    assert len(found) == 4


def test_a_remote_has_its_own_address_and_revision() -> None:
    found = projects(default=VENDOR)
    audio = "https://vendor.example.org/git/audio refs/heads/rel"
    assert found["private/msm/techpack/audio"] == audio


def test_includes_removals_and_extensions_are_followed() -> None:
    found = projects(
        default='<manifest><include name="base.xml"/><remove-project name="kernel/build"/>'
        '<extend-project name="kernel/common" revision="other"/></manifest>',
        base=MANIFEST,
    )
    assert "build/kernel" not in found
    assert found["common"].endswith(" other")


@pytest.mark.parametrize(
    ("manifest", "fetch", "base"),
    [
        ("https://android.example.org/kernel/manifest", "..", "https://android.example.org"),
        ("https://example.org/a/b/manifest/", "..", "https://example.org/a"),
        ("ssh://git@example.org:29418/kernel/manifest", "..", "ssh://git@example.org:29418"),
        ("git@example.org:kernel/manifest", "..", "ssh://git@example.org"),
        ("file:///srv/kernel/manifest", "..", "file:///srv"),
        ("https://example.org/kernel/manifest", "https://other.org/x/", "https://other.org/x"),
    ],
)
def test_a_remote_may_be_relative_to_the_manifest(manifest: str, fetch: str, base: str) -> None:
    assert base_url(manifest, fetch) == base


def test_the_kernel_and_what_lies_within_it_are_chosen() -> None:
    found = read_manifest({"m": MANIFEST}.get, "m", URL)
    assert [p.path for p in within(found, None, "m")] == ["common"]
    found = read_manifest({"m": VENDOR}.get, "m", URL)
    inside = ["private/msm", "private/msm/techpack/audio"]
    assert [p.path for p in within(found, None, "m")] == inside
    assert [p.path for p in within(found, "private/msm-extra", "m")] == ["private/msm-extra"]
    with pytest.raises(InputError, match="has no project at private/mms") as caught:
        within(found, "private/mms", "m")
    assert caught.value.remedy == "did you mean `private/msm`?"
    with pytest.raises(InputError, match="does not tell which project is the kernel") as caught:
        within(found[2:], None, "m")
    assert caught.value.remedy == "add kernel=PATH after # or &: private/msm-extra"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not XML"),
        ("<manifest>", "is not XML"),
        ("<project/>", "it begins with <project>"),
        ('<!DOCTYPE m [<!ENTITY a "b">]><manifest/>', "is not a manifest"),
        ('<manifest><include name="default.xml"/></manifest>', "includes itself"),
        ('<manifest><include name="../x"/></manifest>', "leads out of the tree"),
        ('<manifest><include name="gone.xml"/></manifest>', "has no manifest gone.xml"),
        ('<manifest><project name="a"/></manifest>', "unknown remote"),
        (
            '<manifest><remote name="r" fetch=".."/><project name="a" remote="r"/></manifest>',
            "the project a has no revision",
        ),
        (
            '<manifest><remote name="r" fetch=".." revision="m"/>'
            '<project name="a" remote="r" path="../../etc"/></manifest>',
            "leads out of the tree",
        ),
        (
            '<manifest><remote name="r" fetch=".." revision="m"/>'
            '<project name="a" remote="r" path="/etc"/></manifest>',
            "leads out of the tree",
        ),
    ],
)
def test_a_manifest_that_is_wrong_is_an_error(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        projects(default=text)


@pytest.fixture
def android(tmp_path: Path) -> Path:
    """A server's directory: the manifest, a kernel, and a project within it."""
    root = tmp_path / "android"
    for name in ("kernel/manifest", "kernel/msm", "audio"):
        (root / name).mkdir(parents=True)
        git(root / name, "init", "--quiet")
    commit(root / "kernel/msm", 7)
    (root / "audio/audio.c").write_text("int audio;\n")
    git(root / "audio", "add", "--all")
    git(root / "audio", "commit", "--quiet", "--message", "audio")
    text = VENDOR.replace("https://vendor.example.org/git/", f"file://{root}")
    text = text.replace("refs/heads/rel", git(root / "audio", "rev-parse", "HEAD"))
    (root / "kernel/manifest/default.xml").write_text(text)
    git(root / "kernel/manifest", "add", "--all")
    git(root / "kernel/manifest", "commit", "--quiet", "--message", "manifest")
    return root


def test_every_project_is_pinned_and_laid_out(android: Path, output: Path, bench: Recorder) -> None:
    address = f"repo+file://{android}/kernel/manifest#branch=m"
    assert source_of(address) is SOURCE
    parse(address)
    pin = SOURCE.pin(address, bench.workshop)
    head = git(android / "kernel/msm", "rev-parse", "m")
    assert pin["project ."] == f"file://{android}/kernel/msm {head} refs/heads/m"
    assert set(pin) == {"manifest", "project .", "project techpack/audio"}
    assert bench.notes[-1].startswith(f"kernel/msm with private/msm/techpack/audio is at {head}")
    commit(android / "kernel/msm", 8)
    SOURCE.fetch(address, pin, output, bench.workshop)
    assert files(output) == ["Kbuild", "Makefile", "kernel/fork.c", "techpack/audio/audio.c"]
    assert (output / "kernel/fork.c").read_text() == "int fork = 7;\n"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("repo+https://example.org/manifest#kernel=../x", "leads out of the tree"),
        ("repo+https://example.org/manifest#manifest=/etc/x", "leads out of the tree"),
        ("repo+https://example.org/manifest#commit=abc", "is not the whole hash"),
        ("repo+https://example.org/manifest#group=x", "unknown key `group`"),
        ("repo+https://a:b@example.org/manifest#m", "holds a password"),
        ("repo+ftp://example.org/manifest#m", "is not a URL that mepof lets git read"),
        ("repo+#m", "is not a kernel source|has no location"),
    ],
)
def test_malformed_addresses_are_refused_by_their_form(address: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(address)

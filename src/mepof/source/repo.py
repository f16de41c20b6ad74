"""A kernel of an Android manifest: the kernel's git project, and those that lie within it.

``repo`` checks out everything that a manifest names: compilers, build rules, device trees of
tens of gigabytes. A build by mepof needs the kernel's tree, and the projects that manifests lay
into it (techpacks, device trees of vendors). Only these are fetched, each at one commit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urljoin
from xml.etree import ElementTree

from mepof.described import nearest
from mepof.errors import InputError
from mepof.kernel.source import check_kernel
from mepof.source.address import BARE, Address, scheme_of, split
from mepof.source.git import check_ref, check_url, ref_of, wanted
from mepof.source.mirror import Mirror, is_commit
from mepof.source.protocol import Pin, Workshop

PREFIX = "repo+"
_KEYS = (BARE, "tag", "branch", "commit", "manifest", "kernel")
_DEFAULT = "default.xml"
# Where Android's manifests have the kernel, since kernels are built by its own rules.
_COMMON = "common"
MAX_MANIFEST, MAX_INCLUDES, MAX_PROJECTS = 1 << 20, 20, 100
_SHOWN = 6


@dataclass(frozen=True)
class Project:
    """A git project: its path below the top, its URL, and what it is at."""

    path: str
    name: str
    url: str
    revision: str


class RepoSource:
    """``repo+https://HOST/kernel/manifest#branch=NAME``, with ``&kernel=PATH`` if needed."""

    def reads(self, address: str) -> bool:
        return address.startswith(PREFIX)

    def parse(self, address: str) -> None:
        _parsed(address)

    def host(self, address: str) -> None:
        return None

    def check(self, address: str) -> None:
        _parsed(address)

    def pin(self, address: str, workshop: Workshop) -> Pin:
        parsed = _parsed(address)
        url = parsed.location
        kind, name = wanted(parsed)
        if kind == "commit":
            commit, ref = name, None
        else:
            found = ref_of(url, kind, name, workshop)
            commit, ref = found.commit, found.name
        mirror = Mirror(workshop)
        mirror.fetch(url, commit, ref)
        file = parsed.attributes.get("manifest", _DEFAULT)
        projects = read_manifest(lambda path: mirror.text(commit, path), file, url)
        chosen = within(projects, parsed.attributes.get("kernel"), f"{file} of {url}")
        pinned: dict[str, str] = {}
        for project in chosen:
            at, under = _commit(project, workshop)
            # The kernel's own path is the top of the tree.
            place = PurePosixPath(project.path).relative_to(chosen[0].path).as_posix()
            pinned[f"project {place}"] = f"{project.url} {at} {under}".rstrip()
        more = f" with {', '.join(p.path for p in chosen[1:])}" if len(chosen) > 1 else ""
        at = pinned["project ."].split()[1]
        workshop.note(f"{chosen[0].name}{more} is at {at} by {file} at {commit[:12]}")
        return {"manifest": commit, **pinned}

    def identity(self, address: str, pin: Pin) -> Mapping[str, str]:
        return {}

    def fetch(self, address: str, pin: Pin, output: Path, workshop: Workshop) -> None:
        mirror = Mirror(workshop)
        projects = {
            key.removeprefix("project "): value.split(" ")
            for key, value in pin.items()
            if key.startswith("project ")
        }
        for place in sorted(projects, key=lambda path: len(PurePosixPath(path).parts)):
            url, commit, *ref = projects[place]
            mirror.fetch(url, commit, ref[0] if ref else None)
            directory = output / place
            directory.mkdir(parents=True, exist_ok=True)
            mirror.lay_out(commit, directory)
        check_kernel(output, address)


def _parsed(address: str) -> Address:
    parsed = split(address.removeprefix(PREFIX), _KEYS)
    check_url(parsed.location, address)
    kind, name = wanted(parsed)
    if kind == "commit" and not is_commit(name):
        raise InputError(
            f"`{address}`: `{name}` is not the whole hash of a commit", "write all 40 digits"
        )
    if kind != "commit" and name:
        check_ref(name, address)
    for key in ("manifest", "kernel"):
        _check_inside(parsed.attributes.get(key, "x"), address)
    return parsed


def _check_inside(path: str, where: str) -> None:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or path.startswith("-") or not pure.parts:
        raise InputError(f"{where}: the path `{path}` leads out of the tree", "write one inside")


def _commit(project: Project, workshop: Workshop) -> tuple[str, str]:
    """The commit that a project is at, and the ref that has it, if it is known."""
    if is_commit(project.revision):
        return project.revision, ""
    name = project.revision
    for prefix, kind in (("refs/heads/", "branch"), ("refs/tags/", "tag")):
        if name.startswith(prefix):
            found = ref_of(project.url, kind, name.removeprefix(prefix), workshop)
            return found.commit, found.name
    check_ref(name, f"{project.name} of the manifest")
    found = ref_of(project.url, "branch", name, workshop)
    return found.commit, found.name


_Reads = Callable[[str], str | None]


def read_manifest(read: _Reads, file: str, url: str) -> tuple[Project, ...]:
    """The projects of a manifest, in its order.

    The format: https://gerrit.googlesource.com/git-repo/+/HEAD/docs/manifest-format.md.

    Args:
        read: the text of a file of the manifest's repository; None if it does not exist.
        url: of that repository, which addresses of remotes may be relative to.

    Raises:
        InputError: it is not a manifest, or a project has no remote or revision.
    """
    remotes: dict[str, ElementTree.Element] = {}
    default: dict[str, str] = {}
    found: list[tuple[ElementTree.Element, str]] = []
    elements = list(_elements(read, file, url, ()))
    for element, _ in elements:
        if element.tag == "remote":
            remotes[element.get("name", "")] = element
        elif element.tag == "default":
            default = dict(element.attrib)
    for element, where in elements:
        if element.tag == "project":
            found.append((element, where))
        elif element.tag == "remove-project":
            name, path = element.get("name"), element.get("path")
            found = [
                (each, at)
                for each, at in found
                if not (name in (None, each.get("name")) and path in (None, _path(each)))
            ]
        elif element.tag == "extend-project":
            for each, _ in found:
                if each.get("name") == element.get("name") and element.get("path") in (
                    None,
                    _path(each),
                ):
                    each.attrib.update(
                        {k: v for k, v in element.attrib.items() if k in ("revision", "remote")}
                    )
    return tuple(_project(each, at, remotes, default, url) for each, at in found)


def _elements(
    read: _Reads, file: str, url: str, above: tuple[str, ...]
) -> Iterator[tuple[ElementTree.Element, str]]:
    """The elements of a manifest and of those that it includes, with the file of each."""
    where = f"{file} of {url}"
    if file in above or len(above) > MAX_INCLUDES:
        raise InputError(f"{where} includes itself", "name another manifest")
    text = read(file)
    if text is None:
        raise InputError(f"{url} has no manifest {file}", "name it by manifest=FILE")
    if len(text) > MAX_MANIFEST or "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise InputError(f"{where} is not a manifest", "name another one by manifest=FILE")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise InputError(f"{where} is not XML: {error}") from error
    if root.tag != "manifest":
        raise InputError(f"{where} is not a manifest: it begins with <{root.tag}>")
    for element in root:
        if element.tag == "include":
            name = element.get("name", "")
            _check_inside(name, where)
            yield from _elements(read, name, url, (*above, file))
        else:
            yield element, where


def _project(
    element: ElementTree.Element,
    where: str,
    remotes: Mapping[str, ElementTree.Element],
    default: Mapping[str, str],
    url: str,
) -> Project:
    name = element.get("name", "")
    path = _path(element)
    for each in (name, path):
        _check_inside(each, where)
    key = element.get("remote") or default.get("remote") or ""
    remote = remotes.get(key)
    if remote is None:
        raise InputError(f"{where}: the project {name} is of an unknown remote `{key}`")
    revision = element.get("revision") or remote.get("revision") or default.get("revision")
    if not revision:
        raise InputError(f"{where}: the project {name} has no revision")
    base = base_url(url, remote.get("fetch", ""))
    return Project(path, name, f"{base}/{name}", revision)


def base_url(manifest: str, fetch: str) -> str:
    """The URL of a remote, whose ``fetch`` may be relative to that of the manifest."""
    if scheme_of(fetch):
        return fetch.rstrip("/")
    scp = re.match(r"([^/]+@[^/:]+):/*(.*)", manifest)
    url = f"ssh://{scp[1]}/{scp[2]}" if scp else manifest
    # The library resolves relative URLs of web servers only.
    scheme, _, rest = url.rstrip("/").partition("://")
    joined = urljoin(f"http://{rest or 'x'}", fetch).rstrip("/")
    return f"{scheme}://{joined.removeprefix('http://')}"


def _path(element: ElementTree.Element) -> str:
    return (element.get("path") or element.get("name") or "").rstrip("/")


def within(projects: Iterable[Project], kernel: str | None, where: str) -> tuple[Project, ...]:
    """The kernel's project, and after it those that lie within it.

    Args:
        kernel: its path; None takes ``common``, or the only one that is named as kernels are.

    Raises:
        InputError: there is no such project, or there are several.
    """
    by_path = {project.path: project for project in projects}
    if kernel is None:
        kernel = _kernel_of(by_path, where)
    if kernel not in by_path:
        raise InputError(f"{where} has no project at {kernel}", nearest(kernel, by_path))
    inside = [p for path, p in sorted(by_path.items()) if path.startswith(f"{kernel}/")]
    if len(inside) > MAX_PROJECTS:
        raise InputError(f"{where} has {len(inside)} projects in {kernel}", "name another kernel")
    return (by_path[kernel], *inside)


def _kernel_of(by_path: Mapping[str, Project], where: str) -> str:
    if _COMMON in by_path:
        return _COMMON
    # kernel/msm, kernel/common; not kernel/build or kernel/prebuilts/….
    other = {"build", "configs", "prebuilts", "tests", "tools"}
    named = [
        path
        for path, project in by_path.items()
        if (parts := project.name.split("/"))[0] == "kernel"
        and len(parts) == 2
        and parts[1] not in other
        and not parts[1].endswith("-modules")
    ]
    if len(named) == 1:
        return named[0]
    shown = ", ".join((named or sorted(by_path))[:_SHOWN])
    raise InputError(
        f"{where} does not tell which project is the kernel",
        f"add kernel=PATH after # or &: {shown}",
    )


SOURCE = RepoSource()

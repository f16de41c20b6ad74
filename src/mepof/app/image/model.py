"""What an image gives a guest, however it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import BaseModel, ConfigDict, Field

from mepof import arch as architectures
from mepof.app.image.layers import HIDDEN
from mepof.app.laid import Laid, is_directory, resolve

# The guest begins with a program of its own there.
_INIT = "init"
# Container runtimes set it for images that do not: DefaultPathEnv of moby's oci package.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Where an image's own is laid instead.
OWN_INIT = "mepof/init"


@dataclass(frozen=True)
class Image:
    """What an image lays into a guest, and how it starts programs.

    Attributes:
        argv: its entry point and command.
        user: as written: names or numbers, of a user or ``user:group``.
        stop: the signal that stops its entry point, as written: ``SIGQUIT``, ``QUIT`` or ``3``.
        left_out: devices and FIFOs in its layers, which are not laid.
    """

    files: dict[str, Laid] = field(default_factory=dict)
    argv: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    directory: str | None = None
    user: str = ""
    stop: str = ""
    left_out: tuple[str, ...] = ()

    def as_named(self, files: Mapping[str, Laid]) -> Mapping[str, Laid]:
        """Files of a guest as the image's programs name them: with its own ``/init``."""
        own = self.files.get(OWN_INIT)
        return files if own is None else {**files, _INIT: own}

    def with_init_aside(self) -> Image:
        """It, with its ``/init`` where the guest has none."""
        own = self.files.get(_INIT)
        if own is None or own.is_directory:
            return self
        if own.link is not None:
            own = replace(own, link=f"/{resolve(_INIT, self.files)}")
        files = {path: laid for path, laid in self.files.items() if path != _INIT}
        return replace(self, files={**files, OWN_INIT: own})


class Document(BaseModel):
    """A JSON file of an image, of which we read a part."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Settings(Document):
    """How an image starts programs."""

    user: str | None = Field(default=None, alias="User")
    environment: tuple[str, ...] | None = Field(default=None, alias="Env")
    entrypoint: tuple[str, ...] | None = Field(default=None, alias="Entrypoint")
    command: tuple[str, ...] | None = Field(default=None, alias="Cmd")
    directory: str | None = Field(default=None, alias="WorkingDir")
    stop: str | None = Field(default=None, alias="StopSignal")


class Layers(Document):
    """The digests of the layers' tar archives, not compressed."""

    diff_ids: tuple[str, ...] = ()


class Config(Document):
    """The configuration of an image, which OCI has from Docker.

    Attributes:
        architecture: Go's name for it, which is Debian's for those that mepof has.
    """

    architecture: str
    os: str
    config: Settings | None = None
    rootfs: Layers = Layers()

    def is_for(self, arch: str) -> bool:
        """Whether it is for Linux and an architecture."""
        return (self.os, self.architecture) == ("linux", wanted(arch))

    def image(self, files: dict[str, Laid], left_out: list[str]) -> Image:
        """The image with files of its layers, to which its working directory is added."""
        settings = self.config or Settings()
        # Container runtimes make the working directory, which need not be in any layer.
        directory = resolve(settings.directory or "", files)
        hidden = directory is None or directory.partition("/")[0] in HIDDEN
        if directory and not hidden and not is_directory(directory, files):
            files.setdefault(directory, Laid())
        variables = [each.partition("=") for each in settings.environment or ()]
        environment = {"PATH": _PATH, **{key: value for key, _, value in variables}}
        return Image(
            files=files,
            argv=(settings.entrypoint or ()) + (settings.command or ()),
            environment=tuple(environment.items()),
            directory=settings.directory or None,
            user=settings.user or "",
            stop=settings.stop or "",
            left_out=tuple(left_out),
        )


def wanted(arch: str) -> str:
    """What images call an architecture."""
    return architectures.get(arch).debian or arch

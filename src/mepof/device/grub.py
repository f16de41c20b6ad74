"""GRUB's menu on a machine: which kernels it can boot, which it boots by default, and booting one
of them once.

``grub-reboot`` sets ``next_entry`` in GRUB's environment, and GRUB clears it before it boots that
entry, whatever the kernel does then. So every later reset boots the default again
(grub-reboot(8); GRUB, util/grub.d/00_header.in).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mepof.device.shell import Ran, Reachable
from mepof.errors import EnvironmentLack, InputError, WorkError, listed

CONFIG = "/boot/grub/grub.cfg"
_ANSWER = 30.0
_MAX_LISTED = 6
_BLOCK = re.compile(r"(menuentry|submenu)\s+(?:'([^']*)'|\"([^\"]*)\")")
_ID = re.compile(r"(?:\$menuentry_id_option|--id)\s+'?([^'\s{]+)")
_LINUX = re.compile(r"linux(?:16|efi)?\s+\S*/vmlinuz-(\S+)(.*)")
_DEFAULT = re.compile(r"^\s*set default=\"([^\"]*)\"", re.M)


@dataclass
class Entry:
    """An entry of the menu, or a submenu.

    Attributes:
        release: of the kernel that it boots; empty if it boots something else.
        parameters: the kernel's command line.
        entries: of a submenu.
    """

    title: str
    id: str
    release: str = ""
    parameters: str = ""
    entries: list[Entry] = field(default_factory=list)


def menu_of(config: str) -> tuple[Entry, ...]:
    """The entries of a ``grub.cfg`` as ``grub-mkconfig`` writes it."""
    root = Entry("", "")
    # Functions are blocks too.
    blocks: list[Entry] = [root]
    for line in map(str.strip, config.splitlines()):
        block = _BLOCK.match(line)
        if line.endswith("{"):
            title = (block[2] or block[3] or "") if block else ""
            known = _ID.search(line)
            entry = Entry(title, known[1] if known else title)
            if block:
                blocks[-1].entries.append(entry)
            blocks.append(entry)
        elif line == "}" and len(blocks) > 1:
            blocks.pop()
        elif (kernel := _LINUX.match(line)) and not blocks[-1].release:
            blocks[-1].release, blocks[-1].parameters = kernel[1], kernel[2].strip()
    return tuple(root.entries)


@dataclass(frozen=True)
class Menu:
    """GRUB's menu on a machine, and its environment."""

    entries: tuple[Entry, ...]
    chosen: str
    environment: dict[str, str]

    @classmethod
    def of(cls, shell: Reachable) -> Menu:
        """Read the menu of a machine.

        Raises:
            EnvironmentLack: the machine does not boot by GRUB, as Debian sets it up.
        """
        config = shell.read(CONFIG)
        if config is None:
            raise EnvironmentLack(
                f"{shell.name} has no {CONFIG}",
                "install GRUB, or boot the kernels by hand and count with `mepof device count`",
            )
        chosen = [text for text in _DEFAULT.findall(config) if "next_entry" not in text]
        listing = _grub(shell, "grub-editenv", "list").output
        pairs = (line.partition("=") for line in listing.splitlines())
        return cls(
            menu_of(config), chosen[0] if chosen else "0", {key: value for key, _, value in pairs}
        )

    def path_of(self, release: str) -> str:
        """What ``grub-reboot`` calls the entry of a kernel.

        Raises:
            InputError: no entry has it.
        """
        return self._found(release)[0]

    def parameters_of(self, release: str) -> str:
        """The kernel's command line in that entry.

        Raises:
            InputError: no entry has it.
        """
        return self._found(release)[1].parameters

    def _found(self, release: str) -> tuple[str, Entry]:
        known = [(path, entry) for path, entry in _walk(self.entries) if entry.release]
        having = [each for each in known if each[1].release == release]
        if not having:
            others = listed(list(dict.fromkeys(entry.release for _, entry in known)), _MAX_LISTED)
            raise InputError(
                f"GRUB's menu has no kernel `{release}`",
                f"install it and run `update-grub`; it has {others or 'none'}",
            )
        # The entry `Debian GNU/Linux` is of whichever kernel is the newest.
        named = [each for each in having if release in f"{each[1].id} {each[1].title}"]
        return (named or having)[0]

    @property
    def saves(self) -> bool:
        """Whether the default is what ``grub-set-default`` chose."""
        return "saved_entry" in self.chosen

    @property
    def default(self) -> str | None:
        """The release that GRUB boots by itself; None if it is not known."""
        chosen = (self.environment.get("saved_entry", "") if self.saves else self.chosen) or "0"
        # As GRUB does, the whole is tried as an entry before it is taken apart.
        entry = _at(self.entries, [chosen]) or _at(self.entries, chosen.split(">"))
        while entry is not None and entry.entries:
            entry = entry.entries[0]
        return entry.release or None if entry else None

    @property
    def waits(self) -> bool:
        """Whether an entry is to be booted once, and was not booted yet."""
        return bool(self.environment.get("next_entry"))


def boot_once(shell: Reachable, path: str) -> None:
    """Have the next boot, and no other, use an entry.

    Raises:
        EnvironmentLack: ``grub-reboot`` is not installed.
        WorkError: it failed.
    """
    _grub(shell, "grub-reboot", path)


def forget(shell: Reachable) -> None:
    """Have the next boot use the default.

    Raises:
        WorkError: GRUB's environment cannot be written.
    """
    _grub(shell, "grub-editenv", "-", "unset", "next_entry")


def _grub(shell: Reachable, *words: str) -> Ran:
    done = shell.run(words, _ANSWER)
    if done.status == 127:
        raise EnvironmentLack(
            f"{words[0]} is not installed on {shell.name}", "apt-get install grub2-common"
        )
    if done.status != 0:
        raise WorkError(
            f"`{' '.join(words)}` failed on {shell.name}: {done.last}",
            "see whether /boot/grub there has space and can be written",
        )
    return done


def _walk(entries: Sequence[Entry], above: str = "") -> Iterator[tuple[str, Entry]]:
    for entry in entries:
        path = f"{above}{entry.id.replace('>', '>>')}"
        yield path, entry
        yield from _walk(entry.entries, f"{path}>")


def _at(entries: Sequence[Entry], path: Sequence[str]) -> Entry | None:
    """The entry at a path of numbers, ids and titles."""
    name, *rest = path
    if name.isdecimal():
        found = entries[int(name)] if int(name) < len(entries) else None
    else:
        found = next((entry for entry in entries if name in (entry.id, entry.title)), None)
    return _at(found.entries, rest) if found and rest else found

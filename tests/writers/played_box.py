"""A machine with GRUB and systemd: a tree of files, and what a reboot of it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mepof.device.shell import LocalShell, LostConnection, Ran

OLD, PLAIN, OPT = "6.1.0-43-amd64", "6.12.95-mepof-plain", "6.12.95-mepof-opt"
# As `update-grub` of Debian 12 writes it, without what draws the screen and loads modules.
_HEAD = """\
if [ -s $prefix/grubenv ]; then
  set have_grubenv=true
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="%s"
fi
function savedefault {
  if [ -z "${boot_once}" ]; then
    saved_entry="${chosen}"
    save_env saved_entry
  fi
}
menuentry 'Debian GNU/Linux' --class debian --class os $menuentry_id_option 'gnulinux-simple-5e' {
	insmod gzio
	if [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi
	linux	/boot/vmlinuz-%s root=UUID=5e ro  quiet panic=10
	initrd	/boot/initrd.img-6.1.0-43-amd64
}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-5e' {
"""
_ENTRY = """\
	menuentry 'Debian GNU/Linux, with Linux {0}' --class os $menuentry_id_option 'gnulinux-{0}-advanced-5e' {{
		linux	/boot/vmlinuz-{0} root=UUID=5e ro  quiet panic=10
		initrd	/boot/initrd.img-{0}
	}}
	menuentry 'Debian GNU/Linux, with Linux {0} (recovery mode)' $menuentry_id_option 'gnulinux-{0}-recovery-5e' {{
		linux	/boot/vmlinuz-{0} root=UUID=5e ro single panic=10
	}}
"""  # noqa: E501
SAVED = "${saved_entry}"


def config(
    default: str = "0", first: str = OLD, releases: Sequence[str] = (OPT, PLAIN, OLD)
) -> str:
    """A ``grub.cfg``."""
    return _HEAD % (default, first) + "".join(_ENTRY.format(r) for r in releases) + "}\n"


@dataclass
class Box:
    """The machine, as it is reached from another one.

    Attributes:
        runs: its release.
        boots: how often it was rebooted.
        environment: GRUB's.
        hangs: kernels that do not come up; somebody has to reset the machine.
        panics: kernels that reboot by themselves.
        refuses: it does not reboot when it is told to.
        clears: GRUB can write to its environment.
        costs: thousands of instructions of an operation, by kernel; 100 if it is not there.
        counting: perf's output, for operations and their cost; None for instructions.
        virtual: what ``systemd-detect-virt`` says.
        selfcheck: its status, by kernel.
        contents: digests of initrds and programs, by path.
        history: the kernels that were to boot, and what systemd was told.
    """

    root: Path
    runs: str = OLD
    boots: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    hangs: tuple[str, ...] = ()
    panics: tuple[str, ...] = ()
    refuses: bool = False
    clears: bool = True
    down: bool = False
    costs: dict[str, int] = field(default_factory=dict)
    counting: Callable[[int, int], Ran] | None = None
    virtual: str = "none"
    selfcheck: dict[str, int] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.file("boot/grub/grub.cfg", config())
        self.file("proc/sys/kernel/random/boot_id", "boot-0")
        self.file("etc/machine-id", "0a1b")
        self.file("sys/devices/system/cpu/online", "0-3")
        self.file("proc/cpuinfo", "processor : 0\nmodel name : AMD Ryzen 7 7700\n")
        self.file("etc/systemd/system/other.service", "")

    def file(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(f"{text}\n")

    @property
    def name(self) -> str:
        return "box"

    @property
    def option(self) -> str:
        return "--ssh box"

    @property
    def by_network(self) -> bool:
        return True

    @property
    def _files(self) -> LocalShell:
        if self.down:
            raise LostConnection("box cannot be reached by ssh: No route to host")
        return LocalShell(self.root)

    def read(self, path: str) -> str | None:
        return self._files.read(path)

    def write(self, path: str, text: str) -> None:
        self._files.write(path, text)

    def paths(self, pattern: str) -> tuple[str, ...]:
        return self._files.paths(pattern)

    def reconnect(self) -> None:
        assert self._files

    def reset(self) -> None:
        """Somebody presses the button."""
        self.down = False
        self._reboot()

    def run(self, argv: Sequence[str], timeout: float) -> Ran:
        assert self._files
        match list(argv):
            case ["grub-editenv", "list"]:
                pairs = self.environment.items()
                return Ran(0, "".join(f"{key}={value}\n" for key, value in pairs))
            case ["grub-editenv", "-", "unset", name]:
                self.environment.pop(name, None)
            case ["grub-reboot", path]:
                self.environment["next_entry"] = path
            case ["systemctl", "reboot"] if self.refuses:
                return Ran(1, 'Operation inhibited by "apt"\n')
            case ["systemctl", "reboot"]:
                self._reboot()
            case ["systemctl", "enable" | "disable", _]:
                self.history.append(" ".join(argv[1:]))
            case ["up"]:
                return Ran(0, "running\n")
            case ["uname", "-r"]:
                return Ran(0, f"{self.runs}\n")
            case ["id", "-u"]:
                return Ran(0, "0\n")
            case ["sha256sum", path] if "vmlinuz-" in path:
                absent = path.rpartition("vmlinuz-")[2] not in (OLD, PLAIN, OPT)
                return Ran(int(absent), f"{'ab' * 32}  {path}\n")
            case ["sha256sum", *paths]:
                return Ran(0, "".join(f"{self.contents.get(p, 'cd' * 32)}  {p}\n" for p in paths))
            case ["stat", *_]:
                return Ran(0, "9000000\n")
            case ["systemd-detect-virt", "--vm"]:
                return Ran(self.virtual == "none", f"{self.virtual}\n")
            case ["taskset", *_]:
                return self._program(argv)
            case _:
                return Ran(127, f"{argv[0]} not found")
        return Ran(0, "")

    def _program(self, argv: Sequence[str]) -> Ran:
        if "selfcheck" in argv:
            return Ran(self.selfcheck.get(self.runs, 0), "selfcheck=failed check=memory\n")
        operations = int(argv[-1]) if "--operations" in argv else 200
        said = f"case=proc operations={operations} elapsed_ns=9000 check=ok\n"
        if "perf" not in argv:
            return Ran(0, said)
        cost = self.costs.get(self.runs, 100)
        if self.counting is not None:
            counted = self.counting(operations, cost)
            return Ran(counted.status, said + counted.output)
        # Boots differ a little, as those of hardware do.
        count = 5000 + operations * (1000 * cost + self.boots % 3)
        return Ran(0, f"{said}{count};;instructions:k;9;100.00;;\n")

    def _reboot(self) -> None:
        self.boots += 1
        path = self.environment.get("next_entry", "")
        if self.clears:
            self.environment.pop("next_entry", None)
        wanted = next((r for r in (OPT, PLAIN, OLD) if f"gnulinux-{r}-" in path), OLD)
        self.history.append(wanted)
        if wanted in self.hangs:
            self.down = True
            return
        self.runs = OLD if wanted in self.panics else wanted
        self.file("proc/sys/kernel/random/boot_id", f"boot-{self.boots}")


@dataclass(frozen=True)
class Here(LocalShell):
    """The machine, as a program on it sees it."""

    box: Box | None = None

    def run(self, argv: Sequence[str], timeout: float) -> Ran:
        assert self.box is not None
        return self.box.run(argv, timeout)

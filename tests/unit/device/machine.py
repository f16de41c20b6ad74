"""A machine to prepare: a tree of files, and programs that keep what is written to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mepof.device.preparation import Preparation
from mepof.device.shell import LocalShell, Ran

CPUS = 4
LITTLE = (0, 1)

PREPARATION = Preparation.model_validate(
    {
        "title": "a machine that is made up",
        "source": "nowhere",
        "reboot": {"command": ["reboot"], "ready": ["getprop", "up"], "answer": "1"},
        "setting": [
            {
                "what": "service {each}",
                "each": ["thermald", "hotplugd", "absentd"],
                "read": ["getprop", "{each}"],
                "value": "stopped",
                "write": {"stopped": ["stop", "{each}"], "running": ["start", "{each}"]},
            },
            {
                "what": "governor",
                "path": "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
                "value": "performance",
            },
            {
                "what": "lowest frequency",
                "path": "/sys/devices/system/cpu/cpufreq/policy*/scaling_min_freq",
                "beside": "cpuinfo_max_freq",
            },
            {"what": "turbo", "path": "/sys/absent/boost", "value": "0"},
            {"what": "huge pages", "path": "/sys/kernel/hugepages", "value": "never"},
            {
                "what": "threads",
                "path": "/sys/devices/system/cpu/smt/control",
                "value": "off",
                "only": ["on"],
            },
            {
                "what": "aeroplane mode",
                "read": ["settings", "get", "aeroplane"],
                "value": "1",
                "write": {
                    "null": ["settings", "delete", "aeroplane"],
                    "*": ["settings", "put", "aeroplane", "{value}"],
                },
                "cuts_network": True,
            },
        ],
    }
)


def tree(root: Path) -> LocalShell:
    """A machine with two policies of two CPUs each."""
    cpu = root / "sys/devices/system/cpu"
    files = {
        cpu / "online": f"0-{CPUS - 1}",
        cpu / "smt/control": "notsupported",
        root / "sys/kernel/hugepages": "always",
        root / "proc/sys/kernel/random/boot_id": "first",
    }
    for policy, top in ((0, "1440000"), (2, "1824000")):
        at = cpu / f"cpufreq/policy{policy}"
        files |= {
            at / "scaling_governor": "interactive",
            at / "scaling_min_freq": "300000",
            at / "cpuinfo_max_freq": top,
        }
    files |= {cpu / f"cpu{n}/cpu_capacity": "446" if n in LITTLE else "1024" for n in range(CPUS)}
    # The programs' own: what `getprop` and `settings` tell.
    files |= {root / "data/thermald": "running", root / "data/hotplugd": "running"}
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
    return Machine(root)


def state(root: Path) -> dict[str, str]:
    """Every file's text by its path."""
    return {
        str(path.relative_to(root)): path.read_text(encoding="utf-8").strip()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@dataclass(frozen=True)
class Machine(LocalShell):
    """The tree's files, and programs such as a phone has them.

    Attributes:
        volatile: what a reboot brings back.
    """

    volatile: dict[Path, str] = field(default_factory=dict)
    network: bool = False

    @property
    def name(self) -> str:
        return "made-up"

    @property
    def option(self) -> str:
        return "--adb made-up"

    @property
    def by_network(self) -> bool:
        return self.network

    def run(self, argv: Sequence[str], timeout: float) -> Ran:
        data = self.root / "data"
        match argv:
            case ["getprop", name]:
                return Ran(0, self.read(f"/data/{name}") or "\n")
            case ["start" | "stop", name]:
                (data / name).write_text("running\n" if argv[0] == "start" else "stopped\n")
            case ["settings", "get", name]:
                return Ran(0, self.read(f"/data/{name}") or "null\n")
            case ["settings", "put", name, value]:
                (data / name).write_text(f"{value}\n")
            case ["settings", "delete", name]:
                (data / name).unlink()
            case ["reboot"]:
                for path, text in self.volatile.items():
                    path.write_text(text)
            case _:
                return Ran(127, f"{argv[0]} not found")
        return Ran(0, "")

"""Settings of the plugin ``pmu.so`` (native/pmu/settings.c)."""

from __future__ import annotations

from hashlib import sha256

from mepof import arch
from mepof.device.observation import Measure
from mepof.pmu.core import Core, load_core

# Costs of entering and leaving the kernel.
_CROSSINGS = ("system_call", "system_return", "interrupt", "interrupt_return", "swap_base")


def modelling(name: str) -> Measure:
    """What a session measures to model the core of that name."""
    core = load_core(name)
    return Measure(name, settings_of(core), cpu=core.emulated)


def settings_of(core: Core) -> tuple[str, ...]:
    """The plugin's arguments for a core, each ``name=value``."""
    tables = {
        "l1i": core.l1i,
        "l1d": core.l1d,
        "l2": core.l2,
        "itlb": core.itlb,
        "dtlb": core.dtlb,
        "l2-itlb": core.l2_itlb,
        "l2-dtlb": core.l2_dtlb,
        "op-cache": core.op_cache,
        "btb": core.btb,
        "l1-btb": core.l1_btb,
    }
    pages = arch.get(core.arch).pages
    assert pages is not None  # Core refuses architectures without pages
    # The plugin takes logarithms of two.
    text, data = (size.bit_length() - 1 for size in (pages.text, pages.data))
    direction = (
        core.direction.base.bit_length() - 1,
        core.direction.table.bit_length() - 1,
        *core.direction.history,
    )
    blocked = core.pipeline.blocked_forwarding
    pipeline = core.pipeline.model_dump(exclude={"source"}, exclude_none=True) | {
        "fetch_split": int(core.pipeline.fetch_split),
        "fetch_free": int(core.pipeline.fetch_free),
        "blocked_forwarding": core.pipeline.forwarding if blocked is None else blocked,
    }
    if (op_cache := core.op_cache) is not None:
        pipeline |= {
            "decode_bytes": op_cache.decode_bytes,
            "decode_instructions": op_cache.decode_instructions,
            "decode_turn": op_cache.turn,
        }
    return (
        f"line={core.line}",
        *(f"{name}={t.sets}:{t.ways}" for name, t in tables.items() if t is not None),
        "indirect=" + ":".join(map(str, (core.indirect.entries, *core.indirect.history))),
        f"path={core.indirect.path}",
        f"returns={core.returns.depth}",
        "direction=" + ":".join(map(str, direction)),
        f"code-prefetch={core.prefetch.code}",
        f"data-prefetch={core.prefetch.data}",
        f"kernel-text-page={text}",
        f"kernel-data-page={data}",
        *(f"{name.replace('_', '-')}={value}" for name, value in pipeline.items()),
        *(
            f"{name.replace('_', '-')}={cost.cycles}"
            for name, cost in core.cost
            if cost is not None
        ),
    )


def core_digest(name: str) -> str:
    """SHA-256 over everything of a core that decides what is modelled."""
    return _digest(load_core(name))


def price_digest(name: str) -> str:
    """SHA-256 over what may decide the price of string instructions: not the costs of entering and
    leaving the kernel."""
    core = load_core(name)
    cost = core.cost.model_copy(update=dict.fromkeys(_CROSSINGS))
    return _digest(core.model_copy(update={"cost": cost}))


def _digest(core: Core) -> str:
    return sha256(repr((core.emulated, settings_of(core))).encode()).hexdigest()

"""Collects the words that programs can use from the registries and data folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mepof import arch
from mepof.algorithm.protocol import ALGORITHMS
from mepof.app.apps import App, app_names
from mepof.app.measured import case_ids
from mepof.app.own import OwnApp
from mepof.app.training import names_in, names_to_leave_out
from mepof.device.protocol import DEVICES, BranchSource, Flashable
from mepof.g4.settings import Settings
from mepof.g4.words import Vocabulary
from mepof.gate.kselftests import collection_names
from mepof.gate.results import GATES
from mepof.kernel import kconfig
from mepof.kernel.options import option_groups, options
from mepof.kernel.subsystems import subsystems
from mepof.measure.goal import QUANTITIES, SIZES
from mepof.measure.metrics import METRICS, CoreMetric, RepeatCount, Work
from mepof.measure.quantities import QUANTITIES as QUANTITIES_OF_CASES
from mepof.package.protocol import FORMATS
from mepof.pmu.core import core_names
from mepof.scenario.protocol import SCENARIOS
from mepof.suite.cases import (
    bound_to_arch,
    cases_of,
    control_groups,
    groups_by_case,
    kernels,
    metric_names,
    printing_groups,
)
from mepof.toolchain import named as toolchain


def vocabulary() -> Vocabulary:
    """All words, by the kind of operand that they are valid for."""
    return Vocabulary(
        algorithms=ALGORITHMS.names(),
        clicks=SCENARIOS.names(),
        apps=app_names(),
        options=tuple(options()),
        metrics=metric_names(),
        architectures=arch.names(),
        toolchains=toolchain.names(),
        devices=DEVICES.names(),
        configs=kconfig.names(),
        untrained=names_to_leave_out(),
        cores=core_names(),
        quantities=QUANTITIES,
        sizes=SIZES,
        bound_to_arch=bound_to_arch(),
        default_metrics=tuple(dict.fromkeys(case.metric for case in cases_of(()))),
        cases=groups_by_case(),
        kernels={
            name: kernel for name, kernel in kernels().items() if (kernel,) != Settings.config
        },
        quantities_of_cases=tuple(QUANTITIES_OF_CASES),
        core_quantities=frozenset(q.name for q in QUANTITIES_OF_CASES.values() if q.of_core),
        gates=GATES,
        collections=collection_names(),
        costs=tuple(metric.name for metric in METRICS),
        core_costs=frozenset(m.name for m in METRICS if isinstance(m, CoreMetric)),
        printed_costs=printing_groups(),
        arch_costs={
            metric.name: frozenset(
                each.name for each in arch.records() if each.machine and each.machine.repeat_core
            )
            for metric in METRICS
            if isinstance(metric, Work | RepeatCount)
        },
        control_costs=frozenset(metric.name for metric in METRICS if metric.control),
        control_groups=control_groups(),
        option_groups=option_groups(),
        recorded_rounds={
            name: algorithm.rounds if algorithm.records_branches else 0
            for name, algorithm in ALGORITHMS.all().items()
        },
        repeating=frozenset(
            name for name, algorithm in ALGORITHMS.all().items() if algorithm.repeats
        ),
        renewing=frozenset(n for n, algorithm in ALGORITHMS.all().items() if algorithm.renews),
        bound_to_build=frozenset(
            name for name, algorithm in ALGORITHMS.all().items() if algorithm.same_build
        ),
        arguments={name: scenario.argument for name, scenario in SCENARIOS.all().items()},
        default_toolchain=toolchain.DEFAULT,
        requirements={
            **{name: algorithm.requires for name, algorithm in ALGORITHMS.all().items()},
            **{name: option.requires for name, option in options().items()},
        },
        capabilities=toolchain.capabilities(),
        exclusive=toolchain.exclusive(),
        builders={each.name: toolchain.builders(each) for each in arch.records()},
        packages={name: made.takes_file for name, made in FORMATS.all().items()},
        beside=frozenset(name for name, made in FORMATS.all().items() if made.beside),
        recorders=frozenset(
            name
            for name, device in DEVICES.all().items()
            if isinstance(device, BranchSource) and device.records_all
        ),
        interactive=frozenset(n for n, each in SCENARIOS.all().items() if each.interactive),
        whole=frozenset(name for name, option in options().items() if option.cold_small),
        subsystems=tuple(subsystems()),
        flashable=frozenset(n for n, dev in DEVICES.all().items() if isinstance(dev, Flashable)),
    )


def with_own(words: Vocabulary, apps: Mapping[str, App]) -> Vocabulary:
    """The words of a program that names apps of the user's.

    Args:
        apps: by the path of the description.
    """
    names = (name for app in apps.values() for name in names_in(app))
    cases = {
        f"{suite}/{case}": path
        for path, app in apps.items()
        if isinstance(app, OwnApp)
        for suite, case in case_ids(app)
    }
    return replace(
        words, untrained=(*words.untrained, *apps, *names), cases={**words.cases, **cases}
    )

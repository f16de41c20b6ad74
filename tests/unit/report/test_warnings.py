"""What the report advises where there is too little data."""

from __future__ import annotations

from mepof.measure.measurement import Evaluation
from mepof.report import build_report

from .samples import PROVENANCE, measurement, report


def test_a_command_without_a_program_is_told_of_its_option() -> None:
    given = Evaluation(images=(measurement("plain", factors=(1.0,)), measurement(factors=(0.9,))))
    provenance = PROVENANCE.model_copy(update={"program": ""})
    (warning,) = build_report(given, [], None, provenance).warnings
    assert warning.endswith("; raise `--repetitions`")
    (warning,) = build_report(given, [], None, PROVENANCE).warnings
    assert warning.endswith("; raise `set repetitions`")


def test_more_layouts_are_asked_for_where_boots_cannot_help() -> None:
    plain, opt = measurement("plain"), measurement(factors=[0.98] * 5)
    layouts = [
        measurement(f"plain{'+' * n}", factors=[factor] * 5)
        for n, factor in enumerate((0.97, 1.03, 1.0), 1)
    ]

    def advice(count: int) -> str:
        made = report(plain, opt, relinked=tuple(layouts[:count]))
        (warning,) = (
            w for w in made.warnings if "for a verdict on opt in kernel_instructions" in w
        )
        assert warning.startswith("too few layouts of plain were measured")
        return warning.partition("; ")[2]

    assert advice(1) == advice(2) == "write `set relinked 3.` or more"
    assert advice(3) == "write `set relinked 4.` or more, or raise `set repetitions`"


def test_images_without_anything_in_common_are_not_too_few_boots() -> None:
    made = report(measurement("plain", costs={"proc": 9.0}), measurement(costs={"syscall": 9.0}))
    assert "nothing of opt could be compared with plain" in made.warnings
    assert not any("raise" in w for w in made.warnings)

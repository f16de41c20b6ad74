"""The recompilation options."""

from __future__ import annotations

from mepof.kernel.build_spec import FileFlags
from mepof.kernel.options import option_groups, options


def test_options_that_exclude_each_other_form_a_group() -> None:
    groups = option_groups()
    assert {"O2", "O3", "Os"} <= set(groups["optimisation level"])
    assert {"ThinLTO", "FullLTO"} <= set(groups["kind of LTO"])
    assert set(groups["code that never ran"]) == {"ColdSmall", "NoPGSO"}
    assert "ColdSmall" not in {*groups["optimisation level"], *groups["kind of LTO"]}


def test_only_one_option_calls_untrained_functions_cold() -> None:
    assert [name for name, option in options().items() if option.cold_small] == ["ColdSmall"]


def test_an_option_has_flags_of_single_files() -> None:
    assert options()["FullLTO"].files == (
        FileFlags(("arch/x86/entry/syscall_64.o",), ("-fno-lto",)),
    )
    assert options()["O3"].files == ()
    assert options()["O3"].cflags == ("-O3",)

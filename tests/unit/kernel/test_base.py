"""What configurations are laid over, looked up in a tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof import arch
from mepof.errors import InputError
from mepof.kernel import kconfig
from mepof.kernel.base import check, values
from mepof.kernel.kconfig import Fragments


def merged(tmp_path: Path, text: str) -> Fragments:
    (tmp_path / "0.config").write_text(text)
    return kconfig.merge([tmp_path / "0.config"])


def test_a_tree_without_a_file_that_kconfig_reads_is_not_complete(tmp_path: Path) -> None:
    """As a sparse checkout. What is named by make alone, or may be missing, is not looked for."""
    for name, text in {
        "Kconfig": 'source "arch/$(SRCARCH)/Kconfig"\nsource "$(VENDOR)/Kconfig"\n',
        "arch/arm64/Kconfig": 'osource "vendor/Kconfig"\nif A\nsource "drivers/Kconfig"\nendif\n',
        "arch/arm64/configs/defconfig": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    wanted, arm64 = merged(tmp_path, "CONFIG_A=y\n"), arch.get("arm64")
    said = "not complete: arch/arm64/Kconfig reads drivers/Kconfig, which is not there"
    with pytest.raises(InputError, match=said) as caught:
        check(tmp_path, arm64, wanted)
    assert "git sparse-checkout disable" in str(caught.value.remedy)
    (tmp_path / "drivers").mkdir()
    (tmp_path / "drivers/Kconfig").write_text('source "Kconfig"\n')
    check(tmp_path, arm64, wanted)


@pytest.mark.parametrize(
    ("base", "wrong"),
    [
        ("allnoconfig", None),
        ("alldefconfig", None),
        ("virtconfig", None),
        ("gki_defconfig vendor/phone.config tiny.config", None),
        ("gki_defconfg", ("gki_defconfg", "the nearest is `gki_defconfig`")),
        ("gki_defconfig phone.config", ("phone.config", "the nearest is `vendor/phone.config`")),
        ("zzzz", ("zzzz", "see arch/arm64/configs in the tree")),
    ],
)
def test_a_base_that_the_tree_does_not_have_is_an_error_with_the_nearest_name(
    tmp_path: Path, base: str, wrong: tuple[str, str] | None
) -> None:
    for name, text in {
        "scripts/kconfig/Makefile": "simple-targets := allnoconfig \\\n\talldefconfig\n",
        "arch/arm64/Makefile": "virtconfig:\n",
        "arch/arm64/configs/gki_defconfig": "",
        "arch/arm64/configs/vendor/phone.config": "",
        "kernel/configs/tiny.config": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    wanted = merged(tmp_path, f"CONFIG_A=y\n# base: {base}\n")
    if wrong is None:
        check(tmp_path, arch.get("arm64"), wanted)
        return
    with pytest.raises(InputError) as caught:
        check(tmp_path, arch.get("arm64"), wanted)
    said = f"{tmp_path}/0.config:2: the kernel has no configuration `{wrong[0]}`"
    assert (caught.value.message, caught.value.remedy) == (said, wrong[1])


@pytest.mark.parametrize(
    ("makefile", "file", "lacks"),
    [
        ("", "defconfig", "arm64/configs/defconfig"),
        ("KBUILD_DEFCONFIG := gki_defconfig", "gki_defconfig", "arm64/configs/gki_defconfig"),
        (
            "\tKBUILD_DEFCONFIG = $(ARCH)_defconfig\nelse\n\tKBUILD_DEFCONFIG := other_defconfig",
            "arm64_defconfig",
            "arm64/configs/arm64_defconfig",
        ),
        (
            "KBUILD_DEFCONFIG := a_defconfig\nelse\nKBUILD_DEFCONFIG := b_defconfig",
            "b_defconfig",
            "arm64/configs/a_defconfig or b_defconfig",
        ),
        ("KBUILD_DEFCONFIG := $(shell uname -m)_defconfig", None, None),
    ],
)
@pytest.mark.parametrize("line", ["", "# base: defconfig\n"])
def test_the_default_configuration_must_be_in_the_tree(
    tmp_path: Path, makefile: str, file: str | None, lacks: str | None, line: str
) -> None:
    configs = tmp_path / "arch/arm64/configs"
    configs.mkdir(parents=True)
    (tmp_path / "arch/arm64/Makefile").write_text(f"{makefile}\n")
    (tmp_path / "scripts/kconfig").mkdir(parents=True)
    (tmp_path / "scripts/kconfig/Makefile").write_text("PHONY += olddefconfig\ndefconfig: conf\n")
    (configs / "phone_defconfig").touch()
    wanted = merged(tmp_path, f"{line}CONFIG_A=y\n")
    if lacks is not None and file is not None:
        with pytest.raises(InputError) as caught:
            check(tmp_path, arch.get("arm64"), wanted)
        where = f"{tmp_path}/0.config:1: " if line else ""
        said = f"{where}the kernel has no configuration `defconfig`: no arch/{lacks}"
        assert caught.value.message == said
        assert str(caught.value.remedy).endswith("the nearest is `phone_defconfig`")
        assert ("`# base: NAME`" in str(caught.value.remedy)) == (not line)
        (configs / file).touch()
    check(tmp_path, arch.get("arm64"), wanted)


@pytest.mark.parametrize(
    "mention",
    [
        "\t$(call merge_into_defconfig,board_defconfig,lpae)",
        "# make board_defconfig",
        "  echo '  board_defconfig - for the board'",
        "KBUILD_DEFCONFIG := board_defconfig",
    ],
)
def test_a_makefile_that_only_mentions_a_base_does_not_have_it(
    tmp_path: Path, mention: str
) -> None:
    (tmp_path / "arch/arm64").mkdir(parents=True)
    (tmp_path / "arch/arm64/Makefile").write_text(f"{mention}\n")
    wanted = merged(tmp_path, "# base: board_defconfig\n")
    with pytest.raises(InputError, match="the kernel has no configuration `board_defconfig`"):
        check(tmp_path, arch.get("arm64"), wanted)
    (tmp_path / "arch/arm64/Makefile").write_text(f"board_defconfig:\n{mention}\n")
    check(tmp_path, arch.get("arm64"), wanted)


def test_what_a_configuration_says_of_options_is_in_its_lines_and_in_the_files_below(
    tmp_path: Path,
) -> None:
    arm64 = arch.get("arm64")
    configs = tmp_path / "arch/arm64/configs"
    configs.mkdir(parents=True)
    (configs / "defconfig").write_text("CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\n")
    (configs / "x.config").write_text("CONFIG_B=y\n")
    own = "CONFIG_C=y\nCONFIG_NEW=y | CONFIG_OLD=y\n"
    said = {"A": "y", "B": "m", "C": "y", "NEW": "y", "OLD": "y"}
    assert values(tmp_path, arm64, merged(tmp_path, own)) == said
    several = merged(tmp_path, f"# base: defconfig x.config\n{own}")
    assert values(tmp_path, arm64, several) == said | {"B": "y"}
    for target in ("allnoconfig", "alldefconfig"):
        alone = merged(tmp_path, f"# base: {target}\n{own}")
        assert values(tmp_path, arm64, alone) == {"C": "y", "NEW": "y", "OLD": "y"}
    for target in ("tinyconfig", "none_defconfig"):
        assert values(tmp_path, arm64, merged(tmp_path, f"# base: {target}\n{own}")) is None

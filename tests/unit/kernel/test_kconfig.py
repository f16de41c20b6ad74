"""Fragments, read and merged."""

from __future__ import annotations

from pathlib import Path

import pytest
from writers.fragments import merged

from mepof import arch
from mepof.errors import InputError
from mepof.kernel import kconfig


def lines(fragments: kconfig.Fragments) -> str:
    return "".join(setting.lines() for setting in fragments.settings)


def test_later_lines_win_over_earlier_ones(tmp_path: Path) -> None:
    found = merged(
        tmp_path,
        "CONFIG_A=y\nCONFIG_B=y\n",
        '# CONFIG_A is not set\n\n# a comment\nCONFIG_S="a # b"\n',
        extra=("CONFIG_B=m",),
    )
    assert lines(found) == '# CONFIG_A is not set\nCONFIG_S="a # b"\nCONFIG_B=m\n'
    assert [s.origin.rpartition("/")[2] for s in found.settings] == [
        *("1.config:1", "1.config:4", "set by mepof"),
    ]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("CONFIG_A=y  # for mepof", "CONFIG_A=y"),
        ("CONFIG_A=m\t# CONFIG_B is not set | absent", "CONFIG_A=m"),
        ("# CONFIG_A is not set  # too large", "# CONFIG_A is not set"),
        ('CONFIG_S="a # b"', 'CONFIG_S="a # b"'),
        (r'CONFIG_S="a \" # b" # why "c"', r'CONFIG_S="a \" # b"'),
        (
            "# CONFIG_A is not set | # CONFIG_B is not set # why",
            "# CONFIG_A is not set\n# CONFIG_B is not set",
        ),
    ],
)
def test_a_comment_after_a_line_is_not_part_of_its_value(
    tmp_path: Path, text: str, kept: str
) -> None:
    assert lines(merged(tmp_path, text)) == f"{kept}\n"


def test_a_bar_in_a_string_is_part_of_it(tmp_path: Path) -> None:
    text = 'CONFIG_CMDLINE="a | b"\n'
    assert lines(merged(tmp_path, text)) == text


def test_a_comment_after_a_base_is_not_part_of_it(tmp_path: Path) -> None:
    assert merged(tmp_path, "# base: gki_defconfig x.config # both\n").base == (
        "gki_defconfig x.config"
    )


@pytest.mark.parametrize(
    "line", ["#base: gki_defconfig", "#  base:gki_defconfig", "# base :\tgki_defconfig"]
)
def test_blanks_in_the_comment_that_names_the_base_do_not_matter(tmp_path: Path, line: str) -> None:
    found = merged(tmp_path, f"{line}\n")
    assert (found.base, found.base_origin) == ("gki_defconfig", f"{tmp_path}/0.config:1")


@pytest.mark.parametrize("base", ["menuconfig", "gki_defconfig randconfig", "localmodconfig"])
def test_a_base_that_is_interactive_or_not_reproducible_is_refused(
    tmp_path: Path, base: str
) -> None:
    message = rf"0.config:1: `{base.split()[-1]}` is interactive or not reproducible"
    with pytest.raises(InputError, match=message):
        merged(tmp_path, f"# base: {base}\n")


def test_a_base_without_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"0.config:2: `# base:` names no configuration") as caught:
        merged(tmp_path, "CONFIG_A=y\n# base:  # which?\n")
    assert caught.value.remedy == "write it like `# base: defconfig`"


def test_n_is_written_as_kconfig_writes_it(tmp_path: Path) -> None:
    assert lines(merged(tmp_path, "CONFIG_A=n\n")) == "# CONFIG_A is not set\n"


def test_the_first_base_counts_and_defconfig_is_the_default(tmp_path: Path) -> None:
    assert merged(tmp_path, "CONFIG_A=y\n").base == "defconfig"
    assert merged(tmp_path, "# base: allnoconfig\n", "# base: tinyconfig\n").base == "allnoconfig"


def test_an_option_with_several_names_is_asked_for_by_all_of_them(tmp_path: Path) -> None:
    assert lines(merged(tmp_path, "CONFIG_NEW=y | CONFIG_OLD=y\n")) == (
        "CONFIG_NEW=y\nCONFIG_OLD=y\n"
    )


@pytest.mark.parametrize("name", ["NEW", "OLD"])
def test_an_option_is_overridden_by_any_of_its_names(tmp_path: Path, name: str) -> None:
    asked = merged(tmp_path, f"CONFIG_NEW=y | CONFIG_OLD=y\n# CONFIG_{name} is not set\n")
    assert lines(asked) == f"# CONFIG_{name} is not set\n"
    again = merged(tmp_path, f"CONFIG_{name}=m\nCONFIG_NEW=y | CONFIG_OLD=y\n")
    assert lines(again) == "CONFIG_NEW=y\nCONFIG_OLD=y\n"


@pytest.mark.parametrize(
    "text", ["NET=y", "CONFIG_NET", "CONFIG_NET=", "CONFIG_A=y | B=y", "absent", "\x00"]
)
def test_a_line_that_is_not_kconfig_is_an_error_with_its_number(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"0\.config:2: .* is not a Kconfig line"):
        merged(tmp_path, f"# fine\n{text}\n")


def test_a_file_that_is_not_text_or_missing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"\x7fELF\xff\xfe")
    with pytest.raises(InputError, match="it is not text"):
        kconfig.merge([tmp_path / "image"])
    with pytest.raises(InputError, match="Is a directory"):
        kconfig.merge([tmp_path])


@pytest.mark.parametrize("value", ["maybe", "Y", "yes", "yn", '"a', "a string", '"a" b', "0x"])
def test_a_value_that_kconfig_does_not_have_is_an_error(tmp_path: Path, value: str) -> None:
    with pytest.raises(InputError) as caught:
        merged(tmp_path, f"CONFIG_NET=y\nCONFIG_SMP={value}\n")
    said = f"{tmp_path}/0.config:2: `{value}` is not a value of CONFIG_SMP"
    assert caught.value.message == said


@pytest.mark.parametrize(
    "value", ["y", "n", "m", "8", "-1", "0x1000000", "0XfF", '""', '"a b"', r'"say \"no\""']
)
def test_every_value_of_kconfig_is_read(tmp_path: Path, value: str) -> None:
    (setting,) = merged(tmp_path, f"CONFIG_A={value}\n").settings
    assert setting.value == value


def test_options_that_a_kernel_must_have_are_unknown_under_all_their_names() -> None:
    lines = ("CONFIG_A=y | CONFIG_B=y", "CONFIG_C=y | CONFIG_D=y", "CONFIG_E=y | absent")
    wanted = kconfig.merge([], (*lines, "# CONFIG_F is not set")).settings
    assert [setting.symbol for setting in kconfig.unknown(wanted, {"B", "X"})] == ["C"]


@pytest.mark.parametrize("name", ["defconfig", "phone_defconfig", "phone.defconfig"])
def test_a_defconfig_lies_over_the_defaults_of_kconfig(tmp_path: Path, name: str) -> None:
    own, more, other = (tmp_path / each for each in (name, "vendor.config", "mydefconfig"))
    for path in (own, more, other):
        path.write_text("CONFIG_NET=y\n")
    assert kconfig.merge([own, more]).base == "alldefconfig"
    assert kconfig.merge([more, own]).base == kconfig.merge([other]).base == "defconfig"
    # What is built depends on the name, beyond the content.
    assert kconfig.merge([own]).base_by_name == "alldefconfig"
    assert kconfig.merge([other]).base_by_name is None
    own.write_text("# base: defconfig\nCONFIG_NET=y\n")
    assert (stated := kconfig.merge([own])).base == "defconfig"
    assert stated.base_by_name is None
    assert kconfig.merge([*kconfig.paths("slim", "x86-64"), own]).base == "allnoconfig"


def test_a_value_of_a_kind_that_an_option_does_not_take_is_known(tmp_path: Path) -> None:
    (tmp_path / "arch").mkdir()
    (tmp_path / "Kconfig").write_text(
        'config HZ\n\tint "Ticks"\n\tdefault 250\n\nconfig NAME\n\tstring "Name"\n\thelp\n'
        "\t  int is not what it takes, nor\n\t  hex 10.\n\nmenuconfig NET\n\tdef_bool y\n"
        "\tprompt 'Network'\nconfig E1000\n\ttristate \"Driver\"\nconfig LATER\n"
        'config BASE\n\thex "Base"\nconfig LIBRARY\n\tbool\nchoice\n\tprompt "Which"\n'
    )
    (tmp_path / "arch/Kconfig").write_text("config BASE\n\tint\n")
    known = kconfig.symbols(tmp_path)
    fitting = ("HZ=-1", 'NAME="10"', "NET=y", "E1000=m", "BASE=0x10", "BASE=10", "LATER=7", "NO=x")
    wrong = {
        'HZ="250"': "a decimal number",
        "HZ=0x10": "a decimal number",
        "NAME=10": "a string in double quotes",
        "NET=m": "y or n",
        "E1000=1": "y, m or n",
        "BASE=y": "a hexadecimal number or a decimal number",
    }

    def unfit(line: str) -> list[str]:
        name, _, value = line.partition("=")
        setting = kconfig.Setting(name, value, "a.config:1")
        return [takes for _, takes in kconfig.unfit([setting], known)]

    assert not any(map(unfit, fitting))
    # Other options alone decide one without a prompt, which a whole configuration names, too.
    assert not unfit("LIBRARY=m")
    assert {line: takes for line in wrong for takes in unfit(line)} == wrong
    # One that is off is no number, either, and may be left out.
    lines = ["# CONFIG_HZ is not set", "CONFIG_NET=m | CONFIG_E1000=m", "CONFIG_NO=1 | CONFIG_HZ=1"]
    assert [*kconfig.unfit(kconfig.merge([], lines).settings, known)] == []


@pytest.mark.parametrize("name", kconfig.names())
@pytest.mark.parametrize("architecture", arch.names())
def test_every_fragment_of_ours_can_be_read(name: str, architecture: str) -> None:
    assert kconfig.merge(kconfig.paths(name, architecture)).settings


def test_an_unknown_fragment_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="unknown config `slom`") as caught:
        kconfig.paths("slom", "x86-64")
    assert caught.value.remedy == "did you mean `slim`?"


@pytest.mark.parametrize("name", ["tinyconfig", "gki_defconfig", "tiny.config"])
def test_a_configuration_of_the_kernels_own_is_named_as_a_base(name: str) -> None:
    with pytest.raises(InputError, match=f"unknown config `{name}`") as caught:
        kconfig.paths(name, "x86-64")
    assert f"a line `# base: {name}`" in str(caught.value.remedy)


def test_what_configures_trees_but_is_no_file_here_says_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read") as caught:
        kconfig.merge([Path("vendor/phone_defconfig")])
    assert "a line `# base: vendor/phone_defconfig`" in str(caught.value.remedy)
    (tmp_path / "build.config.gki").write_text(". ${ROOT_DIR}/build.config.common\n")
    with pytest.raises(InputError, match="is not a Kconfig line") as caught:
        kconfig.merge([tmp_path / "build.config.gki"])
    assert "what its DEFCONFIG says" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("name", "text", "remedy"),
    [
        ("BUILD.bazel", 'load("//build/kernel/kleaf:kernel.bzl", "kernel_build")', "Kleaf"),
        ("common.bzl", "def define():", "Kleaf"),
        ("abi_gki_aarch64", "[abi_symbol_list]\n  printk", "CONFIG_UNUSED_KSYMS_WHITELIST"),
        ("symbols.config", "NET=y", "write it like CONFIG_NET=y"),
    ],
)
def test_what_of_androids_build_is_no_configuration_says_what_to_write(
    tmp_path: Path, name: str, text: str, remedy: str
) -> None:
    (tmp_path / name).write_text(f"# Copyright\n\n{text}\n")
    with pytest.raises(InputError, match=f"{name}:3: .* is not a Kconfig line") as caught:
        kconfig.merge([tmp_path / name])
    assert remedy in (caught.value.remedy or "")


def test_a_whole_configuration_is_of_one_architecture(tmp_path: Path) -> None:
    whole = tmp_path / "config-6.12"
    for said, name, fits in (
        ("x86", "x86-64", True),
        ("x86_64", "x86-64", True),
        ("arm64", "arm64", True),
        ("arm64", "x86-64", False),
        ("i386", "x86-64", False),
    ):
        whole.write_text(f"#\n# Auto\n# Linux/{said} 6.12.1 Kernel Configuration\n#\nCONFIG_A=y\n")
        if fits:
            kconfig.check_arch([whole], arch.get(name))
            continue
        with pytest.raises(InputError, match=f"configuration for {said}, and the kernel is for"):
            kconfig.check_arch([whole], arch.get(name))


def test_fragments_name_the_modules_that_guests_load(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("a.config", "b.config", "c.config"))
    first.write_text("CONFIG_NET=y\n# load: ext4 null-blk\n")
    second.write_text("#load: veth\n")
    third.write_text("# loads nothing\n")
    assert kconfig.loaded([first, second, third]) == frozenset({"ext4", "null_blk", "veth"})
    assert kconfig.loaded([third]) is None
    third.write_text("# load:\n")
    assert kconfig.loaded([third]) == frozenset()


@pytest.mark.parametrize(
    ("magic", "reader"),
    [(b"\x1f\x8b", "zcat"), (b"\xfd7zXZ", "xzcat"), (b"\x28\xb5\x2f\xfd", "zstdcat")],
)
def test_a_compressed_configuration_is_told_how_to_be_read(
    tmp_path: Path, magic: bytes, reader: str
) -> None:
    path = tmp_path / "config.gz"
    path.write_bytes(magic + b"\x08\0\xff")
    with pytest.raises(InputError, match="is compressed") as caught:
        kconfig.merge([path])
    assert f"`{reader} {path} >./my.config`" in str(caught.value.remedy)


def test_a_configuration_is_utf_8_and_may_say_so(tmp_path: Path) -> None:
    path = tmp_path / "my.config"
    path.write_bytes(b"\xef\xbb\xbfCONFIG_NET=y\r\n")
    assert [(each.symbol, each.value) for each in kconfig.merge([path]).settings] == [("NET", "y")]
    path.write_bytes("CONFIG_NET=y\n# für\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"my\.config:2: what stands there is not UTF-8"):
        kconfig.merge([path])

"""Configurations: verified, and explained where Kconfig dropped an option."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from writers.fragments import merged
from writers.mini_kernel import KCONFIG

from mepof.errors import WorkError
from mepof.kernel import configure, kconfig
from mepof.kernel.kconfig import Setting


def test_a_base_of_several_targets_is_made_one_by_one_with_the_lines_over_it(
    tmp_path: Path,
) -> None:
    made = []

    def kbuild(argv: Sequence[str], env: object = None) -> None:
        made.append((argv[-1], env))
        (tmp_path / "build/.config").open("a").write(f"# {argv[-1]}\n")

    wanted = merged(tmp_path, "# base: alldefconfig vendor/phone.config\nCONFIG_A=y\n")
    configure.configure(tmp_path, tmp_path / "build", wanted, ["make"], {}, kbuild)
    assert made == [("alldefconfig", None), ("vendor/phone.config", None), ("olddefconfig", None)]
    assert (tmp_path / "build/.config").read_text().splitlines() == [
        *("# alldefconfig", "# vendor/phone.config", "CONFIG_A=y", "# olddefconfig"),
    ]


def took(line: str, config: str) -> bool:
    (setting,) = kconfig.merge((), (line,)).settings
    return not configure.dropped([setting], config)


@pytest.mark.parametrize(
    ("line", "config", "taken"),
    [
        ("CONFIG_A=y", "CONFIG_A=y\n", True),
        ("CONFIG_A=y", "CONFIG_A=m\n", False),
        ("CONFIG_A=y", "# CONFIG_A is not set\n", False),
        ("CONFIG_A=y", "CONFIG_AB=y\n", False),
        ("# CONFIG_A is not set", "", True),
        ("# CONFIG_A is not set", "# CONFIG_A is not set\n", True),
        ("# CONFIG_A is not set", "CONFIG_A=y\n", False),
        ('CONFIG_S="x"', 'CONFIG_S="x"\n', True),
        ("CONFIG_N=5", "CONFIG_N=6\n", False),
        ("CONFIG_NEW=y | CONFIG_OLD=y", "CONFIG_OLD=y\n", True),
        ("CONFIG_NEW=y | CONFIG_OLD=y", "CONFIG_NEW=y\n", True),
        ("CONFIG_NEW=y | CONFIG_OLD=y", "", False),
        ("# CONFIG_NEW is not set | # CONFIG_OLD is not set", "CONFIG_OLD=y\n", False),
        ("# CONFIG_NEW is not set | # CONFIG_OLD is not set", "", True),
    ],
)
def test_every_line_is_compared_with_what_came_out(line: str, config: str, taken: bool) -> None:
    assert took(line, config) is taken


@pytest.fixture(scope="module")
def reasons(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Why the options of the miniature kernel's Kconfig come out as they do."""
    tree = tmp_path_factory.mktemp("tree")
    # `depends on … if …` is what Kconfig has had since 7.0.
    usb = 'config USB\n\tbool "USB"\n\tdepends on NET if TLS\n'
    bug = "config GCC_BUG\n\tdef_bool y\n\tdepends on NET\n"
    x32 = 'config X32\n\tbool "x32"\n\tdepends on $(success,false)\n'
    macro = "success = $(shell,($(1)) && echo y || echo n)\n"
    typed = (
        'config SUFFIX\n\tstring "suffix"\n\n'
        'config CPUS\n\tint "CPUs"\n\trange 2 64 if USB\n\trange 2 512\n\tdefault 8\n\n'
        'config BASE\n\thex "base"\n\tdefault 0x10\n\n'
        'config EXT4\n\ttristate "ext4"\n\tselect SRCU\n'
    )
    (tree / "Kconfig").write_text(macro + KCONFIG + usb + bug + x32 + typed)
    (tree / "config").write_text("CONFIG_TLS=y\nCONFIG_SUFFIX=y\nCONFIG_CPUS=y\nCONFIG_EXT4=m\n")
    names = (
        *("INET", "NETT", "CRYPTO", "CC_OPTIMIZE_FOR_SIZE", "NAPI", "CORE", "NET", "ZZZZ", "USB"),
        *("GCC_BUG", "X32", "SUFFIX", "CPUS", "BASE", "EXT4", "SRCU"),
    )
    missing = [Setting(name, "y", "x:1") for name in names]
    found = configure.explain(tree, tree / "config", missing, {})
    return {name: each.reason for name, each in found.items()}


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("INET", "unmet dependency NET"),
        ("SRCU", "this kernel has no such option"),
        ("NETT", "this kernel has no such option; the nearest is NET"),
        ("ZZZZ", "this kernel has no such option"),
        ("CRYPTO", "selected by TLS"),
        ("CC_OPTIMIZE_FOR_SIZE", "its choice went to CC_OPTIMIZE_FOR_PERFORMANCE"),
        ("NAPI", "its value came out as n; it has no prompt: only another option can set it"),
        ("GCC_BUG", "unmet dependency NET; it has no prompt: only another option can set it"),
        ("X32", "unmet dependency a test of the compiler or its tools"),
        ("NET", "its value came out as n"),
        ("SUFFIX", 'it takes a string, and came out as ""'),
        ("CPUS", "it takes a number from 2 to 512, and came out as 8"),
        ("BASE", "it takes a number, and came out as 0x10"),
        ("EXT4", "its value came out as y, since m needs CONFIG_MODULES=y"),
        ("USB", "unmet dependency NET || !TLS"),
    ],
)
def test_a_dropped_option_is_explained(reasons: dict[str, str], option: str, reason: str) -> None:
    assert reasons[option] == reason


@pytest.mark.parametrize(
    ("line", "accepted"),
    [
        ("CONFIG_ZZZZ=y", False),
        ("CONFIG_ZZZZ=y | absent", True),
        ("CONFIG_ZZZZ=y | CONFIG_YYYY=y | absent", True),
        ("CONFIG_INET=y | absent", False),
        ("CONFIG_INET=y | unmet NET", True),
        ("CONFIG_INET=y | unmet !NET", False),
        ("CONFIG_INET=y | absent | unmet NET", True),
        ("CONFIG_CRYPTO=y | absent", True),  # it takes
    ],
)
def test_a_line_says_why_its_option_may_be_missing(
    tmp_path: Path, line: str, accepted: bool
) -> None:
    (tmp_path / "Kconfig").write_text(KCONFIG)
    build = tmp_path / "build"

    def kconfig_itself(argv: Sequence[str], env: object = None) -> None:
        (build / ".config").write_text("CONFIG_CRYPTO=y\n")

    wanted = kconfig.merge([], ("# base: allnoconfig", line))
    with nullcontext() if accepted else pytest.raises(WorkError, match="did not take effect"):
        configure.configure(tmp_path, build, wanted, ["make"], {}, kconfig_itself)


def configured(
    tmp_path: Path, lines: str, config: str, extra: tuple[str, ...] = ()
) -> str | WorkError:
    """What becomes of a user's file, where Kconfig makes this configuration of it."""
    (tmp_path / "Kconfig").write_text(KCONFIG)
    build = tmp_path / "build"

    def kconfig_itself(argv: Sequence[str], env: object = None) -> None:
        (build / ".config").write_text(config)

    wanted = merged(tmp_path, f"# base: allnoconfig\n{lines}", extra=extra)
    try:
        return configure.configure(tmp_path, build, wanted, ["make"], {}, kconfig_itself)[0]
    except WorkError as error:
        return error


def test_a_users_file_may_have_options_that_only_others_can_set(tmp_path: Path) -> None:
    whole = "CONFIG_NAPI=y\nCONFIG_TLS=y\n"
    assert configured(tmp_path, whole, "CONFIG_TLS=y\n") == "CONFIG_TLS=y\n"
    error = configured(tmp_path, whole, "")
    assert isinstance(error, WorkError)
    assert error.message.startswith("1 config option(s) did not take effect: CONFIG_TLS=y (")
    assert isinstance(configured(tmp_path, "", "", ("CONFIG_NAPI=y",)), WorkError)


def test_a_line_that_turns_off_what_another_needs_is_named(tmp_path: Path) -> None:
    error = configured(tmp_path, "CONFIG_INET=y\nCONFIG_NET=n\n", "")
    assert isinstance(error, WorkError)
    assert error.message.endswith(
        f"CONFIG_INET=y ({tmp_path}/0.config:2): unmet dependency NET "
        f"(turned off in {tmp_path}/0.config:3)"
    )
    error = configured(tmp_path, "CONFIG_INET=y\n# CONFIG_TLS is not set\n", "")
    assert isinstance(error, WorkError)
    assert error.message.endswith("unmet dependency NET")


def test_of_the_options_of_a_choice_the_last_line_decides(tmp_path: Path) -> None:
    size, speed = "CONFIG_CC_OPTIMIZE_FOR_SIZE=y\n", "CONFIG_CC_OPTIMIZE_FOR_PERFORMANCE=y\n"
    assert configured(tmp_path, size + speed, speed) == speed
    # Though the first of them stood before it, too.
    (tmp_path / "again.config").write_text(speed + size + speed)
    settings = kconfig.merge([tmp_path / "again.config"]).settings
    assert [each.origin[-2:] for each in settings] == [":2", ":3"]
    error = configured(tmp_path, speed + size, speed)
    assert isinstance(error, WorkError)
    assert error.message.endswith("its choice went to CC_OPTIMIZE_FOR_PERFORMANCE")
    # What the user chose does not give way to an algorithm without a word.
    assert isinstance(configured(tmp_path, size, speed, (speed.strip(),)), WorkError)


def test_an_option_is_explained_by_the_name_that_the_release_has(tmp_path: Path) -> None:
    error = configured(tmp_path, "", "", ("CONFIG_GONE=y | CONFIG_INET=y",))
    assert isinstance(error, WorkError)
    assert error.message.endswith("CONFIG_GONE=y (set by mepof): unmet dependency NET")


def test_an_option_of_a_fragment_of_ours_can_be_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropping = "a file of yours drops one of mepof's by `# CONFIG_… is not set`"
    error = configured(tmp_path, "CONFIG_INET=y\n", "")
    assert isinstance(error, WorkError) and error.remedy is not None
    assert dropping not in error.remedy
    monkeypatch.setattr(kconfig, "_DIRECTORY", tmp_path)
    error = configured(tmp_path, "CONFIG_INET=y\n", "")
    assert isinstance(error, WorkError) and error.remedy is not None
    assert error.remedy.endswith(dropping)


def test_twenty_options_that_did_not_take_are_named(tmp_path: Path) -> None:
    error = configured(tmp_path, "".join(f"CONFIG_Z{n:02}=y\n" for n in range(22)), "")
    assert isinstance(error, WorkError)
    assert "CONFIG_Z19=y" in error.message and "CONFIG_Z20" not in error.message
    assert error.message.endswith("; and 2 more")
    assert error.remedy is not None and "`set dropped note.`" in error.remedy


def test_options_of_the_users_that_did_not_take_may_be_noted(tmp_path: Path) -> None:
    (tmp_path / "Kconfig").write_text(KCONFIG)
    build = tmp_path / "build"

    def kconfig_itself(argv: Sequence[str], env: object = None) -> None:
        (build / ".config").write_text("CONFIG_TLS=y\n")

    def noted(*ours: str) -> tuple[str, list[str]]:
        text = "# base: allnoconfig\nCONFIG_INET=y\nCONFIG_GONE=y\nCONFIG_TLS=y\nCONFIG_NET=n\n"
        wanted = merged(tmp_path, text, extra=ours)
        return configure.configure(
            tmp_path, build, wanted, ["make"], {}, kconfig_itself, note_dropped=True
        )

    where = f"{tmp_path}/0.config"
    assert noted() == (
        "CONFIG_TLS=y\n",
        [
            f"CONFIG_INET=y ({where}:2): unmet dependency NET (turned off in {where}:5)",
            f"CONFIG_GONE=y ({where}:3): this kernel has no such option",
        ],
    )
    # What an algorithm adds must take.
    with pytest.raises(WorkError, match=r"^1 config option.*: CONFIG_CRYPTO=y") as caught:
        noted("CONFIG_CRYPTO=y")
    assert caught.value.remedy == (
        "add the dependency to the fragment, or correct or drop the option"
    )


@pytest.mark.parametrize(
    ("line", "wrong", "remedy"),
    [
        (
            'CONFIG_SYSTEM_TRUSTED_KEYS="debian/certs.pem"',
            "CONFIG_SYSTEM_TRUSTED_KEYS names debian/certs.pem, which is not in the tree",
            'write CONFIG_SYSTEM_TRUSTED_KEYS="", or the absolute path of a file',
        ),
        (
            'CONFIG_MODULE_SIG_KEY="/nowhere/key.pem"',
            "CONFIG_MODULE_SIG_KEY names /nowhere/key.pem, which does not exist",
            'write CONFIG_MODULE_SIG_KEY="certs/signing_key.pem", or the absolute path of a file',
        ),
    ],
)
def test_a_key_that_does_not_exist_is_noticed_before_anything_is_compiled(
    tmp_path: Path, line: str, wrong: str, remedy: str
) -> None:
    error = configured(tmp_path, "CONFIG_TLS=y\n", f"{line}\n")
    assert isinstance(error, WorkError)
    first, _, second = error.message.partition("; ")
    assert first == wrong
    assert second.startswith("1 config option(s) did not take effect: CONFIG_TLS=y")
    assert error.remedy is not None and error.remedy.startswith(remedy)


def test_a_key_may_be_generated_or_absolute_or_in_the_tree_or_in_a_token(tmp_path: Path) -> None:
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs/own.pem").touch()
    config = (
        f'CONFIG_SYSTEM_TRUSTED_KEYS="certs/own.pem"\nCONFIG_SYSTEM_REVOCATION_KEYS=""\n'
        f'CONFIG_MODULE_SIG_KEY="{tmp_path}/certs/own.pem"\n'
    )
    assert configured(tmp_path, "", config) == config
    for key in ("certs/signing_key.pem", "pkcs11:token=signing;object=key"):
        config = f'CONFIG_MODULE_SIG_KEY="{key}"\n'
        assert configured(tmp_path, "", config) == config


@pytest.mark.parametrize("took_it", [True, False])
def test_type_information_needs_pahole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, took_it: bool
) -> None:
    line = "CONFIG_DEBUG_INFO_BTF=y\n"
    (tmp_path / "tools").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "tools"))
    error = configured(tmp_path, line, line if took_it else "")
    assert isinstance(error, WorkError)
    assert error.message.startswith("CONFIG_DEBUG_INFO_BTF needs pahole, which is not installed")
    assert error.remedy is not None and error.remedy.startswith("apt-get install pahole")
    (tmp_path / "tools/pahole").write_text("#!/bin/sh\n")
    (tmp_path / "tools/pahole").chmod(0o755)
    assert configured(tmp_path, line, line) == line


def test_an_unreadable_kconfig_is_not_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "Kconfig").write_text("confyg X\n")
    (tmp_path / "config").touch()
    found = configure.explain(tmp_path, tmp_path / "config", [Setting("X", "y", "x:1")], {})
    assert found["X"].reason == "the tree's Kconfig could not be read to say why"

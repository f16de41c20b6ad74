"""What ``mepof profile`` refuses: with one line that names the cause and the remedy, the right exit
status, and nothing written."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from writers.perf_script import Entry, sample
from writers.shell import Shell
from writers.traced_kernel import SOURCE, TEXT, Loop, link_kernel, loop_of, recorded, section_offset

from mepof.cli.main import main

DEBUG = ("-g", "-fdebug-info-for-profiling", "-Wl,--build-id=sha1")
SLIDE = 0x1200_0000

Refused = Callable[..., str]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Loop]:
    return link_kernel(tmp_path_factory.mktemp("kernel"), *DEBUG)


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Refused:
    """Run a verb that has to fail; give what it says."""

    def run(status: int, *arguments: object) -> str:
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        monkeypatch.setattr(sys, "argv", ["mepof", "profile", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        lines = printed.err.splitlines()
        assert ended.value.code == status, printed.err
        assert [line.startswith("mepof: ") for line in lines].count(True) == 1, printed.err
        assert printed.out == ""
        assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
        said = next(line for line in lines if line.startswith("mepof: "))
        after = lines[lines.index(said) + 1 :]
        assert all(line.startswith("  help: ") for line in after)
        return "\n".join([said, *after])

    return run


def conversion(binary: Path, record: Path, *more: object) -> tuple[object, ...]:
    return (
        *("convert", "--binary", binary, "--input", record, "--to", "autofdo"),
        *("-o", record.with_name("out"), *more),
    )


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def convert(*arguments: object) -> None:
    """Run a conversion that has to work."""
    from typer.testing import CliRunner

    from mepof.cli.main import app

    result = CliRunner().invoke(app, ["profile", *map(str, arguments)])
    assert result.exit_code == 0, (result.output, result.exception)


def test_too_few_samples(kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused) -> None:
    binary, loop = kernel
    warm = loop_of(binary, "warm")
    text = recorded(loop, samples=1) + recorded(warm, samples=1, mapped=False)
    record = written(tmp_path / "perf.txt", text)
    said = refused(1, *conversion(binary, record))
    assert "2 samples: recording the same work again" in said
    assert "times as long" in said
    assert "--allow-poor" in said
    convert(*conversion(binary, record, "--allow-poor"))
    assert (tmp_path / "out").exists()


def test_another_build(kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused) -> None:
    binary, loop = kernel
    record = written(tmp_path / "perf.txt", recorded(loop))
    recording = tmp_path / "perf.data"
    convert(
        *("convert", "--binary", binary, "--input", record, "--to", "perf-data"),
        *("-o", recording, "--allow-poor"),
    )
    other, _ = link_kernel(tmp_path, *DEBUG, name="other", source=SOURCE.replace("1000", "999"))
    said = refused(1, *conversion(other, recording))
    assert "build-id" in said
    assert "give the vmlinux of the exact build that ran" in said


def test_another_program_without_build_ids(
    kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused
) -> None:
    _, loop = kernel
    record = written(tmp_path / "perf.txt", recorded(loop))
    source = SOURCE.replace("int sum = 0;", 'int sum = 0; asm(".skip 40, 0x90");')
    flags = ("-g", "-Wl,--build-id=none")
    other, _ = link_kernel(tmp_path, *flags, name="other", source=source)
    said = refused(1, *conversion(other, record))
    assert "come from instructions that are not branches" in said
    assert "give the vmlinux of the exact build that ran" in said


def test_no_branch_stacks(kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused) -> None:
    text = recorded(kernel[1], samples=0) + sample(TEXT, [], "a 7 [000] 1.0:") * 100
    said = refused(2, *conversion(kernel[0], written(tmp_path / "perf.txt", text)))
    assert "none of its 100 samples has a branch stack" in said
    assert "perf record -b" in said


def test_only_user_code_was_recorded(
    kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused
) -> None:
    # Of this perf.data, the event excludes the kernel.
    program, loop = link_kernel(tmp_path, *DEBUG, name="program", start=0x40_1000, symbols=())
    offset = section_offset(program)
    line = f"PERF_RECORD_MMAP 7/7: [0x401000(0x1000) @ {offset:#x}]: x {program}\n"
    text = line + sample(loop.target, loop.stack(), "a 7 [000] 1.0:") * 50
    record = written(tmp_path / "perf.txt", text)
    recording = tmp_path / "perf.data"
    convert(
        *("convert", "--binary", program, "--input", record, "--to", "perf-data"),
        *("-o", recording, "--allow-poor", "--space", "user"),
    )
    said = refused(2, *conversion(kernel[0], recording))
    assert "excludes the kernel" in said
    assert "only user code was recorded" in said
    assert "cycles:k" in said
    assert "--space user" in said


def test_no_debug_information(kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused) -> None:
    bare, loop = link_kernel(tmp_path, "-g0", name="bare")
    record = written(tmp_path / "perf.txt", recorded(loop))
    said = refused(2, *conversion(bare, record, "--allow-poor"))
    assert "has no debug information" in said
    assert "CONFIG_DEBUG_INFO" in said


def test_only_a_guests_kernel_is_located(
    kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused
) -> None:
    text = recorded(kernel[1], slide=SLIDE).replace("[kernel", "[guest.kernel")
    record = written(tmp_path / "perf.txt", text)
    assert "--space guest" in refused(2, *conversion(kernel[0], record))
    convert(*conversion(kernel[0], record, "--space", "guest"))


def test_a_kernel_without_symbols(
    kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused
) -> None:
    record = written(tmp_path / "perf.txt", recorded(kernel[1], slide=SLIDE))
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, kernel[0]], check=True)
    assert "has no symbol _text or _stext" in refused(2, *conversion(stripped, record))


def test_an_unknown_load_address_of_the_kernel(
    kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused
) -> None:
    binary, loop = kernel
    record = written(tmp_path / "perf.txt", recorded(loop, slide=SLIDE, mapped=False))
    said = refused(2, *conversion(binary, record, "--allow-poor"))
    assert "--kallsyms" in said and "--show-mmap-events" in said
    kallsyms = written(tmp_path / "kallsyms", f"{TEXT + SLIDE:016x} T _text\n")
    convert(*conversion(binary, record, "--allow-poor", "--kallsyms", kallsyms))
    assert (tmp_path / "out").exists()


@pytest.mark.parametrize("verb", ["convert", "heatmap"])
@pytest.mark.parametrize(
    ("contents", "what"),
    [
        (gzip.compress(b"ffffffff81000000 T _text", mtime=0), "compressed with gzip"),
        (b"", "this is empty"),
        (b"hello, world\n", "no lines such as"),
        (b"0000000000000000 T _text\n", "hidden or missing: copy /proc/kallsyms as root"),
        (None, "Is a directory"),
    ],
    ids=["compressed", "empty", "text", "hidden", "directory"],
)
def test_what_is_no_copy_of_kallsyms_is_named(
    kernel: tuple[Path, Loop],
    tmp_path: Path,
    refused: Refused,
    verb: str,
    contents: bytes | None,
    what: str,
) -> None:
    binary, loop = kernel
    record = written(tmp_path / "perf.txt", recorded(loop, slide=SLIDE, mapped=False))
    kallsyms = tmp_path / "kallsyms"
    if contents is None:
        kallsyms.mkdir()
    else:
        kallsyms.write_bytes(contents)
    words = (verb, "--binary", binary, "--input", record, "--kallsyms", kallsyms)
    form = ("--to", "autofdo") if verb == "convert" else ()
    said = refused(2, *words, *form, "-o", tmp_path / "out.svg")
    assert said.startswith(f"mepof: {kallsyms}: ")
    assert what in said
    assert "os error" not in said


@pytest.mark.parametrize("kind", ["vmlinux", "gz"])
def test_not_a_branch_record(
    kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused, kind: str
) -> None:
    binary, _ = kernel
    wrong = tmp_path / "wrong"
    content = binary.read_bytes()
    wrong.write_bytes(content if kind == "vmlinux" else gzip.compress(content))
    said = refused(2, *conversion(binary, wrong))
    assert f"{wrong}: not a branch trace that mepof reads: this is an ELF binary" in said


@pytest.mark.parametrize("missing", ["binary", "input", "module", "kallsyms"])
def test_a_missing_file(
    kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused, missing: str
) -> None:
    binary, loop = kernel
    record = written(tmp_path / "perf.txt", recorded(loop))
    nothing = tmp_path / "nothing"
    more = () if missing in ("binary", "input") else (f"--{missing}", nothing)
    arguments = conversion(
        nothing if missing == "binary" else binary,
        nothing if missing == "input" else record,
        *more,
    )
    said = refused(2, *arguments)
    assert f"{nothing}: " in said
    assert "o such file" in said


@pytest.mark.parametrize("verb", ["merge", "compare"])
def test_a_damaged_profile(
    kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused, verb: str
) -> None:
    binary, loop = kernel
    record = written(tmp_path / "perf.txt", recorded(loop))
    convert(*conversion(binary, record, "--allow-poor"))
    whole, damaged = tmp_path / "out", tmp_path / "damaged"
    damaged.write_bytes(whole.read_bytes()[:-7])
    more = ("-o", tmp_path / "sum") if verb == "merge" else ()
    said = refused(2, verb, whole, damaged, *more)
    assert f"{damaged}: " in said


@pytest.mark.parametrize("to", ["propeller", "bolt", "unsymbolized"])
def test_modules_that_would_share_an_output(
    kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused, to: str
) -> None:
    binary, loop = kernel
    record = written(tmp_path / "perf.txt", recorded(loop))
    one, another = (tmp_path / name / "nf_tables.ko" for name in ("one", "another"))
    for module in (one, another):
        module.parent.mkdir()
        module.touch()
    said = refused(
        2,
        *("convert", "--binary", binary, "--input", record, "--to", to, "-o", tmp_path / "out"),
        *("--module", one, "--module", another),
    )
    assert str(one) in said
    assert str(another) in said
    assert f"{tmp_path / 'out'}.nf_tables" in said


@pytest.mark.parametrize(
    ("option", "to", "taker"),
    [
        ("--md5-names", "autofdo-text", "autofdo"),
        ("--symbol-list", "gcov", "autofdo"),
        ("--path-cloning", "autofdo", "propeller"),
    ],
)
def test_an_option_of_another_format(
    kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused, option: str, to: str, taker: str
) -> None:
    binary, loop = kernel
    record = written(tmp_path / "perf.txt", recorded(loop))
    words = ("convert", "--binary", binary, "--input", record, "--to", to, option, "--allow-poor")
    said = refused(2, *words, "-o", tmp_path / "out")
    assert f"{option} is for {taker}, and {to} has no use for it" in said


def test_several_files_for_an_output_that_takes_one(
    kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused
) -> None:
    binary, loop = kernel
    record = written(tmp_path / "perf.txt", recorded(loop))
    words = ("convert", "--binary", binary, "--input", record, "--to", "propeller")
    assert "/dev/null takes one file" in refused(2, *words, "-o", "/dev/null")


def test_a_full_disk_is_named(kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused) -> None:
    binary, loop = kernel
    record = written(tmp_path / "perf.txt", recorded(loop))
    for to in ("autofdo", "bolt", "unsymbolized"):
        words = ("convert", "--binary", binary, "--input", record, "--to", to, "--allow-poor")
        said = refused(1, *words, "-o", "/dev/full")
        assert "/dev/full cannot be written: no space left on device" in said


def test_gcc_gets_debug_lines_though_there_are_probes(tmp_path: Path, shell: Shell) -> None:
    binary, loop = link_kernel(tmp_path, *DEBUG, "-fpseudo-probe-for-profiling")
    record = written(tmp_path / "perf.txt", recorded(loop))
    words = ("convert", "--binary", binary, "--input", record, "--allow-poor", "--to")
    assert shell("profile", *words, "gcov", "-o", tmp_path / "out").status == 0
    shown = json.loads(shell("profile", "show", tmp_path / "out", "--json").out)
    assert (shown["format"], shown["probe_based"]) == ("gcov", False)
    assert [each["name"] for each in shown["functions"]] == ["hot"]


def test_user_addresses_are_not_mistaken_for_another_kernel(
    kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused
) -> None:
    text = sample(0x401000, [Entry(0x401010, 0x401000)] * 4, "a 7 [000] 1.0:") * 50
    said = refused(2, *conversion(kernel[0], written(tmp_path / "perf.txt", text)))
    assert "all of its branches are of user code, none of the kernel" in said
    assert "cycles:k" in said


def test_offsets_are_not_mistaken_for_user_addresses(
    kernel: tuple[Path, Loop], tmp_path: Path, refused: Refused
) -> None:
    # As perf 6.12 prints `-F ip,brstackoff` and `-F +brstackoff` without the kernel's symbols.
    of_address = " ffffffff83042683 0x426ee/0x42683/P/-/-/0//-  0x42779/0x426eb/P/-/-/0//-\n"
    of_file = (
        " a 1 [000] 1.0: 1 cycles:k: ffffffff83042683 [unknown] ([kernel.kallsyms]) 0x426ee "
        "([kernel.kallsyms])/0x42683 ([kernel.kallsyms])/P/-/-/0//-\n"
    )
    for text in (of_address, of_file):
        said = refused(2, *conversion(kernel[0], written(tmp_path / "perf.txt", text * 9)))
        assert "have offsets in place of addresses (-F brstackoff" in said


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b" ffffffff81000000 0x1/0x2/P/-/-/0\n", "branch trace: convert it with `mepof profile"),
        (b"adcg*22B" + bytes(20), "GCC instrumented (.gcda)"),
        (b"1 main 2a 1 foo 0 0 12\n", "a profile of BOLT"),
        (gzip.compress(b"hello\n", mtime=0), "neither text, nor LLVM's binary forms"),
        (b"hello\n", "neither text, nor LLVM's binary forms"),
    ],
)
def test_what_is_no_profile_is_named(
    tmp_path: Path, refused: Refused, content: bytes, what: str
) -> None:
    given = tmp_path / "given"
    given.write_bytes(content)
    said = refused(2, "show", given)
    assert f"{given}: not a sample profile: " in said and what in said


@pytest.mark.parametrize("verb", ["compare", "drift", "show"])
def test_counts_of_an_instrumented_kernel(tmp_path: Path, refused: Refused, verb: str) -> None:
    counts = tmp_path / "kernel.profdata"
    counts.write_bytes(b"\xfflprofi\x81" + bytes(20))
    more = () if verb == "show" else (counts,)
    said = refused(2, verb, counts, *more)
    cures = {
        "compare": f"{counts} cannot be read: llvm-profdata",
        "drift": "help: build the newer kernel with it",
        "show": f"{counts} cannot be read: llvm-profdata",
    }
    assert cures[verb] in said


def test_standard_output_holds_the_profile_alone(kernel: tuple[Path, Loop], tmp_path: Path) -> None:
    binary, loop = kernel
    record = written(tmp_path / "perf.txt", recorded(loop))
    words = [*conversion(binary, record)[:-1], "/dev/stdout", "--to", "autofdo-text"]
    run = "import sys; from mepof.cli.main import main; sys.argv[0] = 'mepof'; main()"
    done = subprocess.run(
        [sys.executable, "-c", run, "profile", *map(str, words)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("hot:")
    profile = tmp_path / "profile"
    convert(*conversion(binary, record)[:-1], profile, "--to", "autofdo-text")
    assert done.stdout == profile.read_text()
    assert (tmp_path / "profile.verdict.json").exists()
    merged = subprocess.run(
        [sys.executable, "-c", run, "profile", "merge", profile, "-o", "/dev/stdout"],
        capture_output=True,
    )
    assert merged.returncode == 0, merged.stderr

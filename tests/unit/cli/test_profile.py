"""``mepof profile``, on a small program that Clang made and a record that goes with it."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner
from writers.perf_script import Entry, mapping, sample

from mepof import _engine
from mepof.cli.main import app
from mepof.errors import InputError, WorkError

from .profiles import CLANG, converted, done, failed, perf_script, run

# As LLVM hashes names: the low half of the digest, little endian.
MD5_OF_HOT = int.from_bytes(hashlib.md5(b"hot").digest()[:8], "little")


@pytest.mark.parametrize("to", _engine.PROFILE_FORMATS)
def test_a_record_becomes_a_profile_and_a_verdict(
    program: Path, record: Path, tmp_path: Path, to: str
) -> None:
    out = tmp_path / "out"
    document = converted(program, record, to, out)
    assert document["outputs"] == [str(out)]
    assert json.loads((tmp_path / "out.verdict.json").read_text()) == document["verdict"]
    shown = done("show", out)
    assert shown["functions"][0]["name"] == "hot"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.verdict.json"]


@pytest.mark.parametrize("verb", ["convert", "heatmap"])
def test_a_branch_trace_comes_from_standard_input(
    program: Path, record: Path, tmp_path: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [verb, "--binary", program, "--input", "-", "--space", "user"]
    words += ["--to", "autofdo-text"] if verb == "convert" else []
    outputs = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spool"))
    (tmp_path / "spool").mkdir()
    for given in (record, "-"):
        words[4] = given
        out = tmp_path / "out.json"
        arguments = [str(word) for word in ("profile", *words, "-o", out)]
        result = CliRunner().invoke(app, arguments, input=record.read_bytes())
        assert result.exit_code == 0, (result.output, result.exception)
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]
    assert list((tmp_path / "spool").iterdir()) == []


VMLINUX = "name the vmlinux of the"
TRACE = "name a branch trace, or `-` for standard input"


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("convert --binary none --input {} --to autofdo -o out", f"{VMLINUX} exact build that ran"),
        ("heatmap --binary none --input {} -o out.png", f"{VMLINUX} exact build that ran"),
        ("heatmap --binary {} --input none -o out.png", TRACE),
        ("convert --binary {} --input none --to autofdo -o out", TRACE),
        (
            "convert --binary {0} --input {0} --module none --to autofdo -o out",
            "name the module, as built: a file .ko",
        ),
        (
            "convert --binary {0} --input {0} --kallsyms none --to autofdo -o out",
            "name a copy of the machine's /proc/kallsyms",
        ),
        ("drift {} none", f"{VMLINUX} newer kernel"),
        ("drift {0} {0} --old none", f"{VMLINUX} kernel that the profile was made from"),
    ],
)
def test_a_file_that_does_not_exist_has_a_remedy(record: Path, words: str, remedy: str) -> None:
    error = failed(*words.format(record).split())
    assert (error.message, error.exit_status) == ("none: no such file", InputError.exit_status)
    assert error.remedy == remedy


def test_a_directory_that_is_not_a_trace_has_a_remedy(record: Path, tmp_path: Path) -> None:
    words = ("--binary", record, "--input", tmp_path, "--to", "autofdo", "-o", tmp_path / "out")
    assert failed("convert", *words).message == f"{tmp_path} is empty"
    (tmp_path / "kernel").mkdir()
    error = failed("convert", *words)
    assert error.message == f"{tmp_path / 'kernel'} is a directory without perf's `data`"
    assert error.remedy == f"put the branch traces of all machines into {tmp_path} itself"
    (tmp_path / "kernel" / "metadata").touch()
    assert "is a trace of LTTng (CTF)" in failed("convert", *words).message


def test_traces_of_many_machines_are_in_a_directory(
    program: Path, record: Path, tmp_path: Path
) -> None:
    machines = tmp_path / "machines"
    machines.mkdir()
    for name in ("a", "b"):
        shutil.copy(record, machines / name)
    words = ("convert", "--binary", program, "--space", "user", "--to", "autofdo-text")
    made = []
    for inputs in (("--input", machines / "a", "--input", machines / "b"), ("--input", machines)):
        done(*words, *inputs, "-o", tmp_path / "out", "--allow-poor")
        made.append((tmp_path / "out").read_bytes())
    assert made[0] == made[1]


def test_a_merge_names_what_was_compressed(program: Path, record: Path, tmp_path: Path) -> None:
    converted(program, record, "autofdo", tmp_path / "a.afdo")
    packed = tmp_path / "b.afdo.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a.afdo").read_bytes()))
    merged = done("merge", tmp_path / "a.afdo", packed, "-o", tmp_path / "both")
    for origins in (
        merged["provenance"]["inputs"],
        json.loads((tmp_path / "both.provenance.json").read_text())["inputs"],
    ):
        assert [each["name"] for each in origins] == [str(tmp_path / "a.afdo"), str(packed)]


def test_standard_input_is_read_once(program: Path, tmp_path: Path) -> None:
    words = ("--binary", program, "--input", "-", "--input", "-", "--to", "autofdo")
    error = failed("convert", *words, "-o", tmp_path / "out")
    assert "standard input is given twice" in error.message


def test_an_input_is_not_overwritten(program: Path, record: Path, tmp_path: Path) -> None:
    trace, binary = tmp_path / "perf.txt", tmp_path / "vmlinux"
    shutil.copy(record, trace)
    shutil.copy(program, binary)
    (tmp_path / "link").symlink_to(trace)
    words = ("--binary", binary, "--input", trace, "--space", "user")
    for out in (trace, binary, tmp_path / "link"):
        for verb in (("convert", "--to", "autofdo", "--allow-poor"), ("heatmap",)):
            error = failed(*verb, *words, "-o", out)
            if verb[0] == "convert":
                assert error.message == f"{out} would be overwritten"
    assert trace.read_bytes() == record.read_bytes()
    assert binary.read_bytes() == program.read_bytes()


@pytest.mark.parametrize("verb", [("convert", "--to", "autofdo"), ("heatmap",)])
def test_an_input_counts_once(
    program: Path, record: Path, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    link = tmp_path / "link"
    link.symlink_to(record)
    words = ("--binary", program, "--input", record, "--input", link, "-o", tmp_path / "out.png")
    assert failed(*verb, *words).message == f"{link} is given twice"


def test_output_is_not_called_by_the_sign_of_standard_input(profile: Path) -> None:
    error = failed("merge", profile, "-o", "-")
    assert error.remedy == "write to standard output: -o /dev/stdout"


@pytest.mark.parametrize("weight", ["1,5", "-1", "abc", "1e300", ""])
def test_a_weight_that_is_not_a_number_is_named(profile: Path, tmp_path: Path, weight: str) -> None:
    error = failed("merge", f"{profile}:{weight}", "-o", tmp_path / "out")
    assert error.message == f"`{weight}` is not a weight of {profile}"


def test_a_directory_has_no_weight(profile: Path, tmp_path: Path) -> None:
    error = failed("merge", f"{profile.parent}:2", "-o", tmp_path / "out")
    assert "--weigh" in (error.remedy or "")


def llvm_shows(profile: Path, *more: str) -> str:
    return subprocess.run(
        ["llvm-profdata-22", "show", "--sample", *more, profile],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_functions_without_samples_are_listed_for_the_compiler(
    program: Path, record: Path, tmp_path: Path
) -> None:
    converted(program, record, "autofdo", tmp_path / "plain")
    converted(program, record, "autofdo", tmp_path / "listed", "--symbol-list")
    # llvm-profdata of LLVM 22 crashes when asked for the list of a profile that has none.
    assert b"main" not in (tmp_path / "plain").read_bytes()
    assert "main" in llvm_shows(tmp_path / "listed", "--show-prof-sym-list")


def test_names_may_be_hashes(program: Path, record: Path, tmp_path: Path) -> None:
    converted(program, record, "autofdo", tmp_path / "hashed", "--md5-names")
    assert "hot" not in llvm_shows(tmp_path / "hashed", "--all-functions")
    assert f"Function: {MD5_OF_HOT}" in llvm_shows(tmp_path / "hashed", "--all-functions")


@pytest.mark.parametrize("to", ["bolt", "bolt-preaggregated", "functions", "unsymbolized"])
def test_a_record_becomes_what_other_tools_read(
    program: Path, record: Path, tmp_path: Path, to: str
) -> None:
    out = tmp_path / "out"
    assert converted(program, record, to, out)["outputs"] == [str(out)]
    assert out.stat().st_size > 0


def test_functions_are_listed_with_what_of_them_ran(
    program: Path, record: Path, tmp_path: Path
) -> None:
    out = tmp_path / "functions"
    converted(program, record, "functions", out)
    with out.open(encoding="utf-8") as table:
        rows = {row["function"]: row for row in csv.DictReader(table, delimiter="\t")}
    hot, main = rows["hot"], rows["main"]
    assert 0 < int(hot["size"]) < int(hot["executed"])
    assert int(hot["branches"]) > 0
    assert (main["executed"], main["branches"]) == ("0", "0")
    assert hot["address"] != main["address"]


def test_a_binary_without_a_block_map_is_refused_with_the_flag_that_makes_one(
    program: Path, record: Path, tmp_path: Path
) -> None:
    error = failed(
        *("convert", "--binary", program, "--input", record, "--space", "user"),
        *("--to", "propeller", "-o", tmp_path / "out", "--allow-poor"),
    )
    assert isinstance(error, InputError)
    assert "basic-block-address-map" in error.message
    assert list(tmp_path.iterdir()) == []


def test_a_poor_profile_is_not_written_unless_asked_for(
    program: Path, loop: tuple[int, int], tmp_path: Path
) -> None:
    # Most branches come from an instruction that is none.
    record = tmp_path / "perf.txt"
    start = loop[1] & ~0xFFF
    lines = [mapping(start, 0x1000, str(program), 7, 7, offset=start & 0xFFFF)]
    lines += [sample(loop[1], [Entry(loop[1], loop[1])] * 4 + [Entry(*loop)])] * 500
    record.write_text("".join(lines))
    out = tmp_path / "out"
    arguments = ("convert", "--binary", program, "--input", record, "--space", "user")
    error = failed(*arguments, "--to", "autofdo", "-o", out)
    assert isinstance(error, WorkError)
    assert "--allow-poor" in (error.remedy or "")
    assert list(tmp_path.iterdir()) == [record]
    assert converted(program, record, "autofdo", out)["verdict"]["quality"] == "poor"


def test_the_verdict_is_a_few_lines_for_people(program: Path, record: Path, tmp_path: Path) -> None:
    result = run(
        *("convert", "--binary", program, "--input", record, "--space", "user"),
        *("--to", "autofdo", "-o", tmp_path / "out", "--allow-poor"),
    )
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "2,000 used of 2,000" in result.stderr
    assert len(result.stderr.splitlines()) < 20


def test_weights_multiply_and_provenance_is_kept(profile: Path, tmp_path: Path) -> None:
    out = tmp_path / "sum.txt"
    document = done("merge", f"{profile}:3", profile, "-o", out, "--to", "autofdo-text")
    one = done("show", profile)["statistics"]["total"]
    assert document["statistics"]["total"] == 4 * one
    kept = json.loads((tmp_path / "sum.txt.provenance.json").read_text())
    assert [origin["weight"] for origin in kept["inputs"]] == [3, 1]
    assert out.read_text().startswith("hot:")


def test_fractions_of_weights_become_whole(profile: Path, tmp_path: Path) -> None:
    document = done("merge", f"{profile}:0.5", f"{profile}:2", "-o", tmp_path / "out")
    assert [origin["weight"] for origin in document["provenance"]["inputs"]] == [1, 4]


def test_a_merge_says_what_it_added_up(profile: Path, tmp_path: Path) -> None:
    said = run("merge", f"{profile}:3", "-o", tmp_path / "out").stderr
    assert "weight 3  " in said
    assert " samples\n" in said


def test_an_old_profile_is_renewed_with_a_decay(profile: Path, tmp_path: Path) -> None:
    twice, out = tmp_path / "twice", tmp_path / "out"
    done("merge", f"{profile}:1000", "-o", twice)
    one = done("show", profile)["statistics"]["total"]
    document = done("renew", profile, twice, "-o", out, "--decay", "0.25", "--same-source")
    assert document["schema"] == "mepof-profile-renew/1"
    assert done("show", out)["statistics"]["total"] == pytest.approx(1.25 * one, abs=2)
    assert document["old"]["again"] == document["functions"] > 0
    # Without a source, what ran again has its new counts only.
    document = done("renew", profile, twice, "-o", out)
    assert done("show", out)["statistics"]["total"] == one
    assert document["old"]["replaced"] == document["functions"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("out", "twice", "twice.provenance.json")
    ]
    said = run("renew", profile, twice, "-o", out).stderr
    assert "are replaced" in said
    assert said.splitlines()[-1] == f"written {out}"


def test_a_renewed_profile_stays_flow_sensitive(program: Path, tmp_path: Path) -> None:
    flags = ("-O1", "-g", "-fdebug-info-for-profiling", "-fno-pie", "-no-pie")
    sensitive = ("-mllvm", "-enable-fs-discriminator=true")
    binary, trace = tmp_path / "a", tmp_path / "trace"
    command: list[str | Path] = [CLANG, *flags, *sensitive, program.with_name("a.c"), "-o", binary]
    subprocess.run(command, check=True)
    symbols = subprocess.run(["nm", binary], capture_output=True, text=True, check=True).stdout
    found = re.search(r"^([0-9a-f]+) T hot$", symbols, re.M)
    assert found is not None
    hot = int(found[1], 16)
    start = hot & ~0xFFF
    lines = [mapping(start, 0x1000, str(binary), 7, 7, offset=start & 0xFFFF)]
    trace.write_text("".join(lines + [sample(hot, [Entry(hot, hot)] * 16, "a 7 [000] 1.0:")] * 9))
    profile, out = tmp_path / "a.afdo", tmp_path / "out.afdo"
    converted(binary, trace, "autofdo", profile)
    assert done("show", profile)["flow_sensitive"]
    done("renew", profile, profile, "-o", out)
    assert done("show", out)["flow_sensitive"]


@pytest.mark.parametrize(
    ("decay", "what"),
    [("1.5", "not valid"), ("-1", "not valid"), ("half", "not valid"), ("1.01", "not valid")],
)
def test_a_wrong_decay_is_refused(profile: Path, tmp_path: Path, decay: str, what: str) -> None:
    error = failed("renew", profile, profile, "-o", tmp_path / "out", f"--decay={decay}")
    assert isinstance(error, InputError)
    assert what in error.message
    assert error.remedy
    assert list(tmp_path.iterdir()) == []


def test_a_profile_is_not_renewed_by_one_of_another_kind(profile: Path, tmp_path: Path) -> None:
    counts = tmp_path / "kernel.profdata"
    counts.write_bytes(b"\xfflprofi\x81" + bytes(20))
    error = failed("renew", profile, counts, "-o", tmp_path / "out")
    assert isinstance(error, InputError)
    assert "is a profile of an instrumented kernel" in error.message


def test_a_profile_without_names_is_not_renewed_by_one_with_them(
    program: Path, record: Path, profile: Path, tmp_path: Path
) -> None:
    hashed, out = tmp_path / "hashed.afdo", tmp_path / "out.afdo"
    converted(program, record, "autofdo", hashed, "--md5-names")
    error = failed("renew", hashed, profile, "-o", out)
    assert isinstance(error, InputError)
    assert f"cannot merge {hashed} with {profile}: only one of them has MD5 names" in error.message
    assert not out.exists()


def test_counts_are_merged_into_no_other_format(tmp_path: Path) -> None:
    counts = tmp_path / "kernel.profdata"
    counts.write_bytes(b"\xfflprofi\x81" + bytes(20))
    error = failed("merge", counts, "-o", tmp_path / "out", "--to", "gcov")
    assert isinstance(error, InputError)
    assert error.remedy == "leave out --to"


def test_a_profile_is_like_itself(profile: Path) -> None:
    document = done("compare", profile, profile)
    assert document["flow_overlap"] == pytest.approx(1)
    assert document["differences"] == []


def test_a_profile_fits_the_binary_that_it_was_made_from(profile: Path, program: Path) -> None:
    document = done("drift", profile, program, "--old", program)
    assert document["matched_percent"] == pytest.approx(100)
    assert document["changes"]["unchanged"]["functions"] >= 1


def test_tables_name_the_hottest_function_and_line(profile: Path) -> None:
    result = run("show", profile, "--lines", "--top", 3)
    assert result.exit_code == 0
    assert re.search(r"^ *hot +[\d,]+ +\d", result.stdout, re.M)
    assert "hot:" in result.stdout
    for verb in (("compare", profile, profile), ("show", profile)):
        assert run(*verb).exit_code == 0


def test_more_functions_than_a_number_of_the_engine_are_refused(profile: Path) -> None:
    assert run("show", profile, "--top", 2**64).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "no-such-file"), "no-such-file"),
        (("compare", __file__, __file__), "not a sample profile"),
        (("merge", "no-such-file:2", "-o", "out"), "no-such-file"),
        (("merge", f"{__file__}:0", "-o", "out"), "weight"),
        (("merge", f"{__file__}:{'9' * 5000}", "-o", "out"), "has more than 40 digits"),
        (("merge", "a" * 300, "-o", "out"), "aaa"),
        (("merge", f"{'a' * 300}:2", "-o", "out"), "aaa"),
        (("merge", __file__, "--like", "p", "-o", "out"), "--like is for directories"),
        (("merge", __file__, "--scheduler", "s", "-o", "out"), "--scheduler is for directories"),
        (("merge", __file__, "--workers", "2", "-o", "out"), "--workers is for directories"),
        (("merge", __file__, "--tls-ca", "ca", "-o", "out"), "--tls-ca is for directories"),
    ],
)
def test_wrong_input_is_one_line(arguments: tuple[str, ...], said: str) -> None:
    error = failed(*arguments)
    assert isinstance(error, InputError)
    assert said in error.message
    assert "\n" not in error.message


@pytest.mark.parametrize(
    ("option", "value"), [("--to", "elf"), ("--input-format", "csv"), ("--space", "moon")]
)
def test_an_unknown_word_is_refused_with_the_known_ones(
    program: Path, record: Path, tmp_path: Path, option: str, value: str
) -> None:
    arguments = {"--to": "autofdo", option: value}
    words = [word for pair in arguments.items() for word in pair]
    error = failed(
        *("convert", "--binary", program, "--input", record, "-o", tmp_path / "out", *words)
    )
    assert isinstance(error, InputError)
    assert f"`{value}`" in error.message
    assert "known:" in error.message


def test_an_output_that_cannot_be_written_is_reported(profile: Path, tmp_path: Path) -> None:
    error = failed("merge", profile, "-o", tmp_path / "no" / "out")
    assert "cannot be written" in error.message


def test_an_interrupt_ends_the_work_and_leaves_nothing(
    program: Path, record: Path, tmp_path: Path
) -> None:
    calls = 0

    def interrupt(_: int) -> None:
        nonlocal calls
        calls += 1
        signal.raise_signal(signal.SIGINT)

    large = tmp_path / "large.txt"
    with record.open() as one, large.open("w") as many:
        text = one.read()
        for _ in range(200):
            many.write(text)
    recording = _engine.Recording(program, [large], space="user", on_progress=interrupt)
    # Whoever runs the tests in the background may have had the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            _engine.convert(recording, "autofdo", tmp_path / "out", allow_poor=True)
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls == 1
    assert list(tmp_path.iterdir()) == [large]


def test_other_tools_find_a_program_in_perf_data(
    program: Path, record: Path, tmp_path: Path
) -> None:
    recording = tmp_path / "perf.data"
    converted(program, record, "perf-data", recording)
    shown = {tuple(line.split()[::2]) for line in perf_script(recording, "event,ip,sym")}
    assert shown == {("cycles:u:", "hot")}

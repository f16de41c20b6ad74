"""``mepof profile`` of profiles of instrumented programs."""

from __future__ import annotations

import gzip
import re
import subprocess
from pathlib import Path

import pytest

from mepof.errors import InputError

from .profiles import CLANG, SOURCE, done, failed, run


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile of the program, which counted itself."""
    directory = tmp_path_factory.mktemp("counts")
    (directory / "a.c").write_text(SOURCE)
    flags = ("-O1", "-fprofile-generate", "a.c", "-o", "a")
    subprocess.run([CLANG, *flags], cwd=directory, check=True)
    environment = {"LLVM_PROFILE_FILE": "a.profraw"}
    subprocess.run(["./a"], cwd=directory, env=environment, check=False)
    merge = ["llvm-profdata-22", "merge", "a.profraw", "-o", "a.profdata"]
    subprocess.run(merge, cwd=directory, check=True)
    return directory / "a.profdata"


def test_counts_of_an_instrumented_kernel_are_shown(counts: Path) -> None:
    document = done("show", counts)
    assert document["kind"] == "instrumentation"
    assert document["functions"][0]["name"] == "hot"
    assert document["statistics"]["functions_executed"] == 2
    assert len(done("show", counts, "--top", 1)["functions"]) == 1
    result = run("show", counts)
    assert re.search(r"^ *hot +[\d,]+ +9\d\.\d %", result.stdout, re.M)


def test_counts_are_read_as_text_too(counts: Path, profile: Path, tmp_path: Path) -> None:
    text, out = tmp_path / "a.txt", tmp_path / "out.profdata"
    subprocess.run(["llvm-profdata-22", "merge", "--text", counts, "-o", text], check=True)
    shown = done("show", counts)
    assert done("show", text) == shown
    assert done("compare", counts, text)["overlap"] == pytest.approx(1)
    done("merge", text, "-o", out)
    assert done("show", out) == shown
    done("renew", text, counts, "-o", out)
    error = failed("merge", text, profile, "-o", out)
    assert f"{text} is a profile of an instrumented kernel and {profile} is not" in error.message


@pytest.mark.parametrize("of", ["counts", "profile"])
def test_compressed_profiles_are_read(
    of: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    plain: Path = request.getfixturevalue(of)
    packed, out = tmp_path / "packed", tmp_path / "out"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert done("show", packed) == done("show", plain)
    alike = "overlap" if of == "counts" else "flow_overlap"
    assert done("compare", packed, plain)[alike] == pytest.approx(1)
    done("merge", f"{packed}:2", plain, "-o", out)
    assert done("compare", out, plain)[alike] == pytest.approx(1)
    done("renew", packed, plain, "-o", out)
    packed.write_bytes(gzip.compress(b"neither"))
    assert failed("show", packed).message.startswith(f"{packed}")
    packed.write_bytes(gzip.compress(plain.read_bytes())[:-9])
    error = failed("merge", packed, plain, "-o", out)
    assert error.message.startswith(f"{packed} cannot be decompressed")


def test_counts_in_context_alone_are_shown_and_merged(counts: Path, tmp_path: Path) -> None:
    raw, out = tmp_path / "in-context.profraw", tmp_path / "out.profdata"
    flags = ("-O1", f"-fprofile-use={counts}", "-fcs-profile-generate")
    command: list[str | Path] = [CLANG, *flags, counts.with_name("a.c"), "-o", tmp_path / "a"]
    subprocess.run(command, check=True)
    environment = {"LLVM_PROFILE_FILE": str(raw)}
    subprocess.run([tmp_path / "a"], env=environment, check=False)
    known = done("show", raw)["statistics"]["functions"]
    assert known > 0
    merged = done("merge", raw, "-o", out)
    assert (merged["functions"], merged["verdict"]) == (known, "good")
    assert done("compare", raw, out)["overlap"] == pytest.approx(1)


def test_counts_of_instrumented_kernels_are_compared(counts: Path, profile: Path) -> None:
    document = done("compare", counts, counts)
    assert (document["kind"], document["differences"]) == ("instrumentation", [])
    assert document["overlap"] == pytest.approx(1)
    assert "100.00 %" in run("compare", counts, counts).stdout
    error = failed("compare", counts, profile)
    assert isinstance(error, InputError)
    assert f"{profile} is not" in error.message
    assert error.remedy == "compare profiles of one kind"


def test_damaged_counts_are_named(counts: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.profdata"
    cut.write_bytes(counts.read_bytes()[:-40])
    for pair in ((counts, cut), (cut, counts)):
        error = failed("renew", *pair, "-o", tmp_path / "out")
        assert isinstance(error, InputError) and f"cannot read the profile {cut}" in error.message
    assert not (tmp_path / "out").exists()


def test_counts_of_instrumented_kernels_are_renewed(counts: Path, tmp_path: Path) -> None:
    more, out = tmp_path / "more.profdata", tmp_path / "out.profdata"
    done("merge", f"{counts}:7", "-o", more)
    document = done("renew", counts, more, "-o", out, "--decay", "0.5")
    assert document["old"] == {"again": 2, "unseen": 0, "dropped": 0, "replaced": 0}
    (one, both) = (done("show", path)["statistics"]["total"] for path in (counts, out))
    assert both == pytest.approx(1.5 * one, abs=10)
    assert done("compare", counts, out)["overlap"] == pytest.approx(1, abs=0.001)


def test_a_truncated_profile_is_named_among_those_to_merge(counts: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.profdata"
    cut.write_bytes(counts.read_bytes()[:-40])
    error = failed("merge", counts, cut, "-o", tmp_path / "out")
    assert isinstance(error, InputError)
    assert f"cannot read the profile {cut}: llvm-profdata-22 " in error.message
    assert "it must be whole" in str(error.remedy)
    assert not (tmp_path / "out").exists()


def test_damaged_counts_of_an_instrumented_kernel_are_refused(tmp_path: Path) -> None:
    counts = tmp_path / "kernel.profdata"
    counts.write_bytes(b"\xfflprofi\x81" + bytes(20))
    error = failed("show", counts)
    assert "llvm-profdata" in error.message
    error = failed("merge", counts, __file__, "-o", tmp_path / "out")
    assert f"{__file__}: not a sample profile" in error.message

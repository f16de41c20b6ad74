"""The kernel's test output, as its programs and its log have it."""

import pytest

from mepof.gate.ktap import Point, console_part, parse

HARNESS = """\
TAP version 13
1..4
# Starting 4 tests from 2 test cases.
#  RUN           global.get ...
#            OK  global.get
ok 1 global.get
#  RUN           global.set ...
# set.c:12:set:Expected 1 (1) == value (2)
# set: Test failed at step #4
#          FAIL  global.set
not ok 2 global.set
#  RUN           child.skipped ...
#      SKIP      no such system call
ok 3 # SKIP no such system call
#  RUN           child.expected ...
ok 4 child.expected # XFAIL not supported here
# FAILED: 3 / 4 tests passed.
# Totals: pass:1 fail:1 xfail:1 xpass:0 skip:1 error:0
"""

KUNIT_LOG = """\
Linux version 6.12.0 (mepof@mepof)
[    0.512345] KTAP version 1
[    0.512346] 1..2
[    0.512347]     KTAP version 1
[    0.512348]     # Subtest: list-kunit-test
[    0.512349]     # module: list_test
[    0.512350]     1..2
[    0.512351]     ok 1 list_test_init
[    0.512352]     not ok 2 list_test_add
[    0.512353] # list-kunit-test: pass:1 fail:1 skip:0 total:2
[    0.512354] not ok 1 list-kunit-test
[    0.512355]     KTAP version 1
[    0.512356]     # Subtest: checksum
[    0.512357]     1..1
[    0.512358]         KTAP version 1
[    0.512359]         # Subtest: lengths
[    0.512360]         ok 1 length=1
[    0.512361]         ok 2 length=2
[    0.512362]     ok 1 lengths
[    0.512363] ok 2 checksum
[    0.512364] Run /init as init process
"""


def test_results_of_the_kselftest_harness() -> None:
    assert parse(HARNESS).points == (
        Point("global.get", "pass"),
        Point("global.set", "fail"),
        Point("child.skipped", "skip", "no such system call"),
        Point("child.expected", "skip", "not supported here"),
    )
    assert parse(HARNESS).notes == ()


def test_results_of_kunit_are_named_by_the_suites_around_them() -> None:
    parsed = parse(console_part(KUNIT_LOG))
    assert parsed.notes == ()
    assert [(point.name, point.status) for point in parsed.points] == [
        ("list-kunit-test/list_test_init", "pass"),
        ("list-kunit-test/list_test_add", "fail"),
        ("list-kunit-test", "fail"),
        ("checksum/lengths/length=1", "pass"),
        ("checksum/lengths/length=2", "pass"),
        ("checksum/lengths", "pass"),
        ("checksum", "pass"),
    ]


def test_a_log_without_tests_has_none() -> None:
    assert console_part("Linux version 6.12.0\nRun /init as init process\n") == ""


def test_a_suite_that_the_kernel_went_down_in_keeps_its_results() -> None:
    cut = KUNIT_LOG[: KUNIT_LOG.index("[    0.512361]")] + "[    0.6] Kernel panic - not syncing\n"
    parsed = parse(console_part(cut))
    assert parsed.points[-1] == Point("checksum/lengths/length=1", "pass")
    assert "2 results were announced and 1 reported" in parsed.notes


@pytest.mark.parametrize(
    ("line", "point"),
    [
        ("ok 1 - named after a dash", Point("named after a dash", "pass")),
        ("ok 7", Point("7", "pass")),
        ("not ok", Point("result", "fail")),
        ("ok 1 # SKIP not root", Point("1", "skip", "not root")),
        ("ok 1 name # skip: in lower case", Point("name", "skip", "in lower case")),
        ("not ok 1 exec # TIMEOUT 45 seconds", Point("exec", "fail", "45 seconds")),
        ("ok 1 at 0xffffffff81000000", Point("at …", "pass")),
        ("ok 1 took 1234567 ns", Point("took … ns", "pass")),
        ("ok 1 mode 0644", Point("mode 0644", "pass")),
    ],
)
def test_a_line(line: str, point: Point) -> None:
    assert parse(line).points == (point,)


@pytest.mark.parametrize(
    "line", ["okay", "oknumber", "# ok 1 in a comment", "this is ok 1", "Bail out!", "\0\0", "1..x"]
)
def test_what_is_not_a_result_is_ignored(line: str) -> None:
    assert parse(line).points == ()


def test_a_plan_that_does_not_fit_is_a_note() -> None:
    parsed = parse("1..3\nok 1 one\nok 2 two\n")
    assert parsed.notes == ("3 results were announced and 2 reported",)


def test_a_plan_that_no_machine_could_run_is_not_one() -> None:
    assert parse(f"1..{'9' * 5000}\nok 1 a\n").notes == ()


def test_the_same_name_twice_is_two_tests() -> None:
    assert [p.name for p in parse("ok 1 same\nnot ok 2 same\n").points] == ["same", "same (2)"]

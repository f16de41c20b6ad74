"""Help pages, the version, completion, and standard input."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

import mepof
from mepof.cli import g4cc, main
from mepof.suite.cases import metric_names

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Call:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def called(*words: str, command: str = "mepof", stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", [command, *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            (g4cc.main if command == "g4cc" else main.main)()
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capsys.readouterr()

    return called


def commands(command: Any, *words: str) -> Iterator[tuple[str, ...]]:
    """The words of every command and group."""
    yield words
    for name, sub in getattr(command, "commands", {}).items():
        yield from commands(sub, *words, name)


EVERY = [*commands(typer.main.get_command(main.application()))]


def test_every_command_is_listed() -> None:
    assert {("run",), ("eval",), ("profile", "convert"), ("device", "count")} < set(EVERY)


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_a_help_page_is_for_users(call: Call, words: tuple[str, ...]) -> None:
    status, page, err = call(*words, "-h")
    assert (status, err) == (0, "")
    assert call(*words, "--help") == (0, page, "")
    assert page.startswith(f"Usage: {' '.join(('mepof', *words))} ")
    for section in ("Raises:", "Args:", "Returns:", "Attributes:", "``", ":class:"):
        assert section not in page
    assert max(map(len, page.splitlines())) <= 80
    assert not re.search(r"\s[.,;](\s|$)|\(\s|\s\)|\bNone\b", page)
    assert "..." not in re.sub(r"[A-Z\]]\.\.\.", "", page)  # nothing is cut short
    assert not re.search(r"[{}]|<\w+(\[\w+\])?>", page)  # no types of Python


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("run",), "[default: out/PROGRAM]"),
        (("run",), "$MEPOF_STORE or ~/.cache/mepof]"),
        (("eval",), "[default: out/eval]"),
        (("eval",), ", ".join(metric_names())),
        (("device", "count"), ", ".join(metric_names())),
        (("profile", "convert"), "[default: kernel]"),
        (("run",), "Usage: mepof run [OPTIONS] PROGRAM.g4 "),
        (("eval",), "Usage: mepof eval [OPTIONS] IMAGE... "),
        (("device", "prepare"), "Usage: mepof device prepare [OPTIONS] KIND [COMMAND]... "),
        (("run",), "Arguments: PROGRAM.g4 G4 program;"),
    ],
)
def test_defaults_and_known_words_are_shown(call: Call, words: tuple[str, ...], shown: str) -> None:
    assert shown in " ".join(call(*words, "-h")[1].split())


@pytest.mark.parametrize(
    ("words", "page"),
    [
        (("eval", "--metric"), "mepof eval"),
        (("profile", "convert", "--binary"), "mepof profile convert"),
        (("run", "--nope"), "mepof run"),
        (("g4", "nope"), "mepof g4"),
        (("nope",), "mepof"),
    ],
)
def test_a_wrong_command_line_names_the_page_of_its_command(
    call: Call, words: tuple[str, ...], page: str
) -> None:
    status, out, err = call(*words)
    assert (status, out) == (2, "")
    assert f"see `{page} --help`" in err


def test_the_version_is_that_of_the_package(call: Call) -> None:
    assert call("--version") == (0, f"mepof {mepof.__version__}\n", "")
    assert call("--version", command="g4cc") == (0, f"g4cc {mepof.__version__}\n", "")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("mepof pro", ["profile"]),
        ("mepof profile con", ["convert"]),
        ("mepof eval --met", ["--metric"]),
        ("mepof eval --metric sy", ["syscall"]),
        ("mepof device prepare an", ["android"]),
        ("mepof profile convert --space g", ["guest"]),
    ],
)
def test_a_shell_completes_words(
    call: Call, monkeypatch: pytest.MonkeyPatch, line: str, words: list[str]
) -> None:
    monkeypatch.setenv("_MEPOF_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    status, out, _ = call()
    assert (status, out.split()) == (0, words)


@pytest.mark.parametrize("option", ["--show-completion", "--install-completion"])
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "dash", None])
def test_completion_is_written_for_the_shell_that_calls(
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    option: str,
    shell: str | None,
) -> None:
    import shellingham

    def detected(pid: int | None = None, max_depth: int = 10) -> tuple[str, str]:
        if shell is None:
            raise shellingham.ShellDetectionFailure
        return shell, f"/bin/{shell}"

    monkeypatch.setattr(shellingham, "detect_shell", detected)
    monkeypatch.setenv("HOME", str(tmp_path))
    status, out, err = call(option)
    written = [path for path in tmp_path.rglob("*mepof*") if path.is_file()]
    if shell in ("bash", "zsh", "fish"):
        assert (status, err) == (0, "")
        script = out if option == "--show-completion" else written[0].read_text()
        assert "_MEPOF_COMPLETE" in script
    else:
        assert (status, out, written) == (2, "", [])
        assert err.startswith("mepof: ")
        assert "  help: run it from bash, zsh, fish" in err


def test_a_program_comes_from_standard_input(call: Call) -> None:
    assert call("g4", "fmt", "-", stdin=b"set   seed 1.") == (0, "set seed 1.\n", "")
    status, out, err = call("g4", "check", "-", stdin=b"set seed 1.")
    assert (status, out) == (0, "")
    assert err == (
        "<stdin>: warning: it makes nothing\n"
        "  help: add a statement, such as `opt SOURCE pgo rand kbench.`\n"
    )
    status, _, err = call("g4", "check", "-", stdin=b"eval.")
    assert status == 2
    assert err.startswith("<stdin>:1:1: error: ")
    assert call("run", "-", "--dry-run", "--json", stdin=b"# nothing\n")[:2] == (0, "[]\n")
    assert call("g4", "plan", "-", stdin=b"")[0] == 0
    assert call("-", command="g4cc", stdin=b"") == (0, "", "")


def test_a_program_from_standard_input_has_limits(call: Call) -> None:
    status, _, err = call("g4", "check", "-", stdin=b"#" * (1 << 21))
    assert status == 2
    assert "standard input is not a G4 program: it is larger than 1 MiB" in err
    status, _, err = call("g4", "fmt", "-w", "-", stdin=b"")
    assert status == 2
    assert "standard input cannot be rewritten" in err


def test_an_error_in_a_branch_trace_names_standard_input(call: Call) -> None:
    words = ("profile", "convert", "--binary", sys.executable, "--input", "-", "--space", "user")
    status, _, err = call(*words, "--to", "autofdo", "-o", "out", stdin=b"nothing")
    assert status == 2
    assert err.startswith("mepof: <stdin>: not a branch trace that mepof reads")


def test_an_interrupt_while_commands_are_imported_is_130(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(names: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "application", interrupt)
    assert call("doctor") == (130, "", "")

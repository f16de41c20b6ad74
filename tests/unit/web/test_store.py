from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from plan.toy_bodies import DIAMOND, Toy, plan_of, run, toy

from mepof.errors import InputError
from mepof.plan.body import StepContext
from mepof.plan.model import HostInput, Plan, Step, StepInput
from mepof.plan.store import Store
from mepof.web.contents import inside
from mepof.web.provenance import Provenance

from .served import serving, words


def digest_of(root: Path, step: str) -> str:
    return next(a.artifact.digest for a in Store(root / "store").actions() if a.step == step)


def image_of(root: Path) -> Plan:
    (root / "defconfig").write_text("CONFIG_64BIT=y\n")
    return plan_of(
        toy("source"),
        Step("config", "toy", {}, {"file": HostInput(str(root / "defconfig"))}),
        Step("image", "toy", {"O": 2}, {"tree": StepInput("source"), "c": StepInput("config")}),
    )


def command(context: StepContext) -> None:
    context.run(["sh", "-c", f"echo made {context.step.id} > {context.output}/file"])


def test_an_image_leads_back_to_its_source_and_every_command(tmp_path: Path) -> None:
    run(tmp_path, image_of(tmp_path), Toy(command, tools={"make": "4.3"}))
    digest = digest_of(tmp_path, "image")
    with serving(tmp_path) as client:
        text = words(client.get(f"/store/{digest}/provenance").text)
        assert text.index("made source") < text.index("made image")
        for told in ("made config", "a file or directory of the user", "4.3", "&#34;O&#34;: 2"):
            assert told in text
        page = client.get(f"/store/{digest}").text
        assert f'href="/store/{digest_of(tmp_path, "source")}"' in page


def test_the_store_is_listed_by_kind_and_found_by_name(tmp_path: Path) -> None:
    run(tmp_path, plan_of(toy("a"), toy("b", kind="other", x=1)), Toy(), Toy(kind="other"))
    with serving(tmp_path) as client:
        everything = client.get("/store").text
        only = client.get("/store?kind=other").text
        for step in ("a", "b"):
            assert digest_of(tmp_path, step)[:16] in everything
        assert digest_of(tmp_path, "a")[:16] not in only
        assert digest_of(tmp_path, "b")[:16] in only
        assert digest_of(tmp_path, "b")[:16] in client.get("/store?find=b").text
        assert "No artifact" in client.get("/store?find=nothing&kind=%00").text


def test_an_artifact_shows_its_files_and_where_it_is_used(tmp_path: Path) -> None:
    def work(context: StepContext) -> None:
        (context.output / "deep").mkdir()
        (context.output / "deep" / "a <b>.txt").write_text("some text")
        (context.output / "vmlinux").write_bytes(b"\x7fELF\0")
        (context.output / "link").symlink_to("/etc/passwd")

    run(tmp_path, plan_of(toy("a"), toy("b", "a")), Toy(work))
    digest = digest_of(tmp_path, "a")
    with serving(tmp_path) as client:
        page = client.get(f"/store/{digest}").text
        assert "→ /etc/passwd" in page and f"/store/{digest}/files/deep" in page
        assert client.site.catalogue.entries()
        files = client.get(f"/store/{digest}/files/deep").text
        assert f"/store/{digest}/files/deep/a%20%3Cb%3E.txt" in files
        shown = client.get(f"/store/{digest}/files/deep/a%20%3Cb%3E.txt")
        assert (shown.status, shown.text) == (200, "some text")
        assert shown.headers["content-type"].startswith("text/plain")
        binary = client.ask("GET", f"/store/{digest}/files/vmlinux")
        assert binary.headers["content-type"] == "application/octet-stream"
        assert binary.headers["content-disposition"].startswith("attachment")


@pytest.mark.parametrize(
    "path",
    [
        "link",
        "link/x",
        "..",
        "../..",
        "%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "deep/../../x",
        "//etc/passwd",
        "/etc/passwd",
        "nothing",
        "file%00",
        "file/x",
        "%ff",
        "." * 5000,
    ],
)
def test_no_path_leads_out_of_an_artifact(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("a secret")

    def work(context: StepContext) -> None:
        (context.output / "file").write_text("inside")
        (context.output / "link").symlink_to(tmp_path)

    run(tmp_path, plan_of(toy("a")), Toy(work))
    digest = digest_of(tmp_path, "a")
    with serving(tmp_path) as client:
        answer = client.get(f"/store/{digest}/files/{path}")
        assert answer.status == 404 and "root:" not in answer.text


def test_pipes_and_missing_directories_are_not_inside(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert inside(tmp_path, "pipe") is None
    assert inside(tmp_path / "missing", "") is None
    assert inside(tmp_path, "") == tmp_path


@pytest.mark.parametrize("name", ["0", "..", "G" * 64, "0" * 64, "%00", "A" * 64])
@pytest.mark.parametrize("page", ["", "/provenance", "/functions", "/files/x"])
def test_an_artifact_that_is_not_there_is_not_found(tmp_path: Path, name: str, page: str) -> None:
    with serving(tmp_path) as client:
        assert client.get(f"/store/{name}{page}").status == 404


def test_an_artifact_that_was_removed_keeps_its_history(tmp_path: Path) -> None:
    run(tmp_path, DIAMOND, Toy())
    step = DIAMOND.steps[-1].id
    digest = digest_of(tmp_path, step)
    target = tmp_path / "store" / "objects" / digest
    target.chmod(0o755)
    shutil.rmtree(target)
    with serving(tmp_path) as client:
        assert "no longer has it" in client.get(f"/store/{digest}").text
        assert client.get(f"/store/{digest}/provenance").status == 200


@pytest.mark.parametrize(
    "change", [{"digest": "../../etc"}, {"inputs": {"x": 7}}, {"inputs": []}, {"step": None}, None]
)
def test_an_action_of_something_else_is_left_out(
    tmp_path: Path, change: dict[str, object] | None
) -> None:
    run(tmp_path, plan_of(toy("a")), Toy())
    (path,) = (tmp_path / "store" / "actions").iterdir()
    text = path.read_text()
    path.write_text("{" if change is None else json.dumps({**json.loads(text), **change}))
    assert Provenance(Store(tmp_path / "store")).known().latest == ()


def test_new_actions_are_seen_and_read_once(tmp_path: Path) -> None:
    now = 0.0
    store = Store(tmp_path / "store")
    provenance = Provenance(store, lambda: now)
    assert provenance.known().latest == ()
    run(tmp_path, plan_of(toy("a")), Toy())
    now = 5.0
    (first,) = provenance.known().latest
    run(tmp_path, plan_of(toy("b", x=1)), Toy())
    assert provenance.known().latest == (first,)
    now = 10.0
    assert {a.step for a in provenance.known().latest} == {"a", "b"}
    assert any(a is first for a in provenance.known().latest)


def test_a_circle_in_a_damaged_store_ends(tmp_path: Path) -> None:
    run(tmp_path, plan_of(toy("a"), toy("b", "a")), Toy())
    by_step = {a.step: a for a in Store(tmp_path / "store").actions()}
    path = tmp_path / "store" / "actions" / f"{by_step['a'].fingerprint}.json"
    inputs = {"x": by_step["b"].artifact.digest}
    path.write_text(json.dumps({**json.loads(path.read_text()), "inputs": inputs}))
    provenance = Provenance(Store(tmp_path / "store"))
    assert len(provenance.history(by_step["b"])) == 2


def test_the_functions_of_a_profile_are_listed_and_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = {
        "format": "ext-binary",
        "statistics": {
            "functions": 3,
            "functions_with_samples": 2,
            "inlined_copies": 7,
            "hot_functions": 1,
            "total": 400,
        },
        "functions": [
            {"name": "do_syscall_64", "total": 300, "head": 40, "own_count": 20},
            {"name": "vfs_read", "total": 100, "head": 10, "own_count": 5},
            {"name": "never", "total": 0, "head": 0, "own_count": 0},
        ],
    }
    monkeypatch.setattr("mepof._engine.show", lambda path, top, lines: json.dumps(document))

    def work(context: StepContext) -> None:
        (context.output / "kernel.afdo").write_bytes(b"a profile")

    run(tmp_path, plan_of(toy("opt/profile")), Toy(work))
    digest = digest_of(tmp_path, "opt/profile")
    with serving(tmp_path) as client:
        assert f"/store/{digest}/functions" in client.get(f"/store/{digest}").text
        text = words(client.get(f"/store/{digest}/functions").text)
        assert "do_syscall_64 300 75.0 %" in text and "2 of 2 functions" in text
        text = words(client.get(f"/store/{digest}/functions?find=vfs").text)
        assert "2 vfs_read" in text and "do_syscall_64" not in text


def test_a_profile_that_cannot_be_read_is_an_error_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, top: int, lines: int) -> str:
        raise InputError("kernel.afdo is not a profile", "convert it again")

    monkeypatch.setattr("mepof._engine.show", refuse)

    def work(context: StepContext) -> None:
        (context.output / "kernel.afdo").write_bytes(b"nothing")

    run(tmp_path, plan_of(toy("a")), Toy(work))
    with serving(tmp_path) as client:
        answer = client.get(f"/store/{digest_of(tmp_path, 'a')}/functions")
        assert answer.status == 400
        assert "kernel.afdo is not a profile" in answer.text and "convert it again" in answer.text

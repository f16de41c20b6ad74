"""Many profiles, merged as a tree, are what one merge of all of them gives."""

from __future__ import annotations

import errno
import gzip
import json
import os
import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from mepof import _engine
from mepof.cli import profile_fleet as command
from mepof.errors import InputError, WorkError
from mepof.executor.protocol import Tls
from mepof.profile.fleet import Aging, Fleet, groups, members, merge_fleet

pytest.importorskip("fsspec")

FIRST = date(2025, 3, 1)
AGING = Aging(Fraction(7), FIRST + timedelta(days=4))
PROBES = 12


def text_of(number: int, build: int = 0) -> str:
    """A profile by probes of some functions, with checksums of one build."""
    chance = random.Random(number)
    lines = []
    for function in sorted(chance.sample(range(60), 25)):
        counts = [chance.randrange(1, 1 << 40) for _ in range(chance.randrange(1, 6))]
        lines.append(f"f{function}:{sum(counts)}:{counts[0]}")
        lines += [f" {at}: {count}" for at, count in enumerate(counts, 1)]
        lines.append(f" !CFGChecksum: {1000 + function + build * 5000}")
    return "\n".join(lines) + "\n"


def write(root: Path, name: str, text: str, day: int) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    moment = datetime(FIRST.year, FIRST.month, FIRST.day, 12, tzinfo=UTC) + timedelta(days=day)
    os.utime(path, (moment.timestamp(), moment.timestamp()))


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Profiles of five days from three racks."""
    root = tmp_path / "fleet"
    for number in range(150):
        name = f"rack{number % 3}/{number:04}.afdo"
        write(root, name, text_of(number), number // 30)
    return root


def merge(
    root: Path, out: Path, aging: Aging = AGING, run: Callable[..., Any] = map, **more: Any
) -> Fleet:
    found, _ = members([str(root)], {"rack2/*": 3})
    return merge_fleet(found, aging, out, "autofdo-text", out.parent / "cache", run, **more)


def sequential(root: Path, out: Path, aging: Aging = AGING, without: Sequence[str] = ()) -> bytes:
    """What one merge of all profiles gives, with the same weights."""
    found = [each for each in members([str(root)], {"rack2/*": 3})[0] if each.name not in without]
    weighted = [(root / each.name, each.weight * aging.weight(each.day)) for each in found]
    _engine.merge([pair for pair in weighted if pair[1]], out, "autofdo-text")
    return out.read_bytes()


def test_a_tree_gives_what_one_merge_gives(fleet: Path, tmp_path: Path) -> None:
    made = merge(fleet, tmp_path / "tree")
    assert (tmp_path / "tree").read_bytes() == sequential(fleet, tmp_path / "one")
    assert (made.profiles, made.refused, made.reused) == (150, (), 0)
    assert made.groups > 5
    inputs = json.loads((tmp_path / "tree.provenance.json").read_text())["inputs"]
    assert {each["weight"] for each in inputs} == {
        w * AGING.weight(FIRST + timedelta(d)) for w in (1, 3) for d in range(5)
    }
    assert inputs[0]["name"].endswith("rack0/0000.afdo")


def test_counters_at_their_end_stay_there(tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path / "f", f"{number}", f"f:{1 << 63}:{1 << 63}\n 1: {1 << 63}\n", number)
    made = merge(tmp_path / "f", tmp_path / "tree")
    assert (tmp_path / "tree").read_bytes() == sequential(tmp_path / "f", tmp_path / "one")
    assert str((1 << 64) - 1) in (tmp_path / "tree").read_text()
    assert made.saturated


def test_that_counters_reached_their_end_in_a_group_is_said_every_time(tmp_path: Path) -> None:
    for number in range(2):
        write(tmp_path / "f", f"{number}", f"f:{1 << 63}:{1 << 63}\n 1: {1 << 63}\n", 0)
    write(tmp_path / "f", "2", "g:1:1\n 1: 1\n", 1)
    aging = Aging(None, FIRST)
    first = merge(tmp_path / "f", tmp_path / "tree", aging)
    again = merge(tmp_path / "f", tmp_path / "tree", aging)
    assert (again.saturated, again.reused) == (first.saturated, again.groups) == (True, 2)


def test_counters_that_have_room_are_not_said_to_be_full(fleet: Path, tmp_path: Path) -> None:
    assert not merge(fleet, tmp_path / "tree").saturated


def test_new_profiles_cost_their_own_groups(fleet: Path, tmp_path: Path) -> None:
    first = merge(fleet, tmp_path / "a")
    assert merge(fleet, tmp_path / "b").reused == first.groups
    for number in range(150, 160):
        write(fleet, f"rack0/{number:04}.afdo", text_of(number), 5)
    later = Aging(Fraction(7), FIRST + timedelta(days=5))
    third = merge(fleet, tmp_path / "c", later)
    assert third.reused == first.groups and third.groups > first.groups
    assert (tmp_path / "c").read_bytes() == sequential(fleet, tmp_path / "one", later)
    write(fleet, "rack0/0000a.afdo", text_of(500), 0)
    fourth = merge(fleet, tmp_path / "d", later)
    assert fourth.groups - fourth.reused <= 2
    assert (tmp_path / "d").read_bytes() == sequential(fleet, tmp_path / "one", later)


def test_a_group_whose_file_is_damaged_is_merged_again(fleet: Path, tmp_path: Path) -> None:
    merge(fleet, tmp_path / "a")
    file = next((tmp_path / "cache").iterdir())
    whole = file.read_bytes()
    file.write_bytes(whole[:20])
    merge(fleet, tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == (tmp_path / "a").read_bytes()
    assert file.read_bytes() == whole


def test_foreign_builds_and_damage_are_refused_by_name(fleet: Path, tmp_path: Path) -> None:
    bad = {
        "rack1/foreign.afdo": text_of(3, build=1),
        "rack1/damaged.afdo": "f:x:y\n",
        "rack2/empty.afdo": "",
        "rack2/lines.afdo": "f1:5:1\n 1: 5\n",
    }
    for name, text in bad.items():
        write(fleet, name, text, 2)
    for number in range(5):
        write(fleet, f"other/{number}.afdo", text_of(number, build=1), 5)
    made = merge(fleet, tmp_path / "tree")
    names = {each.name for each in made.refused}
    assert names == {*bad, *(f"other/{n}.afdo" for n in range(5))}
    reasons = {each.name: each.reason for each in made.refused}
    assert "of another build" in reasons["rack1/foreign.afdo"]
    assert (tmp_path / "tree").read_bytes() == sequential(
        fleet, tmp_path / "one", without=tuple(names)
    )


def test_outliers_are_refused_by_name(fleet: Path, tmp_path: Path) -> None:
    # Of the functions of the oldest profile, none runs here.
    odd = "".join(f"g{n}:9:9\n 1: 9\n !CFGChecksum: 7\n" for n in range(9))
    write(fleet, "rack1/odd.afdo", odd, 2)
    write(fleet, "rack1/alone.afdo", odd, 9)
    write(fleet, "rack1/foreign.afdo", text_of(0, build=1), 2)
    write(fleet, "rack1/damaged.afdo", "f:x:y\n", 2)
    assert merge(fleet, tmp_path / "all").profiles == 152
    made = merge(fleet, tmp_path / "tree", least=Fraction(1, 50))
    reasons = {each.name: each.reason for each in made.refused}
    bad = {f"rack1/{name}.afdo" for name in ("odd", "alone", "foreign", "damaged")}
    assert reasons.keys() == bad
    assert reasons["rack1/odd.afdo"] == "an outlier: its flow overlap is 0.0 %"
    assert "of another build" in reasons["rack1/foreign.afdo"]
    assert (tmp_path / "tree").read_bytes() == sequential(
        fleet, tmp_path / "one", without=tuple(bad)
    )


@pytest.mark.parametrize("text", ["x", "-1", "101", "1/0"])
def test_a_wrong_overlap_is_one_line(text: str) -> None:
    with pytest.raises(InputError, match="invalid overlap"):
        command.least_of(text)


def test_another_build_can_be_wanted(fleet: Path, tmp_path: Path) -> None:
    write(fleet, "other/1.afdo", text_of(9, build=1), 2)
    (tmp_path / "like").write_text(text_of(1, build=1))
    made = merge(fleet, tmp_path / "tree", like=tmp_path / "like")
    assert made.profiles == 1 and len(made.refused) == 150
    with pytest.raises(InputError, match="nothing cannot be read: No such file"):
        merge(fleet, tmp_path / "tree", like=tmp_path / "nothing")


def test_a_day_counts_half_after_its_half_life() -> None:
    aging = Aging(Fraction(7), FIRST)
    weights = [aging.weight(FIRST - timedelta(days=days)) for days in (0, 7, 14, 70, 84)]
    assert weights == [1024, 512, 256, 1, 0]
    assert Aging(None, FIRST).weight(FIRST - timedelta(days=900)) == 1


def test_a_pipe_and_a_dangling_link_are_refused(fleet: Path, tmp_path: Path) -> None:
    wanted = merge(fleet, tmp_path / "wanted").profiles
    os.mkfifo(fleet / "rack0" / "0000-pipe.afdo")
    (fleet / "rack0" / "0000-link.afdo").symlink_to(tmp_path / "nothing")
    made = merge(fleet, tmp_path / "tree")
    assert made.profiles == wanted
    assert {each.name for each in made.refused} == {
        "rack0/0000-pipe.afdo",
        "rack0/0000-link.afdo",
    }
    assert all("no such file" in each.reason for each in made.refused)


def test_what_cannot_be_read_is_refused_by_name_and_merged_when_it_can(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = {str(fleet / "rack1"), str(fleet / "rack0/0003.afdo")}

    def refusing(name: str) -> None:
        real = getattr(LocalFileSystem, name)

        def asked(self: LocalFileSystem, path: str, *words: Any, **more: Any) -> Any:
            if path.rstrip("/") in denied:
                raise PermissionError(errno.EACCES, "Permission denied", path)
            return real(self, path, *words, **more)

        monkeypatch.setattr(LocalFileSystem, name, asked)

    refusing("ls")
    refusing("_open")
    monkeypatch.setenv("MEPOF_STORE", str(tmp_path / "store"))
    options = command.Options(None, [], None, None, None, None, None)
    done = command.merged([str(fleet)], tmp_path / "tree", "autofdo-text", options)
    assert done["profiles"] == 99
    assert done["refused"] == [
        {"name": f"{fleet}/rack1", "reason": "permission denied"},
        {"name": "rack0/0003.afdo", "reason": "permission denied"},
    ]
    denied.clear()
    done = command.merged([str(fleet)], tmp_path / "tree", "autofdo-text", options)
    assert (done["profiles"], done["refused"]) == (150, [])
    denied.add(str(fleet))
    with pytest.raises(InputError, match="no profiles found: permission denied for "):
        command.merged([str(fleet)], tmp_path / "tree", "autofdo-text", options)


def test_compressed_profiles_are_merged_like_others(fleet: Path, tmp_path: Path) -> None:
    merge(fleet, tmp_path / "plain")
    for path in (fleet / "rack0").iterdir():
        packed, times = gzip.compress(path.read_bytes()), path.stat()
        path.write_bytes(packed)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    write(fleet, "rack1/torn.afdo.gz", "", 1)
    (fleet / "rack1/torn.afdo.gz").write_bytes(gzip.compress(b"x" * 99)[:-9])
    like = tmp_path / "like.gz"
    like.write_bytes((fleet / "rack0/0000.afdo").read_bytes())
    made = merge(fleet, tmp_path / "tree", like=like)
    assert (tmp_path / "tree").read_bytes() == (tmp_path / "plain").read_bytes()
    (refused,) = made.refused
    assert refused.name == "rack1/torn.afdo.gz"
    assert refused.reason.startswith("torn.afdo.gz cannot be decompressed")


def test_reasons_have_the_names_of_the_profiles(fleet: Path, tmp_path: Path) -> None:
    hashed = "\n".join(line.replace("f", "1234", 1) for line in text_of(1).splitlines()) + "\n"
    write(fleet, "rack1/hashed.afdo", hashed, 1)
    write(fleet, "rack1/torn.afdo", "torn", 1)
    refused = {each.name: each.reason for each in merge(fleet, tmp_path / "tree").refused}
    assert "rack1/torn.afdo" in refused
    assert not any(str(tmp_path) in reason or "/tmp" in reason for reason in refused.values())


def test_the_reasons_are_in_the_error_if_none_is_left(fleet: Path, tmp_path: Path) -> None:
    like = tmp_path / "like"
    like.write_text(text_of(1, build=1))
    with pytest.raises(InputError, match=r"no profile is left: rack0/0000\.afdo: .*; … \("):
        merge(fleet, tmp_path / "tree", like=like)
    like.write_text("torn")
    with pytest.raises(InputError, match=r"like: not a sample profile"):
        merge(fleet, tmp_path / "tree", like=like)


def test_a_pattern_that_fits_nothing_and_a_directory_twice_are_told(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEPOF_STORE", str(tmp_path / "store"))
    options = command.Options(None, ["rack9/*=2"], None, None, None, None, None)
    command.merged([str(fleet)], tmp_path / "tree", "autofdo", options)
    assert "--weigh rack9/* fits no profile; the first is rack0/0000.afdo" in (
        capsys.readouterr().err
    )
    with pytest.raises(InputError, match="given twice"):
        command.is_fleet([str(fleet), f"{fleet}/"])


def test_faded_days_are_named(fleet: Path, tmp_path: Path) -> None:
    aging = Aging(Fraction(1, 4), FIRST + timedelta(days=4))
    made = merge(fleet, tmp_path / "tree", aging)
    assert made.faded == (FIRST, FIRST + timedelta(days=1))
    assert made.profiles == 90


def test_a_faded_profile_does_not_decide_which_build_is_wanted(fleet: Path, tmp_path: Path) -> None:
    write(fleet, "old/1.afdo", text_of(9, build=1), -3)
    made = merge(fleet, tmp_path / "tree", Aging(Fraction(1, 2), FIRST + timedelta(days=4)))
    assert made.faded == (FIRST - timedelta(days=3),)
    assert (made.profiles, made.refused) == (150, ())


@pytest.mark.parametrize("part", ["sum", "profile"])
def test_a_full_disk_is_not_called_another_build(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    def full(inputs: object, output: Path, form: str) -> str:
        raise WorkError(f"{output} cannot be written: no space left on device")

    monkeypatch.setattr(_engine, "merge", full)
    like = next(fleet.rglob("*.afdo")) if part == "sum" else None
    with pytest.raises(WorkError, match="no space left on device"):
        merge(fleet, tmp_path / "tree", like=like)


def test_groups_are_of_one_day_and_bounded(tmp_path: Path) -> None:
    for number in range(400):
        write(tmp_path / "f", f"{number:04}", "x", number // 300)
    cut = groups(members([str(tmp_path / "f")], {})[0])
    assert all(len({each.day for each in group}) == 1 for group in cut)
    assert max(map(len, cut)) <= 128 and sum(map(len, cut)) == 400


def test_the_command_merges_a_directory(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEPOF_STORE", str(tmp_path / "store"))
    options = command.Options("7", ["rack2/*=3"], None, None, None, None, None)
    done = command.merged([str(fleet)], tmp_path / "tree", "autofdo-text", options)
    assert (tmp_path / "tree").read_bytes() == sequential(fleet, tmp_path / "one")
    assert (done["profiles"], done["newest"], done["weight_scale"]) == (150, "2025-03-05", 1024)


def test_workers_give_the_same(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    pytest.importorskip("cryptography")
    monkeypatch.setenv("MEPOF_STORE", str(tmp_path / "store"))
    options = command.Options("7", ["rack2/*=3"], None, None, "dask", None, 2)
    command.merged([str(fleet)], tmp_path / "tree", "autofdo-text", options)
    assert (tmp_path / "tree").read_bytes() == sequential(fleet, tmp_path / "one")


@pytest.mark.parametrize(
    ("scheduler", "workers", "tls", "name"),
    [
        ("tls://farm:8786", None, None, "scheduler"),
        (None, 2, None, "workers"),
        (None, None, Tls(Path("ca"), Path("cert"), Path("key")), "tls-ca"),
    ],
)
def test_what_is_for_a_cluster_is_refused_without_one(
    fleet: Path,
    tmp_path: Path,
    scheduler: str | None,
    workers: int | None,
    tls: Tls | None,
    name: str,
) -> None:
    options = command.Options(None, [], None, None, None, scheduler, workers, tls)
    with pytest.raises(InputError, match=f"--{name} is for a cluster"):
        command.merged([str(fleet)], tmp_path / "out", "autofdo", options)


def test_an_encrypted_cluster_is_reached_by_the_certificates_that_are_named(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setenv("MEPOF_STORE", str(tmp_path / "store"))
    tls = Tls(tmp_path / "ca.pem", tmp_path / "cert.pem", tmp_path / "key.pem")
    options = command.Options(None, [], None, None, "dask", "tls://127.0.0.1:1", None, tls)
    with pytest.raises(InputError, match=r"ca\.pem"):
        command.merged([str(fleet)], tmp_path / "out", "autofdo", options)


@pytest.mark.parametrize("text", ["rack=0", "rack", "=3", "rack=x", "rack=-1"])
def test_a_wrong_weight_is_one_line(text: str) -> None:
    with pytest.raises(InputError, match="invalid weight"):
        command.weight_of(text)


@pytest.mark.parametrize("text", ["0", "-1", "x", "1/0"])
def test_a_wrong_half_life_is_one_line(text: str) -> None:
    with pytest.raises(InputError, match="invalid half-life"):
        command.half_life_of(text)


def test_a_cache_that_cannot_be_written_is_not_used(fleet: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    made = merge(fleet, tmp_path / "tree")
    assert (tmp_path / "tree").read_bytes() == sequential(fleet, tmp_path / "one")
    assert (made.profiles, made.reused) == (150, 0)


def test_profiles_of_instrumented_kernels_are_named_as_such(tmp_path: Path) -> None:
    write(tmp_path / "f", "a.profdata", "", 0)
    (tmp_path / "f/a.profdata").write_bytes(b"\xfflprofi\x81" + bytes(40))
    with pytest.raises(InputError, match=r"1 file.s. is .*: all are profiles of instr") as caught:
        merge(tmp_path / "f", tmp_path / "tree")
    assert caught.value.remedy is not None and "A.profdata" in caught.value.remedy
    write(tmp_path / "f", "b.txt", "f:x:y\n", 0)
    with pytest.raises(InputError, match=r"b\.txt: not .*; a\.profdata: a profile of an instrum"):
        merge(tmp_path / "f", tmp_path / "tree")


def test_what_does_not_exist_is_named(tmp_path: Path) -> None:
    write(tmp_path / "f", "h1.afdo", text_of(1), 0)
    (tmp_path / "empty").mkdir()
    for name in ("none", "f/h1.afdo:2"):
        with pytest.raises(InputError, match=f"{name} does not exist") as caught:
            members([f"file://{tmp_path}/empty", f"file://{tmp_path}/{name}"], {})
    assert caught.value.remedy is not None and "--weigh 'h1.afdo=2'" in caught.value.remedy


def test_no_profiles_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no profiles"):
        members([str(tmp_path)], {})
    with pytest.raises(InputError, match="cannot be merged with directories"):
        command.is_fleet([str(tmp_path), "a.afdo"])

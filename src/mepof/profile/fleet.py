"""Merges the profiles of a fleet: many, from directories and buckets, as a tree.

The profiles of a day are merged in groups, the groups of a day into the day, and the days, each
with the weight of its age, into the whole. Counts are added and multiplied as whole numbers that
stop at the end of 64 bits, and order is kept, so the tree gives what one merge of all profiles
gives, to the bit.

A group begins and ends at names that a hash chooses, so a new profile changes its own group and no
other. What a group gave is kept under a digest of what went in; a day's new profiles cost a day's
new profiles.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import partial
from itertools import groupby
from math import pow
from pathlib import Path
from typing import Any

from mepof import _engine
from mepof.disk import replacing
from mepof.errors import InputError, MepofError
from mepof.plan.remote import Remote, RemoteDenied, hidden
from mepof.profile.published import is_special, published
from mepof.profile.traces import decompressed

#: Weights are multiplied by this, so that age can be told apart in whole numbers.
SCALE = 1024

Map = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]
"""Calls a function with each value, somewhere, and gives the results in order."""

_MEAN_GROUP = 32
_MAX_GROUP = 128
_FAN_IN = 16
_MAX_SHOWN = 3
_COUNTS = "a profile of an instrumented kernel"
_NO_FILE = "there is no such file any more, or it is not a regular one"
_DENIED = "permission denied"


@dataclass(frozen=True)
class Member:
    """A profile of a fleet.

    Attributes:
        url: the directory or bucket.
        name: path below it.
        version: changes with its content.
        day: when it was written.
        weight: by what its counts are multiplied, before its age.
    """

    url: str
    name: str
    version: str
    day: date
    weight: int


@dataclass(frozen=True)
class Refused:
    """A profile that was left out."""

    name: str
    reason: str


@dataclass(frozen=True)
class Part:
    """A sum of profiles: the profile, where it came from, what was left out, and whether a counter
    reached its limit."""

    profile: bytes
    inputs: tuple[dict[str, Any], ...]
    refused: tuple[Refused, ...]
    saturated: bool


@dataclass(frozen=True)
class Aging:
    """How much a day counts.

    Attributes:
        half_life: days after which a profile counts half; None for no decay.
        newest: the day that counts fully.
    """

    half_life: Fraction | None
    newest: date

    def weight(self, day: date) -> int:
        """The weight of a day in parts of :data:`SCALE`: SCALE · 2^-(age / half-life), rounded; 0
        if it has faded."""
        if self.half_life is None:
            return 1
        age = max(0, (self.newest - day).days)
        return round(SCALE * pow(0.5, age / float(self.half_life)))


def members(
    urls: Sequence[str], weights: Mapping[str, int]
) -> tuple[list[Member], tuple[Refused, ...]]:
    """The profiles in directories and buckets, by day and name.

    Args:
        weights: by patterns of names, of which the first that fits counts; 1 otherwise.

    Returns:
        The profiles, and the directories that we have no permission to read.

    Raises:
        InputError: there are none.
        WorkError: a server does not answer, or does not say when a profile was written.
    """
    found: list[Member] = []
    denied: list[str] = []
    for url in urls:
        unread: list[str] = []
        for name, entry in Remote(url).entries("", unread).items():
            if not name.endswith(".json"):
                weight = next((w for p, w in weights.items() if fnmatchcase(name, p)), 1)
                found.append(Member(url, name, entry.version, entry.modified.date(), weight))
        denied += (f"{hidden(url)}/{name}".removesuffix("/") for name in unread)
    if not found and denied:
        raise InputError(
            f"no profiles found: permission denied for {', '.join(denied)}",
            "give this user permission to read them",
        )
    if not found:
        raise _nothing_in(urls)
    by_day = sorted(found, key=lambda each: (each.day, each.url, each.name))
    return by_day, tuple(Refused(name, _DENIED) for name in denied)


def _nothing_in(urls: Sequence[str]) -> InputError:
    for url in urls:
        remote = Remote(url)
        if not remote.exists():
            remedy = "name a directory or bucket of profiles"
            if weighted := re.fullmatch(r".+://[^/]*/(?:.*/)?([^/]+):(\d+)", url):
                name, weight = weighted.groups()
                remedy = f"name its directory, and give the weight as --weigh '{name}={weight}'"
            return InputError(f"{remote.url} does not exist", remedy)
    return InputError(
        f"{', '.join(map(hidden, urls))} has no profiles", "name a directory of profiles"
    )


def groups(found: Sequence[Member]) -> list[tuple[Member, ...]]:
    """The members in groups of one day each, which begin at names that a hash chooses."""
    made: list[tuple[Member, ...]] = []
    for _, of_day in groupby(found, key=lambda each: each.day):
        group: list[Member] = []
        for each in of_day:
            begins = hashlib.sha256(each.name.encode()).digest()[0] % _MEAN_GROUP == 0
            if group and (begins or len(group) == _MAX_GROUP):
                made.append(tuple(group))
                group = []
            group.append(each)
        made.append(tuple(group))
    return made


@dataclass(frozen=True)
class Fleet:
    """What came of a merge.

    Attributes:
        profiles: how many went in.
        refused: those that did not.
        faded: the days that have faded to nothing.
        reused: how many groups an earlier merge had merged.
        groups: how many there are.
        saturated: whether a counter reached its limit of 64 bits.
        statistics: of the sum, as of :func:`mepof._engine.merge`.
    """

    profiles: int
    refused: tuple[Refused, ...]
    faded: tuple[date, ...]
    reused: int
    groups: int
    saturated: bool
    statistics: dict[str, Any]


def merge_fleet(
    found: Sequence[Member],
    aging: Aging,
    output: Path,
    form: str,
    cache: Path,
    run: Map,
    like: Path | None = None,
    least: Fraction = Fraction(0),
) -> Fleet:
    """Merge the profiles of a fleet into one file, and write what went in beside it.

    Args:
        found: as of :func:`members`.
        form: one of ``PROFILE_FORMATS``.
        cache: directory of the groups that were merged before; not used if it cannot be written.
        run: where groups are merged.
        like: a profile of the build that is wanted; the oldest that counts by default.
        least: outliers are left out: profiles whose flow overlap with ``like`` is smaller.

    Raises:
        InputError: no profile is left, or ``like`` cannot be read.
        WorkError: profiles of different builds are left, or a server does not answer.
    """
    days = {day: aging.weight(day) for day in dict.fromkeys(each.day for each in found)}
    kept = [each for each in found if days[each.day]]
    reference = _reference(kept) if like is None else _wanted(like)
    cut = groups(kept)
    sums = []
    refused: list[Refused] = []
    with _writable(cache) as place, tempfile.TemporaryDirectory() as scratch:
        files, reused = _merged_groups(cut, reference, least, (place, Path(scratch)), run)
        # Of groups, only those of a day are in memory.
        for day, of_day in groupby(zip(cut, files, strict=True), key=lambda pair: pair[0][0].day):
            parts = [_part(file, group, reference, least) for group, file in of_day]
            refused += [each for part in parts for each in part.refused]
            whole = reduced([part for part in parts if part.inputs], run)
            if whole is not None:
                sums.append((whole, days[day]))
    if not sums:
        raise InputError(
            f"no profile is left: {_shown(refused)}",
            "name a profile of the build that is wanted: --like",
        )
    whole, statistics = _merged(sums, form)
    with published(output) as written:
        written.write_bytes(whole.profile)
    if not is_special(output):
        with published(output.with_name(f"{output.name}.provenance.json")) as written:
            written.write_text(json.dumps({"inputs": whole.inputs}, indent=1) + "\n")
    faded = tuple(day for day, weight in days.items() if not weight)
    return Fleet(
        len(whole.inputs), tuple(refused), faded, reused, len(cut), whole.saturated, statistics
    )


def reduced(parts: Sequence[Part], run: Map) -> Part | None:
    """The sum of parts, by a tree that keeps their order."""
    while len(parts) > 1:
        parts = list(run(_sum, [tuple(some) for some in _batches(parts)]))
    return parts[0] if parts else None


def _batches(parts: Sequence[Part]) -> Iterator[Sequence[Part]]:
    for start in range(0, len(parts), _FAN_IN):
        yield parts[start : start + _FAN_IN]


@contextmanager
def _writable(cache: Path) -> Iterator[Path]:
    """The cache, or a directory for this merge alone where the cache cannot be written."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache):
            pass
    except OSError:
        with tempfile.TemporaryDirectory() as scratch:
            yield Path(scratch)
    else:
        yield cache


def _merged_groups(
    cut: Sequence[tuple[Member, ...]],
    reference: bytes,
    least: Fraction,
    places: tuple[Path, Path],
    run: Map,
) -> tuple[list[Path], int]:
    """The files of merged groups, and how many an earlier merge had written.

    Args:
        places: the cache, and a directory for what is not for a later merge.
    """
    cache, scratch = places
    files = [cache / _key(group, reference, least) for group in cut]
    new = [number for number, file in enumerate(files) if not file.exists()]
    asked = partial(merge_group, reference=reference, least=least)
    for number, part in zip(new, run(asked, [cut[number] for number in new]), strict=True):
        if not _lasts(part):
            files[number] = scratch / files[number].name
        _keep(files[number], part)
    return files, len(cut) - len(new)


def _lasts(part: Part) -> bool:
    """Whether a later merge would give it, too: who may read a file is not part of its version."""
    return not any(each.reason == _DENIED for each in part.refused)


def _part(file: Path, group: Sequence[Member], reference: bytes, least: Fraction) -> Part:
    """A merged group, from its file unless that is damaged."""
    part = _recall(file)
    if part is None:
        part = merge_group(group, reference, least)
        if _lasts(part):
            _keep(file, part)
    return part


def merge_group(group: Sequence[Member], reference: bytes, least: Fraction = Fraction(0)) -> Part:
    """Merge the profiles of a group; those that are damaged, of another build or outliers are left
    out.

    Args:
        reference: a profile of the build that is wanted.
        least: flow overlap with it, below which a profile is an outlier.
    """
    with tempfile.TemporaryDirectory() as work:
        # Errors name the files.
        paths = {each: Path(work, str(n), Path(each.name).name) for n, each in enumerate(group)}
        like = Path(work, "the reference")
        like.write_bytes(reference)
        refused: list[Refused] = []

        def sound(
            candidates: Sequence[Member], why: Callable[[Member], str | None]
        ) -> list[Member]:
            kept = []
            for each in candidates:
                reason = why(each)
                if reason is None:
                    kept.append(each)
                else:
                    refused.append(Refused(each.name, reason))
            return kept

        whole = Path(work, "sum")
        left = sound(group, lambda each: _unread(each, paths[each]))
        if least:
            left = sound(left, lambda each: _outlying(like, paths[each], least))
        part = _sum_of(paths, left, whole) if left else Part(b"", (), (), False)
        if left and (part is None or _foreign(like, whole)):
            left = sound(left, lambda each: _foreign(like, paths[each]))
            part = _sum_of(paths, left, whole) if left else Part(b"", (), (), False)
        if part is None:
            raise InputError(
                f"profiles between {left[0].name} and {left[-1].name} are of different builds",
                "name a profile of the build that is wanted: --like",
            )
        return replace(part, refused=tuple(refused))


def _sum_of(paths: Mapping[Member, Path], group: Sequence[Member], output: Path) -> Part | None:
    """The sum of a group; None if some of it cannot be added."""
    try:
        made = json.loads(
            _engine.merge([(paths[each], each.weight) for each in group], output, "autofdo")
        )
    except InputError:
        return None
    if made["conflicts"]:
        return None
    inputs = tuple(
        {**origin, "name": f"{each.url}/{each.name}", "id": each.version}
        for origin, each in zip(made["provenance"]["inputs"], group, strict=True)
    )
    return Part(output.read_bytes(), inputs, (), bool(made["saturated"]))


def _foreign(like: Path, path: Path) -> str | None:
    """Why a profile cannot be added to one of the wanted build, or None."""
    try:
        conflicts = json.loads(_engine.conflicts(like, path))
    except InputError as error:
        return _reason(error, path)
    return f"{len(conflicts)} functions are of another build" if conflicts else None


def _outlying(like: Path, path: Path, least: Fraction) -> str | None:
    """Why a profile is left out, if it has little in common with one of the wanted build."""
    try:
        overlap = json.loads(_engine.compare(like, path, 0))["flow_overlap"]
    except InputError:
        overlap = 0.0  # damaged
    if overlap >= least:
        return None
    outlier = f"an outlier: its flow overlap is {100 * overlap:.1f} %"
    return _foreign(like, path) or outlier


def _sum(parts: Sequence[Part]) -> Part:
    """The sum of parts."""
    return _merged([(part, 1) for part in parts], "autofdo")[0]


def _merged(weighted: Sequence[tuple[Part, int]], form: str) -> tuple[Part, dict[str, Any]]:
    """The weighted sum of parts, and its statistics."""
    with tempfile.TemporaryDirectory() as work:
        output = Path(work, "sum")
        paths = []
        for number, (part, weight) in enumerate(weighted):
            path = Path(work, str(number))
            path.write_bytes(part.profile)
            paths.append((path, weight))
        result = json.loads(_engine.merge(paths, output, form))
        profile = output.read_bytes()
    if result["conflicts"]:
        named = ", ".join(each["function"] for each in result["conflicts"][:3])
        raise InputError(
            f"the profiles are of different builds: {named} differ",
            "name a profile of the build that is wanted: --like",
        )
    inputs = tuple(
        {**each, "weight": each["weight"] * weight}
        for part, weight in weighted
        for each in part.inputs
    )
    saturated = bool(result["saturated"]) or any(part.saturated for part, _ in weighted)
    return Part(profile, inputs, (), saturated), result["statistics"]


def _wanted(like: Path) -> bytes:
    try:
        with like.open("rb"):
            pass
    except OSError as error:
        raise InputError(f"{like} cannot be read: {error.strerror}", "name a profile") from error
    with decompressed([like]) as (plain,):
        _engine.conflicts(plain, plain)  # refuses what is damaged
        return plain.read_bytes()


def _reference(found: Sequence[Member]) -> bytes:
    """The first profile that can be read; what it is of, all must be of."""
    refused: list[Refused] = []
    with tempfile.TemporaryDirectory() as work:
        for each in found:
            path = Path(work, "profile")
            reason = _unread(each, path)
            if reason is None:
                try:
                    _engine.merge([(path, 1)], Path(work, "sum"), "autofdo")
                except InputError as error:
                    reason = _reason(error, path)
                else:
                    return path.read_bytes()
            refused.append(Refused(each.name, reason))
    said = f"none of the {len(found)} file(s) is an AutoFDO profile"
    if all(each.reason == _COUNTS for each in refused):
        raise InputError(
            f"{said}: all are profiles of instrumented kernels",
            "name the files instead: `mepof profile merge A.profdata B.profdata`",
        )
    raise InputError(
        f"{said}: {_shown(refused)}", "convert branch traces first: `mepof profile convert`"
    )


def _shown(refused: Sequence[Refused]) -> str:
    reasons = [f"{each.name}: {each.reason}" for each in refused[:_MAX_SHOWN]]
    return "; ".join([*reasons, *(["…"] if len(refused) > _MAX_SHOWN else [])])


def _reason(error: MepofError, path: Path) -> str:
    """What an error says of a file, without our directories."""
    from mepof.profile.instrumentation import is_instrumentation  # loads all toolchains

    if is_instrumentation(path):
        return _COUNTS
    said = error.message.removeprefix(f"{path}: ")
    return said.replace(f"{path.parent}/", "").replace(f"{path.parent.parent}/", "")


def _unread(member: Member, path: Path) -> str | None:
    """Copy a profile, decompressed; why there is none, or None."""
    remote = Remote(member.url)
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    try:
        if not remote.fetch(member.name, path, lambda done, size: None):
            return _NO_FILE  # removed since it was listed
    except RemoteDenied as error:
        if not isinstance(error.__cause__, PermissionError):
            raise  # the server does not let us in
        return _DENIED
    finally:
        remote.close()
    try:
        with decompressed([path]) as (plain,):
            if plain != path:
                shutil.copyfile(plain, path)
    except InputError as error:
        return _reason(error, path)
    return None


def _key(group: Sequence[Member], reference: bytes, least: Fraction) -> str:
    whole = hashlib.sha256(hashlib.sha256(reference).digest())
    whole.update(str(least).encode())
    for each in group:
        whole.update(json.dumps([*asdict(each).values()], default=str).encode())
    return whole.hexdigest()


def _keep(path: Path, part: Part) -> None:
    about = {
        "inputs": part.inputs,
        "refused": [asdict(each) for each in part.refused],
        "saturated": part.saturated,
    }
    with replacing(path) as partial:
        partial.write_bytes(json.dumps(about).encode() + b"\n" + part.profile)


def _recall(path: Path) -> Part | None:
    try:
        about, _, profile = path.read_bytes().partition(b"\n")
        known = json.loads(about)
        refused = tuple(Refused(**each) for each in known["refused"])
        return Part(profile, tuple(known["inputs"]), refused, bool(known["saturated"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None

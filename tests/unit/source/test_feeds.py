"""Feeds of releases, from real servers."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from mepof.adapter.feed.protocol import FEEDS, Follow, Release, Seen
from mepof.errors import InputError, WorkError
from mepof.source import download
from mepof.source.download import Busy

from .conftest import Handler, Recorder, Server, git, status
from .test_debian import PACKAGE, apt  # noqa: F401
from .test_git import daemon  # noqa: F401


def look(follow: Follow, bench: Recorder, memory: str = "") -> Seen:
    feed = FEEDS.get(follow.feed)
    feed.check(follow)
    return feed.look(follow, memory, bench.workshop)


def names(seen: Seen) -> list[str]:
    assert seen.releases is not None
    return [release.name for release in seen.releases]


# https://www.kernel.org/releases.json has such a source for a release candidate.
CANDIDATE = "https://git.kernel.org/torvalds/t/linux-6.19-rc3.tar.gz"
LIST = {
    "releases": [
        {"moniker": "mainline", "version": "6.19-rc3", "source": CANDIDATE},
        {"moniker": "stable", "version": "6.18.10", "source": "/pub/linux-6.18.10.tar.xz"},
        {"moniker": "stable", "version": "6.18.9", "source": "/pub/linux-6.18.9.tar.xz"},
        {"moniker": "longterm", "version": "6.12.95", "source": "/pub/linux-6.12.95.tar.xz"},
        {"moniker": "linux-next", "version": "next-1", "source": None},
    ]
}


@pytest.fixture
def listed(server: Server) -> Follow:
    (server.root / "releases.json").write_text(json.dumps(LIST))
    return Follow.model_validate(
        {
            "name": "stable",
            "feed": "kernel-org",
            "url": f"{server.url}/releases.json",
            "monikers": ("stable", "longterm"),
            "signed-by": "kernel.org",
        }
    )


def test_kernel_orgs_list_is_read_by_its_monikers(
    listed: Follow, server: Server, bench: Recorder
) -> None:
    seen = look(listed, bench)
    assert names(seen) == ["6.12.95", "6.18.9", "6.18.10"]
    assert seen.releases is not None
    address = f"{server.url}/pub/linux-6.12.95.tar.xz#signed-by=kernel.org"
    assert seen.releases[0].address == address


@pytest.mark.parametrize("signer", [None, "./keys.gpg"])
def test_a_release_candidate_is_taken_by_its_signed_tag(
    listed: Follow, bench: Recorder, signer: str | None
) -> None:
    change = {"monikers": ("mainline",), "signed_by": signer}
    seen = FEEDS.get("kernel-org").look(listed.model_copy(update=change), "", bench.workshop)
    repository = "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git"
    address = f"git+{repository}#tag=v6.19-rc3&signed-by={signer or 'kernel.org'}"
    assert seen.releases == (Release("6.19-rc3", address),)


@pytest.mark.parametrize(
    ("feed", "found", "now"),
    [
        (
            *("kernel-org", "https://x.org/linux-6.12.95.tar.xz#signed-by=old"),
            "https://x.org/linux-6.12.95.tar.xz#signed-by=new",
        ),
        ("kernel-org", "https://x.org/linux-6.12.95.tar.xz", None),
        (
            *("kernel-org", "git+https://git.kernel.org/pub/linux.git#tag=v6.12.95&signed-by=old"),
            "git+https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git"
            "#tag=v6.12.95&signed-by=new",
        ),
        ("git", "git+https://old.org/l.git#tag=6.12.95", "git+https://x.org/l.git#tag=6.12.95"),
    ],
)
def test_a_release_that_was_found_has_the_address_that_the_table_gives_it_now(
    feed: str, found: str, now: str | None
) -> None:
    signer = "new" if now and "new" in now else None
    url = "https://x.org/l.git" if feed == "git" else None
    follow = Follow.model_validate({"name": "x", "feed": feed, "url": url, "signed-by": signer})
    current = FEEDS.get(feed).current(follow, Release("6.12.95", found))
    assert current == Release("6.12.95", now or found)


def test_a_list_is_asked_for_only_if_it_has_changed(
    listed: Follow, server: Server, bench: Recorder
) -> None:
    seen = look(listed, bench)
    wanted = []

    def unchanged(handler: Handler) -> bool:
        wanted.append(handler.headers["If-None-Match"])
        return status(304)(handler)

    server.script[:] = [unchanged]
    assert look(listed, bench, seen.memory) == Seen(None, seen.memory)
    assert len(wanted) == 1 and wanted[0].startswith('"') and seen.memory.endswith(f" {wanted[0]}")


@pytest.mark.parametrize(
    ("change", "found"),
    [({"match": "6.12.*"}, ["6.12.95"]), ({"monikers": ("mainline",)}, ["6.19-rc3"])],
)
def test_another_choice_from_a_list_that_has_not_changed_is_seen(
    listed: Follow, server: Server, bench: Recorder, change: dict[str, object], found: list[str]
) -> None:
    def unchanged(handler: Handler) -> bool:
        return handler.headers["If-None-Match"] is not None and status(304)(handler)

    memory = look(listed, bench).memory
    server.script[:] = [unchanged]
    assert names(look(listed.model_copy(update=change), bench, memory)) == found


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"releases": [{"version": 6}]}', "<html>"])
def test_what_is_not_a_list_of_releases_is_an_error(
    listed: Follow, server: Server, bench: Recorder, text: str
) -> None:
    (server.root / "releases.json").write_text(text)
    with pytest.raises(WorkError, match=r"is not JSON|is not a list of releases"):
        look(listed, bench)


def test_a_busy_server_is_waited_for_and_a_redirect_loop_is_an_error(
    listed: Follow, server: Server, bench: Recorder
) -> None:
    server.script[:] = [status(429, Retry_After="9"), status(503)]
    assert len(names(look(listed, bench))) == 3
    assert bench.waits[0] >= 9
    server.script[:] = [status(302, Location="/releases.json")] * 20
    with pytest.raises(InputError, match="redirects more than"):
        look(listed, bench)


def test_a_server_that_asks_to_wait_long_is_not_waited_for(
    listed: Follow, server: Server, bench: Recorder
) -> None:
    server.script[:] = [status(503, Retry_After="7200")]
    with pytest.raises(Busy, match="asks to wait 120 minutes") as error:
        look(listed, bench)
    assert error.value.seconds == 7200 and bench.waits == []


@pytest.mark.parametrize("length", ["said", "not said"])
def test_a_list_that_is_too_large_is_not_read_to_its_end(
    listed: Follow,
    server: Server,
    bench: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    length: str,
) -> None:
    monkeypatch.setattr(download, "MAX_LIST_BYTES", 1 << 16)
    sent = 0

    def endless(handler: Handler) -> bool:
        nonlocal sent
        handler.send_response(200)
        if length == "said":
            handler.send_header("Content-Length", str(1 << 40))
        handler.send_header("Connection", "close")
        handler.close_connection = True
        handler.end_headers()
        with contextlib.suppress(OSError):
            while sent < 1 << 30:
                sent += handler.wfile.write(bytes(1 << 16))
        return True

    server.script[:] = [endless]
    with pytest.raises(InputError, match=r"releases\.json is larger than 0 MiB"):
        look(listed, bench)
    assert sent < 1 << 30


def test_half_a_list_is_fetched_again(listed: Follow, server: Server, bench: Recorder) -> None:
    def half(handler: Handler) -> bool:
        handler.give((server.root / "releases.json").read_bytes(), cut=40)
        return True

    server.script[:] = [half]
    assert len(names(look(listed, bench))) == 3
    assert len(server.asked) == 2 and len(bench.waits) == 1


def test_tags_are_releases_in_their_order(
    daemon: str,  # noqa: F811
    repository: Path,
    bench: Recorder,
) -> None:
    git(repository, "tag", "v6.12.10")
    git(repository, "tag", "other")
    follow = Follow(name="s", feed="git", url=daemon, match="v6.12.*")
    seen = look(follow, bench)
    assert names(seen) == ["v6.12.1", "v6.12.2", "v6.12.10"]
    assert seen.releases is not None
    assert seen.releases[0].address == f"git+{daemon}#tag=v6.12.1"
    assert look(follow, bench, seen.memory).releases is None


def test_debians_index_is_followed(apt: Server, bench: Recorder) -> None:  # noqa: F811
    follow = Follow(name="d", feed="debian", package=PACKAGE)
    seen = look(follow, bench)
    assert names(seen) == ["6.12.94-1", "6.12.95-1"]
    assert seen.releases is not None
    assert seen.releases[1].address == f"debian:{PACKAGE}=6.12.95-1"
    assert look(follow, bench, seen.memory).releases is None
    nothing = look(follow.model_copy(update={"match": "7.*"}), bench)
    assert nothing.releases == () and nothing.memory


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"feed": "git"}, "has no `url`"),
        ({"feed": "git", "url": "ext::x"}, "is not a URL that mepof lets git read"),
        ({"feed": "git", "url": "https://x/y.git", "package": "linux"}, "takes `url` alone"),
        ({"feed": "kernel-org", "package": "linux"}, "takes no package"),
        ({"feed": "kernel-org", "monikers": ("stabel",)}, "the moniker `stabel`.*`stable`"),
        ({"feed": "kernel-org", "monikers": ("linux-next",)}, "known: longterm, mainline, stable"),
        ({"feed": "debian"}, "takes `package`"),
        ({"feed": "kernel-org", "url": "https://x.org/l.json"}, "does not say how the releases"),
        ({"feed": "debian", "package": PACKAGE, "signed-by": "debian"}, "takes no `signed-by`"),
        ({"feed": "debian", "package": PACKAGE, "monikers": ("stable",)}, "takes no `monikers`"),
        ({"feed": "debian", "package": "bash"}, "is not a Debian kernel source package"),
    ],
)
def test_a_table_that_a_feed_cannot_follow_is_an_error(table: dict[str, str], message: str) -> None:
    follow = Follow.model_validate({"name": "x", **table})
    with pytest.raises(InputError, match=message):
        FEEDS.get(follow.feed).check(follow)

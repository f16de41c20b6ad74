"""``kernel-build``: its build specifications and its identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from writers.mini_kernel import SUFFIX, write_tree

from mepof.algorithm.protocol import EXECUTED_OBJECTS
from mepof.errors import InputError
from mepof.events import StepNote
from mepof.kernel import installed, kbuild, overlay, rewriting
from mepof.kernel.build_spec import PROFILES, BuildPaths, BuildSpec, FileFlags
from mepof.kernel.description import BuildSize, Origin
from mepof.kernel.options import options
from mepof.kernel.selection import SelectedObject, Selection
from mepof.plan.model import HostInput, Input, Json, Step, StepInput
from mepof.profile.quality import Quality
from mepof.spec.kernel_build import KernelBuild
from mepof.steps import kernel_build

from .room import BUILD, ORIGIN, FakeDevice, Room, describe

BASE: dict[str, Json] = {"arch": "x86-64", "config": ["slim"], "toolchain": "clang", "options": []}


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> list[BuildSpec]:
    """The builds of which the objects are kept."""
    specs: list[BuildSpec] = []
    monkeypatch.setattr(kbuild, "keep", lambda spec, toolchain, paths: specs.append(spec))
    return specs


def built(
    room: Room, monkeypatch: pytest.MonkeyPatch, params: Mapping[str, Json], **inputs: Path
) -> BuildSpec:
    """The specification that a kernel-build step passes to the builder."""
    specs: list[BuildSpec] = []

    def build(spec: BuildSpec, tools: object, paths: BuildPaths, *rest: Any) -> None:
        specs.append(spec)
        (paths.output / "config").touch()

    monkeypatch.setattr(kbuild, "build", build)
    context = room.context("kernel-build", {**BASE, **params}, source=room.root, **inputs)
    kernel_build.BODY.run(context)
    return specs[0]


def test_a_plain_build_has_nothing_added(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None, kept: list[BuildSpec]
) -> None:
    spec = built(room, monkeypatch, {"uses": []})
    assert (spec.cflags, spec.config_lines, spec.overlays) == ((), (), ())
    assert kept == [spec]
    assert (spec.profiles, spec.selected, spec.same_as) == ({}, (), None)
    assert spec.fragments[0].name == "slim.config"


def test_what_is_installed_with_a_kernel_is_kept_only_where_it_is_packaged(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    asked: list[Path] = []

    def keep(spec: BuildSpec, tools: object, paths: BuildPaths, cores: int) -> str:
        asked.append(paths.output)
        return "a library is missing"

    monkeypatch.setattr(installed, "keep", keep)
    built(room, monkeypatch, {"uses": []})
    assert asked == []
    built(room, monkeypatch, {"uses": [], "installed": True})
    assert len(asked) == 1
    (note,) = (event for event in room.events if isinstance(event, StepNote))
    assert note.text == "no headers for other modules: a library is missing"


@pytest.mark.parametrize(
    ("params", "overlays"),
    [
        ({"config": ["slim", "kload"]}, ("kload",)),
        ({"arch": "um"}, ("um",)),
        ({"arch": "um", "config": ["kload"]}, ("um", "kload")),
    ],
)
def test_an_architecture_and_a_configuration_bring_their_overlays(
    room: Room,
    monkeypatch: pytest.MonkeyPatch,
    toolchain: None,
    params: dict[str, Json],
    overlays: tuple[str, ...],
) -> None:
    spec = built(room, monkeypatch, {"uses": [], **params})
    assert spec.overlays == overlays
    for name in overlays:
        assert overlay.load(name).edits


def test_options_alone_add_to_a_build_what_they_add_to_one_with_a_profile(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    spec = built(room, monkeypatch, {"uses": [], "options": ["O3", "ThinLTO"]})
    assert (spec.cflags, spec.config_lines) == (
        ("-O3",),
        ("CONFIG_CC_OPTIMIZE_FOR_PERFORMANCE=y", "CONFIG_LTO_CLANG_THIN=y"),
    )
    (dispatcher,) = spec.selected
    assert (dispatcher.objects, dispatcher.cflags) == (
        ("arch/x86/entry/syscall_64.o",),
        ("-fno-lto",),
    )
    assert spec.ldflags == options()["ThinLTO"].ldflags != ()
    assert (spec.overlays, spec.profiles, spec.same_as) == (("lto-imports",), {}, None)


def test_a_layout_seed_changes_only_the_link(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None, tools: Path
) -> None:
    spec = built(room, monkeypatch, {"uses": [], "layout_seed": 3})
    assert spec.ldflags == ("--shuffle-sections=.text*=3",)
    assert replace(spec, ldflags=()) == built(room, monkeypatch, {"uses": []})
    flags = [identity({"uses": [], **more})["flags"] for more in ({}, {"layout_seed": 3})]
    assert flags[0] != flags[1]
    assert identity({"uses": [], "layout_seed": 4})["flags"] not in flags


def test_a_layout_seed_is_a_linker_script_where_the_compiler_links(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None, tools: Path
) -> None:
    spec = built(room, monkeypatch, {"uses": [], "arch": "um", "layout_seed": 3})
    assert spec.ldflags == ()
    assert spec.link_order.startswith("SECTIONS")
    assert replace(spec, link_order="") == built(room, monkeypatch, {"uses": [], "arch": "um"})


def test_options_and_instrumentation_add_to_a_build(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    config = room.root / "my.config"
    config.write_text("# base: allnoconfig\n")
    spec = built(
        room,
        monkeypatch,
        {
            "uses": [],
            "instrumented": {"algorithm": "pgo"},
            "options": ["O3", "ThinLTO"],
            "config": ["slim", None],
        },
        config__1=config,
    )
    assert spec.cflags[:2] == ("-O3", "-Xclang")
    assert "CONFIG_LTO_CLANG_THIN=y" in spec.config_lines
    assert spec.overlays == ("migration-apart", "rcu-apart", "entry-apart", "lto-imports", "pgo")
    assert spec.fragments[-1] == config
    (dispatcher,) = (each for each in spec.selected if "-fno-lto" in each.cflags)
    assert dispatcher.objects == ("arch/x86/entry/syscall_64.o",)


def test_the_path_of_an_external_profile_may_contain_blanks(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    profile = room.root / "a profile.prof data"
    profile.write_text("profile")
    params: dict[str, Json] = {"uses": ["pgo"], "options": ["ColdSmall"]}
    spec = built(room, monkeypatch, params, profile=profile)
    (flags,) = spec.selected
    assert f"-fprofile-use={PROFILES}/kernel.profdata" in flags.cflags
    used = spec.profiles["kernel.profdata"]
    assert " " not in used.name
    assert used.read_text() == "profile"


COUNTS = """:ir
../init/a.c;hidden
# Counter Values:
0
3

start
# Counter Values:
0

stop
# Counter Values:
0
7

"""


PGO: dict[str, Json] = {"uses": ["pgo"], "toolchain": f"clang{SUFFIX}"}


def counts(room: Room, *executed: str) -> Path:
    """A profile of pgo: described if it is known in which objects something ran."""
    profile = room.directory("profile", **{"kernel.profdata": COUNTS})
    if executed:
        describe(profile, "pgo", Quality(3, 2, 66.0, "good"), ORIGIN, executed)
    return profile


def test_functions_that_never_ran_leave_the_profile(
    room: Room, monkeypatch: pytest.MonkeyPatch, tools: Path
) -> None:
    profile = counts(room)
    spec = built(room, monkeypatch, PGO, profile=profile)
    executed = spec.profiles["kernel.profdata"].read_text()
    assert "stop" in executed and "start" not in executed
    (flags,) = spec.selected
    assert flags.names() == ("%",)  # which files they are in is unknown
    small = built(room, monkeypatch, {**PGO, "options": ["ColdSmall"]}, profile=profile)
    assert small.profiles["kernel.profdata"].read_text() == COUNTS


def test_the_flags_of_an_algorithm_can_be_used_without_its_profile(
    room: Room, monkeypatch: pytest.MonkeyPatch, tools: Path
) -> None:
    profile = counts(room)
    whole = built(room, monkeypatch, PGO, profile=profile)
    spec = built(room, monkeypatch, {**PGO, "options": ["FlagsOnly"]}, profile=profile)
    (flags,), (others,) = whole.selected, spec.selected
    used = f"-fprofile-use={PROFILES}/kernel.profdata"
    assert others.cflags == tuple(flag for flag in flags.cflags if flag != used) != flags.cflags
    assert (spec.profiles, spec.overlays) == ({}, whole.overlays)


def test_files_in_which_nothing_ran_are_compiled_as_without_a_profile(
    room: Room, monkeypatch: pytest.MonkeyPatch, tools: Path
) -> None:
    profile = counts(room, "init/a.o")
    (profile / "older").mkdir()  # a directory of the user's may have anything
    (flags,) = built(room, monkeypatch, PGO, profile=profile).selected
    assert flags.names() == ["init/a.o"]
    params: dict[str, Json] = {**PGO, "options": ["ColdSmall"]}
    (flags,) = built(room, monkeypatch, params, profile=profile).selected
    assert flags.names() == ("%",)


@pytest.mark.parametrize(("source", "notes"), [("another", 1), (None, 0)])
def test_files_that_are_gone_with_what_ran_in_them_are_noted(
    room: Room, monkeypatch: pytest.MonkeyPatch, tools: Path, source: str | None, notes: int
) -> None:
    profile = counts(room)
    (room.root / "init").mkdir()
    (room.root / "init/a.c").touch()
    origin = ORIGIN.model_copy(update={"source": source or room.root.name})
    ran = ("init/a.o", "mm/swap.o", "tools/objtool/librbtree.o")
    describe(profile, "pgo", Quality(3, 2, 66.0, "good"), origin, ran)
    built(room, monkeypatch, PGO, profile=profile)
    told = [each.text for each in room.events if isinstance(each, StepNote)]
    gone = [text for text in told if "built without the profile: mm/swap.c" in text]
    assert len(gone) == notes == sum("not in this tree" in text for text in told)


def test_options_about_a_profile_are_for_the_files_in_which_something_ran(
    room: Room, monkeypatch: pytest.MonkeyPatch, tools: Path
) -> None:
    profile = counts(room, "init/a.o")
    params: dict[str, Json] = {**PGO, "options": ["O3", "NoPGSO"]}
    spec = built(room, monkeypatch, params, profile=profile)
    _, option = spec.selected
    assert (spec.cflags, option.names()) == (("-O3",), ["init/a.o"])
    assert "-pgso=false" in option.cflags
    assert built(room, monkeypatch, {**params, "uses": []}).selected == ()


def test_only_what_a_scout_saw_running_is_instrumented(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    scouted = room.directory("scouted")
    (scouted / EXECUTED_OBJECTS).write_text("init/a.o\n")
    whole = built(room, monkeypatch, {"instrumented": {"algorithm": "pgo"}})
    params: dict[str, Json] = {"instrumented": {"algorithm": "pgo"}, "exclude": []}
    spec = built(room, monkeypatch, params, instrumented__scouted=scouted)
    (flags,) = spec.selected
    assert flags.names() == ["init/a.o"]
    assert flags.cflags == whole.cflags
    assert replace(spec, selected=(), cflags=whole.cflags) == whole
    # The build says which of its files a profile can know.
    kept = room.root / "kernel-build-output" / EXECUTED_OBJECTS
    assert kept.read_text() == "init/a.o\n"
    kept.unlink()
    # Nobody knows what ran: everything may have.
    unknown = room.directory("unknown")
    spec = built(room, monkeypatch, params, instrumented__scouted=unknown)
    (flags,) = spec.selected
    assert flags.names() == ("%",)
    assert not kept.exists()


def selection(directory: Path, count: int) -> Path:
    """What may be instrumented of a plain kernel whose image has 10,000 bytes."""
    objects = (SelectedObject(name=f"kernel/{n}.o", text=1000, weight=50 - n) for n in range(count))
    made = Selection(objects=tuple(objects), files=50, text=50_000, weight=9000, plain_image=10_000)
    made.write(directory)
    made.write_names(directory / EXECUTED_OBJECTS)
    return directory


@pytest.mark.parametrize(("limit", "count"), [(None, 20), (15_000, 20), (11_050, 10)])
def test_as_much_is_instrumented_as_the_image_has_room_for(
    room: Room,
    monkeypatch: pytest.MonkeyPatch,
    toolchain: None,
    limit: int | None,
    count: int,
) -> None:
    builds: list[list[str]] = []

    def build(spec: BuildSpec, tools: object, paths: BuildPaths, *rest: Any) -> None:
        (flags,) = spec.selected
        builds.append(list(flags.names()))
        (paths.output / "config").touch()
        size = BuildSize(text=9, image=10_000 + 100 * len(builds[-1]))
        BUILD.model_copy(update={"size_bytes": size}).write(paths.output)

    monkeypatch.setattr(kbuild, "build", build)
    instrumented: dict[str, Json] = {"algorithm": "pgo", "image_bytes": limit}
    context = room.context(
        "kernel-build",
        {**BASE, "instrumented": instrumented},
        source=room.root,
        instrumented__scouted=selection(room.directory("selected"), 20),
    )
    kernel_build.BODY.run(context)
    found = Selection.read(context.output)
    names = [each.name for each in found.objects]
    assert names == [f"kernel/{n}.o" for n in range(count)]
    assert (found.image, found.limit) == (10_000 + 100 * count, limit)
    # The kernel that is kept, and what profiles are told of it.
    assert builds[-1] == sorted(names)
    assert (context.output / EXECUTED_OBJECTS).read_text().split() == sorted(names)
    assert str(found) in [e.text for e in room.events if isinstance(e, StepNote)]


def test_the_list_of_a_scout_is_an_input_and_not_part_of_the_identity(tools: Path) -> None:
    step = (
        KernelBuild[Input]
        .model_validate(
            {
                **BASE,
                "source": StepInput("source"),
                "instrumented": {"algorithm": "pgo", "scouted": StepInput("executed")},
            }
        )
        .step("x")
    )
    assert step.inputs["instrumented.scouted"] == StepInput("executed")
    scouted = kernel_build.BODY.identity(step)
    assert scouted["flags"] != identity({"instrumented": {"algorithm": "pgo"}})["flags"]


def test_a_build_with_a_profile_needs_one(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    with pytest.raises(InputError, match="the build uses a profile, but none is given"):
        built(room, monkeypatch, {"uses": ["pgo"]})
    with pytest.raises(InputError, match=r"does not contain kernel\.afdo"):
        built(room, monkeypatch, {"uses": ["autofdo"]}, profile=room.directory("empty"))


def profile_of_a_stack(room: Room, source: str) -> Path:
    """A profile of autofdo+propeller, of a build of this source."""
    given = room.directory("profile")
    for name in ("kernel.afdo", "kernel.cc_profile", "kernel.ld_profile"):
        (given / name).write_text("start:9:1\n 1: 9\n")
    (given / "kernel.hot_objects").write_text("kernel/b.o\n")
    origin = ORIGIN.model_copy(update={"source": source})
    describe(given, "autofdo+propeller", Quality(9, 9, 100.0, "good"), origin)
    return given


def test_a_stack_uses_all_its_profiles_and_fits_only_the_profiled_build(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    given = profile_of_a_stack(room, room.root.name)
    spec = built(room, monkeypatch, {"uses": ["autofdo", "propeller"]}, profile=given)
    assert spec.overlays == (
        *("migration-apart", "rcu-apart", "entry-apart"),
        *("text-sections", "objtool-cold", "objtool-warn", "objtool-weak", "propeller"),
    )
    assert set(spec.profiles) == {"kernel.afdo", "kernel.cc_profile", "kernel.ld_profile"}
    assert [list(each.names()) for each in spec.selected] == [["%"], ["%"], ["kernel/b.o"]]
    samples, *layout = spec.selected
    assert not samples.layout and all(each.layout for each in layout)
    assert spec.same_as is not None and spec.same_as.source == room.root.name


def test_a_layout_profile_of_an_unknown_build_is_refused(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    given = profile_of_a_stack(room, room.root.name)
    (given / "profile.json").unlink()
    for uses in (["propeller"], ["autofdo", "propeller"]):
        with pytest.raises(
            InputError, match=r"the build that the .* profile belongs to is unknown"
        ) as caught:
            built(room, monkeypatch, {"uses": [*uses]}, profile=given)
        assert "+".join(uses) in caught.value.message
    with pytest.raises(InputError, match="is only part of the profile"):
        built(room, monkeypatch, {"uses": ["propeller"]}, profile=given / "kernel.cc_profile")


def test_the_build_profiled_for_a_layout_uses_only_the_profile_below(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    given = profile_of_a_stack(room, room.root.name)
    params: dict[str, Json] = {"uses": ["autofdo"], "instrumented": {"algorithm": "propeller"}}
    profiled = built(room, monkeypatch, params, profile=given)
    used = built(room, monkeypatch, {"uses": ["autofdo", "propeller"]}, profile=given)
    assert profiled.same_as is None
    # Files without hot code are the same in both.
    assert profiled.selected == used.selected[:2]
    assert not any("symbol-ordering" in flag for flag in profiled.ldflags)
    # Everything that the profile of a layout depends on is the same.
    assert profiled.cflags == used.cflags
    assert profiled.variables == used.variables
    assert (profiled.overlays, profiled.config_lines) == (used.overlays, used.config_lines)


@pytest.mark.parametrize("same", [True, False])
def test_a_profile_of_another_source_is_matched_by_the_compiler(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None, same: bool
) -> None:
    given = profile_of_a_stack(room, room.root.name if same else "another")
    spec = built(room, monkeypatch, {"uses": ["autofdo"]}, profile=given)
    (selected,) = spec.selected
    assert ("-salvage-stale-profile" in selected.cflags) == (not same)
    params: dict[str, Json] = {"uses": ["autofdo"], "other_kernel": True}
    (selected,) = built(room, monkeypatch, params, profile=given).selected
    assert "-salvage-stale-profile" in selected.cflags


def identity(params: Mapping[str, Json]) -> Mapping[str, str]:
    inputs: dict[str, Input] = {"source": StepInput("source")}
    if params.get("uses"):
        inputs["profile"] = StepInput("profile")
    if "boot" in params:
        inputs["boot.guest"] = StepInput("guest")
    return kernel_build.BODY.identity(Step("x/build", "kernel-build", {**BASE, **params}, inputs))


@pytest.mark.parametrize(
    ("params", "first"),
    [
        ({"uses": []}, True),
        ({"uses": ["pgo"]}, False),
        ({"instrumented": {"algorithm": "pgo"}}, False),
    ],
)
def test_kernels_that_leave_objects_to_others_are_built_first(
    params: Mapping[str, Json], first: bool
) -> None:
    inputs: dict[str, Input] = {"source": StepInput("source"), "profile": StepInput("profile")}
    step = Step("x/build", "kernel-build", {**BASE, **params}, inputs)
    assert kernel_build.BODY.resources(step).first == first


def test_everything_that_an_algorithm_adds_is_part_of_the_identity(
    monkeypatch: pytest.MonkeyPatch, tools: Path
) -> None:
    used = identity({"uses": ["autofdo"]})
    assert identity({"uses": ["autofdo"]}) == used
    assert identity({"uses": []})["flags"] != used["flags"]
    stacked = identity({"uses": ["autofdo", "propeller"]})
    profiled = identity({"uses": ["autofdo"], "instrumented": {"algorithm": "propeller"}})
    assert len({each["flags"] for each in (used, stacked, profiled)}) == 3
    assert stacked["overlays"] == profiled["overlays"] != used["overlays"]


def test_the_device_that_boots_a_kernel_is_part_of_the_identity(
    tools: Path, device: FakeDevice
) -> None:
    booted = identity({"uses": ["pgo"], "boot": {"device": "qemu", "seed": 1}})
    assert booted["qemu"] == "fake"
    assert booted["self-check"]
    assert "qemu" not in identity({"uses": ["pgo"]})


def test_exclusions_are_neither_instrumented_nor_built_with_the_profile(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    monkeypatch.setattr(kernel_build, "functions_in", lambda build: {"kernel/b.o": []})
    write_tree(room.root)
    profile = room.root / "my.profdata"
    profile.write_text("profile")
    given: dict[str, Json] = {"exclude": ["init/", "kernel/b.c"]}
    spec = built(room, monkeypatch, {**given, "instrumented": {"algorithm": "pgo"}})
    assert "-fprofile-instrument=llvm" in spec.cflags
    assert spec.selected == (
        FileFlags(("init/%", "kernel/b.o"), ("-Xclang", "-fprofile-instrument=none")),
    )
    whole: dict[str, Json] = {"uses": ["pgo"], "options": ["ColdSmall"]}
    spec = built(room, monkeypatch, {**given, **whole}, profile=profile)
    _, excluded = spec.selected
    assert excluded == FileFlags(("init/%", "kernel/b.o"), ("-fno-profile-use",))
    notes = [event.text for event in room.events if isinstance(event, StepNote)]
    assert notes == ["excluded, but not compiled in this configuration: init/"] * 2
    with pytest.raises(InputError, match=r"the exclusion `kernel/c\.o` matches no C file"):
        built(room, monkeypatch, {"exclude": ["kernel/c.o"], "instrumented": {"algorithm": "pgo"}})


@pytest.mark.parametrize("automatic", [True, False])
def test_a_release_to_which_git_would_add_is_noted(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None, automatic: bool
) -> None:
    def build(spec: BuildSpec, tools: object, paths: BuildPaths, *rest: Any) -> None:
        text = (
            "CONFIG_LOCALVERSION_AUTO=y" if automatic else "# CONFIG_LOCALVERSION_AUTO is not set"
        )
        (paths.output / "config").write_text(f'CONFIG_LOCALVERSION="-sku7"\n{text}\n')
        (paths.output / "vmlinux").write_bytes(b"\0Linux version 6.12.117-sku7 (someone) #1\n\0")

    monkeypatch.setattr(kbuild, "build", build)
    kernel_build.BODY.run(room.context("kernel-build", BASE, source=room.root))
    notes = [event.text for event in room.events if isinstance(event, StepNote)]
    assert len(notes) == automatic
    for note in notes:
        assert note.startswith(
            "the release is 6.12.117-sku7: CONFIG_LOCALVERSION_AUTO finds no git"
        )
        assert note.endswith("put the whole suffix into CONFIG_LOCALVERSION")


def test_exclusions_are_part_of_the_identity_only_where_there_are_some(tools: Path) -> None:
    instrumented: dict[str, Json] = {"instrumented": {"algorithm": "pgo"}}
    plain = identity(instrumented)["flags"]
    assert identity({**instrumented, "exclude": []})["flags"] == plain
    assert identity({**instrumented, "exclude": ["mm/"]})["flags"] != plain


def profile_of_a_rewriting(room: Room, origin: Origin) -> Path:
    """A profile of bolt, of a build."""
    given = room.directory("counts")
    (given / "kernel.fdata").write_text("1 start 2 1 start 4 0 7\n")
    describe(given, "bolt", Quality(9, 9, 100.0, "good"), origin)
    return given


def test_the_build_with_the_profile_is_rewritten_and_the_profiled_one_can_be(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    origin = ORIGIN.model_copy(update={"source": room.root.name})
    given = profile_of_a_rewriting(room, origin)
    used = built(room, monkeypatch, {"uses": ["bolt"]}, profile=given)
    profiled = built(room, monkeypatch, {"instrumented": {"algorithm": "bolt"}})
    assert used.rewriting is not None and profiled.rewriting is not None
    assert used.rewriting.counts is not None
    assert used.rewriting.counts.read_text() == (given / "kernel.fdata").read_text()
    assert profiled.rewriting.counts is None
    assert (used.overlays, used.cflags) == (profiled.overlays, profiled.cflags)
    assert used.same_as is not None


def test_what_rewrites_a_kernel_is_part_of_the_identity(
    monkeypatch: pytest.MonkeyPatch, tools: Path
) -> None:
    used = identity({"uses": ["bolt"]})
    assert used["rewriter"].startswith("LLVM version")
    assert "rewriter" not in identity({"instrumented": {"algorithm": "bolt"}})
    monkeypatch.setattr(rewriting, "OPTIONS", ("--other",))
    assert identity({"uses": ["bolt"]})["flags"] != used["flags"]


@pytest.mark.parametrize("params", [{"uses": ["bolt"]}, {"instrumented": {"algorithm": "bolt"}}])
def test_a_configuration_that_cannot_be_rewritten_is_refused_before_anything_is_built(
    tmp_path: Path, tools: Path, params: dict[str, Json]
) -> None:
    def check(*config: str | None) -> None:
        asked: dict[str, Json] = {**BASE, "config": [*config], **params}
        inputs: dict[str, Input] = {"source": StepInput("source"), "config.1": HostInput(str(own))}
        if "uses" in params:
            inputs["profile"] = StepInput("profile")
        if None not in config:
            del inputs["config.1"]
        kernel_build.BODY.check(Step("x/build", "kernel-build", asked, inputs))

    own = tmp_path / "own.config"
    own.write_text("# CONFIG_RELOCATABLE is not set\n# CONFIG_EFI_STUB is not set\n")
    check("slim")
    with pytest.raises(InputError, match="CONFIG_RELOCATABLE"):
        check("server")
    check("server", None)

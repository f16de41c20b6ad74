"""A profile of an optimised kernel, in the inlining that an earlier profile has.

The compiler inlines what was inlined in the recorded kernel when it reads a profile, before it
simplifies anything. What it does so for code that it had inlined itself, later and simplified, is
worse code; and each round of a loop would nest deeper. So a copy that the earlier profile has as a
function of its own becomes one again, and the compiler decides once more.

Optimised code also lacks lines: their instructions were folded into others. Such a line is unknown,
not zero. It keeps the share of its function's counts that it had.
"""

from __future__ import annotations

from mepof.profile.sample_tree import Function, Line, order


def reinlined(
    new: dict[str, Function], old: dict[str, Function], *, same_source: bool
) -> dict[str, Function]:
    """The new profile in the inlining of the old one, with the lines that it lacks.

    Args:
        new: is changed.
        same_source: both are of one source. Otherwise lines cannot be compared: a callee stays
            inlined if the old profile has it inlined anywhere in the caller, and no line is added.
    """
    outlined: list[tuple[str, Function]] = []
    for name, function in new.items():
        _split(function, old.get(name), old, same_source, outlined)
    for name, copy in outlined:
        if name in new:
            _add(new[name], copy)
        else:
            new[name] = copy
    if same_source:
        for name, function in new.items():
            _complete(function, old.get(name), old)
    return new


def _split(
    function: Function,
    model: Function | None,
    old: dict[str, Function],
    same_source: bool,
    outlined: list[tuple[str, Function]],
) -> int:
    """Move the copies in a function that are functions of their own in the old profile to
    ``outlined``; returns by how much that makes its total smaller."""
    removed = 0
    names = set() if model is None else {name for _, name in model.inlined}
    for site, copy in list(function.inlined.items()):
        location, name = site
        inlined = None if model is None else model.inlined.get(site)
        stays = model is None or name not in old or (not same_source and name in names)
        if inlined is not None or stays:
            removed += _split(copy, inlined or old.get(name), old, same_source, outlined)
            continue
        del function.inlined[site]
        removed += copy.total
        copy.head = entries(copy)
        line = function.lines.setdefault(location, Line(0))
        line.targets[name] = line.targets.get(name, 0) + copy.head
        line.count = max(line.count, sum(line.targets.values()))
        _split(copy, old[name], old, same_source, outlined)
        outlined.append((name, copy))
    # A call has few bytes of its own; a function whose lines ran must not look as if it did not.
    counted = sum(line.count for line in function.lines.values())
    counted += sum(copy.total for copy in function.inlined.values())
    before = function.total
    function.total = max(function.total - removed, counted if removed else 0)
    return before - function.total


def entries(copy: Function) -> int:
    """How often a copy was entered: the count of its first line, or of what was inlined there.

    Source: LLVM 22, llvm/include/llvm/ProfileData/SampleProf.h, ``getHeadSamplesEstimate``.
    """
    line = min(copy.lines, key=order, default=None)
    site = min((location for location, _ in copy.inlined), key=order, default=None)
    if site is not None and (line is None or order(site) < order(line)):
        return sum(entries(each) for (at, _), each in copy.inlined.items() if at == site)
    return 0 if line is None else copy.lines[line].count


def _add(function: Function, other: Function) -> None:
    """Add another copy of the same function."""
    function.total += other.total
    function.head += other.head
    for location, line in other.lines.items():
        mine = function.lines.setdefault(location, Line(0))
        mine.count += line.count
        for name, count in line.targets.items():
            mine.targets[name] = mine.targets.get(name, 0) + count
    for site, copy in other.inlined.items():
        if site in function.inlined:
            _add(function.inlined[site], copy)
        else:
            function.inlined[site] = copy
    function.notes = function.notes or other.notes


def _complete(function: Function, model: Function | None, old: dict[str, Function]) -> int:
    """Add the lines that only the old profile has, scaled by those that both have; returns by how
    much that makes the total of the function larger."""
    if model is not None and model.checksum != function.checksum:
        model = None  # its control flow has changed
    added = 0
    for site, copy in function.inlined.items():
        known = None if model is None else model.inlined.get(site)
        added += _complete(copy, known or old.get(site[1]), old)
    if model is not None:
        both = function.lines.keys() & model.lines.keys()
        mine = sum(function.lines[location].count for location in both)
        theirs = sum(model.lines[location].count for location in both)
        if mine and theirs:
            for location, line in model.lines.items():
                if location not in function.lines and line.count:
                    function.lines[location] = Line(line.count * mine // theirs)
            for site, copy in model.inlined.items():
                line_here = function.lines.get(site[0])
                called = line_here is not None and line_here.targets
                if site not in function.inlined and not called and copy.total:
                    function.inlined[site] = scaled(copy, mine, theirs)
                    added += function.inlined[site].total
    function.total += added
    return added


def scaled(function: Function, by: int, of: int) -> Function:
    """A function with its counts multiplied by ``by`` / ``of`` and rounded down. A count that
    becomes zero is left out: zero would say that the line did not run."""
    lines = {}
    for location, line in function.lines.items():
        count = line.count * by // of
        if count or not line.count:
            targets = {name: calls * by // of for name, calls in line.targets.items()}
            lines[location] = Line(count, {name: calls for name, calls in targets.items() if calls})
    inlined = {
        site: scaled(copy, by, of)
        for site, copy in function.inlined.items()
        if copy.total * by // of or not copy.total
    }
    head, total = function.head * by // of, function.total * by // of
    return Function(total, head, lines, inlined, function.notes)

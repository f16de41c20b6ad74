"""Files that people write: TOML, read into frozen models in which every key is known.

What is wrong is reported with its file and line, and an unknown key with the nearest known one.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, RootModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from mepof.errors import InputError
from mepof.toml_lines import Location, lines_of

Model = TypeVar("Model", bound=BaseModel)

# By the names of pydantic's errors, whose messages are about JSON.
_TYPES = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "an array",
    "dict_type": "a table",
    "model_type": "a table",
}
# How pydantic begins most of its complaints: "Input should", "String should".
_SHOULD = re.compile(r"^[A-Z][a-z]* should ")


def matching(pattern: str, must: str) -> AfterValidator:
    """Check that a text matches a pattern, and say in words what it takes.

    Args:
        pattern: of the whole text.
        must: what follows "must" in the message, or "should" in that of :func:`first_error`.
    """
    whole = re.compile(pattern, re.S)

    def check(text: str) -> str:
        if not whole.fullmatch(text):
            raise PydanticCustomError("matching", "Text should {must}", {"must": must})
        return text

    return AfterValidator(check)


#: A name that programs or result lines contain.
Word = Annotated[
    str,
    matching(
        r"[a-z0-9][a-z0-9_-]*",
        "consist of lower case letters, digits, `-` and `_`, and begin with a letter or digit",
    ),
]


class Described(BaseModel):
    """A file that people write, or a table of one.

    Attributes:
        unoffered: keys that messages do not suggest, because they are of no use there.
    """

    unoffered: ClassVar[frozenset[str]] = frozenset()

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Named(Described):
    """A file whose stem is the name of what it describes.

    Attributes:
        name: the file's stem, which is not a key of the file.
    """

    name: str


class WrongAt(ValueError):
    """What is wrong inside of the value that a validator of a model has; for validators of models.

    Args:
        location: keys and indices, from that value.
    """

    def __init__(self, message: str, location: Location) -> None:
        super().__init__(message)
        self.location = location


def check_distinct(names: Iterable[str]) -> None:
    """Check that no two entries of a list have the same name; for validators of models.

    Raises:
        ValueError: two have.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"`{name}` occurs twice")
        seen.add(name)


def check_known(name: str, known: Collection[str], what: str) -> str:
    """Check that a name is known; for validators of models.

    Args:
        what: the kind of name, for messages.

    Returns:
        The name.

    Raises:
        ValueError: it is not; the nearest one is suggested.
    """
    if name not in known:
        raise ValueError(f"unknown {what} `{name}`; {nearest(name, known)}")
    return name


def refuse_special(path: Path) -> None:
    """Refuse what is neither a file nor a directory: a pipe can be read once, and some devices
    without end.

    Raises:
        InputError: it is such.
        OSError: it cannot be looked at.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(
            f"{path} is neither a file nor a directory",
            "copy what it gives to a file, and name that",
        )


def read_described(
    path: Path,
    model: type[Model],
    what: str,
    given: Mapping[str, str] | None = None,
    remedy: str | None = None,
) -> Model:
    """Read a file that people write.

    Args:
        model: its fields, or their aliases, are the keys of the file.
        what: the kind of thing, for messages, such as ``core``.
        given: values of fields that are not in the file, such as its name.
        remedy: for a file that cannot be read.

    Raises:
        InputError: it cannot be read, is a pipe or a device, is not TOML, or does not fit the
            model.
    """
    try:
        return _read(path, model, what, given or {}, remedy)
    except RecursionError as error:
        raise InputError(f"the {what} {path} is nested too deeply") from error


def _read(
    path: Path, model: type[Model], what: str, given: Mapping[str, str], remedy: str | None
) -> Model:
    try:
        refuse_special(path)
        text = path.read_bytes().decode("utf-8-sig")  # some editors write a byte order mark
        written = tomllib.loads(text)
    except OSError as error:
        raise InputError(f"cannot read the {what} {path}: {error.strerror}", remedy) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(f"{path}:{line}: the {what} is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"the {what} {path} is not TOML: {error}") from error
    except ValueError as error:  # Python's limit, against hostile texts
        raise InputError(f"the {what} {path} has a number of too many digits") from error
    errors: list[tuple[Location, ErrorDetails]] = []
    try:
        # By way of JSON, for which pydantic's strict mode accepts an array as a tuple. It has no
        # dates, and no key takes one.
        described = model.model_validate_json(
            json.dumps({**written, **given}, default=lambda date: {}), strict=True
        )
    except ValidationError as error:
        errors = [(_location(d, written), d) for d in error.errors(include_url=False)]
        if any("recursion limit" in detail["msg"] for _, detail in errors):
            raise RecursionError from error
    unknown = [location for location, detail in errors if detail["type"] == "extra_forbidden"]
    unknown += [location for location, detail in errors if detail["loc"][-1:] == ("[key]",)]
    unknown += [(key,) for key in given if key in written]
    if not errors and not unknown:
        return described
    lines = lines_of(text)
    if unknown:
        first = min(unknown, key=lambda location: _line(lines, location))
        known = _keys(model, first[:-1])
        if len(first) == 1:
            known -= given.keys()
        raise InputError(
            f"{path}:{_line(lines, first)}: unknown key `{first[-1]}`",
            nearest(str(first[-1]), known),
        )
    # Of the alternatives of a type, the one that fits best complains about what is inside.
    location, wrong = min(errors, key=lambda each: (_line(lines, each[0]), -len(each[0])))
    raise InputError(
        f"{path}:{_line(lines, location)}: {_complaint(location, wrong, what)}",
        _array(location, wrong),
    )


def _location(detail: ErrorDetails, written: object) -> Location:
    """Where an error is, without pydantic's names of the alternatives of a type."""
    location: list[str | int] = []
    for key in detail["loc"]:
        if isinstance(written, list):
            within: Mapping[object, object] = dict(enumerate(written))
        else:
            within = written if isinstance(written, dict) else {}
        if key in within or detail["type"] == "missing":
            location.append(key)
            written = within.get(key)
    cause = detail.get("ctx", {}).get("error")
    return (*location, *(cause.location if isinstance(cause, WrongAt) else ()))


def _line(lines: Mapping[Location, int], location: Location) -> int:
    """The line of a value; of a missing one, that of the table which it is missing from."""
    while location not in lines and location:
        location = location[:-1]
    return lines.get(location, 1)


def nearest(name: str, known: Collection[str]) -> str:
    """A question for the nearest known name, or the list of all."""
    near = get_close_matches(name, known, n=1)
    return f"did you mean `{near[0]}`?" if near else "known: " + ", ".join(sorted(known))


def _complaint(location: Location, detail: ErrorDetails, what: str) -> str:
    """One sentence about a wrong value."""
    *above, last = location or ("",)
    if detail["type"] == "missing":
        return f"`{last}` is missing from {_named(above) or f'the {what}'}"
    name = _named(location) or f"the {what}"
    if detail["type"] in _TYPES:
        return f"{name} must be {_TYPES[detail['type']]}"
    must = _SHOULD.sub("must ", detail["msg"])
    if must != detail["msg"]:
        return f"{name} {must}"
    return f"{name}: {_own_words(must)}"


def _array(location: Location, detail: ErrorDetails) -> str | None:
    """How an array is written whose only entry was."""
    if detail["type"] != "tuple_type" or not all(isinstance(key, str) for key in location):
        return None
    match detail["input"]:
        case dict():
            return f"begin each with `[[{'.'.join(map(str, location))}]]`"
        case str() as text:
            return f"write `[{json.dumps(text, ensure_ascii=False)}]`"
    return None


def _own_words(message: str) -> str:
    """A message of a validator of ours as that wrote it."""
    return message.removeprefix("Value error, ")


def _named(location: Sequence[str | int]) -> str:
    dotted = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in location)
    return f"`{dotted.removeprefix('.')}`" if dotted else ""


def _keys(model: object, location: Location) -> set[str]:
    """The keys of the table at a location of a model, as far as they are known."""
    for key in location:
        model = _inside(model, key)
    return set(_known(model))


def _known(model: object) -> Iterator[str]:
    """The keys of a table, whose type may be optional."""
    if isinstance(model, type) and issubclass(model, RootModel):
        yield from _known(model.model_fields["root"].annotation)
    elif isinstance(model, type) and issubclass(model, BaseModel):
        unoffered = model.unoffered if issubclass(model, Described) else ()
        yield from (key for key in _fields(model) if key not in unoffered)
    elif get_origin(model) in (dict, Mapping):
        names = get_args(model)[0]
        yield from get_args(names) if get_origin(names) is Literal else ()
    else:
        for alternative in get_args(model):
            yield from _known(alternative)


def _inside(model: object, key: str | int) -> object:
    """The type of the value that a key leads to; None if that is not known."""
    arguments = get_args(model)
    if isinstance(model, type) and issubclass(model, RootModel):
        return _inside(model.model_fields["root"].annotation, key)
    if isinstance(model, type) and issubclass(model, BaseModel):
        return _fields(model).get(str(key))
    if get_origin(model) in (dict, Mapping):
        return arguments[1]
    if get_origin(model) is tuple:
        return arguments[0]
    alternatives = (_inside(each, key) for each in arguments)
    return next((found for found in alternatives if found is not None), None)


def _fields(table: type[BaseModel]) -> dict[str, object]:
    return {field.alias or name: field.annotation for name, field in table.model_fields.items()}


def first_error(error: ValidationError) -> str:
    """The first complaint of a validation in one line: where, and what."""
    detail = error.errors(include_url=False)[0]
    where = ".".join(map(str, detail["loc"]))
    message = _own_words(detail["msg"])
    return f"{where}: {message}" if where else message

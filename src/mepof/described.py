"""Descriptions: TOML files that are checked against a model."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from mepof.errors import InputError

Model = TypeVar("Model", bound=BaseModel)


def read_described(path: Path, model: type[Model], what: str) -> Model:
    """What a file describes.

    Args:
        what: that is, for messages, such as ``core``.

    Raises:
        InputError: it cannot be read, or describes no such thing.
    """
    try:
        return model.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no TOML file: {error}") from error
    except ValidationError as error:
        raise InputError(f"{path} describes no {what}: {first_error(error)}") from error


def first_error(error: ValidationError) -> str:
    """The first complaint of a validation in one line: where, and what."""
    detail = error.errors(include_url=False)[0]
    where = ".".join(map(str, detail["loc"]))
    return f"{where}: {detail['msg']}" if where else str(detail["msg"])

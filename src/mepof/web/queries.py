"""What follows the ``?`` of an address: text and numbers within bounds, whatever is given."""

from __future__ import annotations

from starlette.requests import Request

_MAX_TEXT = 200


def text_in(request: Request, name: str, otherwise: str = "") -> str:
    """A text, without blanks around it, cut at 200 characters."""
    return request.query_params.get(name, otherwise).strip()[:_MAX_TEXT]


def number_in(request: Request, name: str, otherwise: int) -> int:
    """A number that is not negative; another text gives ``otherwise``."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else otherwise

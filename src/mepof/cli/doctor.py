"""placeholder until doctor lands"""


def doctor(as_json: bool = False) -> None:
    """Check this machine."""

"""Files of Kconfig lines, merged."""

from __future__ import annotations

from pathlib import Path

from mepof.kernel import kconfig


def merged(tmp_path: Path, *texts: str, extra: tuple[str, ...] = ()) -> kconfig.Fragments:
    """What fragments with these texts say together, and further lines over them."""
    paths = []
    for number, text in enumerate(texts):
        paths.append(tmp_path / f"{number}.config")
        paths[-1].write_text(text)
    return kconfig.merge(paths, extra)

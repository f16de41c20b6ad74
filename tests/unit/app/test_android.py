"""What names an app of a phone."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.app.android import AndroidApps, load_described
from mepof.errors import InputError


def described(directory: Path, package: str) -> Path:
    path = directory / "apps.toml"
    path.write_text(f'title = "x"\n[[android]]\npackage = "{package}"\n')
    return path


@pytest.mark.parametrize(
    "name", ["shop.apk", "./out/org.example.shop.apk", "org.example.aab", "a.apks", "a.b.xapk"]
)
def test_the_file_of_an_app_is_not_its_package(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"toml:3: .* must be a package, not the file") as caught:
        load_described(described(tmp_path, name))
    assert "pm list packages" in str(caught.value)


def test_a_package_may_end_like_a_file(tmp_path: Path) -> None:
    apps = load_described(described(tmp_path, "org.example.apk"))
    assert isinstance(apps, AndroidApps)
    assert apps.android[0].package == "org.example.apk"

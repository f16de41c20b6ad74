"""Apps of a phone: a file names packages, and how long each is driven (docs/android.md)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from mepof.app.apps import Action, App
from mepof.app.own import OwnApp, load_own
from mepof.described import Described, check_distinct, matching, read_described, refuse_special

_TABLE = "android"

# A package may end in `.apk` as well, if it has more than one dot.
_ARCHIVE = re.compile(r"(.*/)?[^./]+\.apk|.*\.(aab|apks|apkm|xapk)|.*/.*\.apk")


def is_archive(name: str) -> bool:
    """Whether that is the file of an app for Android, and not an installed package."""
    return _ARCHIVE.fullmatch(name) is not None


def _is_installed(package: str) -> str:
    if is_archive(package):
        raise ValueError(
            f"must be a package, not the file `{package}`: install it, and see "
            "`adb shell pm list packages`"
        )
    return package


# https://developer.android.com/build/configure-app-module#set-application-id
Package = Annotated[
    str,
    AfterValidator(_is_installed),
    matching(
        r"[A-Za-z]\w*(\.[A-Za-z]\w*)+",
        "be a package, such as `org.example.shop`, as `adb shell pm list packages` lists them",
    ),
]
Activity = Annotated[
    str,
    matching(
        r"\.?[A-Za-z][\w$]*(\.[A-Za-z_$][\w$]*)*",
        "be an activity, such as `.Main` or `org.example.shop.Main`",
    ),
]


class AndroidApp(Described):
    """An app that is installed on a phone.

    Attributes:
        activity: which is started; without it, the one that the launcher starts.
        weight: its share of the file's time, for apps without ``seconds``.
        seconds: for which it is driven.
        actions: of a run; without it, as many as the time allows, which differs from run to run.
        throttle: milliseconds after each action.
    """

    package: Package
    activity: Activity | None = None
    weight: float = Field(default=1, gt=0)
    seconds: float | None = Field(default=None, gt=0)
    actions: int | None = Field(default=None, gt=0)
    throttle: int = Field(default=300, ge=0)

    @property
    def component(self) -> str | None:
        """Package and activity as ``am`` takes them."""
        return None if self.activity is None else f"{self.package}/{self.activity}"


class AndroidApps(App):
    """A list of them, which programs name as one app.

    Attributes:
        seconds: of an app with the weight 1 that gives none.
    """

    actions: tuple[Action, ...] = ()
    android: tuple[AndroidApp, ...]
    seconds: float = Field(default=180, gt=0)

    @field_validator("android")
    @classmethod
    def _packages_are_distinct(cls, apps: tuple[AndroidApp, ...]) -> tuple[AndroidApp, ...]:
        if not apps:
            raise ValueError("lists no app")
        check_distinct(app.package for app in apps)
        return apps

    def seconds_of(self, app: AndroidApp) -> float:
        """The time for which an app is driven."""
        return self.seconds * app.weight if app.seconds is None else app.seconds


def load_described(description: Path) -> OwnApp | AndroidApps:
    """What a file of the user's describes: programs, or apps of a phone; its name is its title.

    Raises:
        InputError: the file is wrong.
    """
    try:
        refuse_special(description)
        android = _TABLE in tomllib.loads(description.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        android = False  # the reader says what is wrong
    if not android:
        return load_own(description)
    apps = read_described(description, AndroidApps, "list of apps", {"name": description.stem})
    return apps.model_copy(update={"name": apps.title})

"""Numbers and foreign text as people read them, in the report and on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

from mepof.report.model import Image, Interval, Outlier

_MINUS = "\N{MINUS SIGN}"
_NONE = "\N{EN DASH}"


def printable(text: str, keep: str = "") -> str:
    """The text with every control, bidirectional and other invisible character made visible.

    Names come from users and build logs: none may drive the terminal or reorder a line.

    Args:
        keep: characters to leave as they are, such as newlines.
    """
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text
    )


def indented(text: str) -> str:
    """The printable text with all lines but the first indented, so that none looks like ours."""
    return printable(text.rstrip("\n"), keep="\n").replace("\n", "\n    ")


def relative(reduction: float | None, less: str = "fewer", more: str = "more") -> str:
    """A change in words, such as ``10.12 % fewer``; a dash for none.

    Args:
        reduction: percent less than the baseline; negative for more.
        less: the word for a reduction.
        more: the word for an increase.
    """
    if reduction is None:
        return _NONE
    amount, word = _relative(reduction, less, more)
    return f"{amount} % {word}".rstrip()


def relative_interval(reductions: Interval | None, less: str = "fewer", more: str = "more") -> str:
    """Both ends of an interval in words, such as ``9.81 to 10.43 % fewer``; a dash for none.

    Args:
        reductions: percent less than the baseline, the lower end first.
    """
    if reductions is None:
        return _NONE
    ends = [_relative(end, less, more) for end in reductions]
    words = {word for _, word in ends if word}
    if len(words) == 2:
        (low, low_word), (high, high_word) = ends
        return f"{low} % {low_word} to {high} % {high_word}"
    # Of two increases the smaller one is the upper end.
    (low, _), (high, _) = reversed(ends) if words == {more} else ends
    return f"{low} to {high} % {''.join(words)}".rstrip()


def _relative(reduction: float, less: str, more: str) -> tuple[str, str]:
    # Rounded first: what rounds to zero is neither less nor more.
    rounded = round(reduction, 2)
    return f"{abs(rounded):,.2f}", less if rounded > 0 else more if rounded < 0 else ""


def percent(value: float | None) -> str:
    """A signed percentage with two decimals; a dash for none."""
    return _NONE if value is None else f"{_signed(value)} %"


def interval(bounds: Interval | None) -> str:
    """Both ends of an interval in percent; a dash for none."""
    return _NONE if bounds is None else f"{_signed(bounds[0])} to {_signed(bounds[1])} %"


def points(value: float) -> str:
    """A difference of two shares in percentage points."""
    return _signed(value)


def _signed(value: float) -> str:
    # Rounded first: what rounds to zero has no sign.
    rounded = round(value, 2)
    sign = "+" if rounded > 0 else _MINUS if rounded < 0 else ""
    return f"{sign}{abs(rounded):,.2f}"


def plain_percent(value: float | None) -> str:
    """A share without a sign, with one decimal; a dash for none."""
    return _NONE if value is None else f"{value:,.1f} %"


def outliers(found: Sequence[Outlier], baseline: str, less: str = "fewer") -> str:
    """The outlying boots, by image and seed; a dash for none."""
    return (
        "; ".join(
            f"{baseline if one.baseline else 'image'} with seed {one.seed}: "
            f"{relative(-one.deviation_percent, less)}"
            for one in found
        )
        or _NONE
    )


def amount(value: float | None) -> str:
    """A cost with five significant digits or all of its integer part; a dash for none."""
    if value is None:
        return _NONE
    digits = 4 if value <= 0 else 4 - floor(log10(value))
    return f"{value:,.{min(max(digits, 0), 6)}f}"


def signed_amount(value: float) -> str:
    """A difference of costs, with a sign and as many digits as a cost."""
    return f"{_MINUS if value < 0 else '+' if value > 0 else ''}{amount(abs(value))}"


def duration(seconds: float) -> str:
    """Seconds below a minute with one decimal, minutes and hours above."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def size(count: int | None) -> str:
    """Bytes in KiB or MiB; a dash for none."""
    if count is None:
        return _NONE
    if count < 1 << 10:
        return f"{count} B"
    if count < 1 << 20:
        return f"{count / (1 << 10):,.1f} KiB"
    return f"{count / (1 << 20):,.2f} MiB"


def text_size(image: Image, reference: Image | None) -> str:
    """The size of the kernel's code, and its change against another image; a dash if unknown."""
    text = image.size_bytes.text
    if text is None or reference is None or image is reference or not reference.size_bytes.text:
        return size(text)
    reduction = 100 * (1 - text / reference.size_bytes.text)
    return f"{size(text)} ({relative(reduction, 'smaller', 'larger')})"


def figure(value: float | None, unit: str) -> str:
    """A figure that a case printed, with three digits and a suitable unit; a dash for none."""
    if value is None:
        return _NONE
    if unit == "ns":
        return _scaled(value, 1000, ("ns", "µs", "ms", "s"))
    if unit == "bytes/s":
        return _scaled(value, 1000, ("B/s", "kB/s", "MB/s", "GB/s", "TB/s"))
    return f"{amount(value)} {unit}".rstrip()


def _scaled(value: float, step: int, units: tuple[str, ...]) -> str:
    rank = 0
    while value >= step and rank < len(units) - 1:
        value /= step
        rank += 1
    decimals = 0 if rank == 0 or value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{decimals}f} {units[rank]}"

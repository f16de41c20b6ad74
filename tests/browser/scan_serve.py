"""Scan `mepof serve` for weaknesses with Wapiti: nothing above informational may be found.

    make scan-serve

The runs are toys, and so are those that the scanner starts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from web.served import serving

from mepof.errors import MepofError
from mepof.process import run
from mepof.web import launch

from .check_serve import TOY_RUN, fill

MODULES = (
    "cookieflags,csp,csrf,http_headers,methods,exec,file,crlf,redirect,sql,xss,permanentxss,upload"
)
#: The views of two runs, each with its steps and files.
MIN_PAGES = 30
INFORMATIONAL = 0
_MODULE_SECONDS = 300


def scanned(wapiti: Path, site: str, scratch: Path, report: Path) -> dict[str, Any]:
    """The scanner's report."""
    argv: list[str | Path] = [wapiti, "-u", f"{site}/", "--scope", "domain", "-m", MODULES]
    argv += ["--store-session", scratch / "session", "--store-config", scratch / "config"]
    argv += ["--max-attack-time", str(_MODULE_SECONDS), "--no-bugreport", "-v", "0"]
    run([*argv, "-f", "json", "-o", report])
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def weaknesses(report: Mapping[str, Any]) -> Iterator[str]:
    """What the scanner found above informational, and that it saw too little."""
    pages = report["infos"]["crawled_pages_nbr"]
    if pages < MIN_PAGES:
        yield f"only {pages} pages were seen"
    for part in ("vulnerabilities", "anomalies"):
        for category, found in report[part].items():
            for each in found:
                if each["level"] > INFORMATIONAL:
                    yield f"{category}: {each['method']} {each['path']}: {each['info']}"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wapiti", type=Path, required=True, help="the scanner")
    parser.add_argument("--out", type=Path, required=True, help="where its report goes")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    vars(launch)["RUN"] = (sys.executable, str(TOY_RUN))
    report = given.out / "wapiti.json"
    try:
        with TemporaryDirectory() as directory:
            scratch = Path(directory)
            fill(scratch)
            (scratch / "out" / "go").touch()  # what is started ends by itself
            with serving(scratch) as client:
                site = f"http://127.0.0.1:{client.port}"
                found = scanned(given.wapiti, site, scratch, report)
    except (MepofError, OSError) as error:
        print(error, file=sys.stderr)
        return 3
    wrong = list(weaknesses(found))
    pages = found["infos"]["crawled_pages_nbr"]
    print("\n".join(wrong) or f"nothing above informational on {pages} pages; see {report}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

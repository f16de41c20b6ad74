"""The published JSON Schema of ``report.json``.

Regenerate the file after a change of the model:
``python -m mepof.report.schema > src/mepof/report/report.schema.json``
"""

from __future__ import annotations

import json

from mepof.report.model import SCHEMA, Report


def schema_text() -> str:
    """The text of ``report.schema.json``."""
    schema = Report.model_json_schema(mode="serialization")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA}
    return json.dumps({**head, **schema}, indent=2) + "\n"


if __name__ == "__main__":
    print(schema_text(), end="")

"""The OpenAPI document, which the package has as a file:

    python3 -m penstock._service.openapi_document > openapi.json
"""

from __future__ import annotations

import json
from typing import Any

from . import api


def document() -> dict[str, Any]:
    """As GET /api/openapi.json answers; the release's number is left out, so
    that the file changes with the API alone."""
    nothing: Any = None  # no route is called
    found = api.made(api.Routes(nothing, nothing, None, "")).openapi()
    found["info"]["version"] = "1"
    return dict(found)


if __name__ == "__main__":
    print(json.dumps(document(), indent=1))

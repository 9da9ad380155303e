"""What the program becomes for `penstock serve`:
`python3 -m penstock._service REQUEST`, REQUEST being JSON."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any, NoReturn

from .._program import end_with
from ..errors import refused


def main() -> NoReturn:
    request: dict[str, Any] = json.loads(sys.argv[1])
    logging.basicConfig(format="penstock: %(message)s", stream=sys.stderr)
    end_with(lambda: _program(request), request["json"])


def _program(request: dict[str, Any]) -> int:
    try:
        from .serving import serve
    except ImportError as missing:
        raise refused("service.packages", "cannot start the service",
                      sys.executable, str(missing),
                      "pip install 'penstock[serve]'") from None
    serve(request)
    return 0


if __name__ == "__main__":
    main()

"""What the program becomes for `penstock serve`:
`python3 -m penstock._service REQUEST`, REQUEST being JSON."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any, NoReturn

from ..errors import Error, refused
from ..training import report_error


def main() -> NoReturn:
    request: dict[str, Any] = json.loads(sys.argv[1])
    logging.basicConfig(format="penstock: %(message)s", stream=sys.stderr)
    code = 0
    try:
        try:
            from .serving import serve
        except ImportError as missing:
            raise refused("service.packages", "cannot start the service",
                          sys.executable, str(missing),
                          "pip install 'penstock[serve]'") from None
        serve(request)
    except Error as error:
        code = report_error(error, request["json"])
    sys.stdout.flush()
    sys.exit(code)


if __name__ == "__main__":
    main()

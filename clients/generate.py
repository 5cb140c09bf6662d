"""Write the OpenAPI document of the service for `make typescript-client`, which generates the client from it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from felrec.pretrained import load_pretrained
from felrec.service.engine.engine import Engine
from felrec.service.http.app import create_app
from felrec.store.sqlite import SqliteStore

DOCUMENT = Path(__file__).parent / "typescript" / "openapi.json"


def main() -> None:
    """Describe a service over an empty store."""
    with TemporaryDirectory() as folder:
        engine = Engine.open(SqliteStore(Path(folder) / "store"), load_pretrained(), empty=True)
        with closing(engine):
            document = create_app(engine).openapi()
    DOCUMENT.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()

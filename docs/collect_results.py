"""Take pages of `felrec reproduce` into the docs: `python docs/collect_results.py results/table-ml-1m …`.

Each folder becomes docs/results/FOLDER.md, word for word but for the place of its pictures.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).parent
PAGES, IMAGES = DOCS / "results", DOCS / "images" / "results"
PICTURE = re.compile(r"(!\[[^]]*\])\(([^)]+)\)")


def collect(folder: Path) -> Path:
    """Copy one page and its pictures."""
    (config,) = folder.glob("*.config.json")
    name = json.loads(config.read_text())["experiment"]
    pictures = iter(range(1, 10))

    def moved(found: re.Match[str]) -> str:
        image = f"{folder.name}-{next(pictures)}.png"
        shutil.copyfile(folder / found[2], IMAGES / image)
        return f"{found[1]}(../images/results/{image})"

    page = PAGES / f"{folder.name}.md"
    page.write_text(PICTURE.sub(moved, (folder / f"{name}.md").read_text()))
    return page


if __name__ == "__main__":
    for needed in (PAGES, IMAGES):
        needed.mkdir(parents=True, exist_ok=True)
    for given in sys.argv[1:]:
        print(collect(Path(given)))

"""Packages felrec's client and the few modules it needs from the same source as felrec."""

from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_py import build_py

SOURCE = Path("..", "..", "src")
MODULES = {"__init__", "errors", "ids", "version"}  # of felrec itself


class OnlyTheClient(build_py):  # type: ignore[misc]  # setuptools has no types
    """Leaves out the modules of felrec that the client does not import."""

    def find_package_modules(self, package: str, package_dir: str) -> list[Any]:
        """The modules of a package that are packaged."""
        found: list[Any] = super().find_package_modules(package, package_dir)
        return [one for one in found if package != "felrec" or one[1] in MODULES]


def version() -> str:
    """The version of felrec."""
    defined: dict[str, str] = {}
    exec((SOURCE / "felrec" / "version.py").read_text(), defined)
    return defined["__version__"]


setup(
    version=version(),
    packages=["felrec", "felrec.answers", "felrec.client"],
    package_dir={"": str(SOURCE)},
    package_data={"felrec": ["py.typed"]},
    cmdclass={"build_py": OnlyTheClient},
    options={"egg_info": {"egg_base": "."}},  # not among felrec's own source
)

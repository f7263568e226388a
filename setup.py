"""What pyproject.toml cannot declare: packages under other names, the README of an index, compiled messages."""

import re
import runpy
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
INSTALLED_AS_ROOT = Path("tui/cli/root")


def packages() -> list[str]:
    """Return every folder of modules by its installed name: core/ is attn_tui.core."""
    folders = {path.parent.relative_to(ROOT) for top in ("core", "tui") for path in (ROOT / top).rglob("*.py")}
    return ["attn_tui", *sorted(f"attn_tui.{'.'.join(each.parts)}" for each in folders - {INSTALLED_AS_ROOT})]


def readme_of_index(text: str, repository: str | None) -> str:
    """Return a README whose relative links lead to the repository; without its address, links are plain text."""

    def absolute(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        if repository is None:
            return "" if mark else words
        return f"{mark}[{words}]({repository}/{'raw' if mark else 'blob'}/HEAD/{target})"

    return re.sub(r"(!?)\[([^]]*)\]\((?!\w+:|#)([^)]*)\)", absolute, text)


class BuildWithMessages(build_py):
    """Builds the packages with the .mo of each .po, which itself stays behind; in a clone the app compiles it."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            compiled = runpy.run_path("tui/language/po.py")["compiled"]
            for po in Path("tui/language").glob("*/LC_MESSAGES/*.po"):
                mo = Path(self.build_lib, "attn_tui", po).with_suffix(".mo")
                self.mkpath(str(mo.parent))
                mo.write_bytes(compiled(po.read_text("utf-8")))


if __name__ == "__main__":
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"].get("urls", {})
    setup(
        packages=packages(),
        long_description=readme_of_index((ROOT / "README.md").read_text("utf-8"), urls.get("Repository")),
        long_description_content_type="text/markdown",
        cmdclass={"build_py": BuildWithMessages},
    )

"""Compile the messages into the wheel; pyproject.toml declares everything else."""

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


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


setup(cmdclass={"build_py": BuildWithMessages})

"""The oldest version of each dependency that pyproject.toml admits, as pip takes it: for `make test-lowest`."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
for requirement in [*project["dependencies"], *project["optional-dependencies"]["test"]]:
    print(re.sub(r">=([\w.]+).*", r"==\1", requirement))

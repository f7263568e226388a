# make run, make test: with Python 3.11 or newer and make, on a fresh clone. make PYTHON=python3.12 chooses another.

PYTHON ?= python3
ARGS =

BIN = .venv/bin
PIP = -m pip install --disable-pip-version-check -qq

run: .venv/installed  ## open the app; with no terminal, print the report. make run ARGS="report --d-k 512"
	@$(BIN)/attn-tui $(ARGS)

test: .venv/installed-for-tests
	@$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

lint: .venv/installed-for-tests
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/pyright

bench: .venv/installed
	@$(BIN)/python benchmarks/recompute.py $(ARGS)
	@echo
	@$(BIN)/python benchmarks/sweep.py $(ARGS)

bench-terminal: .venv/installed-for-benchmarks
	@$(BIN)/python benchmarks/terminal.py $(ARGS)

pictures: .venv/installed
	@$(BIN)/python docs/pictures.py

# The oldest versions that pyproject.toml admits.
test-lowest: .venv-lowest/installed
	@.venv-lowest/bin/python -m pytest -n auto --dist worksteal $(ARGS)

clean:
	@rm -rf .venv .venv-lowest *.egg-info build dist .pytest_cache .ruff_cache .hypothesis
	@find core tui tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

.PHONY: run test lint bench bench-terminal pictures test-lowest clean

.venv/installed: pyproject.toml .venv/pyvenv.cfg
	@echo "Installing attn-tui into .venv" >&2
	@$(BIN)/python $(PIP) -e .
	@touch $@

.venv/installed-for-tests: pyproject.toml .venv/pyvenv.cfg
	@echo "Installing attn-tui and what its tests need into .venv" >&2
	@$(BIN)/python $(PIP) -e '.[test,lint]'
	@touch .venv/installed $@

.venv/installed-for-benchmarks: pyproject.toml .venv/pyvenv.cfg
	@echo "Installing attn-tui and what its benchmarks need into .venv" >&2
	@$(BIN)/python $(PIP) -e '.[bench]'
	@touch .venv/installed $@

.venv-lowest/installed: pyproject.toml tests/lowest.py .venv-lowest/pyvenv.cfg
	@echo "Installing attn-tui with the oldest versions it admits into .venv-lowest" >&2
	@.venv-lowest/bin/python $(PIP) -e . $$(.venv-lowest/bin/python tests/lowest.py)
	@touch $@

.venv/pyvenv.cfg .venv-lowest/pyvenv.cfg:
	@command -v $(PYTHON) >/dev/null || { echo "attn-tui needs Python 3.11 or newer; there is no $(PYTHON)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; v < (3, 11) and sys.exit("attn-tui needs Python 3.11 or newer; \
	$(PYTHON) is %d.%d. make PYTHON=python3.12 takes another" % v)'
	@$(PYTHON) -m venv $(@D) || { rm -rf $(@D); exit 1; }

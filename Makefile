# make run, make test: with Python 3.11 or newer and make, on a fresh clone. make PYTHON=python3.12 chooses another.

PYTHON ?= python3
ARGS =
VERSION = 5.17.0

BIN = .venv/bin
PIP = -m pip install --disable-pip-version-check -qq
TORCH = torch==2.13.0+cpu
# One worker more than cores: many tests wait for a terminal.
PYTEST = -m pytest -n $(shell expr $$(nproc) + 1) --dist worksteal

# Programs that tests and benchmarks start load compiled modules, as those of users do.
unexport PYTHONDONTWRITEBYTECODE

run: .venv/installed  ## open the app; with no terminal, print the report. make run ARGS="report --d-k 512"
	@$(BIN)/attn-tui $(ARGS)

test: .venv/installed-for-tests  ## run the tests that are not slow. make test ARGS="tests/core -k softmax" runs some
	@$(BIN)/python $(PYTEST) -m 'not slow and not soak' --hypothesis-profile few $(ARGS)

test-all: .venv/installed-for-tests  ## run all tests but those of make soak
	@$(BIN)/python $(PYTEST) $(ARGS)

test-lowest: .venv-lowest/installed  ## run them on the oldest versions that pyproject.toml admits
	@.venv-lowest/bin/python $(PYTEST) $(ARGS)

test-plain:  ## try every public name and every command of an installed package that has no extras
	@rm -rf .venv-plain build/lib && $(MAKE) --no-print-directory .venv-plain/pyvenv.cfg  # nothing left of another build
	@.venv-plain/bin/python $(PIP) .
	@.venv-plain/bin/python tests/plain_install.py

test-torch: .venv-torch/installed  ## run what needs PyTorch: the recorder and its programs; make test-torch TORCH=torch takes another
	@.venv-torch/bin/python $(PYTEST) tests/recorder $(ARGS)
	@.venv-torch/bin/python $(PYTEST) tests/core/test_*_code.py -k torch $(ARGS)

test-transformers: .venv-transformers-$(VERSION)/installed  ## record all architectures; make test-transformers VERSION=5.17.0 takes this version
	@$(<D)/bin/python $(PYTEST) tests/recorder/test_architectures.py $(ARGS)

test-jax: .venv-jax/installed  ## record programs of JAX, Flax and Keras
	@KERAS_BACKEND=jax .venv-jax/bin/python $(PYTEST) tests/core/test_record_jax*.py $(ARGS)

test-trainers: .venv-trainers/installed  ## run the training loops of docs/recording.md: Lightning, transformers, accelerate
	@.venv-trainers/bin/python $(PYTEST) tests/docs/test_recording_page.py $(ARGS)

soak: .venv/installed-for-tests  ## run random events, floods, whole races, memory; ten minutes of events or ARGS="--minutes 60"
	@$(BIN)/python $(PYTEST) -m soak
	@cd tests/tui && PYTHONPATH=../core ../../$(BIN)/python monkey.py $(ARGS)

lint: .venv/installed-for-tests .venv/typing/attn_tui  ## check the code with Ruff, and with Pyright in strict mode
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/pyright

bench: .venv/installed  ## measure recomputes, sweeps and captures against the least they can cost
	@$(BIN)/python benchmarks/recompute.py $(ARGS)
	@echo
	@$(BIN)/python benchmarks/sweep.py $(ARGS)
	@echo
	@$(BIN)/python benchmarks/diagnosis.py $(ARGS)
	@echo
	@$(BIN)/python benchmarks/growth.py
	@echo
	@$(BIN)/python benchmarks/sizes.py
	@echo
	@$(if $(wildcard .venv-torch/installed),.venv-torch/bin,$(BIN))/python benchmarks/recorder.py

calibrate: .venv/installed  ## count healthy heads that a diagnosis accuses and faults that it names, on simulated heads
	@$(BIN)/python benchmarks/calibrate.py $(ARGS)

bench-terminal: .venv/installed-for-benchmarks  ## measure the app in a terminal against a bare Textual app
	@$(BIN)/python benchmarks/terminal.py $(ARGS)

mutants: .venv/installed-for-mutants  ## try small faults with the tests of their rooms: make mutants SINCE=HEAD~3, or SAMPLE=200 SEED=1
	@$(BIN)/python benchmarks/mutants.py $(if $(SINCE),--since $(SINCE)) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED)) $(ARGS)

docs: .venv/installed  ## renew the tables of docs/ that are made from declarations
	@$(BIN)/python docs/tables.py

messages: .venv/installed-for-tests  ## find all messages again, and merge them into the catalogue
	@$(BIN)/python docs/messages $(ARGS)

pictures: .venv/installed  ## make the pictures of the README again
	@$(BIN)/python docs/pictures.py $(ARGS)

release: .venv-release/installed  ## build and check dist/, and test the wheel in a clean environment; uploads nothing
	@rm -rf dist *.egg-info && .venv-release/bin/python -m build
	@.venv-release/bin/python -m twine check --strict dist/*
	@rm -rf build/wheel build/sdist && mkdir -p build/sdist && tar xzf dist/*.tar.gz --strip-components 1 -C build/sdist
	@$(PYTHON) -m venv build/wheel
	@build/wheel/bin/python $(PIP) dist/*.whl
	@build/wheel/bin/python build/sdist/tests/plain_install.py
	@build/wheel/bin/python $(PIP) "$$(echo dist/*.whl)[test]"
	@cd build/sdist && ../wheel/bin/python $(PYTEST) -m 'not slow and not soak' --hypothesis-profile few $(ARGS)

clean:  ## remove everything that was made
	@rm -rf .venv .venv-lowest .venv-torch .venv-jax .venv-trainers .venv-transformers-* .venv-plain .venv-release *.egg-info build dist .pytest_cache .ruff_cache .hypothesis
	@find core tui tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*  ## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do \
	  printf '%-16s%s\n' "$$name" "$$text"; done

.PHONY: run test test-all test-lowest test-plain test-torch test-transformers test-jax test-trainers soak lint bench calibrate bench-terminal mutants docs messages pictures release clean help

.venv/installed: pyproject.toml .venv/pyvenv.cfg
	@echo "Installing attn-tui into .venv; this takes a minute" >&2
	@$(BIN)/python $(PIP) -e .
	@touch $@

.venv/installed-for-tests: pyproject.toml .venv/pyvenv.cfg
	@echo "Installing attn-tui and what its tests need into .venv" >&2
	@$(BIN)/python $(PIP) -e '.[test,lint,bench]'
	@touch .venv/installed $@

.venv/installed-for-benchmarks: pyproject.toml .venv/pyvenv.cfg
	@echo "Installing attn-tui and what its benchmarks need into .venv" >&2
	@$(BIN)/python $(PIP) -e '.[bench]'
	@touch .venv/installed $@

.venv/installed-for-mutants: pyproject.toml .venv/pyvenv.cfg
	@echo "Installing attn-tui, what its tests need and cosmic-ray into .venv" >&2
	@$(BIN)/python $(PIP) -e '.[test,mutants]'
	@touch .venv/installed $@

.venv-lowest/installed: pyproject.toml tests/lowest.py .venv-lowest/pyvenv.cfg
	@echo "Installing attn-tui with the oldest versions it admits into .venv-lowest" >&2
	@.venv-lowest/bin/python $(PIP) -e . $$(.venv-lowest/bin/python tests/lowest.py)
	@touch $@

.venv-torch/installed: pyproject.toml .venv-torch/pyvenv.cfg
	@echo "Installing attn-tui, PyTorch and transformers into .venv-torch" >&2
	@.venv-torch/bin/python $(PIP) -e '.[test]' '$(TORCH)' transformers
	@touch $@

.venv-transformers-%/installed: pyproject.toml
	@echo "Installing attn-tui, PyTorch and transformers $* into $(@D)" >&2
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP) -e '.[test]' '$(TORCH)' 'transformers==$*'
	@touch $@

.venv-jax/installed: pyproject.toml .venv-jax/pyvenv.cfg
	@echo "Installing attn-tui, JAX, Flax and Keras into .venv-jax" >&2
	@.venv-jax/bin/python $(PIP) -e '.[test]' jax flax keras
	@touch $@

.venv-trainers/installed: pyproject.toml .venv-trainers/pyvenv.cfg
	@echo "Installing attn-tui, PyTorch and what trains with it into .venv-trainers" >&2
	@.venv-trainers/bin/python $(PIP) -e '.[test]' '$(TORCH)' transformers accelerate lightning tensorboard wandb
	@touch $@

.venv-release/installed: pyproject.toml .venv-release/pyvenv.cfg
	@.venv-release/bin/python $(PIP) 'build>=1.2' 'twine>=6.1'
	@touch $@

# Pyright finds attn_tui as it is installed, from links to the folders that are.
.venv/typing/attn_tui: .venv/pyvenv.cfg
	@mkdir -p $@
	@ln -sfn ../../../core $@/core
	@ln -sfn ../../../tui $@/tui
	@ln -sfn ../../../tui/cli/root/__init__.py $@/__init__.py
	@ln -sfn ../../../tui/cli/root/testing.py $@/testing.py

.venv/pyvenv.cfg .venv-lowest/pyvenv.cfg .venv-plain/pyvenv.cfg .venv-torch/pyvenv.cfg .venv-jax/pyvenv.cfg .venv-trainers/pyvenv.cfg .venv-release/pyvenv.cfg:
	@command -v $(PYTHON) >/dev/null || { echo "attn-tui needs Python 3.11 or newer; there is no $(PYTHON)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; v < (3, 11) and sys.exit("attn-tui needs Python 3.11 or newer; \
	$(PYTHON) is %d.%d. make PYTHON=python3.12 takes another" % v)'
	@$(PYTHON) -m venv $(@D) || { rm -rf $(@D); exit 1; }

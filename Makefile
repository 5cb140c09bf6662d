# Everything runs in .venv, installed with the exact versions of constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KERNELS := $(sort $(wildcard src/felrec/model/kernels/native/*.[ch]))
STAMP := $(VENV)/.installed-$(shell cat pyproject.toml constraints.txt $(KERNELS) | cksum | cut -d' ' -f1)

.PHONY: setup demo test lint types docs cli-reference typescript-client bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt $(KERNELS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "felrec needs Python 3.11 or newer; call make with PYTHON=/path/to/it"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@rm -f $(VENV)/.installed-*
	@touch $@

demo: setup
	$(BIN)/felrec demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

test: setup lint types
	@tests/install_browser.sh
	@tests/install_node.sh
	@tests/install_servers.sh
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal  # one worker a core: they must not share

docs: setup
	$(BIN)/mkdocs build --strict

cli-reference: setup
	$(BIN)/python docs/generate_cli.py

typescript-client: setup
	$(BIN)/python clients/generate.py
	cd clients/typescript && npm ci --no-audit --no-fund && npm run generate && npm run build

# make bench CHECKOUT=/path/to/authors/clone DATA=/folder/with/logs BENCH="--only replay --update"
bench: setup
	$(BIN)/python benchmarks/run.py $(CHECKOUT) $(if $(DATA),--data $(DATA)) $(BENCH)

clean:
	rm -rf $(VENV) src/felrec/model/kernels/native/*.so build dist site clients/typescript/node_modules clients/typescript/dist runs/demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

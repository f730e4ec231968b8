# Everything people and CI run. All paths are relative, so the folder may have any name.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
CYCLONEDX_VERSION := 7.5.0
PIP_AUDIT_VERSION := 2.10.1
ATHERIS_VERSION := 3.0.0
FUZZ_SECONDS := 300

.PHONY: run test soak fuzz fuzz-api clients sdk bench accuracy tests lint openapi readme lock sbom audit docs docs-serve clean

run: $(STAMP)
	@exec $(BIN)/outlay serve

# Lint runs beside the tests, its report stands below theirs, and a failure of either fails both.
test: $(DEV_STAMP)
	@report=$$(mktemp); $(MAKE) --no-print-directory lint > $$report 2>&1 & lint=$$!; \
	$(MAKE) --no-print-directory tests; tests=$$?; wait $$lint; lint=$$?; \
	cat $$report; rm $$report; exit $$((tests + lint))

# Four processes on two cores, because those that wait for servers and workers leave a core idle. Neighbours share what modules set up,
# and the dozens of processes that tests start what was compiled for the first.
tests: $(DEV_STAMP)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -m "not soak and not clients" -n 4 --dist worksteal --durations=25 $(PYTEST_ARGS)

# Faults at length, and every property with ten times the examples, other ones each time.
soak: $(DEV_STAMP)
	@$(BIN)/python -m pytest -q -m "soak or hypothesis" --hypothesis-profile soak -o faulthandler_timeout=0 -s $(PYTEST_ARGS)

# Readers of foreign bytes (Parquet, XLSX, archives, imports, signed records) under atheris, each for so long; Linux alone has its wheel.
fuzz: $(DEV_STAMP)
	@$(BIN)/python -m pip install --quiet uv
	@PYTHONPATH=. $(BIN)/uv run --no-project --python $(BIN)/python --with atheris==$(ATHERIS_VERSION) python -m tests.fuzz --seconds $(FUZZ_SECONDS)

# Clients made of the specification, installed as their users do, and tried against a running service; then linters of the specification.
clients: $(DEV_STAMP)
	@$(BIN)/python -m pytest -q -m clients tests/integration/test_clients.py tests/integration/test_notebooks.py --durations=0 $(PYTEST_ARGS)

# The wheel of the Python client, made of openapi.yaml.
sdk: $(DEV_STAMP)
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist clients/python

bench: $(DEV_STAMP)
	@$(BIN)/python -m bench

accuracy: $(DEV_STAMP)
	@$(BIN)/python -m bench.accuracy

lint: $(DEV_STAMP)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports --no-cache

openapi: $(DEV_STAMP)
	$(BIN)/python -m tools.record_examples
	$(BIN)/outlay openapi > openapi.yaml
	$(BIN)/python -m tools.reference

readme: $(DEV_STAMP)
	$(BIN)/python -m bench.readme
	$(BIN)/python -m bench.notebooks
	$(BIN)/python -m tools.document_tree
	$(BIN)/python -m tools.reference
	$(BIN)/python -m tools.pictures

lock: $(DEV_STAMP)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --quiet --extra build pyproject.toml --output-file requirements.lock
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --quiet --extra build --extra dev --extra docs pyproject.toml --constraints requirements.lock --output-file requirements-dev.lock

# Bill of materials and licences of what the image contains, from an environment of its own.
sbom: $(STAMP)
	@rm -rf build/sbom && mkdir -p build/sbom
	$(PYTHON) -m venv build/sbom/environment
	build/sbom/environment/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv tool run --from cyclonedx-bom==$(CYCLONEDX_VERSION) cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
		--output-file build/sbom/outlay.cdx.json build/sbom/environment/bin/python
	$(BIN)/python -m tools.licences build/sbom/outlay.cdx.json > build/sbom/licences.csv
	@echo "build/sbom/outlay.cdx.json, build/sbom/licences.csv"

# Known vulnerabilities of the locked versions, by PyPI's advisories; fails where those cannot be asked, as behind a plain mirror.
audit: $(STAMP)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv tool run --from pip-audit==$(PIP_AUDIT_VERSION) pip-audit --strict --disable-pip --require-hashes --requirement requirements.lock

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

$(DEV_STAMP): $(STAMP) requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-dev.lock
	@touch $(DEV_STAMP)

# The site of docs/, from files alone; a broken link or anchor fails it.
docs: $(DEV_STAMP)
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs build/docs
	@echo "build/docs/index.html"

docs-serve: docs
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/docs 8000

clean:
	rm -rf $(VENV) .outlay build *.egg-info

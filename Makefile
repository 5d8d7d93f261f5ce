# Needs Python 3.11 to 3.13, git and make; everything else goes into .venv. ARGS adds options to the command that a
# target runs (make report ARGS="--config seed=1"), PYTHON picks the interpreter (make report PYTHON=python3.12).
.NOTPARALLEL:
.PHONY: report quick partial plan test test-fast test-fuzz test-cluster test-frameworks lint bench docs release-check readme runtime dev clean help
# Targets make and remove what lies in the current folder (which macOS reads as makefile).
ifeq ($(filter Makefile makefile,$(lastword $(MAKEFILE_LIST))),)
$(error This Makefile is of another folder, so nothing is made or removed here: make -C ITS_FOLDER TARGET)
endif
# What Python inherits would change how programs run, find each other, or read text. PYTHON names the interpreter.
unexport $(filter-out PYTHON,$(filter PYTHON%,$(.VARIABLES)))
export PYTHONUTF8 := 1
PY := .venv/bin/python
SNAKEMAKE := $(PY) scripts/run_snakemake.py --cores all

report: runtime ## simulate, fit and draw everything, then write results/report.html
	@$(SNAKEMAKE) $(ARGS)

quick: runtime ## the same on a small grid, in a minute or two
	@$(SNAKEMAKE) --configfile config/quick.yaml $(ARGS)

partial: runtime ## after a run in which jobs failed: results/report-partial.html, from what there is
	@$(PY) scripts/render_partial.py $(ARGS)

plan: runtime ## what a run will take, before it runs (ARGS="--configfile config/large.yaml")
	@$(PY) scripts/plan_run.py $(ARGS)

test: dev ## unit, workflow and report tests
	@OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

test-fast: dev ## what an edit breaks most often, in a minute: no browser, no LaTeX, no run of the pipeline
	@OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n 2 --dist loadfile -m "not slow and not latex" \
		--durations 10 --durations-min 0.5 tests/unit $(ARGS)

test-fuzz: dev ## many random configurations, runs and kills, in an hour or two; make test has a few of each
	@OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n 2 tests/fuzz --many $(ARGS)

test-cluster: ## the same results on a Slurm that is installed on this machine (Debian, root)
	@sh scripts/setup_environment.sh requirements-cluster.txt
	@$(PY) tests/cluster/check_slurm.py $(ARGS)

test-frameworks: ## capture and monitor on models of a PyTorch that PYTHON has, in five minutes
	@PYTHON="$(PYTHON)" sh tests/frameworks/run.sh $(ARGS)

lint: dev ## style, types and room contracts of the Python code, style of the workflow
	@$(PY) -m ruff check . && $(PY) -m ruff format --check . && $(PY) -m mypy
	@PYTHONPATH=scripts $(PY:python=lint-imports) --no-cache
	@$(PY) -m snakemake --lint

bench: runtime ## compare speed with what people write, in a quarter of an hour, and write docs/benchmarks.md
	@$(PY) benchmarks/bench.py $(ARGS)

docs: runtime ## write the documents that are made from sources alone, in seconds
	@$(PY) scripts/write_docs.py $(ARGS)

release-check: runtime ## say what a release needs a run, a measurement or a translator for
	@$(PY) scripts/check_release.py

readme: report ## carry the headline figure and numbers of the last report into README.md
	@$(PY) scripts/write_readme_numbers.py

runtime: ## .venv with the pinned packages
	@sh scripts/setup_environment.sh requirements.txt

dev: ## .venv with the pinned packages and those of the tests
	@sh scripts/setup_environment.sh requirements-dev.txt

clean: ## remove everything that was generated, but not .venv
	[ ! -d results ] || find results -mindepth 1 ! -name .gitkeep -delete
	rm -rf .snakemake .pytest_cache .mypy_cache .ruff_cache

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile

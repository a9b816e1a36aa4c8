# `make demo` and `make test` work from a bare clone, again and again.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)
CLASSIC := keras==2.1.4/tensorflow,keras==2.1.4/theano,keras==2.1.5/theano,keras==2.2.4/theano,keras==2.2.4/tensorflow,mxnet,executorch:torch
ifeq ($(shell uname -m),x86_64)  # nobody builds LiteRT's converter for others
CLASSIC := $(CLASSIC),litert:torch
endif

.PHONY: demo test checked quick classic floor lint dist docs setup clean

demo: .venv/demo
	$(BIN)/python examples/digits.py demo-out
	@echo; echo "== A network trained on scikit-learn's digits, on all installed targets =="
	$(BIN)/outvote check demo-out/digits.keras --data demo-out/digits.npz --out demo-out/released
	@echo; echo "== The same, with CRADLE's batch-normalisation bug planted in one target =="
	$(BIN)/outvote check demo-out/digits.keras --data demo-out/digits.npz --out demo-out/patched \
		--config examples/outvote.toml --targets patched,jax,openvino,numpy \
		|| [ $$? -eq 1 ]
	@echo; echo "== The network as an ONNX graph, with the same bug planted in ONNX' reference =="
	$(BIN)/outvote check demo-out/digits.onnx --data demo-out/digits.npz --out demo-out/onnx \
		--config examples/outvote.toml --targets patched-reference,onnxruntime,openvino:onnx \
		|| [ $$? -eq 1 ]
	@echo; echo "Open these in a browser:"
	@echo "  demo-out/released/report.html"
	@echo "  demo-out/patched/report.html"
	@echo "  demo-out/onnx/report.html"

# What CI runs; tests start Python by the hundred, so bytecode is kept, whatever the environment says.
# Environments that classic targets, ExecuTorch and LiteRT need are built beside lint and quick tests.
test: export PYTHONDONTWRITEBYTECODE =
test: setup
	@$(MAKE) --no-print-directory -j2 checked classic
	$(BIN)/python -m pytest -m "frameworks or browser or slow" -n 2 --dist loadfile --no-loadscope-reorder

checked: setup
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory quick

# Pure functions, fake targets, a toy dialect: no framework, no browser, nothing slow.
quick: export PYTHONDONTWRITEBYTECODE =
quick: export HYPOTHESIS_NO_PLUGINS = 1
quick: setup
	$(BIN)/python -m pytest -m "not frameworks and not browser and not slow" -n $(JOBS) --dist worksteal

# Keras 2 on Theano, TensorFlow and MXNet, ExecuTorch and LiteRT, into the user's cache folder; what cannot be had is said
# by the tests that need it.
classic: setup
	-@$(BIN)/outvote targets --targets '$(CLASSIC)' >/dev/null

# The quick tests with the oldest versions that pyproject.toml allows, in an environment of its own;
# then each library under test in its oldest version (torch: the one build without CUDA).
floor: setup
	rm -rf .venv-floor
	$(PYTHON) -m venv .venv-floor
	$(BIN)/python tests/floor.py constraints > .venv-floor/constraints.txt
	.venv-floor/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 \
		-c .venv-floor/constraints.txt -e '.[jax,openvino,onnx,serve,dev]'
	.venv-floor/bin/python -m pytest -m "not frameworks and not browser" -n $(JOBS) --dist worksteal
	$(BIN)/python tests/floor.py targets

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Source and wheel, in dist/.
dist: setup
	rm -rf build dist
	$(BIN)/python -m build --no-isolation --outdir dist .

# The guides as a site, in site/. Warnings are errors. Search needs a server, as browsers have it.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "To read it, with search: $(BIN)/python -m http.server -d site"

setup: .venv/installed

# What the demo needs: small libraries, which the whole set-up brings too.
.venv/demo: pyproject.toml constraints.txt
	[ -e .venv/installed ] || $(PYTHON) -m venv .venv
	[ -e .venv/installed ] || $(BIN)/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt -e '.[jax,openvino,onnx,zoo]'
	touch $@

# Not compiled: most modules are never imported, and those that are, are compiled then.
.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "outvote needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[all,dev]'
	touch $@

clean:
	rm -rf .venv .venv-floor build dist site demo-out .mypy_cache .ruff_cache .pytest_cache

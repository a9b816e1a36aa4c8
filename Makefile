# `make demo` and `make test` work from a bare clone, again and again.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint setup browser clean

demo: setup
	$(BIN)/python examples/digits.py demo-out
	@echo; echo "== A network trained on scikit-learn's digits, on all installed targets =="
	$(BIN)/outvote check demo-out/digits.keras --data demo-out/digits.npz --out demo-out/released
	@echo; echo "== The same, with CRADLE's batch-normalisation bug planted in one target =="
	$(BIN)/outvote check demo-out/digits.keras --data demo-out/digits.npz --out demo-out/patched \
		--config examples/outvote.toml --targets patched,jax,torch,openvino \
		|| [ $$? -eq 1 ]
	@echo; echo "Open these in a browser:"
	@echo "  demo-out/released/report.html"
	@echo "  demo-out/patched/report.html"

test: setup browser lint
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

setup: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "outvote needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,dev]'
	touch $@

# The report is tested in a real browser; where we may, we install it.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -qq && apt-get install -y -qq chromium chromium-driver >/dev/null; \
		else echo "No Chromium and chromedriver found: the browser tests will be skipped."; fi; }

clean:
	rm -rf .venv demo-out .mypy_cache .ruff_cache .pytest_cache

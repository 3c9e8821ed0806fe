# Works on a machine with Go, Python 3 with pip, and make. Nothing is installed
# globally: tools and Envoy go to .cache/. `ENVOY=/path/to/envoy` replaces the
# pinned Envoy in every target but test-matrix.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

ENVOY_VERSION := 1.40.0
GOLANGCI      := v2.15.0

PYTHON   ?= python3
FUZZTIME ?= 20s
SOAK     ?= 30m

cache    := $(CURDIR)/.cache
binary   := bin/crossdoor
golangci := $(cache)/bin/golangci-lint-$(GOLANGCI)
# Set before a command that starts Envoy; a failed download ends the recipe.
with_envoy = envoy=$$($(PYTHON) test/fetch_envoy.py $(ENVOY_VERSION)); export ENVOY="$$envoy";

.PHONY: help build test test-matrix lint generate check demo bench fuzz envoy soak \
	example-two-accounts example-aws-and-foundry example-passthrough example-every-platform

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-24s %s\n", $$1, $$2}' Makefile

build: ## bin/crossdoor
	go build -trimpath -o $(binary) ./cmd/crossdoor

test: python-sdk ## every test with the race detector, against a real Envoy
	$(with_envoy) go test -race -timeout 24m ./...

test-matrix: python-sdk ## the behaviour suite on every pinned Envoy, and docs/envoy-versions.md
	$(PYTHON) test/matrix.py

lint: $(golangci) ## golangci-lint as .golangci.yml says
	$(golangci) run

$(golangci):
	@mkdir -p $(dir $@)
	GOFLAGS= GOBIN=$(cache)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI)
	@mv $(cache)/bin/golangci-lint $@

generate: ## what is derived from the code: schema, goldens, examples, reference
	go generate ./...
	$(with_envoy) go test ./envoy/... -run 'Golden' -update
	$(with_envoy) go test ./test/ -count=1 -run '^TestExamplesAreRendered$$' -update

check: lint generate test ## lint, generate, test, and a clean tree after
	@changed=$$(git status --porcelain); \
	if [ -n "$$changed" ]; then echo "not committed, or not generated:" >&2; echo "$$changed" >&2; exit 1; fi

demo: build ## the tour: failover on a real Envoy with fake platforms, under a minute
	$(with_envoy) $(binary) demo

bench: build ## the ratios of docs/performance.md, in a quarter of an hour; BENCH_QUICK=1: two minutes, only printed
	$(with_envoy) go run ./test/bench -crossdoor $(binary) $(if $(BENCH_QUICK),-quick,-update)

fuzz: ## every fuzz target for FUZZTIME each
	@go list -f '{{.Dir}}' ./... | while read -r dir; do \
	  { grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go 2>/dev/null || true; } | sed 's/^func //' | while read -r name; do \
	    echo "== $$dir $$name"; \
	    (cd "$$dir" && go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) .) < /dev/null; \
	  done; \
	done

envoy: ## fetches the pinned Envoy of `make test` and prints its path
	@$(PYTHON) test/fetch_envoy.py $(ENVOY_VERSION)

.PHONY: python-sdk
python-sdk: ## the vendor's Python library, which `make test` has as a client
	@$(PYTHON) test/python/fetch.py

soak: build ## load with faults for SOAK
	$(with_envoy) CROSSDOOR_SOAK=$(SOAK) go test ./test/... -run '^TestSoak' -count=1 -timeout 0 -v

example-two-accounts: build ## two accounts at one vendor, with the keys in your environment
	$(with_envoy) $(PYTHON) examples/run.py two-accounts

example-aws-and-foundry: build ## a vendor's API, then AWS, then Azure
	$(with_envoy) $(PYTHON) examples/run.py aws-and-foundry

example-passthrough: build ## the clients' own credentials
	$(with_envoy) $(PYTHON) examples/run.py passthrough

example-every-platform: build ## seven doors to the same models, Bedrock and Vertex among them
	$(with_envoy) $(PYTHON) examples/run.py every-platform

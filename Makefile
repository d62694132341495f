# make help lists what there is to make.

# Fetched components, pinned; git ignores the directory.
TOOLS := .tools
A20 := $(TOOLS)/libtmux-mcp-0.1.0a20
A22 := $(TOOLS)/libtmux-mcp-0.1.0a22
PYARROW := $(TOOLS)/pyarrow-26.0.1
TYPESCRIPT := $(TOOLS)/typescript
TYPESCRIPT_CLIENT := $(TOOLS)/typescript-client
AXE := $(TOOLS)/axe
REMOTE := $(TOOLS)/remote
KAFKA := $(TOOLS)/kafka
ZOOKEEPER := $(TOOLS)/zookeeper
LIBCHDB := $(TOOLS)/libchdb
CLICKHOUSE := $(TOOLS)/clickhouse
CLICKHOUSE_VERSION := 18.16.1+ds-7.3+b2
DEMO := bin/demo -auditproxy bin/auditproxy -auditcollector bin/auditcollector -python $(A22)/bin/python \
	-server deploy/dev/peers/libtmux_mcp_server.py
KUBERNETES_VERSION := v1.37.2
KUBERNETES := $(TOOLS)/kubernetes-$(KUBERNETES_VERSION)
COMPOSE_VERSION := v2.16.2
COMPOSE := $(TOOLS)/compose-go-$(COMPOSE_VERSION)/cmd
WITNESS := $(TOOLS)/witness
OTELCOL := $(TOOLS)/otelcol
OTEL_AGENT := $(TOOLS)/otel-agent
STATICCHECK_VERSION := v0.7.0
STATICCHECK := $(TOOLS)/staticcheck-$(STATICCHECK_VERSION)/staticcheck

# Without a writable home, keep the caches of Go, pip and npm here too.
ifneq ($(shell test -n "$$HOME" && test -w "$$HOME" && echo yes),yes)
export HOME := $(CURDIR)/$(TOOLS)/home
$(shell mkdir -p $(HOME))
endif

# Platforms other than linux/amd64: built and vetted by make check, not tested. That
# compiles all that is imported: ten minutes of processor time on an empty cache. So
# make test checks only the types there (TestPlatforms in cmd). The first platform is
# vetted whole, since on macOS also what packages import differs, and of the others the
# packages that have a set of files there that they have on no platform before. The
# builds have vet's flags, so that both use the same compiled packages.
PLATFORMS := darwin/arm64 darwin/amd64 linux/arm64

# The tests build programs as they are released, so everything else is built with
# the same flags: with others, all packages are compiled once more. The compiler and
# staticcheck spend a fifth of their processor time on garbage, with room less; the
# tests have Go's default again.
BUILD := GOGC=400 CGO_ENABLED=0 GOFLAGS="$$(go env GOFLAGS) -trimpath"
GOTEST := go test -exec 'env -u GOGC' -count=1 -timeout 40m

# The tests run with the build tag portable, which selects the code for macOS and
# arm64 on Linux: of the packages that have such code, and of the largest user of
# one.
PORTABLE := $(BUILD) GOFLAGS="$$(go env GOFLAGS) -trimpath -tags=portable" $(GOTEST) -short

# The packages that run goroutines or are called by several. The detector is
# slow, so -short omits cases in which it cannot find more.
RACE := ./mcpproxy ./mcpproxy/approval ./sink/kafka ./sink/spool ./sink/clickhouse/chdb ./collector ./collector/brokers ./collector/alert/... ./collector/review ./collector/translog \
	./cmd/internal/cli ./cmd/internal/terminal

.PHONY: help build demo demo-kafka test test-all test-other compile-other check check-code check-platforms bench soak kafka-up kafka-down tools fetch-tools libchdb clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 12

build: ## build bin/auditproxy and bin/auditcollector
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/ ./cmd/auditproxy ./cmd/auditcollector

demo: build $(A22)/.done $(LIBCHDB)/.done ## watch a real tmux session through the proxy into ClickHouse
	@deploy/dev/fetch commands tmux
	@CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/ ./cmd/internal/demo
	@$(DEMO)

demo-kafka: build $(A22)/.done $(LIBCHDB)/.done $(KAFKA)/.done ## run the demo through a real Kafka broker
	@deploy/dev/fetch commands tmux
	@CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/ ./cmd/internal/demo
	@$(DEMO) -kafka

# check vets more than go test would. Fetching waits for the network, and the largest
# packages wait more than they compute, so others run beside them, hence -j and -p.
# With CI set, a test fails if its component was not fetched, instead of skipping.
test: export CI := true
test: $(STATICCHECK) ## everything: format, vet, staticcheck, all tests, the race detector where it matters
	@$(MAKE) --no-print-directory -j 3 check-code fetch-tools compile-other
	@deploy/dev/within $(MAKE) --no-print-directory -j 2 test-all test-other
	@[ "$$(id -u)" = 0 ] || echo "not run: what needs root: files and answers of other users; run it with sudo for these"

test-all:
	$(BUILD) $(GOTEST) -vet=off -p 4 ./...

# The detector needs CGO.
test-other:
	$(BUILD) CGO_ENABLED=1 $(GOTEST) -vet=off -p 2 -race -short $(RACE)
	$(BUILD) go -C deploy/prometheus test -count=1 ./...
	$(PORTABLE) -p 2 ./schemas/jsontext ./mcpproxy ./mcpproxy/wire ./sink/spool/...
	$(PORTABLE) -run '^(TestEndsAsTheServer|TestSignalsToTheProxy|TestClientGone|TestClientReadsNoMore|TestLastAnswer|TestStopAtEveryOperation|TestDiskFull|TestScript|TestLibtmuxSideBySide)$$' ./cmd/auditproxy

# The detector needs all packages compiled once more.
compile-other:
	@$(BUILD) CGO_ENABLED=1 go list -race -test -deps -export $(RACE) >/dev/null

check: check-code check-platforms ## format, vet and staticcheck, and a build for each platform

check-code: $(STATICCHECK)
	@files=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$files" || { echo "gofmt would change:" $$files; exit 1; }
	$(BUILD) $(STATICCHECK) ./...
	$(BUILD) go vet ./...

check-platforms:
	@export $(BUILD); \
	files() { go list -f '{{.ImportPath}} {{.GoFiles}} {{.SFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}' ./...; }; \
	seen=$$(files) && vet=./... || exit 1; \
	for platform in $(PLATFORMS); do \
		export GOOS=$${platform%/*} GOARCH=$${platform#*/}; \
		now=$$(files) || exit 1; \
		vet=$${vet:-$$(echo "$$now" | grep -vxF "$$seen" | cut -d' ' -f1)}; \
		echo "build for $$platform, vet" $${vet:-nothing more}; \
		go build -ldflags '-s -w' -o /dev/null ./cmd/auditproxy ./cmd/auditcollector || exit 1; \
		test -z "$$vet" || go vet $$vet || exit 1; \
		vet=; seen=$$(printf '%s\n' "$$seen" "$$now"); \
	done

# Records that wait in Kafka, and that the review page searches. The targets are
# for ten million: each of the two programs writes them for minutes, to some GB in
# the temporary directory. RECORDS=1000000 needs a tenth of that. The proxy's part
# needs about ten minutes, one of them for log over 1 GB.
RECORDS ?= 10000000

bench: $(KAFKA)/.done $(LIBCHDB)/.done $(OTELCOL) ## measure the proxy, the collector and the review page; RECORDS=1000000 for fewer
	@code=0; go run ./cmd/internal/bench || code=$$?; \
	for program in benchcollector benchreview; do go run ./cmd/internal/$$program -records $(RECORDS) || code=$$?; done; exit $$code

soak: tools ## the long versions of the tests: every frame at every server, every kill
	SOAK=1 go test -count=1 -timeout 3h ./...

kafka-up: $(KAFKA)/.done ## start a Kafka broker on 127.0.0.1:19092, or $$KAFKA_PORT, with the topics
	@deploy/kafka/broker up
	@go run ./cmd/internal/kafkatopics 127.0.0.1:$${KAFKA_PORT:-19092} mcp.audit.v1 mcp.audit.v1.dead

kafka-down: ## stop it and remove its data
	@deploy/kafka/broker down

tools: $(A20)/.done $(A22)/.done $(PYARROW)/.done $(TYPESCRIPT)/.done $(TYPESCRIPT_CLIENT)/.done $(AXE)/.done $(REMOTE)/.done $(LIBCHDB)/.done $(KAFKA)/.done $(ZOOKEEPER)/.done $(CLICKHOUSE)/.done $(COMPOSE) $(KUBERNETES)/.done $(WITNESS) $(OTELCOL) $(OTEL_AGENT)/.done $(STATICCHECK) ## fetch what the tests need
	@deploy/dev/fetch commands tmux strace chromium

# Beside check, but one tool at a time, since apt-get has a lock.
fetch-tools:
	@MAKEFLAGS= $(MAKE) --no-print-directory tools

# A stamp is written last, so that an interrupted fetch is repeated.
$(TOOLS)/libtmux-mcp-%/.done: deploy/dev/libtmux-mcp-%.txt
	@deploy/dev/fetch venv $< $(@D)
	@touch $@

$(PYARROW)/.done $(OTEL_AGENT)/.done: $(TOOLS)/%/.done: deploy/dev/%.txt
	@deploy/dev/fetch venv $< $(@D)
	@touch $@

$(TYPESCRIPT)/.done $(TYPESCRIPT_CLIENT)/.done $(AXE)/.done $(REMOTE)/.done: $(TOOLS)/%/.done: deploy/dev/%/package-lock.json
	@deploy/dev/fetch npm $(<D) $(@D)
	@touch $@

$(KAFKA)/.done: deploy/kafka/pom.xml
	@deploy/dev/fetch maven $< $(@D)
	@touch $@
	@deploy/kafka/broker share || echo "kafka: brokers work, and start slowly"

$(ZOOKEEPER)/.done: deploy/dev/zookeeper/pom.xml
	@deploy/dev/fetch maven $< $(@D)
	@touch $@

libchdb: $(LIBCHDB)/.done ## fetch ClickHouse's engine, for one machine

$(LIBCHDB)/.done: deploy/dev/libchdb.sha256
	@deploy/dev/fetch libchdb $< $(@D)
	@touch $@

# The only server available as a package; it is old, and uses the native protocol.
$(CLICKHOUSE)/.done:
	@deploy/dev/fetch debian $(@D) clickhouse-server=$(CLICKHOUSE_VERSION) clickhouse-common=$(CLICKHOUSE_VERSION)
	@touch $@

# The parser of docker compose's files.
$(COMPOSE):
	@$(BUILD) deploy/dev/fetch go github.com/compose-spec/compose-go/v2/cmd@$(COMPOSE_VERSION) $(CURDIR)/$(@D)

# The schemas of the objects in deploy/kubernetes, as the API publishes them.
$(KUBERNETES)/.done:
	@deploy/dev/fetch gofiles k8s.io/kubernetes@$(KUBERNETES_VERSION) $(@D) $(patsubst %,api/openapi-spec/v3/%_openapi.json,api__v1 apis__apps__v1 apis__networking.k8s.io__v1 apis__policy__v1)
	@touch $@

# A third party's witness of logs.
$(WITNESS): deploy/dev/witness/main.go deploy/dev/witness/go.mod deploy/dev/witness/go.sum
	@echo "building a witness"
	@$(BUILD) go -C $(<D) build -o $(CURDIR)/$@ .

# An OpenTelemetry Collector that receives OTLP and writes files. Its 500 packages are
# used for seconds, so they are not optimized: that takes a fifth of the time to build it.
$(OTELCOL): deploy/dev/otelcol/main.go deploy/dev/otelcol/go.mod deploy/dev/otelcol/go.sum
	@echo "building an OpenTelemetry Collector"
	@$(BUILD) go -C $(<D) build -ldflags '-s -w' $(foreach host,go.opentelemetry.io google.golang.org golang.org github.com,-gcflags '$(host)/...=-N -l') -o $(CURDIR)/$@ .

$(STATICCHECK):
	@$(BUILD) deploy/dev/fetch go honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION) $(CURDIR)/$(@D)

clean: ## remove what was built and fetched
	test ! -d $(TOOLS) || chmod -R u+w $(TOOLS)
	rm -rf bin $(TOOLS)

# What a contributor types. `make check` is the part of .ci/run that needs Go alone.

.PHONY: build test race lint fmt check fuzz demo bench-compare image test-real

build:
	go build -trimpath -o bin/ ./cmd/...

test:
	go test ./...

race:
	go test -race ./...

lint:
	@test -z "$$(go tool gofumpt -l .)" || { echo "not gofumpt-formatted:"; go tool gofumpt -l .; exit 1; }
	go vet ./...
	go tool staticcheck ./...

fmt:
	go tool gofumpt -w .

check: lint test race

# Every fuzz target for 20 seconds.
fuzz:
	.ci/fuzz

demo:
	go run ./cmd/outbox-dev demo

# The hot parts at a commit and here, by benchstat: make bench-compare BASE=HEAD~1
bench-compare:
	.ci/bench-compare $(BASE) $(ROUNDS)

# The container image, built and started without a registry; needs root, and buildah
# or Debian's packages.
image:
	infra/check-image.sh

# The suites on SQL Server and Microsoft's Service Bus emulator; needs Docker.
test-real:
	infra/test-real.sh

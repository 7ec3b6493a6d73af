#!/usr/bin/env bash
# Builds two clients of Clusters Service from Go modules, once, outside the checkout: `ocm-client` walks the API with the
# real OCM SDK, `tsl-check` parses searches with the grammar of the original. Prints the folder that holds the binaries.
# Exits with 3 when there is no Go toolchain, so that callers can say loudly what they skip.
set -euo pipefail

SDK=v0.1.505
# The version that the original's search uses.
TSL=v0.0.0-20190923184055-1c2dad2e354b
HERE="$(cd "$(dirname "$0")" && pwd)"
# A changed program is another one.
SOURCES="$(cat "$HERE/ocm-client/main.go" "$HERE/tsl-check/main.go" | sha256sum | cut -c1-12)"
ROOT="${ARO_CACHE:-$HOME/.cache/aro}/peers/ocm-$SDK-$SOURCES"

say() { printf '%s\n' "$*" >&2; }

# What is built needs no toolchain any more.
if [ -x "$ROOT/bin/ocm-client" ] && [ -x "$ROOT/bin/tsl-check" ]; then
    printf '%s\n' "$ROOT/bin"
    exit 0
fi

command -v go > /dev/null 2>&1 || {
    say "no Go toolchain: the OCM client cannot be built here"
    exit 3
}

mkdir -p "$ROOT/bin"
exec 9> "$ROOT/lock"
flock 9

build() { # <program> <module> <version>
    if [ -x "$ROOT/bin/$1" ]; then return; fi
    say "building $1"
    mkdir -p "$ROOT/$1"
    cp "$HERE/$1/main.go" "$ROOT/$1/main.go"
    printf 'module aro.dev/peers/%s\n\ngo 1.26.0\n\nrequire %s %s\n' "$1" "$2" "$3" > "$ROOT/$1/go.mod"
    (cd "$ROOT/$1" && go mod tidy && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$ROOT/bin/$1.new" .)
    mv "$ROOT/bin/$1.new" "$ROOT/bin/$1"
}

build ocm-client github.com/openshift-online/ocm-sdk-go "$SDK"
build tsl-check github.com/yaacov/tree-search-language "$TSL"
printf '%s\n' "$ROOT/bin"

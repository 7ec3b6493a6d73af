#!/usr/bin/env bash
# Builds the original Maestro (server, agent, migrations) and its source client from Go modules, once, outside the
# checkout. Its agent is Open Cluster Management's work agent. Prints the folder that holds the binaries.
# Exits with 3 when there is no Go toolchain, so that callers can say loudly what they skip.
set -euo pipefail

MAESTRO=v0.0.0-20260202062555-48b47506a254
# The older one that Maestro asks for is not to be had any more.
OCM_COMMON=v0.0.38
ROOT="${ARO_CACHE:-$HOME/.cache/aro}/peers/maestro-$MAESTRO"
MODULE=github.com/openshift-online/maestro

say() { printf '%s\n' "$*" >&2; }

# What is built needs no toolchain any more.
if [ -x "$ROOT/bin/maestro" ] && [ -x "$ROOT/bin/maestro-source" ]; then
    printf '%s\n' "$ROOT/bin"
    exit 0
fi

command -v go > /dev/null 2>&1 || {
    say "no Go toolchain: the original Maestro cannot be built here"
    exit 3
}

mkdir -p "$ROOT/bin" "$ROOT/module"
exec 9> "$ROOT/lock"
flock 9

if [ ! -f "$ROOT/module/ready" ]; then
    {
        printf 'module aro.dev/peers/maestro\n\ngo 1.26.0\n\n'
        printf 'tool (\n\t%s/cmd/maestro\n\t%s/examples/manifestwork\n)\n\n' "$MODULE" "$MODULE"
        printf 'require (\n\t%s %s\n' "$MODULE" "$MAESTRO"
        printf '\tgithub.com/openshift-online/ocm-common %s\n)\n' "$OCM_COMMON"
    } > "$ROOT/module/go.mod"
    (cd "$ROOT/module" && go mod tidy)
    touch "$ROOT/module/ready"
fi

build() { # <package> <output>
    if [ -x "$ROOT/bin/$2" ]; then return; fi
    say "building $2"
    (cd "$ROOT/module" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$ROOT/bin/$2.new" "$1")
    mv "$ROOT/bin/$2.new" "$ROOT/bin/$2"
}

build "$MODULE/cmd/maestro" maestro
build "$MODULE/examples/manifestwork" maestro-source
printf '%s\n' "$ROOT/bin"

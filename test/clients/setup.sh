#!/usr/bin/env bash
# Installs the clients that tests drive, each in a directory of its own in the cache. Does nothing when they are
# there already. Usage: setup.sh python|node|az
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${ARO_CACHE:-$HOME/.cache/aro}/clients
mkdir -p "$cache"
# Several tests may come here at once; one installs, the others wait.
exec 9> "$cache/.lock"
flock 9

# Installs once per content of the list: the list's checksum is the stamp.
python_packages() {
    local name=$1 list=$2 stamp
    stamp=$(cksum < "$list" | tr -d ' \n')
    if [ "$(cat "$cache/$name/.stamp" 2>/dev/null)" = "$stamp" ]; then
        return
    fi
    rm -rf "${cache:?}/$name"
    mkdir -p "$cache/$name"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore \
        --target "$cache/$name" --requirement "$list"
    echo "$stamp" > "$cache/$name/.stamp"
}

node_packages() {
    local stamp
    stamp=$(cksum < "$here/package.json" | tr -d ' \n')
    if [ "$(cat "$cache/node/.stamp" 2>/dev/null)" = "$stamp" ]; then
        return
    fi
    rm -rf "${cache:?}/node"
    mkdir -p "$cache/node"
    cp "$here/package.json" "$cache/node/"
    npm install --prefix "$cache/node" --silent --no-audit --no-fund --ignore-scripts
    echo "$stamp" > "$cache/node/.stamp"
}

# The Azure CLI brings a program along, so it gets an environment of its own.
azure_cli() {
    local stamp
    stamp=$(cksum < "$here/requirements-az.txt" | tr -d ' \n')
    if [ "$(cat "$cache/az/.stamp" 2>/dev/null)" = "$stamp" ]; then
        return
    fi
    rm -rf "${cache:?}/az"
    python3 -m venv "$cache/az"
    "$cache/az/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$here/requirements-az.txt"
    echo "$stamp" > "$cache/az/.stamp"
}

case ${1:-} in
    python)
        python_packages sdk-ga "$here/requirements-ga.txt"
        python_packages sdk-preview "$here/requirements-preview.txt"
        python_packages kubernetes "$here/requirements-kubernetes.txt"
        python_packages azure "$here/requirements-azure.txt"
        ;;
    node) node_packages ;;
    az) azure_cli ;;
    *)
        echo "usage: setup.sh python|node|az" >&2
        exit 2
        ;;
esac

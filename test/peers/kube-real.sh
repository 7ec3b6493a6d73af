#!/usr/bin/env bash
# Builds a real control plane (etcd, kube-apiserver, kube-controller-manager, kubectl) from Go modules, once, outside the checkout.
# The differential tests compare our API server with it, call by call. Prints the folder that holds the binaries.
# Exits with 3 when there is no Go toolchain, so that callers can say loudly what they skip.
set -euo pipefail

KUBE=v1.36.4
STAGING=v0.36.4
ETCD=v3.6.16
ROOT="${ARO_CACHE:-$HOME/.cache/aro}/peers/kube-$KUBE-etcd-$ETCD"

say() { printf '%s\n' "$*" >&2; }

# What is built needs no toolchain any more.
ready() {
    local name
    for name in etcd kube-apiserver kube-controller-manager kubectl; do [ -x "$ROOT/bin/$name" ] || return 1; done
}
if ready; then
    printf '%s\n' "$ROOT/bin"
    exit 0
fi

command -v go > /dev/null 2>&1 || {
    say "no Go toolchain: a real kube-apiserver cannot be built here"
    exit 3
}

mkdir -p "$ROOT/bin"
exec 9> "$ROOT/lock"
flock 9

build() { # <module folder> <package> <output> [go build flags]
    local module=$1 package=$2 output=$3
    shift 3
    if [ -x "$ROOT/bin/$output" ]; then return; fi
    say "building $output"
    (cd "$module" && CGO_ENABLED=0 go build -trimpath -o "$ROOT/bin/$output.new" "$@" "$package")
    mv "$ROOT/bin/$output.new" "$ROOT/bin/$output"
}

if [ ! -f "$ROOT/kube/ready" ]; then
    mkdir -p "$ROOT/kube"
    {
        printf 'module aro.dev/peers/kube\n\ngo 1.26.0\n\ntool (\n'
        for name in kube-apiserver kube-controller-manager kubectl; do printf '\tk8s.io/kubernetes/cmd/%s\n' "$name"; done
        printf ')\n\nrequire k8s.io/kubernetes %s\n\nreplace (\n' "$KUBE"
        for name in api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider \
            cluster-bootstrap code-generator component-base component-helpers controller-manager cri-api cri-client \
            cri-streaming csi-translation-lib dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator \
            kube-controller-manager kube-proxy kube-scheduler kubectl kubelet metrics mount-utils \
            pod-security-admission sample-apiserver sample-cli-plugin sample-controller streaming; do
            printf '\tk8s.io/%s => k8s.io/%s %s\n' "$name" "$name" "$STAGING"
        done
        printf ')\n'
    } > "$ROOT/kube/go.mod"
    (cd "$ROOT/kube" && go mod tidy)
    touch "$ROOT/kube/ready"
fi
if [ ! -f "$ROOT/etcd/ready" ]; then
    mkdir -p "$ROOT/etcd"
    {
        printf 'module aro.dev/peers/etcd\n\ngo 1.26.0\n\ntool go.etcd.io/etcd/server/v3\n\n'
        printf 'require go.etcd.io/etcd/server/v3 %s\n' "$ETCD"
    } > "$ROOT/etcd/go.mod"
    (cd "$ROOT/etcd" && go mod tidy)
    touch "$ROOT/etcd/ready"
fi

version="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    version+=" -X $package.gitVersion=$KUBE -X $package.gitMajor=1 -X $package.gitMinor=36"
done
build "$ROOT/etcd" go.etcd.io/etcd/server/v3 etcd -ldflags "-s -w"
for name in kube-apiserver kube-controller-manager kubectl; do
    build "$ROOT/kube" "k8s.io/kubernetes/cmd/$name" "$name" -tags selinux,notest,grpcnotrace -ldflags "$version"
done
printf '%s\n' "$ROOT/bin"

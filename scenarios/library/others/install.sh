#!/usr/bin/env bash
# Installs published programs that the scenarios of this folder run, unmodified, each from its package registry.
#
#   ./install.sh NAME...            one or several of: see the functions `get_…` below
#   ./install.sh NAME@VERSION...    in a version without the bug; for karpenter-kwok, kube-controller-manager, kyverno-background-controller
#
# Programs go to $LONGHAUL_OTHERS (default: ~/.cache/longhaul/others), manifests that come with them to ./needs, which git ignores.
# Put $LONGHAUL_OTHERS in front of $PATH, then: longhaul soak NAME.yaml
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
programs="${LONGHAUL_OTHERS:-$HOME/.cache/longhaul/others}"
mkdir -p "$programs"
programs="$(cd "$programs" && pwd)"

# A package of a Go module whose go.mod has `replace` or `exclude`, which `go install` refuses: an empty module requires it.
# go_build PROGRAM PACKAGE VERSION
go_build() {
  local folder; folder="$(mktemp -d)"
  (cd "$folder" && go mod init others.invalid/build && go get "$2@$3" && go build -o "$programs/$1" "$2")
  rm -rf "$folder"
}

# The folder of a module in the cache.
go_module() { go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",\?$/\1/p'; }

# A virtual environment for a program, with packages from PyPI. in_venv PYTHON PROGRAM PACKAGE...
in_venv() {
  local python="$1" program="$2"; shift 2
  "$python" -m venv "$programs/.$program"
  "$programs/.$program/bin/pip" install --quiet "$@"
}

# Copies manifests to ./needs/NAME. needs NAME FILE...
needs() {
  local folder="$here/needs/$1"; shift
  mkdir -p "$folder"
  cp --no-preserve=mode "$@" "$folder/"
}

get_pod-security-webhook() {
  local version=v0.37.2
  GOBIN="$programs/.bin" go install "k8s.io/pod-security-admission/cmd/webhook@$version"
  mv "$programs/.bin/webhook" "$programs/pod-security-webhook"
}

get_vpa-admission-controller() {
  local module=k8s.io/autoscaler/vertical-pod-autoscaler version=v1.8.0
  go_build vpa-admission-controller "$module/pkg/admission-controller" "$version"
  needs vertical-pod-autoscaler "$(go_module "$module@$version")/deploy/vpa-v1-crd-gen.yaml"
}

get_nebari-workflow-controller() {
  in_venv python3 nebari-workflow-controller nebari-workflow-controller==2023.7.1
  # Its own entry serves plain HTTP; uvicorn, which it requires, serves TLS.
  printf '#!/bin/sh\nexec "%s" nebari_workflow_controller.app:app "$@"\n' "$programs/.nebari-workflow-controller/bin/uvicorn" >"$programs/nebari-workflow-controller"
  chmod +x "$programs/nebari-workflow-controller"
}

get_warrantor-admission() {
  in_venv python3 warrantor-admission warrantor-admission==1.0.0
  # It has no command, and no TLS of its own: stunnel (Debian package stunnel4) is in front of it.
  cat >"$programs/warrantor-admission" <<RUN
#!/bin/sh
conf="\$(mktemp)"
cat >"\$conf" <<CONF
foreground = yes
pid =
[webhook]
accept = 127.0.0.1:\$LONGHAUL_WEBHOOK_PORT
connect = 127.0.0.1:18443
cert = \$LONGHAUL_TLS_CERT
key = \$LONGHAUL_TLS_KEY
CONF
"$programs/.warrantor-admission/bin/python" -c 'import warrantor_admission; warrantor_admission.AdmissionWebhook().serve(18443, host="127.0.0.1")' &
exec stunnel4 "\$conf"
RUN
  chmod +x "$programs/warrantor-admission"
}

get_qdrant-operator() {
  # Needs Python 3.12.
  in_venv "${PYTHON312:-python3.12}" qdrant-operator qdrant-operator==0.3.2
  ln -sf ".qdrant-operator/bin/qdrant-operator" "$programs/qdrant-operator"
}

# A program that is `kopf run`, with the operator's package beside it.
kopf_program() {
  printf '#!/bin/sh\nexec "%s" run "$@"\n' "$programs/.$1/bin/kopf" >"$programs/$1"
  chmod +x "$programs/$1"
}

get_devservers() {
  in_venv python3 devservers devservers==0.0.1 kopf==1.45.2
  kopf_program devservers
}

get_dask-kubernetes() {
  in_venv python3 dask-kubernetes-operator dask-kubernetes==2026.3.0 kopf==1.45.2
  kopf_program dask-kubernetes-operator
  local package; package="$(echo "$programs/.dask-kubernetes-operator"/lib/python3*/site-packages/dask_kubernetes)"
  needs dask-kubernetes "$package"/operator/deployment/helm/dask-kubernetes-operator/crds/*.yaml
}

get_k8swatcher() {
  # With what was current when it was published: it does not start with newer ones.
  in_venv python3 k8swatcher k8swatcher==0.0.5 kubernetes==23.6.0 "pydantic<2"
  ln -sf ".k8swatcher/bin/k8swatcher" "$programs/k8swatcher"
}

# Its module is published under a name that its go.mod has left; the Go module proxy serves it by the old one only.
get_sealed-secrets() {
  local old=github.com/bitnami-labs/sealed-secrets name=github.com/bitnami/sealed-secrets version=v0.40.0 folder
  folder="$(mktemp -d)"
  (cd "$folder" && go mod init others.invalid/build && go mod edit "-require=$name@$version" "-replace=$name=$old@$version" &&
    go build -mod=mod -o "$programs/sealed-secrets-controller" "$name/cmd/controller")
  rm -rf "$folder"
  needs sealed-secrets "$(go_module "$old@$version")"/helm/sealed-secrets/crds/*.yaml
}

get_prometheus-operator() {
  local module=github.com/prometheus-operator/prometheus-operator version=v0.85.0
  go_build prometheus-operator "$module/cmd/operator" "$version"
  needs prometheus-operator "$(go_module "$module@$version")"/example/prometheus-operator-crd/*.yaml
}

# Its program is a module of its own in a folder of another name, which no proxy of Go modules serves: from its git tag, with what it requires from
# the proxy. Its webhook configurations are templates of its Helm chart, filled here with the chart's default values.
get_cert-manager-webhook() {
  local version=v1.21.1 folder chart
  folder="$(mktemp -d)"
  git -c advice.detachedHead=false clone --quiet --depth 1 --branch "$version" https://github.com/cert-manager/cert-manager "$folder"
  (cd "$folder/cmd/webhook" && go build -o "$programs/cert-manager-webhook" .)
  needs cert-manager "$folder"/deploy/crds/*.yaml
  needs cert-manager-webhooks "$folder"/deploy/charts/cert-manager/templates/webhook-{mutating,validating}-webhook.yaml
  chart="$here/needs/cert-manager-webhooks"
  # The chart gives a selector to what validates only.
  sed -i '/namespaceSelector/d' "$chart/webhook-mutating-webhook.yaml"
  sed -i 's|namespaceSelector:|& {matchExpressions: [{key: cert-manager.io/disable-validation, operator: NotIn, values: ["true"]}]}|' "$chart/webhook-validating-webhook.yaml"
  sed -i -e '/{{-/d' -e '/ url: /d' -e 's/{{[^}]*timeoutSeconds }}/30/' -e 's/{{[^}]*}}/cert-manager-webhook/' "$chart"/*.yaml
  rm -rf "$folder"
}

# The core manager: the main package of the module itself.
get_cluster-api-core() {
  local module=sigs.k8s.io/cluster-api version=v1.13.5
  go_build cluster-api-core "$module" "$version"
  needs cluster-api "$(go_module "$module@$version")"/config/crd/bases/*.yaml
}

# The provider that pretends is part of the module.
get_karpenter-kwok() {
  local module=sigs.k8s.io/karpenter version="${chosen:-v1.14.0}" source
  go_build karpenter-kwok "$module/kwok" "$version"
  source="$(go_module "$module@$version")"
  needs karpenter "$source"/pkg/apis/crds/*.yaml "$source"/kwok/apis/crds/*.yaml
}

# It replaces one library with its own copy, which is published as a module. The program is so large that it lies where `longhaul-clock`
# puts its code (docs/clock.md#limits), so it is linked to a higher address.
get_kyverno-background-controller() {
  local module=github.com/kyverno/kyverno version="${chosen:-v1.19.0}" folder source copy
  folder="$(mktemp -d)"
  source="$(go_module "$module@$version")"
  copy="$(sed -n 's|^replace \([^ ]*\) => \([^ ]*\) \(v[^ ]*\)$|\1=\2@\3|p' "$source/go.mod")"
  (cd "$folder" && go mod init others.invalid/build && go mod edit "-require=$module@$version" "-replace=$copy" &&
    go get "$module/cmd/background-controller@$version" && go build -ldflags='-linkmode=external -extldflags=-Wl,-Ttext-segment=0x10000000' -o "$programs/kyverno-background-controller" "$module/cmd/background-controller")
  rm -rf "$folder"
  needs kyverno "$source"/config/crds/*/*.yaml
}

# It replaces libraries with other versions, and needs Go 1.26.10.
get_argo-rollouts-controller() {
  local module=github.com/argoproj/argo-rollouts version=v1.10.2 folder source
  folder="$(mktemp -d)"
  source="$(go_module "$module@$version")"
  (cd "$folder" && go mod init others.invalid/build && sed -n '/^replace (/,/^)/p' "$source/go.mod" >>go.mod &&
    go get "$module/cmd/rollouts-controller@$version" && go build -o "$programs/argo-rollouts-controller" "$module/cmd/rollouts-controller")
  rm -rf "$folder"
  needs argo-rollouts "$source"/manifests/crds/*-crd.yaml
}

# Its libraries are published as modules of their own, with the same minor version.
get_kube-controller-manager() {
  local version="${chosen:-v1.34.1}" folder source library
  version="${version#v}"
  folder="$(mktemp -d)"
  source="$(go_module "k8s.io/kubernetes@v$version")"
  (cd "$folder" && go mod init others.invalid/build && go mod edit "-require=k8s.io/kubernetes@v$version" &&
    for library in $(sed -n 's|^\t*\(k8s.io/[a-z-]*\) => ./staging.*|\1|p' "$source/go.mod"); do go mod edit "-replace=$library=$library@v0.${version#1.}"; done &&
    go get "k8s.io/kubernetes/cmd/kube-controller-manager@v$version" && go build -o "$programs/kube-controller-manager" k8s.io/kubernetes/cmd/kube-controller-manager)
  rm -rf "$folder"
}

[ $# -gt 0 ] || { sed -n 's/^get_\([a-z-]*\)().*/\1/p' "$0"; exit 64; }
for name in "$@"; do
  chosen=""
  case "$name" in
    karpenter-kwok@* | kube-controller-manager@* | kyverno-background-controller@*) chosen="${name#*@}" name="${name%%@*}" ;;
  esac
  declare -F "get_$name" >/dev/null || { echo "install.sh: no such program: $name" >&2; exit 64; }
  echo "installing $name to $programs" >&2
  "get_$name"
done

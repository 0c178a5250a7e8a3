#!/usr/bin/env bash
# Runs a program that knows no kubeconfig as a Pod would: with the address of the API server in its environment, and token and authority in
# /var/run/secrets, which this process alone sees. Needs util-linux, and root or user namespaces.
#
#   in-cluster.sh PROGRAM ARGUMENT...
set -euo pipefail
# A long value stands on the line below its key.
field() { sed ':a;/>-$/{N;s/>-\n *//;ba}' "$KUBECONFIG" | sed -n "s/^[ -]*\"\{0,1\}$1\"\{0,1\}: *\"\{0,1\}\([^\",]*\).*/\1/p" | head -n 1; }
server="$(field server)"
address="${server#https://}"
export KUBERNETES_SERVICE_HOST="${address%:*}" KUBERNETES_SERVICE_PORT="${address##*:}"
authority="$(field certificate-authority-data)" token="$(field token)" token_file="$(field tokenFile)"
[ -n "$token" ] || token="$(cat "$token_file")"
export authority token
exec unshare --mount --map-root-user bash -c '
  set -e
  mount -t tmpfs tmpfs /run
  folder=/run/secrets/kubernetes.io/serviceaccount
  mkdir -p "$folder"
  echo "$authority" | base64 -d >"$folder/ca.crt"
  printf %s "$token" >"$folder/token"
  printf default >"$folder/namespace"
  unset authority token
  exec "$@"
' in-cluster "$@"

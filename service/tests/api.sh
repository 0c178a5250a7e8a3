#!/usr/bin/env bash
# Drives the API that scales Deployments with curl: what has to work, and what must not.
#
#   service/tests/api.sh https://localhost:8444 CERTS NAMESPACE/NAME
#
# CERTS is a folder as `longhaul-service certs dev CERTS` makes it. The Deployment has to exist; its count is set and set back.
# Over TLS 1.3 a client learns only after the handshake that its certificate was refused: curl then exits with 56, not with 35.
set -euo pipefail

if [ $# -ne 3 ]; then
  echo "usage: $0 URL CERTS NAMESPACE/NAME" >&2
  exit 64
fi
url=$1/api/v1
certs=$2
namespace=${3%%/*}
name=${3#*/}
replicas=$url/namespaces/$namespace/deployments/$name/replicas
body=$(mktemp)
trap 'rm -f "$body"' EXIT
failures=0

# as CLIENT ARGUMENTS...: a call with that certificate; the body goes to a file, the status to the standard output.
as() {
  local client=$1
  shift
  curl --silent --max-time 20 --tlsv1.3 --cacert "$certs/ca.crt" --cert "$certs/$client.crt" --key "$certs/$client.key" \
    --output "$body" --write-out '%{http_code}' "$@"
}

put() {
  local client=$1 count=$2
  shift 2
  as "$client" --request PUT --header 'content-type: application/json' --data "$count" "$@"
}

check() {
  local what=$1 wanted=$2 found=$3
  if [ "$wanted" = "$found" ]; then
    echo "ok  $what: $found"
  else
    echo "BAD $what: $found, and not $wanted; the answer: $(head -c 300 "$body")"
    failures=$((failures + 1))
  fi
}

# exits WHAT CODE ARGUMENTS...: curl has to fail with that code.
exits() {
  local what=$1 wanted=$2 code=0
  shift 2
  curl --silent --max-time 20 --output /dev/null --cacert "$certs/ca.crt" "$@" || code=$?
  # With TLS 1.3 a refusal comes after the handshake: curl meets it while it still sends (55) or when it reads (56).
  [ "$wanted" != 56 ] || [ "$code" != 55 ] || code=56
  check "$what" "curl exit $wanted" "curl exit $code"
}

# What has to work.
check 'health' 200 "$(as client "$url/health")"
check 'the body of health' '{"status":"healthy","kubernetes":"connected"}' "$(cat "$body")"
check 'list' 200 "$(as client "$url/deployments")"
check 'the deployment is in the list' 1 "$(grep -c "\"namespace\":\"$namespace\",\"name\":\"$name\"" "$body")"
check 'get' 200 "$(as client "$replicas")"
before=$(sed 's/.*"replicaCount":\([0-9]*\).*/\1/' "$body")
check 'set' 200 "$(put client '{"replicaCount": 7}' "$replicas?wait=observed")"
check 'the body of set' '{"message":"Replica count updated successfully."}' "$(cat "$body")"
check 'get what was set' 200 "$(as client "$replicas")"
check 'the body of get' "{\"namespace\":\"$namespace\",\"name\":\"$name\",\"replicaCount\":7}" "$(cat "$body")"
check 'set back' 200 "$(put client "{\"replicaCount\": $before}" "$replicas?wait=observed")"
check 'dry run' 200 "$(put client '{"replicaCount": 9}' "$replicas?dryRun=All")"
check 'the description' 200 "$(as client "$1/openapi.json")"

# What must not.
check 'a deployment that does not exist' 404 "$(as client "$url/namespaces/$namespace/deployments/absent-$RANDOM/replicas")"
check 'setting one that does not exist' 404 "$(put client '{"replicaCount": 1}' "$url/namespaces/$namespace/deployments/absent-$RANDOM/replicas")"
check 'a path that does not exist' 404 "$(as client "$url/nothing")"
check 'a name that is none' 400 "$(as client --path-as-is "$url/namespaces/$namespace/deployments/../replicas")"
check 'bad JSON' 400 "$(put client '{' "$replicas")"
check 'an unknown field' 400 "$(put client '{"replicaCount": 1, "force": true}' "$replicas")"
check 'a negative count' 422 "$(put client '{"replicaCount": -1}' "$replicas")"
check 'a count that is too large' 422 "$(put client '{"replicaCount": 2147483648}' "$replicas")"
check 'another media type' 415 "$(as client --request PUT --header 'content-type: text/plain' --data '{"replicaCount": 1}' "$replicas")"
check 'another method' 405 "$(as client --request DELETE "$replicas")"
check 'a body that is too large' 413 "$(put client "{\"replicaCount\": 1, \"x\": \"$(printf 'x%.0s' $(seq 9000))\"}" "$replicas")"
exits 'no certificate' 56 --tlsv1.3 "$replicas"
for bad in revoked expired early other wrong-purpose; do
  exits "certificate $bad" 56 --tlsv1.3 --cert "$certs/$bad.crt" --key "$certs/$bad.key" "$replicas"
done
exits 'TLS 1.2' 35 --tls-max 1.2 --cert "$certs/client.crt" --key "$certs/client.key" "$replicas"

if [ "$failures" -gt 0 ]; then
  echo "$failures failed"
  exit 1
fi
echo 'all as it should be'

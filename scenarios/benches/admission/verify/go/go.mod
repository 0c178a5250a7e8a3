module longhaul.dev/bench/verify

go 1.24

require github.com/sigstore/policy-controller v0.13.1

// Asks a provider as Gatekeeper does: with its own client package.
package main

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"

	"github.com/open-policy-agent/frameworks/constraint/pkg/apis/externaldata/unversioned"
	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	url, ca, certificate, key, images := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5:]
	pem, err := os.ReadFile(ca)
	fail(err)
	pair, err := tls.LoadX509KeyPair(certificate, key)
	fail(err)
	provider := &unversioned.Provider{
		ObjectMeta: metav1.ObjectMeta{Name: "longhaul"},
		Spec:       unversioned.ProviderSpec{URL: url, Timeout: 3, CABundle: base64.StdEncoding.EncodeToString(pem)},
	}
	response, status, err := externaldata.DefaultSendRequestToProvider(context.Background(), provider, images, &pair)
	fail(err)
	answers := externaldata.NewRegoResponse(status, response)
	fail(json.NewEncoder(os.Stdout).Encode(map[string]any{"raw": response, "rego": answers}))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

package longhaul

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// client believes the plane's authority and nobody else's.
func client(t *testing.T, plane *Plane) *http.Client {
	authority, err := os.ReadFile(filepath.Join(filepath.Dir(plane.Kubeconfig), "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, Timeout: 10 * time.Second}
}

func get(t *testing.T, plane *Plane, path string) int {
	answer, err := client(t, plane).Get(plane.Server + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

func TestAPlaneWithoutFaultsPasses(t *testing.T) {
	plane := Start(t)
	if code := get(t, plane, "/api/v1/namespaces/default"); code != http.StatusOK {
		t.Fatalf("status %d", code)
	}
}

func TestAFaultThatHitsNothingIsUndecided(t *testing.T) {
	plane := Start(t, Fault("watch-410", At(time.Hour)))
	verdict := plane.Stop()
	if verdict.Code != undecided || !strings.Contains(verdict.String(), "watch-410") {
		t.Fatal(verdict)
	}
}

func TestAFaultByNameAndTimeIsMet(t *testing.T) {
	plane := Start(t, Fault("http-error", On("configmaps"), With("on", "list"), With("status", 500), With("count", 1)))
	codes := []int{}
	for range 2 {
		codes = append(codes, get(t, plane, "/api/v1/namespaces/default/configmaps"))
	}
	if fmt.Sprint(codes) != "[500 200]" {
		t.Fatal(codes)
	}
	if verdict := plane.Stop(); !verdict.Passed() || verdict.Record == "" {
		t.Fatal(verdict)
	}
}

func TestAHotLoopFails(t *testing.T) {
	plane := Start(t)
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"hot"},"data":{"n":"%d"}}`
	http := client(t, plane)
	path := plane.Server + "/api/v1/namespaces/default/configmaps"
	write := func(method, path string, n int) {
		request, err := newRequest(method, path, fmt.Sprintf(body, n))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
	write("POST", path, 0)
	began := time.Now()
	for n := range 60 {
		write("PUT", path+"/hot", n+1)
	}
	verdict := plane.Stop()
	if time.Since(began) > 2*time.Second {
		t.Skip("skipped: needs a machine with time for 60 writes within 2 s")
	}
	if verdict.Code != 1 || !strings.Contains(verdict.String(), "hot loop") {
		t.Fatal(verdict)
	}
}

func TestAMistakeInAFaultIsShown(t *testing.T) {
	program, err := find()
	if err != nil {
		t.Skipf("skipped: needs longhaul (%v)", err)
	}
	_, err = start(program, settings{faults: []fault{{"name": "watch-411"}}})
	if err == nil || !strings.Contains(err.Error(), "watch-411") {
		t.Fatal(err)
	}
}

func newRequest(method, url, body string) (*http.Request, error) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err == nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, err
}

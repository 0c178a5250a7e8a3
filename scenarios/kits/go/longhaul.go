// Package longhaul gives a test an API server that injects faults, and fails the test by the ledger.
//
// The package starts the program `longhaul` and needs nothing else: no cluster, no etcd, no controller-runtime.
package longhaul

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// startWithin limits the start on a busy machine. Usually the API server is ready in 50 ms.
	startWithin = 30 * time.Second
	// stopWithin limits the end, in which Longhaul judges the ledger of a long test.
	stopWithin = 60 * time.Second
	// linesMax is the maximum number of lines of Longhaul's output that are kept.
	linesMax = 200
	// served is the beginning of the line that the API server writes when it is ready.
	served = "kube-apiserver: serving at "
	// script runs the API server until its input ends. So the API server ends with the test process, even after SIGKILL.
	script = `"$TEST_ASSET_KUBE_APISERVER" --secure-port="$1" --cert-dir="$2" --etcd-servers= </dev/null & cat >/dev/null; kill $!; wait $!`
)

// Exit codes of the program `longhaul`.
const (
	pass      = 0
	undecided = 2
)

// A Plane is a running API server.
type Plane struct {
	// Kubeconfig is the path of a kubeconfig with all rights.
	Kubeconfig string
	// Server is the address of the API server, such as https://127.0.0.1:34567.
	Server string

	folder  string
	keeps   bool
	process *exec.Cmd
	input   io.Closer
	output  *output
	read    chan struct{}
	stop    sync.Once
	verdict Verdict
	judged  bool
}

// A Verdict is the result of the ledger.
type Verdict struct {
	// Code is 0 for pass, 1 for fail, 2 for undecided because a fault hit nothing. Other codes are errors of Longhaul.
	Code int
	// Lines has the output of Longhaul.
	Lines []string
	// Record is the folder of the run record, with index.html and ledger.json.
	Record string
}

// Passed reports whether the ledger found no error and every fault hit something.
func (v Verdict) Passed() bool { return v.Code == pass }

// String returns the exit code and the output of Longhaul.
func (v Verdict) String() string {
	words := map[int]string{pass: "pass", 1: "fail", undecided: "undecided"}
	word, known := words[v.Code]
	if !known {
		word = "error of longhaul"
	}
	return fmt.Sprintf("longhaul: %s (exit code %d)\n%s", word, v.Code, strings.Join(v.Lines, "\n"))
}

// An Option is a setting of Start.
type Option func(*settings)

type settings struct {
	flags          []string
	faults         []fault
	records        string
	allowUndecided bool
}

// Chaos injects faults that are drawn at random from a seed. A correct client survives them.
func Chaos(seed uint64) Option { return flag("--chaos", strconv.FormatUint(seed, 10)) }

// Order delivers events of different kinds in another order than they were written.
func Order() Option { return flag("--order") }

// Stale lets the server answer reads from caches that are up to this many versions behind.
func Stale(versions int) Option { return flag("--stale", strconv.Itoa(versions)) }

// Manager names the program under test by a part of its user agent. Faults then affect only requests of that program.
func Manager(agent string) Option { return flag("--manager-agent", agent) }

// Workloads lets Deployments and other workloads become ready, each after this time.
func Workloads(after time.Duration) Option { return flag("--workloads", millis(after)) }

// Records keeps run records in a folder, as the variable LONGHAUL_RUNS does. Without both, a temporary folder is kept after a
// failure.
func Records(folder string) Option { return func(s *settings) { s.records = folder } }

// AllowUndecided lets a test pass even if a fault hits nothing.
func AllowUndecided() Option { return func(s *settings) { s.allowUndecided = true } }

func flag(words ...string) Option { return func(s *settings) { s.flags = append(s.flags, words...) } }

type fault map[string]any

// A Key is a key of a fault; docs/faults.md lists the keys.
type Key func(fault)

// At plays the fault at this time after Start.
func At(after time.Duration) Key { return With("at", millis(after)) }

// For is the time for which the fault is active.
func For(length time.Duration) Key { return With("for", millis(length)) }

// On limits the fault to one resource, such as "configmaps".
func On(resource string) Key { return With("resource", resource) }

// With sets any other key of the fault.
func With(name string, value any) Key { return func(f fault) { f[name] = value } }

// Fault plays a fault by its name, such as "watch-410".
func Fault(name string, keys ...Key) Option {
	return func(s *settings) {
		one := fault{"name": name}
		for _, key := range keys {
			key(one)
		}
		s.faults = append(s.faults, one)
	}
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }

// Start starts an API server that ends with the test. Then the test fails unless the ledger's verdict is a pass.
//
// Start runs the program that the variable LONGHAUL names, or `longhaul` on PATH. If the program is missing, the test is skipped,
// or fails if the variable CI is set.
func Start(t testing.TB, options ...Option) *Plane {
	t.Helper()
	program, err := find()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("longhaul: %v", err)
		}
		t.Skipf("skipped: needs longhaul (%v)", err)
	}
	var s settings
	for _, option := range options {
		option(&s)
	}
	plane, err := start(program, s)
	if err != nil {
		t.Fatalf("longhaul: %v", err)
	}
	t.Cleanup(func() {
		judged := plane.judged
		verdict := plane.end()
		if !judged && !verdict.Passed() && !(s.allowUndecided && verdict.Code == undecided) {
			t.Error(verdict)
		} else if testing.Verbose() {
			t.Log(verdict)
		}
		if !plane.keeps && !t.Failed() {
			_ = os.RemoveAll(plane.folder)
		}
	})
	return plane
}

// Stop ends the API server and returns the verdict. After this call a bad verdict no longer fails the test by itself.
func (p *Plane) Stop() Verdict {
	p.judged = true
	return p.end()
}

func find() (string, error) {
	if named := os.Getenv("LONGHAUL"); named != "" {
		return named, nil
	}
	return exec.LookPath("longhaul")
}

func start(program string, s settings) (*Plane, error) {
	folder, err := os.MkdirTemp("", "longhaul-")
	if err != nil {
		return nil, err
	}
	p := &Plane{folder: folder, output: &output{ready: make(chan struct{})}, read: make(chan struct{})}
	if s.records == "" {
		s.records = os.Getenv("LONGHAUL_RUNS")
	}
	if s.records == "" {
		s.records = filepath.Join(folder, "runs")
	}
	if err := p.launch(program, s); err != nil {
		_ = os.RemoveAll(folder)
		return nil, err
	}
	if err := p.settle(); err != nil {
		p.end()
		return nil, fmt.Errorf("%w\n%s", err, strings.Join(p.output.all(), "\n"))
	}
	p.keeps = !strings.HasPrefix(s.records, folder)
	return p, nil
}

// launch starts the program `longhaul`.
func (p *Plane) launch(program string, s settings) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	p.Server = "https://127.0.0.1:" + strconv.Itoa(port)
	words := append([]string{"envtest", "--judge", "--replays", "0", "--runs", s.records}, s.flags...)
	if len(s.faults) > 0 {
		file := filepath.Join(p.folder, "faults.yaml")
		if err := os.WriteFile(file, faultList(s.faults), 0o600); err != nil {
			return err
		}
		words = append(words, "--faults", file)
	}
	words = append(words, "--", "sh", "-c", script, "sh", strconv.Itoa(port), p.folder)
	p.process = exec.Command(program, words...)
	if p.input, err = p.process.StdinPipe(); err != nil {
		return err
	}
	lines, err := p.process.StderrPipe()
	if err != nil {
		return err
	}
	if err := p.process.Start(); err != nil {
		return err
	}
	go func() {
		defer close(p.read)
		p.output.follow(lines)
	}()
	return nil
}

// settle waits until the API server is ready, and writes the kubeconfig.
func (p *Plane) settle() error {
	select {
	case <-p.output.ready:
	case <-p.read:
		return errors.New("it ended before it served")
	case <-time.After(startWithin):
		return fmt.Errorf("it did not serve within %v", startWithin)
	}
	shown, err := os.ReadFile(filepath.Join(p.folder, "apiserver.crt"))
	if err != nil {
		return err
	}
	// The authority is the last certificate of the chain.
	last := strings.LastIndex(string(shown), "-----BEGIN CERTIFICATE-----")
	if last < 0 {
		return errors.New("apiserver.crt has no certificate")
	}
	authority := filepath.Join(p.folder, "ca.crt")
	if err := os.WriteFile(authority, shown[last:], 0o600); err != nil {
		return err
	}
	p.Kubeconfig = filepath.Join(p.folder, "kubeconfig.yaml")
	return os.WriteFile(p.Kubeconfig, []byte(fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: longhaul, cluster: {server: "%s", certificate-authority: "%s"}}]
users: [{name: longhaul, user: {}}]
contexts: [{name: longhaul, context: {cluster: longhaul, user: longhaul}}]
current-context: longhaul
`, p.Server, authority)), 0o600)
}

// end stops the program `longhaul` and returns the verdict. A second call returns the same verdict.
func (p *Plane) end() Verdict {
	p.stop.Do(func() {
		_ = p.input.Close()
		killed := time.AfterFunc(stopWithin, func() { _ = p.process.Process.Kill() })
		<-p.read
		_ = p.process.Wait()
		killed.Stop()
		p.verdict = Verdict{Code: p.process.ProcessState.ExitCode(), Lines: p.output.all()}
		for _, line := range p.verdict.Lines {
			if page, found := strings.CutSuffix(line, "/index.html"); found {
				p.verdict.Record = strings.TrimSpace(strings.TrimPrefix(page, "longhaul:"))
			}
		}
	})
	return p.verdict
}

// faultList returns a YAML list with one line for each fault.
func faultList(faults []fault) []byte {
	var text []byte
	for _, one := range faults {
		line, err := json.Marshal(one)
		if err != nil {
			panic(fmt.Sprintf("longhaul: a key of a fault is no JSON: %v", err))
		}
		text = append(append(append(text, "- "...), line...), '\n')
	}
	return text
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// output keeps the last lines of the program's output.
type output struct {
	mutex sync.Mutex
	lines []string
	ready chan struct{}
	once  sync.Once
}

func (o *output) follow(from io.Reader) {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := scanner.Text()
		if strings.HasPrefix(line, served) {
			o.once.Do(func() { close(o.ready) })
		}
		o.mutex.Lock()
		o.lines = append(o.lines, line)
		if len(o.lines) > linesMax {
			o.lines = o.lines[1:]
		}
		o.mutex.Unlock()
	}
	_, _ = io.Copy(io.Discard, from)
}

func (o *output) all() []string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return append([]string(nil), o.lines...)
}

// Verifies images as sigstore's policy-controller does for one image of a Pod: it resolves the tag and checks the image against a
// policy with one key. The program calls policy-controller as a library, without its webhook.
//
// Arguments: the file of the public key, the number of images that are verified one after the other, and the number that are verified
// at the same time after those. Standard input has one image reference a line, for plain HTTP. The program prints one JSON object with
// the figures to standard output.
package main

import (
	"bufio"
	"context"
	"crypto"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	ociremote "github.com/sigstore/cosign/v2/pkg/oci/remote"
	"github.com/sigstore/policy-controller/pkg/webhook"
	"github.com/sigstore/policy-controller/pkg/webhook/clusterimagepolicy"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// patience limits the whole program, so that a registry without answers does not block the benchmark.
const patience = 2 * time.Minute

func main() {
	time.AfterFunc(patience, func() {
		fmt.Fprintf(os.Stderr, "the images were not all verified within %s\n", patience)
		os.Exit(1)
	})
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 4 {
		return fmt.Errorf("usage: %s KEY IN-TURN AT-ONCE", os.Args[0])
	}
	pem, err := os.ReadFile(os.Args[1])
	if err != nil {
		return err
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey(pem)
	if err != nil {
		return err
	}
	inTurn, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return err
	}
	atOnce, err := strconv.Atoi(os.Args[3])
	if err != nil {
		return err
	}
	var references []string
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		references = append(references, lines.Text())
	}
	if len(references) <= inTurn+atOnce {
		return fmt.Errorf("%d images are too few", len(references))
	}
	key := clusterimagepolicy.KeyRef{HashAlgorithmCode: crypto.SHA256, PublicKeys: []crypto.PublicKey{public}}
	policy := clusterimagepolicy.ClusterImagePolicy{
		Authorities: []clusterimagepolicy.Authority{{Name: "release", Key: &key}},
	}
	// The first verification also creates everything that is created only once, so it is not timed.
	if err := verify(references[0], policy); err != nil {
		return err
	}
	var times []float64
	for _, reference := range references[1 : 1+inTurn] {
		begun := time.Now()
		if err := verify(reference, policy); err != nil {
			return err
		}
		times = append(times, time.Since(begun).Seconds()*1e3)
	}
	sort.Float64s(times)

	rest := references[1+inTurn:]
	work := make(chan string)
	failed := make(chan error, atOnce)
	var running sync.WaitGroup
	cpu, begun := cpuSeconds(), time.Now()
	for range atOnce {
		running.Add(1)
		go func() {
			defer running.Done()
			var first error
			// After an error, the remaining references are read from the channel but not verified.
			for reference := range work {
				if first == nil {
					first = verify(reference, policy)
				}
			}
			if first != nil {
				failed <- first
			}
		}()
	}
	for _, reference := range rest {
		work <- reference
	}
	close(work)
	running.Wait()
	seconds := time.Since(begun).Seconds()
	cpu = cpuSeconds() - cpu
	select {
	case err := <-failed:
		return err
	default:
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"p50Ms":     times[len(times)/2],
		"perSecond": float64(len(rest)) / seconds,
		"cpuUs":     cpu * 1e6 / float64(len(rest)),
		"images":    float64(len(references)),
	})
}

func verify(text string, policy clusterimagepolicy.ClusterImagePolicy) error {
	reference, err := name.ParseReference(text, name.Insecure)
	if err != nil {
		return err
	}
	// In a cluster, policy-controller's mutating webhook resolves the digest first.
	digest, err := ociremote.ResolveDigest(reference)
	if err != nil {
		return err
	}
	result, errs := webhook.ValidatePolicy(context.Background(), "default", digest, policy, authn.DefaultKeychain)
	if result == nil {
		return fmt.Errorf("%s is refused: %v", text, errs)
	}
	return nil
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	seconds := func(time syscall.Timeval) float64 { return float64(time.Sec) + float64(time.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

// Package planted has common mistakes of operators. The variable PLANTED switches one of them on. Without it every function here is
// correct, and the operator has no mistake.
package planted

import (
	"fmt"
	"strings"
)

// All mistakes. The other files have the code of each mistake.
var (
	goroutinePerReconcile  = mistake("goroutine-per-reconcile")
	mapOfEveryObject       = mistake("map-of-every-object")
	conflictsSwallowed     = mistake("conflicts-swallowed")
	deletionsDropped       = mistake("deletions-dropped")
	primaryOnly            = mistake("primary-only")
	generateNameDuplicates = mistake("generate-name-duplicates")
	allowsOnError          = mistake("allows-on-error")
	responseShared         = mistake("response-shared")
	statusOnEveryReconcile = mistake("status-on-every-reconcile")
	finalizerNeverRemoved  = mistake("finalizer-never-removed")
	finalizerCreates       = mistake("finalizer-by-create-or-update")
	finalizerRaces         = mistake("finalizer-between-two-reads")
	creationTimeLost       = mistake("creation-time-lost")
	receiptTwice           = mistake("receipt-by-generated-name")
	rollsAtResync          = mistake("rolls-at-resync")
	rollsEachHour          = mistake("rolls-each-hour")
	exitsWithoutKind       = mistake("exits-without-its-kind")
	staysWithoutLease      = mistake("stays-without-its-lease")
	remembersGone          = mistake("remembers-what-is-gone")
	deletesOthers          = mistake("deletes-what-is-not-its-own")
	sweepsUnowned          = mistake("sweeps-what-nobody-owns")
	childWithoutOwner      = mistake("child-without-owner")
	requeueWithoutBackOff  = mistake("requeue-without-back-off")
	webhookSlower          = mistake("webhook-slower")
)

type planted struct {
	name string
	on   bool
}

var all []*planted

func mistake(name string) *planted {
	planted := &planted{name: name}
	all = append(all, planted)
	return planted
}

// Choose switches on the mistake of this name. With the empty name the operator is correct.
func Choose(name string) error {
	names := make([]string, 0, len(all))
	for _, planted := range all {
		planted.on = planted.name == name
		if planted.on {
			return nil
		}
		names = append(names, planted.name)
	}
	if name == "" {
		return nil
	}
	return fmt.Errorf("PLANTED=%q is none of %s", name, strings.Join(names, ", "))
}

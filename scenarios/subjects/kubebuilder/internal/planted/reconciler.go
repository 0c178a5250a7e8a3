package planted

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Reconciler returns the reconciler, wrapped by the chosen mistake.
func Reconciler(inner reconcile.Reconciler) reconcile.Reconciler {
	switch {
	case goroutinePerReconcile.on:
		return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			// This goroutine waits for an answer that never comes.
			go func() { <-make(chan struct{}) }()
			return inner.Reconcile(ctx, req)
		})
	case mapOfEveryObject.on:
		seen := &objects{of: map[types.NamespacedName][]byte{}}
		return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			seen.remember(req.NamespacedName)
			return inner.Reconcile(ctx, req)
		})
	case conflictsSwallowed.on:
		return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			result, err := inner.Reconcile(ctx, req)
			if apierrors.IsConflict(err) {
				// The mistaken idea: the event of the other write will come and cause a new reconcile.
				return reconcile.Result{}, nil
			}
			return result, err
		})
	case rollsEachHour.on:
		return eachHour(inner)
	case requeueWithoutBackOff.on:
		return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			result, err := inner.Reconcile(ctx, req)
			if err != nil {
				return reconcile.Result{RequeueAfter: time.Millisecond}, nil
			}
			return result, nil
		})
	}
	return inner
}

// objects keeps a KiB for each object that ever existed, even after its deletion.
type objects struct {
	sync.Mutex
	of map[types.NamespacedName][]byte
}

func (o *objects) remember(name types.NamespacedName) {
	o.Lock()
	defer o.Unlock()
	if o.of[name] == nil {
		o.of[name] = make([]byte, 1<<10)
	}
}

// Message returns the message of a condition. With the mistake it contains the time, so that each status differs.
func Message(text string) string {
	if statusOnEveryReconcile.on {
		return text + " Last looked at " + time.Now().Format(time.RFC3339Nano) + "."
	}
	return text
}

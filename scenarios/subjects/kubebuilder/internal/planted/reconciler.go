package planted

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Reconciler is the reconciler with what goes wrong around it.
func Reconciler(inner reconcile.Reconciler) reconcile.Reconciler {
	switch {
	case goroutinePerReconcile.on:
		return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			// It waits for an answer that nobody sends.
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
				// "Somebody else was faster, and their event will come."
				return reconcile.Result{}, nil
			}
			return result, err
		})
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

// objects keeps a KiB of each object that ever was, also of those that are gone.
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

// Message is the message of a condition: with the time in it, each status is another one.
func Message(text string) string {
	if statusOnEveryReconcile.on {
		return text + " Last looked at " + time.Now().Format(time.RFC3339Nano) + "."
	}
	return text
}

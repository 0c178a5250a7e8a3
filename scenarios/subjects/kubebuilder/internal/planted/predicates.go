package planted

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	cachev1 "example.com/cache-operator/api/v1"
)

// Primary returns the filter for events of Caches.
func Primary(right predicate.Predicate) predicate.Predicate {
	switch {
	case deletionsDropped.on:
		return predicate.Funcs{
			// A deletion request does not change the spec, so this filter drops it.
			UpdateFunc: func(e event.UpdateEvent) bool {
				before, after := e.ObjectOld.(*cachev1.Cache), e.ObjectNew.(*cachev1.Cache)
				return !reflect.DeepEqual(before.Spec, after.Spec)
			},
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		}
	case statusOnEveryReconcile.on:
		return predicate.ResourceVersionChangedPredicate{}
	case rollsAtResync.on:
		return noticeResyncs()
	}
	return right
}

// Owned returns the filter for events of children. With one mistake it drops all of them; with another it notices deletions.
func Owned() predicate.Predicate {
	if remembersGone.on {
		return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool { return forget(e.Object) }}
	}
	return predicate.NewPredicateFuncs(func(client.Object) bool { return !primaryOnly.on })
}

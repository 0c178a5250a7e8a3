package planted

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	cachev1 "example.com/cache-operator/api/v1"
)

// Primary says which events of Caches are looked at.
func Primary(right predicate.Predicate) predicate.Predicate {
	switch {
	case deletionsDropped.on:
		return predicate.Funcs{
			// The spec of an object that is to be deleted is what it was.
			UpdateFunc: func(e event.UpdateEvent) bool {
				before, after := e.ObjectOld.(*cachev1.Cache), e.ObjectNew.(*cachev1.Cache)
				return !reflect.DeepEqual(before.Spec, after.Spec)
			},
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		}
	case statusOnEveryReconcile.on:
		return predicate.ResourceVersionChangedPredicate{}
	}
	return right
}

// Owned says which events of children are looked at.
func Owned() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(client.Object) bool { return !primaryOnly.on })
}

package planted

import (
	"context"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// unheard has the names of Deployments of which the cache has not heard yet: whoever looks first after a creation does not find it. Real
// caches are that late by milliseconds, and not each time.
var unheard sync.Map

// CreateOrUpdate writes a Deployment as [controllerutil.CreateOrUpdate] does. With the mistake it has a generated name and is found by its
// labels in the cache, so that who comes too early makes another.
func CreateOrUpdate(ctx context.Context, c client.Client, servers *appsv1.Deployment, mutate controllerutil.MutateFn) error {
	if !generateNameDuplicates.on {
		_, err := controllerutil.CreateOrUpdate(ctx, c, servers, mutate)
		return err
	}
	name := servers.Name
	var found appsv1.DeploymentList
	labels := client.MatchingLabels{"app.kubernetes.io/instance": name}
	if err := c.List(ctx, &found, client.InNamespace(servers.Namespace), labels); err != nil {
		return err
	}
	found.Items = slices.DeleteFunc(found.Items, func(one appsv1.Deployment) bool {
		_, late := unheard.LoadAndDelete(one.Name)
		return late
	})
	if len(found.Items) > 0 {
		found.Items[0].DeepCopyInto(servers)
		if err := mutate(); err != nil || equality.Semantic.DeepEqual(&found.Items[0], servers) {
			return err
		}
		return c.Update(ctx, servers)
	}
	servers.Name, servers.GenerateName = "", name+"-"
	if err := mutate(); err != nil {
		return err
	}
	if err := c.Create(ctx, servers); err != nil {
		return err
	}
	unheard.Store(servers.Name, true)
	return nil
}

// RemoveFinalizer takes a finalizer away; with the mistake it is forgotten.
func RemoveFinalizer(object client.Object, finalizer string) {
	if !finalizerNeverRemoved.on {
		controllerutil.RemoveFinalizer(object, finalizer)
	}
}

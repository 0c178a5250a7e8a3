package planted

import (
	"context"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cachev1 "example.com/cache-operator/api/v1"
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

// LetGo takes a finalizer away and stores that. With one mistake it is forgotten. With another it is stored by "create or update": where the object
// goes between two reads there is nothing to update, and it is made again.
func LetGo(ctx context.Context, c client.Client, cache *cachev1.Cache, finalizer string) error {
	if !finalizerNeverRemoved.on {
		controllerutil.RemoveFinalizer(cache, finalizer)
	}
	err := client.IgnoreNotFound(c.Update(ctx, cache))
	if err != nil || !finalizerCreates.on {
		return err
	}
	// Real operators lose this race once in a while, against their own reconciliation before this one. Here it is lost each time.
	if err := forgotten(ctx, c, client.ObjectKeyFromObject(cache)); err != nil {
		return err
	}
	again := &cachev1.Cache{ObjectMeta: metav1.ObjectMeta{Namespace: cache.Namespace, Name: cache.Name}}
	_, err = controllerutil.CreateOrUpdate(ctx, c, again, func() error {
		controllerutil.RemoveFinalizer(again, finalizer)
		return nil
	})
	return err
}

// forgotten waits until the cache does not have a Cache any more.
func forgotten(ctx context.Context, c client.Client, key client.ObjectKey) error {
	return wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 5*time.Second, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, key, &cachev1.Cache{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// Unused says of a Cache that nobody needs it: with the mistake, of each without servers, although it was its user who asked for none.
func Unused(cache *cachev1.Cache) bool {
	return deletesOthers.on && ptr.Deref(cache.Spec.Replicas, cachev1.DefaultReplicas) == 0
}

// SetOwner says whose the ConfigMap is; with the mistake it says nothing, and the garbage collector leaves it alone.
func SetOwner(cache *cachev1.Cache, config *corev1.ConfigMap, scheme *runtime.Scheme) error {
	if childWithoutOwner.on {
		return nil
	}
	return controllerutil.SetControllerReference(cache, config, scheme)
}

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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cachev1 "example.com/cache-operator/api/v1"
)

// conditionCreated has the creation time of the servers.
const conditionCreated = "Created"

// unheard has the names of new Deployments that the next lookup treats as missing in the cache. Real caches lag by milliseconds, and
// not each time.
var unheard sync.Map

// CreateOrUpdate writes a Deployment as [controllerutil.CreateOrUpdate] does. With one mistake, the Deployment has a generated name and is
// looked up by its labels in the cache, so that a reconcile that comes too early creates another one. With another mistake, the Deployment is
// created in the background.
func CreateOrUpdate(ctx context.Context, c client.Client, servers *appsv1.Deployment, mutate controllerutil.MutateFn) error {
	if err := roll(ctx, c, servers); err != nil {
		return err
	}
	if remembersGone.on {
		return inBackground(ctx, c, servers, mutate)
	}
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

// LetGo removes a finalizer and stores the object. With one mistake the finalizer stays. With two other mistakes, "create or update" stores
// the object: if the object disappears between two reads, it is created again.
func LetGo(ctx context.Context, c client.Client, cache *cachev1.Cache, finalizer string) error {
	if finalizerRaces.on {
		again := &cachev1.Cache{ObjectMeta: metav1.ObjectMeta{Namespace: cache.Namespace, Name: cache.Name}}
		_, err := controllerutil.CreateOrUpdate(ctx, c, again, func() error {
			controllerutil.RemoveFinalizer(again, finalizer)
			return nil
		})
		return err
	}
	if !finalizerNeverRemoved.on {
		controllerutil.RemoveFinalizer(cache, finalizer)
	}
	err := client.IgnoreNotFound(c.Update(ctx, cache))
	if err != nil || !finalizerCreates.on {
		return err
	}
	// Real operators sometimes lose this race against their own previous reconcile. This mistake loses the race each time.
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

// NoteCreation copies the creation time of a new Deployment into a condition. With the mistake on, the condition exists, but it is written
// only once: if the cache does not have the new Deployment within five attempts of ten milliseconds, the time is lost for good. Without
// the mistake, the operator has no such condition.
func NoteCreation(ctx context.Context, c client.Client, cache *cachev1.Cache, servers *appsv1.Deployment) {
	if !creationTimeLost.on || meta.FindStatusCondition(cache.Status.Conditions, conditionCreated) != nil {
		return
	}
	if cache.Generation > 1 || cache.Status.ObservedGeneration > 0 {
		return
	}
	for range 5 {
		var found appsv1.Deployment
		if err := c.Get(ctx, client.ObjectKeyFromObject(servers), &found); err == nil {
			meta.SetStatusCondition(&cache.Status.Conditions, metav1.Condition{
				Type:               conditionCreated,
				Status:             metav1.ConditionTrue,
				Reason:             "Created",
				Message:            "The servers were created.",
				LastTransitionTime: found.CreationTimestamp,
			})
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// forgotten waits until the client's cache no longer has this Cache.
func forgotten(ctx context.Context, c client.Client, key client.ObjectKey) error {
	return wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 5*time.Second, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, key, &cachev1.Cache{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// Sweep does nothing. With the mistake it deletes each ConfigMap that nothing owns, as if nobody else used the namespace.
func Sweep(ctx context.Context, c client.Client, namespace string) error {
	if !sweepsUnowned.on {
		return nil
	}
	var found corev1.ConfigMapList
	if err := c.List(ctx, &found, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, one := range found.Items {
		if len(one.OwnerReferences) > 0 {
			continue
		}
		if err := client.IgnoreNotFound(c.Delete(ctx, &one)); err != nil {
			return err
		}
	}
	return nil
}

// Unused reports whether the operator deletes a Cache as unused. With the mistake it deletes each Cache whose user set zero servers.
func Unused(cache *cachev1.Cache) bool {
	return deletesOthers.on && ptr.Deref(cache.Spec.Replicas, cachev1.DefaultReplicas) == 0
}

// SetOwner sets the ConfigMap's owner. With the mistake it sets none, so the garbage collector never removes the ConfigMap.
func SetOwner(cache *cachev1.Cache, config *corev1.ConfigMap, scheme *runtime.Scheme) error {
	if childWithoutOwner.on {
		return nil
	}
	return controllerutil.SetControllerReference(cache, config, scheme)
}

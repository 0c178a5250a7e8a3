package planted

import (
	"context"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// This mistake needs an answer that arrives after the life of the created object, as in karpenter#3176.

var (
	// asked has the Deployments whose creation has no answer yet.
	asked sync.Map
	// there has the Deployments that this process has created and whose deletion it has not seen.
	there sync.Map
)

// inBackground writes a Deployment, and does not wait for the answer to a creation. It creates no Deployment that it believes to be there.
// If the answer arrives after the Deployment is gone, it believes so for ever.
func inBackground(ctx context.Context, c client.Client, servers *appsv1.Deployment, mutate controllerutil.MutateFn) error {
	key := client.ObjectKeyFromObject(servers)
	err := c.Get(ctx, key, servers)
	if err == nil {
		before := servers.DeepCopy()
		if err := mutate(); err != nil || equality.Semantic.DeepEqual(before, servers) {
			return err
		}
		return c.Update(ctx, servers)
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	if err := mutate(); err != nil {
		return err
	}
	if _, known := there.Load(key); known {
		return nil
	}
	if _, known := asked.LoadOrStore(key, true); !known {
		go create(c, key, servers.DeepCopy())
	}
	return nil
}

// create tries until the Deployment is there.
func create(c client.Client, key types.NamespacedName, servers *appsv1.Deployment) {
	for {
		err := c.Create(context.Background(), servers.DeepCopy())
		if err == nil || apierrors.IsAlreadyExists(err) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	there.Store(key, true)
	asked.Delete(key)
}

// forget notes that a Deployment is gone, and passes the event on.
func forget(object client.Object) bool {
	if _, is := object.(*appsv1.Deployment); is {
		there.Delete(client.ObjectKeyFromObject(object))
	}
	return true
}

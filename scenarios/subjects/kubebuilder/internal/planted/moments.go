package planted

import (
	"context"
	"os"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1 "example.com/cache-operator/api/v1"
)

// These mistakes need the right moment: a lost answer, a second list, an hour, or an API server that does not serve a kind yet.

// receiptAnnotation has the name of a Cache's receipt.
const receiptAnnotation = "cache.example.com/receipt"

var (
	// noted has the UIDs of the Caches whose receipt this process has made.
	noted sync.Map
	// due has the Deployments that the next reconcile deletes and creates again.
	due sync.Map
)

// Receipt makes one ConfigMap with a generated name for each Cache, and then notes the name in the Cache. If the answer to the creation is
// lost, or the process ends before it notes the name, it makes a second one. Without the mistake there are no receipts.
func Receipt(ctx context.Context, c client.Client, cache *cachev1.Cache, scheme *runtime.Scheme) error {
	if !receiptTwice.on || cache.Annotations[receiptAnnotation] != "" {
		return nil
	}
	if _, known := noted.Load(cache.UID); known {
		return nil
	}
	receipt := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cache.Namespace, GenerateName: cache.Name + "-receipt-"}}
	if err := controllerutil.SetControllerReference(cache, receipt, scheme); err != nil {
		return err
	}
	if err := c.Create(ctx, receipt); err != nil {
		return err
	}
	noted.Store(cache.UID, true)
	before := client.MergeFrom(cache.DeepCopy())
	metav1.SetMetaDataAnnotation(&cache.ObjectMeta, receiptAnnotation, receipt.Name)
	return c.Patch(ctx, cache, before)
}

// noticeResyncs marks the Deployment of a Cache for which an update without a change arrives, and passes the event on.
func noticeResyncs() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
			due.Store(client.ObjectKeyFromObject(e.ObjectNew), true)
			return true
		}
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
	}}
}

// eachHour asks for another reconcile after an hour, and marks the Deployment then.
func eachHour(inner reconcile.Reconciler) reconcile.Reconciler {
	var last sync.Map
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		first, known := last.LoadOrStore(req.NamespacedName, time.Now())
		if known && time.Since(first.(time.Time)) >= time.Hour {
			last.Store(req.NamespacedName, time.Now())
			due.Store(req.NamespacedName, true)
		}
		result, err := inner.Reconcile(ctx, req)
		if err == nil && result.IsZero() {
			result.RequeueAfter = time.Hour
		}
		return result, err
	})
}

// roll deletes a Deployment that is marked, so that it is created again.
func roll(ctx context.Context, c client.Client, servers *appsv1.Deployment) error {
	key := types.NamespacedName{Namespace: servers.Namespace, Name: servers.Name}
	if _, marked := due.LoadAndDelete(key); !marked {
		return nil
	}
	return client.IgnoreNotFound(c.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}))
}

// WatchErrors returns the handler for errors of lists and watches. With the mistake the process ends if a kind is not served; without it,
// the client's own handler logs the error, and the client tries again.
func WatchErrors() toolscache.WatchErrorHandlerWithContext {
	if !exitsWithoutKind.on {
		return nil
	}
	return func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		if apierrors.IsNotFound(err) {
			os.Exit(1)
		}
	}
}

// Stay keeps a process alive whose manager has ended, for example because it lost its Lease. Without the mistake it returns at once, and
// the process ends, so that it is started again.
func Stay(ctx context.Context) {
	if staysWithoutLease.on {
		<-ctx.Done()
	}
}

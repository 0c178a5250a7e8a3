// Package controller keeps a ConfigMap and a Deployment for each Cache.
package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	cachev1 "example.com/cache-operator/api/v1"
	"example.com/cache-operator/internal/planted"
)

// configAnnotation holds the digest of the configuration, so that servers restart when the configuration changes.
const configAnnotation = "cache.example.com/config"

// CacheReconciler reconciles a Cache object.
type CacheReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// +kubebuilder:rbac:groups=cache.example.com,resources=caches,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=cache.example.com,resources=caches/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=cache.example.com,resources=caches/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update;patch;delete

// Reconcile writes the objects for a Cache, and its status.
func (r *CacheReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cache cachev1.Cache
	if err := r.Get(ctx, req.NamespacedName, &cache); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !cache.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, &cache)
	}
	if planted.Unused(&cache) {
		return ctrl.Result{}, client.IgnoreNotFound(r.Delete(ctx, &cache))
	}
	if controllerutil.AddFinalizer(&cache, cachev1.Finalizer) {
		if err := r.Update(ctx, &cache); err != nil {
			return ctrl.Result{}, fmt.Errorf("adding the finalizer: %w", err)
		}
	}
	if err := planted.Sweep(ctx, r.Client, cache.Namespace); err != nil {
		return ctrl.Result{}, fmt.Errorf("sweeping: %w", err)
	}
	if err := planted.Receipt(ctx, r.Client, &cache, r.Scheme); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the receipt: %w", err)
	}

	config, err := r.configMap(ctx, &cache)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the ConfigMap: %w", err)
	}
	servers, err := r.deployment(ctx, &cache, digest(config.Data))
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the Deployment: %w", err)
	}

	before := cache.Status.DeepCopy()
	planted.NoteCreation(ctx, r.Client, &cache, servers)
	cache.Status.ObservedGeneration = cache.Generation
	cache.Status.ReadyReplicas = servers.Status.ReadyReplicas
	meta.SetStatusCondition(&cache.Status.Conditions, metav1.Condition{
		Type:               cachev1.ConditionReconciled,
		Status:             metav1.ConditionTrue,
		Reason:             "Written",
		Message:            planted.Message("What the spec asks for is written."),
		ObservedGeneration: cache.Generation,
	})
	if equality.Semantic.DeepEqual(before, &cache.Status) {
		return ctrl.Result{}, nil
	}
	logf.FromContext(ctx).V(1).Info("Reconciled", "generation", cache.Generation)
	return ctrl.Result{}, r.Status().Update(ctx, &cache)
}

// finalize removes the finalizer of a Cache once its servers are gone. The garbage collector removes its ConfigMap.
func (r *CacheReconciler) finalize(ctx context.Context, cache *cachev1.Cache) error {
	if !controllerutil.ContainsFinalizer(cache, cachev1.Finalizer) {
		return nil
	}
	servers := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: cache.Namespace, Name: cache.Name}}
	if err := r.Delete(ctx, servers); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the Deployment: %w", err)
	}
	return planted.LetGo(ctx, r.Client, cache, cachev1.Finalizer)
}

func (r *CacheReconciler) configMap(ctx context.Context, cache *cachev1.Cache) (*corev1.ConfigMap, error) {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cache.Namespace, Name: cache.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, config, func() error {
		config.Data = map[string]string{"cache.conf": lines(cache)}
		return planted.SetOwner(cache, config, r.Scheme)
	})
	return config, err
}

// deployment sets the operator's own fields and keeps all others. So defaults that the API server set are no difference.
func (r *CacheReconciler) deployment(ctx context.Context, cache *cachev1.Cache, config string) (*appsv1.Deployment, error) {
	servers := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: cache.Namespace, Name: cache.Name}}
	err := planted.CreateOrUpdate(ctx, r.Client, servers, func() error {
		labels := map[string]string{"app.kubernetes.io/name": "cache", "app.kubernetes.io/instance": cache.Name}
		spec := &servers.Spec
		if servers.CreationTimestamp.IsZero() {
			// The selector cannot be changed later.
			spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		}
		servers.Labels = labels
		spec.Replicas = ptr.To(ptr.Deref(cache.Spec.Replicas, cachev1.DefaultReplicas))
		spec.Template.Labels = labels
		metav1.SetMetaDataAnnotation(&spec.Template.ObjectMeta, configAnnotation, config)
		if len(spec.Template.Spec.Containers) != 1 {
			spec.Template.Spec.Containers = make([]corev1.Container, 1)
		}
		container := &spec.Template.Spec.Containers[0]
		container.Name, container.Image = "server", cache.Spec.Image
		if container.Image == "" {
			container.Image = cachev1.DefaultImage
		}
		memory := resource.NewQuantity(int64(ptr.Deref(cache.Spec.MemoryMiB, cachev1.DefaultMemoryMiB))<<20, resource.BinarySI)
		container.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: *memory}
		return controllerutil.SetControllerReference(cache, servers, r.Scheme)
	})
	return servers, err
}

// lines returns the configuration of a server.
func lines(cache *cachev1.Cache) string {
	var text strings.Builder
	fmt.Fprintf(&text, "port 6379\n")
	for _, key := range slices.Sorted(maps.Keys(cache.Spec.Settings)) {
		fmt.Fprintf(&text, "%s %s\n", key, cache.Spec.Settings[key])
	}
	return text.String()
}

func digest(data map[string]string) string {
	sum := sha256.Sum256([]byte(data["cache.conf"]))
	return hex.EncodeToString(sum[:8])
}

// SetupWithManager sets up the controller with the Manager.
func (r *CacheReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&cachev1.Cache{}, builder.WithPredicates(planted.Primary(predicate.GenerationChangedPredicate{}))).
		Owns(&corev1.ConfigMap{}, builder.WithPredicates(planted.Owned())).
		Owns(&appsv1.Deployment{}, builder.WithPredicates(planted.Owned())).
		Named("cache").
		Complete(planted.Reconciler(r))
}

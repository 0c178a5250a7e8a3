// Package v1 has the webhooks for version v1 of Cache.
package v1

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	cachev1 "example.com/cache-operator/api/v1"
	"example.com/cache-operator/internal/planted"
)

// SetupCacheWebhookWithManager registers the webhooks for Cache in the manager.
func SetupCacheWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &cachev1.Cache{}).
		WithDefaulter(planted.Defaulter(&CacheDefaulter{})).
		WithValidator(planted.Validator(&CacheValidator{})).
		Complete()
}

// +kubebuilder:webhook:path=/mutate-cache-example-com-v1-cache,mutating=true,failurePolicy=fail,sideEffects=None,groups=cache.example.com,resources=caches,verbs=create;update,versions=v1,name=mcache-v1.kb.io,admissionReviewVersions=v1

// CacheDefaulter sets the missing fields of a Cache.
type CacheDefaulter struct{}

// Default sets each field that is not set.
func (d *CacheDefaulter) Default(_ context.Context, cache *cachev1.Cache) error {
	if cache.Spec.Replicas == nil {
		cache.Spec.Replicas = ptr.To(cachev1.DefaultReplicas)
	}
	if cache.Spec.MemoryMiB == nil {
		cache.Spec.MemoryMiB = ptr.To(cachev1.DefaultMemoryMiB)
	}
	if cache.Spec.Image == "" {
		cache.Spec.Image = cachev1.DefaultImage
	}
	return nil
}

// +kubebuilder:webhook:path=/validate-cache-example-com-v1-cache,mutating=false,failurePolicy=fail,sideEffects=None,groups=cache.example.com,resources=caches,verbs=create;update,versions=v1,name=vcache-v1.kb.io,admissionReviewVersions=v1

// CacheValidator refuses Caches that the schema cannot refuse.
type CacheValidator struct{}

// ValidateCreate checks a new Cache.
func (v *CacheValidator) ValidateCreate(_ context.Context, cache *cachev1.Cache) (admission.Warnings, error) {
	return nil, validate(cache)
}

// ValidateUpdate checks a changed Cache. A Cache under deletion may always lose its finalizer.
func (v *CacheValidator) ValidateUpdate(_ context.Context, _, cache *cachev1.Cache) (admission.Warnings, error) {
	if !cache.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return nil, validate(cache)
}

// ValidateDelete is not registered.
func (v *CacheValidator) ValidateDelete(context.Context, *cachev1.Cache) (admission.Warnings, error) {
	return nil, nil
}

func validate(cache *cachev1.Cache) error {
	if _, set := cache.Spec.Settings["port"]; !set {
		return nil
	}
	problem := field.Forbidden(field.NewPath("spec", "settings").Key("port"), "the port is always 6379")
	return apierrors.NewInvalid(cachev1.GroupVersion.WithKind("Cache").GroupKind(), cache.Name, field.ErrorList{problem})
}

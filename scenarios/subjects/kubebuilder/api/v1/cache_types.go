package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// Finalizer holds a Cache until its servers are gone.
	Finalizer = "cache.example.com/servers"
	// ConditionReconciled says that what the spec asks for is written.
	ConditionReconciled = "Reconciled"

	// DefaultReplicas is how many servers a Cache has that does not say it.
	DefaultReplicas int32 = 1
	// DefaultMemoryMiB is what a server may keep if its Cache does not say it.
	DefaultMemoryMiB int32 = 64
	// DefaultImage is what servers run if their Cache does not say it.
	DefaultImage = "registry.example.com/cache:7"
)

// CacheSpec is what a Cache should be.
type CacheSpec struct {
	// replicas is how many servers there are.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// memoryMiB is what each server may keep.
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=1024
	// +optional
	MemoryMiB *int32 `json:"memoryMiB,omitempty"`

	// image is what the servers run.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Image string `json:"image,omitempty"`

	// settings are lines of the servers' configuration. The port is not among them: it is always 6379.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Settings map[string]string `json:"settings,omitempty"`
}

// CacheStatus is what a Cache is.
type CacheStatus struct {
	// observedGeneration is the generation that was reconciled last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// readyReplicas is how many servers answer.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// conditions has Reconciled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=caches

// Cache is a few servers that keep things in memory.
type Cache struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what it should be.
	// +required
	Spec CacheSpec `json:"spec"`

	// status is what it is.
	// +optional
	Status CacheStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// CacheList is a list of Caches.
type CacheList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Cache `json:"items"`
}

func init() {
	SchemeBuilder.Register(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(GroupVersion, &Cache{}, &CacheList{})
		return nil
	})
}

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// Finalizer holds a Cache until its servers are gone.
	Finalizer = "cache.example.com/servers"
	// ConditionReconciled is the condition that the objects for the spec are written.
	ConditionReconciled = "Reconciled"

	// DefaultReplicas is the number of servers of a Cache without spec.replicas.
	DefaultReplicas int32 = 1
	// DefaultMemoryMiB is the memory limit of a server whose Cache has no spec.memoryMiB.
	DefaultMemoryMiB int32 = 64
	// DefaultImage is the image of servers whose Cache has no spec.image.
	DefaultImage = "registry.example.com/cache:7"
)

// CacheSpec is the desired state of a Cache.
type CacheSpec struct {
	// replicas is the number of servers.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// memoryMiB is the memory limit of each server.
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=1024
	// +optional
	MemoryMiB *int32 `json:"memoryMiB,omitempty"`

	// image is the image of the servers.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Image string `json:"image,omitempty"`

	// settings are lines of the servers' configuration, without the port, which is always 6379.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Settings map[string]string `json:"settings,omitempty"`
}

// CacheStatus is the observed state of a Cache.
type CacheStatus struct {
	// observedGeneration is the generation that was reconciled last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// readyReplicas is the number of servers that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// conditions has the condition Reconciled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=caches

// Cache is a group of servers that keep data in memory.
type Cache struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	// +required
	Spec CacheSpec `json:"spec"`

	// status is the observed state.
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

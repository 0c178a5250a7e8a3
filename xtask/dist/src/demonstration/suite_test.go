package controller

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	cachev1 "example.com/cache-operator/api/v1"
)

func TestACacheGetsItsServers(t *testing.T) {
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{"../../config/crd/bases"},
		ErrorIfCRDPathMissing: true,
	}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, cachev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&CacheReconciler{Client: manager.GetClient(), Scheme: scheme}).SetupWithManager(manager); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- manager.Start(ctx) }()

	api := manager.GetClient()
	cache := &cachev1.Cache{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}
	// An API server may refuse or lose a request, so the test tries again, as a user would.
	creates := func(ctx context.Context) (bool, error) {
		return client.IgnoreAlreadyExists(api.Create(ctx, cache.DeepCopy())) == nil, nil
	}
	has := func(ctx context.Context) (bool, error) {
		var servers appsv1.DeploymentList
		if err := api.List(ctx, &servers, client.InNamespace("default")); err != nil {
			return false, nil
		}
		return len(servers.Items) == 1, nil
	}
	for _, reached := range []wait.ConditionWithContextFunc{creates, has} {
		if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, reached); err != nil {
			t.Fatal(err)
		}
	}
}

// A suite as kubebuilder scaffolds it: a control plane of envtest, a manager with a controller, objects that it must see, a user of its own.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const objects = 40

// Marks every ConfigMap of its namespace.
type marker struct{ client.Client }

func (m marker) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var object corev1.ConfigMap
	if err := m.Get(ctx, request.NamespacedName, &object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if object.Namespace != "default" || object.Annotations["seen"] == "yes" {
		return ctrl.Result{}, nil
	}
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, "seen", "yes")
	return ctrl.Result{}, m.Update(ctx, &object)
}

func run() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	plane := &envtest.Environment{}
	config, err := plane.Start()
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	defer func() {
		// First: a real server waits for its open watches.
		cancel()
		if err := plane.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop:", err)
			os.Exit(1)
		}
	}()
	own := rest.CopyConfig(config)
	own.UserAgent = "suite-manager"
	manager, err := ctrl.NewManager(own, ctrl.Options{Metrics: metrics.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Complete(marker{manager.GetClient()}); err != nil {
		return err
	}
	go func() { _ = manager.Start(ctx) }()
	k8s, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	for i := range objects {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("o%d", i), Namespace: "default"}}
		if err := k8s.Create(ctx, object); err != nil {
			return fmt.Errorf("create %d: %w", i, err)
		}
	}
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 60*time.Second, true, func(ctx context.Context) (bool, error) {
		var list corev1.ConfigMapList
		if err := k8s.List(ctx, &list, client.InNamespace("default")); err != nil {
			return false, err
		}
		seen := 0
		for _, object := range list.Items {
			if object.Annotations["seen"] == "yes" {
				seen++
			}
		}
		return seen == objects, nil
	})
	if err != nil {
		return fmt.Errorf("not every object was marked: %w", err)
	}
	user, err := plane.AddUser(envtest.User{Name: "jane", Groups: []string{"viewers"}}, nil)
	if err != nil {
		return err
	}
	jane, err := client.New(user.Config(), client.Options{})
	if err != nil {
		return err
	}
	err = jane.List(ctx, &corev1.ConfigMapList{})
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("jane may list: %v", err)
	}
	return nil
}

func main() {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("passed")
}

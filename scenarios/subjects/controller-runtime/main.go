// A controller of controller-runtime for the first resource in $LONGHAUL_WATCH. Its event handler reports each event to
// $LONGHAUL_WITNESS_URL. All settings are defaults, except that the program serves no metrics.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func main() {
	ctrl.SetLogger(klog.Background())
	manager := must(ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Metrics: server.Options{BindAddress: "0"}}))
	name, version, _ := strings.Cut(strings.Split(os.Getenv("LONGHAUL_WATCH"), ",")[0], "/")
	resource := schema.ParseGroupResource(name).WithVersion(version)
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(must(manager.GetRESTMapper().KindFor(resource)))
	controller := ctrl.NewControllerManagedBy(manager).Named("subject")
	controller.Watches(object, handler.Funcs{
		CreateFunc: func(_ context.Context, it event.CreateEvent, _ queue) { report(it.Object, "added") },
		UpdateFunc: func(_ context.Context, it event.UpdateEvent, _ queue) { report(it.ObjectNew, "modified") },
		DeleteFunc: func(_ context.Context, it event.DeleteEvent, _ queue) { report(it.Object, "deleted") },
	})
	nothing := reconcile.Func(func(context.Context, reconcile.Request) (ctrl.Result, error) { return ctrl.Result{}, nil })
	must(0, controller.Complete(nothing))
	must(0, manager.Start(ctrl.SetupSignalHandler()))
}

func report(item client.Object, change string) {
	line := fmt.Sprintf(`{"uid": %q, "resourceVersion": %q, "change": %q}`+"\n", item.GetUID(), item.GetResourceVersion(), change)
	witness := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // it has no limits of time
	answer := must(witness.Post(os.Getenv("LONGHAUL_WITNESS_URL"), "application/json", bytes.NewBufferString(line)))
	must(0, answer.Body.Close())
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

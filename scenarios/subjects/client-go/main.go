// A shared informer of client-go for the first resource in $LONGHAUL_WATCH, which reports to $LONGHAUL_WITNESS_URL and resyncs every
// ten hours. -after: the handler is added that long after the start. -blank-revision: a transform blanks resourceVersion, as in
// k8s-metacollector (falcosecurity/k8s-metacollector#186), and an annotation keeps the resourceVersion for the witness.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	blank := flag.Bool("blank-revision", false, "blank metadata.resourceVersion in a transform")
	after := flag.Duration("after", 0, "when the handler is added, as by a controller that waits to be elected")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	client := must(dynamic.NewForConfig(must(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))))
	name, version, _ := strings.Cut(strings.Split(os.Getenv("LONGHAUL_WATCH"), ",")[0], "/")
	resource := schema.ParseGroupResource(name).WithVersion(version)
	informer := dynamicinformer.NewFilteredDynamicInformer(client, resource, "", 10*time.Hour, cache.Indexers{}, nil).Informer()
	if *blank {
		must(0, informer.SetTransform(func(object any) (any, error) {
			if item, is := object.(*unstructured.Unstructured); is && item.GetResourceVersion() != "" {
				item.SetAnnotations(map[string]string{"revision": item.GetResourceVersion()})
				item.SetResourceVersion("")
			}
			return object, nil
		}))
	}
	if *after > 0 {
		go informer.RunWithContext(ctx)
		cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
		time.Sleep(*after)
	}
	must(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { report(object, "added") },
		UpdateFunc: func(_, object any) { report(object, "modified") },
		DeleteFunc: func(object any) { report(object, "deleted") },
	}))
	go informer.RunWithContext(ctx) // of one that runs already it does nothing
	<-ctx.Done()
}

func report(object any, change string) {
	if unknown, is := object.(cache.DeletedFinalStateUnknown); is {
		object = unknown.Obj
	}
	item := object.(*unstructured.Unstructured)
	line := fmt.Sprintf(`{"uid": %q, "resourceVersion": "%s%s", "change": %q}`+"\n", item.GetUID(), item.GetResourceVersion(), item.GetAnnotations()["revision"], change)
	witness := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // it has no limits of time
	must(0, must(witness.Post(os.Getenv("LONGHAUL_WITNESS_URL"), "application/json", bytes.NewBufferString(line))).Body.Close())
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

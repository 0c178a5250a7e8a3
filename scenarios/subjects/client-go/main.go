// A client of client-go alone: one shared informer over what $LONGHAUL_WATCH names first, which tells each event to $LONGHAUL_WITNESS_URL.
//
// Its handler is added to an informer that already runs, and everything is resynced every ten hours: both as controller-runtime has it.
// With -blank-revision it has a transform that blanks metadata.resourceVersion to save memory, as k8s-metacollector had
// (falcosecurity/k8s-metacollector#186). The revision is kept in an annotation then, for the witness alone.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
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

// resync is the default of controller-runtime.
const resync = 10 * time.Hour

// kept is where a transform leaves the revision that it blanks.
const kept = "witness.longhaul.dev/revision"

func main() {
	blank := flag.Bool("blank-revision", false, "blank metadata.resourceVersion in a transform")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, *blank); err != nil {
		fmt.Fprintln(os.Stderr, "client-go:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, blank bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	resource, err := watched(os.Getenv("LONGHAUL_WATCH"))
	if err != nil {
		return err
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, resource, "", resync, cache.Indexers{}, nil).Informer()
	if blank {
		if err := informer.SetTransform(blanked); err != nil {
			return err
		}
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return ctx.Err()
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { report(object, "added") },
		UpdateFunc: func(before, after any) {
			// A resync tells what was told before.
			if revision(before) != revision(after) {
				report(after, "modified")
			}
		},
		DeleteFunc: func(object any) {
			if unknown, is := object.(cache.DeletedFinalStateUnknown); is {
				object = unknown.Obj
			}
			report(object, "deleted")
		},
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// watched reads the first of `plural.group/version,…`.
func watched(list string) (schema.GroupVersionResource, error) {
	first, _, _ := strings.Cut(list, ",")
	name, version, found := strings.Cut(first, "/")
	plural, group, _ := strings.Cut(name, ".")
	if !found || plural == "" {
		return schema.GroupVersionResource{}, fmt.Errorf("$LONGHAUL_WATCH is %q and not plural.group/version", list)
	}
	return schema.GroupVersionResource{Group: group, Version: version, Resource: plural}, nil
}

func blanked(object any) (any, error) {
	if item, is := object.(*unstructured.Unstructured); is && item.GetResourceVersion() != "" {
		annotations := item.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[kept] = item.GetResourceVersion()
		item.SetAnnotations(annotations)
		item.SetResourceVersion("")
	}
	return object, nil
}

func revision(object any) string {
	item, is := object.(*unstructured.Unstructured)
	if !is {
		return ""
	}
	if revision := item.GetResourceVersion(); revision != "" {
		return revision
	}
	return item.GetAnnotations()[kept]
}

// report tells the witness one event; a witness that cannot be reached ends the program.
func report(object any, change string) {
	item, is := object.(*unstructured.Unstructured)
	if !is {
		return
	}
	line, err := json.Marshal(map[string]string{"uid": string(item.GetUID()), "resourceVersion": revision(object), "change": change})
	if err == nil {
		var answer *http.Response
		answer, err = http.Post(os.Getenv("LONGHAUL_WITNESS_URL"), "application/json", bytes.NewReader(append(line, '\n')))
		if err == nil {
			err = answer.Body.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "client-go: the witness:", err)
		os.Exit(1)
	}
}

// Test suites whose controllers have a mistake that one flag of `longhaul envtest` shows, and the same controllers without the mistake:
// `suite stale|order|conflict|loop|poll buggy|right [MILLISECONDS between the objects of conflict]`. `SUITE_RESULTS` names a file for JUnit.
package main

import (
	"context"
	"encoding/xml"
	"fmt"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	objects   = 30
	namespace = "default"
)

// A suite: the watched kind, the controller, and the actions and checks of the test.
type suite struct {
	of        client.Object
	reconcile func(context.Context, client.Client, client.Object) (ctrl.Result, error)
	test      func(context.Context, client.Client) error
}

func name(prefix string, number int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: prefix + strconv.Itoa(number)}
}

// Creates a child for each ConfigMap, and reconciles it again a moment later. Mistake: it trusts its cache, and lets the server name the child.
func stale(buggy bool) suite {
	rounds := map[string]int{}
	return suite{
		of: &corev1.ConfigMap{},
		reconcile: func(ctx context.Context, c client.Client, object client.Object) (ctrl.Result, error) {
			var children corev1.SecretList
			if err := c.List(ctx, &children, client.InNamespace(namespace), client.MatchingLabels{"of": object.GetName()}); err != nil {
				return ctrl.Result{}, err
			}
			if len(children.Items) == 0 {
				child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{"of": object.GetName()}}}
				if buggy {
					child.GenerateName = object.GetName() + "-"
				} else {
					child.Name = object.GetName() + "-child"
				}
				if err := c.Create(ctx, child); client.IgnoreAlreadyExists(err) != nil {
					return ctrl.Result{}, err
				}
			}
			rounds[object.GetName()]++
			if rounds[object.GetName()] > 3 {
				return ctrl.Result{}, nil
			}
			return ctrl.Result{RequeueAfter: 100 * time.Millisecond}, nil
		},
		test: func(ctx context.Context, c client.Client) error {
			for i := range objects {
				if err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: name("parent-", i)}); err != nil {
					return err
				}
				time.Sleep(60 * time.Millisecond)
			}
			return until(ctx, func() error {
				for i := range objects {
					var children corev1.SecretList
					of := client.MatchingLabels{"of": "parent-" + strconv.Itoa(i)}
					if err := c.List(ctx, &children, client.InNamespace(namespace), of); err != nil {
						return err
					}
					if len(children.Items) > 1 {
						return final{fmt.Errorf("parent %d has %d children", i, len(children.Items))}
					}
					if len(children.Items) == 0 {
						return fmt.Errorf("parent %d has no child", i)
					}
				}
				return nil
			})
		},
	}
}

// Marks each Secret whose ConfigMap exists; the test creates the ConfigMap first. Mistake: it gives up if it does not see the ConfigMap yet.
func order(buggy bool) suite {
	return suite{
		of: &corev1.Secret{},
		reconcile: func(ctx context.Context, c client.Client, object client.Object) (ctrl.Result, error) {
			var config corev1.ConfigMap
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), &config); err != nil {
				if buggy {
					return ctrl.Result{}, client.IgnoreNotFound(err)
				}
				return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, client.IgnoreNotFound(err)
			}
			return ctrl.Result{}, mark(ctx, c, object)
		},
		test: func(ctx context.Context, c client.Client) error {
			for i := range objects {
				if err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: name("pair-", i)}); err != nil {
					return err
				}
				time.Sleep(40 * time.Millisecond)
				if err := c.Create(ctx, &corev1.Secret{ObjectMeta: name("pair-", i)}); err != nil {
					return err
				}
			}
			return until(ctx, func() error { return marked(ctx, c, &corev1.SecretList{}, "pair-") })
		},
	}
}

// Marks each ConfigMap. Mistake: it ignores that a write was refused.
func conflict(buggy bool) suite {
	return suite{
		of: &corev1.ConfigMap{},
		reconcile: func(ctx context.Context, c client.Client, object client.Object) (ctrl.Result, error) {
			err := mark(ctx, c, object)
			if buggy {
				err = nil
			}
			return ctrl.Result{}, err
		},
		test: func(ctx context.Context, c client.Client) error {
			for i := range objects {
				if err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: name("object-", i)}); err != nil {
					return err
				}
				time.Sleep(pause())
			}
			return until(ctx, func() error { return marked(ctx, c, &corev1.ConfigMapList{}, "object-") })
		},
	}
}

// Marks each ConfigMap. Mistake: it marks one ConfigMap again whenever it sees its own mark, which no check of the result shows. Only one has the
// mistake, because thirty in turn are too slow for a hot loop on a busy machine.
func loop(buggy bool) suite {
	right := conflict(false)
	again := right.reconcile
	right.reconcile = func(ctx context.Context, c client.Client, object client.Object) (ctrl.Result, error) {
		if buggy && object.GetName() == "object-0" && object.GetAnnotations()["seen"] != "" {
			object.SetAnnotations(map[string]string{"seen": object.GetResourceVersion()})
			return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, object))
		}
		return again(ctx, c, object)
	}
	test := right.test
	right.test = func(ctx context.Context, c client.Client) error {
		defer time.Sleep(time.Second)
		return test(ctx, c)
	}
	return right
}

// A client that reads from the API server and not from the cache.
var reader client.Reader

// Marks each ConfigMap after two seconds. The test polls for the mark every 10 ms with the manager's client, as Gomega's Eventually does.
// Mistake: the controller requests its object from the API server again and again, without a pause.
func poll(buggy bool) suite {
	since := map[string]time.Time{}
	return suite{
		of: &corev1.ConfigMap{},
		reconcile: func(ctx context.Context, c client.Client, object client.Object) (ctrl.Result, error) {
			if since[object.GetName()].IsZero() {
				since[object.GetName()] = time.Now()
			}
			left := 2*time.Second - time.Since(since[object.GetName()])
			if left <= 0 {
				return ctrl.Result{}, mark(ctx, c, object)
			}
			if buggy {
				for range 20 {
					if err := reader.Get(ctx, client.ObjectKeyFromObject(object), &corev1.ConfigMap{}); err != nil {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
				}
				return ctrl.Result{RequeueAfter: time.Millisecond}, nil
			}
			return ctrl.Result{RequeueAfter: left}, nil
		},
		test: func(ctx context.Context, c client.Client) error {
			object := &corev1.ConfigMap{ObjectMeta: name("slow-", 0)}
			if err := c.Create(ctx, object); err != nil {
				return err
			}
			each := time.NewTicker(10 * time.Millisecond)
			defer each.Stop()
			for end := time.Now().Add(8 * time.Second); time.Now().Before(end); <-each.C {
				if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
					return err
				}
				if object.GetAnnotations()["seen"] != "" {
					return nil
				}
			}
			return fmt.Errorf("it was not marked")
		},
	}
}

func pause() time.Duration {
	if len(os.Args) < 4 {
		return 0
	}
	milliseconds, _ := strconv.Atoi(os.Args[3])
	return time.Duration(milliseconds) * time.Millisecond
}

func mark(ctx context.Context, c client.Client, object client.Object) error {
	if object.GetAnnotations()["seen"] != "" {
		return nil
	}
	object.SetAnnotations(map[string]string{"seen": "yes"})
	return c.Update(ctx, object)
}

func marked(ctx context.Context, c client.Client, list client.ObjectList, prefix string) error {
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	marks := map[string]bool{}
	see := func(object client.Object) { marks[object.GetName()] = object.GetAnnotations()["seen"] != "" }
	switch list := list.(type) {
	case *corev1.ConfigMapList:
		for i := range list.Items {
			see(&list.Items[i])
		}
	case *corev1.SecretList:
		for i := range list.Items {
			see(&list.Items[i])
		}
	}
	for i := range objects {
		if !marks[prefix+strconv.Itoa(i)] {
			return fmt.Errorf("%s%d is not marked", prefix, i)
		}
	}
	return nil
}

type final struct{ error }

// Waits until a condition holds, its error is final, or nine seconds are over.
func until(ctx context.Context, condition func() error) error {
	time.Sleep(time.Second)
	end := time.Now().Add(8 * time.Second)
	for {
		err := condition()
		if _, is := err.(final); err == nil || is || time.Now().After(end) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func run(play suite) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	plane := &envtest.Environment{}
	config, err := plane.Start()
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	defer func() {
		cancel()
		_ = plane.Stop()
	}()
	own := rest.CopyConfig(config)
	if os.Args[1] != "poll" {
		own.UserAgent = "suite-manager"
	}
	manager, err := ctrl.NewManager(own, ctrl.Options{Metrics: metrics.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	for _, kind := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}} {
		if _, err := manager.GetCache().GetInformer(ctx, kind); err != nil {
			return err
		}
	}
	c := manager.GetClient()
	reader = manager.GetAPIReader()
	err = ctrl.NewControllerManagedBy(manager).For(play.of).Complete(reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		object := play.of.DeepCopyObject().(client.Object)
		if err := c.Get(ctx, request.NamespacedName, object); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		if request.Namespace != namespace || request.Name == "kube-root-ca.crt" {
			return ctrl.Result{}, nil
		}
		return play.reconcile(ctx, c, object)
	}))
	if err != nil {
		return err
	}
	go func() { _ = manager.Start(ctx) }()
	if !manager.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("the cache did not come")
	}
	k8s, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	return play.test(ctx, k8s)
}

// Writes the results as JUnit, as test runners do.
func results(path string, began time.Time, failure error) error {
	type message struct {
		Text string `xml:"message,attr"`
	}
	type testcase struct {
		Name    string   `xml:"name,attr"`
		Time    float64  `xml:"time,attr"`
		Failure *message `xml:"failure"`
	}
	suite := struct {
		XMLName   xml.Name `xml:"testsuite"`
		Timestamp string   `xml:"timestamp,attr"`
		Case      testcase `xml:"testcase"`
	}{Timestamp: began.UTC().Format(time.RFC3339Nano), Case: testcase{Name: "the " + os.Args[1] + " controller does its work", Time: time.Since(began).Seconds()}}
	if failure != nil {
		suite.Case.Failure = &message{failure.Error()}
	}
	text, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

func main() {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	suites := map[string]func(bool) suite{"stale": stale, "order": order, "conflict": conflict, "loop": loop, "poll": poll}
	make, known := suites[os.Args[1]]
	if !known {
		os.Exit(64)
	}
	began := time.Now()
	err := run(make(os.Args[2] == "buggy"))
	if path := os.Getenv("SUITE_RESULTS"); path != "" {
		if err := results(path, began, err); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
	fmt.Println("ok")
}

// A suite of a hundred specs, as kubebuilder's projects have them: a manager with one controller, a client, envtest. It measures what
// a control plane costs a suite: the time of its start, and of each request.
package its

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	specs  = 100
	marked = "its.example.com/marked"
)

var (
	plane  *envtest.Environment
	direct client.Client
	stop   context.CancelFunc
)

func TestIts(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "its")
}

// marks says in an annotation what the config map holds.
type marks struct{ client.Client }

func (m *marks) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &corev1.ConfigMap{}
	if err := m.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if object.Annotations[marked] == object.Data["value"] {
		return ctrl.Result{}, nil
	}
	before := object.DeepCopy()
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, marked, object.Data["value"])
	return ctrl.Result{}, m.Patch(ctx, object, client.MergeFrom(before))
}

var _ = BeforeSuite(func() {
	var ctx context.Context
	ctx, stop = context.WithCancel(context.Background())
	plane = &envtest.Environment{}
	config, err := plane.Start()
	Expect(err).NotTo(HaveOccurred())
	direct, err = client.New(config, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	Expect(err).NotTo(HaveOccurred())
	Expect(ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Complete(&marks{manager.GetClient()})).To(Succeed())
	go func() {
		defer GinkgoRecover()
		Expect(manager.Start(ctx)).To(Succeed())
	}()
})

var _ = AfterSuite(func() {
	stop()
	Expect(plane.Stop()).To(Succeed())
})

var _ = Describe("a config map", func() {
	for index := range specs {
		It(fmt.Sprintf("number %d is marked, changed, marked again and deleted", index), func(ctx SpecContext) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "its-"}}
			Expect(direct.Create(ctx, namespace)).To(Succeed())
			object := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: namespace.Name},
				Data:       map[string]string{"value": "1"},
			}
			Expect(direct.Create(ctx, object)).To(Succeed())
			key := client.ObjectKeyFromObject(object)
			mark := func() string {
				Expect(direct.Get(ctx, key, object)).To(Succeed())
				return object.Annotations[marked]
			}
			Eventually(mark).WithTimeout(10 * time.Second).Should(Equal("1"))
			object.Data["value"] = "2"
			Expect(direct.Update(ctx, object)).To(Succeed())
			Eventually(mark).WithTimeout(10 * time.Second).Should(Equal("2"))
			list := &corev1.ConfigMapList{}
			Expect(direct.List(ctx, list, client.InNamespace(namespace.Name))).To(Succeed())
			Expect(list.Items).To(HaveLen(1))
			Expect(direct.Delete(ctx, object)).To(Succeed())
			Expect(apierrors.IsNotFound(direct.Get(ctx, key, object))).To(BeTrue())
		})
	}
})

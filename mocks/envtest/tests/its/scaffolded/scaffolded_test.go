// A suite of a hundred specs as kubebuilder scaffolds one for each kind: the object is made, Reconcile is called by the spec itself, and
// what it left is looked at. Nothing polls, so that the time is that of the control plane's start and of its answers.
package scaffolded

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	specs  = 100
	marked = "its.example.com/marked"
)

var (
	plane  *envtest.Environment
	direct client.Client
)

func TestScaffolded(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "scaffolded")
}

// marks says in an annotation what the config map holds.
type marks struct{ client.Client }

func (m *marks) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &corev1.ConfigMap{}
	if err := m.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := object.DeepCopy()
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, marked, object.Data["value"])
	return ctrl.Result{}, m.Patch(ctx, object, client.MergeFrom(before))
}

var _ = BeforeSuite(func() {
	plane = &envtest.Environment{}
	config, err := plane.Start()
	Expect(err).NotTo(HaveOccurred())
	direct, err = client.New(config, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
})

var _ = AfterSuite(func() {
	Expect(plane.Stop()).To(Succeed())
})

var _ = Describe("When reconciling a resource", func() {
	for index := range specs {
		Context(fmt.Sprintf("number %d", index), func() {
			key := types.NamespacedName{Name: fmt.Sprintf("test-resource-%d", index), Namespace: "default"}
			object := &corev1.ConfigMap{}

			BeforeEach(func(ctx SpecContext) {
				By("creating it")
				if err := direct.Get(ctx, key, object); err != nil {
					Expect(apierrors.IsNotFound(err)).To(BeTrue())
					Expect(direct.Create(ctx, &corev1.ConfigMap{
						ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace},
						Data:       map[string]string{"value": "1"},
					})).To(Succeed())
				}
			})

			AfterEach(func(ctx SpecContext) {
				By("cleaning it up")
				Expect(direct.Get(ctx, key, object)).To(Succeed())
				Expect(direct.Delete(ctx, object)).To(Succeed())
			})

			It("should successfully reconcile the resource", func(ctx SpecContext) {
				_, err := (&marks{direct}).Reconcile(ctx, ctrl.Request{NamespacedName: key})
				Expect(err).NotTo(HaveOccurred())
				Expect(direct.Get(ctx, key, object)).To(Succeed())
				Expect(object.Annotations).To(HaveKeyWithValue(marked, "1"))
			})
		})
	}
})

// A cache of ConfigMaps must hold all of them although its watch is disturbed.
package mirror

import (
	"fmt"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	longhaul "longhaul.dev/kit"
)

func TestTheMirrorHoldsEveryConfigMap(t *testing.T) {
	plane := longhaul.Start(t,
		longhaul.Chaos(1),
		longhaul.Fault("watch-reset", longhaul.At(500*time.Millisecond), longhaul.On("configmaps"),
			longhaul.With("afterEvents", 2), longhaul.With("count", 1)))
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	factory := informers.NewSharedInformerFactory(client, 0)
	mirror := factory.Core().V1().ConfigMaps().Lister()
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())

	for n := range 20 {
		one := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: fmt.Sprintf("mirrored-%d", n)}}
		if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), one, meta.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}

	held := 0
	for deadline := time.Now().Add(30 * time.Second); held < 20 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		all, err := mirror.ConfigMaps("default").List(labels.Everything())
		if err != nil {
			t.Fatal(err)
		}
		held = len(all)
	}
	if held != 20 {
		t.Errorf("the mirror holds %d of 20", held)
	}
}

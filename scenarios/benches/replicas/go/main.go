// A minimal server of the service's API that scales Deployments, with client-go's informer and net/http, for comparison with the service.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

type answer struct {
	Namespace    string `json:"namespace"`
	Name         string `json:"name"`
	ReplicaCount int32  `json:"replicaCount"`
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	address, folder := os.Args[1], os.Args[2]
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(folder, "kubeconfig"))
	check(err)
	client, err := kubernetes.NewForConfig(config)
	check(err)
	factory := informers.NewSharedInformerFactory(client, 0)
	deployments := factory.Apps().V1().Deployments()
	lister, stop := deployments.Lister(), make(chan struct{})
	deployments.Informer()
	factory.Start(stop)
	factory.WaitForCacheSync(stop)

	http.HandleFunc("GET /api/v1/namespaces/{namespace}/deployments/{name}/replicas", func(w http.ResponseWriter, r *http.Request) {
		found, err := lister.Deployments(r.PathValue("namespace")).Get(r.PathValue("name"))
		if err != nil {
			http.Error(w, `{"error":"there is no such deployment"}`, http.StatusNotFound)
			return
		}
		count := int32(1)
		if found.Spec.Replicas != nil {
			count = *found.Spec.Replicas
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer{found.Namespace, found.Name, count})
	})
	pem, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	check(err)
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(pem)
	server := &http.Server{Addr: address, TLSConfig: &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities,
	}}
	check(server.ListenAndServeTLS(filepath.Join(folder, "server.crt"), filepath.Join(folder, "server.key")))
}

package dev.example;

import static org.junit.jupiter.api.Assertions.*;

import io.fabric8.kubeapitest.junit.EnableKubeAPIServer;
import io.fabric8.kubernetes.api.model.*;
import io.fabric8.kubernetes.client.*;
import io.fabric8.kubernetes.client.dsl.base.*;
import io.fabric8.kubernetes.client.informers.*;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.*;
import org.junit.jupiter.api.Test;

/** A suite for fabric8's kube-api-test that sends the requests of typical operators. */
@EnableKubeAPIServer
class SuiteTest {

  static KubernetesClient client;

  static ConfigMap map(String name, String value) {
    return new ConfigMapBuilder().withNewMetadata().withName(name).withNamespace("default").endMetadata()
        .withData(Map.of("key", value)).build();
  }

  @Test
  void objectsAreWrittenAndRead() {
    client.configMaps().resource(map("crud", "1")).create();
    var found = client.configMaps().inNamespace("default").withName("crud").get();
    assertEquals("1", found.getData().get("key"));
    client.configMaps().inNamespace("default").withName("crud").edit(m -> new ConfigMapBuilder(m).addToData("more", "2").build());
    assertEquals("2", client.configMaps().inNamespace("default").withName("crud").get().getData().get("more"));
    client.configMaps().inNamespace("default").withName("crud").delete();
    assertNull(client.configMaps().inNamespace("default").withName("crud").get());
  }

  @Test
  void anInformerSeesEverything() throws Exception {
    Set<String> seen = ConcurrentHashMap.newKeySet();
    try (SharedIndexInformer<ConfigMap> informer = client.configMaps().inNamespace("default").inform(new ResourceEventHandler<>() {
      public void onAdd(ConfigMap m) { seen.add(m.getMetadata().getName()); }
      public void onUpdate(ConfigMap o, ConfigMap m) { }
      public void onDelete(ConfigMap m, boolean unknown) { seen.remove(m.getMetadata().getName()); }
    })) {
      for (int i = 0; i < 20; i++) {
        client.configMaps().resource(map("seen-" + i, "x")).create();
      }
      until(() -> seen.stream().filter(n -> n.startsWith("seen-")).count() == 20);
      client.configMaps().inNamespace("default").withName("seen-3").delete();
      until(() -> !seen.contains("seen-3"));
    }
  }

  @Test
  void serverSideApplyConflicts() {
    client.configMaps().resource(map("applied", "1")).fieldManager("one").serverSideApply();
    var e = assertThrows(KubernetesClientException.class,
        () -> client.configMaps().resource(map("applied", "2")).fieldManager("two").serverSideApply());
    assertEquals(409, e.getCode());
    client.configMaps().resource(map("applied", "2")).fieldManager("two").forceConflicts().serverSideApply();
    assertEquals("2", client.configMaps().inNamespace("default").withName("applied").get().getData().get("key"));
  }

  @Test
  void aDefinitionIsServed() {
    client.load(SuiteTest.class.getResourceAsStream("/crd.yaml")).create();
    client.apiextensions().v1().customResourceDefinitions().withName("widgets.example.dev")
        .waitUntilCondition(c -> c != null && c.getStatus() != null && c.getStatus().getConditions().stream()
            .anyMatch(x -> "Established".equals(x.getType()) && "True".equals(x.getStatus())), 10, TimeUnit.SECONDS);
    var context = new ResourceDefinitionContext.Builder().withGroup("example.dev").withVersion("v1").withKind("Widget").withPlural("widgets").withNamespaced(true).build();
    var widget = new GenericKubernetesResourceBuilder().withApiVersion("example.dev/v1").withKind("Widget")
        .withNewMetadata().withName("w").withNamespace("default").endMetadata().build();
    widget.setAdditionalProperty("spec", Map.of("size", 3));
    client.genericKubernetesResources(context).inNamespace("default").resource(widget).create();
    widget.setAdditionalProperty("spec", Map.of("size", "three"));
    widget.getMetadata().setName("x");
    var e = assertThrows(KubernetesClientException.class,
        () -> client.genericKubernetesResources(context).inNamespace("default").resource(widget).create());
    assertEquals(422, e.getCode());
  }

  @Test
  void optimisticLocksConflict() {
    var first = client.configMaps().resource(map("locked", "1")).create();
    client.configMaps().resource(new ConfigMapBuilder(first).addToData("a", "b").build()).lockResourceVersion(first.getMetadata().getResourceVersion()).update();
    var e = assertThrows(KubernetesClientException.class, () -> client.configMaps()
        .resource(new ConfigMapBuilder(first).addToData("c", "d").build()).lockResourceVersion(first.getMetadata().getResourceVersion()).update());
    assertEquals(409, e.getCode());
  }

  @Test
  void versionIsOfARealServer() {
    assertEquals("1", client.getKubernetesVersion().getMajor());
    assertNotNull(client.namespaces().withName("default").get());
    assertTrue(client.supports("apps/v1", "Deployment"));
  }

  static void until(Callable<Boolean> is) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    while (!is.call()) {
      assertTrue(System.nanoTime() < end, "not within 20 s");
      Thread.sleep(20);
    }
  }
}

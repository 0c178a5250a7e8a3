package dev.example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.longhaul.Longhaul;
import dev.longhaul.Longhaul.Fault;
import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A cache of ConfigMaps must hold all of them although its watch is disturbed. */
class MirrorTest {
    @RegisterExtension
    Longhaul longhaul = new Longhaul()
            .chaos(1)
            .fault(Fault.named("watch-reset").at(Duration.ofMillis(500)).on("configmaps").with("afterEvents", 2).with("count", 1));

    @Test
    void theMirrorHoldsEveryConfigMap() throws Exception {
        Config config = Config.fromKubeconfig(longhaul.kubeconfig().toFile());
        try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build();
                SharedIndexInformer<ConfigMap> mirror = client.configMaps().inNamespace("default").inform()) {
            for (int n = 0; n < 20; n++) {
                ConfigMap one = new ConfigMapBuilder().withNewMetadata().withName("mirrored-" + n).endMetadata().build();
                client.configMaps().inNamespace("default").resource(one).create();
                Thread.sleep(50);
            }
            long deadline = System.nanoTime() + Duration.ofSeconds(30).toNanos();
            while (mirror.getStore().list().size() < 20 && System.nanoTime() < deadline) {
                Thread.sleep(50);
            }
            assertEquals(20, mirror.getStore().list().size());
        }
    }
}

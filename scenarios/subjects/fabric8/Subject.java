// A shared informer of fabric8's kubernetes-client for the first resource in $LONGHAUL_WATCH. It reports each event to
// $LONGHAUL_WITNESS_URL. All settings of the client are defaults: watches use WebSockets.
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;

public class Subject implements ResourceEventHandler<GenericKubernetesResource> {
  private final HttpClient witness = HttpClient.newHttpClient();
  private final URI url = URI.create(System.getenv("LONGHAUL_WITNESS_URL"));

  public static void main(String[] arguments) throws Exception {
    String[] watch = System.getenv("LONGHAUL_WATCH").split(",")[0].split("/");
    String[] name = watch[0].split("\\.", 2);
    var resource = new ResourceDefinitionContext.Builder().withNamespaced(true).withPlural(name[0]).withVersion(watch[1]);
    if (name.length > 1) {
      resource.withGroup(name[1]);
    }
    KubernetesClient client = new KubernetesClientBuilder().build();
    var informer = client.genericKubernetesResources(resource.build()).inAnyNamespace().inform(new Subject());
    informer.stopped().toCompletableFuture().get();
  }

  @Override
  public void onAdd(GenericKubernetesResource item) {
    report(item, "added");
  }

  @Override
  public void onUpdate(GenericKubernetesResource old, GenericKubernetesResource item) {
    report(item, "modified");
  }

  @Override
  public void onDelete(GenericKubernetesResource item, boolean stateUnknown) {
    report(item, "deleted");
  }

  private void report(GenericKubernetesResource item, String change) {
    var about = item.getMetadata();
    String line = "{\"uid\": \"%s\", \"resourceVersion\": \"%s\", \"change\": \"%s\"}\n";
    line = line.formatted(about.getUid(), about.getResourceVersion(), change);
    try {
      witness.send(HttpRequest.newBuilder(url).POST(BodyPublishers.ofString(line)).build(), BodyHandlers.discarding());
    } catch (Exception error) {
      error.printStackTrace();
      System.exit(1); // Nobody would hear the rest.
    }
  }
}

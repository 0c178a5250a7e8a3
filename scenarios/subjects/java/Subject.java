// A shared informer of the official Java client for the first resource in $LONGHAUL_WATCH. It reports each event to
// $LONGHAUL_WITNESS_URL. All settings of the client are defaults; the informer never resyncs.
import io.kubernetes.client.informer.ResourceEventHandler;
import io.kubernetes.client.informer.SharedInformerFactory;
import io.kubernetes.client.util.Config;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesApi;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesObject;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;

public class Subject implements ResourceEventHandler<DynamicKubernetesObject> {
  private final HttpClient witness = HttpClient.newHttpClient();
  private final URI url = URI.create(System.getenv("LONGHAUL_WITNESS_URL"));

  public static void main(String[] arguments) throws Exception {
    String[] watch = System.getenv("LONGHAUL_WATCH").split(",")[0].split("/");
    String[] name = watch[0].split("\\.", 2);
    var client = Config.defaultClient();
    var api = new DynamicKubernetesApi(name.length > 1 ? name[1] : "", watch[1], name[0], client);
    var factory = new SharedInformerFactory(client);
    var informer = factory.sharedIndexInformerFor(api, DynamicKubernetesObject.class, 0);
    informer.addEventHandler(new Subject());
    factory.startAllRegisteredInformers();
    Thread.currentThread().join();
  }

  @Override
  public void onAdd(DynamicKubernetesObject item) {
    report(item, "added");
  }

  @Override
  public void onUpdate(DynamicKubernetesObject old, DynamicKubernetesObject item) {
    report(item, "modified");
  }

  @Override
  public void onDelete(DynamicKubernetesObject item, boolean stateUnknown) {
    report(item, "deleted");
  }

  private void report(DynamicKubernetesObject item, String change) {
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

// @kubernetes/client-node as a subject: one informer for each resource, started again when it reports an error.
//
// As in the informer example of the package, an `error` handler starts the informer again after 5 s.
// CLIENT_NODE_RESTART_MS can shorten this pause. The package has no option for other time limits of an informer.
import * as k8s from "@kubernetes/client-node";
import { handle, namespace, number, path, resources } from "./witness.mjs";

const RESTART_MS = number("CLIENT_NODE_RESTART_MS") ?? 5000;
const KINDS = { configmaps: "ConfigMap", secrets: "Secret", pods: "Pod", events: "Event" };

const config = new k8s.KubeConfig();
config.loadFromDefault();

/** The function that lists a resource: typed for core resources, untyped for custom resources. */
function lister({ plural, group, version }) {
  if (group) {
    const custom = config.makeApiClient(k8s.CustomObjectsApi);
    const where = { group, version, plural, namespace };
    return namespace
      ? () => custom.listNamespacedCustomObject(where)
      : () => custom.listClusterCustomObject({ group, version, plural });
  }
  const core = config.makeApiClient(k8s.CoreV1Api);
  const kind = KINDS[plural];
  return namespace
    ? () => core[`listNamespaced${kind}`]({ namespace })
    : () => core[`list${kind}ForAllNamespaces`]();
}

function watch(resource, tell) {
  const informer = k8s.makeInformer(config, path(resource), lister(resource));
  informer.on("add", (object) => tell(object, "ADDED"));
  informer.on("update", (object) => tell(object, "MODIFIED"));
  informer.on("delete", (object) => tell(object, "DELETED"));
  informer.on("error", (error) => {
    console.error(`${resource.plural}:`, error);
    setTimeout(start, RESTART_MS);
  });
  // The package's example ignores an exception of a failing start. This adapter prints the exception.
  const start = () => informer.start().catch((error) => console.error(`${resource.plural}: start:`, error));
  void start();
}

resources.forEach((resource, index) => watch(resource, index === 0 ? handle : () => {}));

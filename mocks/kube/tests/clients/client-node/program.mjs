// @kubernetes/client-node against the server of KUBECONFIG: the typed and the generic API are used once. Every line of output is one JSON object.
import assert from "node:assert/strict";
import * as k8s from "@kubernetes/client-node";

const say = (object) => process.stdout.write(JSON.stringify(object) + "\n");
const config = new k8s.KubeConfig();
config.loadFromDefault();

async function refused(code, promise) {
  await assert.rejects(promise, (error) => {
    assert.equal(error.code, code, String(error));
    return true;
  });
}

async function typed() {
  const core = config.makeApiClient(k8s.CoreV1Api);
  const apps = config.makeApiClient(k8s.AppsV1Api);
  const namespace = "default";
  const made = await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: "cm" }, data: { a: "1" } } });
  assert.ok(made.metadata.creationTimestamp instanceof Date);
  await refused(409, core.createNamespacedConfigMap({ namespace, body: { metadata: { name: "cm" } } }));
  await refused(404, core.readNamespacedConfigMap({ namespace, name: "none" }));
  await refused(422, core.createNamespacedConfigMap({ namespace, body: { metadata: { name: "Not_Valid" } } }));
  const next = await core.replaceNamespacedConfigMap({ namespace, name: "cm", body: { ...made, data: { a: "2" } } });
  assert.notEqual(next.metadata.resourceVersion, made.metadata.resourceVersion);
  await refused(409, core.replaceNamespacedConfigMap({ namespace, name: "cm", body: { ...made, data: { a: "3" } } }));
  const labels = { app: "web" };
  const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "nginx:1" }] } };
  const spec = { replicas: 2, selector: { matchLabels: labels }, template };
  await apps.createNamespacedDeployment({ namespace, body: { metadata: { name: "web", labels }, spec } });
  const strategic = { spec: { template: { spec: { containers: [{ name: "c", image: "nginx:2" }] } } } };
  const header = (strategy) => k8s.setHeaderOptions("Content-Type", strategy);
  const patched = await apps.patchNamespacedDeployment(
    { namespace, name: "web", body: strategic }, header(k8s.PatchStrategy.StrategicMergePatch));
  assert.equal(patched.spec.template.spec.containers[0].image, "nginx:2");
  assert.equal(patched.metadata.generation, 2);
  const scale = await apps.readNamespacedDeploymentScale({ namespace, name: "web" });
  assert.equal(scale.spec.replicas, 2);
  await apps.replaceNamespacedDeploymentScale({ namespace, name: "web", body: { ...scale, spec: { replicas: 4 } } });
  await apps.patchNamespacedDeployment(
    { namespace, name: "web", body: [{ op: "test", path: "/spec/replicas", value: 4 },
      { op: "add", path: "/metadata/annotations", value: { note: "x" } }] }, header(k8s.PatchStrategy.JsonPatch));
  const pages = [];
  let _continue;
  do {
    const page = await core.listNamespacedConfigMap({ namespace, limit: 1, _continue });
    pages.push(...page.items.map((item) => item.metadata.name));
    _continue = page.metadata._continue;
  } while (_continue);
  assert.ok(pages.includes("cm"));
  const selected = await apps.listDeploymentForAllNamespaces({ labelSelector: "app=web" });
  assert.deepEqual(selected.items.map((item) => item.metadata.name), ["web"]);
  const gone = await core.deleteNamespacedConfigMap({ namespace, name: "cm" });
  assert.equal(gone.status, "Success");
}

async function generic() {
  const client = k8s.KubernetesObjectApi.makeApiClient(config);
  const id = { apiVersion: "longhaul.dev/v1", kind: "Package", metadata: { name: "generic", namespace: "default" } };
  await client.create({ ...id, spec: { image: "a:1" } });
  await client.patch({ ...id, spec: { image: "a:2" } }, undefined, undefined, undefined, undefined,
    k8s.PatchStrategy.MergePatch);
  const applied = await client.patch({ ...id, spec: { replicas: 3 } }, undefined, undefined, "program", true,
    k8s.PatchStrategy.ServerSideApply);
  assert.deepEqual([applied.spec.image, applied.spec.replicas], ["a:2", 3]);
  assert.ok(applied.metadata.managedFields.some((entry) => entry.manager === "program"));
  const custom = config.makeApiClient(k8s.CustomObjectsApi);
  const where = { group: "longhaul.dev", version: "v1", namespace: "default", plural: "packages", name: "generic" };
  const status = await custom.patchNamespacedCustomObjectStatus(
    { ...where, body: { status: { phase: "Ready" }, spec: { image: "ignored" } } },
    k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.MergePatch));
  assert.deepEqual([status.status.phase, status.spec.image], ["Ready", "a:2"]);
  const read = await client.read(id);
  assert.equal(read.status.phase, "Ready");
  const access = config.makeApiClient(k8s.AuthorizationV1Api);
  const review = await access.createSelfSubjectAccessReview(
    { body: { spec: { resourceAttributes: { verb: "list", resource: "pods" } } } });
  assert.equal(review.status.allowed, true);
  const version = await config.makeApiClient(k8s.VersionApi).getCode();
  say({ server: version.gitVersion });
}

await typed();
await generic();

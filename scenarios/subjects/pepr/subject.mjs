// Pepr as a subject: a module with one `Watch` action for each resource, run by Pepr's own runtime in watch mode.
//
// Before the start, the adapter creates the objects of Pepr's manifests that the module needs: the namespace and the
// definition of its store. The admission and metrics server is left out (`deferStart`): it needs a certificate and
// watches nothing. The PEPR_… variables that the version knows set its time limits.
import { createRequire } from "node:module";
import { handle, namespace, resources } from "./witness.mjs";

process.env.PEPR_WATCH_MODE = "true";
process.env.PEPR_LAST_SEEN_LIMIT_SECONDS ??= process.env.LONGHAUL_SILENCE_S ?? "300";
process.env.PEPR_RELIST_INTERVAL_SECONDS ??= process.env.LONGHAUL_RELIST_S ?? "600";
if (process.env.LONGHAUL_SILENCE_S) process.env.PEPR_RESYNC_DELAY_SECONDS ??= "1";
const require = createRequire(import.meta.url);
const { Capability, K8s, PeprModule, RegisterKind, kind } = require("pepr");
const { GenericKind } = require("kubernetes-fluent-client");
const PLURAL = "peprstores";
const schema = { type: "object", properties: { data: { type: "object", additionalProperties: { type: "string" } } } };

await K8s(kind.Namespace).Apply({ metadata: { name: "pepr-system" } }, { force: true });
await K8s(kind.CustomResourceDefinition).Apply({
  metadata: { name: `${PLURAL}.pepr.dev` },
  spec: {
    group: "pepr.dev", scope: "Namespaced", names: { plural: PLURAL, singular: "peprstore", kind: "PeprStore" },
    versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } }],
  },
}, { force: true });

const capability = new Capability({
  name: "subject", description: "reports what it sees", namespaces: namespace ? [namespace] : [],
});
resources.forEach(({ plural, group, version }, index) => {
  // The library identifies a kind by the name of its class.
  const Kind = { [plural]: class extends GenericKind {} }[plural];
  RegisterKind(Kind, { group, version, kind: plural, plural });
  capability.When(Kind).IsCreatedOrUpdated().Watch(index === 0 ? handle : () => {});
  capability.When(Kind).IsDeleted().Watch(index === 0 ? handle : () => {});
});
const pepr = { uuid: "longhaul", onError: "ignore", alwaysIgnore: { namespaces: [] }, customLabels: {} };
new PeprModule({ description: "subject", pepr }, [capability], { deferStart: true });

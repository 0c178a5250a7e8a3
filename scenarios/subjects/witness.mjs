// What every JavaScript adapter needs: which resources to watch, and how to tell the witness what the client told.
// Made to be copied. Nothing here retries, compares or repairs what a client says.

// Most lines that wait for the witness. Who cannot report must not go on as if nothing were wrong.
const WAITING_MAX = 100_000;
const CHANGES = { ADDED: "added", MODIFIED: "modified", DELETED: "deleted" };

/** `LONGHAUL_WATCH` as objects; the first one is judged, the others are only watched. */
export const resources = (process.env.LONGHAUL_WATCH ?? "packages.longhaul.dev/v1alpha1").split(",").map((text) => {
  const [name, version] = text.split("/");
  const [plural, ...group] = name.split(".");
  return { plural, group: group.join("."), version };
});
/** Empty means all namespaces. */
export const namespace = process.env.LONGHAUL_NAMESPACE ?? "";

/** Where the collection of a resource is served. */
export function path({ plural, group, version }) {
  const root = group ? `/apis/${group}/${version}` : `/api/${version}`;
  return namespace ? `${root}/namespaces/${namespace}/${plural}` : `${root}/${plural}`;
}

/** A number from the environment; `undefined` leaves the client its default. */
export const number = (name) => (process.env[name] ? Number(process.env[name]) : undefined);

let waiting = [];
let posting = false;

/** Reports one call of a handler. What is no event of an object (a Status) is told as the change of one without a uid. */
export function report(object, phase) {
  const { uid = "", resourceVersion = "" } = object?.metadata ?? {};
  const change = CHANGES[phase] ?? "modified";
  waiting.push(JSON.stringify({ uid: uid || `${phase}-${object?.code ?? ""}`, resourceVersion: resourceVersion || "0", change }));
  if (waiting.length > WAITING_MAX) process.exit(70);
  if (!posting) void post();
}

async function post() {
  posting = true;
  while (waiting.length > 0) {
    const body = waiting.splice(0, 1000).join("\n") + "\n";
    const answer = await fetch(process.env.LONGHAUL_WITNESS_URL, { method: "POST", body }).catch((error) => ({ ok: false, error }));
    if (!answer.ok) {
      console.error("the witness refused:", answer.error ?? (await answer.text()));
      process.exit(70);
    }
  }
  posting = false;
}

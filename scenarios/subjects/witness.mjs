// Functions for the JavaScript adapters: which resources to watch, and how to report the client's events to the witness.
// Made to be copied. Nothing here retries, compares or repairs the client's events.

// Maximum number of lines that wait for the witness. With more, the program ends, because it must not go on unreported.
const WAITING_MAX = 100_000;
const CHANGES = { ADDED: "added", MODIFIED: "modified", DELETED: "deleted" };

/** `LONGHAUL_WATCH` as objects; the first resource is judged, the others are only watched. */
export const resources = (process.env.LONGHAUL_WATCH ?? "packages.longhaul.dev/v1alpha1").split(",").map((text) => {
  const [name, version] = text.split("/");
  const [plural, ...group] = name.split(".");
  return { plural, group: group.join("."), version };
});
/** The namespace to watch; empty means all namespaces. */
export const namespace = process.env.LONGHAUL_NAMESPACE ?? "";

/** The path of a resource's collection. */
export function path({ plural, group, version }) {
  const root = group ? `/apis/${group}/${version}` : `/api/${version}`;
  return namespace ? `${root}/namespaces/${namespace}/${plural}` : `${root}/${plural}`;
}

/** A number from the environment; with `undefined` the client uses its default. */
export const number = (name) => (process.env[name] ? Number(process.env[name]) : undefined);

/** Milliseconds that a handler takes for the first, third, fifth, … modification of an object, as the scenario requests. */
const SLOW_MS = (number("LONGHAUL_HANDLER_S") ?? 0) * 1000;
// Number of modifications of each object so far. Used only with a slow handler; such scenarios have few objects.
const modified = new Map();

async function slowly(object, phase) {
  const [uid, times] = [object?.metadata?.uid, modified.get(object?.metadata?.uid) ?? 0];
  if (phase === "MODIFIED") modified.set(uid, times + 1);
  if (phase === "MODIFIED" && times % 2 === 0) await new Promise((done) => setTimeout(done, SLOW_MS));
  report(object, phase);
}

/** The handler of every adapter: it works, then reports. Only a slow handler is asynchronous. */
export const handle = (object, phase) => (SLOW_MS > 0 ? slowly(object, phase) : report(object, phase));

let waiting = [];
let posting = false;

/** Reports one call of a handler. A call without an object (a Status) is reported as a change of an object without a uid. */
function report(object, phase) {
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

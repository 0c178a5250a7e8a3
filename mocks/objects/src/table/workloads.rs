//! The columns of pods and of what makes pods.

use serde_json::{Value, json};

use super::print::{NONE, Printer, Row, UNSET, labels};

const NAME: (&str, &str, i64) = ("Name", "string", 0);
const AGE: (&str, &str, i64) = ("Age", "string", 0);
const CONTAINERS: (&str, &str, i64) = ("Containers", "string", 1);
const IMAGES: (&str, &str, i64) = ("Images", "string", 1);
const SELECTOR: (&str, &str, i64) = ("Selector", "string", 1);

pub(super) const POD: Printer = Printer {
    columns: &[
        NAME,
        ("Ready", "string", 0),
        ("Status", "string", 0),
        ("Restarts", "string", 0),
        AGE,
        ("IP", "string", 1),
        ("Node", "string", 1),
        ("Nominated Node", "string", 1),
        ("Readiness Gates", "string", 1),
    ],
    cells: |row| {
        let pod = Containers::of(row);
        let ip = row.items("/status/podIPs").find_map(|ip| ip["ip"].as_str()).unwrap_or(row.text("/status/podIP"));
        vec![
            row.name(),
            Value::from(format!("{}/{}", pod.ready, pod.all)),
            Value::from(pod.status),
            Value::from(pod.restarts),
            row.age(),
            Value::from(if ip.is_empty() { NONE } else { ip }),
            row.text_or("/spec/nodeName", NONE),
            row.text_or("/status/nominatedNodeName", NONE),
            readiness_gates(row),
        ]
    },
};

pub(super) const POD_TEMPLATE: Printer = Printer {
    columns: &[NAME, ("Containers", "string", 0), ("Images", "string", 0), ("Pod Labels", "string", 0)],
    cells: |row| {
        let spec = "/template/spec";
        let own = labels(row.at("/template/metadata/labels"));
        vec![row.name(), row.containers(spec, "name"), row.containers(spec, "image"), own]
    },
};

pub(super) const DEPLOYMENT: Printer = Printer {
    columns: &[
        NAME,
        ("Ready", "string", 0),
        ("Up-to-date", "string", 0),
        ("Available", "string", 0),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |row| {
        let mut cells = vec![
            row.name(),
            ready(row),
            row.number("/status/updatedReplicas").into(),
            row.number("/status/availableReplicas").into(),
            row.age(),
        ];
        cells.extend(row.template());
        cells
    },
};

pub(super) const STATEFUL_SET: Printer = Printer {
    columns: &[NAME, ("Ready", "string", 0), AGE, CONTAINERS, IMAGES],
    cells: |row| {
        let [containers, images, _] = row.template();
        vec![row.name(), ready(row), row.age(), containers, images]
    },
};

pub(super) const REPLICA_SET: Printer = Printer { columns: REPLICAS, cells: |row| replicas(row, row.template()) };

pub(super) const REPLICATION_CONTROLLER: Printer = Printer {
    columns: REPLICAS,
    cells: |row| {
        let [containers, images, _] = row.template();
        replicas(row, [containers, images, labels(row.at("/spec/selector"))])
    },
};

pub(super) const DAEMON_SET: Printer = Printer {
    columns: &[
        NAME,
        ("Desired", "integer", 0),
        ("Current", "integer", 0),
        ("Ready", "integer", 0),
        ("Up-to-date", "integer", 0),
        ("Available", "integer", 0),
        ("Node Selector", "string", 0),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |row| {
        let counted = ["desired", "current"].map(|which| row.number(&format!("/status/{which}NumberScheduled")));
        let mut cells = vec![row.name(), counted[0].into(), counted[1].into()];
        cells.push(row.number("/status/numberReady").into());
        cells.push(row.number("/status/updatedNumberScheduled").into());
        cells.push(row.number("/status/numberAvailable").into());
        cells.extend([labels(row.at("/spec/template/spec/nodeSelector")), row.age()]);
        cells.extend(row.template());
        cells
    },
};

pub(super) const JOB: Printer = Printer {
    columns: &[
        NAME,
        ("Status", "string", 0),
        ("Completions", "string", 0),
        ("Duration", "string", 0),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |row| {
        let done = row.number("/status/succeeded");
        let completions = match (row.at("/spec/completions"), row.number("/spec/parallelism")) {
            (Some(wanted), _) => format!("{done}/{wanted}"),
            (None, together) if together > 1 => format!("{done}/1 of {together}"),
            (None, _) => format!("{done}/1"),
        };
        let mut cells =
            vec![row.name(), job_status(row).into(), completions.into(), job_duration(row).into(), row.age()];
        cells.extend(row.template());
        cells
    },
};

pub(super) const CRON_JOB: Printer = Printer {
    columns: &[
        NAME,
        ("Schedule", "string", 0),
        ("Timezone", "string", 0),
        ("Suspend", "boolean", 0),
        ("Active", "integer", 0),
        ("Last Schedule", "string", 0),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |row| {
        let spec = "/spec/jobTemplate/spec/template/spec";
        let suspended = match row.at("/spec/suspend").and_then(Value::as_bool) {
            Some(true) => "True",
            Some(false) => "False",
            None => UNSET,
        };
        let last = "/status/lastScheduleTime";
        vec![
            row.name(),
            row.text("/spec/schedule").into(),
            row.text_or("/spec/timeZone", NONE),
            suspended.into(),
            row.items("/status/active").len().into(),
            if row.text(last).is_empty() { NONE.into() } else { row.since(last).into() },
            row.age(),
            row.containers(spec, "name"),
            row.containers(spec, "image"),
            super::print::selector(row.at("/spec/jobTemplate/spec/selector")),
        ]
    },
};

pub(super) const CONTROLLER_REVISION: Printer = Printer {
    columns: &[NAME, ("Controller", "string", 0), ("Revision", "string", 0), AGE],
    cells: |row| {
        let owner = row.items("/metadata/ownerReferences").find(|owner| owner["controller"] == json!(true));
        let owner = owner.map(|owner| {
            let text = |key: &str| owner[key].as_str().unwrap_or_default();
            let kind = text("kind").to_lowercase();
            match text("apiVersion").split_once('/') {
                Some((group, _)) => format!("{kind}.{group}/{}", text("name")),
                None => format!("{kind}/{}", text("name")),
            }
        });
        vec![row.name(), owner.map_or(NONE.into(), Value::from), row.number("/revision").into(), row.age()]
    },
};

const REPLICAS: super::print::Columns = &[
    NAME,
    ("Desired", "integer", 0),
    ("Current", "integer", 0),
    ("Ready", "integer", 0),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn replicas(row: &Row<'_>, template: [Value; 3]) -> Vec<Value> {
    let counts = ["/spec/replicas", "/status/replicas", "/status/readyReplicas"].map(|path| row.number(path));
    let mut cells = vec![row.name()];
    cells.extend(counts.map(Value::from));
    cells.push(row.age());
    cells.extend(template);
    cells
}

fn ready(row: &Row<'_>) -> Value {
    Value::from(format!("{}/{}", row.number("/status/readyReplicas"), row.number("/spec/replicas")))
}

fn job_status(row: &Row<'_>) -> &'static str {
    let is = |kind: &str| row.is_true(kind);
    match () {
        () if is("Complete") => "Complete",
        () if is("Failed") => "Failed",
        () if row.is_deleting() => "Terminating",
        () if is("Suspended") => "Suspended",
        () if is("FailureTarget") => "FailureTarget",
        () if is("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn job_duration(row: &Row<'_>) -> String {
    let (start, end) = (row.text("/status/startTime"), row.text("/status/completionTime"));
    match (start, end.parse()) {
        ("", _) => String::new(),
        (start, Ok(end)) => super::age(start, end),
        (start, Err(_)) => super::age(start, row.now),
    }
}

fn readiness_gates(row: &Row<'_>) -> Value {
    let gates = row.items("/spec/readinessGates");
    let all = gates.len();
    let open = gates.filter_map(|gate| gate["conditionType"].as_str()).filter(|gate| row.is_true(gate)).count();
    Value::from(if all == 0 { NONE.to_owned() } else { format!("{open}/{all}") })
}

/// What the containers of a pod say together.
struct Containers {
    ready: usize,
    all: usize,
    status: String,
    restarts: String,
}

impl Containers {
    fn of(row: &Row<'_>) -> Self {
        let sidecar = |name: &Value| {
            let mut started = row.items("/spec/initContainers").filter(|container| container["name"] == *name);
            started.any(|container| container["restartPolicy"] == "Always")
        };
        let sidecars = row.items("/spec/initContainers").filter(|container| sidecar(&container["name"])).count();
        let mut pod = Self {
            ready: 0,
            all: row.items("/spec/containers").len() + sidecars,
            status: Self::phase(row),
            restarts: String::new(),
        };
        let (mut restarts, mut of_sidecars) = (0, 0);
        let (mut last, mut last_sidecar) = ("", "");
        let mut initialising = false;
        for (index, status) in row.items("/status/initContainerStatuses").enumerate() {
            let is_sidecar = sidecar(&status["name"]);
            restarts = count(status).saturating_add(restarts);
            last = last.max(ended(status));
            if is_sidecar {
                of_sidecars = count(status).saturating_add(of_sidecars);
                last_sidecar = last_sidecar.max(ended(status));
            }
            let (terminated, waiting) = (&status["state"]["terminated"], &status["state"]["waiting"]);
            let reason = |state: &Value| state["reason"].as_str().unwrap_or_default().to_owned();
            if terminated.is_object() && terminated["exitCode"] == json!(0) {
                continue;
            }
            if is_sidecar && status["started"] == json!(true) {
                pod.ready += usize::from(status["ready"] == json!(true));
                continue;
            }
            initialising = true;
            pod.status = if terminated.is_object() {
                format!("Init:{}", end(terminated))
            } else if !reason(waiting).is_empty() && reason(waiting) != "PodInitializing" {
                format!("Init:{}", reason(waiting))
            } else {
                format!("Init:{index}/{}", row.items("/spec/initContainers").len())
            };
            break;
        }
        if !initialising || row.is_true("Initialized") {
            (restarts, last) = (of_sidecars, last_sidecar);
            let mut running = false;
            for status in row.items("/status/containerStatuses").rev() {
                restarts = count(status).saturating_add(restarts);
                last = last.max(ended(status));
                let state = &status["state"];
                if let Some(reason) = state["waiting"]["reason"].as_str().filter(|reason| !reason.is_empty()) {
                    reason.clone_into(&mut pod.status);
                } else if state["terminated"].is_object() {
                    pod.status = end(&state["terminated"]);
                } else if status["ready"] == json!(true) && state["running"].is_object() {
                    running = true;
                    pod.ready += 1;
                }
            }
            if pod.status == "Completed" && running {
                if row.is_true("Ready") { "Running" } else { "NotReady" }.clone_into(&mut pod.status);
            }
        }
        if row.is_deleting() {
            if row.text("/status/reason") == "NodeLost" {
                "Unknown".clone_into(&mut pod.status);
            } else if !matches!(row.text("/status/phase"), "Failed" | "Succeeded") {
                "Terminating".clone_into(&mut pod.status);
            }
        }
        pod.restarts = if restarts > 0 && !last.is_empty() {
            format!("{restarts} ({} ago)", super::age(last, row.now))
        } else {
            restarts.to_string()
        };
        pod
    }

    /// What is said where no container says more.
    fn phase(row: &Row<'_>) -> String {
        if row.condition("PodScheduled").is_some_and(|condition| condition["reason"] == "SchedulingGated") {
            return "SchedulingGated".to_owned();
        }
        let reason = row.text("/status/reason");
        if reason.is_empty() { row.text("/status/phase") } else { reason }.to_owned()
    }
}

fn count(status: &Value) -> i64 {
    status["restartCount"].as_i64().unwrap_or(0)
}

/// When the container ended last. Times in this form sort as text.
fn ended(status: &Value) -> &str {
    status.pointer("/lastState/terminated/finishedAt").and_then(Value::as_str).unwrap_or_default()
}

/// How a container ended.
fn end(terminated: &Value) -> String {
    match (terminated["reason"].as_str().unwrap_or_default(), terminated["signal"].as_i64().unwrap_or(0)) {
        ("", 0) => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or(0)),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

//! The log formats of well-known libraries. These libraries wrote the log lines in the tests of this module.

use std::sync::Arc;

use facts::Observation;
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{Claim, Fact, Lines, Statement, change};
use super::{Proves, object};

/// A library whose log lines name the objects that it handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Go's controller-runtime: lines of a reconciler that logs with the logger of its context, in JSON, console or
    /// klog format. These lines name the object and no version.
    ControllerRuntime,
    /// kopf: lines about an object, plain or as JSON. These lines name the object and no version.
    Kopf,
    /// kube-rs: log lines inside the span of a reconciliation. These lines name the object and no version.
    KubeRs,
    /// Pepr with `LOG_LEVEL=debug`: lines with whole watch events.
    Pepr,
}

impl Preset {
    pub(super) fn proves(self) -> Proves {
        match self {
            Self::ControllerRuntime | Self::Kopf | Self::KubeRs => Proves::Nothing,
            Self::Pepr => Proves::Whole { change: true },
        }
    }

    /// Whether the lines of this library may name an object without its uid.
    pub(super) fn is_by_name(self) -> bool {
        self != Self::Pepr
    }

    /// A reader of the library's lines. `of` selects the kind of the objects.
    pub(super) fn lines(self, of: Option<String>) -> Result<Arc<dyn Lines>, String> {
        let shapes: &[&str] = match self {
            Self::ControllerRuntime => &[
                // JSON and console: the fields stand in this order, the kind before them.
                r#"(?:"controllerKind": ?"(?P<kind>[^"]+)".*)?"namespace": ?"(?P<namespace>[^"]*)", ?"name": ?"(?P<name>[^"]+)", ?"reconcileID""#,
                // klog.
                r#"(?:controllerKind="(?P<kind>[^"]+)".*)?namespace="(?P<namespace>[^"]*)" name="(?P<name>[^"]+)" reconcileID="#,
            ],
            Self::Kopf => &[
                // JSON, with the uid.
                r#""object": ?\{"apiVersion": ?"[^"]*", ?"kind": ?"(?P<kind>[^"]+)", ?"name": ?"[^"]+", ?"uid": ?"(?P<uid>[^"]+)""#,
                r"\[(?:(?P<namespace>[^\[\]/ ]+)/)?(?P<name>[^\[\]/ ]+)\] (?:Handler '[^']+' |(?:Creation|Updating|Resuming|Deletion) is )",
            ],
            Self::KubeRs => &[
                r"reconciling object\{object\.ref=(?P<kind>[^.]+)\.[^/]+/(?P<name>\S+?)(?:\.(?P<namespace>[^.\s}]+))?(?: object\.reason=[^}]*)?\}",
            ],
            Self::Pepr => return Ok(Arc::new(Events { of })),
        };
        let shapes = shapes.iter().map(|shape| Regex::new(shape)).collect::<Result<_, _>>();
        Ok(Arc::new(Shapes { shapes: shapes.map_err(|error| format!("a preset is broken: {error}"))?, of }))
    }
}

/// A reader of log lines that name an object.
struct Shapes {
    shapes: Vec<Regex>,
    of: Option<String>,
}

impl Lines for Shapes {
    fn read(&self, line: &str, t_ms: u64) -> Option<Result<Statement, &'static str>> {
        let line = without_colours(line);
        let found = self.shapes.iter().find_map(|shape| shape.captures(&line))?;
        // A line without a kind is accepted: most subjects have one controller.
        let kind = found.name("kind").map(|kind| kind.as_str());
        if kind.zip(self.of.as_deref()).is_some_and(|(kind, of)| kind != of) {
            return None;
        }
        let of = object(&found)?;
        Some(Ok(Statement::Claims(Claim { t_ms, of, what: Fact::There { ends: false } })))
    }
}

/// A reader of log lines in JSON that contain watch events and a message.
struct Events {
    of: Option<String>,
}

#[derive(Deserialize)]
struct Event {
    msg: String,
    kind: Option<String>,
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    uid: String,
    resource_version: String,
}

impl Lines for Events {
    fn read(&self, line: &str, t_ms: u64) -> Option<Result<Statement, &'static str>> {
        // Most lines are no events and need no parsing.
        line.find("\"msg\":\"Watch event ")?;
        let Ok(event) = serde_json::from_str::<Event>(line) else {
            return Some(Err("an event that is no JSON, or longer than what is read of a line"));
        };
        let word = event.msg.strip_prefix("Watch event ")?.split_whitespace().next()?;
        // Other events are about the watch itself.
        let (change, metadata) = (change(word)?, event.metadata?);
        if event.kind.as_ref().zip(self.of.as_ref()).is_some_and(|(kind, of)| kind != of) {
            return None;
        }
        let (uid, revision) = (metadata.uid.into(), metadata.resource_version.into());
        Some(Ok(Statement::Saw(Observation { t_ms, uid, revision, change })))
    }
}

/// The line without the escape sequences for terminal colours.
fn without_colours(line: &str) -> std::borrow::Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return line.into();
    }
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest)).into()
}

#[cfg(test)]
mod tests {
    use super::super::super::Of;
    use super::*;

    fn read(preset: Preset, of: Option<&str>, line: &str) -> Option<Statement> {
        preset.lines(of.map(str::to_owned)).unwrap().read(line, 7).transpose().unwrap()
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is compared with what was read, which may be nothing")]
    fn there(of: Of) -> Option<Statement> {
        Some(Statement::Claims(Claim { t_ms: 7, of, what: Fact::There { ends: false } }))
    }

    fn name(namespace: &str, name: &str) -> Of {
        Of::Name(namespace.into(), name.into())
    }

    /// The preset reads lines of controller-runtime 0.19 with zap (JSON, then console) and with klog.
    #[test]
    fn controller_runtime() {
        let preset = Preset::ControllerRuntime;
        let json = r#"{"level":"info","ts":"2026-01-02T03:04:05Z","msg":"reconciled","controller":"memcached","controllerGroup":"cache.example.com","controllerKind":"Memcached","Memcached":{"name":"sample","namespace":"default"},"namespace":"default","name":"sample","reconcileID":"0b7e8c1c-6a1f-4b8e-9d55-3b1a2c4d5e6f"}"#;
        let console = "2026-01-02T03:04:05Z\tINFO\treconciled\t{\"controller\": \"memcached\", \"controllerGroup\": \"cache.example.com\", \"controllerKind\": \"Memcached\", \"Memcached\": {\"name\":\"sample\",\"namespace\":\"default\"}, \"namespace\": \"default\", \"name\": \"sample\", \"reconcileID\": \"0b7e8c1c\"}";
        let klog = r#"I0102 03:04:05.000000       1 controller.go:114] "reconciled" controller="memcached" controllerGroup="cache.example.com" controllerKind="Memcached" Memcached="default/sample" namespace="default" name="sample" reconcileID="0b7e8c1c""#;
        for line in [json, console, klog] {
            assert_eq!(read(preset, None, line), there(name("default", "sample")), "{line}");
            assert_eq!(read(preset, Some("Memcached"), line), there(name("default", "sample")));
            assert_eq!(read(preset, Some("Pod"), line), None);
        }
        let start =
            "2026-01-02T03:04:05Z\tINFO\tStarting workers\t{\"controller\": \"memcached\", \"worker count\": 1}";
        assert_eq!(read(preset, None, start), None);
    }

    /// The preset reads lines of kopf 1.45, plain and with `--log-format=json`.
    #[test]
    fn kopf() {
        let preset = Preset::Kopf;
        let full =
            "[2026-11-24 06:51:15,712] kopf.objects         [INFO    ] [default/sample] Handler 'create_fn' succeeded.";
        assert_eq!(read(preset, None, full), there(name("default", "sample")));
        let plain = "[sample] Creation is processed: 1 succeeded; 0 failed.";
        assert_eq!(read(preset, None, plain), there(name("", "sample")));
        let json = r#"{"message": "Handler 'create_fn' succeeded.", "timestamp": "2026-11-24T06:51:27.014948+00:00", "object": {"apiVersion": "v1", "kind": "ConfigMap", "name": "sample", "uid": "5a9ea6da-e7ea-4e34-8f4a-5dea3737e9db", "namespace": "default"}, "severity": "info"}"#;
        assert_eq!(
            read(preset, Some("ConfigMap"), json),
            there(Of::Uid("5a9ea6da-e7ea-4e34-8f4a-5dea3737e9db".into()))
        );
        assert_eq!(read(preset, Some("Other"), json), None);
        let other =
            "[2026-01-02 03:04:05,678] kopf._core.engines.a [INFO    ] Initial authentication has been initiated.";
        assert_eq!(read(preset, None, other), None);
    }

    /// The preset reads lines of tracing-subscriber for the span of kube-runtime, in a terminal with colours.
    #[test]
    fn kube_rs() {
        let line = |of: &str| {
            format!("2026-01-02T03:04:05.678901Z  INFO reconciling object{{object.ref={of}}}: operator: reconciled")
        };
        let read = |of: Option<&str>, line: &str| read(Preset::KubeRs, of, line);
        let full = line("Hello.v1.example.com/my.sample.default object.reason=object updated");
        assert_eq!(read(None, &full), there(name("default", "my.sample")));
        assert_eq!(read(Some("Hello"), &line("Hello.v1.example.com/a.default")), there(name("default", "a")));
        assert_eq!(read(Some("Other"), &full), None);
        let coloured = full.replace(
            "object{object.ref=",
            "object\u{1b}[0m\u{1b}[1m{\u{1b}[0m\u{1b}[3mobject.ref\u{1b}[0m\u{1b}[2m=\u{1b}[0m",
        );
        assert_eq!(read(None, &coloured), there(name("default", "my.sample")));
        assert_eq!(read(None, "2026-01-02T03:04:05Z  INFO operator: starting"), None);
    }

    /// The preset reads lines of Pepr 1.1 with `LOG_LEVEL=debug`.
    #[test]
    fn pepr() {
        let line = r#"{"level":20,"time":1767322800000,"pid":7,"hostname":"h","apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"12"},"data":{"x":"\"msg\":\"no\""},"msg":"Watch event DELETED received"}"#;
        let seen = Observation { t_ms: 7, uid: "u".into(), revision: "12".into(), change: facts::Change::Deleted };
        assert_eq!(read(Preset::Pepr, Some("ConfigMap"), line), Some(Statement::Saw(seen)));
        assert_eq!(read(Preset::Pepr, Some("Pod"), line), None);
        let connect =
            r#"{"level":20,"time":1767322800000,"pid":7,"hostname":"h","msg":"Watch event connect received. url."}"#;
        assert_eq!(read(Preset::Pepr, None, connect), None);
        let cut = &line[..line.len() - 3];
        assert!(Preset::Pepr.lines(None).unwrap().read(&line.replace("\"pid\":7", "\"pid\":"), 7).unwrap().is_err());
        assert_eq!(read(Preset::Pepr, None, &cut[..60]), None);
    }
}

//! Witness `metrics`: the subject's metrics page has a series for each object, like the page of kube-state-metrics.
//!
//! The witness reads the page every second. A series proves that the subject saw the object of the series. The end of a
//! series proves that the subject saw the deletion of the object. If the key `value` is set, the value of a sample is a
//! generation or resourceVersion and proves that version. The witness does not show an object that exists only between
//! two readings of the page.

use std::collections::BTreeMap;
use std::time::Duration;

use facts::Looks;
use record::Sees;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::MissedTickBehavior;
use tokio_util::task::AbortOnDropHandle;

use super::known::{By, Known};
use super::status::Holds;
use super::{About, Claim, Fact, Kind, Of, Open, Reporter, Scene, Statement};
use crate::fetch::{Limits, Page};
use crate::metrics::{Labelled, Selector};

/// Interval of readings of the metrics page; the measured lag has this precision. Each reading costs the subject a few
/// milliseconds.
const EVERY: Duration = Duration::from_secs(1);
/// Minimum interval between readings of the page, as a multiple of the time that one reading takes.
const SHARE_LEAST: u32 = 20;
/// Limits of time and size for reading a page. A page with a series for each of many objects has many MiB.
const LIMITS: Limits = Limits { answer: Duration::from_secs(10), bytes: 64 << 20 };
/// Maximum number of objects on a metrics page: more than a scenario can create.
const OBJECTS_MAX: usize = 200_000;

/// The keys of `witness: {kind: metrics}`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Metrics {
    /// The series, as a name with or without labels: `kube_configmap_created`.
    pub series: String,
    /// The label that has the uid of the object.
    pub uid: Option<String>,
    /// Instead of `uid`: the label that has the name of the object, such as `configmap`.
    pub name: Option<String>,
    /// With `name`: the label that has the namespace. Default: `namespace`. Empty for cluster-wide objects.
    pub namespace: Option<String>,
    /// The meaning of a sample's value, as in `kube_deployment_metadata_generation`. Default: the value means nothing
    /// about the object.
    pub value: Option<Holds>,
}

impl Kind for Metrics {
    const NAME: &'static str = "metrics";
    const REMEDY: &'static str =
        "Does its page of metrics (`subject: {metrics: …}`) have the series that `witness` names, with these labels?";

    fn sees(&self, _: &About) -> Sees {
        Sees { created: true, updated: self.value.is_some(), deleted: true, ..Sees::NOTHING }
    }

    fn check(&self, about: &About) -> Result<(), String> {
        Selector::read(&self.series).map_err(|why| format!("witness `series`: {why}"))?;
        if !about.has_metrics {
            return Err("`witness: {kind: metrics}` needs the subject's page of metrics: add for example `metrics: \
                 http://127.0.0.1:8080/metrics` to `subject`"
                .to_owned());
        }
        match (&self.uid, &self.name) {
            (Some(_), None) if self.namespace.is_none() => Ok(()),
            (None, Some(_)) if about.reuses_names => Err("`script` makes objects again under the same name, and a label with the name cannot \
                 tell them apart: use a series with a label for the `uid`"
                .to_owned()),
            (None, Some(_)) => Ok(()),
            _ => Err("`witness: {kind: metrics}` needs the label that identifies the object of a series: `uid: LABEL`, or `name: LABEL` \
                      and `namespace: LABEL`"
                .to_owned()),
        }
    }

    /// The series show the versions that the subject handled. In the watched objects, the witness reads only the
    /// finalizers.
    fn looks(&self) -> Option<Looks> {
        Some(Looks::default())
    }

    async fn open(&self, reporter: &Reporter, scene: &Scene) -> anyhow::Result<Open> {
        let Some(url) = &scene.metrics_url else { anyhow::bail!("the subject has no page of metrics") };
        let page = Page::new(url, LIMITS).map_err(anyhow::Error::msg)?;
        let selector = Selector::read(&self.series).map_err(anyhow::Error::msg)?;
        let seen = PageReading { keys: self.clone(), selector, objects: BTreeMap::new() };
        let listens = AbortOnDropHandle::new(tokio::spawn(listen(page, seen, reporter.clone())));
        let by = match self.value {
            None => By::Nothing,
            Some(Holds::Generation) => By::Generation,
            Some(Holds::ResourceVersion) => By::Revision,
        };
        let known = Known::new(by, true);
        Ok(Open { commits: Some(Box::new(known)), _listens: Some(Box::new(listens)), ..Open::default() })
    }
}

async fn listen(mut page: Page, mut seen: PageReading, reporter: Reporter) {
    let mut due = tokio::time::interval(EVERY);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        let began = std::time::Instant::now();
        // A subject that is starting, or restarting, has no page: that shows nothing.
        let Ok(text) = page.get().await else { continue };
        let t_ms = reporter.now_ms();
        let rest = began.elapsed() * SHARE_LEAST;
        match std::str::from_utf8(&text).map_err(|error| error.to_string()).and_then(|text| seen.read(text)) {
            Ok(shown) => {
                for (of, what) in shown {
                    reporter.report(Statement::Claims(Claim { t_ms, of, what })).await;
                }
            }
            Err(why) => {
                reporter
                    .report(Statement::Deaf(format!(
                        "the witness `metrics` cannot read the page {}: {why}",
                        page.url()
                    )))
                    .await;
                return;
            }
        }
        if rest > EVERY {
            due.reset_after(rest);
        }
    }
}

/// The objects at the last reading of the page, each with its version if the page has versions.
struct PageReading {
    keys: Metrics,
    selector: Selector,
    objects: BTreeMap<Of, Option<i64>>,
}

impl PageReading {
    /// The changes of objects from the last reading of the page to this reading.
    fn read(&mut self, page: &str) -> Result<Vec<(Of, Fact)>, String> {
        let mut objects = BTreeMap::new();
        for labels in Labelled::of(page, &self.selector) {
            let labels = labels?;
            let Some(of) = self.object(&labels) else { continue };
            let version = self.keys.value.and_then(|_| labels.number());
            // Of two series of one object the one with the higher version counts.
            let known = objects.entry(of).or_insert(None);
            *known = version.max(*known);
            if objects.len() > OBJECTS_MAX {
                return Err(format!("it has more than {OBJECTS_MAX} objects: name fewer by labels in `series`"));
            }
        }
        let gone = self.objects.keys().filter(|of| !objects.contains_key(*of));
        let mut shown: Vec<(Of, Fact)> = gone.map(|of| (of.clone(), Fact::Gone)).collect();
        for (of, version) in &objects {
            let before = self.objects.get(of);
            if before.is_none() {
                shown.push((of.clone(), Fact::There { ends: true }));
            }
            if let Some(number) = version.filter(|_| before != Some(version)) {
                shown.push((of.clone(), Fact::Version(number)));
            }
        }
        self.objects = objects;
        Ok(shown)
    }

    fn object(&self, labels: &Labelled<'_>) -> Option<Of> {
        let given = |label: &str| labels.get(label).filter(|text| !text.is_empty());
        if let Some(label) = &self.keys.uid {
            return given(label).map(|uid| Of::Uid(uid.into()));
        }
        let name = self.keys.name.as_deref().and_then(given)?;
        let namespace = match self.keys.namespace.as_deref().unwrap_or("namespace") {
            "" => "",
            label => given(label)?,
        };
        Some(Of::Name(namespace.into(), name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> PageReading {
        let keys: Metrics = serde_saphyr::from_str(text).unwrap();
        let selector = Selector::read(&keys.series).unwrap();
        PageReading { keys, selector, objects: BTreeMap::new() }
    }

    /// A metrics page with lines of kube-state-metrics 2.13.
    const PAGE: &str = "# HELP kube_configmap_created [STABLE] Unix creation timestamp\n# TYPE kube_configmap_created gauge\n\
        kube_configmap_created{namespace=\"default\",configmap=\"a\"} 1.7e+09\n\
        kube_configmap_created{namespace=\"default\",configmap=\"b\"} 1.7e+09\n\
        kube_pod_info{namespace=\"default\",pod=\"p\",uid=\"u-1\",node=\"\"} 1\n";

    #[test]
    fn series_that_come_and_go_are_objects() {
        let name = |name: &str| Of::Name("default".into(), name.into());
        let there = Fact::There { ends: true };
        let mut configmaps = seen("{series: kube_configmap_created, name: configmap}");
        assert_eq!(configmaps.read(PAGE), Ok(vec![(name("a"), there), (name("b"), there)]));
        let fewer = PAGE.replace("kube_configmap_created{namespace=\"default\",configmap=\"a\"} 1.7e+09\n", "");
        assert_eq!(configmaps.read(&fewer), Ok(vec![(name("a"), Fact::Gone)]));
        let mut pods = seen("{series: 'kube_pod_info{namespace=\"default\"}', uid: uid}");
        assert_eq!(pods.read(PAGE), Ok(vec![(Of::Uid("u-1".into()), there)]));
        assert!(pods.read("<html>").unwrap_err().contains("no sample"));
    }

    /// The value of a sample is a version only if the scenario says so, and a new version only if the value has
    /// changed.
    #[test]
    fn a_value_is_a_version_where_it_is_said_to_be() {
        let of = || Of::Name("default".into(), "d".into());
        let page = |value: &str| {
            format!("kube_deployment_metadata_generation{{namespace=\"default\",deployment=\"d\"}} {value}\n")
        };
        let mut seen = seen("{series: kube_deployment_metadata_generation, name: deployment, value: generation}");
        assert!(seen.keys.sees(&About::default()).updated);
        assert_eq!(seen.read(&page("1")), Ok(vec![(of(), Fact::There { ends: true }), (of(), Fact::Version(1))]));
        assert_eq!(seen.read(&page("1")), Ok(vec![]));
        assert_eq!(seen.read(&page("1.234567e+06")), Ok(vec![(of(), Fact::Version(1_234_567))]));
        assert_eq!(seen.read(&page("NaN")), Ok(vec![]), "no version is none");
        assert_eq!(seen.read("other 1\n"), Ok(vec![(of(), Fact::Gone)]));
        assert!(serde_saphyr::from_str::<Metrics>("{series: a, uid: u, value: count}").is_err());
    }

    #[test]
    fn keys_without_sense_are_refused() {
        let about = About { has_metrics: true, ..About::default() };
        let wrong = |text: &str, about: &About| seen(text).keys.check(about).unwrap_err();
        assert!(wrong("{series: a}", &about).contains("`uid: LABEL`"));
        assert!(wrong("{series: a, uid: u, name: n}", &about).contains("`uid: LABEL`"));
        assert!(wrong("{series: a, uid: u}", &About::default()).contains("page of metrics"));
        let reused = About { reuses_names: true, ..about.clone() };
        assert!(wrong("{series: a, name: n}", &reused).contains("cannot tell them apart"));
        let keys = Metrics { series: "rate(a)".into(), uid: Some("u".into()), ..Metrics::default() };
        assert!(keys.check(&about).unwrap_err().contains("names no series"));
        assert_eq!(seen("{series: a, name: n, namespace: ns}").keys.check(&about), Ok(()));
    }
}

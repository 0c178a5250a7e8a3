//! The admission plugin `ResourceQuota` ("Resource Quotas"): what a namespace may use.
//!
//! Owns the comparison with `status.hard` and `status.used`, and raising what is used. Both come from a controller, which nobody
//! plays here: a quota without a status limits nothing, and what is used never falls by itself. It is the last of all plugins,
//! after the webhooks. What an object uses, `usage` knows, and which objects a quota counts, `scope`.

mod scope;
mod usage;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use mock_cel::Quantity;
use mock_objects::catalogue::Resource;
use mock_objects::kinds::Quota;
use serde_json::Value;

use super::own;
use crate::call::Call;

use mock_objects::object;
use mock_objects::status::Failure;

/// Boxed, because it writes a quota, which is a write like the one that it is a part of.
type Charging<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;
/// Amounts by the names that a quota has for them.
type Amounts = BTreeMap<String, Quantity>;

/// Counts an object that is to be created, or changed from `old`, against the quotas of its namespace; refuses it when one of them
/// has no room. `None`: there is nothing to count.
pub(super) fn charge<'a>(call: &'a Call, value: &'a Value, old: Option<&'a Value>) -> Option<Charging<'a>> {
    let counted = call.resource.namespaced && call.target.subresource.is_none();
    if !counted || !usage::is_counted(&call.resource, old.is_some()) {
        return None;
    }
    let catalogue = call.cluster().catalogue();
    let quotas = catalogue.by_full_name("resourcequotas").expect("quotas are built in");
    // Most namespaces have none, and this is asked at every write.
    let any = call.cluster().read(|store| store.count(quotas.id, Some(call.namespace()))) > 0;
    any.then(|| Box::pin(charge_all(call, quotas.clone(), value, old)) as Charging<'a>)
}

async fn charge_all(call: &Call, quotas: Arc<Resource>, value: &Value, old: Option<&Value>) -> Result<(), Failure> {
    let page = call
        .cluster()
        .read(|store| store.list(quotas.id, Some(call.namespace()), store.revision(), None, usize::MAX, |_| true));
    let request = Request { resource: &call.resource, value, old };
    let forbidden = |why: String| Failure::forbidden(call.resource.about(object::meta(value, "name")), &why);
    let mut concerned = Vec::new();
    for quota in page.map(|page| page.items).unwrap_or_default() {
        let quota = quota.value();
        if request.is_counted_by(&quota) {
            request.check_constraints(&quota).map_err(forbidden)?;
            concerned.push(quota);
        }
    }
    // Nothing is counted anywhere before there is room everywhere.
    for quota in &concerned {
        request.count(quota).map_err(forbidden)?;
    }
    if call.query.dry_run {
        return Ok(());
    }
    for quota in concerned {
        if request.added(&quota).is_empty() {
            continue;
        }
        let counted = own::change_status(call, &quotas, object::meta(&quota, "name"), |current| {
            current["status"]["used"] = request.count(current).map_err(forbidden)?;
            Ok(())
        });
        match counted.await {
            // A quota that is gone limits nothing.
            Err(failure) if failure == Failure::not_found(quotas.about(object::meta(&quota, "name"))) => {}
            counted => counted?,
        }
    }
    Ok(())
}

/// What is to be counted.
struct Request<'a> {
    resource: &'a Resource,
    value: &'a Value,
    old: Option<&'a Value>,
}

impl Request<'_> {
    /// Whether a quota has anything to say about the object.
    fn is_counted_by(&self, quota: &Value) -> bool {
        self.limited(quota).next().is_some() && scope::includes(quota, self.resource, self.value)
    }

    /// What the quota limits of all that such an object could use.
    fn limited<'q>(&self, quota: &'q Value) -> impl Iterator<Item = &'q String> + use<'q, '_> {
        let hard = quota["status"]["hard"].as_object().into_iter().flatten().map(|(name, _)| name);
        hard.filter(|name| usage::is_tracked(self.resource, name))
    }

    /// What the object must say to be counted, and what the quota must know.
    fn check_constraints(&self, quota: &Value) -> Result<(), String> {
        let mut limited: Vec<&str> = self.limited(quota).map(String::as_str).collect();
        limited.sort_unstable();
        let name = object::meta(quota, "name");
        if self.resource.rules.quota == Quota::Pods
            && let Some(missing) = usage::missing(&limited, self.value)
        {
            return Err(format!("failed quota: {name}: must specify {missing}"));
        }
        if limited.iter().any(|resource| quota["status"]["used"].get(*resource).is_none()) {
            return Err(format!("status unknown for quota: {name}, resources: {}", limited.join(",")));
        }
        Ok(())
    }

    /// What the object uses more than before, of what the quota limits. Less is for the controller to find out.
    fn added(&self, quota: &Value) -> Amounts {
        let mut added = usage::of(self.resource, self.value);
        if let Some(old) = self.old {
            let before = usage::of(self.resource, old);
            for (name, amount) in &mut added {
                if let Some(before) = before.get(name) {
                    *amount = amount.minus(*before);
                }
            }
        }
        added.retain(|name, amount| amount.signum() > 0 && quota["status"]["hard"].get(name).is_some());
        added
    }

    /// What is used when the object is counted; the error is why there is no room.
    fn count(&self, quota: &Value) -> Result<Value, String> {
        let status = &quota["status"];
        let mut used = status["used"].as_object().cloned().unwrap_or_default();
        let mut exceeded: BTreeMap<&str, [String; 3]> = BTreeMap::new();
        let added = self.added(quota);
        for (name, amount) in &added {
            let (before, limit) = (amount_of(&status["used"][name]), amount_of(&status["hard"][name]));
            // Nothing has no form of its own.
            let after = before.filter(|before| before.signum() != 0).map_or(*amount, |before| before.plus(*amount));
            if limit.is_some_and(|limit| after > limit) {
                let shown = |amount: Option<Quantity>| amount.map_or_else(|| "0".to_owned(), Quantity::canonical);
                exceeded.insert(name, [amount.canonical(), shown(before), shown(limit)]);
            }
            used.insert(name.clone(), Value::from(after.canonical()));
        }
        if exceeded.is_empty() {
            return Ok(Value::Object(used));
        }
        let list = |index: usize| {
            let one = |(name, amounts): (&&str, &[String; 3])| format!("{name}={}", amounts[index]);
            exceeded.iter().map(one).collect::<Vec<_>>().join(",")
        };
        let name = object::meta(quota, "name");
        Err(format!("exceeded quota: {name}, requested: {}, used: {}, limited: {}", list(0), list(1), list(2)))
    }
}

fn amount_of(value: &Value) -> Option<Quantity> {
    value.as_str().and_then(Quantity::parse)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use mock_objects::catalogue::Catalogue;

    fn quota(hard: &Value, used: &Value) -> Value {
        json!({"metadata": {"name": "q"}, "status": {"hard": hard, "used": used}})
    }

    fn pods() -> Arc<Resource> {
        Catalogue::builtin().by_full_name("pods").unwrap().clone()
    }

    #[test]
    fn what_is_used_is_added_up_in_its_own_form() {
        let value = json!({"spec": {"containers": [{"name": "c", "resources":
            {"requests": {"cpu": "600m", "memory": "10Mi"}, "limits": {"memory": "20Mi"}}}]}});
        let request = Request { resource: &pods(), value: &value, old: None };
        let hard = json!({"pods": "1500", "memory": "512Mi", "requests.cpu": "2", "secrets": "0"});
        let q = quota(&hard, &json!({"pods": "999", "memory": "0", "requests.cpu": "1", "secrets": "0"}));
        assert!(request.is_counted_by(&q));
        let used = request.count(&q).unwrap();
        assert_eq!(used, json!({"pods": "1k", "memory": "10Mi", "requests.cpu": "1600m", "secrets": "0"}));
        let full = quota(&hard, &json!({"pods": "5", "memory": "510Mi", "requests.cpu": "1900m"}));
        let why = "exceeded quota: q, requested: memory=10Mi,requests.cpu=600m, used: memory=510Mi,requests.cpu=1900m, \
                   limited: memory=512Mi,requests.cpu=2";
        assert_eq!(request.count(&full).unwrap_err(), why);
    }

    #[test]
    fn a_quota_must_know_what_is_used() {
        let value = json!({"spec": {"containers": [{"name": "c"}]}});
        let request = Request { resource: &pods(), value: &value, old: None };
        let q = quota(&json!({"pods": "1", "count/pods": "1"}), &json!({"pods": "0"}));
        let why = "status unknown for quota: q, resources: count/pods,pods";
        assert_eq!(request.check_constraints(&q).unwrap_err(), why);
        let q = quota(&json!({"cpu": "1"}), &json!({"cpu": "0"}));
        assert_eq!(request.check_constraints(&q).unwrap_err(), "failed quota: q: must specify cpu for: c");
        assert!(!request.is_counted_by(&quota(&json!({"secrets": "1"}), &json!({}))));
    }

    #[test]
    fn less_than_before_is_not_counted() {
        let services = Catalogue::builtin().by_full_name("services").unwrap().clone();
        let service = |kind: &str| json!({"spec": {"type": kind, "ports": [{"port": 80}, {"port": 81}]}});
        let q = quota(
            &json!({"services": "1", "services.nodeports": "9"}),
            &json!({"services": "1", "services.nodeports": "2"}),
        );
        let (plain, open) = (service("ClusterIP"), service("NodePort"));
        let wider = Request { resource: &services, value: &open, old: Some(&plain) };
        assert_eq!(wider.count(&q).unwrap()["services.nodeports"], "4");
        let narrower = Request { resource: &services, value: &plain, old: Some(&open) };
        assert!(narrower.added(&q).is_empty());
    }
}

//! The cluster IPs and node ports that the server assigns to services after admission, as a real server does.
//!
//! Owns the sets of free addresses and ports. The sets are computed from the existing services and from writes that are
//! still being admitted, so they stay correct after a deletion of a service or a restore of the store. This module must
//! not do I/O.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use mock_objects::catalogue::Resource;
use mock_objects::kinds::Meaning;
use mock_objects::status::{Cause, Failure};
use mock_store::Version;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// The first address of 10.96.0.0/12, which kubeadm uses for services. The service `kubernetes` has the following
/// address.
const FIRST: u32 = u32::from_be_bytes([10, 96, 0, 0]);
const ADDRESSES: u32 = 1 << 20;
const RANGE: &str = "10.96.0.0/12";
/// The range of node ports: the default of kube-apiserver's `--service-node-port-range`.
const PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

#[derive(Debug, Default)]
pub(crate) struct Addresses(Mutex<AuditLog>);

#[derive(Debug, Default)]
struct AuditLog {
    next: Next,
    /// Addresses and ports that uncommitted writes have reserved, by the number of the write.
    held: HashMap<u64, Taken>,
    writes: u64,
}

/// The next address and port to try: those after the last assigned ones, so that a freed address or port is not
/// assigned again soon.
#[derive(Debug, Default)]
struct Next {
    address: u32,
    port: u16,
}

/// The addresses and ports that one write has reserved. Other writes cannot get reserved addresses and ports until the
/// reservation is dropped.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    of: &'a Addresses,
    write: u64,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.of.0.lock().held.remove(&self.write);
    }
}

/// Whether the server assigns addresses to the objects of a resource.
pub(crate) fn concerns(resource: &Resource) -> bool {
    resource.rules.meaning == Meaning::Service
}

/// Copies the cluster IP, and the node ports of remaining ports, into an update of a service, because an update may
/// omit these fields.
pub(crate) fn carry_over(value: &mut Value, old: &Value) {
    let (kind, before) = (kind(value).to_owned(), kind(old).to_owned());
    let Some(spec) = value.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    if kind == "ExternalName" || before == "ExternalName" {
        return;
    }
    for key in ["clusterIP", "clusterIPs"] {
        if is_empty(&spec[key]) && !is_empty(&old["spec"][key]) {
            spec[key] = old["spec"][key].clone();
        }
    }
    if !has_ports(&kind) {
        return;
    }
    let known = old["spec"]["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let same = |other: &&Value| ["name", "port", "protocol"].iter().all(|key| other[*key] == port[*key]);
        if wants_port(port)
            && let Some(number) = known.iter().find(same).map(|known| known["nodePort"].clone()).filter(Value::is_i64)
        {
            port["nodePort"] = number;
        }
    }
}

impl Addresses {
    /// Assigns the addresses and ports that a service needs and lacks, and removes those that its type does not allow.
    /// `services` lists the existing services. Callers keep the reservation until the commit, so that no other write
    /// gets the same addresses.
    pub fn give(
        &self,
        services: impl FnOnce() -> Vec<Arc<Version>>,
        resource: &Resource,
        service: &mut Value,
    ) -> Result<Reservation<'_>, Failure> {
        let mut audit = self.0.lock();
        let mut taken = Taken::by_others(services(), resource, service);
        for held in audit.held.values() {
            // Another write of the same service does not count: both share its addresses; the slower one is repeated.
            if held.uid != mock_objects::object::meta(service, "uid") {
                taken.addresses.extend(held.addresses.iter().cloned());
                taken.ports.extend(&held.ports);
            }
        }
        let name = mock_objects::object::meta(service, "name").to_owned();
        let causes = fill(service, &taken, &mut audit.next);
        if !causes.is_empty() {
            return Err(Failure::invalid(resource.about_kind(&name), &causes));
        }
        audit.writes += 1;
        let write = audit.writes;
        audit.held.insert(write, Taken::of(service));
        Ok(Reservation { of: self, write })
    }
}

/// Addresses and ports that are in use.
#[derive(Debug, Default)]
struct Taken {
    /// The uid of the service that uses the addresses and ports; empty for a set of several services.
    uid: String,
    addresses: std::collections::HashSet<String>,
    ports: std::collections::HashSet<u16>,
}

impl Taken {
    fn by_others(services: Vec<Arc<Version>>, resource: &Resource, service: &Value) -> Self {
        let mut taken = Self::default();
        taken.addresses.insert(Ipv4Addr::from(FIRST + 1).to_string());
        let uid = mock_objects::object::meta(service, "uid");
        let at = |label: &str| resource.fields.iter().position(|field| &*field.label == label);
        let (address, kind) = (at("spec.clusterIP"), at("spec.type"));
        for version in services {
            if &*version.identity.uid == uid {
                continue;
            }
            let field = |index: Option<usize>| index.and_then(|index| version.facts().fields.get(index));
            taken.addresses.extend(field(address).map(ToString::to_string));
            // Only these types have node ports, so only these services are unpacked.
            if field(kind).is_some_and(|kind| has_ports(kind)) {
                taken.ports.extend(ports_of(&version.value()));
            }
        }
        taken
    }

    fn of(service: &Value) -> Self {
        Self {
            uid: mock_objects::object::meta(service, "uid").to_owned(),
            addresses: service["spec"]["clusterIP"].as_str().map(str::to_owned).into_iter().collect(),
            ports: ports_of(service).collect(),
        }
    }
}

fn ports_of(service: &Value) -> impl Iterator<Item = u16> {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten().map(|port| &port["nodePort"]);
    ports.chain([&service["spec"]["healthCheckNodePort"]]).filter_map(number)
}

fn fill(service: &mut Value, taken: &Taken, next: &mut Next) -> Vec<Cause> {
    let kind = kind(service).to_owned();
    let mut causes = Vec::new();
    let Some(spec) = service.get_mut("spec").filter(|spec| spec.is_object()) else { return causes };
    if kind == "ExternalName" {
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            remove(spec, key);
        }
    } else {
        address(spec, taken, next, &mut causes);
    }
    if has_ports(&kind) {
        node_ports(spec, &kind, taken, next, &mut causes);
    } else {
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            remove(port, "nodePort");
        }
        for key in ["allocateLoadBalancerNodePorts", "healthCheckNodePort"] {
            remove(spec, key);
        }
        if spec["externalIPs"].as_array().is_none_or(Vec::is_empty) {
            remove(spec, "externalTrafficPolicy");
        }
    }
    causes
}

fn address(spec: &mut Value, taken: &Taken, next: &mut Next, causes: &mut Vec<Cause>) {
    let given = spec["clusterIP"].as_str().or_else(|| spec["clusterIPs"][0].as_str()).unwrap_or_default().to_owned();
    let address = match given.as_str() {
        "None" => given,
        "" => {
            let free = (0..ADDRESSES).map(|step| FIRST + (next.address + 1 + step) % ADDRESSES);
            let mut free = free.filter(|address| address & 0xff != 0 && address & 0xff != 0xff);
            let Some(found) = free.find(|address| !taken.addresses.contains(&Ipv4Addr::from(*address).to_string()))
            else {
                let why = "failed to allocate IP: range is full";
                causes.push(Cause::invalid("spec.clusterIPs", "null", why));
                return;
            };
            next.address = found - FIRST;
            Ipv4Addr::from(found).to_string()
        }
        wanted => {
            let shown = format!("[\"{wanted}\"]");
            let known = wanted.parse::<Ipv4Addr>().ok().map(u32::from);
            if !known.is_some_and(|address| (FIRST..FIRST + ADDRESSES).contains(&address)) {
                let why = format!(
                    "failed to allocate IP {wanted}: the provided IP ({wanted}) is not in the valid range. The range of \
                     valid IPs is {RANGE}"
                );
                causes.push(Cause::invalid("spec.clusterIPs", &shown, &why));
            } else if taken.addresses.contains(wanted) {
                let why = format!("failed to allocate IP {wanted}: provided IP is already allocated");
                causes.push(Cause::invalid("spec.clusterIPs", &shown, &why));
            }
            given
        }
    };
    spec["clusterIPs"] = json!([address]);
    spec["clusterIP"] = Value::from(address);
}

fn node_ports(spec: &mut Value, kind: &str, taken: &Taken, next: &mut Next, causes: &mut Vec<Cause>) {
    let mut used = taken.ports.clone();
    let wanted = kind == "NodePort" || spec["allocateLoadBalancerNodePorts"] != json!(false);
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for (index, port) in ports.into_iter().flatten().enumerate() {
        let field = format!("spec.ports[{index}].nodePort");
        if !wants_port(port) {
            let Some(given) = number(&port["nodePort"]) else { continue };
            if !PORTS.contains(&given) {
                let why = "provided port is not in the valid range. The range of valid ports is 30000-32767";
                causes.push(Cause::invalid(&field, &given.to_string(), why));
            } else if !used.insert(given) {
                causes.push(Cause::invalid(&field, &given.to_string(), "provided port is already allocated"));
            }
        } else if wanted {
            match free_port(&mut used, next) {
                Some(free) => port["nodePort"] = json!(free),
                None => causes.push(Cause::invalid(&field, "0", "failed to allocate a nodePort: range is full")),
            }
        }
    }
    let checked = kind == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local";
    if !checked {
        remove(spec, "healthCheckNodePort");
    } else if number(&spec["healthCheckNodePort"]).is_none_or(|port| port == 0)
        && let Some(free) = free_port(&mut used, next)
    {
        spec["healthCheckNodePort"] = json!(free);
    }
}

fn free_port(used: &mut std::collections::HashSet<u16>, next: &mut Next) -> Option<u16> {
    let count = PORTS.end() - PORTS.start() + 1;
    let free = (0..count).map(|step| PORTS.start() + (next.port + step) % count).find(|port| !used.contains(port))?;
    next.port = (free - PORTS.start() + 1) % count;
    used.insert(free);
    Some(free)
}

fn kind(service: &Value) -> &str {
    service["spec"]["type"].as_str().unwrap_or_default()
}

fn has_ports(kind: &str) -> bool {
    matches!(kind, "NodePort" | "LoadBalancer")
}

fn wants_port(port: &Value) -> bool {
    number(&port["nodePort"]).is_none_or(|port| port == 0)
}

fn number(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|number| u16::try_from(number).ok())
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn remove(value: &mut Value, key: &str) {
    if let Some(object) = value.as_object_mut() {
        object.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(spec: &Value) -> Value {
        json!({"metadata": {"name": "s", "uid": "u"}, "spec": spec})
    }

    fn filled(spec: &Value, taken: &Taken) -> Result<Value, Vec<Cause>> {
        let mut service = service(spec);
        let causes = fill(&mut service, taken, &mut Next::default());
        if causes.is_empty() { Ok(service["spec"].take()) } else { Err(causes) }
    }

    fn taken(addresses: &[&str], ports: &[u16]) -> Taken {
        Taken {
            uid: String::new(),
            addresses: addresses.iter().map(ToString::to_string).collect(),
            ports: ports.iter().copied().collect(),
        }
    }

    #[test]
    fn an_address_is_given_once() {
        let mut next = Next::default();
        let mut all = taken(&["10.96.0.1"], &[]);
        for expected in ["10.96.0.2", "10.96.0.3"] {
            let mut one = service(&json!({"type": "ClusterIP", "ports": [{"port": 80}]}));
            assert!(fill(&mut one, &all, &mut next).is_empty());
            assert_eq!(one["spec"]["clusterIP"], expected);
            assert_eq!(one["spec"]["clusterIPs"], json!([expected]));
            assert!(all.addresses.insert(expected.to_owned()));
        }
    }

    #[test]
    fn a_wanted_address_must_be_free_and_in_range() {
        let with =
            |address: &str| filled(&json!({"type": "ClusterIP", "clusterIP": address}), &taken(&["10.96.3.4"], &[]));
        assert_eq!(with("10.96.3.5").unwrap()["clusterIPs"], json!(["10.96.3.5"]));
        assert_eq!(with("None").unwrap()["clusterIPs"], json!(["None"]));
        for (address, why) in
            [("10.96.3.4", "already allocated"), ("1.2.3.4", "not in the valid range"), ("x", "not in")]
        {
            let causes = with(address).unwrap_err();
            assert!(causes[0].message.contains(why), "{}", causes[0].message);
        }
    }

    #[test]
    fn node_ports_are_given_kept_and_taken_away() {
        let spec = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30000}, {"port": 81}]});
        let given = filled(&spec, &taken(&[], &[30001])).unwrap();
        assert_eq!(given["ports"][1]["nodePort"], 30002);
        let causes = filled(&spec, &taken(&[], &[30000])).unwrap_err();
        assert_eq!((causes.len(), causes[0].field.as_str()), (1, "spec.ports[0].nodePort"));
        let mut plain = given.clone();
        plain["type"] = json!("ClusterIP");
        let plain = filled(&plain, &taken(&[], &[])).unwrap();
        assert_eq!(plain["ports"], json!([{"port": 80}, {"port": 81}]));
    }

    #[test]
    fn a_balancer_that_keeps_clients_local_has_a_port_for_checks() {
        let balancer = |policy: &str, allocate: bool| {
            filled(
                &json!({"type": "LoadBalancer", "externalTrafficPolicy": policy,
                       "allocateLoadBalancerNodePorts": allocate, "ports": [{"port": 80}]}),
                &taken(&[], &[]),
            )
            .unwrap()
        };
        let local = balancer("Local", true);
        assert_ne!(local["healthCheckNodePort"], local["ports"][0]["nodePort"]);
        assert!(local["healthCheckNodePort"].is_u64());
        assert!(balancer("Cluster", true)["healthCheckNodePort"].is_null());
        assert!(balancer("Local", false)["ports"][0]["nodePort"].is_null());
    }

    #[test]
    fn an_update_keeps_what_it_leaves_out() {
        let old = service(&json!({"type": "NodePort", "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"],
                                 "ports": [{"name": "a", "port": 80, "protocol": "TCP", "nodePort": 31000}]}));
        let mut new = service(&json!({"type": "NodePort", "ports": [
            {"name": "a", "port": 80, "protocol": "TCP"}, {"name": "b", "port": 81, "protocol": "TCP"}]}));
        carry_over(&mut new, &old);
        assert_eq!(new["spec"]["clusterIP"], "10.96.0.9");
        assert_eq!(new["spec"]["ports"][0]["nodePort"], 31000);
        assert!(new["spec"]["ports"][1]["nodePort"].is_null());
    }
}

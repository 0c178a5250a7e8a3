//! The columns of services, of what stands behind and before them, and of network policies.

use serde_json::Value;

use super::print::{NONE, Printer, Row, UNSET, labels, load_balancer, selector, some};

const NAME: (&str, &str, i64) = ("Name", "string", 0);
const AGE: (&str, &str, i64) = ("Age", "string", 0);

pub(super) const SERVICE: Printer = Printer {
    columns: &[
        NAME,
        ("Type", "string", 0),
        ("Cluster-IP", "string", 0),
        ("External-IP", "string", 0),
        ("Port(s)", "string", 0),
        AGE,
        ("Selector", "string", 1),
    ],
    cells: |row| {
        let ports = row.items("/spec/ports").map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            match port["nodePort"].as_i64() {
                Some(node) if node > 0 => format!("{}:{node}/{protocol}", port["port"]),
                _ => format!("{}/{protocol}", port["port"]),
            }
        });
        let ports = ports.collect::<Vec<_>>().join(",");
        vec![
            row.name(),
            row.text("/spec/type").into(),
            row.text_or("/spec/clusterIP", NONE),
            external(row),
            if ports.is_empty() { NONE.into() } else { ports.into() },
            row.age(),
            labels(row.at("/spec/selector")),
        ]
    },
};

pub(super) const ENDPOINTS: Printer = Printer {
    columns: &[NAME, ("Endpoints", "string", 0), AGE],
    cells: |row| {
        let mut list = Vec::new();
        for subset in row.items("/subsets") {
            let addresses = || {
                let addresses = subset["addresses"].as_array().into_iter().flatten();
                addresses.map(|address| address["ip"].as_str().unwrap_or_default())
            };
            let ports = subset["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
            if ports.is_empty() {
                list.extend(addresses().map(str::to_owned));
            }
            for port in ports {
                list.extend(addresses().map(|address| joined(address, &port["port"])));
            }
        }
        vec![row.name(), some(list, NONE), row.age()]
    },
};

pub(super) const ENDPOINT_SLICE: Printer = Printer {
    columns: &[NAME, ("AddressType", "string", 0), ("Ports", "string", 0), ("Endpoints", "string", 0), AGE],
    cells: |row| {
        let ports = row.items("/ports").map(|port| match &port["port"] {
            Value::Null => "*".to_owned(),
            number => number.to_string(),
        });
        let addresses = row.items("/endpoints").flat_map(|endpoint| {
            endpoint["addresses"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned)
        });
        vec![
            row.name(),
            row.text("/addressType").into(),
            some(ports, UNSET),
            some(addresses.collect::<Vec<_>>(), UNSET),
            row.age(),
        ]
    },
};

pub(super) const INGRESS: Printer = Printer {
    columns: &[
        NAME,
        ("Class", "string", 0),
        ("Hosts", "string", 0),
        ("Address", "string", 0),
        ("Ports", "string", 0),
        AGE,
    ],
    cells: |row| {
        let hosts = row.items("/spec/rules").filter_map(|rule| rule["host"].as_str());
        let hosts = hosts.filter(|host| !host.is_empty()).map(str::to_owned);
        vec![
            row.name(),
            row.text_or("/spec/ingressClassName", NONE),
            some(hosts, "*"),
            load_balancer(row).into(),
            if row.items("/spec/tls").len() == 0 { "80" } else { "80, 443" }.into(),
            row.age(),
        ]
    },
};

pub(super) const INGRESS_CLASS: Printer = Printer {
    columns: &[NAME, ("Controller", "string", 0), ("Parameters", "string", 0), AGE],
    cells: |row| {
        let text = |key: &str| row.text(&format!("/spec/parameters/{key}"));
        let parameters = match (text("kind"), text("apiGroup")) {
            ("", _) => NONE.to_owned(),
            (kind, "") => format!("{kind}/{}", text("name")),
            (kind, group) => format!("{kind}.{group}/{}", text("name")),
        };
        vec![row.name(), row.text("/spec/controller").into(), parameters.into(), row.age()]
    },
};

pub(super) const NETWORK_POLICY: Printer = Printer {
    columns: &[NAME, ("Pod-Selector", "string", 0), AGE],
    cells: |row| vec![row.name(), selector(row.at("/spec/podSelector")), row.age()],
};

/// Where a service can be reached from outside the cluster.
fn external(row: &Row<'_>) -> Value {
    let given: Vec<&str> = row.items("/spec/externalIPs").filter_map(Value::as_str).collect();
    let mut all = match row.text("/spec/type") {
        "ExternalName" => return row.text("/spec/externalName").into(),
        "LoadBalancer" => {
            let balancer = load_balancer(row);
            if balancer.is_empty() && given.is_empty() {
                return "<pending>".into();
            }
            balancer
        }
        _ if given.is_empty() => return NONE.into(),
        _ => String::new(),
    };
    for address in given {
        if !all.is_empty() {
            all.push(',');
        }
        all.push_str(address);
    }
    all.into()
}

fn joined(address: &str, port: &Value) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

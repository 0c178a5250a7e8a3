//! Tests that the adapter of each real client reports every create, update and delete if nothing goes wrong. These
//! tests have no faults: `cargo xtask matrix` records the behaviour of clients after faults.

use crate::support::{Soak, soak_text};

const CLEAN: &str = include_str!("../files/client.yaml");

/// Clients that run handlers in parallel. On a busy machine the next event of an object may overtake a handler (row 54
/// of docs/measured/matrix.md), which is no fault of the adapter.
const OVERTAKE: [&str; 3] = ["client-node-", "kfc-", "pepr-"];

/// Runs the scenario without faults against a client of the matrix. Prints a message and returns `None` if the client
/// cannot be started here.
fn clean(id: &str) -> Option<Soak> {
    let columns = scenarios::clients::columns();
    let column = columns.iter().find(|column| column.id() == id).expect("the column is in the list");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let command = runtime.block_on(column.command());
    let command = command.inspect_err(|missing| println!("skipped: needs {missing}")).ok()?;
    let command = serde_json::to_string(&command).unwrap();
    let mut scenario = CLEAN.replace("[SUBJECT]", &command);
    if OVERTAKE.iter().any(|client| id.starts_with(client)) {
        let strict = "regressed: 0}";
        assert!(scenario.contains(strict));
        scenario = scenario.replace(strict, "regressed: 5, resurrected: 5}");
    }
    Some(soak_text(&scenario, &[]))
}

macro_rules! clean {
    ($($name:ident: $id:literal),* $(,)?) => {
        $(#[test]
        #[ignore = "slow"]
        fn $name() {
            let Some(soak) = clean($id) else { return };
            assert_eq!(soak.code(), Some(0), "{}", soak.story());
        })*

        /// Every client of the matrix has a test in this file.
        #[test]
        fn every_column_has_a_test() {
            let tested = [$($id),*];
            for column in scenarios::clients::columns() {
                // The service has many tests of its own.
                let ours = column.client() == "longhaul-service";
                assert!(ours || tested.contains(&column.id()), "{} has no test", column.id());
            }
        }
    };
}

clean! {
    client_go_is_clean: "client-go-0.37",
    nightly_client_go_over_http2_is_clean: "client-go-0.37-h2",
    nightly_controller_runtime_is_clean: "controller-runtime-0.25",
    nightly_controller_runtime_over_http_2_is_clean: "controller-runtime-0.25-h2",
    nightly_fabric8_is_clean: "fabric8-8.0",
    nightly_client_java_is_clean: "client-java-25",
    nightly_client_java_over_http_2_is_clean: "client-java-25-h2",
    kube_rs_watcher_is_clean: "kube-rs-watcher",
    nightly_kube_rs_streaming_lists_are_clean: "kube-rs-streaming",
    nightly_kube_rs_controller_is_clean: "kube-rs-controller",
    nightly_client_node_is_clean: "client-node-2.0.1",
    client_node_over_http_2_is_clean: "client-node-2.0.1-h2",
    nightly_fluent_client_2_3_is_clean: "kfc-2.3.1",
    nightly_fluent_client_2_3_with_native_fetch_is_clean: "kfc-2.3.1-fetch",
    nightly_fluent_client_2_6_is_clean: "kfc-2.6.5",
    nightly_fluent_client_3_0_is_clean: "kfc-3.0.4",
    nightly_fluent_client_3_1_is_clean: "kfc-3.1.1",
    nightly_fluent_client_3_1_over_http_2_is_clean: "kfc-3.1.1-h2",
    nightly_fluent_client_3_3_is_clean: "kfc-3.3.7",
    nightly_fluent_client_3_11_of_pepr_is_clean: "kfc-3.11.6",
    nightly_fluent_client_3_11_is_clean: "kfc-3.11.11",
    nightly_fluent_client_3_11_over_http_2_is_clean: "kfc-3.11.11-h2",
    nightly_old_pepr_is_clean: "pepr-0.29.2",
    new_pepr_is_clean: "pepr-1.1.4",
    python_is_clean: "python-37",
    kopf_is_clean: "kopf-1.45",
}

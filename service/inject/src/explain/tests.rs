use serde_json::json;

use super::*;

fn says(status: &Value, events: &[(&str, &str)]) -> String {
    let events: Vec<Event> =
        events.iter().map(|(reason, message)| Event { reason: (*reason).into(), message: (*message).into() }).collect();
    let findings = pod(&json!({"metadata": {}, "status": status}), &events);
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_seed_that_serves() {
    let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    assert_eq!(says(&ready, &[("FailedMount", "long ago")]), "the seed serves");
}

/// Each of these was reported to a predecessor that showed only a timeout.
#[test]
fn what_keeps_a_pod_from_serving_is_said_with_its_remedy() {
    let pending = json!({"phase": "Pending"});
    let sync = says(
        &pending,
        &[(
            "FailedMount",
            "MountVolume.SetUp failed for volume \"chunks-00001\" : failed to sync configmap cache: timed out waiting for the condition",
        )],
    );
    assert!(sync.contains("are not mounted: MountVolume.SetUp") && sync.contains("tries again by itself"), "{sync}");
    let missing = says(&pending, &[("FailedMount", "configmap \"seed-payload-00017\" not found")]);
    assert!(missing.contains("seed-payload-00017") && missing.contains("`inject apply` again sends it"), "{missing}");
    let unschedulable = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient cpu."}]});
    let unschedulable = says(&unschedulable, &[]);
    assert!(unschedulable.contains("0/3 nodes") && unschedulable.contains("make room"), "{unschedulable}");
    let waiting = |reason: &str| json!({"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": reason, "message": "m"}}}]});
    let gone = says(&waiting("ErrImageNeverPull"), &[]);
    assert!(gone.contains("ErrImageNeverPull m") && gone.contains("--node-image"), "{gone}");
    assert_eq!(
        says(&waiting("ContainerCreating"), &[("Scheduled", "assigned")]),
        "the Pod is Pending: Scheduled assigned"
    );
    let ended = |code: i32, reason: &str, message: &str| json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": code, "reason": reason, "message": message}}}]});
    let corrupt = says(&ended(65, "Error", "longhaul-seed: chunk 00003 (4 of 9): corrupt\n"), &[]);
    assert!(
        corrupt.contains("code 65 (Error): longhaul-seed: chunk 00003 (4 of 9): corrupt\n    run `inject apply` again"),
        "{corrupt}"
    );
    assert!(says(&ended(137, "OOMKilled", ""), &[]).contains("raise the namespace's limits"));
    let evicted = says(&json!({"phase": "Failed", "reason": "Evicted", "message": "low on disk"}), &[]);
    assert!(evicted.contains("Evicted low on disk"), "{evicted}");
    assert_eq!(says(&pending, &[]), "the Pod is Pending");
}

#[test]
fn refusals_are_said_with_their_remedies() {
    for (status, message, remedy) in [
        (403, "configmaps \"a\" is forbidden: exceeded quota: q, requested: count/configmaps=1", "ResourceQuota"),
        (
            403,
            "error looking up service account a/default: serviceaccount \"default\" not found",
            "service account yet",
        ),
        (403, "pods \"a\" is forbidden: violates PodSecurity \"restricted:latest\"", "Pod security level"),
        (403, "configmaps is forbidden: User \"u\" cannot patch resource", "lacks this right"),
        (403, "admission webhook \"w\" denied the request: no", "an admission webhook refused it"),
        (404, "namespaces \"a\" not found", "kubectl create namespace"),
        (409, "Apply failed with 1 conflict: conflict with \"kubectl\"", "belongs to another program"),
        (409, "unable to create new content in namespace a because it is being terminated", "is being deleted"),
        (413, "limit is 3145728", "--chunk-bytes"),
    ] {
        let found = refusal(status, message);
        assert!(found.as_ref().is_some_and(|found| found.contains(remedy)), "{status} {message}: {found:?}");
    }
    assert_eq!(refusal(500, "etcdserver: request timed out"), None);
}

#[test]
fn a_text_from_outside_cannot_move_a_cursor() {
    let text = says(&json!({"phase": "Failed", "reason": "R\u{1b}[2J", "message": "a\r\nb".repeat(1000)}), &[]);
    assert!(!text.lines().next().unwrap().chars().any(char::is_control) && text.len() < 1000, "{text}");
}

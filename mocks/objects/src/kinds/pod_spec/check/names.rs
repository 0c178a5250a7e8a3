//! The checks of a pod's service account, node name, host name and deadline.

use mock_cel::formats::subdomain;
use serde_json::Value;

use super::super::super::at::At;
use super::super::super::causes::Refuse;
use super::{MAX, check_label, text};
use crate::status::Cause;

pub(super) fn check(spec: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    for key in ["serviceAccountName", "nodeName"] {
        let name = text(spec, key);
        if !name.is_empty() {
            causes.faults(at.field(key), name, subdomain(name));
        }
    }
    causes.within(at.field("activeDeadlineSeconds"), spec["activeDeadlineSeconds"].as_i64(), (1, MAX));
    check_label(spec, "hostname", at, causes);
    check_label(spec, "subdomain", at, causes);
}

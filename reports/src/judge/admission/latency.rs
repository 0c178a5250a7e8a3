//! `admission.p50`, `admission.p99`, `admission.p999`: the response time of answers.

use crate::judge::quantile::{Measured, quantiles};
use crate::record::{AdmissionRow, tag};

quantiles! {
    "admission", Vec<&AdmissionRow>, Measured { tag: tag::RESPONSE, one: "answer" };
    P50 = "p50", "median", 500;
    P99 = "p99", "99th percentile", 990;
    P999 = "p999", "99.9th percentile", 999;
}

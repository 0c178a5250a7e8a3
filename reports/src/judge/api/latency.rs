//! `api.p50`, `api.p99`: the duration of reads.

use crate::judge::quantile::{Measured, quantiles};
use crate::record::{CallsRow, tag};

quantiles! {
    "api", Vec<&CallsRow>, Measured { tag: tag::CALLS_READ, one: "read" };
    P50 = "p50", "median", 500;
    P99 = "p99", "99th percentile", 990;
}

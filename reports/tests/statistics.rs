//! Compares the results of the crate `statistics` with results of `SciPy` and `statsmodels`, which
//! `fixtures/statistics/make.py` recorded.

#![expect(clippy::unwrap_used, reason = "the fixtures are part of the test")]

use reports::statistics::{
    binomial, change_point, correlation, hodges_lehmann, normal, proportion, quantile, theil_sen, wilcoxon,
};
use serde_json::Value;

fn cases(name: &str) -> Vec<Value> {
    let text = include_str!("fixtures/statistics/statistics.json");
    serde_json::from_str::<Value>(text).unwrap()[name].as_array().unwrap().clone()
}

fn number(case: &Value, key: &str) -> f64 {
    case[key].as_f64().unwrap()
}

fn whole(case: &Value, key: &str) -> u64 {
    case[key].as_u64().unwrap()
}

fn list(case: &Value, key: &str) -> Vec<f64> {
    case[key].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

fn agree(found: f64, case: &Value, key: &str) {
    let recorded = number(case, key);
    let off = (found - recorded).abs();
    assert!(off <= 1e-8 * recorded.abs().max(1.0), "{key}: {found} and {recorded}");
}

#[test]
fn theil_sen_as_scipy() {
    for case in cases("theilSen") {
        let found = theil_sen::slope(&list(&case, "x"), &list(&case, "y"), number(&case, "confidence"), 1.0).unwrap();
        agree(found.estimate, &case, "estimate");
        agree(found.lower, &case, "lower");
        agree(found.upper, &case, "upper");
    }
}

#[test]
fn wilcoxon_as_scipy() {
    for case in cases("wilcoxon") {
        let values = list(&case, "values");
        agree(hodges_lehmann::estimate(&values).unwrap(), &case, "estimate");
        agree(wilcoxon::bounds(&values, number(&case, "confidence")).unwrap().lower.unwrap(), &case, "lower");
    }
}

#[test]
fn quantiles_as_scipy() {
    for case in cases("quantile") {
        let found =
            quantile::interval(&list(&case, "values"), number(&case, "p"), number(&case, "confidence")).unwrap();
        agree(found.estimate, &case, "estimate");
        agree(found.lower.unwrap(), &case, "lower");
        agree(found.upper.unwrap(), &case, "upper");
    }
}

#[test]
fn shares_as_statsmodels() {
    for case in cases("wilson") {
        let found = proportion::wilson(whole(&case, "hits"), whole(&case, "n"), number(&case, "confidence")).unwrap();
        agree(found.lower, &case, "lower");
        agree(found.upper, &case, "upper");
    }
}

#[test]
fn correlation_times_as_statsmodels() {
    for case in cases("correlation") {
        agree(correlation::time(&list(&case, "values")).unwrap(), &case, "time");
    }
}

#[test]
fn distributions_as_scipy() {
    for case in cases("normal") {
        agree(normal::quantile(number(&case, "p")).unwrap(), &case, "z");
    }
    for case in cases("binomial") {
        agree(binomial::at_most(whole(&case, "k"), whole(&case, "n"), number(&case, "p")), &case, "cdf");
    }
}

/// The flow of the Nile fell after 1898, the 28th year of the series (Cobb, Biometrika 65, 1978).
#[test]
fn the_nile_changed_once() {
    let flow: Vec<f64> = cases("nile").iter().map(|value| value.as_f64().unwrap()).collect();
    assert_eq!(change_point::pelt(&flow, 1000.0, 2), Ok(vec![28]));
}

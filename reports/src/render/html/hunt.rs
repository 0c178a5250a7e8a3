//! The HTML page of `longhaul hunt`: findings first, then what was covered and what was not.

use askama::Template;

use super::{Data, data_json};
use crate::hunt::{Found, Hunt};
use crate::render::Error;
use crate::render::hunt::{CONDITION_HEADS, DISTURBANCE_HEADS, conditions, covered, disturbances, is_webhook, shown};

#[derive(Template)]
#[template(path = "hunt.html")]
struct Page<'a> {
    hunt: &'a Hunt,
    name: String,
    command: String,
    sentence: String,
    findings: Vec<(&'a Found, String)>,
    covered: Vec<String>,
    heads: [&'static str; 3],
    disturbances: Vec<[String; 3]>,
    condition_heads: [&'static str; 3],
    conditions: Vec<[String; 3]>,
    /// Whether the subject only answers reviews.
    is_webhook: bool,
    data: String,
}

/// The page, as one file that loads no other file.
pub fn hunt_html(hunt: &Hunt) -> Result<String, Error> {
    let page = Page {
        hunt,
        name: hunt.scenario.clone(),
        command: hunt.command.join(" "),
        sentence: hunt.sentence(),
        findings: hunt.findings.iter().map(|found| (found, shown(found))).collect(),
        covered: covered(hunt),
        heads: DISTURBANCE_HEADS,
        disturbances: disturbances(hunt),
        condition_heads: CONDITION_HEADS,
        conditions: conditions(hunt),
        is_webhook: is_webhook(hunt),
        data: data_json(&Data { length_ms: 0, unit: None, charts: Vec::new() })?,
    };
    Ok(page.render()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::tests::{found, hunt, webhook};

    /// The page has every finding with its course, makes no request, and has no raw text of the program.
    #[test]
    fn the_page_shows_findings_and_coverage() {
        let mut found = found();
        found.title = "<script>alert(1)</script>".to_owned();
        let page = hunt_html(&hunt(vec![found.clone(), found])).unwrap();
        assert_eq!(page.matches("play it").count(), 2);
        assert!(page.contains("Without it") && page.contains("1.3 s create"));
        assert!(page.contains("hold own") && page.contains("create of pods"));
        assert!(!page.contains("<script>alert"), "text from outside is escaped");
        assert!(!page.contains("http://") && !page.contains("https://"), "the page fetches nothing");
        assert!(!page.contains("id=\"webhooks\""), "the subject has none");
        let none = hunt_html(&hunt(Vec::new())).unwrap();
        assert!(none.contains("No finding in 40 trials"));
    }

    /// A subject that only answers reviews has neither disturbances nor points.
    #[test]
    fn the_page_of_a_webhook_shows_its_conditions() {
        let page = hunt_html(&webhook()).unwrap();
        assert!(page.contains("side by side") && page.contains("id=\"webhooks\""), "{page}");
        assert!(page.contains("/validate: the warnings") && !page.contains("id=\"points\""), "{page}");
    }
}

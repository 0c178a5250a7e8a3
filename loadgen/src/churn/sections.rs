//! [`Sections`]: one section of churn, or a list of them.

use std::ops::DerefMut;

use super::{Config, Error};

/// Maximum number of sections; a plan with more sections is not readable.
const SECTIONS_MAX: usize = 20;

/// The churned resources: none, one, or several at the same time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sections(pub Vec<Config>);

impl Sections {
    /// Refuses settings that cannot work; the error names the key, and the section if there are several.
    pub fn check(&self) -> Result<(), Error> {
        if self.len() > SECTIONS_MAX {
            let problem = format!("has {} sections: write at most {SECTIONS_MAX}", self.len());
            return Err(Error::Sections { problem });
        }
        let found_out = self.iter().filter(|config| config.rate.at().is_none()).count();
        if found_out > 0 && found_out < self.len() {
            let problem = "has `rate: auto` in some sections only, and one rate is found out for all: write `auto`, or a rate, in each";
            return Err(Error::Sections { problem: problem.to_owned() });
        }
        self.iter().enumerate().try_for_each(|(at, config)| config.check().map_err(|error| self.of(at, error)))
    }

    /// Adds the number of the section to its error.
    pub(super) fn of(&self, at: usize, error: Error) -> Error {
        if self.len() == 1 { error } else { Error::Section { number: at + 1, source: Box::new(error) } }
    }
}

crate::one_or_more! {
    Sections of Config, at most SECTIONS_MAX, as "ChurnSections",
    "a section of churn such as `{resource: v1/configmaps, population: 50, rate: 10/s}`, or a list of them"
}

impl DerefMut for Sections {
    fn deref_mut(&mut self) -> &mut [Config] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"{"resource": "v1/configmaps", "population": 5, "rate": "1/s"}"#;

    #[test]
    fn one_several_or_none() {
        let read = |text: &str| serde_json::from_str::<Sections>(text);
        assert_eq!(read(ONE).unwrap().len(), 1);
        assert_eq!(read(&format!("[{ONE}, {ONE}]")).unwrap().len(), 2);
        assert_eq!(read("null").unwrap(), Sections::default());
        for text in [ONE.to_owned(), format!("[{ONE},{ONE}]"), "null".to_owned()] {
            let sections = read(&text).unwrap();
            assert_eq!(read(&serde_json::to_string(&sections).unwrap()).unwrap(), sections);
        }
        assert!(read(r#"{"resourc": 1}"#).unwrap_err().to_string().contains("unknown field `resourc`"));
        assert!(read("3").unwrap_err().to_string().contains("a section of churn such as"));
    }

    #[test]
    fn an_error_names_the_section_where_there_are_several() {
        let mut sections: Sections = serde_json::from_str(&format!("[{ONE}, {ONE}]")).unwrap();
        sections.check().unwrap();
        sections[1].population = 0;
        let error = sections.check().unwrap_err().to_string();
        assert_eq!(error, "section 2: churn.population: is 0: write 1 to 200000");
        sections.0.remove(0);
        assert!(sections.check().unwrap_err().to_string().starts_with("churn.population: "));
    }

    /// `auto` is allowed only for all sections together: writes of a section with a fixed rate would count as backlog
    /// of a section with `auto`.
    #[test]
    fn one_rate_is_found_out_for_all_sections() {
        let auto = ONE.replace("1/s", "auto");
        let check = |text: &str| serde_json::from_str::<Sections>(text).unwrap().check();
        check(&format!("[{auto}, {auto}]")).unwrap();
        let error = check(&format!("[{auto}, {ONE}]")).unwrap_err().to_string();
        assert!(error.starts_with("churn: has `rate: auto` in some sections only"), "{error}");
    }
}

//! Reads command-line flags as test kits write them, without I/O.
//!
//! Reads `--key=value`, `--key value`, `-key value` and switches without a value. The parser accepts every flag,
//! because suites set flags of every version.

/// The flags of one command line, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(Vec<(String, String)>);

impl Flags {
    /// Parses arguments. If a flag has no `=`, the next word is its value unless that word is a flag too; a flag
    /// without a value is `true`.
    pub fn parse(arguments: &[String]) -> Self {
        let mut flags = Vec::new();
        let mut words = arguments.iter().peekable();
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { continue };
            if let Some((key, value)) = flag.split_once('=') {
                flags.push((key.to_owned(), value.to_owned()));
                continue;
            }
            let value = words.next_if(|next| !next.starts_with('-')).map_or_else(|| "true".to_owned(), Clone::clone);
            flags.push((flag.to_owned(), value));
        }
        Self(flags)
    }

    /// The last value of a flag; an empty value counts as absent.
    pub fn last(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub fn is_on(&self, key: &str) -> bool {
        self.last(key).is_some_and(|value| value == "true")
    }

    /// The flags of the command line that are not in `known`, without duplicates.
    pub fn beside<'a>(&'a self, known: &[&str]) -> Vec<&'a str> {
        let mut others: Vec<&str> = self.0.iter().map(|(key, _)| key.as_str()).collect();
        others.retain(|key| !known.contains(key));
        others.sort_unstable();
        others.dedup();
        others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(line: &str) -> Flags {
        Flags::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn every_kit_has_its_own_way_of_writing_flags() {
        let go = flags("--allow-privileged=true --secure-port=6443 --cert-dir=/a=b --etcd-servers=");
        assert_eq!(
            (go.last("secure-port"), go.last("cert-dir"), go.last("etcd-servers")),
            (Some("6443"), Some("/a=b"), None)
        );
        let java = flags("--allow-privileged --secure-port 1 -data-dir /d --secure-port 2");
        assert!(java.is_on("allow-privileged"));
        assert_eq!((java.last("secure-port"), java.last("data-dir")), (Some("2"), Some("/d")));
        assert_eq!(java.beside(&["data-dir", "allow-privileged"]), ["secure-port"]);
    }
}

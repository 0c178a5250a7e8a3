//! Parses the command line of the injected program by hand, because a library would add 200 KiB for five options.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::digest::Digest;
use crate::failure::Failure;

/// The message about a wrong command line.
const USAGE: &str =
    "usage: longhaul-seed --index FILE --index-sha256 HEX --chunks FOLDER --out FOLDER [--listen ADDRESS]";

/// The arguments of the injected program.
#[derive(Debug, Clone)]
pub struct Args {
    pub index: PathBuf,
    /// The digest of the payload's index. All trust in the payload is based on this digest.
    pub index_sha256: Digest,
    /// The folder that contains the folders of chunks.
    pub chunks: PathBuf,
    /// An existing folder to which the payload's files are unpacked.
    pub out: PathBuf,
    /// The address at which the payload is served; `None` means that the payload is only assembled and verified.
    pub listen: Option<String>,
}

impl Args {
    /// Parses the arguments, without the program's name.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, Failure> {
        let usage = |what: String| Failure::Usage(format!("{what}\n{USAGE}"));
        let (mut index, mut digest, mut chunks, mut out, mut listen) = (None, None, None, None, None);
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            let name = name.to_string_lossy().into_owned();
            let mut value = || arguments.next().ok_or_else(|| usage(format!("`{name}` needs a value")));
            match &*name {
                "--index" => index = Some(PathBuf::from(value()?)),
                "--chunks" => chunks = Some(PathBuf::from(value()?)),
                "--out" => out = Some(PathBuf::from(value()?)),
                "--listen" => listen = Some(value()?.to_string_lossy().into_owned()),
                "--index-sha256" => {
                    let text = value()?.to_string_lossy().into_owned();
                    let wrong = || usage("`--index-sha256` takes 64 lower-case hex digits".to_owned());
                    digest = Some(Digest::from_hex(&text).ok_or_else(wrong)?);
                }
                _ => return Err(usage(format!("unknown argument `{name}`"))),
            }
        }
        let missing = |name: &str| usage(format!("`{name}` is missing"));
        Ok(Self {
            index: index.ok_or_else(|| missing("--index"))?,
            index_sha256: digest.ok_or_else(|| missing("--index-sha256"))?,
            chunks: chunks.ok_or_else(|| missing("--chunks"))?,
            out: out.ok_or_else(|| missing("--out"))?,
            listen,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Args, String> {
        Args::parse(text.split_whitespace().map(OsString::from)).map_err(|failure| failure.to_string())
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        let digest = "a".repeat(64);
        let args = parse(&format!("--index i --index-sha256 {digest} --chunks c --out o --listen [::]:5000")).unwrap();
        assert_eq!(args.listen.as_deref(), Some("[::]:5000"));
        assert!(parse("--index i").unwrap_err().starts_with("`--index-sha256` is missing\nusage: "));
        assert!(parse("--index").unwrap_err().starts_with("`--index` needs a value"));
        assert!(parse("--index-sha256 xyz").unwrap_err().starts_with("`--index-sha256` takes 64"));
        assert!(parse("--verbose").unwrap_err().starts_with("unknown argument `--verbose`"));
    }
}

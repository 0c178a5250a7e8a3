//! How a Makefile builds a Go program: the line with `go build -o`. Does no I/O.
//!
//! Only plain arguments are accepted, because the values of variables are not known.

use super::go::is_aside;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Built {
    /// The path of the program, such as `bin/manager`.
    pub(super) program: String,
    /// The built file or package, such as `cmd/main.go` or `./cmd`.
    pub(super) of: String,
}

impl Built {
    /// The build command, without flags that only a release needs.
    pub(super) fn command(&self) -> String {
        format!("go build -o {} {}", self.program, self.of)
    }
}

/// The program that the Makefile builds: the program named `manager`, or else the first program. Programs of tests and
/// plugins are left out.
pub(super) fn built(text: &str) -> Option<Built> {
    let joined = text.replace("\\\n", " ");
    let is_main = |built: &Built| !built.of.split('/').any(is_aside);
    let all: Vec<Built> = joined.lines().filter_map(line).filter(is_main).collect();
    all.iter().find(|built| built.program.ends_with("manager")).or(all.first()).cloned()
}

fn line(line: &str) -> Option<Built> {
    let recipe = line.strip_prefix('\t')?;
    let words: Vec<&str> = recipe.split_whitespace().collect();
    let start = words.windows(2).position(|pair| matches!(pair, [go, "build"] if is_go(go)))?;
    let words = &words[start..];
    let at = words.iter().position(|word| *word == "-o")?;
    let program = words.get(at + 1).copied().filter(|word| is_plain(word))?;
    let of = words.last().copied().filter(|word| is_plain(word) && *word != program);
    let is_file = |word: &str| std::path::Path::new(word).extension().is_some_and(|ending| ending == "go");
    let of = of.filter(|word| is_file(word) || word.starts_with('.') || word.contains('/')).unwrap_or(".");
    Some(Built { program: program.to_owned(), of: of.to_owned() })
}

/// Whether a word of a command is `go`, or a usual variable for `go`.
fn is_go(word: &str) -> bool {
    matches!(word.trim_start_matches(['@', '-']), "go" | "$(GO)" | "${GO}")
}

/// Whether a word is a path inside the project without special characters of a shell.
pub(super) fn is_plain(word: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || "./_-".contains(c);
    let leaves = word.starts_with('/') || word.split('/').any(|part| part == "..");
    !word.is_empty() && word.len() <= 200 && word.chars().all(fine) && !word.starts_with('-') && !leaves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_builds_is_found() {
        let of = |text: &str| built(text).map(|built| built.command());
        assert_eq!(
            of("build: vet\n\tgo build -o bin/manager cmd/main.go\n").as_deref(),
            Some("go build -o bin/manager cmd/main.go")
        );
        assert_eq!(
            of("build:\n\tCGO_ENABLED=0 $(GO) build -ldflags \"$(FLAGS)\" \\\n\t  -o bin/app ./cmd/app\n").as_deref(),
            Some("go build -o bin/app ./cmd/app")
        );
        assert_eq!(
            of("a:\n\tgo build -o bin/tool ./tool\nb:\n\t@go build -o bin/manager main.go\n").as_deref(),
            Some("go build -o bin/manager main.go")
        );
        assert_eq!(of("a:\n\tgo build -o bin/plugin test/cmd/plugin-sample/main.go\n"), None, "it is for tests");
        assert_eq!(of("a:\n\tgo build -o bin/manager\n").as_deref(), Some("go build -o bin/manager ."));
    }

    /// Paths outside the project, or with special characters of a shell, are not used.
    #[test]
    fn what_is_not_plain_is_left_out() {
        for text in [
            "a:\n\tgo build -o $(LOCALBIN)/manager ./cmd\n",
            "a:\n\tgo build -o /usr/bin/manager ./cmd\n",
            "a:\n\tgo build -o ../manager ./cmd\n",
            "a:\n\tgo build -o bin/a;rm ./cmd\n",
            "go build -o bin/manager ./cmd\n",
        ] {
            assert_eq!(built(text), None, "{text}");
        }
        assert_eq!(built("a:\n\tgo build -o bin/m $(PKG)\n").map(|built| built.of).as_deref(), Some("."));
    }
}

//! How a Dockerfile builds and starts a program: the `go build` line, `ENTRYPOINT` and `CMD`. Does no I/O.

use std::collections::BTreeMap;
use std::path::Path;

use super::makefile::{self, Built};

/// Maximum number of build arguments. Values of arguments may refer to each other, so that they could grow without end.
const ARGUMENTS_MAX: usize = 100;
const VALUE_BYTES_MAX: usize = 200;
const COMMAND_BYTES_MAX: usize = 16 << 10;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Image {
    /// The program that the Dockerfile builds, if the command also works outside the image.
    pub(super) built: Option<Built>,
    pub(super) command: Vec<String>,
}

pub(super) fn read(text: &str) -> Image {
    let joined = text.replace("\\\n", " ");
    let mut values = BTreeMap::new();
    let mut built = Vec::new();
    for line in joined.lines().map(str::trim) {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match word.to_ascii_uppercase().as_str() {
            "ARG" => {
                if let Some((name, value)) = rest.split_once('=')
                    && values.len() < ARGUMENTS_MAX
                    && value.len() <= VALUE_BYTES_MAX
                {
                    values.insert(name.trim().to_owned(), value.trim_matches(['"', '\'']).to_owned());
                }
            }
            "RUN" => built.extend(rest.split("&&").filter_map(|command| go_build(&put(command, &values)))),
            _ => {}
        }
    }
    let command = super::language::image_command(&joined);
    let started = command.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
    let named = |built: &&Built| built.program.rsplit('/').next() == Some(started);
    let built = built.iter().find(named).or(built.first()).cloned();
    Image { built, command }
}

/// The command with build arguments replaced by their values; empty if the command becomes too long.
fn put(command: &str, values: &BTreeMap<String, String>) -> String {
    let mut text = command.to_owned();
    // A longer name is replaced before one that is its prefix.
    for (name, value) in values.iter().rev() {
        if text.len() > COMMAND_BYTES_MAX {
            return String::new();
        }
        text = text.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value);
    }
    text
}

/// The program and the package in a `go build` command. Only the file name of the program is kept, because paths in the
/// image do not exist outside.
fn go_build(command: &str) -> Option<Built> {
    let words = shlex::split(command)?;
    let start = words.windows(2).position(|pair| pair[0] == "go" && pair[1] == "build")?;
    let words = &words[start + 2..];
    let at = words.iter().position(|word| word == "-o");
    let program = at.and_then(|at| words.get(at + 1)).map_or("", String::as_str);
    let name = program.rsplit('/').next().filter(|name| makefile::is_plain(name)).unwrap_or("subject");
    let of = words
        .last()
        .filter(|word| Some(word.as_str()) != Some(program) && is_package(word))
        .map_or(".", String::as_str);
    Some(Built { program: format!("bin/{name}"), of: of.to_owned() })
}

/// Whether an argument is a Go package or a file inside the project.
fn is_package(word: &str) -> bool {
    let is_file = Path::new(word).extension().is_some_and(|ending| ending == "go");
    makefile::is_plain(word) && (word == "." || word.contains('/') || is_file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(text: &str) -> Option<String> {
        read(text).built.map(|built| built.command())
    }

    #[test]
    fn the_line_of_the_started_program_counts() {
        let usual = "FROM golang AS b\nARG TARGETARCH\nRUN CGO_ENABLED=0 GOARCH=${TARGETARCH} go build -a -o manager cmd/main.go\nFROM x\nENTRYPOINT \
                     [\"/manager\"]\n";
        assert_eq!(built(usual).as_deref(), Some("go build -o bin/manager cmd/main.go"));
        assert_eq!(read(usual).command, ["/manager"]);
        let two = "RUN go build -o /out/tool ./tool && \\\n  go build -o /out/shop ./cmd/shop\nENTRYPOINT [\"/usr/bin/shop\"]\n";
        assert_eq!(built(two).as_deref(), Some("go build -o bin/shop ./cmd/shop"));
    }

    #[test]
    fn arguments_have_their_values() {
        let text = "ARG package=.\nARG ARCH\nRUN --mount=type=cache,target=/root go build -trimpath -ldflags \"${ldflags} -s\" -o manager ${package}\n";
        assert_eq!(built(text).as_deref(), Some("go build -o bin/manager ."));
        assert_eq!(built("RUN go build -o a ${PKG}\n").as_deref(), Some("go build -o bin/a ."));
        assert_eq!(built("RUN make build\n"), None);
        let two = "ARG p=x\nARG package=./cmd\nRUN go build -o a $package\n";
        assert_eq!(built(two).as_deref(), Some("go build -o bin/a ./cmd"));
        let each = |at: u8| format!("ARG a{at:02}=${{a{before:02}}}${{a{before:02}}}\n", before = at - 1);
        let endless = format!("{}RUN go build -o a ${{a59}}\n", (1..60).map(each).collect::<String>());
        assert_eq!(built(&endless), None, "values that name each other");
        assert_eq!(built("RUN go build -o 'a;rm' ../x\n").as_deref(), Some("go build -o bin/subject ."));
    }
}

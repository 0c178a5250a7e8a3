//! The arguments and environment variables with which a program is started: from the run, the program's help text, and
//! the project's manifests. Does no I/O.

use std::sync::LazyLock;

use regex::Regex;

use super::seen::Open;
use crate::init::Found;
use crate::init::deployed::Deployed;
use crate::init::go::Flags;
use crate::init::help::Help;
use crate::init::text::arguments;

/// Maximum number of arguments that are taken from a manifest.
const WORDS_MAX: usize = 40;
/// Maximum length of an argument in bytes. Variables may refer to each other, so that values could grow without end.
const WORD_BYTES_MAX: usize = 4096;
/// Environment variables that depend on this machine and this run. Values of these variables in an image are ignored.
const OWN: [&str; 3] = ["KUBECONFIG", "PATH", "HOME"];

/// The arguments, beginning with the program, and the environment variables.
pub(crate) fn words(
    found: &Found,
    program: &[String],
    command: Option<&str>,
    help: &Help,
) -> (Vec<String>, Vec<(String, String)>) {
    let name = program.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let deployed = found.workloads.own(name);
    let variables = deployed.map(|deployed| variables(found, deployed)).unwrap_or_default();
    let flags = Flags::of_help(help);
    let mut run: Vec<String> = program.to_vec();
    run.extend(command.map(str::to_owned));
    // It is not known yet whether it serves reviews; an unwanted certificate is removed later.
    let own = arguments(&flags, found, true);
    let known: Vec<String> = own.iter().map(|word| flag_of(word).to_owned()).collect();
    run.extend(own);
    if help.flags.contains_key("kubeconfig") {
        run.push("--kubeconfig=${KUBECONFIG}".to_owned());
    }
    for word in deployed.map(|deployed| given(deployed, &variables)).unwrap_or_default() {
        let flag = flag_of(&word);
        let is_known = help.flags.contains_key(flag) && !known.iter().any(|one| one == flag) && !Flags::is_ours(flag);
        if is_known && flag != "kubeconfig" {
            run.push(word);
        }
    }
    (run, variables)
}

/// The subcommands with which a manifest or an image starts the program, if its help text lists subcommands.
pub(crate) fn commands<'h>(found: &Found, program: &str, help: &'h Help) -> Vec<&'h str> {
    let deployed = found.workloads.own(program);
    let words = deployed.into_iter().flat_map(|deployed| deployed.command.iter().skip(1).chain(&deployed.arguments));
    let image = found.image.iter().flat_map(|(_, words)| words.iter().skip(1));
    let named = words.chain(image).filter_map(|word| help.commands.iter().find(|command| *command == word));
    let mut all: Vec<&str> = Vec::new();
    for command in named.map(String::as_str).chain(help.starting()) {
        if !all.contains(&command) {
            all.push(command);
        }
    }
    all
}

/// A variable `${NAME:=default}`, as in manifests for envsubst or clusterctl, of which the default is used.
static DEFAULTED: LazyLock<Regex> =
    LazyLock::new(|| crate::init::pattern(r"\$\{[A-Za-z_][A-Za-z0-9_]*:?[=-]((?u:[^{}]*))\}"));

/// The name of the flag in an argument, without dashes and value.
fn flag_of(word: &str) -> &str {
    word.trim_start_matches('-').split('=').next().unwrap_or_default()
}

/// The flags of a container, each with its value in one argument. Paths in the image and values that exist only in a
/// cluster are left out.
fn given(deployed: &Deployed, variables: &[(String, String)]) -> Vec<String> {
    let all: Vec<&String> = deployed.command.iter().skip(1).chain(&deployed.arguments).take(WORDS_MAX).collect();
    let mut words = Vec::new();
    for (at, word) in all.iter().enumerate() {
        if !word.starts_with('-') {
            continue;
        }
        let value = all.get(at + 1).filter(|next| !word.contains('=') && !next.starts_with('-'));
        let whole = value.map_or_else(|| (*word).clone(), |value| format!("{word}={value}"));
        if let Some(put) = put(&whole, variables).filter(|word| !word.contains("=/")) {
            words.push(put);
        }
    }
    words
}

/// An argument in which `$(NAME)` is replaced as Kubernetes does; `None` if a variable has no value.
fn put(word: &str, variables: &[(String, String)]) -> Option<String> {
    let mut text = word.to_owned();
    for (name, value) in variables.iter().filter(|(_, value)| value.len() <= WORD_BYTES_MAX) {
        if text.len() > WORD_BYTES_MAX {
            return None;
        }
        text = text.replace(&format!("$({name})"), value);
    }
    (!text.contains("$(")).then(|| escaped(&DEFAULTED.replace_all(&text, "$1")))
}

/// The text, escaped so that no part is replaced as a variable of the run.
fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}

fn variables(found: &Found, deployed: &Deployed) -> Vec<(String, String)> {
    let value = |(name, given): &(String, crate::init::deployed::Given)| {
        let value = found.workloads.value(deployed, given)?;
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.is_empty();
        (is_plain && !OWN.contains(&name.as_str())).then(|| (name.clone(), value))
    };
    let mut all: Vec<(String, String)> = Vec::new();
    for (name, value) in deployed.variables.iter().take(WORDS_MAX).filter_map(value) {
        // As in Kubernetes, a value may refer to an earlier variable.
        let value = put(&value, &all).unwrap_or_else(|| escaped(&value));
        all.push((name, value));
    }
    all
}

type Words = (Vec<String>, Vec<(String, String)>);

/// The arguments and variables, with the program's ports replaced by ports of the run, if a flag or a variable sets the
/// program's ports. `None` if there is no port to replace.
pub(crate) fn ports_moved(
    run: &[String],
    variables: &[(String, String)],
    help: &Help,
    ports: &[Open],
) -> Option<Words> {
    let (mut run, mut variables) = (run.to_vec(), variables.to_vec());
    let mut is_moved = false;
    for open in ports.iter().filter(|open| open.variable.is_none()) {
        let at = |value: &str| address(value, open.port);
        let flag = help.flags.iter().find_map(|(name, default)| Some((name.clone(), at(default)?)));
        if let Some((name, host)) = flag {
            let port = variable(&name, &run, &variables);
            run.retain(|word| !word.starts_with('-') || flag_of(word) != name);
            run.push(format!("--{name}={host}${{{port}}}"));
            is_moved = true;
            continue;
        }
        let found = variables.iter().position(|(_, value)| at(value).is_some());
        if let Some((place, host)) = found.and_then(|place| Some((place, at(&variables[place].1)?))) {
            let port = variable(&variables[place].0.to_lowercase(), &run, &variables);
            variables[place].1 = format!("{host}${{{port}}}");
            is_moved = true;
        }
    }
    is_moved.then_some((run, variables))
}

/// The host before the port, if the text is an address with this port; empty if the text is only the port.
fn address(text: &str, port: u16) -> Option<String> {
    if text == port.to_string() {
        return Some(String::new());
    }
    let host = text.strip_suffix(&format!(":{port}"))?;
    let is_own = ["", "0.0.0.0", "[::]", "::", "*", "localhost", "127.0.0.1"].contains(&host);
    is_own.then(|| "127.0.0.1:".to_owned())
}

/// The name of an unused variable for the port of this flag.
fn variable(name: &str, run: &[String], variables: &[(String, String)]) -> &'static str {
    let is_taken = |variable: &str| {
        let written = format!("${{{variable}}}");
        run.iter().any(|word| word.contains(&written)) || variables.iter().any(|(_, value)| value.contains(&written))
    };
    let (metrics, webhook) = (crate::scenario::METRICS_PORT_NAME, crate::scenario::WEBHOOK_PORT);
    let meant = [("metric", metrics), ("prometheus", metrics), ("diagnos", metrics), ("webhook", webhook)];
    let meant = meant.into_iter().find(|(word, variable)| name.contains(word) && !is_taken(variable));
    let free = || crate::scenario::FREE_PORTS.into_iter().find(|variable| !is_taken(variable));
    meant.map(|(_, variable)| variable).or_else(free).unwrap_or(crate::scenario::FREE_PORTS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(port: u16) -> Open {
        Open { port, variable: None, is_tls: false, pages: Vec::new(), counts_goroutines: false }
    }

    #[test]
    fn a_port_is_moved_by_the_flag_that_names_it() {
        let help = Help::read(
            "Flags:\n      --diagnostics-address string   where (default \":8443\")\n      --health-port int   where (default 9440)\n      --redis \
             string   where (default \"redis:6379\")\n",
        );
        let variables = vec![("PPROF".to_owned(), ":6060".to_owned())];
        let run = vec!["a".to_owned(), "--health-port=9440".to_owned()];
        let (run, variables) =
            ports_moved(&run, &variables, &help, &[open(8443), open(9440), open(6060), open(6379)]).unwrap();
        assert_eq!(
            run,
            ["a", "--diagnostics-address=127.0.0.1:${LONGHAUL_METRICS_PORT}", "--health-port=${LONGHAUL_PORT_1}"]
        );
        assert_eq!(variables, [("PPROF".to_owned(), "127.0.0.1:${LONGHAUL_PORT_2}".to_owned())]);
        assert_eq!(ports_moved(&run, &variables, &help, &[open(6379)]), None);
    }

    #[test]
    fn words_of_a_manifest_are_whole() {
        let words = ["controller", "--a", "--b", "x", "--c=$(POD_NAMESPACE)", "--d=$(OTHER)", "--e=/etc/x", "--f=${x}"];
        let deployed = Deployed { arguments: words.map(str::to_owned).to_vec(), ..Deployed::default() };
        let variables = [("POD_NAMESPACE".to_owned(), "shop".to_owned())];
        let template = "--gates=Pool=${EXP_POOL:=true},Topology=${TOPOLOGY:-false},Other=${OTHER}";
        assert_eq!(put(template, &[]).as_deref(), Some("--gates=Pool=true,Topology=false,Other=$${OTHER}"));
        assert_eq!(given(&deployed, &variables), ["--a", "--b=x", "--c=shop", "--f=$${x}"]);
        let each = |at: usize| (format!("V{at:02}"), format!("$(V{0:02})$(V{0:02})", at + 1));
        let endless: Vec<(String, String)> = (0..WORDS_MAX).map(each).collect();
        assert_eq!(put("--x=$(V00)", &endless), None, "values that name each other");
    }
}

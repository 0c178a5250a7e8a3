//! The CEL functions for Kubernetes' value types: quantities, addresses, URLs, versions, times and formats (Kubernetes
//! documentation, "Common Expression Language in Kubernetes", "CEL options, language features, and libraries").
//!
//! Owns the table of the functions' types. The modules `addresses`, `formats`, `quantity`, `semver`, `time` and `url`
//! define the value types.

use std::cmp::Ordering;
use std::rc::Rc;

use super::Failed;
use super::addresses::{self, Cidr, read_cidr, read_ip};
use super::formats::Format;
use super::run::{Found, Run, map_of, no_overload};
use super::semver::{self, Semver};
use super::time;
use super::types::{DURATION, TIME, Type};
use super::url::Url;
use super::value::{Thing, Val};
use crate::quantity::Quantity;

const QUANTITY: Type = Type::Struct("kubernetes.Quantity");
const IP: Type = Type::Struct("net.IP");
const CIDR: Type = Type::Struct("net.CIDR");
const URL: Type = Type::Struct("kubernetes.URL");
const FORMAT: Type = Type::Struct("kubernetes.NamedFormat");
const SEMVER: Type = Type::Struct("kubernetes.Semver");
const GLOBAL: Option<Type> = None;

/// `(names, target, arguments, result)` of functions with the same types; spaces separate the names.
type Overload = (&'static str, Option<Type>, &'static [Type], Type);

const OVERLOADS: &[Overload] = &[
    ("quantity", GLOBAL, &[Type::Text], QUANTITY),
    ("jsonpatch.escapeKey", GLOBAL, &[Type::Text], Type::Text),
    ("isQuantity isURL isIP isCIDR ip.isCanonical", GLOBAL, &[Type::Text], Type::Bool),
    ("sign asInteger", Some(QUANTITY), &[], Type::Int),
    ("isInteger", Some(QUANTITY), &[], Type::Bool),
    ("asApproximateFloat", Some(QUANTITY), &[], Type::Double),
    ("add sub", Some(QUANTITY), &[QUANTITY], QUANTITY),
    ("add sub", Some(QUANTITY), &[Type::Int], QUANTITY),
    ("isLessThan isGreaterThan", Some(QUANTITY), &[QUANTITY], Type::Bool),
    ("compareTo", Some(QUANTITY), &[QUANTITY], Type::Int),
    ("url", GLOBAL, &[Type::Text], URL),
    ("getScheme getHost getHostname getPort getEscapedPath", Some(URL), &[], Type::Text),
    ("ip", GLOBAL, &[Type::Text], IP),
    ("ip", Some(CIDR), &[], IP),
    ("family", Some(IP), &[], Type::Int),
    ("isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast", Some(IP), &[], Type::Bool),
    ("cidr", GLOBAL, &[Type::Text], CIDR),
    ("containsIP", Some(CIDR), &[IP], Type::Bool),
    ("containsCIDR", Some(CIDR), &[CIDR], Type::Bool),
    ("containsIP containsCIDR", Some(CIDR), &[Type::Text], Type::Bool),
    ("masked", Some(CIDR), &[], CIDR),
    ("prefixLength", Some(CIDR), &[], Type::Int),
    (
        "format.byte format.date format.datetime format.dns1035Label format.dns1035LabelPrefix format.dns1123Label \
         format.dns1123LabelPrefix format.dns1123Subdomain format.dns1123SubdomainPrefix format.labelValue \
         format.qualifiedName format.uri format.uuid",
        GLOBAL,
        &[],
        FORMAT,
    ),
    ("semver", GLOBAL, &[Type::Text], SEMVER),
    ("semver", GLOBAL, &[Type::Text, Type::Bool], SEMVER),
    ("isSemver", GLOBAL, &[Type::Text], Type::Bool),
    ("isSemver", GLOBAL, &[Type::Text, Type::Bool], Type::Bool),
    ("major minor patch", Some(SEMVER), &[], Type::Int),
    ("isLessThan isGreaterThan", Some(SEMVER), &[SEMVER], Type::Bool),
    ("compareTo", Some(SEMVER), &[SEMVER], Type::Int),
    ("timestamp", GLOBAL, &[Type::Text], TIME),
    ("timestamp", GLOBAL, &[Type::Int], TIME),
    ("timestamp", GLOBAL, &[TIME], TIME),
    ("duration", GLOBAL, &[Type::Text], DURATION),
    ("duration", GLOBAL, &[Type::Int], DURATION),
    ("duration", GLOBAL, &[DURATION], DURATION),
    (TIME_PARTS, Some(TIME), &[], Type::Int),
    (TIME_PARTS, Some(TIME), &[Type::Text], Type::Int),
    ("getHours getMinutes getSeconds getMilliseconds", Some(DURATION), &[], Type::Int),
    ("bytes", GLOBAL, &[Type::Text], Type::Bytes),
    ("bytes", GLOBAL, &[Type::Bytes], Type::Bytes),
];
const TIME_PARTS: &str = "getFullYear getMonth getDate getDayOfMonth getDayOfWeek getDayOfYear getHours getMinutes getSeconds \
                          getMilliseconds";
/// Functions whose types the table of overloads cannot express.
const OTHERS: &[&str] = &["getQuery", "format.named", "validate"];

pub(super) fn is_known(name: &str) -> bool {
    OTHERS.contains(&name) || OVERLOADS.iter().any(|(names, ..)| has(names, name))
}

fn has(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

/// The result type of a call; `None` if no overload accepts the arguments.
pub(super) fn answers(name: &str, target: Option<&Type>, arguments: &[Type]) -> Option<Type> {
    let texts = || Type::list(Type::Text);
    match (name, target, arguments) {
        ("getQuery", Some(on), []) => on.fits(&URL).then(|| Type::Map(Rc::new(Type::Text), Rc::new(texts()))),
        ("format.named", None, [of]) => of.fits(&Type::Text).then(|| Type::optional(FORMAT)),
        ("validate", Some(on), [text]) => (on.fits(&FORMAT) && text.fits(&Type::Text)).then(|| Type::optional(texts())),
        _ => {
            let fits = |(names, on, wanted, _): &&Overload| {
                let on_fits = match (on, target) {
                    (None, None) => true,
                    (Some(on), Some(target)) => target.fits(on),
                    _ => false,
                };
                on_fits
                    && wanted.len() == arguments.len()
                    && arguments.iter().zip(*wanted).all(|(found, wanted)| found.fits(wanted))
                    && has(names, name)
            };
            OVERLOADS.iter().find(fits).map(|(.., answer)| answer.clone())
        }
    }
}

pub(super) fn call<'a>(
    run: &mut Run<'a, '_>,
    name: &str,
    target: Option<&Val<'a>>,
    arguments: &[Val<'a>],
) -> Found<'a> {
    match (target, arguments) {
        (None, [Val::Text(text)]) => {
            run.pay_for_bytes(text.len())?;
            made_of(name, text)
        }
        (None, [Val::Int(seconds)]) if name == "timestamp" => {
            time::from_second(*seconds).map_or_else(|| Err(Failed::Overflow("timestamp")), |at| Ok(Val::Time(at)))
        }
        (None, [Val::Int(nanos)]) if name == "duration" => Ok(Val::Duration(*nanos)),
        (None, [Val::Text(text), Val::Bool(loosely)]) => {
            run.pay_for_bytes(text.len())?;
            version(name, if *loosely { Semver::read_loosely(text) } else { Semver::read(text) })
        }
        (None, [same @ Val::Time(_)]) if name == "timestamp" => Ok(same.clone()),
        (None, [same @ Val::Duration(_)]) if name == "duration" => Ok(same.clone()),
        (None, [same @ Val::Bytes(_)]) if name == "bytes" => Ok(same.clone()),
        (None, []) => name
            .strip_prefix("format.")
            .and_then(Format::named)
            .map_or_else(no_overload, |format| Ok(Val::thing(Thing::Format(format)))),
        (Some(Val::Duration(nanos)), []) => {
            time::of_span(name, *nanos).map_or_else(no_overload, |part| Ok(Val::Int(part)))
        }
        (Some(Val::Time(at)), []) => part_of(name, *at, ""),
        (Some(Val::Time(at)), [Val::Text(zone)]) => part_of(name, *at, zone),
        (Some(Val::Thing(thing)), arguments) => match &**thing {
            Thing::Quantity(amount) => on_quantity(name, *amount, arguments),
            Thing::Ip(address) if name == "family" => Ok(Val::Int(if address.is_ipv4() { 4 } else { 6 })),
            Thing::Ip(address) => {
                addresses::is(name, *address).map_or_else(no_overload, |answer| Ok(Val::Bool(answer)))
            }
            Thing::Cidr(network) => on_cidr(name, *network, arguments),
            Thing::Url(url) => on_url(run, name, url),
            Thing::Semver(version) => on_version(name, version, arguments),
            Thing::Format(format) => match (name, arguments) {
                ("validate", [Val::Text(text)]) => {
                    run.pay(text.len())?;
                    let wrong: Vec<Val<'a>> = format.check(text).into_iter().map(Val::text).collect();
                    Ok(if wrong.is_empty() { Val::Optional(None) } else { Val::some(Val::list(wrong)) })
                }
                _ => no_overload(),
            },
        },
        _ => no_overload(),
    }
}

fn failed<'a>(why: impl Into<Failed>) -> Found<'a> {
    Err(why.into())
}

/// The value that a function such as `quantity` makes from a text.
fn made_of<'a>(name: &str, text: &str) -> Found<'a> {
    let quantity = || Quantity::parse(text);
    match name {
        "quantity" => {
            quantity().map_or_else(|| Err(Failed::Quantity), |amount| Ok(Val::thing(Thing::Quantity(amount))))
        }
        "isQuantity" => Ok(Val::Bool(quantity().is_some())),
        "url" => Url::read(text).map_or_else(failed, |url| Ok(Val::thing(Thing::Url(url)))),
        "isURL" => Ok(Val::Bool(Url::read(text).is_ok())),
        "ip" => read_ip(text).map_or_else(failed, |address| Ok(Val::thing(Thing::Ip(address)))),
        "isIP" => Ok(Val::Bool(read_ip(text).is_ok())),
        "ip.isCanonical" => read_ip(text).map_or_else(failed, |address| Ok(Val::Bool(address.to_string() == text))),
        "cidr" => read_cidr(text).map_or_else(failed, |network| Ok(Val::thing(Thing::Cidr(network)))),
        "isCIDR" => Ok(Val::Bool(read_cidr(text).is_ok())),
        "timestamp" => {
            time::read(text).map_or_else(|| Err(Failed::Conversion("timestamp".to_owned())), |at| Ok(Val::Time(at)))
        }
        "duration" => time::read_span(text)
            .map_or_else(|| Err(Failed::Conversion("duration".to_owned())), |span| Ok(Val::Duration(span))),
        "semver" | "isSemver" => version(name, Semver::read(text)),
        "bytes" => Ok(Val::Bytes(text.as_bytes().into())),
        "jsonpatch.escapeKey" => Ok(Val::text(text.replace('~', "~0").replace('/', "~1"))),
        "format.named" => {
            Ok(Format::named(text).map_or(Val::Optional(None), |format| Val::some(Val::thing(Thing::Format(format)))))
        }
        _ => no_overload(),
    }
}

/// The result of `semver(…)` or `isSemver(…)` for a parsed text.
fn version<'a>(name: &str, read: Result<Semver, semver::Error>) -> Found<'a> {
    match name {
        "semver" => read.map_or_else(failed, |version| Ok(Val::thing(Thing::Semver(version)))),
        "isSemver" => Ok(Val::Bool(read.is_ok())),
        _ => no_overload(),
    }
}

fn on_version<'a>(name: &str, version: &Semver, arguments: &[Val<'a>]) -> Found<'a> {
    let [major, minor, patch] = version.numbers.map(u64::cast_signed);
    let order = match arguments {
        [] => None,
        [Val::Thing(thing)] => match &**thing {
            Thing::Semver(other) => Some(version.cmp(other)),
            _ => return no_overload(),
        },
        _ => return no_overload(),
    };
    match (name, order) {
        ("major", None) => Ok(Val::Int(major)),
        ("minor", None) => Ok(Val::Int(minor)),
        ("patch", None) => Ok(Val::Int(patch)),
        ("isLessThan", Some(order)) => Ok(Val::Bool(order == Ordering::Less)),
        ("isGreaterThan", Some(order)) => Ok(Val::Bool(order == Ordering::Greater)),
        ("compareTo", Some(order)) => Ok(Val::Int(order as i64)),
        _ => no_overload(),
    }
}

fn part_of<'a>(name: &str, at: jiff::Timestamp, zone: &str) -> Found<'a> {
    time::of_time(name, at, zone).map(Val::Int)
}

fn on_quantity<'a>(name: &str, amount: Quantity, arguments: &[Val<'a>]) -> Found<'a> {
    let other = match arguments {
        [] => None,
        [Val::Int(number)] if matches!(name, "add" | "sub") => Some(Quantity::whole(*number)),
        [Val::Thing(thing)] => match &**thing {
            Thing::Quantity(other) => Some(*other),
            _ => return no_overload(),
        },
        _ => return no_overload(),
    };
    let order = |other: &Quantity| amount.cmp(other);
    match (name, &other) {
        ("sign", None) => Ok(Val::Int(i64::from(amount.signum()))),
        ("isInteger", None) => Ok(Val::Bool(amount.as_whole().is_some())),
        ("asInteger", None) => amount.as_whole().map_or_else(|| Err(Failed::Whole), |number| Ok(Val::Int(number))),
        ("asApproximateFloat", None) => Ok(Val::Double(amount.approximate())),
        ("add", Some(other)) => Ok(Val::thing(Thing::Quantity(amount.plus(*other)))),
        ("sub", Some(other)) => Ok(Val::thing(Thing::Quantity(amount.minus(*other)))),
        ("isLessThan", Some(other)) => Ok(Val::Bool(order(other) == Ordering::Less)),
        ("isGreaterThan", Some(other)) => Ok(Val::Bool(order(other) == Ordering::Greater)),
        ("compareTo", Some(other)) => Ok(Val::Int(order(other) as i64)),
        _ => no_overload(),
    }
}

fn on_cidr<'a>(name: &str, network: Cidr, arguments: &[Val<'a>]) -> Found<'a> {
    match (name, arguments) {
        ("ip", []) => Ok(Val::thing(Thing::Ip(network.address))),
        ("masked", []) => Ok(Val::thing(Thing::Cidr(network.masked()))),
        ("prefixLength", []) => Ok(Val::Int(i64::from(network.length))),
        ("containsIP", [Val::Text(text)]) => {
            read_ip(text).map_or_else(failed, |address| Ok(Val::Bool(network.contains_ip(address))))
        }
        ("containsCIDR", [Val::Text(text)]) => {
            read_cidr(text).map_or_else(failed, |other| Ok(Val::Bool(network.contains_cidr(other))))
        }
        (name, [Val::Thing(thing)]) => match (name, &**thing) {
            ("containsIP", Thing::Ip(address)) => Ok(Val::Bool(network.contains_ip(*address))),
            ("containsCIDR", Thing::Cidr(other)) => Ok(Val::Bool(network.contains_cidr(*other))),
            _ => no_overload(),
        },
        _ => no_overload(),
    }
}

fn on_url<'a>(run: &mut Run<'a, '_>, name: &str, url: &Url) -> Found<'a> {
    run.pay(url.shown().len())?;
    match name {
        "getScheme" => Ok(Val::text(&*url.scheme)),
        "getHost" => Ok(Val::text(&*url.host)),
        "getHostname" => Ok(Val::text(url.host_name())),
        "getPort" => Ok(Val::text(url.port())),
        "getEscapedPath" => Ok(Val::text(url.escaped_path())),
        "getQuery" => {
            let texts = |values: Vec<String>| Val::list(values.into_iter().map(Val::text).collect());
            let pairs = url.query().into_iter().map(|(key, values)| (Val::text(key), texts(values)));
            map_of(pairs.collect())
        }
        _ => no_overload(),
    }
}

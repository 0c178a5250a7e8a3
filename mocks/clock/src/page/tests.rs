//! Tests of this machine's vDSO, and of the added code for x86-64 and arm64.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::*;

fn patch(mark: u64) -> (Vec<u8>, Patch) {
    let image = image().unwrap();
    let patch = Patch::of_image(&image, &sys::code(), &Clock::of_test(30, 5), mark).unwrap();
    (image, patch)
}

/// The added code overwrites no code of the kernel, and the name of every time function leads to the added code.
#[test]
fn nothing_of_the_kernels_is_written_over() {
    let (image, patch) = patch(0);
    let code = sys::code();
    let words = code.bytes.len().div_ceil(8);
    for (at, _) in &patch.words[..words] {
        let at = usize::try_from(*at).unwrap();
        assert!(image[at..at + 8].iter().all(|byte| *byte == 0), "{at:#x}");
    }
    let first = patch.words[0].0;
    let names = &patch.words[words..];
    assert!(names.len() >= 3, "{names:?}");
    for (at, value) in names {
        let before = word(&image[usize::try_from(*at).unwrap()..][..8]);
        assert!(before != 0 && before < first, "{before:#x}");
        assert!(*value >= first && *value < first + code.data as u64, "{value:#x}");
    }
}

#[test]
fn a_page_without_room_is_refused() {
    let (image, _) = patch(0);
    let code = Code { bytes: vec![0; 1 << 14], ..sys::code() };
    let refused = Patch::of_image(&image, &code, &Clock::of_test(30, 5), 0).unwrap_err();
    assert_eq!(refused.to_string(), "the kernel's page with time functions has no room for 16384 bytes");
    assert!(Patch::of_image(b"no ELF file", &sys::code(), &Clock::of_test(30, 5), 0).is_err());
}

#[test]
fn the_data_is_where_the_code_looks() {
    let code = sys::code();
    let bytes = filled(&code, &Clock::of_test(30, 5), 77, 1, 2);
    let data: Vec<u64> = bytes[code.data..].chunks(8).map(word).collect();
    let origins = [5, 5, 0, 0, 5, 5, 5, 5, 5, 5, 0, 5];
    assert_eq!(data[..5], [1, 2, 77, 0, 30 << 32]);
    assert_eq!((&data[5..17], &data[17..29], &data[29..]), (&origins[..], &origins[..], &[30 << 32][..]));
}

/// Runs a program of this machine and returns its output; returns `None` and prints a message if the program is
/// missing.
pub fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let Ok(output) = Command::new(program).args(arguments).output() else {
        println!("skipped: needs {program}");
        return None;
    };
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// The mnemonics of an objdump listing, without operands.
pub fn mnemonics(listing: &str) -> Vec<String> {
    let lines = listing.lines().filter_map(|line| line.split('\t').nth(2));
    lines.map(|text| text.split_whitespace().next().unwrap_or_default().to_owned()).collect()
}

/// The added code contains only arithmetic, moves, jumps within itself and two calls, and changes no register that a
/// caller expects to keep.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_code_is_what_it_should_be() {
    let code = sys::code();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &code.bytes[..code.data]).unwrap();
    let path = file.path().to_str().unwrap();
    let arguments = ["-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", path];
    let Some(listing) = output("objdump", &arguments) else { return };
    let known = [
        "push", "pop", "sub", "add", "call", "jmp", "test", "jne", "je", "ja", "cmp", "cmovns", "mov", "movzx", "lea",
        "imul", "mul", "xor", "div", "shl", "shrd", "ret", "syscall", "nop", "cs", "data16", "xchg",
    ];
    let found = mnemonics(&listing);
    assert!(found.iter().all(|word| known.contains(&word.as_str())), "{listing}");
    let count = |word: &str| found.iter().filter(|found| *found == word).count();
    assert_eq!((count("syscall"), count("div"), count("push"), count("pop")), (2, 3, 6, 6), "{listing}");
    for kept in ["rbx", "rbp", "r12", "r13", "r14", "r15"] {
        assert!(!listing.contains(kept), "{kept}: {listing}");
    }
}

/// The assembled code for arm64 and its labels; `None`, with a message, if a tool is missing.
fn assembled(source: &str, more: &[&str]) -> Option<(Vec<u8>, BTreeMap<String, u64>)> {
    let object = tempfile::NamedTempFile::new().unwrap();
    let source = format!("{}/{source}", env!("CARGO_MANIFEST_DIR"));
    let arguments = ["-triple=aarch64", "-filetype=obj", source.as_str(), "-o", object.path().to_str().unwrap()];
    output("llvm-mc", &[&arguments[..], more].concat())?;
    let bytes = std::fs::read(object.path()).unwrap();
    let file = FileHeader64::<Endianness>::parse(&*bytes).unwrap();
    let endian = file.endian().unwrap();
    let sections = file.sections(endian, &*bytes).unwrap();
    let (_, text) = sections.section_by_name(endian, b".text").unwrap();
    let labels = sections.symbols(endian, &*bytes, elf::SHT_SYMTAB).unwrap();
    let named = |label: &elf::Sym64<Endianness>| {
        let name = label.name(endian, labels.strings()).unwrap();
        (String::from_utf8_lossy(name).into_owned(), label.st_value(endian))
    };
    Some((text.data(endian, &*bytes).unwrap().to_vec(), labels.iter().map(named).collect()))
}

fn code_of_arm64() -> Option<Code> {
    let (bytes, labels) = assembled("src/page/aarch64.s", &[])?;
    let at = |name: &str| usize::try_from(labels[&format!("longhaul_clock_page_{name}")]).unwrap();
    let [gettimeofday, time, getres, data] = ["gettimeofday", "time", "getres", "data"].map(at);
    Some(Code { bytes, gettimeofday, time, getres, data })
}

/// The added code for arm64 has only allowed instructions. The added code does not change the register x28, where Go
/// keeps its goroutine, and x18, which belongs to the platform.
#[test]
fn the_code_of_arm64_is_what_it_should_be() {
    let Some(code) = code_of_arm64() else { return };
    let file = tempfile::NamedTempFile::new().unwrap();
    let words: Vec<String> = code.bytes[..code.data].iter().map(|byte| format!("0x{byte:02x}")).collect();
    std::fs::write(file.path(), words.join(" ")).unwrap();
    let arguments = ["-triple=aarch64", "-disassemble", file.path().to_str().unwrap()];
    // Invalid instructions become warnings of the tool, not lines.
    let Some(listing) = output("llvm-mc", &arguments) else { return };
    let lines: Vec<&str> = listing.lines().map(str::trim).filter(|line| !line.starts_with('.')).collect();
    let found: Vec<&str> = lines.iter().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(found.len(), code.data / 4, "{listing}");
    let known = [
        "add", "adr", "b.hi", "bl", "br", "cbnz", "cbz", "cmp", "extr", "ldp", "ldr", "madd", "mov", "movk", "msub",
        "mul", "nop", "ret", "smulh", "stp", "str", "sub", "svc", "udf", "udiv", "umulh",
    ];
    assert!(found.iter().all(|word| known.contains(word)), "{listing}");
    let count = |word: &str| found.iter().filter(|found| **found == word).count();
    assert_eq!((count("svc"), count("udiv"), count("ret")), (2, 3, 6), "{listing}");
    let words: Vec<&str> = listing.split([' ', '\t', ',', '[', ']', '\n']).collect();
    for kept in (18..=28).flat_map(|number| [format!("x{number}"), format!("w{number}")]) {
        assert!(!words.contains(&kept.as_str()), "{kept}: {listing}");
    }
}

/// The times that an arm64 program reads through the changed vDSO in an emulator; see `tests/programs/arm64.s`.
fn said_on_arm64(mark: u64) -> Option<Vec<i64>> {
    /// Offsets, relative to the vDSO, of the test program's functions that replace the kernel's functions.
    const KERNEL: [i64; 2] = [-128, -64];
    const HEAD: u64 = 120;
    const BASE: u64 = 0x40_0000;
    let code = code_of_arm64()?;
    let folder = tempfile::tempdir().unwrap();
    let [gettime, getres] = KERNEL.map(i64::cast_unsigned);
    let page = filled(&code, &Clock::of_test(30, 5), mark, gettime, getres);
    std::fs::write(folder.path().join("page.bin"), page).unwrap();
    let places = [("gettimeofday", code.gettimeofday), ("time", code.time), ("getres", code.getres)];
    let places = places.map(|(name, at)| format!("-defsym={name}={at}"));
    let include = ["-I", folder.path().to_str().unwrap()];
    let (text, labels) =
        assembled("tests/programs/arm64.s", &[&include[..], &places.each_ref().map(String::as_str)].concat())?;
    // A header and one segment, which is writable.
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend([2, 0, 183, 0, 1, 0, 0, 0]);
    file.extend([BASE + HEAD + labels["_start"], 64, 0].into_iter().flat_map(u64::to_le_bytes));
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    file.extend([1, 0, 0, 0, 7, 0, 0, 0]);
    let length = HEAD + text.len() as u64;
    file.extend([0, BASE, BASE, length, length, 0x1_0000].into_iter().flat_map(u64::to_le_bytes));
    file.extend(text);
    let program = folder.path().join("program");
    std::fs::write(&program, file).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let Ok(output) = Command::new("qemu-aarch64").arg(&program).output() else {
        println!("skipped: needs qemu-aarch64");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some(output.stdout.chunks(8).map(|chunk| word(chunk).cast_signed()).collect())
}

/// The added code for arm64 computes the same times as [`Clock`], and only for converted clocks. The added code returns
/// the kernel's errors, and keeps callee-saved registers.
#[test]
fn the_code_of_arm64_tells_the_programs_time() {
    let Some(said) = said_on_arm64(0) else { return };
    let clock = Clock::of_test(30, 5);
    let own = |id: i32| clock.own(id, (1000 + i128::from(id)) * 1_000_000_000 + 999_999_999);
    let time = |own: i128| [own / 1_000_000_000, own % 1_000_000_000].map(|part| i64::try_from(part).unwrap());
    for (id, said) in (0..15).zip(said.chunks(3)) {
        assert_eq!(said, [&[0][..], &time(own(id))].concat(), "{id}");
    }
    let [seconds, nanos] = time(own(0));
    assert_eq!(said[45..48], [-22, 0, 0], "an error of the kernel's");
    assert_eq!(said[48..52], [seconds, nanos / 1000, seconds, seconds]);
    assert_eq!(said[52..], [0, 0, 7 * 30, 0]);
}

/// With a mark, the code for arm64 makes the system call, as for a clock that the vDSO cannot read.
#[test]
fn the_code_of_arm64_makes_the_call_with_a_mark() {
    let clock = Clock::of_test(30, 5);
    let now = || clock.own(1, i128::from(crate::now()));
    let before = now();
    let Some(said) = said_on_arm64(77) else { return };
    let told = i128::from(said[4]) * 1_000_000_000 + i128::from(said[5]);
    assert!(said[3] == 0 && (before..=now()).contains(&told), "{told}");
}

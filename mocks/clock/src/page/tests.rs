//! The page of this machine, and the code of both processors.

use std::process::Command;

use super::*;

fn patch(mark: u64) -> (Vec<u8>, Patch) {
    let image = image().unwrap();
    let patch = Patch::of_image(&image, &sys::code(), &Clock::of_test(30, 5), mark).unwrap();
    (image, patch)
}

/// Behind the kernel's own code there is nothing yet where ours is written, and every name leads to it.
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
    assert_eq!((&data[5..17], &data[17..]), (&origins[..], &origins[..]));
}

/// A program of the machine; `None` with a word of it.
pub fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let Ok(output) = Command::new(program).args(arguments).output() else {
        println!("skipped: needs {program}");
        return None;
    };
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Mnemonics of a listing of objdump, without its operands.
pub fn mnemonics(listing: &str) -> Vec<String> {
    let lines = listing.lines().filter_map(|line| line.split('\t').nth(2));
    lines.map(|text| text.split_whitespace().next().unwrap_or_default().to_owned()).collect()
}

/// The code does nothing but arithmetic, moves, jumps within itself and the two calls; it uses no register that belongs to a caller.
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
        "push", "pop", "sub", "add", "call", "jmp", "test", "jne", "je", "ja", "cmp", "mov", "movzx", "lea", "imul",
        "mul", "xor", "div", "shl", "shrd", "ret", "syscall", "nop", "cs", "data16", "xchg",
    ];
    let found = mnemonics(&listing);
    assert!(found.iter().all(|word| known.contains(&word.as_str())), "{listing}");
    let count = |word: &str| found.iter().filter(|found| *found == word).count();
    assert_eq!((count("syscall"), count("div"), count("push"), count("pop")), (2, 3, 6, 6), "{listing}");
    for kept in ["rbx", "rbp", "r12", "r13", "r14", "r15"] {
        assert!(!listing.contains(kept), "{kept}: {listing}");
    }
}

/// Likewise for arm64, assembled here: Go keeps its goroutine in x28, and x18 is the platform's.
#[test]
fn the_code_of_arm64_is_what_it_should_be() {
    let folder = tempfile::tempdir().unwrap();
    let object = folder.path().join("page.o");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/page/aarch64.s");
    let arguments = ["-triple=aarch64", "-filetype=obj", source, "-o", object.to_str().unwrap()];
    if output("llvm-mc", &arguments).is_none() {
        return;
    }
    let Some(listing) = output("llvm-objdump", &["-d", object.to_str().unwrap()]) else { return };
    let words: Vec<&str> = listing.split([' ', '\t', ',', '[', ']', '\n']).collect();
    assert_eq!(words.iter().filter(|word| **word == "svc").count(), 2, "{listing}");
    assert_eq!(words.iter().filter(|word| **word == "udiv").count(), 3, "{listing}");
    for kept in (18..=28).flat_map(|number| [format!("x{number}"), format!("w{number}")]) {
        assert!(!words.contains(&kept.as_str()), "{kept}: {listing}");
    }
}

//! Tests of the bytes that redirect a system call, and of the added code.

use std::collections::BTreeSet;

use super::*;
use crate::page::tests::{mnemonics, output};
use crate::room::{SETS, WHICH};

const AT: u64 = 0x40_0000;

/// Makes the bytes around a system-call instruction; returns them and the address of the instruction.
fn program(before: &[u8], after: &[u8]) -> (Vec<u8>, u64) {
    let bytes = [before, &SYSTEM_CALL, after].concat();
    (bytes, AT + before.len() as u64)
}

/// In Go's runtime a jump of two bytes replaces the system call. The bytes behind the jump, to which another call may
/// return, stay unchanged.
#[test]
fn a_site_with_room_near_it_keeps_its_neighbours() {
    let (bytes, site) = program(&[0x48, 0x89, 0xdf], &[&[0xc3][..], &[BREAK; 12]].concat());
    let rewrite = rewrite(site, 3, AT, &bytes).unwrap();
    let (at, jump) = rewrite.padding.unwrap();
    assert_eq!((at, jump), (site + 4, [0xff, 0x24, 0x25, 0x18, 0x10, 0x0f, 0x0b]));
    assert_eq!(rewrite.site, (site, vec![0xeb, 2]));
    assert_eq!(rewrite.table, (TABLE + 24, STUBS + 3 * 64 + 5));
    assert_eq!(rewrite.astray, [(site + 1, STUBS + 3 * 64 + 5)]);
}

/// In the C library the instruction before the system call is overwritten too. A thread in the middle of the written
/// bytes meets an invalid instruction.
#[test]
fn a_site_with_its_number_before_it_is_written_over() {
    let (bytes, site) = program(&[0xb8, 0xca, 0, 0, 0], &[0x48, 0x3d]);
    let rewrite = rewrite(site, 0, AT, &bytes).unwrap();
    assert_eq!(rewrite.site, (site - 5, vec![0xff, 0x24, 0x25, 0, 0x10, 0x0f, 0x0b]));
    assert_eq!((rewrite.padding, rewrite.table), (None, (TABLE, STUBS)));
    assert_eq!(rewrite.astray, [(site - 4, STUBS), (site, STUBS + 5)]);
    let (_, stub) = rewrite.stub;
    assert_eq!(stub[..5], [0xb8, 0xca, 0, 0, 0]);
    assert_eq!(stub[48..56], (site + 2).to_le_bytes());
    // The library's function for any call keeps its sixth argument there.
    let (bytes, site) = program(&MOVE_SIXTH, &[0x48, 0x3d]);
    assert_eq!(super::rewrite(site, 0, AT, &bytes).unwrap().stub.1[..5], MOVE_SIXTH);
    // Every entry has the invalid instruction at its end.
    for index in 0..SITES_MAX {
        assert_eq!(jump(TABLE + index * 8).unwrap()[5..], [0x0f, 0x0b]);
    }
}

#[test]
fn what_is_not_known_stays() {
    let (bytes, site) = program(&[0x48, 0x89, 0xdf, 0x90, 0x90], &[0xc3]);
    assert_eq!(rewrite(site, 0, AT, &bytes), None);
    assert_eq!(rewrite(site + 1, 0, AT, &bytes), None, "no system call");
    let (bytes, site) = program(&[0xb8, 0xca, 0, 0, 0], &[]);
    assert_eq!(rewrite(site, SITES_MAX, AT, &bytes), None, "too many");
    // Room that is too far away.
    let (bytes, site) = program(&[0x90], &[&[0x90; 140][..], &[BREAK; 20]].concat());
    assert_eq!(rewrite(site, 0, AT, &bytes), None);
}

/// All stubs and tables fit into the memory of the added code and do not overlap.
#[test]
fn nothing_is_written_over_another() {
    let Some(detour) = Detour::of(true) else { return };
    let all = [
        (CODE, detour.bytes.len() as u64),
        (TABLE, SITES_MAX * 8),
        (STUBS, SITES_MAX * STUB_BYTES),
        (WHICH, 1),
        (SETS, 0),
    ];
    for ((at, length), (next, _)) in all.into_iter().zip(all.into_iter().skip(1).chain([(CODE + CODE_BYTES, 0)])) {
        assert!(at + length <= next, "{at:#x}");
    }
    assert_eq!(detour.after_fault(CODE), Some(Fault::Before));
    assert_eq!(detour.after_fault(detour.done), Some(Fault::After));
    assert_eq!(detour.after_fault(STUBS), None);
}

/// The added code contains one system call, uses no stack, and restores every register that it uses.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_code_is_what_it_should_be() {
    let code = sys::detour_code().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &code.bytes[..code.data]).unwrap();
    let path = file.path().to_str().unwrap();
    let arguments = ["-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", path];
    let Some(listing) = output("objdump", &arguments) else { return };
    let found: BTreeSet<String> = mnemonics(&listing).into_iter().collect();
    let known = [
        "cmp", "je", "jne", "ja", "jb", "jae", "jle", "jmp", "lea", "mov", "movzx", "test", "and", "add", "adc", "sub",
        "sbb", "inc", "neg", "imul", "mul", "xor", "div", "shl", "shr", "shrd", "syscall", "nop", "cs", "data16",
        "xchg",
    ];
    assert!(found.iter().all(|word| known.contains(&word.as_str())), "{found:?}: {listing}");
    assert_eq!(mnemonics(&listing).iter().filter(|word| *word == "syscall").count(), 1, "{listing}");
    for kept in ["rsp", "rbx", "rbp", "r12", "r13", "r14", "r15", "esp", "ebx", "ebp"] {
        assert!(!listing.contains(kept), "{kept}: {listing}");
    }
    assert_eq!(code.bytes[code.call..code.call + 2], SYSTEM_CALL);
}

/// A disassembler shows that a stub jumps to the shared code and back to the program.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_stub_leads_to_the_code_and_back() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), stub(STUBS, [0xb8, 0xca, 0, 0, 0], AT)).unwrap();
    let from = format!("--adjust-vma={STUBS}");
    let arguments = ["-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", &from, file.path().to_str().unwrap()];
    let Some(listing) = output("objdump", &arguments) else { return };
    let lines: Vec<&str> = listing.lines().filter_map(|line| line.split('\t').nth(2)).map(str::trim).take(5).collect();
    let is = |index: usize, words: [&str; 2]| words.iter().all(|word| lines[index].contains(word));
    assert!(is(0, ["mov", "eax,0xca"]) && is(1, ["lea", &format!("{:#x}", STUBS + 40)]), "{listing}");
    assert!(is(2, ["jmp", &format!("{CODE:#x}")]) && is(3, ["syscall", ""]), "{listing}");
    assert!(is(4, ["jmp", &format!("{:#x}", STUBS + 48)]), "{listing}");
}

//! The changes to the vDSO, the kernel's code for time functions in each program, so that it returns the program's
//! time.
//!
//! Owns the layout of the vDSO ("page" in names). The symbols of the vDSO's time functions are changed to point to
//! added code. The added code calls the kernel's function and converts the result. A program's read of the time
//! therefore makes no system call, unless only a system call can read the machine's clock.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;

use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader as _, SectionHeader as _, Sym as _};
use object::{Endianness, LittleEndian};

use crate::clock::Clock;
use crate::sys::{self, Code};

/// Clock sources that the vDSO reads without a system call. For all other clock sources the added code makes the system
/// call, as the unchanged vDSO does.
const READABLE: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// Maximum size of an accepted vDSO; the kernel's vDSO has two memory pages.
const IMAGE_BYTES_MAX: u64 = 1 << 18;
/// The offset of the value in an ELF symbol.
const VALUE_OFFSET: u64 = 8;
/// The offset, in the clock's data, of a word that the tracer sets if the program has memory for further clocks.
const HAS_ROOM_OFFSET: u64 = 24;
/// The instruction `syscall` of x86-64.
const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];

/// The changes to the vDSO of each program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// Offsets from the start of the vDSO, each with the 8-byte word that is written at that offset.
    pub words: Vec<(u64, u64)>,
    /// The offset of the system-call instruction in the added code.
    pub length: u64,
    /// The offset of a system-call instruction in the vDSO.
    pub call: Option<u64>,
    /// The offset of the word that is set if the program has memory for further clocks.
    pub has_room: u64,
}

/// The reasons why the vDSO cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the kernel gives programs no page with time functions")]
    Missing,
    #[error("the kernel's page with time functions cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    #[error("the kernel's page with time functions is no ELF file as known: {0}")]
    Odd(#[from] object::Error),
    #[error("the kernel's page with time functions has no room for {0} bytes")]
    Full(usize),
}

/// The time functions of the vDSO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Gettime,
    Gettimeofday,
    Time,
    Getres,
}

/// The names of the time functions, on x86-64 and arm64.
const NAMES: [(&str, Function); 10] = [
    ("clock_gettime", Function::Gettime),
    ("__vdso_clock_gettime", Function::Gettime),
    ("__kernel_clock_gettime", Function::Gettime),
    ("gettimeofday", Function::Gettimeofday),
    ("__vdso_gettimeofday", Function::Gettimeofday),
    ("__kernel_gettimeofday", Function::Gettimeofday),
    ("time", Function::Time),
    ("__vdso_time", Function::Time),
    ("clock_getres", Function::Getres),
    ("__vdso_clock_getres", Function::Getres),
];
const KERNEL_GETRES: &str = "__kernel_clock_getres";

impl Patch {
    /// The changes for the vDSO of this machine.
    pub fn of_this_machine(clock: &Clock, nonce: u64) -> Result<Self, Error> {
        let source = std::fs::read_to_string(SOURCE).unwrap_or_default();
        let mark = if READABLE.contains(&source.trim()) { 0 } else { nonce };
        Self::of_image(&image()?, &sys::code(), clock, mark)
    }

    /// The changes for the vDSO `image`. With a `mark`, the added code makes system calls that contain the mark,
    /// instead of calling the kernel's functions.
    fn of_image(image: &[u8], code: &Code, clock: &Clock, mark: u64) -> Result<Self, Error> {
        let header = FileHeader64::<Endianness>::parse(image)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, image)?;
        let symbols = sections.symbols(endian, image, elf::SHT_DYNSYM)?;
        let section = sections.section(symbols.section())?;
        let place = place(header, endian, image, code.bytes.len())?;
        let (mut words, mut gettime, mut getres) = (Vec::new(), 0, 0);
        for (index, symbol) in symbols.enumerate() {
            let name = symbol.name(endian, symbols.strings())?;
            let function = match NAMES.iter().find(|(known, _)| known.as_bytes() == name) {
                Some((_, function)) => *function,
                None if name == KERNEL_GETRES.as_bytes() => Function::Getres,
                None => continue,
            };
            let value = symbol.st_value(endian);
            let ours = match function {
                Function::Gettime => {
                    gettime = value;
                    0
                }
                Function::Gettimeofday => code.gettimeofday,
                Function::Time => code.time,
                Function::Getres => {
                    getres = value;
                    code.getres
                }
            };
            let entry = section.sh_offset(endian) + index.0 as u64 * size_of::<elf::Sym64<LittleEndian>>() as u64;
            words.push((entry + VALUE_OFFSET, place + ours as u64));
        }
        if gettime == 0 {
            return Err(Error::Missing);
        }
        let filled = filled(code, clock, mark, gettime.wrapping_sub(place), getres.wrapping_sub(place));
        let ours = (place..).step_by(8).zip(filled.chunks(8));
        // First the code, then the names that lead to it.
        words.splice(0..0, ours.map(|(at, chunk)| (at, word(chunk))));
        let call = code.bytes[..code.data].windows(2).position(|bytes| bytes == SYSTEM_CALL);
        let has_room = place + code.data as u64 + HAS_ROOM_OFFSET;
        Ok(Self { words, length: image.len() as u64, call: call.map(|call| place + call as u64), has_room })
    }
}

/// The offset at which the added code is written: behind the vDSO's contents, or over sections that only debuggers
/// read.
fn place(header: &FileHeader64<Endianness>, endian: Endianness, image: &[u8], needed: usize) -> Result<u64, Error> {
    use object::read::elf::ProgramHeader as _;

    let table = header.e_shoff(endian) + u64::from(header.e_shnum(endian)) * u64::from(header.e_shentsize(endian));
    let sections = header.sections(endian, image)?;
    let behind_all =
        sections.iter().map(|section| section.sh_offset(endian) + section.sh_size(endian)).fold(table, u64::max);
    let loaded = header.program_headers(endian, image)?;
    let behind_loaded = loaded.iter().map(|segment| segment.p_offset(endian) + segment.p_filesz(endian)).max();
    [Some(behind_all), behind_loaded]
        .into_iter()
        .flatten()
        .map(|end| end.next_multiple_of(16))
        .find(|at| *at + needed.next_multiple_of(8) as u64 <= image.len() as u64)
        .ok_or(Error::Full(needed))
}

/// The added code, with the data of the clock written into it.
fn filled(code: &Code, clock: &Clock, mark: u64, gettime: u64, getres: u64) -> Vec<u8> {
    let mut bytes = code.bytes.clone();
    // No room for later clocks yet.
    let data = [gettime, getres, mark, 0].into_iter().chain(clock.words());
    for (to, value) in bytes[code.data..].chunks_exact_mut(8).zip(data) {
        to.copy_from_slice(&value.to_ne_bytes());
    }
    bytes
}

fn word(chunk: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..chunk.len()].copy_from_slice(chunk);
    u64::from_ne_bytes(bytes)
}

/// The vDSO of this process, which is the same in every program.
fn image() -> Result<Vec<u8>, Error> {
    let maps = BufReader::new(File::open("/proc/self/maps")?);
    for line in maps.lines() {
        let line = line?;
        let Some(range) = line.ends_with("[vdso]").then(|| line.split(' ').next()).flatten() else { continue };
        let ends = range.split_once('-').map(|(start, end)| [start, end].map(|end| u64::from_str_radix(end, 16)));
        let Some([Ok(start), Ok(end)]) = ends else { continue };
        let length = end.saturating_sub(start).min(IMAGE_BYTES_MAX);
        let mut image = vec![0; usize::try_from(length).unwrap_or(0)];
        File::open("/proc/self/mem")?.read_exact_at(&mut image, start)?;
        return Ok(image);
    }
    Err(Error::Missing)
}

#[cfg(test)]
pub(crate) mod tests;

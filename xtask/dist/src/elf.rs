//! Reads the header of an ELF file to check that a program needs no libraries.
//!
//! Offsets and numbers are from the ELF-64 object file format, version 1.5, and from the System V ABI ("Dynamic
//! Section").

use anyhow::{Context, Result, bail, ensure};

/// The types `PT_DYNAMIC` and `PT_INTERP` of segments.
const DYNAMIC: u32 = 2;
const INTERPRETER: u32 = 3;
/// The tag `DT_NEEDED` of an entry in the dynamic section.
const NEEDED: u64 = 1;
/// The type `SHT_SYMTAB` of a section with symbols for debuggers.
const SYMBOLS: u32 = 2;

/// Fails unless the program is static, stripped, and for the CPU with the number `machine`.
pub(crate) fn check(file: &[u8], machine: u16) -> Result<()> {
    let file = File(file);
    // Class 2 is 64 bits, data 1 is little endian.
    ensure!(file.0.starts_with(b"\x7fELF\x02\x01"), "not an ELF file of 64 bits, little endian");
    let is = u16::from_le_bytes(file.array(18)?);
    ensure!(is == machine, "built for machine {is} instead of {machine}");
    for segment in file.table(32, 54)? {
        match u32::from_le_bytes(file.array(segment)?) {
            INTERPRETER => bail!("not static: it asks for a dynamic loader"),
            DYNAMIC => file.needs_nothing(segment)?,
            _ => {}
        }
    }
    for section in file.table(40, 58)? {
        ensure!(u32::from_le_bytes(file.array(section + 4)?) != SYMBOLS, "not stripped: it has a symbol table");
    }
    Ok(())
}

struct File<'a>(&'a [u8]);

impl File<'_> {
    fn array<const N: usize>(&self, at: usize) -> Result<[u8; N]> {
        let bytes = at.checked_add(N).and_then(|end| self.0.get(at..end)).and_then(|bytes| bytes.try_into().ok());
        bytes.with_context(|| format!("the file ends before byte {at}"))
    }

    fn place(&self, at: usize) -> Result<usize> {
        usize::try_from(u64::from_le_bytes(self.array(at)?)).context("an offset is beyond this machine's memory")
    }

    /// The offsets of the entries in a table of the ELF file. The ELF header contains the table's offset at
    /// `offset_at`, and the size and number of its entries at `size_at`.
    fn table(&self, offset_at: usize, size_at: usize) -> Result<Vec<usize>> {
        let begin = self.place(offset_at)?;
        let size = usize::from(u16::from_le_bytes(self.array(size_at)?));
        let count = usize::from(u16::from_le_bytes(self.array(size_at + 2)?));
        (0..count).map(|index| begin.checked_add(index * size).context("a table is beyond the file")).collect()
    }

    /// Checks that a dynamic section names no library. A static program that can be loaded at any address has a dynamic
    /// section for its own relocations.
    fn needs_nothing(&self, segment: usize) -> Result<()> {
        let (begin, bytes) = (self.place(segment + 8)?, self.place(segment + 32)?);
        for entry in (0..bytes / 16).map(|index| begin + index * 16) {
            match u64::from_le_bytes(self.array(entry)?) {
                0 => break,
                NEEDED => bail!("not static: it needs a shared library"),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of an ELF file: a header, one segment at 64, one section at 120, and two entries of a dynamic section
    /// at 184.
    fn program(segment: u32, entry: u64, section: u32) -> Vec<u8> {
        let mut file = vec![0; 216];
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"\x7fELF\x02\x01");
        put(18, &62_u16.to_le_bytes());
        put(32, &64_u64.to_le_bytes());
        put(40, &120_u64.to_le_bytes());
        put(54, &56_u16.to_le_bytes());
        put(56, &1_u16.to_le_bytes());
        put(58, &64_u16.to_le_bytes());
        put(60, &1_u16.to_le_bytes());
        put(64, &segment.to_le_bytes());
        put(72, &184_u64.to_le_bytes());
        put(96, &32_u64.to_le_bytes());
        put(124, &section.to_le_bytes());
        put(184, &entry.to_le_bytes());
        file
    }

    fn refusal(file: &[u8]) -> String {
        check(file, 62).map_or_else(|error| error.to_string(), |()| "none".to_owned())
    }

    #[test]
    fn a_program_that_needs_anything_is_refused() {
        assert_eq!(refusal(&program(DYNAMIC, 21, 1)), "none");
        assert_eq!(refusal(&program(INTERPRETER, 0, 1)), "not static: it asks for a dynamic loader");
        assert_eq!(refusal(&program(DYNAMIC, NEEDED, 1)), "not static: it needs a shared library");
        assert_eq!(refusal(&program(1, 0, SYMBOLS)), "not stripped: it has a symbol table");
        assert!(check(&program(1, 0, 1), 183).is_err());
    }

    #[test]
    fn a_file_that_ends_early_is_an_error() {
        let whole = program(DYNAMIC, 21, 1);
        for length in 0..200 {
            assert!(check(&whole[..length], 62).is_err(), "{length}");
        }
    }

    #[test]
    fn this_test_is_not_static() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(check(&own, u16::from_le_bytes([own[18], own[19]])).is_err());
    }
}

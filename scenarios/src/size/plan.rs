//! The steps of a measurement, their bounds, their length, and whether the machine has the memory for them.

use std::time::Duration;

use reports::words;
use units::Bytes;

/// Default numbers of objects.
pub(crate) const OBJECTS: [u64; 3] = [1_000, 3_000, 10_000];
/// Default sizes of an object.
pub(crate) const SIZES: [Bytes; 2] = [Bytes(1 << 10), Bytes(10 << 10)];
/// Default number of relists in each row.
pub(crate) const RELISTS: u32 = 1;
/// Maximum number of objects in a row.
const OBJECTS_MAX: u64 = 1_000_000;
/// Permitted sizes of an object. A smaller object has no room for labels and owners; kube-apiserver takes at most 1.5
/// MiB.
const SIZE_RANGE: std::ops::RangeInclusive<u64> = 512..=1 << 20;
/// Maximum number of values of `--objects`, and of `--sizes`.
const STEPS_MAX: usize = 10;
/// Maximum number of kinds with rows of their own, in which all objects are of one kind.
pub(crate) const KINDS_MAX: usize = 24;
/// Maximum number of objects in the rows of one kind.
const ALONE_MAX: u64 = 10_000;
/// Memory of the mock for an object, beside its JSON.
const MOCK_BYTES: u64 = 2 << 10;
/// Share of the machine's free memory that a row may need, in percent.
const FREE_SHARE_PCT: u64 = 85;
/// Typical time of a row without its objects: start, rest, one relist, end.
const ROW: Duration = Duration::from_secs(7);
/// Typical additional time of a row for each MiB of objects.
const ROW_PER_MIB: Duration = Duration::from_millis(60);
/// Typical number of watched kinds, before the first start shows it.
const KINDS_USUAL: u64 = 4;

/// A number of objects of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
}

/// The settings of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) relists: u32,
    /// Whether each kind also has rows of its own.
    pub(crate) with_kinds: bool,
}

impl Step {
    /// Bytes of the JSON of all objects.
    pub(crate) fn total(self) -> u64 {
        self.objects.saturating_mul(self.bytes)
    }

    /// The least memory for mock and program together, if each of them holds one copy of the objects.
    pub(crate) fn needs(self) -> u64 {
        self.total().saturating_mul(2).saturating_add(self.objects.saturating_mul(MOCK_BYTES))
    }

    fn lasts(self, relists: u32) -> Duration {
        let mib = u32::try_from(self.total() >> 20).unwrap_or(u32::MAX);
        (ROW + ROW_PER_MIB.saturating_mul(mib)) + Duration::from_secs(2) * relists
    }

    pub(crate) fn words(self) -> String {
        format!("{} objects of {}", words::count(self.objects), words::bytes(self.bytes))
    }
}

impl Plan {
    /// Checks the settings. The error says what to write instead.
    pub(crate) fn new(objects: &[u64], sizes: &[Bytes], relists: u32, with_kinds: bool) -> Result<Self, String> {
        let (mut objects, mut sizes) = (objects.to_vec(), sizes.iter().map(|size| size.0).collect::<Vec<_>>());
        for list in [&mut objects, &mut sizes] {
            list.sort_unstable();
            list.dedup();
        }
        if objects.is_empty() || objects.len() > STEPS_MAX || sizes.is_empty() || sizes.len() > STEPS_MAX {
            return Err(format!("name 1 to {STEPS_MAX} numbers of objects, and 1 to {STEPS_MAX} sizes"));
        }
        if let Some(wrong) = objects.iter().find(|count| **count == 0 || **count > OBJECTS_MAX) {
            return Err(format!("--objects {wrong}: write 1 to {}", words::count(OBJECTS_MAX)));
        }
        if let Some(wrong) = sizes.iter().find(|size| !SIZE_RANGE.contains(size)) {
            return Err(format!("--sizes {wrong} B: write 512 B to 1 MiB"));
        }
        let steps =
            sizes.iter().flat_map(|bytes| objects.iter().map(|objects| Step { objects: *objects, bytes: *bytes }));
        Ok(Self { steps: steps.collect(), relists, with_kinds })
    }

    /// Refuses steps that cannot fit into the free memory, and says what fits.
    pub(crate) fn check(&self, free_bytes: u64) -> Result<(), String> {
        let room = free_bytes / 100 * FREE_SHARE_PCT;
        let Some(over) = self.steps.iter().find(|step| step.needs() > room) else { return Ok(()) };
        let each = over.bytes.saturating_mul(2).saturating_add(MOCK_BYTES).max(1);
        Err(format!(
            "{} need at least {} for the mock and the program, and {} are free on this machine: at most {} objects of this size fit; name \
             fewer with --objects",
            over.words(),
            words::bytes(over.needs()),
            words::bytes(free_bytes),
            words::count(room / each / 100 * 100)
        ))
    }

    /// The steps for the rows of one kind: the largest number of objects (at most `ALONE_MAX`), and a third of this
    /// number, of the largest size.
    pub(crate) fn alone(&self) -> Vec<Step> {
        let most = self.steps.iter().map(|step| step.objects).max().unwrap_or(1).min(ALONE_MAX);
        let bytes = self.steps.iter().map(|step| step.bytes).max().unwrap_or(SIZES[0].0);
        let mut counts = vec![(most / 3).max(1), most];
        counts.dedup();
        counts.into_iter().map(|objects| Step { objects, bytes }).collect()
    }

    /// How long the measurement takes, as a rough figure. `kinds` is the number of watched kinds, if it is known.
    pub(crate) fn lasts(&self, kinds: Option<usize>) -> Duration {
        let rows: Duration = self.steps.iter().map(|step| step.lasts(self.relists)).sum();
        let kinds = kinds.map_or(KINDS_USUAL, |kinds| kinds.min(KINDS_MAX) as u64);
        // If there is only one kind, it needs no rows of its own.
        let times = if self.with_kinds && kinds > 1 { u32::try_from(kinds).unwrap_or(1) } else { 0 };
        ROW + rows + self.alone().iter().map(|step| step.lasts(0)).sum::<Duration>() * times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(objects: &[u64], sizes: &[u64]) -> Result<Plan, String> {
        let sizes: Vec<Bytes> = sizes.iter().map(|size| Bytes(*size)).collect();
        Plan::new(objects, &sizes, RELISTS, true)
    }

    /// The error for a wrong number says which numbers are permitted.
    #[test]
    fn steps_are_bounded() {
        assert_eq!(plan(&[10, 5, 10], &[1 << 10]).unwrap().steps.len(), 2);
        assert!(plan(&[0], &[1 << 10]).unwrap_err().contains("write 1 to 1,000,000"));
        assert!(plan(&[1], &[100]).unwrap_err().contains("512 B to 1 MiB"));
        assert!(plan(&[], &[1 << 10]).is_err());
    }

    /// If the memory is too small, an error before the start says how many objects fit.
    #[test]
    fn what_does_not_fit_is_refused_with_what_fits() {
        let big = plan(&[1_000, 100_000], &[10 << 10]).unwrap();
        assert_eq!(big.check(8 << 30), Ok(()));
        let said = big.check(1 << 30).unwrap_err();
        assert!(said.starts_with("100,000 objects of 10 KiB need at least 2.1"), "{said}");
        assert!(said.contains("1 GiB are free") && said.contains("at most 40,500 objects"), "{said}");
    }

    /// The default takes about two minutes with three kinds, and one kind is not measured twice.
    #[test]
    fn the_default_is_short() {
        let default = Plan::new(&OBJECTS, &SIZES, RELISTS, true).unwrap();
        assert!(default.lasts(Some(3)) < Duration::from_mins(3), "{:?}", default.lasts(Some(3)));
        assert!(default.lasts(Some(1)) < default.lasts(Some(2)));
    }
}

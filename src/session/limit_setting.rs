//! The limit on the GC heap that the settings of a process give.
//!
//! Each setting is a variable of the environment (`DOTNET_GCHeapHardLimit`, hexadecimal) or else a property in `runtimeconfig.json`
//! (`System.GC.HeapHardLimit`, decimal, or hexadecimal with a prefix). A variable takes precedence even if it is not a number
//! (`GCToEEInterface::GetIntConfigValue` in gcenv.ee.cpp). `GCTotalPhysicalMemory` has no property (gcconfig.h).
//!
//! The limits of the heaps take precedence over the limits as shares of the physical memory, and both over the limit of all heaps, which takes precedence over
//! its share (`gc_heap::compute_hard_limit` in gc.cpp). The runtime does not start with contradictory settings.

use super::startup::{given, number};
use crate::gc::SetLimit;

/// Names of the settings in the environment.
const LIMIT: &str = "GCHeapHardLimit";
const PERCENT: &str = "GCHeapHardLimitPercent";
const OF_HEAPS: [&str; 3] = ["GCHeapHardLimitSOH", "GCHeapHardLimitLOH", "GCHeapHardLimitPOH"];
const PERCENT_OF_HEAPS: [&str; 3] = ["GCHeapHardLimitSOHPercent", "GCHeapHardLimitLOHPercent", "GCHeapHardLimitPOHPercent"];
const MEMORY: &str = "GCTotalPhysicalMemory";
/// The prefix of these names, and its counterpart in the names of properties.
const PREFIX: &str = "GC";
const PROPERTY_PREFIX: &str = "System.GC.";

/// The limit that the variables in `environment` and `properties` set; `None` if they set none.
pub(super) fn hard_limit(environment: &[(String, String)], properties: &[(String, String)]) -> Option<SetLimit> {
    let variable = |name: &str| given(environment, name).map(|text| number(text, 16));
    let property = |name: &str| {
        let is = |given: &str| given.strip_prefix(PROPERTY_PREFIX) == name.strip_prefix(PREFIX);
        properties.iter().find(|(given, _)| is(given)).and_then(|(_, value)| number_of_property(value))
    };
    let of = |name: &str| variable(name).unwrap_or_else(|| property(name)).filter(|n| *n > 0);
    let set = |names: [&str; 3]| Some(names.map(of)).filter(|all| all.iter().any(Option::is_some));
    if let Some(heaps) = set(OF_HEAPS) {
        return heaps.into_iter().flatten().try_fold(0, u64::checked_add).map(SetLimit::Bytes);
    }
    let shares = |shares: [Option<u64>; 3]| {
        let shares = shares.map(Option::unwrap_or_default);
        let sum = shares.into_iter().try_fold(0, u64::checked_add)?;
        let limit = SetLimit::Percent { shares, memory: variable(MEMORY).flatten().filter(|n| *n > 0) };
        (sum < 100).then_some(limit)
    };
    set(PERCENT_OF_HEAPS).map_or_else(|| of(LIMIT).map(SetLimit::Bytes).or_else(|| shares([Some(of(PERCENT)?), None, None])), shares)
}

/// A number as the runtime reads it in a property: with base 0, so that a leading zero makes it octal (`Configuration::GetKnobULONGLONGValue` in
/// configuration.cpp).
fn number_of_property(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let base = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => 16,
        [b'0', ..] => 8,
        _ => 10,
    };
    number(text, base)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())).collect()
    }

    fn of(environment: &[(&str, &str)], properties: &[(&str, &str)]) -> Option<SetLimit> {
        hard_limit(&list(environment), &list(properties))
    }

    fn bytes(n: u64) -> Option<SetLimit> {
        Some(SetLimit::Bytes(n))
    }

    #[test]
    fn limits_are_read_as_the_runtime_reads_them() {
        let of = |environment: &[(&str, &str)]| of(environment, &[]);
        assert_eq!(of(&[("DOTNET_GCHeapHardLimit", "0x4000000")]), bytes(64 << 20));
        assert_eq!(of(&[("COMPlus_GCHeapHardLimit", "10"), ("DOTNET_GCHeapHardLimit", "C800000")]), bytes(200 << 20));
        assert_eq!(of(&[("COMPlus_GCHeapHardLimit", "10"), ("DOTNET_GCHeapHardLimit", "")]), bytes(16));
        assert_eq!(of(&[("DOTNET_GCHeapHardLimit", "0"), ("PATH", "/bin")]), None);
        assert_eq!(of(&[("DOTNET_GCHeapHardLimit", "many")]), None);
        assert_eq!(of(&[("DOTNET_GCHeapHardLimit", "10 bytes")]), bytes(16));
        let heaps = [("DOTNET_GCHeapHardLimit", "1"), ("DOTNET_GCHeapHardLimitSOH", "0x10"), ("DOTNET_GCHeapHardLimitLOH", "0x20")];
        assert_eq!(of(&heaps), bytes(0x30));
    }

    #[test]
    fn properties_are_decimal_and_yield_to_the_environment() {
        assert_eq!(of(&[], &[("System.GC.HeapHardLimit", "209715200")]), bytes(200 << 20));
        assert_eq!(of(&[], &[("System.GC.HeapHardLimit", "0xC800000"), ("System.GC.Server", "true")]), bytes(200 << 20));
        assert_eq!(of(&[], &[("System.GC.HeapHardLimit", "010")]), bytes(8));
        assert_eq!(of(&[], &[("GCHeapHardLimit", "10"), ("System.GC.heapHardLimit", "10")]), None);
        let property = [("System.GC.HeapHardLimit", "1000")];
        assert_eq!(of(&[("DOTNET_GCHeapHardLimit", "10")], &property), bytes(16));
        // A variable that is not a number hides the property.
        assert_eq!(of(&[("DOTNET_GCHeapHardLimit", "many")], &property), None);
        let heaps = [("System.GC.HeapHardLimitSOH", "100"), ("System.GC.HeapHardLimitLOH", "20"), ("System.GC.HeapHardLimitPOH", "3")];
        assert_eq!(of(&[("DOTNET_GCHeapHardLimit", "1")], &heaps), bytes(123));
        assert_eq!(of(&[("DOTNET_GCHeapHardLimitLOH", "10")], &heaps), bytes(119));
    }

    #[test]
    fn shares_are_of_the_physical_memory() {
        let percent = |shares: [u64; 3], memory| Some(SetLimit::Percent { shares, memory });
        assert_eq!(of(&[("DOTNET_GCHeapHardLimitPercent", "0x3C"), ("GCHeapHardLimit", "1")], &[]), percent([60, 0, 0], None));
        assert_eq!(of(&[], &[("System.GC.HeapHardLimitPercent", "60")]), percent([60, 0, 0], None));
        let memory = [("DOTNET_GCTotalPhysicalMemory", "0x40000000")];
        assert_eq!(of(&memory, &[("System.GC.HeapHardLimitPercent", "60")]), percent([60, 0, 0], Some(1 << 30)));
        assert_eq!(of(&[], &[("System.GC.HeapHardLimitPercent", "100")]), None);
        let heaps = [
            ("System.GC.HeapHardLimitSOHPercent", "30"),
            ("System.GC.HeapHardLimitLOHPercent", "20"),
            ("System.GC.HeapHardLimitPOHPercent", "5"),
        ];
        assert_eq!(of(&[("DOTNET_GCHeapHardLimit", "10")], &heaps), percent([30, 20, 5], None));
        // The limits of the heaps in bytes take precedence.
        assert_eq!(of(&[("DOTNET_GCHeapHardLimitSOH", "10"), ("DOTNET_GCHeapHardLimitLOH", "10")], &heaps), bytes(32));
        // The limit in bytes takes precedence over its share.
        assert_eq!(of(&[("DOTNET_GCHeapHardLimitPercent", "10")], &[("System.GC.HeapHardLimit", "77")]), bytes(77));
    }
}

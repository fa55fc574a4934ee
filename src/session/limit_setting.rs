//! The limit on the GC heap that the environment of a process sets.

/// Prefixes of the variables that the runtime reads, in its order.
const PREFIXES: [&str; 2] = ["DOTNET_", "COMPlus_"];
/// The limit, and the limits of the heaps, which take precedence and whose sum is the limit (`compute_hard_limit` in `gc.cpp`).
const LIMIT: &str = "GCHeapHardLimit";
const OF_HEAPS: [&str; 3] = ["GCHeapHardLimitSOH", "GCHeapHardLimitLOH", "GCHeapHardLimitPOH"];

/// The limit that the variables in `environment` set, in bytes; `None` if they set none.
pub(super) fn hard_limit(environment: &[(String, String)]) -> Option<u64> {
    let value = |prefix: &str, setting: &str| {
        let is_it = |name: &str| name.strip_prefix(prefix) == Some(setting);
        environment.iter().find(|(name, _)| is_it(name)).and_then(|(_, value)| number(value))
    };
    let of = |setting: &str| PREFIXES.into_iter().find_map(|prefix| value(prefix, setting)).filter(|n| *n > 0);
    let heaps = OF_HEAPS.map(of);
    if heaps.iter().any(Option::is_some) {
        return heaps.into_iter().flatten().try_fold(0, u64::checked_add);
    }
    of(LIMIT)
}

/// The runtime reads numbers as hexadecimal, with or without a prefix.
fn number(text: &str) -> Option<u64> {
    let digits = text.trim();
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).unwrap_or(digits);
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_the_runtime_reads_them() {
        let of = |list: &[(&str, &str)]| {
            let list: Vec<_> = list.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())).collect();
            hard_limit(&list)
        };
        assert_eq!(of(&[("DOTNET_GCHeapHardLimit", "0x4000000")]), Some(64 << 20));
        assert_eq!(of(&[("COMPlus_GCHeapHardLimit", "10"), ("DOTNET_GCHeapHardLimit", "C800000")]), Some(200 << 20));
        assert_eq!(of(&[("DOTNET_GCHeapHardLimitPercent", "0x3C"), ("GCHeapHardLimit", "1")]), None);
        assert_eq!(of(&[("DOTNET_GCHeapHardLimit", "0"), ("PATH", "/bin")]), None);
        assert_eq!(of(&[("DOTNET_GCHeapHardLimit", "many")]), None);
        let heaps = [("DOTNET_GCHeapHardLimit", "1"), ("DOTNET_GCHeapHardLimitSOH", "0x10"), ("DOTNET_GCHeapHardLimitLOH", "0x20")];
        assert_eq!(of(&heaps), Some(0x30));
    }
}

//! The limit on the GC heap that the environment of a process sets.

use super::startup::setting;

/// The limit, and the limits of the heaps, which take precedence and whose sum is the limit (`compute_hard_limit` in `gc.cpp`).
const LIMIT: &str = "GCHeapHardLimit";
const OF_HEAPS: [&str; 3] = ["GCHeapHardLimitSOH", "GCHeapHardLimitLOH", "GCHeapHardLimitPOH"];

/// The limit that the variables in `environment` set, in bytes; `None` if they set none.
pub(super) fn hard_limit(environment: &[(String, String)]) -> Option<u64> {
    let of = |name: &str| setting(environment, name).filter(|n| *n > 0);
    let heaps = OF_HEAPS.map(of);
    if heaps.iter().any(Option::is_some) {
        return heaps.into_iter().flatten().try_fold(0, u64::checked_add);
    }
    of(LIMIT)
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

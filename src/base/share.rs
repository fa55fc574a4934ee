//! Parts of a whole.

/// `part` of `whole`, from 0 to 1; `None` if `whole` is 0, where the caller knows whether that means all or nothing.
///
/// Exact to 52 bits, which is enough for a share, and for a heap of 4 PiB.
pub fn share(part: u64, whole: u64) -> Option<f64> {
    let float =
        |n: u64| f64::from(u32::try_from(n >> 20).unwrap_or(u32::MAX)) * 1_048_576.0 + f64::from(u32::try_from(n & 0xf_ffff).unwrap_or(0));
    (whole != 0).then(|| (float(part) / float(whole)).min(1.0))
}

//! Measures the memory of this process, which Linux alone tells.

/// Sets the peak back to what the process holds now, and returns that in MiB.
pub(crate) fn reset_peak() -> Option<f64> {
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    mebibytes_of("VmRSS:")
}

/// Returns the most that the process has held since the peak was set back, in MiB.
pub(crate) fn peak_mebibytes() -> Option<f64> {
    mebibytes_of("VmHWM:")
}

fn mebibytes_of(name: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes / 1024.0)
}

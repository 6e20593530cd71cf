//! Numbers of the report as people read them.

/// A time that is given in microseconds.
pub(super) fn time(us: u64) -> String {
    match us {
        0 => "0".into(),
        1..1_000 => format!("{us} us"),
        1_000..1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        _ => format!("{:.2} s", us as f64 / 1e6),
    }
}

/// An amount of memory or of data.
pub(super) fn bytes(bytes: u64) -> String {
    let units = ["KB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1e3;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1e3;
        unit += 1;
    }
    format!("{value:.1} {}", units[unit])
}

/// A part in hundredths of the whole.
pub(super) fn share(part: u64, whole: u64) -> String {
    format!("{}%", 100 * part / whole.max(1))
}

/// A number of things, whose name is in the singular.
pub(super) fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

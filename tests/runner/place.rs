//! Where things lie: the tree, the built binaries, the cache of third-party software.

pub use crate::trials::scratch;
use std::env;
use std::path::{Path, PathBuf};

/// Root of the source tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the tree").to_path_buf()
}

/// The policy that the whole run is about (`TEST_COHORT_PROGRESS`), instead of each trial's own or the default.
pub fn progress() -> Option<String> {
    env::var("TEST_COHORT_PROGRESS").ok().filter(|name| !name.is_empty())
}

/// Folder of the built `pip-exec`, libraries and wrappers: `TEST_COHORT_LIBRARIES` or `target/release`.
pub fn built() -> PathBuf {
    env::var_os("TEST_COHORT_LIBRARIES").map_or_else(|| root().join("target/release"), PathBuf::from)
}

/// A file of [`built`].
///
/// # Errors
/// When it has not been built.
pub fn built_file(name: &str) -> Result<PathBuf, String> {
    let path = built().join(name);
    if path.exists() { Ok(path) } else { Err(format!("{} is missing: run `make build`", path.display())) }
}

/// Folder that `tools/cache.sh` fills.
pub fn cache() -> PathBuf {
    if let Some(path) = env::var_os("TEST_COHORT_CACHE") {
        return path.into();
    }
    let base = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache"));
    base.join("cohort")
}

/// A file of the cache.
///
/// # Errors
/// When it is not there; the message says which item of `tools/cache.sh` brings it.
pub fn cached(path: &str, item: &str) -> Result<PathBuf, String> {
    let file = cache().join(path);
    if file.exists() { Ok(file) } else { Err(format!("{} is missing: run `tools/cache.sh {item}`", file.display())) }
}

/// What cargo gives tests for files.
pub fn temporary() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

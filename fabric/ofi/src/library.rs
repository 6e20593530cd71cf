//! libfabric itself, loaded when a network is opened.

use crate::{Unavailable, sys};
use libc::{c_char, c_int, c_void};
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStringExt;

/// Name that the dynamic linker finds it by.
const NAME: &CStr = c"libfabric.so.1";

/// Names another file.
const VARIABLE: &str = "COHORT_NET_LIBFABRIC";

type GetInfo =
    unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const sys::Info, *mut *mut sys::Info) -> c_int;
type FreeInfo = unsafe extern "C" fn(*mut sys::Info);
type DuplicateInfo = unsafe extern "C" fn(*const sys::Info) -> *mut sys::Info;
type OpenFabric = unsafe extern "C" fn(*mut sys::FabricAttr, *mut *mut sys::Fabric, *mut c_void) -> c_int;
type Text = unsafe extern "C" fn(c_int) -> *const c_char;
type Version = unsafe extern "C" fn() -> u32;

/// The functions of libfabric that are real symbols. Never unloaded.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    pub get_info: GetInfo,
    pub free_info: FreeInfo,
    pub duplicate_info: DuplicateInfo,
    pub open_fabric: OpenFabric,
    text: Text,
    version: Version,
}

impl Library {
    /// Loads it.
    ///
    /// # Errors
    /// A text that says what to install.
    pub fn load() -> Result<Self, Unavailable> {
        let chosen = chosen();
        let name = chosen.as_deref().unwrap_or(NAME);
        // SAFETY: a C string; the library's initialisers have no conditions.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            let reason = last_error();
            return Err(match chosen {
                Some(_) => Unavailable::Broken(format!("{VARIABLE} cannot be loaded: {reason}")),
                None => not_loaded(&reason),
            });
        }
        let symbol = |name: &CStr| {
            // SAFETY: a loaded object and a C string.
            let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
            if address.is_null() {
                Err(Unavailable::Broken(format!(
                    "libfabric.so.1 is not usable: {}; version 1.11 or newer is needed",
                    last_error()
                )))
            } else {
                Ok(address)
            }
        };
        // SAFETY: libfabric's own symbols have these types since version 1.0.
        unsafe {
            Ok(Self {
                get_info: std::mem::transmute::<*mut c_void, GetInfo>(symbol(c"fi_getinfo")?),
                free_info: std::mem::transmute::<*mut c_void, FreeInfo>(symbol(c"fi_freeinfo")?),
                duplicate_info: std::mem::transmute::<*mut c_void, DuplicateInfo>(symbol(c"fi_dupinfo")?),
                open_fabric: std::mem::transmute::<*mut c_void, OpenFabric>(symbol(c"fi_fabric")?),
                text: std::mem::transmute::<*mut c_void, Text>(symbol(c"fi_strerror")?),
                version: std::mem::transmute::<*mut c_void, Version>(symbol(c"fi_version")?),
            })
        }
    }

    /// Major and minor version.
    #[must_use]
    pub fn version(&self) -> (u32, u32) {
        // SAFETY: no condition.
        let version = unsafe { (self.version)() };
        (version >> 16, version & 0xffff)
    }

    /// What a negative result means.
    #[must_use]
    pub fn text(&self, result: c_int) -> String {
        // SAFETY: any number is taken; the text is a constant.
        let text = unsafe { CStr::from_ptr((self.text)(-result)) };
        text.to_string_lossy().into_owned()
    }

    /// Asks for interfaces that fit `hints`; `source` is an address of this machine.
    ///
    /// # Errors
    /// libfabric's negative number.
    pub fn query(&self, source: Option<&CString>, hints: &Information) -> Result<Information, c_int> {
        let mut found = std::ptr::null_mut();
        let node = source.map_or(std::ptr::null(), |source| source.as_ptr());
        let flags = if source.is_some() { sys::SOURCE | sys::NUMERIC_HOST } else { 0 };
        // SAFETY: C strings or NULL, hints made by libfabric, and a place for the result.
        let result =
            unsafe { (self.get_info)(sys::VERSION, node, std::ptr::null(), flags, hints.first, &raw mut found) };
        if result != 0 {
            return Err(result);
        }
        Ok(Information { library: *self, first: found })
    }

    /// Hints without content.
    #[must_use]
    pub fn hints(&self) -> Information {
        // SAFETY: NULL asks for an empty record.
        let first = unsafe { (self.duplicate_info)(std::ptr::null()) };
        assert!(!first.is_null(), "no memory");
        Information { library: *self, first }
    }
}

/// The file that the user names, if any.
fn chosen() -> Option<CString> {
    std::env::var_os(VARIABLE).filter(|name| name != "auto").and_then(|name| CString::new(name.into_vec()).ok())
}

/// Whether the user names libfabric's file, who then wants to hear of it.
pub fn is_named() -> bool {
    chosen().is_some()
}

/// Why libfabric is not loaded, from the dynamic linker's reason: it is not there, or something that it needs is not.
fn not_loaded(reason: &str) -> Unavailable {
    let name = NAME.to_string_lossy();
    if reason.starts_with(&format!("{name}: cannot open shared object file: No such file")) {
        return Unavailable::Absent(format!(
            "COHORT_NET_PROVIDER asks for a provider of libfabric, which is not installed ({reason}): \
             install the package libfabric1 (Debian, Ubuntu) or libfabric (Fedora, SUSE, Spack), or \
             add its folder to LD_LIBRARY_PATH; COHORT_NET_PROVIDER=direct is TCP without libfabric"
        ));
    }
    Unavailable::Broken(format!("libfabric cannot be loaded: {reason}"))
}

/// The dynamic linker's reason.
fn last_error() -> String {
    // SAFETY: no condition; NULL if there was no error.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "unknown reason".into();
    }
    // SAFETY: not NULL, so NUL-terminated.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A list of libfabric's descriptions of interfaces, freed with this value.
#[derive(Debug)]
pub struct Information {
    library: Library,
    /// The first one; never NULL.
    pub first: *mut sys::Info,
}

impl Information {
    /// The first one.
    #[must_use]
    pub fn get(&self) -> &sys::Info {
        // SAFETY: not NULL, and whole, since libfabric made it.
        unsafe { &*self.first }
    }

    /// All of the list.
    pub fn iter(&self) -> impl Iterator<Item = &sys::Info> {
        let next = |info: &&sys::Info| {
            // SAFETY: the next of a list that lives as long as this value, or NULL.
            unsafe { info.next.as_ref() }
        };
        std::iter::successors(Some(self.get()), next)
    }

    /// A copy of one of the list.
    #[must_use]
    pub fn copy(&self, info: &sys::Info) -> Self {
        // SAFETY: a whole record.
        let first = unsafe { (self.library.duplicate_info)(info) };
        assert!(!first.is_null(), "no memory");
        Self { library: self.library, first }
    }
}

impl Drop for Information {
    fn drop(&mut self) {
        // SAFETY: made by libfabric, and freed once.
        unsafe { (self.library.free_info)(self.first) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_libfabric_is_told_from_a_broken_one() {
        let missing = "cannot open shared object file: No such file or directory";
        let absent = not_loaded(&format!("libfabric.so.1: {missing}"));
        assert!(matches!(&absent, Unavailable::Absent(text) if text.contains("libfabric1")));
        let broken = not_loaded(&format!("libefa.so.1: {missing}"));
        assert!(matches!(&broken, Unavailable::Broken(text) if text.contains("libefa")));
    }
}

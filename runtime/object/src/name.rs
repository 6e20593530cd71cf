//! Names that the program gives objects: bytes, and the text that messages and pictures show.

use alloc::string::String;
use alloc::vec::Vec;
use spin::Mutex;

/// The name of an object, empty at first.
#[derive(Debug, Default)]
pub(crate) struct Name(Mutex<Named>);

#[derive(Debug, Default)]
struct Named {
    /// With a question mark for each run of bytes that are none.
    text: String,
    /// What the program gave, if that is no text.
    bytes: Option<Vec<u8>>,
}

impl Name {
    /// Another name.
    pub(crate) fn set(&self, name: &[u8]) {
        let mut text = String::with_capacity(name.len());
        for chunk in name.utf8_chunks() {
            text.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                text.push('?');
            }
        }
        let bytes = (text.as_bytes() != name).then(|| name.into());
        *self.0.lock() = Named { text, bytes };
    }

    /// As the program gave it.
    pub(crate) fn given(&self) -> Vec<u8> {
        let named = self.0.lock();
        named.bytes.clone().unwrap_or_else(|| named.text.as_bytes().into())
    }

    /// As text.
    pub(crate) fn text(&self) -> String {
        self.0.lock().text.clone()
    }

    /// Shows the text, unless somebody is changing it.
    pub(crate) fn look(&self, look: impl FnOnce(&str)) {
        if let Some(named) = self.0.try_lock() {
            look(&named.text);
        }
    }
}

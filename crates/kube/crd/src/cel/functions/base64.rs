//! Bytes as text.

use ::base64::Engine as _;
use ::base64::engine::general_purpose::STANDARD;

pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

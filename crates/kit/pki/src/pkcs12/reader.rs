//! Reads tag, length and value. Lengths never exceed what is there, so a file cannot claim memory it does not have.

use super::WHAT;
use crate::PkiError;

pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OBJECT_ID: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const EXPLICIT: u8 = 0xa0;
/// `[0] IMPLICIT OCTET STRING`.
pub(super) const IMPLICIT: u8 = 0x80;

/// The rest of a value's content.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next value with its tag.
    pub(super) fn any(&mut self) -> Result<(u8, &'a [u8]), PkiError> {
        let (&tag, rest) = self.0.split_first().ok_or(WHAT)?;
        let (&first, rest) = rest.split_first().ok_or(WHAT)?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f)).ok_or(WHAT)?;
                (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
            }
            _ => return Err(WHAT),
        };
        let (value, rest) = rest.split_at_checked(length).ok_or(WHAT)?;
        self.0 = rest;
        Ok((tag, value))
    }

    /// The content of the next value, which must have this tag.
    pub(super) fn take(&mut self, tag: u8) -> Result<&'a [u8], PkiError> {
        match self.any()? {
            (found, value) if found == tag => Ok(value),
            _ => Err(WHAT),
        }
    }

    pub(super) fn nested(&mut self, tag: u8) -> Result<Self, PkiError> {
        self.take(tag).map(Self)
    }

    /// A small number, such as a version or a count of rounds.
    pub(super) fn number(&mut self) -> Result<u32, PkiError> {
        let digits = self.take(INTEGER)?;
        let digits = digits.strip_prefix(&[0]).unwrap_or(digits);
        if digits.len() > 4 {
            return Err(WHAT);
        }
        Ok(digits.iter().fold(0, |number, digit| number << 8 | u32::from(*digit)))
    }
}

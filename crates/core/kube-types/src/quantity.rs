//! Quantities (`500m`, `1Gi`, `1e3`): their canonical text and their order.

use std::cmp::Ordering;

/// An amount with the suffix style it was written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity {
    /// In units of 10⁻⁹.
    nano: i128,
    style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Binary,
    Decimal,
    Exponent,
}

impl Quantity {
    /// `None` when the text is no quantity.
    pub fn parse(_text: &str) -> Option<Self> {
        None
    }

    pub fn nano(&self) -> i128 {
        self.nano
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.nano.cmp(&other.nano))
    }
}

//! Addresses of pods. They are not routed: they name pods in statuses and endpoints.

use std::collections::HashSet;
use std::net::Ipv4Addr;

/// The addresses of one kubelet's pods.
#[derive(Debug)]
pub struct Addresses {
    first: u32,
    count: u32,
    next: u32,
    used: HashSet<u32>,
}

impl Addresses {
    /// All addresses of a network but its first and last.
    pub fn of(network: Ipv4Addr, prefix: u8) -> Self {
        let size = 1_u32.checked_shl(32_u32.saturating_sub(prefix.into())).unwrap_or(u32::MAX);
        let count = size.saturating_sub(2).max(1);
        Self { first: u32::from(network).wrapping_add(1), count, next: 0, used: HashSet::new() }
    }

    /// A free address. When all are in use, one is assigned twice rather than none.
    pub fn take(&mut self) -> Ipv4Addr {
        for _ in 0..=self.used.len() {
            let candidate = self.next % self.count;
            self.next = (candidate + 1) % self.count;
            if self.used.insert(candidate) {
                return Ipv4Addr::from(self.first.wrapping_add(candidate));
            }
        }
        Ipv4Addr::from(self.first.wrapping_add(self.next % self.count))
    }

    /// Marks an address as used.
    pub fn known(&mut self, address: &str) {
        self.offset(address).map(|offset| self.used.insert(offset));
    }

    pub fn give_back(&mut self, address: &str) {
        self.offset(address).map(|offset| self.used.remove(&offset));
    }

    fn offset(&self, address: &str) -> Option<u32> {
        let address: Ipv4Addr = address.parse().ok()?;
        let offset = u32::from(address).checked_sub(self.first)?;
        (offset < self.count).then_some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_given_once_until_it_comes_back() {
        let mut addresses = Addresses::of(Ipv4Addr::new(10, 128, 0, 0), 30);
        addresses.known("10.128.0.1");
        assert_eq!(addresses.take(), Ipv4Addr::new(10, 128, 0, 2));
        assert_eq!(addresses.used.len(), 2, "both are taken");
        addresses.give_back("10.128.0.1");
        assert_eq!(addresses.take(), Ipv4Addr::new(10, 128, 0, 1));
        addresses.give_back("not an address");
        addresses.give_back("192.168.0.1");
        addresses.take();
    }
}

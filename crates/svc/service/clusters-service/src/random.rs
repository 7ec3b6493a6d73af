//! Random bytes for ids and names.

use uuid::Uuid;

/// Random bytes. Those of a UUID that hold its version and variant are left out.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut left = bytes.as_mut_slice();
    while !left.is_empty() {
        let random = Uuid::new_v4().into_bytes();
        let usable: Vec<u8> = random
            .into_iter()
            .enumerate()
            .filter(|(at, _)| ![6, 8].contains(at))
            .map(|(_, byte)| byte)
            .collect();
        let take = left.len().min(usable.len());
        let (now, later) = left.split_at_mut(take);
        now.copy_from_slice(usable.get(..take).unwrap_or_default());
        left = later;
    }
    bytes
}

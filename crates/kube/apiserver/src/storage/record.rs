//! What a record of the log says. Little-endian numbers, lengths before texts.

/// One change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record<'a> {
    Put {
        store: u64,
        version: u64,
        hole: u32,
        watch_cache: &'a str,
        key: &'a str,
        json: &'a [u8],
    },
    Delete {
        store: u64,
        version: u64,
        watch_cache: &'a str,
        key: &'a str,
    },
    /// The counter has reached this, whatever else the log still holds.
    Mark {
        store: u64,
        version: u64,
    },
    /// A cluster store exists, under this name, with this JSON of its owner's.
    ClusterStore {
        store: u64,
        name: &'a str,
        data: &'a [u8],
    },
    Dropped {
        store: u64,
    },
}

const PUT: u8 = 1;
const DELETE: u8 = 2;
const MARK: u8 = 3;
const SPACE: u8 = 4;
const DROPPED: u8 = 5;

impl<'a> Record<'a> {
    /// The bytes before the body, and the body.
    pub(super) fn encode(&self) -> (Vec<u8>, &'a [u8]) {
        let mut head = Vec::with_capacity(96);
        let number = |head: &mut Vec<u8>, value: u64| head.extend_from_slice(&value.to_le_bytes());
        let text = |head: &mut Vec<u8>, value: &str| {
            head.extend_from_slice(&(value.len() as u32).to_le_bytes());
            head.extend_from_slice(value.as_bytes());
        };
        match *self {
            Self::Put { store, version, hole, watch_cache, key, json } => {
                head.push(PUT);
                number(&mut head, store);
                number(&mut head, version);
                number(&mut head, u64::from(hole));
                text(&mut head, watch_cache);
                text(&mut head, key);
                (head, json)
            }
            Self::Delete { store, version, watch_cache, key } => {
                head.push(DELETE);
                number(&mut head, store);
                number(&mut head, version);
                text(&mut head, watch_cache);
                text(&mut head, key);
                (head, &[])
            }
            Self::Mark { store, version } => {
                head.push(MARK);
                number(&mut head, store);
                number(&mut head, version);
                (head, &[])
            }
            Self::ClusterStore { store, name, data } => {
                head.push(SPACE);
                number(&mut head, store);
                text(&mut head, name);
                (head, data)
            }
            Self::Dropped { store } => {
                head.push(DROPPED);
                number(&mut head, store);
                (head, &[])
            }
        }
    }

    /// `None`: written by a version of this program that knows more than we do.
    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let mut reader = Reader(rest);
        Some(match *kind {
            PUT => Self::Put {
                store: reader.number()?,
                version: reader.number()?,
                hole: u32::try_from(reader.number()?).ok()?,
                watch_cache: reader.text()?,
                key: reader.text()?,
                json: reader.0,
            },
            DELETE => Self::Delete {
                store: reader.number()?,
                version: reader.number()?,
                watch_cache: reader.text()?,
                key: reader.text()?,
            },
            MARK => Self::Mark { store: reader.number()?, version: reader.number()? },
            SPACE => Self::ClusterStore { store: reader.number()?, name: reader.text()?, data: reader.0 },
            DROPPED => Self::Dropped { store: reader.number()? },
            _ => return None,
        })
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.take(4)?.try_into().ok().map(u32::from_le_bytes)?;
        std::str::from_utf8(self.take(length as usize)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_read_back_as_written(store: u64, version: u64, hole: u32, key in ".*", json: Vec<u8>) {
            let watch_cache = "pods";
            for record in [
                Record::Put { store, version, hole, watch_cache, key: &key, json: &json },
                Record::Delete { store, version, watch_cache, key: &key },
                Record::Mark { store, version },
                Record::ClusterStore { store, name: &key, data: &json },
                Record::Dropped { store },
            ] {
                let (mut bytes, body) = record.encode();
                bytes.extend_from_slice(body);
                prop_assert_eq!(Record::decode(&bytes), Some(record));
            }
        }

        #[test]
        fn nonsense_never_panics(bytes: Vec<u8>) {
            let _ = Record::decode(&bytes);
        }
    }
}

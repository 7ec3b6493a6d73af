//! Ids of client assertions that were used.

use std::collections::HashMap;

use aro_base::Timestamp;
use aws_lc_rs::digest::{SHA256, digest};
use parking_lot::Mutex;

/// Ids remembered at most: about 10 MB.
const MOST: usize = 100_000;

type Digest = [u8; 32];

/// Which ids were used, by which token, and until when that token is valid.
#[derive(Default)]
pub(crate) struct UsedAssertions(Mutex<HashMap<Digest, (Digest, Timestamp)>>);

/// Why an assertion is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reuse {
    /// Its id was used before.
    Used,
    /// Too many ids are remembered.
    Full,
}

fn sha256(bytes: &[u8]) -> Digest {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, bytes).as_ref());
    out
}

impl UsedAssertions {
    /// Records a use. The same token may come again until it expires, unless `once`; another token with its id may not.
    pub(crate) fn record(
        &self,
        client: &str,
        id: &str,
        token: &str,
        expires: Timestamp,
        now: Timestamp,
        once: bool,
    ) -> Result<(), Reuse> {
        let (id, token) = (sha256(format!("{client}\n{id}").as_bytes()), sha256(token.as_bytes()));
        let mut used = self.0.lock();
        if let Some((by, until)) = used.get(&id)
            && *until > now
        {
            return if *by == token && !once { Ok(()) } else { Err(Reuse::Used) };
        }
        if used.len() >= MOST {
            used.retain(|_, (_, until)| *until > now);
        }
        if used.len() >= MOST {
            return Err(Reuse::Full);
        }
        used.insert(id, (token, expires));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_belongs_to_one_token_until_it_expires() {
        let (used, now, later) =
            (UsedAssertions::default(), Timestamp::UNIX_EPOCH, Timestamp::from_second(60).unwrap());
        let record = |token: &str, now, once| used.record("c", "jti", token, later, now, once);
        assert_eq!(record("a", now, false), Ok(()));
        assert_eq!(record("a", now, false), Ok(()));
        assert_eq!(record("a", now, true), Err(Reuse::Used));
        assert_eq!(record("b", now, false), Err(Reuse::Used));
        assert_eq!(used.record("other", "jti", "b", later, now, true), Ok(()));
        assert_eq!(record("b", later, true), Ok(()), "expired");
    }
}

//! Keys of clusters, prepared ahead: generating an RSA key takes longer than the rest of a creation.

use std::sync::Arc;
use std::time::Duration;

use aro_base::{SharedClock, SignedDuration, chain};
use aro_control::saga::StepError;
use aro_pki::jws::{Algorithm, SigningKey};
use aro_pki::{Authority, KeyPem, PkiError, RsaBits, Validity, generate_rsa};
use aro_runtime::{Fault, Scope, TaskKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use tokio::sync::{Mutex, mpsc};

use super::azure::ClusterKeys;

/// Keys that are kept ready.
const READY: usize = 128;
/// Keys that are made without a pause after the start.
const AT_ONCE: usize = 4;
/// Between two keys: creations and requests come first.
const PAUSE: Duration = Duration::from_millis(200);

/// Prepared keys. Cloning gives another handle.
#[derive(Clone)]
pub(crate) struct KeyPool {
    ready: Arc<Mutex<mpsc::Receiver<KeyPem>>>,
    clock: SharedClock,
}

impl KeyPool {
    /// Prepares keys until the scope ends.
    pub(crate) fn start(clock: SharedClock, scope: &Scope) -> Self {
        let (sender, receiver) = mpsc::channel(READY);
        scope.spawn(TaskKind::Helper, "cluster-keys", async move {
            let mut made = 0;
            // A full channel holds the next key back.
            while let Ok(permit) = sender.reserve().await {
                if made >= AT_ONCE {
                    tokio::time::sleep(PAUSE).await;
                }
                match generate().await {
                    Ok(key) => {
                        made += 1;
                        permit.send(key);
                    }
                    Err(error) => {
                        tracing::warn!(error = %chain(&error), "key of a cluster not generated");
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            }
            Ok::<_, Fault>(())
        });
        Self { ready: Arc::new(Mutex::new(receiver)), clock }
    }

    /// The keys of one cluster. With none ready they are generated now.
    pub(crate) async fn take(&self) -> Result<ClusterKeys, StepError> {
        let failed = |error: &PkiError| StepError::retry(format!("generate keys: {}", chain(error)));
        let ready = self.ready.lock().await.try_recv().ok();
        let service_account = match ready {
            Some(key) => key,
            None => generate().await.map_err(|error| failed(&error))?,
        };
        let (nodes, nodes_public) = ssh_key(&self.clock).map_err(|error| failed(&error))?;
        Ok(ClusterKeys { service_account, nodes, nodes_public })
    }
}

async fn generate() -> Result<KeyPem, PkiError> {
    let task = tokio::task::spawn_blocking(|| generate_rsa(RsaBits::B2048)).await;
    task.unwrap_or(Err(PkiError::Unreadable("a key whose generation was interrupted")))
}

/// A key pair for nodes, P-256; the public half in OpenSSH's form.
fn ssh_key(clock: &SharedClock) -> Result<(KeyPem, String), PkiError> {
    const CURVE: &str = "nistp256";
    const WHAT: PkiError = PkiError::Unreadable("the key for nodes");
    // An authority is the one thing that comes with a fresh key of this kind; its certificate is not used.
    let key =
        Authority::generate("nodes", Validity::from_now(clock.now(), SignedDuration::from_hours(1)))?.key();
    let public = SigningKey::from_pem(&key, Algorithm::Es256)?;
    let coordinate = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref().unwrap_or_default()).ok();
    let (x, y) = coordinate(&public.jwk().x).zip(coordinate(&public.jwk().y)).ok_or(WHAT)?;
    let kind = format!("ecdsa-sha2-{CURVE}");
    let mut blob = Vec::with_capacity(128);
    let point: Vec<u8> = [&[4][..], &x, &y].concat();
    for part in [kind.as_bytes(), CURVE.as_bytes(), &point] {
        blob.extend((part.len() as u32).to_be_bytes());
        blob.extend(part);
    }
    Ok((key, format!("{kind} {} aro", STANDARD.encode(blob))))
}

#[cfg(test)]
mod tests {
    use aro_base::{ManualClock, Timestamp};

    use super::*;

    #[test]
    fn the_key_for_nodes_is_in_the_form_of_openssh() {
        let clock: SharedClock = ManualClock::at(Timestamp::from_second(1_900_000_000).unwrap());
        let (_, text) = ssh_key(&clock).unwrap();
        let blob = STANDARD.decode(text.split(' ').nth(1).unwrap()).unwrap();
        assert_eq!(&blob[..4], [0, 0, 0, 19]);
        assert_eq!(&blob[4..23], b"ecdsa-sha2-nistp256");
        assert_eq!(blob.len(), 4 + 19 + 4 + 8 + 4 + 65);
        assert_eq!(blob[39], 4, "an uncompressed point");
    }
}

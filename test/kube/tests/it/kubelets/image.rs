//! An image that really runs: it answers HTTP as its test wants, and stops as its test wants.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use aro_kube_kubelet::{ContainerSpec, Image, Images, Started, Workload};
use aro_runtime::{Fault, Readiness, Scope, TaskKind};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// The name of the image.
pub const IMAGE: &str = "test/echo";
/// Its port.
pub const PORT: u16 = 8080;

/// Images of a test; clones share what they know.
#[derive(Clone, Default)]
pub struct TestImages {
    pods: Arc<Mutex<HashMap<String, Arc<Control>>>>,
}

/// What a test knows about the containers of one pod, and wants of them.
#[derive(Default)]
pub struct Control {
    /// What each start was given.
    pub starts: Mutex<Vec<ContainerSpec>>,
    /// It answers 503 while this is set.
    pub unwell: AtomicBool,
    /// When told to stop, it waits for [`Control::released`].
    pub slow: AtomicBool,
    pub released: Notify,
    /// It was told to stop, and stopped by itself.
    pub told: AtomicBool,
    pub stopped: AtomicBool,
    /// It fails when this is told.
    pub fail: Notify,
}

impl Control {
    /// What the last start was given.
    pub fn given(&self) -> Option<ContainerSpec> {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner).last().cloned()
    }

    pub fn count(&self) -> usize {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl TestImages {
    /// What is known about a pod.
    pub fn of(&self, pod: &str) -> Arc<Control> {
        let mut pods = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
        pods.entry(pod.to_owned()).or_default().clone()
    }
}

impl Images for TestImages {
    fn find(&self, name: &str) -> Option<Arc<dyn Image>> {
        (name == IMAGE).then(|| Arc::new(Echo(self.clone())) as Arc<dyn Image>)
    }
}

struct Echo(TestImages);

/// Pods of this service account may not run the image.
pub const REFUSED_ACCOUNT: &str = "tenant";

impl Image for Echo {
    fn allow(&self, workload: &Workload<'_>) -> Result<(), String> {
        if workload.service_account == REFUSED_ACCOUNT {
            return Err(format!("not for {}", workload.namespace));
        }
        Ok(())
    }

    fn start(&self, container: ContainerSpec, scope: Scope) -> BoxFuture<'static, Result<Started, Fault>> {
        let control = self.0.of(&container.pod.name);
        async move {
            control.starts.lock().unwrap_or_else(PoisonError::into_inner).push(container);
            let listener = TcpListener::bind("127.0.0.1:0").await;
            let listener = listener.map_err(|error| Fault::caused("bind a port", error))?;
            let address = listener.local_addr().map_err(|error| Fault::caused("find the port", error))?;
            let inside = scope.clone();
            scope.spawn(TaskKind::Listener, "echo", async move { serve(listener, &control, &inside).await });
            Ok(Started { ports: [(PORT, address)].into(), readiness: Readiness::new() })
        }
        .boxed()
    }
}

async fn serve(listener: TcpListener, control: &Control, scope: &Scope) -> Result<(), Fault> {
    loop {
        let accepted = tokio::select! {
            () = scope.cancelled() => break,
            () = control.fail.notified() => return Err(Fault::new("the test wants it to fail")),
            accepted = listener.accept() => accepted,
        };
        let Ok((mut stream, _)) = accepted else { continue };
        let unwell = control.unwell.load(Ordering::Relaxed);
        let answer = if unwell { "503 Service Unavailable" } else { "200 OK" };
        let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        // Whoever asks may have gone.
        let _ = stream.read(&mut [0; 1024]).await;
        let _ = stream.write_all(answer.as_bytes()).await;
    }
    control.told.store(true, Ordering::Relaxed);
    if control.slow.load(Ordering::Relaxed) {
        control.released.notified().await;
    }
    control.stopped.store(true, Ordering::Relaxed);
    Ok(())
}

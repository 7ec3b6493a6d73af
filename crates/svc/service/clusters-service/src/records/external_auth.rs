//! The record of an external auth.

use aro_ocm::{
    ClusterId, ExternalAuth, ExternalAuthId, ExternalAuthState, ExternalAuthStateValue, ExternalAuthStatus,
    Time,
};
use aro_store::{Kind, Names};
use serde::{Deserialize, Serialize};

use super::keys::{external_auth_id, names_in};
use super::{DeletionRequest, Record, TraceContext};

/// An external auth as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExternalAuthRecord {
    /// Its cluster.
    pub cluster_id: ClusterId,
    /// Its id.
    pub id: ExternalAuthId,
    /// The object of the API, with its status.
    pub auth: ExternalAuth,
    /// When it was accepted.
    pub created: Time,
    /// Counts changes of the desired state, from 1.
    pub generation: u64,
    /// The request that last changed the desired state.
    #[serde(default)]
    pub trace: TraceContext,
    /// Set once its deletion was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<DeletionRequest>,
}

impl Record for ExternalAuthRecord {
    const KIND: Kind<Self> = Kind::new("ClustersService/externalAuths");

    fn names(&self) -> Names {
        names_in(&self.cluster_id, "external_auths", self.id.as_str(), external_auth_id(&self.id))
    }
}

impl ExternalAuthRecord {
    /// Its state.
    pub fn state(&self) -> ExternalAuthStateValue {
        let state = self.auth.status.as_ref().and_then(|status| status.state.as_ref());
        state.and_then(|state| state.value).unwrap_or(ExternalAuthStateValue::Ready)
    }

    /// Sets its state and the message that callers show.
    pub fn set_state(&mut self, state: ExternalAuthStateValue, message: impl Into<String>, now: Time) {
        let message = message.into();
        self.auth.status = Some(ExternalAuthStatus {
            state: Some(ExternalAuthState { value: Some(state), last_updated_timestamp: Some(now) }),
            message: (!message.is_empty()).then_some(message),
        });
    }
}

//! Which states forbid which requests. Pure.

use aro_arm::ResourceId;
use aro_arm::operation::ProvisioningState as State;
use aro_arm_server::Failure;

/// How long a client waits while a revocation runs.
const REVOCATION_RETRY: u32 = 10;

/// An existing resource may be changed only when nothing else is under way with it.
pub fn check_update(id: &ResourceId, state: State) -> Result<(), Failure> {
    if state.is_terminal() {
        return Ok(());
    }
    Err(Failure::conflict(id, format!("Cannot update resource while resource is \"{state}\"")))
}

/// A resource is deleted once; any other operation under way is cancelled by the delete.
pub fn check_delete(id: &ResourceId, state: State) -> Result<(), Failure> {
    if state == State::Deleting {
        return Err(Failure::conflict(id, "Resource is already deleting"));
    }
    Ok(())
}

/// Children cannot be written while their cluster is being made or unmade. An accepted cluster does not
/// block: its children are accepted as well and wait for it.
pub fn check_parent(id: &ResourceId, verb: &str, parent: State) -> Result<(), Failure> {
    let word = match parent {
        State::Provisioning => "provisioning",
        State::Deleting => "deleting",
        _ => return Ok(()),
    };
    Err(Failure::conflict(id, format!("Cannot {verb} resource while parent resource is {word}")))
}

/// Credentials are issued and revoked on a cluster at rest, and not while a revocation runs.
pub fn check_credential_action(id: &ResourceId, state: State, revocation_runs: bool) -> Result<(), Failure> {
    if !state.is_terminal() {
        let message = format!("Cannot request or revoke credentials while resource is \"{state}\"");
        return Err(Failure::conflict(id, message));
    }
    if revocation_runs {
        let message = "Cannot request or revoke credentials while credentials are being revoked".to_owned();
        return Err(Failure::Conflict {
            target: id.to_string(),
            message,
            retry_after: Some(REVOCATION_RETRY),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_block_what_the_conflict_rules_say() {
        let id = ResourceId::of_subscription("s");
        let states = [
            // state, update, delete, child write, credentials: allowed?
            (State::Succeeded, true, true, true, true),
            (State::Failed, true, true, true, true),
            (State::Canceled, true, true, true, true),
            (State::Accepted, false, true, true, false),
            (State::Provisioning, false, true, false, false),
            (State::Updating, false, true, true, false),
            (State::AwaitingSecret, false, true, true, false),
            (State::Deleting, false, false, false, false),
        ];
        for (state, update, delete, child, credentials) in states {
            assert_eq!(check_update(&id, state).is_ok(), update, "{state}");
            assert_eq!(check_delete(&id, state).is_ok(), delete, "{state}");
            assert_eq!(check_parent(&id, "create", state).is_ok(), child, "{state}");
            assert_eq!(check_credential_action(&id, state, false).is_ok(), credentials, "{state}");
        }
        assert!(check_credential_action(&id, State::Succeeded, true).is_err());
    }
}

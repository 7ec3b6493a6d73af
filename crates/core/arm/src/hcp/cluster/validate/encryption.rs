//! How etcd's data is encrypted: each choice needs its own part, and no other.

use crate::hcp::cluster::{DataEncryption, EncryptionType, KeyManagementMode};
use crate::schema::problems::Problems;
use crate::{FieldError, FieldPath};

pub fn check(encryption: &DataEncryption, properties: &FieldPath, problems: &mut Problems) {
    let at = properties.child("etcd").child("dataEncryption").child("customerManaged");
    match (encryption.key_management_mode, &encryption.customer_managed) {
        (KeyManagementMode::CustomerManaged, None) => {
            // A mode that is missing or wrong is reported instead of the part it would need.
            let mode = properties.child("etcd").child("dataEncryption").child("keyManagementMode");
            if !problems.has(&mode) {
                problems.push(FieldError::required(&at));
            }
        }
        (KeyManagementMode::CustomerManaged, Some(managed)) => {
            match (managed.encryption_type, &managed.kms) {
                (EncryptionType::Kms, None) => problems.push(FieldError::required(&at.child("kms"))),
                (EncryptionType::Kms, Some(_)) => {}
            }
        }
    }
}

//! Taking what only one resource may use. See [`aro_rp_store::Claim`] for the idea.

use aro_arm::{FieldError, FieldPath, ResourceId};
use aro_rp_store::{Claim, ClaimKind, Documents, Write};
use aro_store::CollectionError;

/// Something a new resource wants to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub kind: ClaimKind,
    /// The thing itself: an id or a name.
    pub what: String,
    /// The member that names it, for the error.
    pub path: FieldPath,
    /// Whether others may use it, too.
    pub shared: bool,
}

/// Adds the claims of a new resource to its batch, or returns what is taken already.
///
/// The first attempt assumes that everything is free; if it is not, the batch fails as a whole and the next attempt reads
/// the claims. So the usual create needs no reads at all, and still two of them cannot both win.
pub async fn take(
    documents: &Documents,
    write: &mut Write,
    holder: &ResourceId,
    wanted: &[Wanted],
    look: bool,
) -> Result<Vec<FieldError>, CollectionError> {
    let subscription = holder.subscription().unwrap_or_default();
    let mut problems = Vec::new();
    for want in wanted {
        let mut claim = Claim::new(want.kind, &want.what, holder.clone());
        let id = claim.id(subscription);
        let existing = if look { documents.find::<Claim>(&id).await? } else { None };
        let Some(existing) = existing else {
            write.claim(&claim, None)?;
            continue;
        };
        let mut holders = Vec::new();
        for other in existing.value.holders {
            if other != *holder && documents.exists(&other).await? {
                holders.push(other);
            }
        }
        if let (false, Some(other)) = (want.shared, holders.first()) {
            problems.push(taken(want, other));
            continue;
        }
        holders.push(holder.clone());
        claim.holders = holders;
        write.claim(&claim, Some(&existing.etag))?;
    }
    Ok(problems)
}

fn taken(want: &Wanted, other: &ResourceId) -> FieldError {
    let noun = match want.kind {
        ClaimKind::ManagedResourceGroup => "managed resource group",
        ClaimKind::Subnet => "subnet",
        ClaimKind::NetworkSecurityGroup => "network security group",
        ClaimKind::ExternalAuth => {
            let why =
                format!("the cluster already has the external auth '{}'; only one is allowed", other.name());
            return FieldError::forbidden(&want.path, why);
        }
    };
    FieldError::invalid(&want.path, &want.what, format!("{noun} is already in use by '{other}'"))
}

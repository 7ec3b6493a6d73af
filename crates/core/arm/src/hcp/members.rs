//! The member tables (see [`crate::schema`]) for the api-versions of this provider.

use super::version::ApiVersion;
use crate::schema;

pub type Body = schema::Body<ApiVersion>;
pub type Kind = schema::Kind<ApiVersion>;
pub type Member = schema::Member<ApiVersion>;
pub type Move = schema::Move<ApiVersion>;
pub type Projection = schema::project::Projection<ApiVersion>;

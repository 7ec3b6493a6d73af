//! The member tables of [`schema`](crate::schema) for this provider's api-versions.

use super::version::ApiVersion;
use crate::schema;

pub type Body = schema::Body<ApiVersion>;
pub type Kind = schema::Kind<ApiVersion>;
pub type Member = schema::Member<ApiVersion>;
pub type Move = schema::Move<ApiVersion>;
pub type Projection = schema::project::Projection<ApiVersion>;

//! The bundles of one source, page by page.

use aro_store::{Condition, Expr, Literal, Page, PageToken, Path, Relation};

use super::{BUNDLE, Bundle, Row, Rows, of_type};
use crate::fault::Fault;

impl Rows {
    /// One page of a source's bundles, including those being deleted.
    pub async fn of_source(
        &self,
        source: &str,
        page: Page,
    ) -> Result<(Vec<Row<Bundle>>, Option<PageToken>), Fault> {
        let expr = Expr::Compare(Path::member("source"), Relation::Eq, Literal::Text(source.to_owned()));
        let condition: Condition =
            expr.check().map_err(|error| Fault::caused("a query of ours was refused", error))?;
        self.page(&of_type(BUNDLE, Some(condition)), page).await
    }
}

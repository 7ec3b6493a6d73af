//! The reads, each one statement: it sees one state of the database.

use aro_base::Timestamp;
use aro_store::adapter::{Position, etag_of, fold, position_of, prefix_end, token_for};
use aro_store::{
    Change, Container, DocId, DocKey, Document, Filter, Page, Paged, PartitionKey, Query, Raw, Slice,
    StoreError,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::condition;
use crate::error::corrupt;
use crate::pool::{Connections, Plan};

const COLUMNS: &str = "d.partition, d.id, d.kind_written, d.resource_id, d.version, d.modified, d.expires, d.deleted, d.body, d.pos";

/// Microseconds since 1970, as stored.
pub(crate) fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}

pub(crate) fn change(row: &Row, container: Container) -> Result<Change, tokio_postgres::Error> {
    let key =
        DocKey { container, partition: PartitionKey::new(row.try_get(0)?), id: DocId::new(row.try_get(1)?) };
    let resource_type = row.try_get(2)?;
    let resource_id = row.try_get(3)?;
    let version = row.try_get::<_, i64>(4)? as u64;
    if row.try_get(7)? {
        return Ok(Change::Delete { key, resource_type, resource_id, version });
    }
    let modified = timestamp(row.try_get(5)?);
    Ok(Change::Upsert(Document {
        key,
        resource_type,
        resource_id,
        etag: etag_of(version, modified),
        version,
        modified,
        expires: row.try_get::<_, Option<i64>>(6)?.map(timestamp),
        body: Raw::stored(row.try_get::<_, &str>(8)?),
    }))
}

fn document(row: &Row, container: Container) -> Result<Option<Document>, StoreError> {
    match change(row, container).map_err(corrupt)? {
        Change::Upsert(document) => Ok(Some(document)),
        Change::Delete { .. } => Ok(None),
    }
}

/// PostgreSQL's text cannot hold it, so nothing stored can be equal to it.
fn has_nul(text: &str) -> bool {
    text.contains('\0')
}

/// Reads one document.
pub(crate) async fn get(
    connections: &Connections,
    key: &DocKey,
    now: Timestamp,
) -> Result<Option<Document>, StoreError> {
    if has_nul(key.id.as_str()) || has_nul(key.partition.as_str()) {
        return Ok(None);
    }
    let rows = connections
        .read(GET, &[&key.container.name(), &key.partition.as_str(), &key.id.as_str(), &now.as_microsecond()])
        .await?;
    rows.first().map_or(Ok(None), |row| document(row, key.container))
}

/// Spelled out so that the most frequent statement is not put together at every call. The id is a range and an order
/// because only the primary key can serve that: a plan made while the table is small, and then kept, would as gladly
/// take any index that starts with the container and walk through all of it.
pub(crate) const GET: &str = "
    SELECT d.partition, d.id, d.kind_written, d.resource_id, d.version, d.modified, d.expires, d.deleted, d.body, d.pos
    FROM store_document d
    WHERE d.container = $1 AND d.partition = $2 AND d.id >= $3 AND d.id <= $3
        AND NOT d.deleted AND (d.expires IS NULL OR d.expires > $4)
    ORDER BY d.id LIMIT 1";

type Param = Box<dyn ToSql + Sync + Send>;

/// A statement under construction: text with `$n`, and what is bound to it.
pub(crate) struct Statement {
    sql: String,
    params: Vec<Param>,
}

impl Statement {
    /// Binds a value and returns what stands for it.
    pub(crate) fn bind(&mut self, param: impl ToSql + Sync + Send + 'static) -> String {
        self.params.push(Box::new(param));
        format!("${}", self.params.len())
    }

    /// Goes on with this text.
    pub(crate) fn add(&mut self, sql: &str) {
        self.sql.push_str(sql);
    }

    async fn run(&self, connections: &Connections, plan: Plan) -> Result<Vec<Row>, StoreError> {
        let params: Vec<&(dyn ToSql + Sync)> = self.params.iter().map(|param| &**param as _).collect();
        connections.read_with(&self.sql, &params, plan).await
    }

    /// Adds a condition; `?` stands for the parameter, each time it occurs.
    fn and(&mut self, condition: &str, param: impl ToSql + Sync + Send + 'static) {
        let number = self.bind(param);
        self.sql.push_str(" AND ");
        self.sql.push_str(&condition.replace('?', &number));
    }
}

/// Runs a query.
pub(crate) async fn query(
    connections: &Connections,
    query: &Query,
    page: &Page,
    now: Timestamp,
) -> Result<Paged, StoreError> {
    let after = page.after.as_ref().map(|token| position_of(query, token)).transpose()?;
    if names_nothing(query) {
        return Ok(Paged { items: Vec::new(), next: None });
    }
    let size = page.size.max(1);
    let rows = page_statement(query, after, now, size)?.run(connections, plan_of(query)).await?;
    let mut items = Vec::with_capacity(rows.len().min(size));
    for row in rows.iter().take(size) {
        items.extend(document(row, query.container)?);
    }
    let next = match rows.get(size.wrapping_sub(1)) {
        Some(last) if rows.len() > size => {
            let resource_id: String = last.try_get(10).map_err(corrupt)?;
            let tie: i64 = last.try_get(11).map_err(corrupt)?;
            Some(token_for(query, &Position { resource_id, tie: tie.to_string() }))
        }
        _ => None,
    };
    Ok(Paged { items, next })
}

/// Runs a query and returns a part of it, sorted.
pub(crate) async fn slice(
    connections: &Connections,
    query: &Query,
    slice: &Slice,
    now: Timestamp,
) -> Result<Vec<Document>, StoreError> {
    if names_nothing(query) || slice.size == 0 {
        return Ok(Vec::new());
    }
    let mut statement = statement(COLUMNS, query, !slice.order.is_empty(), now);
    statement.add(" ORDER BY ");
    condition::sort_keys(&mut statement, &slice.order);
    let size = statement.bind(i64::try_from(slice.size).unwrap_or(i64::MAX));
    let skip = statement.bind(i64::try_from(slice.skip).unwrap_or(i64::MAX));
    let ties = if slice.oldest_first { "d.k" } else { "d.resource_folded, d.k" };
    statement.add(&format!("{ties} LIMIT {size} OFFSET {skip}"));
    let rows = statement.run(connections, Plan::Forget).await?;
    let documents = rows.iter().map(|row| document(row, query.container));
    documents.filter_map(Result::transpose).collect()
}

/// Counts what a query finds.
pub(crate) async fn count(
    connections: &Connections,
    query: &Query,
    now: Timestamp,
) -> Result<u64, StoreError> {
    if names_nothing(query) {
        return Ok(0);
    }
    let rows = statement("count(*)", query, false, now).run(connections, plan_of(query)).await?;
    let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(corrupt)?;
    Ok(count as u64)
}

/// Whether the query names something that cannot be stored. A condition cannot.
fn names_nothing(query: &Query) -> bool {
    let texts = [query.partition.as_ref().map(PartitionKey::as_str), query.id_prefix.as_deref()];
    let texts = texts.into_iter().chain([query.resource_type.as_deref()]).flatten();
    let values = query.filters.iter().flat_map(|filter| match filter {
        Filter::Eq(_, value) | Filter::EqIgnoreCase(_, value) => std::slice::from_ref(value),
        // A value of a set that cannot be is no reason to find nothing; see below.
        Filter::In(..) | Filter::Absent(_) => &[],
    });
    texts.chain(values.map(String::as_str)).any(has_nul)
}

fn plan_of(query: &Query) -> Plan {
    if query.condition.is_some() { Plan::Forget } else { Plan::Keep }
}

/// `OFFSET 0` keeps the body from being read anew for every member that is looked at.
const AS_VALUE: &str = " CROSS JOIN LATERAL (SELECT store_json(d.body) AS j OFFSET 0) b";

/// What a query finds, without order or limit. `value` asks for the body as `b.j` even without a condition.
fn statement(columns: &str, query: &Query, value: bool, now: Timestamp) -> Statement {
    let value = if value || query.condition.is_some() { AS_VALUE } else { "" };
    let sql = format!(
        "SELECT {columns} FROM store_document d{value} WHERE NOT d.deleted AND d.resource_folded <> ''"
    );
    let mut statement = Statement { sql, params: Vec::new() };
    statement.and("d.container = ?", query.container.name());
    statement.and("(d.expires IS NULL OR d.expires > ?)", now.as_microsecond());
    if let Some(partition) = &query.partition {
        statement.and("d.partition = ?", partition.as_str().to_owned());
    }
    if let Some(resource_type) = &query.resource_type {
        statement.and("d.kind = ?", fold(resource_type));
    }
    if let Some(prefix) = query.id_prefix.as_deref().map(fold) {
        if let Some(end) = prefix_end(&prefix) {
            statement.and("d.resource_folded < ?", end);
        }
        statement.and("d.resource_folded >= ?", prefix);
    }
    for filter in &query.filters {
        filtered(&mut statement, filter);
    }
    if let Some(condition) = &query.condition {
        condition::ruled_in(&mut statement, condition);
        statement.add(" AND b.j IS NOT NULL AND ");
        condition::expression(&mut statement, condition.expr());
    }
    statement
}

fn page_statement(
    query: &Query,
    after: Option<Position>,
    now: Timestamp,
    size: usize,
) -> Result<Statement, StoreError> {
    let columns = format!("{COLUMNS}, d.resource_folded, d.k");
    let mut statement = statement(&columns, query, false, now);
    if let Some(position) = after {
        let tie: i64 = position.tie.parse().map_err(|_| StoreError::BadToken)?;
        // Two conditions equal a row comparison; with one parameter each they fit the builder, and the
        // first is what the index needs.
        statement.and("d.resource_folded >= ?", position.resource_id.clone());
        let tie = statement.bind(tie);
        statement.and(&format!("(d.resource_folded > ? OR d.k > {tie})"), position.resource_id);
    }
    let limit = statement.bind(size as i64 + 1);
    statement.add(&format!(" ORDER BY d.resource_folded, d.k LIMIT {limit}"));
    Ok(statement)
}

/// A condition on the body. The path is bound like any value. `json` (not `jsonb`) leaves the rest of the body alone,
/// whatever it holds.
fn filtered(statement: &mut Statement, filter: &Filter) {
    let (Filter::Eq(path, _) | Filter::EqIgnoreCase(path, _) | Filter::In(path, _) | Filter::Absent(path)) =
        filter;
    let names = statement.bind(path.split('.').map(str::to_owned).collect::<Vec<String>>());
    let path = format!("{names}::text[]");
    let is = |kind: &str| format!("json_typeof(d.body::json #> {path}) = '{kind}'");
    let text = format!("(d.body::json #>> {path})");
    // `CASE` keeps the order: the text is only taken from what is known to be a string.
    match filter {
        Filter::Eq(_, value) => {
            let sql = format!("CASE WHEN {} THEN {text} = ? ELSE false END", is("string"));
            statement.and(&sql, value.clone());
        }
        Filter::EqIgnoreCase(_, value) => {
            let lower = format!("lower({text} COLLATE \"C\")");
            let sql = format!("CASE WHEN {} THEN {lower} = ? ELSE false END", is("string"));
            statement.and(&sql, value.to_ascii_lowercase());
        }
        Filter::In(_, values) => {
            let sql = format!("CASE WHEN {} THEN {text} = ANY (?) ELSE false END", is("string"));
            let possible: Vec<String> = values.iter().filter(|value| !has_nul(value)).cloned().collect();
            statement.and(&sql, possible);
        }
        Filter::Absent(_) => {
            let sql = format!(" AND coalesce({}, true)", is("null"));
            statement.add(&sql);
        }
    }
}

//! `GET pods/x/log`

use aro_base::{SignedDuration, Timestamp};
use aro_kube_apimachinery::GroupKind;
use aro_kube_apimachinery::status::{FieldError, Status, go_quote};
use aro_kube_node_api::LogOptions;
use bytes::Bytes;
use futures::StreamExt as _;
use http::{HeaderValue, Response, StatusCode};
use serde_json::Value;

use super::{container, identity, node_name, node_of, pod_of, refused};
use crate::http::answer::Answer;
use crate::http::body::Body;
use crate::http::options::Query;
use crate::rest::Call;

/// A container's log, as text. It ends with the log; one that is followed, with the container, the client or the cluster.
pub async fn logs(call: &Call) -> Result<Answer, Status> {
    let options = read(&call.query, call.now)?.check(&call.name)?;
    let pod = pod_of(call)?;
    let container = container::choose(&pod, call.query.get("container").unwrap_or_default())?;
    if node_name(&pod).is_empty() {
        // Nothing was ever written; upstream answers with an empty body.
        let mut answer = Response::new(Body::Full(Bytes::new()));
        *answer.status_mut() = StatusCode::NO_CONTENT;
        return Ok(answer);
    }
    let node = node_of(call, &pod, "its logs cannot be fetched")?;
    let pod = identity(&pod);
    let lines = node.logs(&pod, &container, &options).await.map_err(|error| refused(error, &pod))?;
    let lines = lines.take_until(call.cluster.closing.clone().cancelled_owned());
    let mut answer = Response::new(Body::Stream(Box::pin(lines)));
    answer.headers_mut().insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    answer.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(answer)
}

/// What was asked for, not checked yet.
#[derive(Debug, Default, PartialEq)]
struct Asked {
    follow: bool,
    previous: bool,
    timestamps: bool,
    since_seconds: Option<i64>,
    since_time: Option<Timestamp>,
    tail: Option<i64>,
    limit: Option<i64>,
    stream: bool,
    now: Timestamp,
}

fn number(query: &Query<'_>, name: &str) -> Result<Option<i64>, Status> {
    let Some(text) = query.get(name) else { return Ok(None) };
    let bad =
        |_| Status::bad_request(format!("strconv.ParseInt: parsing {}: invalid syntax", go_quote(text)));
    text.parse().map(Some).map_err(bad)
}

fn read(query: &Query<'_>, now: Timestamp) -> Result<Asked, Status> {
    let since_time = match query.get("sinceTime") {
        None => None,
        Some(text) => Some(text.parse().map_err(|_| {
            let text = go_quote(text);
            Status::bad_request(format!(
                "parsing time {text} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text} as \"2006\""
            ))
        })?),
    };
    Ok(Asked {
        follow: query.flag("follow"),
        previous: query.flag("previous"),
        timestamps: query.flag("timestamps"),
        since_seconds: number(query, "sinceSeconds")?,
        since_time,
        tail: number(query, "tailLines")?,
        limit: number(query, "limitBytes")?,
        stream: query.get("stream").is_some(),
        now,
    })
}

impl Asked {
    fn check(self, pod: &str) -> Result<LogOptions, Status> {
        let mut errors = Vec::new();
        if let Some(tail) = self.tail.filter(|tail| *tail < 0) {
            errors.push(FieldError::invalid("tailLines", tail, "must be greater than or equal to 0"));
        }
        if let Some(limit) = self.limit.filter(|limit| *limit < 1) {
            errors.push(FieldError::invalid("limitBytes", limit, "must be greater than 0"));
        }
        match (self.since_seconds, self.since_time) {
            (Some(_), Some(_)) => {
                let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
                // No field has no name; upstream shows that so.
                errors.push(FieldError::forbidden("[]", why));
            }
            (Some(seconds), None) if seconds < 1 => {
                errors.push(FieldError::invalid(
                    "sinceSeconds",
                    Value::from(seconds),
                    "must be greater than 0",
                ));
            }
            _ => {}
        }
        if self.stream {
            errors.push(FieldError::forbidden("stream", "may not be specified"));
        }
        if !errors.is_empty() {
            let kind = GroupKind { group: String::new(), kind: "PodLogOptions".to_owned() };
            return Err(Status::invalid(&kind, pod, &errors));
        }
        // Longer ago than time reaches back is the same as always.
        let ago =
            |seconds| self.now.checked_sub(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MIN);
        let count = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(LogOptions {
            follow: self.follow,
            previous: self.previous,
            since: self.since_time.or(self.since_seconds.map(ago)),
            tail: self.tail.map(count),
            limit: self.limit.map(count),
            timestamps: self.timestamps,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> Result<LogOptions, (u16, String)> {
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        let read = read(&Query::parse(Some(query)), now).and_then(|asked| asked.check("p"));
        read.map_err(|status| (status.code, status.message))
    }

    #[test]
    fn options_are_read() {
        let all = "follow=true&previous=1&timestamps=true&tailLines=0&limitBytes=7&sinceSeconds=60";
        let since = Some("2026-01-01T00:00:00Z".parse().unwrap());
        let expected = LogOptions {
            follow: true,
            previous: true,
            since,
            tail: Some(0),
            limit: Some(7),
            timestamps: true,
        };
        assert_eq!(asked(all), Ok(expected));
        assert_eq!(
            asked("follow=false&container=c&insecureSkipTLSVerifyBackend=true"),
            Ok(LogOptions::default())
        );
        assert_eq!(asked("sinceTime=2026-01-01T01:00:00%2B01:00").unwrap().since, since);
        assert_eq!(asked("sinceSeconds=9223372036854775807").unwrap().since, Some(Timestamp::MIN));
    }

    #[test]
    fn options_that_make_no_sense_are_refused_in_upstreams_words() {
        for (query, code, message) in [
            (
                "tailLines=-1",
                422,
                "PodLogOptions \"p\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0",
            ),
            (
                "limitBytes=0",
                422,
                "PodLogOptions \"p\" is invalid: limitBytes: Invalid value: 0: must be greater than 0",
            ),
            (
                "sinceSeconds=0",
                422,
                "PodLogOptions \"p\" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0",
            ),
            (
                "sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z",
                422,
                "PodLogOptions \"p\" is invalid: []: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
            ),
            ("stream=Stdout", 422, "PodLogOptions \"p\" is invalid: stream: Forbidden: may not be specified"),
            ("tailLines=x", 400, "strconv.ParseInt: parsing \"x\": invalid syntax"),
        ] {
            assert_eq!(asked(query), Err((code, message.to_owned())), "{query}");
        }
    }
}

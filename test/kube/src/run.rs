//! Running scenarios on both sides.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{HeaderMap, Request};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::client::{Answer, Client, Lines};
use crate::compare::{Difference, differences};
use crate::known::Differences;
use crate::normal::{Normal, clean};
use crate::scenario::{Scenario, Step, at};

/// How long something may take that happens after a call has been answered.
const EVENTUALLY: Duration = Duration::from_secs(30);
/// How long an event may take.
const EVENT: Duration = Duration::from_secs(20);

/// One side of a comparison, in one scenario.
struct Side<'a> {
    client: &'a Client,
    normal: Normal,
    saved: HashMap<String, String>,
    watches: HashMap<String, Lines>,
}

/// What a step showed.
struct Shown {
    code: u16,
    content_type: String,
    warnings: Vec<String>,
    body: Value,
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct Report {
    pub calls: usize,
    pub equal: usize,
    pub listed: usize,
    /// Every step with the code both sides answered.
    pub trace: Vec<String>,
    /// Steps with differences that are not listed, told readably.
    pub failures: Vec<String>,
}

/// Runs one scenario, step by step on both sides at once.
pub async fn run(
    scenario: &Scenario,
    ours: &Client,
    real: &Client,
    known: &Differences,
    report: &mut Report,
) {
    let mut ours = Side::new(ours);
    let mut real = Side::new(real);
    for step in &scenario.steps {
        report.calls += 1;
        let (one, other) = tokio::join!(ours.step(step), real.step(step));
        let place = format!("{} / {}", scenario.name, step.name);
        let found = match (one, other) {
            (Ok(one), Ok(other)) => {
                let message = other.body.get("message").map(ToString::to_string).unwrap_or_default();
                report.trace.push(format!("{place}: {} {} {message}", one.code, other.code));
                compare(step, &one, &other)
            }
            (one, other) => {
                let told = |side: Result<Shown>| side.err().map(|error| json!(format!("{error:#}")));
                vec![Difference { path: "run".to_owned(), ours: told(one), real: told(other) }]
            }
        };
        let (listed, unlisted): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|difference| known.knows(&scenario.name, &step.name, difference));
        if !unlisted.is_empty() {
            let lines: Vec<String> = unlisted.iter().map(|difference| format!("    {difference}")).collect();
            report.failures.push(format!("{place}  ({})\n{}", step.call, lines.join("\n")));
        } else if listed.is_empty() {
            report.equal += 1;
        } else {
            report.listed += 1;
        }
    }
}

fn compare(step: &Step, ours: &Shown, real: &Shown) -> Vec<Difference> {
    let mut found = Vec::new();
    differences("code", &json!(ours.code), &json!(real.code), &mut found);
    if step.quiet {
        // What went wrong is worth knowing when something did.
        if !found.is_empty() {
            differences("body", &ours.body, &real.body, &mut found);
        }
        return found;
    }
    differences("content-type", &json!(ours.content_type), &json!(real.content_type), &mut found);
    differences("warnings", &json!(ours.warnings), &json!(real.warnings), &mut found);
    if step.only.is_empty() {
        differences("body", &ours.body, &real.body, &mut found);
    } else {
        for path in &step.only {
            let of = |shown: &Shown| at(&shown.body, path).cloned().unwrap_or_default();
            differences(&format!("body.{path}"), &of(ours), &of(real), &mut found);
        }
    }
    found
}

impl<'a> Side<'a> {
    fn new(client: &'a Client) -> Self {
        Self { client, normal: Normal::default(), saved: HashMap::new(), watches: HashMap::new() }
    }

    async fn step(&mut self, step: &Step) -> Result<Shown> {
        if let Some(watch) = &step.events {
            return self.events(step, watch).await;
        }
        let deadline = Instant::now() + EVENTUALLY;
        loop {
            let request = self.request(step)?;
            if let Some(watch) = &step.watch {
                let lines = self.client.open(request).await?;
                if lines.code.is_success() {
                    let shown = self.show(step, lines.code.as_u16(), &lines.headers, Value::Null);
                    self.watches.insert(watch.clone(), lines);
                    return Ok(shown);
                }
                bail!("the watch was answered with {}", lines.code);
            }
            let answer = if step.bare {
                self.client.without_certificate().call(request).await?
            } else {
                self.client.call(request).await?
            };
            let body = parse(&answer);
            if reached(step, answer.code.as_u16(), &body) {
                self.save(step, &body)?;
                return Ok(self.show(step, answer.code.as_u16(), &answer.headers, body));
            }
            if Instant::now() > deadline {
                bail!("waited {EVENTUALLY:?} in vain; the last answer was {} {body}", answer.code);
            }
            // A pause between two looks, not a guess at how long something takes.
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn events(&mut self, step: &Step, name: &str) -> Result<Shown> {
        let lines = self.watches.get_mut(name).with_context(|| format!("no watch is called {name}"))?;
        let mut events = Vec::new();
        while step.count.is_none_or(|count| events.len() < count) {
            let Some(line) = lines.next(EVENT).await.with_context(|| format!("after {events:?}"))? else {
                break;
            };
            events.push(
                serde_json::from_slice::<Value>(&line)
                    .unwrap_or_else(|_| json!(String::from_utf8_lossy(&line))),
            );
        }
        let events = events.into_iter().map(|event| self.normal.body(event, false)).collect();
        Ok(Shown { code: 0, content_type: String::new(), warnings: Vec::new(), body: Value::Array(events) })
    }

    fn request(&self, step: &Step) -> Result<Request<Bytes>> {
        let (method, path) =
            step.call.split_once(' ').with_context(|| format!("no method in {:?}", step.call))?;
        let mut request = Request::builder().method(method).uri(self.fill(path)?);
        let agent = "scenario/1.0";
        request = request.header(http::header::HOST, "localhost").header(http::header::USER_AGENT, agent);
        let body = match (&step.body, &step.text) {
            (Some(body), _) => self.fill(&body.to_string())?,
            (None, Some(text)) => self.fill(text)?,
            (None, None) => String::new(),
        };
        let content_type = match step.content_type.as_deref() {
            Some("merge") => Some("application/merge-patch+json"),
            Some("json") => Some("application/json-patch+json"),
            Some("strategic") => Some("application/strategic-merge-patch+json"),
            Some("apply") => Some("application/apply-patch+yaml"),
            Some("yaml") => Some("application/yaml"),
            Some("none") => None,
            None if !body.is_empty() => Some("application/json"),
            other => other,
        };
        if let Some(content_type) = content_type {
            request = request.header(http::header::CONTENT_TYPE, content_type);
        }
        let accept = match step.accept.as_deref() {
            Some("table") => "application/json;as=Table;v=v1;g=meta.k8s.io",
            Some("metadata") => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            Some("metadatalist") => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            Some("yaml") => "application/yaml",
            Some(other) => other,
            None => "application/json",
        };
        request = request.header(http::header::ACCEPT, accept);
        if let Some(user) = &step.user {
            request = request.header("impersonate-user", user);
        }
        for group in &step.groups {
            request = request.header("impersonate-group", group);
        }
        for (name, value) in &step.headers {
            request = request.header(name, self.fill(value)?);
        }
        request.header(http::header::CONTENT_LENGTH, body.len()).body(body.into()).context("make a request")
    }

    /// Puts saved values where they are named.
    fn fill(&self, text: &str) -> Result<String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, tail) = after.split_once('}').context("a name that does not end")?;
            let value = self.saved.get(name).with_context(|| format!("nothing was saved as {name}"))?;
            out.push_str(before);
            out.push_str(value);
            rest = tail;
        }
        out.push_str(rest);
        Ok(out)
    }

    fn save(&mut self, step: &Step, body: &Value) -> Result<()> {
        for (name, path) in &step.save {
            let value = at(body, path).with_context(|| format!("{path} is not in {body}"))?;
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.saved.insert(name.clone(), value);
        }
        Ok(())
    }

    fn show(&mut self, step: &Step, code: u16, headers: &HeaderMap, body: Value) -> Shown {
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        Shown {
            code,
            content_type: headers.get(http::header::CONTENT_TYPE).map(text).unwrap_or_default(),
            warnings: headers
                .get_all(http::header::WARNING)
                .iter()
                .map(text)
                .map(|warning| clean(&warning))
                .collect(),
            body: self.normal.body(body, step.sorted),
        }
    }
}

fn parse(answer: &Answer) -> Value {
    let kind = answer
        .headers
        .get(http::header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if kind.starts_with("application/yaml") {
        let text = String::from_utf8_lossy(&answer.body);
        return serde_saphyr::from_str(&text).unwrap_or_else(|_| json!(text));
    }
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| json!(String::from_utf8_lossy(&answer.body)))
}

fn reached(step: &Step, code: u16, body: &Value) -> bool {
    let Some(until) = &step.until else { return true };
    until.code.is_none_or(|wanted| wanted == code)
        && until.path.as_ref().is_none_or(|path| at(body, path).cloned().unwrap_or_default() == until.is)
}

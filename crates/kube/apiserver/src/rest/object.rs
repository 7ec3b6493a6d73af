//! Reading objects out of requests, and showing stored ones.

use std::sync::{Arc, LazyLock};

use aro_base::nesting;
use aro_kube_apimachinery::apply::{self, Context, Set};
use aro_kube_apimachinery::decode::{self, Problem};
use aro_kube_apimachinery::schema::Schema;
use aro_kube_apimachinery::status::{FieldError, Status};
use aro_kube_apimachinery::{Typed, meta};
use aro_kube_types::registry::builtin;
use bytes::Bytes;
use serde_json::{Value, json};

use super::call::Call;
use crate::convert;
use crate::http::answer::{self, Answer};
use crate::http::media::{self, Shape};
use crate::storage::{Draft, Stored};

/// What to do about fields a type does not have, or that are given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    Ignore,
    Warn,
    Strict,
}

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Yaml,
    Protobuf,
}

/// The type of every object's metadata.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

static METADATA: LazyLock<Schema> =
    LazyLock::new(|| Schema { reference: Some(OBJECT_META.to_owned()), ..Schema::default() });

pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Reads what Go clients send for built-in types.
pub fn from_protobuf(bytes: &[u8]) -> Result<Value, Status> {
    let find = |api_version: &str, kind: &str| {
        let gvk = aro_kube_apimachinery::GroupVersion::parse(api_version)?.with_kind(kind);
        let named = builtin().definition_name(&gvk).map(str::to_owned);
        // Options are of the same type in every group.
        Some(named.unwrap_or_else(|| format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}")))
    };
    let decoded = aro_kube_protobuf::decode(bytes, find);
    decoded.map(|decoded| decoded.object).map_err(|error| Status::bad_request(error.to_string()))
}

impl Call {
    pub fn strictness(&self) -> Strictness {
        match self.query.get("fieldValidation") {
            Some("Ignore") => Strictness::Ignore,
            Some("Strict") => Strictness::Strict,
            // Anything else was refused before.
            _ => Strictness::Warn,
        }
    }

    /// Reads the body as an object of this resource: typed, pruned, with its defaults.
    pub fn read_body(&mut self) -> Result<Value, Status> {
        let strictness = self.strictness();
        let gvk = self.served.resource.gvk.clone();
        let form = match self.content_type().as_str() {
            "" | "application/json" => Form::Json,
            "application/yaml" => Form::Yaml,
            PROTOBUF if self.served.custom.is_none() => Form::Protobuf,
            _ => return Err(unsupported_body()),
        };
        let unreadable = |problem: String| {
            Status::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: {problem}",
                gvk.kind, gvk.version, gvk.kind
            ))
        };
        let body = self.body.clone();
        let (mut object, mut problems) = if form == Form::Protobuf {
            (from_protobuf(&body)?, Vec::new())
        } else if form == Form::Yaml {
            let (value, duplicates) = decode::parse_yaml(&body).map_err(|problem| {
                unrecognized(&gvk.kind, &format!("{problem} ({})", decode::summary(&body)))
            })?;
            (value, duplicates.into_iter().map(Problem::Duplicate).collect::<Vec<_>>())
        } else {
            let decoded = if self.served.custom.is_none() {
                decode::decode(&body, self.served.typed())
            } else {
                decode::parse(&body).map(|(value, duplicates)| {
                    (value, duplicates.into_iter().map(Problem::Duplicate).collect())
                })
            };
            match decoded {
                Ok(decoded) => decoded,
                Err(problem) => {
                    // Malformed JSON and a wrong kind are reported before errors inside the object.
                    let head = decode::type_meta(&body).map_err(|problem| {
                        unrecognized(&gvk.kind, &format!("couldn't get version/kind; {problem}"))
                    })?;
                    if self.served.custom.is_none() {
                        check_registered(&head.api_version, &head.kind, &gvk)?;
                    }
                    return Err(unreadable(problem));
                }
            }
        };
        if !object.is_object() {
            return Err(Status::bad_request("the body of the request must be an object"));
        }
        if self.served.custom.is_none() {
            check_registered(meta::api_version(&object), meta::kind(&object), &gvk)?;
        }
        if self.served.custom.is_some() {
            self.check_custom_kind(&object)?;
        }
        check_kind(&mut object, &gvk)?;
        self.admit_type(&mut object, &mut problems, form != Form::Json).map_err(unreadable)?;
        self.complain(strictness, &problems, |_, problem| unreadable(problem))?;
        Ok(object)
    }

    /// Custom objects have to say what they are.
    fn check_custom_kind(&self, object: &Value) -> Result<(), Status> {
        let gvk = &self.served.resource.gvk;
        let missing = match (meta::kind(object), meta::api_version(object)) {
            ("", _) => "Kind",
            (_, "") => "apiVersion",
            _ => "",
        };
        if !missing.is_empty() {
            let text = String::from_utf8_lossy(&self.body);
            let summary = decode::summary(&self.body);
            return Err(unrecognized(
                &gvk.kind,
                &format!("Object '{missing}' is missing in '{text}' ({summary})"),
            ));
        }
        let kind = meta::kind(object);
        if kind != gvk.kind && meta::api_version(object) == gvk.api_version() {
            let error = FieldError::invalid("kind", kind, format!("must be {}", gvk.kind));
            let given = aro_kube_apimachinery::GroupKind { group: gvk.group.clone(), kind: kind.to_owned() };
            return Err(Status::invalid(&given, meta::name(object), &[error]));
        }
        Ok(())
    }

    /// Reads the body as an object of another built-in kind: what some subresources take.
    pub fn read_other(&mut self, group: &str, version: &str, kind: &str) -> Result<Value, Status> {
        let gvk = aro_kube_apimachinery::GroupVersionKind::new(group, version, kind);
        let mut object = match self.content_type().as_str() {
            "" | "application/json" => decode::parse(&self.body).map_err(Status::bad_request)?.0,
            "application/yaml" => decode::parse_yaml(&self.body).map_err(Status::bad_request)?.0,
            PROTOBUF => from_protobuf(&self.body)?,
            _ => return Err(unsupported_body()),
        };
        if !object.is_object() {
            return Err(Status::bad_request("the body of the request must be an object"));
        }
        check_kind(&mut object, &gvk)?;
        let schema = builtin().definition_name(&gvk).and_then(|name| builtin().definitions().get(name));
        if let Some(schema) = schema {
            let typed = Typed::new(schema, builtin().definitions());
            decode::coerce(&mut object, typed).map_err(Status::bad_request)?;
        }
        if !object.get("metadata").is_some_and(Value::is_object) {
            object["metadata"] = json!({});
        }
        Ok(object)
    }

    /// Makes an object be of its type: removes what the type does not have and fills in defaults.
    fn admit_type(
        &self,
        object: &mut Value,
        problems: &mut Vec<Problem>,
        coerce: bool,
    ) -> Result<(), String> {
        if let Some(custom) = &self.served.custom {
            if let Some(metadata) = object.get("metadata") {
                // Only whether it can be read: what is unknown there is found below.
                decode::check(metadata, Typed::new(&METADATA, builtin().definitions()))?;
            }
            // In upstream's order: what a default adds and the schema does not know goes, too.
            custom.compiled.default(object);
            problems.extend(custom.compiled.prune(object).into_iter().map(Problem::Unknown));
        } else {
            if coerce {
                problems
                    .extend(decode::coerce(object, self.served.typed())?.into_iter().map(Problem::Unknown));
            }
            let gvk = &self.served.resource.gvk;
            aro_kube_types::defaults::try_apply(gvk, object).map_err(|malformed| malformed.to_string())?;
        }
        Ok(())
    }

    /// What a patch made: the same as [`Call::read_body`] does with a body. Answers whether it had unknown fields.
    /// `shown` is what errors show: the object as it was handed in, or the patch. Made only when it is needed.
    pub fn retype(&mut self, object: &mut Value, shown: impl Fn(&Self) -> String) -> Result<bool, Status> {
        let mut problems = Vec::new();
        let strictness = self.strictness();
        let strategic = self.content_type() == "application/strategic-merge-patch+json";
        // Upstream does not say of which kind: it knows no object yet.
        let refuse = |call: &Self, problem: String| {
            let error = FieldError::invalid("patch", shown(call), problem);
            Status::invalid(&aro_kube_apimachinery::GroupKind::default(), "", &[error])
        };
        let gvk = &self.served.resource.gvk;
        if meta::kind(object) != gvk.kind || meta::api_version(object) != gvk.api_version() {
            let (api_version, kind) = (meta::api_version(object), meta::kind(object));
            return Err(refuse(
                self,
                format!(
                    "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
                ),
            ));
        }
        self.admit_type(object, &mut problems, true)
            .map_err(|problem| refuse(self, if strategic { restored(&problem) } else { problem }))?;
        let unknown = !problems.is_empty();
        self.complain(strictness, &problems, refuse)?;
        Ok(unknown)
    }

    fn complain(
        &mut self,
        strictness: Strictness,
        problems: &[Problem],
        refuse: impl Fn(&Self, String) -> Status,
    ) -> Result<(), Status> {
        match strictness {
            Strictness::Strict if !problems.is_empty() => {
                Err(refuse(self, decode::strict_problems(problems)))
            }
            Strictness::Warn => {
                self.warnings.extend(problems.iter().map(ToString::to_string));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Tracks who owns which fields of `new` after a create, an update or a patch.
    pub fn track(&self, live: Option<&Value>, new: &mut Value) {
        let manager = self.manager();
        // A member that is always rendered has no field manager.
        let hidden = if self.served.resource.custom {
            Vec::new()
        } else {
            take_blank(new, self.served.resource.plural == "events")
        };
        self.with_context(&manager, false, |context| apply::update(live, new, context));
        if let Some(members) = new.as_object_mut() {
            members.extend(hidden);
        }
    }

    /// Runs something that tracks ownership, with all it needs to know.
    pub fn with_context<T>(&self, manager: &str, force: bool, run: impl FnOnce(&Context<'_>) -> T) -> T {
        let time = self.time();
        let types = self.cluster.types();
        let api_version = self.served.resource.api_version();
        let typed_for = |other: &str| -> Option<Typed<'_>> {
            if other == api_version {
                return Some(self.served.typed());
            }
            types.in_version(&self.served, other).map(|served| served.typed())
        };
        let reset = reset_fields(self);
        run(&Context {
            manager,
            api_version: &api_version,
            kind: &self.served.resource.gvk.kind,
            subresource: &self.subresource,
            time: &time,
            force,
            typed: self.served.typed(),
            reset,
            typed_for: &typed_for,
        })
    }
}

fn take_blank(object: &mut Value, texts: bool) -> Vec<(String, Value)> {
    let Some(members) = object.as_object_mut() else { return Vec::new() };
    let blank = |value: &Value| value.is_null() || (texts && value.as_str() == Some(""));
    let names: Vec<String> =
        members.iter().filter(|(_, value)| blank(value)).map(|(name, _)| name.clone()).collect();
    names.into_iter().filter_map(|name| members.remove_entry(&name)).collect()
}

/// Fields without a manager on this path, because writing them here has no effect.
fn reset_fields(call: &Call) -> &'static Set {
    static NONE: LazyLock<Set> = LazyLock::new(|| Set::of_names([]));
    static STATUS: LazyLock<Set> = LazyLock::new(|| Set::of_names([&["status"][..]]));
    static SPEC: LazyLock<Set> = LazyLock::new(|| Set::of_names([&["spec"][..]]));
    static DEPLOYMENT: LazyLock<Set> =
        LazyLock::new(|| Set::of_names([&["spec"][..], &["metadata", "labels"][..]]));
    let resource = &call.served.resource;
    match call.subresource.as_str() {
        "" if resource.subresource("status").is_some() => &STATUS,
        "status" if call.served.is("apps", "deployments") => &DEPLOYMENT,
        "status" => &SPEC,
        _ => &NONE,
    }
}

pub fn unsupported_body() -> Status {
    let types = media::TYPES;
    Status::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {types}"
    ))
}

/// What upstream says where it converts trees instead of reading text.
fn restored(problem: &str) -> String {
    let Some((given, wanted)) = problem
        .strip_prefix("json: cannot unmarshal ")
        .and_then(|rest| Some((rest.split(' ').next()?, rest.rsplit_once(" of type ")?.1)))
    else {
        return problem.to_owned();
    };
    let given = match given {
        "number" => "int64",
        "array" => "slice",
        "object" => "map",
        other => other,
    };
    if wanted.starts_with("[]") {
        format!("cannot restore slice from {given}")
    } else if wanted.starts_with("map[") {
        format!("cannot restore map from {given}")
    } else if wanted.contains('.') {
        format!("cannot restore struct from: {given}")
    } else {
        format!("unrecognized type: {wanted}")
    }
}

fn unrecognized(kind: &str, problem: &str) -> Status {
    Status::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {problem}"))
}

/// What upstream's decoder finds out before it looks at members: whether there is such a kind, and whether it is this one.
fn check_registered(
    api_version: &str,
    kind: &str,
    gvk: &aro_kube_apimachinery::GroupVersionKind,
) -> Result<(), Status> {
    let api_version = if api_version.is_empty() { gvk.api_version() } else { api_version.to_owned() };
    let kind = if kind.is_empty() { &gvk.kind } else { kind };
    let Some(given) = aro_kube_apimachinery::GroupVersion::parse(&api_version) else { return Ok(()) };
    let registered = builtin().definition_name(&given.with_kind(kind)).is_some();
    let refuse = |why: String| {
        let version = given.version.clone();
        Err(Status::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {}: {why}",
            gvk.kind
        )))
    };
    if !registered {
        return refuse(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
        ));
    }
    if *kind == gvk.kind {
        // Another version of it is refused by name.
        return Ok(());
    }
    let package = gvk.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
    refuse(format!("converting ({}.{kind}) to ({package}.{}): unknown conversion", given.version, gvk.kind))
}

fn check_kind(object: &mut Value, gvk: &aro_kube_apimachinery::GroupVersionKind) -> Result<(), Status> {
    let expected = gvk.api_version();
    let given = meta::api_version(object);
    if given.is_empty() {
        object["apiVersion"] = json!(expected);
    } else if given != expected {
        return Err(Status::bad_request(format!(
            "the API version in the data ({given}) does not match the expected API version ({expected})"
        )));
    }
    let kind = meta::kind(object);
    if kind.is_empty() {
        object["kind"] = json!(gvk.kind);
    } else if kind != gvk.kind {
        return Err(Status::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {}: no kind {kind:?} is registered for the internal version of group {:?} in scheme",
            gvk.version, gvk.kind, gvk.group
        )));
    }
    Ok(())
}

/// The object as this resource's version shows it.
pub fn shown(call: &Call, stored: &Stored) -> Value {
    let mut object = stored.value();
    convert::from_stored(&call.served, &mut object);
    object
}

/// Answers with one object.
pub fn answer(call: &Call, code: u16, stored: &Arc<Stored>) -> Result<Answer, Status> {
    if call.plain() {
        return Ok(answer::json_bytes(code, stored.json_bytes()));
    }
    match call.accepted.shape {
        Shape::Object => object_answer(call, code, &shown(call, stored)),
        Shape::Table => {
            let object = shown(call, stored);
            let mut table = crate::table::Table::new(call);
            table.add(&object);
            Ok(answer::json(
                code,
                &table.finish(&json!({"resourceVersion": meta::resource_version(&object)})),
            ))
        }
        Shape::Metadata => Ok(answer::json(code, &metadata_only(&stored.value()))),
    }
}

/// Answers with one object that is not stored: a dry run, or a view.
pub fn unstored_answer(call: &Call, code: u16, object: &Value) -> Result<Answer, Status> {
    match call.accepted.shape {
        Shape::Object => object_answer(call, code, object),
        Shape::Table => {
            let mut table = crate::table::Table::new(call);
            table.add(object);
            Ok(answer::json(code, &table.finish(&json!({"resourceVersion": meta::resource_version(object)}))))
        }
        Shape::Metadata => Ok(answer::json(code, &metadata_only(object))),
    }
}

fn object_answer(call: &Call, code: u16, object: &Value) -> Result<Answer, Status> {
    if call.accepted.yaml {
        let text = serde_saphyr::to_string(object).map_err(Status::internal)?;
        return Ok(answer::text(code, "application/yaml", Bytes::from(text)));
    }
    Ok(answer::json(code, object))
}

/// `PartialObjectMetadata`
pub fn metadata_only(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or_default(),
    })
}

/// What goes to storage: the stored version of an object.
pub fn draft(call: &Call, object: &Value) -> Result<Draft, Status> {
    // It could be written, but not be read back.
    if nesting::is_deeper_than(object, nesting::MAX_DEPTH) {
        let message = format!("the object is nested deeper than {} levels", nesting::MAX_DEPTH);
        return Err(Status::bad_request(message));
    }
    if call.served.converts() {
        let mut stored = object.clone();
        convert::to_stored(&call.served, &mut stored);
        return Ok(Draft::of(&stored));
    }
    Ok(Draft::of(object))
}

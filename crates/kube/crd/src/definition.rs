//! The CustomResourceDefinition object itself: what is filled in, what is refused, and what its status becomes.
//!
//! What it is not: it does not check the metadata that all objects share, except that the name is made of plural and
//! group; types and costs of CEL rules are not computed, only their syntax is looked at.

mod defaults;
mod extensions;
pub(crate) mod names;
mod patterns;
mod rules;
mod schema;
mod settle;
mod versions;

use aro_kube_apimachinery::FieldError;
use serde_json::Value;

pub use settle::settle;

/// Fills in what upstream fills in, then checks the definition; with `old`, also what may not change.
///
/// On creation the status is reset, on updates it is the old one, with the storage version added to those that may
/// be stored. [`settle()`] makes the rest of it.
pub fn admit(new: &mut Value, old: Option<&Value>) -> Vec<FieldError> {
    defaults::apply(new, old);
    let mut errors = Errors::default();
    names::identity(new, &mut errors);
    let spec = new.get("spec").unwrap_or(&Value::Null);
    names::group_and_scope(spec, &mut errors);
    versions::each(spec, &mut errors);
    names::names(spec, &mut errors);
    versions::shared(spec, &mut errors);
    patterns::budget(spec, &mut errors);
    conversion(spec, &mut errors);
    versions::stored(new, &mut errors);
    if let Some(old) = old {
        names::immutable(spec, old, &mut errors);
    }
    names::approval(new, old, &mut errors);
    errors.0
}

/// Errors, in upstream's order.
#[derive(Debug, Default)]
struct Errors(Vec<FieldError>);

impl Errors {
    fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    fn required(&mut self, field: impl Into<String>, detail: &str) {
        self.push(FieldError::required(field, detail));
    }

    fn forbidden(&mut self, field: impl Into<String>, detail: &str) {
        self.push(FieldError::forbidden(field, detail));
    }

    fn invalid(&mut self, field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) {
        self.push(FieldError::invalid(field, value, detail));
    }

    /// An invalid value that is shown in upstream's internal form, with the order of its members kept.
    fn invalid_as(&mut self, field: impl Into<String>, shown: &str, detail: &str) {
        let mut error = FieldError::invalid(field, Value::Null, format!("{shown}: {detail}"));
        error.hidden = true;
        self.push(error);
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn conversion(spec: &Value, errors: &mut Errors) {
    let Some(conversion) = spec.get("conversion").filter(|conversion| !conversion.is_null()) else { return };
    let webhook = conversion.get("webhook").unwrap_or(&Value::Null);
    let client = webhook.get("clientConfig").is_some_and(|client| !client.is_null());
    let reviews = list(webhook, "conversionReviewVersions");
    match text(conversion, "strategy") {
        "Webhook" => {
            if !client {
                let detail = "required when strategy is set to Webhook";
                errors.required("spec.conversion.webhookClientConfig", detail);
            }
            let url = webhook.pointer("/clientConfig/url").and_then(Value::as_str);
            if let Some((scheme, _)) =
                url.and_then(|url| url.split_once(':')).filter(|(scheme, _)| *scheme != "https")
            {
                let detail = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
                errors.invalid("spec.conversion.webhookClientConfig.url", scheme, detail);
            }
            let known = |version: &Value| matches!(version.as_str(), Some("v1" | "v1beta1"));
            let field = "spec.conversion.conversionReviewVersions";
            if reviews.is_empty() {
                errors.required(field, "");
            } else if !reviews.iter().any(known) {
                errors.invalid(field, reviews.to_vec(), "must include at least one of v1, v1beta1");
            }
        }
        "None" => {
            let detail = "should not be set when strategy is not set to Webhook";
            if client {
                errors.forbidden("spec.conversion.webhookClientConfig", detail);
            }
            if !reviews.is_empty() {
                errors.forbidden("spec.conversion.conversionReviewVersions", detail);
            }
        }
        other => {
            let field = "spec.conversion.strategy";
            errors.push(FieldError::not_supported(field, other, ["None", "Webhook"]));
        }
    }
}

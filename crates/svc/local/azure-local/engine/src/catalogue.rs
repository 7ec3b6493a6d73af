//! What Azure says about itself: subscriptions, locations, providers, usages, SKUs, permissions.

use std::collections::BTreeMap;

use aro_arm_server::{Answer, Failure, paging};
use http::StatusCode;
use serde_json::{Value, json};

use crate::cloud::{Cloud, ForwardedType, SubscriptionFacts};
use crate::locations::LOCATIONS;
use crate::provider::{CloudRequest, Permissions as _};
use crate::refusal::Refusal;
use crate::spec::{Placement, TypeSpec};
use crate::types;

impl Cloud {
    /// The subscriptions that the caller can see.
    pub(crate) fn list_subscriptions(&self, request: &CloudRequest) -> Answer {
        let seen = self.subscriptions().into_iter().filter(|subscription| request.sees(self, subscription));
        paging::whole(&seen.map(|subscription| subscription_body(&subscription)).collect::<Vec<_>>())
    }

    pub(crate) fn get_subscription(&self, request: &CloudRequest) -> Result<Answer, Failure> {
        let id = request.matched.subscription();
        let subscription = self.subscription(id)?;
        match request.sees(self, &subscription) {
            true => Ok(Answer::json(StatusCode::OK, &subscription_body(&subscription))),
            false => Err(Refusal::subscription_not_found(id).into()),
        }
    }

    pub(crate) fn tenants(request: &CloudRequest) -> Answer {
        let tenant = request.caller.tenant_id.clone().unwrap_or_default();
        paging::whole(&[
            json!({"id": format!("/tenants/{tenant}"), "tenantId": tenant, "tenantCategory": "Home"}),
        ])
    }

    pub(crate) fn locations(request: &CloudRequest) -> Answer {
        let subscription = request.matched.subscription();
        let shown = LOCATIONS.iter().map(|(name, display, geography)| {
            json!({
                "id": format!("/subscriptions/{subscription}/locations/{name}"),
                "name": name, "displayName": display, "regionalDisplayName": format!("({geography}) {display}"), "type": "Region",
                "metadata": {"regionType": "Physical", "regionCategory": "Recommended", "geography": geography, "geographyGroup": geography},
            })
        });
        paging::whole(&shown.collect::<Vec<_>>())
    }

    pub(crate) fn providers(&self, request: &CloudRequest) -> Result<Answer, Failure> {
        let subscription = self.subscription(request.matched.subscription())?;
        let own = namespaces()
            .into_iter()
            .map(|(namespace, specs)| provider_body(&subscription, namespace, &specs));
        let forwarded = self.forwarded_namespaces().into_iter();
        let forwarded = forwarded.map(|(namespace, types)| forwarded_body(&subscription, namespace, &types));
        Ok(paging::whole(&own.chain(forwarded).collect::<Vec<Value>>()))
    }

    pub(crate) fn provider(&self, request: &CloudRequest, namespace: &str) -> Result<Answer, Failure> {
        let subscription = self.subscription(request.matched.subscription())?;
        let named = |known: &&str| known.eq_ignore_ascii_case(namespace);
        if let Some((namespace, types)) =
            self.forwarded_namespaces().into_iter().find(|(known, _)| named(known))
        {
            return Ok(Answer::json(StatusCode::OK, &forwarded_body(&subscription, namespace, &types)));
        }
        let found = namespaces().into_iter().find(|(known, _)| named(known));
        let (namespace, specs) = found.ok_or_else(|| Refusal::namespace(namespace))?;
        Ok(Answer::json(StatusCode::OK, &provider_body(&subscription, namespace, &specs)))
    }

    fn forwarded_namespaces(&self) -> BTreeMap<&'static str, Vec<ForwardedType>> {
        let mut found: BTreeMap<&'static str, Vec<ForwardedType>> = BTreeMap::new();
        for kind in self.0.options.forwarded {
            found.entry(kind.namespace).or_default().push(*kind);
        }
        found
    }

    /// What a subscription uses of its quotas in a location.
    pub(crate) fn usages(&self, request: &CloudRequest, namespace: &str) -> Answer {
        let location = crate::locations::normalise(request.matched.name("location"));
        let subscription = request.matched.subscription().to_lowercase();
        let counts = self.0.counts.lock();
        let quotas = types::all().filter(|spec| spec.namespace.eq_ignore_ascii_case(namespace));
        let shown: Vec<Value> = quotas
            .filter_map(|spec| {
                let quota = spec.quota.as_ref()?;
                let used = counts
                    .get(&(subscription.clone(), location.clone(), spec.full))
                    .copied()
                    .unwrap_or_default();
                Some(json!({
                    "currentValue": used, "limit": quota.limit, "unit": "Count",
                    "name": {"value": quota.name, "localizedValue": quota.label},
                }))
            })
            .collect();
        let cores = match namespace {
            "Microsoft.Compute" => crate::skus::core_usages(),
            _ => Vec::new(),
        };
        paging::whole(&[cores, shown].concat())
    }

    /// What the caller may do at a scope.
    pub(crate) fn permissions(&self, request: &CloudRequest, scope: &str) -> Answer {
        let principal = request.caller.object_id.as_deref().unwrap_or_default();
        paging::whole(&self.grants().permissions(principal, scope, self.now()))
    }

    /// Whether a name that is unique everywhere is free.
    pub(crate) fn check_name(
        &self,
        request: &CloudRequest,
        spec: &'static TypeSpec,
    ) -> Result<Answer, Failure> {
        let body = crate::write::body_of(&request.body)?;
        let name = body.get("name").and_then(Value::as_str).ok_or_else(|| Refusal::missing_member("name"))?;
        if let Err(refusal) = crate::check::name(name, &spec.naming) {
            let body =
                json!({"nameAvailable": false, "reason": "AccountNameInvalid", "message": refusal.0.message});
            return Ok(Answer::json(StatusCode::OK, &body));
        }
        let taken = self.0.names.lock().contains_key(&(spec.full, name.to_lowercase()));
        Ok(Answer::json(
            StatusCode::OK,
            &match taken {
                false => json!({"nameAvailable": true}),
                true => {
                    json!({"nameAvailable": false, "reason": "AlreadyExists", "message": format!("The name '{name}' is already in use.")})
                }
            },
        ))
    }
}

fn subscription_body(subscription: &SubscriptionFacts) -> Value {
    json!({
        "id": format!("/subscriptions/{}", subscription.id), "subscriptionId": subscription.id,
        "displayName": subscription.name, "tenantId": subscription.tenant, "state": "Enabled",
        "authorizationSource": "RoleBased", "managedByTenants": [],
        "subscriptionPolicies": {"locationPlacementId": "Public_2014-09-01", "quotaId": "PayAsYouGo_2014-09-01", "spendingLimit": "Off"},
    })
}

fn namespaces() -> BTreeMap<&'static str, Vec<&'static TypeSpec>> {
    let mut found: BTreeMap<&'static str, Vec<&'static TypeSpec>> = BTreeMap::new();
    for spec in types::all() {
        found.entry(spec.namespace).or_default().push(spec);
    }
    found.entry("Microsoft.Resources").or_default();
    found
}

fn forwarded_body(subscription: &SubscriptionFacts, namespace: &str, types: &[ForwardedType]) -> Value {
    let displays: Vec<&str> = LOCATIONS.iter().map(|(_, display, _)| *display).collect();
    let types = types.iter().map(|kind| {
        let versions: Vec<&str> = kind.versions.iter().rev().copied().collect();
        json!({"resourceType": kind.kind, "locations": displays, "apiVersions": versions, "capabilities": "SupportsTags, SupportsLocation"})
    });
    registration(subscription, namespace, types.collect())
}

fn registration(subscription: &SubscriptionFacts, namespace: &str, resource_types: Vec<Value>) -> Value {
    let registered = subscription.registered.contains(&namespace.to_lowercase());
    json!({
        "id": format!("/subscriptions/{}/providers/{namespace}", subscription.id), "namespace": namespace,
        "registrationState": if registered { "Registered" } else { "NotRegistered" },
        "registrationPolicy": "RegistrationRequired", "resourceTypes": resource_types,
    })
}

fn provider_body(subscription: &SubscriptionFacts, namespace: &str, specs: &[&'static TypeSpec]) -> Value {
    let displays: Vec<&str> = LOCATIONS.iter().map(|(_, display, _)| *display).collect();
    let inline = specs.iter().flat_map(|spec| spec.inline.iter().map(move |inline| (inline.full, spec)));
    let own = specs.iter().map(|spec| (spec.full, spec));
    let resource_types: Vec<Value> = own
        .chain(inline)
        .map(|(full, spec)| {
            let (_, kind) = full.split_once('/').unwrap_or_default();
            let locations = if spec.placement == Placement::Global { vec!["global"] } else { displays.clone() };
            let versions: Vec<&str> = spec.versions.iter().rev().copied().collect();
            json!({"resourceType": kind, "locations": locations, "apiVersions": versions, "capabilities": "SupportsTags, SupportsLocation"})
        })
        .collect();
    registration(subscription, namespace, resource_types)
}

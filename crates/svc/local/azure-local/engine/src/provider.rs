//! The local cloud as an ARM resource provider: who may do what, then the handler.

use aro_arm::ResourceId;
use aro_arm_server::{Answer, Failure, Provider, Request};
use http::{Method, StatusCode};

use crate::authorization::Decision;
use crate::cloud::{Cloud, SubscriptionFacts};
use crate::refusal::Refusal;
use crate::routes::Endpoint;
use crate::spec::{Home, TypeSpec};
use crate::types;

/// A request that passed the pipeline.
pub type CloudRequest = Request<Endpoint, ()>;

impl Provider for Cloud {
    type Endpoint = Endpoint;
    type Version = ();

    const UNVERSIONED: () = ();

    /// Azure's words for what the pipeline refuses.
    fn refuse(&self, failure: Failure, path: &str) -> Answer {
        let refusal = match &failure {
            Failure::NoRoute => Some(unknown_path(path)),
            Failure::MissingApiVersion => Some(Refusal::api_version_missing()),
            Failure::UnknownApiVersion { asked, .. } if !is_api_version(asked) => {
                Some(Refusal::api_version_malformed(asked))
            }
            Failure::UnknownApiVersion { namespace, resource_type, asked, served } => {
                Some(Refusal::api_version(namespace, resource_type, asked, served))
            }
            Failure::Problems(problems) => {
                problems.first().map(|problem| Refusal::content(&problem.problem.to_string()))
            }
            _ => None,
        };
        refusal.map_or(failure, Failure::from).into_answer()
    }

    async fn answer(&self, request: &CloudRequest) -> Result<Answer, Failure> {
        if request.matched.has("subscription") {
            let subscription = self.subscription(request.matched.subscription())?;
            request.in_tenant(&subscription)?;
        }
        let (subscription, group) = (request.matched.subscription(), request.matched.group());
        let subscription_scope = format!("/subscriptions/{subscription}");
        let group_scope = format!("{subscription_scope}/resourceGroups/{group}");
        let verb = verb_of(&request.method);
        match request.matched.endpoint {
            Endpoint::Subscriptions => Ok(self.list_subscriptions(request)),
            Endpoint::Tenants => Ok(Self::tenants(request)),
            Endpoint::Subscription => self.get_subscription(request),
            Endpoint::Locations => {
                request.may(self, "Microsoft.Resources/subscriptions/locations/read", &subscription_scope)?;
                Ok(Self::locations(request))
            }
            Endpoint::Providers | Endpoint::Provider => {
                request.may(self, "Microsoft.Resources/subscriptions/providers/read", &subscription_scope)?;
                match request.matched.endpoint {
                    Endpoint::Providers => self.providers(request),
                    _ => self.provider(request, request.matched.name("namespace")),
                }
            }
            Endpoint::Register | Endpoint::Unregister => {
                let namespace = request.matched.name("namespace");
                let registers = matches!(request.matched.endpoint, Endpoint::Register);
                let word = if registers { "register" } else { "unregister" };
                request.may(self, &format!("{namespace}/{word}/action"), &subscription_scope)?;
                // An unknown namespace is refused before it is registered.
                self.provider(request, namespace)?;
                self.set_registered(subscription, namespace, registers).await?;
                self.provider(request, namespace)
            }
            Endpoint::Groups => {
                request.may(
                    self,
                    "Microsoft.Resources/subscriptions/resourceGroups/read",
                    &subscription_scope,
                )?;
                self.groups(request).await
            }
            Endpoint::Group => {
                let action = format!("Microsoft.Resources/subscriptions/resourceGroups/{verb}");
                request.may(self, &action, &group_scope)?;
                self.group(request).await
            }
            Endpoint::GroupResources => {
                request.may(
                    self,
                    "Microsoft.Resources/subscriptions/resourceGroups/resources/read",
                    &group_scope,
                )?;
                self.resources(request, Some(group)).await
            }
            Endpoint::Resources => {
                request.may(self, "Microsoft.Resources/subscriptions/resources/read", &subscription_scope)?;
                self.resources(request, None).await
            }
            Endpoint::Item(spec) => {
                let id = request.matched.resource_id();
                request.may(self, &format!("{}/{verb}", spec.full), id.as_str())?;
                self.registered(request, spec)?;
                self.item(request, spec, &id).await
            }
            Endpoint::Action(spec, action) => {
                let id = request.matched.resource_id();
                request.may(self, &format!("{}/{}/action", spec.full, action.word), id.as_str())?;
                self.act(request, spec, action.kind, &id).await
            }
            Endpoint::List(spec) => {
                let below = match request.matched.resource_id() {
                    parent if spec.is_child() => parent.to_string(),
                    _ => group_scope.clone(),
                };
                request.may(self, &format!("{}/read", spec.full), &below)?;
                if !spec.is_child() {
                    self.find(crate::cloud::GROUP, &crate::cloud::group_id(subscription, group))
                        .await?
                        .ok_or_else(|| Refusal::group_not_found(group))?;
                }
                let prefix = match spec.is_child() {
                    true => format!("{below}/{}/", spec.word()),
                    false => format!("{group_scope}/providers/{}/", spec.full),
                };
                self.list(request, spec, subscription, Some(prefix)).await
            }
            Endpoint::ListInSubscription(spec) => {
                request.may(self, &format!("{}/read", spec.full), &subscription_scope)?;
                self.list(request, spec, subscription, None).await
            }
            Endpoint::InlineItem(spec, inline) => {
                let id = request.matched.resource_id();
                request.may(self, &format!("{}/{verb}", inline.full), id.as_str())?;
                let parent = id.parent().unwrap_or_else(|| id.clone());
                let name = id.name();
                match request.method {
                    Method::PUT => self.write_inline(request, spec, inline, &parent, name).await,
                    Method::DELETE => self.delete_inline(request, spec, inline, &parent, name).await,
                    _ => self.get_inline(spec, inline, &parent, name).await,
                }
            }
            Endpoint::InlineList(spec, inline) => {
                let parent = request.matched.resource_id();
                request.may(self, &format!("{}/read", inline.full), parent.as_str())?;
                self.list_inline(spec, inline, &parent).await
            }
            Endpoint::RecordSets => {
                let zone = request.matched.resource_id();
                request.may(self, "Microsoft.Network/dnsZones/recordsets/read", zone.as_str())?;
                self.record_sets(&zone).await
            }
            Endpoint::AtScope(spec) => self.at_scope(request, spec).await,
            Endpoint::ListAtScope(spec) => {
                let scope = self.known_scope(request)?;
                request.may(self, &format!("{}/read", spec.full), &scope)?;
                match spec.word() {
                    "roleAssignments" => self.role_assignments(request, &scope).await,
                    _ => self.role_definitions(request, &scope).await,
                }
            }
            Endpoint::Permissions => {
                let scope = self.known_scope(request)?;
                Ok(self.permissions(request, &scope))
            }
            Endpoint::CheckName(spec) => {
                let action = format!("{}/checkNameAvailability/read", spec.namespace);
                request.may(self, &action, &subscription_scope)?;
                self.check_name(request, spec)
            }
            Endpoint::Usages(namespace) => {
                request.may(self, &format!("{namespace}/locations/usages/read"), &subscription_scope)?;
                Ok(self.usages(request, namespace))
            }
            Endpoint::DeletedVaults => {
                request.may(self, "Microsoft.KeyVault/deletedVaults/read", &subscription_scope)?;
                self.deleted_vaults(request).await
            }
            Endpoint::DeletedVault => {
                request.may(self, "Microsoft.KeyVault/locations/deletedVaults/read", &subscription_scope)?;
                self.deleted_vault(request).await
            }
            Endpoint::PurgeVault => {
                let action = "Microsoft.KeyVault/locations/deletedVaults/purge/action";
                request.may(self, action, &subscription_scope)?;
                self.purge_vault(request).await
            }
            Endpoint::Skus => {
                request.may(self, "Microsoft.Compute/skus/read", &subscription_scope)?;
                Ok(Self::skus(request)?)
            }
            Endpoint::Operation => self.operation(request, false).await,
            Endpoint::OperationResult => self.operation(request, true).await,
        }
    }
}

/// A request for a resource provider that is a service of its own.
#[derive(Debug)]
pub struct Forwarded<'a> {
    pub method: &'a Method,
    /// The path of the request.
    pub path: &'a str,
    /// The caller: its name for people, its object id and its tenant.
    pub client: &'a str,
    pub object_id: &'a str,
    pub tenant: &'a str,
}

impl Cloud {
    /// What ARM decides before it forwards a request: the subscription is one of the caller's tenant, the caller may do it, and
    /// a resource is created only in a group that exists.
    pub async fn check_forwarded(&self, request: &Forwarded<'_>) -> Result<(), Failure> {
        let (action, scope) = forwarded_action(request.method, request.path);
        let id = ResourceId::parse(&scope).map_err(|error| Refusal::parameter("id", error.to_string()))?;
        if let Some(subscription) = id.subscription() {
            let subscription = self.subscription(subscription)?;
            same_tenant(request.tenant, &subscription)?;
        }
        let decision = self.grants().decide(request.object_id, &scope, &action, false, self.now());
        if decision == Decision::NotAllowed {
            return Err(Refusal::authorization(request.client, request.object_id, &action, &scope).into());
        }
        if let (&Method::PUT, Some(subscription), Some(group)) =
            (request.method, id.subscription(), id.resource_group())
        {
            self.live_group(subscription, group).await?;
        }
        Ok(())
    }

    async fn item(
        &self,
        request: &CloudRequest,
        spec: &'static TypeSpec,
        id: &ResourceId,
    ) -> Result<Answer, Failure> {
        match request.method {
            Method::PUT | Method::PATCH => self.write(request, spec, id).await,
            Method::DELETE => self.delete(request, spec, id).await,
            _ => self.get(request, spec, id).await,
        }
    }

    async fn at_scope(&self, request: &CloudRequest, spec: &'static TypeSpec) -> Result<Answer, Failure> {
        let scope = self.known_scope(request)?;
        let verb = verb_of(&request.method);
        request.may(self, &format!("{}/{verb}", spec.full), &scope)?;
        let name = request.matched.name("name");
        let id = format!("{scope}/providers/{}/{name}", spec.full);
        let id = ResourceId::parse(&id).map_err(|error| Refusal::parameter("scope", error.to_string()))?;
        let answer = self.item(request, spec, &id).await?;
        // The body of an assignment names its scope, which is not a member of the document.
        match self.find(spec.full, &id).await? {
            Some(stored) if answer.status.is_success() && request.method != Method::DELETE => {
                Ok(Answer::json(answer.status, &self.shown_at_scope(spec, &stored)))
            }
            _ => Ok(answer),
        }
    }

    /// The scope of an extension, if its subscription exists and belongs to the caller's tenant.
    fn known_scope(&self, request: &CloudRequest) -> Result<String, Failure> {
        let scope = request.matched.scope();
        if scope.is_empty() {
            return Ok(String::new());
        }
        let id = ResourceId::parse(scope).map_err(|error| Refusal::parameter("scope", error.to_string()))?;
        if let Some(subscription) = id.subscription() {
            request.in_tenant(&self.subscription(subscription)?)?;
        }
        Ok(id.to_string())
    }

    /// A provider must be registered before its resources are created.
    fn registered(&self, request: &CloudRequest, spec: &TypeSpec) -> Result<(), Failure> {
        if request.method != Method::PUT || spec.home == Home::AnyScope {
            return Ok(());
        }
        let subscription = self.subscription(request.matched.subscription())?;
        match subscription.registered.contains(&spec.namespace.to_lowercase()) {
            true => Ok(()),
            false => Err(Refusal::unregistered(spec.namespace).into()),
        }
    }
}

/// The action and the scope of a request by its path alone: `…/type/name` is the resource, `…/type` its list, and a POST to
/// `…/type/name/word` the action `word`.
fn forwarded_action(method: &Method, path: &str) -> (String, String) {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let at = segments
        .iter()
        .rposition(|segment| segment.eq_ignore_ascii_case("providers"))
        .unwrap_or(segments.len());
    let (scope, below) = segments.split_at(at);
    let join = |parts: &[&str]| parts.iter().flat_map(|part| ["/", part]).collect::<String>();
    let mut below = below.iter().skip(1);
    let namespace = below.next().copied().unwrap_or_default();
    let pairs: Vec<&str> = below.copied().collect();
    let kinds: Vec<&str> = pairs.iter().step_by(2).copied().collect();
    let resource = pairs.len() - pairs.len() % 2;
    match (pairs.len() % 2, method) {
        (1, &Method::POST) => {
            let (word, kinds) = kinds.split_last().map_or(("", &[][..]), |(word, kinds)| (*word, kinds));
            let scope = format!(
                "{}/providers/{namespace}{}",
                join(scope),
                join(pairs.get(..resource).unwrap_or_default())
            );
            (format!("{namespace}/{}/{word}/action", kinds.join("/")), scope)
        }
        (1, _) => {
            let parent = pairs.get(..resource).unwrap_or_default();
            let scope = match parent.is_empty() {
                true => join(scope),
                false => format!("{}/providers/{namespace}{}", join(scope), join(parent)),
            };
            (format!("{namespace}/{}/read", kinds.join("/")), scope)
        }
        (_, method) => {
            let action = format!("{namespace}/{}/{}", kinds.join("/"), verb_of(method));
            (action, format!("{}/providers/{namespace}{}", join(scope), join(&pairs)))
        }
    }
}

/// The last word of the action that a method is.
fn verb_of(method: &Method) -> &'static str {
    match *method {
        Method::PUT | Method::PATCH => "write",
        Method::DELETE => "delete",
        Method::POST => "action",
        _ => "read",
    }
}

/// What the caller may do, by the headers that the front door sets after it verified the token.
pub(crate) trait Permissions {
    fn may(&self, cloud: &Cloud, action: &str, scope: &str) -> Result<(), Failure>;
    fn may_linked(
        &self,
        cloud: &Cloud,
        action: &str,
        scope: &str,
        linked: &str,
        on: &str,
    ) -> Result<(), Failure>;
    fn sees(&self, cloud: &Cloud, subscription: &SubscriptionFacts) -> bool;
    fn in_tenant(&self, subscription: &SubscriptionFacts) -> Result<(), Failure>;
}

impl Permissions for CloudRequest {
    fn may(&self, cloud: &Cloud, action: &str, scope: &str) -> Result<(), Failure> {
        let (client, object_id) = identity(self);
        match cloud.grants().decide(object_id, scope, action, false, cloud.now()) {
            Decision::Allowed(_) => Ok(()),
            Decision::NotAllowed => Err(Refusal::authorization(client, object_id, action, scope).into()),
        }
    }

    fn may_linked(
        &self,
        cloud: &Cloud,
        action: &str,
        scope: &str,
        linked: &str,
        on: &str,
    ) -> Result<(), Failure> {
        let (client, object_id) = identity(self);
        match cloud.grants().decide(object_id, on, linked, false, cloud.now()) {
            Decision::Allowed(_) => Ok(()),
            Decision::NotAllowed => {
                Err(Refusal::linked_authorization(client, object_id, action, scope, linked, on).into())
            }
        }
    }

    fn sees(&self, cloud: &Cloud, subscription: &SubscriptionFacts) -> bool {
        let (_, object_id) = identity(self);
        self.in_tenant(subscription).is_ok()
            && cloud.grants().sees(object_id, &format!("/subscriptions/{}", subscription.id))
    }

    fn in_tenant(&self, subscription: &SubscriptionFacts) -> Result<(), Failure> {
        same_tenant(self.caller.tenant_id.as_deref().unwrap_or_default(), subscription)
    }
}

fn same_tenant(tenant: &str, subscription: &SubscriptionFacts) -> Result<(), Failure> {
    match tenant.eq_ignore_ascii_case(&subscription.tenant) {
        true => Ok(()),
        false => Err(Refusal::new(
            StatusCode::UNAUTHORIZED,
            "InvalidAuthenticationTokenTenant",
            format!(
                "The access token is from the wrong issuer. It must match the tenant '{}' associated with this subscription.",
                subscription.tenant
            ),
        )
        .into()),
    }
}

fn identity(request: &CloudRequest) -> (&str, &str) {
    let object_id = request.caller.object_id.as_deref().unwrap_or_default();
    (request.caller.principal_name.as_deref().unwrap_or(object_id), object_id)
}

/// Why a path leads nowhere.
fn unknown_path(path: &str) -> Refusal {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let providers = segments.iter().rposition(|segment| segment.eq_ignore_ascii_case("providers"));
    let Some(namespace) = providers.and_then(|at| segments.get(at + 1)) else {
        return Refusal::new(StatusCode::NOT_FOUND, "InvalidUri", "The requested path was not found.");
    };
    if !types::all().any(|spec| spec.namespace.eq_ignore_ascii_case(namespace)) {
        return Refusal::namespace(namespace);
    }
    let kind = providers.and_then(|at| segments.get(at + 2)).copied().unwrap_or_default();
    Refusal::resource_type(namespace, kind, "")
}

/// A date, perhaps with `-preview`.
fn is_api_version(text: &str) -> bool {
    let date = text.strip_suffix("-preview").unwrap_or(text);
    let parts: Vec<&str> = date.split('-').collect();
    let digits =
        |part: &&str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    matches!(parts.as_slice(), [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forwarded_path_names_its_action_and_scope() {
        let group = "/subscriptions/s/resourceGroups/g";
        let base = format!("{group}/providers/N.S");
        for (method, path, action, scope) in [
            (Method::PUT, format!("{base}/a/x"), "N.S/a/write", format!("{base}/a/x")),
            (Method::GET, format!("{base}/a/x/b/y"), "N.S/a/b/read", format!("{base}/a/x/b/y")),
            (Method::GET, format!("{base}/a"), "N.S/a/read", group.to_owned()),
            (Method::GET, format!("{base}/a/x/b"), "N.S/a/b/read", format!("{base}/a/x")),
            (Method::POST, format!("{base}/a/x/revoke"), "N.S/a/revoke/action", format!("{base}/a/x")),
            (Method::DELETE, format!("{base}//a/x"), "N.S/a/delete", format!("{base}/a/x")),
        ] {
            assert_eq!(forwarded_action(&method, &path), (action.to_owned(), scope), "{method} {path}");
        }
    }
}

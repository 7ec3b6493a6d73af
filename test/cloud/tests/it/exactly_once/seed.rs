//! One seed: its faults, what it makes, how it cleans up.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use aro_arm::ResourceId;
use aro_azure_local::{Fault, Rule};
use aro_base::{Class, Classify as _, chain};
use aro_cloud::resources::{
    FederatedCredentialSpec, Frontend, FrontendAddress, GroupSpec, LoadBalancerSpec, NsgSpec, PrincipalType,
    PublicIpSpec, RecordData, RecordSet, SecurityRule, SubnetSpec, Tags, VnetSpec, role_assignment_name,
};
use aro_cloud::{ArmClient, CloudError, api_version};
use aro_cloud_e2e::Administration;
use aro_runtime::Period;
use uuid::Uuid;

use super::random::Random;

const LOCATION: &str = "westus3";
const READER: Uuid = Uuid::from_u128(0xacdd_72a7_3385_48ef_bd42_f606_fba8_1ae7);
const CONTRIBUTOR: Uuid = Uuid::from_u128(0xb249_88ac_6180_42a0_ab88_20f7_382d_d24c);
/// How many kinds of faults a seed has.
const FAULTS: usize = 3;
/// How often a caller repeats a call that failed for a while.
const ROUNDS: usize = 40;
/// A missing role is waited for this long.
const ROLE_WAIT: Duration = Duration::from_secs(10);

/// What a seed makes, besides its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bundle {
    Network,
    Balancer,
    Zone,
    Identity,
    /// Another principal gets a role and uses it at once.
    Worker,
}

/// A resource that was made.
#[derive(Debug, Clone)]
pub struct Made {
    pub id: ResourceId,
    version: &'static str,
    /// Part of its parent's document: it goes with the parent and is not logged then.
    pub inline: bool,
}

/// What a seed did.
pub struct Finished {
    pub number: u64,
    pub group: ResourceId,
    pub made: Vec<Made>,
    /// Whether everything was deleted with the group.
    pub with_group: bool,
    /// How often each fault fired.
    pub faults: Vec<(Fault, u64)>,
    pub calls: u64,
    /// Calls that the caller had to repeat.
    pub repeated: u64,
}

pub struct Seed {
    number: u64,
    subscription: String,
    group: String,
    owner: ArmClient,
    worker: ArmClient,
    worker_id: Uuid,
    administration: Administration,
    random: Random,
    made: Vec<Made>,
    exhausts_quota: bool,
    calls: u64,
    repeated: u64,
}

impl Seed {
    pub fn new(
        number: u64,
        subscription: String,
        owner: ArmClient,
        worker: ArmClient,
        worker_id: Uuid,
        administration: Administration,
    ) -> Self {
        let correlation = format!("seed-{number}");
        Self {
            number,
            subscription,
            group: format!("seed-{number:06}"),
            owner: owner.waiting_for_roles(ROLE_WAIT).with_correlation_id(correlation.as_str()),
            worker: worker.waiting_for_roles(ROLE_WAIT).with_correlation_id(correlation.as_str()),
            worker_id,
            administration,
            random: Random::new(number),
            made: Vec::new(),
            exhausts_quota: false,
            calls: 0,
            repeated: 0,
        }
    }

    pub async fn run(mut self) -> Result<Finished> {
        let faults = self.random.choose(&Fault::ALL, FAULTS);
        self.exhausts_quota = faults.contains(&Fault::QuotaExhausted);
        let mut rules = Vec::new();
        for fault in &faults {
            let rule = self.rule(*fault);
            rules.push(self.administration.add(&rule).await?.id);
        }
        let late = faults.contains(&Fault::LateRoleAssignment);
        let with_group = self.random.below(2) == 0;
        let worked = self.work(late, with_group).await;
        let mut fired = Vec::new();
        for rule in rules {
            let cleared = self.administration.clear(rule).await?;
            fired.push((cleared.rule.fault, cleared.fired));
        }
        worked.with_context(|| format!("with {faults:?}"))?;
        let group = self.group_id();
        let Self { number, made, calls, repeated, .. } = self;
        Ok(Finished { number, group, made, with_group, faults: fired, calls, repeated })
    }

    /// The rule of a fault in this seed's group.
    fn rule(&mut self, fault: Fault) -> Rule {
        let base = Rule {
            resource: Some(format!("*/resourceGroups/{}*", self.group)),
            seed: Some(self.random.next()),
            ..Rule::of(fault)
        };
        let millis = |millis| Some(Period::millis(millis));
        match fault {
            Fault::Latency => Rule { delay: millis(2), probability: 0.3, ..base },
            Fault::Throttle => Rule { delay: millis(5), probability: 0.2, count: Some(6), ..base },
            Fault::ServerError | Fault::Cut => Rule { probability: 0.2, count: Some(6), ..base },
            Fault::LostReply => Rule { probability: 0.3, count: Some(6), ..base },
            Fault::PermissionMissing => Rule { probability: 0.2, count: Some(4), ..base },
            Fault::QuotaExhausted => Rule { probability: 0.5, count: Some(2), ..base },
            Fault::LateRoleAssignment => Rule { delay: millis(30), ..base },
            Fault::StuckOperation => Rule { polls: Some(1), probability: 0.5, count: Some(1), ..base },
        }
    }

    async fn work(&mut self, late: bool, with_group: bool) -> Result<()> {
        let spec = GroupSpec { location: LOCATION.to_owned(), managed_by: None, tags: Tags::new() };
        let (owner, subscription, group) =
            (self.owner.clone(), self.subscription.clone(), self.group.clone());
        self.finish("group", || owner.ensure_resource_group(&subscription, &group, &spec)).await?;
        let all = [Bundle::Network, Bundle::Balancer, Bundle::Zone, Bundle::Identity, Bundle::Worker];
        let mut bundles = self.random.choose(&all, 1);
        if late && !bundles.contains(&Bundle::Worker) {
            bundles.push(Bundle::Worker);
        }
        for bundle in bundles {
            match bundle {
                Bundle::Network => self.network().await?,
                Bundle::Balancer => self.balancer().await?,
                Bundle::Zone => self.zone().await?,
                Bundle::Identity => self.identity().await?,
                Bundle::Worker => self.work_of_another().await?,
            }
        }
        if with_group {
            return self.finish("delete group", || owner.delete_resource_group(&subscription, &group)).await;
        }
        for made in self.made.clone().into_iter().rev() {
            self.finish("delete", || owner.delete(&made.id, made.version))
                .await
                .with_context(|| made.id.to_string())?;
        }
        Ok(())
    }

    async fn network(&mut self) -> Result<()> {
        let (owner, nsg) = (self.owner.clone(), self.resource("networkSecurityGroups", "nsg"));
        let rules = vec![SecurityRule::allow_tcp("https", 100, 443)];
        let spec = NsgSpec { location: LOCATION.to_owned(), rules, tags: Tags::new() };
        self.finish("nsg", || owner.ensure_nsg(&nsg, &spec)).await?;
        self.made(&nsg, api_version::NETWORK);
        let vnet = self.resource("virtualNetworks", "vnet");
        let (prefixes, tags) = (vec!["10.0.0.0/16".to_owned()], Tags::new());
        let spec = VnetSpec { location: LOCATION.to_owned(), address_prefixes: prefixes, tags };
        self.finish("vnet", || owner.ensure_vnet(&vnet, &spec)).await?;
        self.made(&vnet, api_version::NETWORK);
        let subnet = vnet.child("subnets", "workers");
        let address_prefix = "10.0.1.0/24".to_owned();
        let spec = SubnetSpec { address_prefix, nsg: Some(nsg), ..SubnetSpec::default() };
        self.finish("subnet", || owner.ensure_subnet(&subnet, &spec)).await?;
        self.made.push(Made { id: subnet, version: api_version::NETWORK, inline: true });
        Ok(())
    }

    async fn balancer(&mut self) -> Result<()> {
        let (owner, ip) = (self.owner.clone(), self.resource("publicIPAddresses", "ip"));
        let spec = PublicIpSpec { location: LOCATION.to_owned(), ..PublicIpSpec::default() };
        self.finish("public ip", || owner.ensure_public_ip(&ip, &spec)).await?;
        self.made(&ip, api_version::NETWORK);
        let balancer = self.resource("loadBalancers", "lb");
        let spec = LoadBalancerSpec {
            location: LOCATION.to_owned(),
            frontends: vec![Frontend { name: "public".to_owned(), address: FrontendAddress::PublicIp(ip) }],
            pools: vec!["workers".to_owned()],
            outbound: None,
            tags: Tags::new(),
        };
        self.finish("load balancer", || owner.ensure_load_balancer(&balancer, &spec)).await?;
        self.made(&balancer, api_version::NETWORK);
        Ok(())
    }

    async fn zone(&mut self) -> Result<()> {
        let (owner, zone) =
            (self.owner.clone(), self.resource("dnsZones", &format!("{}.example.com", self.group)));
        let tags = Tags::new();
        self.finish("zone", || owner.ensure_zone(&zone, &tags)).await?;
        self.made(&zone, api_version::DNS);
        let data = RecordData::A(vec![[192, 0, 2, 1].into()]);
        let set = RecordSet { name: "api".to_owned(), ttl: 300, data, metadata: Tags::new() };
        self.finish("record set", || owner.ensure_record_set(&zone, &set)).await?;
        self.made(&zone.child("A", "api"), api_version::DNS);
        Ok(())
    }

    async fn identity(&mut self) -> Result<()> {
        let owner = self.owner.clone();
        let id = ResourceId::in_group(
            &self.subscription,
            &self.group,
            "Microsoft.ManagedIdentity",
            &[("userAssignedIdentities", "id")],
        );
        let tags = Tags::new();
        let identity = self.finish("identity", || owner.ensure_identity(&id, LOCATION, &tags)).await?;
        self.made(&id, api_version::IDENTITY);
        let spec = FederatedCredentialSpec::service_account("https://issuer.example.com", "ns", "account");
        self.finish("credential", || owner.ensure_federated_credential(&id, "c", &spec)).await?;
        self.made(&id.child("federatedIdentityCredentials", "c"), api_version::IDENTITY);
        self.assign(&identity.properties.principal_id, &READER).await
    }

    /// The owner assigns a role, and the worker uses it, which may be before it takes effect.
    async fn work_of_another(&mut self) -> Result<()> {
        let principal = self.worker_id;
        self.assign(&principal, &CONTRIBUTOR).await?;
        let (worker, nsg) = (self.worker.clone(), self.resource("networkSecurityGroups", "worker"));
        let spec = NsgSpec { location: LOCATION.to_owned(), rules: Vec::new(), tags: Tags::new() };
        self.finish("nsg of the worker", || worker.ensure_nsg(&nsg, &spec)).await?;
        self.made(&nsg, api_version::NETWORK);
        Ok(())
    }

    async fn assign(&mut self, principal: &Uuid, role: &Uuid) -> Result<()> {
        let (owner, scope) = (self.owner.clone(), self.group_id());
        let kind = PrincipalType::ServicePrincipal;
        self.finish("role", || owner.ensure_role_assignment(&scope, principal, kind, role)).await?;
        let name = role_assignment_name(&scope, principal, role);
        let id = format!("{scope}/providers/Microsoft.Authorization/roleAssignments/{name}");
        self.made(&ResourceId::parse(&id)?, api_version::AUTHORIZATION);
        Ok(())
    }

    /// Calls until it succeeds, as a controller does: errors that pass are repeated.
    async fn finish<T, F: Future<Output = Result<T, CloudError>>>(
        &mut self,
        what: &str,
        call: impl Fn() -> F,
    ) -> Result<T> {
        self.calls += 1;
        for round in 0..ROUNDS {
            self.repeated += u64::from(round == 1);
            let error = match call().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            match error.class() {
                Class::Retry => {}
                Class::Wait(wait) => tokio::time::sleep(wait.min(Duration::from_millis(20))).await,
                Class::Terminal if self.exhausts_quota && is_quota(&error) => {}
                Class::Terminal => bail!("{what}: {}", chain(&error)),
            }
        }
        bail!("{what} does not succeed in {ROUNDS} rounds")
    }

    fn made(&mut self, id: &ResourceId, version: &'static str) {
        self.made.push(Made { id: id.clone(), version, inline: false });
    }

    fn group_id(&self) -> ResourceId {
        ResourceId::from_parts(Some(&self.subscription), Some(&self.group), None, [])
    }

    fn resource(&self, kind: &str, name: &str) -> ResourceId {
        ResourceId::in_group(&self.subscription, &self.group, "Microsoft.Network", &[(kind, name)])
    }
}

fn is_quota(error: &CloudError) -> bool {
    error.code().is_some_and(|code| code == "QuotaExceeded" || code.ends_with("LimitReached"))
}

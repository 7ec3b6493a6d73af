// Command ocm-client walks the API of Clusters Service with the OCM SDK, as the resource provider uses it: an unauthenticated
// connection, bodies built by the SDK's own unmarshallers, answers read by its own types. It stops at the first surprise.
//
// Usage: ocm-client <url> <cluster.json> <node-pool.json> <external-auth.json>
package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	sdk "github.com/openshift-online/ocm-sdk-go"
	arohcp "github.com/openshift-online/ocm-sdk-go/arohcp/v1alpha1"
	cmv1 "github.com/openshift-online/ocm-sdk-go/clustersmgmt/v1"
	ocmerrors "github.com/openshift-online/ocm-sdk-go/errors"
)

func must(what string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		os.Exit(1)
	}
}

func check(what string, holds bool, seen ...any) {
	if !holds {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, seen)
		os.Exit(1)
	}
}

// refused expects an error that the SDK could read, with this status and text.
func refused(what string, err error, status int, text string) {
	failure, readable := err.(*ocmerrors.Error)
	check(what+" is an error the SDK can read", readable, err)
	check(what+" has its status", failure.Status() == status, failure.Status(), failure.Reason())
	check(what+" has its reason", strings.Contains(failure.Reason(), text), failure.Reason())
}

func file(name string) []byte {
	text, err := os.ReadFile(name)
	must("read "+name, err)
	return text
}

func main() {
	connection, err := sdk.NewUnauthenticatedConnectionBuilder().URL(os.Args[1]).Insecure(true).
		RetryLimit(1).RetryInterval(100 * time.Millisecond).Build()
	must("connect", err)
	defer connection.Close()
	aro := connection.AroHCP().V1alpha1()
	generic := connection.ClustersMgmt().V1()

	metadata, err := generic.Get().Send()
	must("metadata", err)
	check("metadata has a version", metadata.Body().ServerVersion() != "", metadata.Body())

	versions(aro)
	id := cluster(aro, generic, file(os.Args[2]))
	pools(aro, id, file(os.Args[3]))
	externalAuths(aro, id, file(os.Args[4]))
	policies(aro, id)
	rest(aro, generic, id)
	deletion(aro, id)
	fmt.Println("done")
}

func versions(aro *arohcp.Client) {
	list, err := aro.Versions().List().Search("enabled = 't' and channel_group = 'stable'").Size(500).Send()
	must("list versions", err)
	check("there are versions", list.Total() > 50 && list.Items().Len() == list.Total(), list.Total())
	one, err := aro.Versions().Version("openshift-v4.20.8").Get().Send()
	must("get a version", err)
	version := one.Body()
	check("a version is whole", version.RawID() == "4.20.8" && version.Enabled() && version.Default() &&
		len(version.AvailableUpgrades()) > 10 && version.ReleaseImage() != "", version)
	_, err = aro.Versions().Version("openshift-v1.2.3").Get().Send()
	refused("an unknown version", err, http.StatusNotFound, "not found")
}

func cluster(aro *arohcp.Client, generic *cmv1.Client, text []byte) string {
	body, err := arohcp.UnmarshalCluster(text)
	must("read the cluster's body", err)
	added, err := aro.Clusters().Add().Body(body).Send()
	must("create the cluster", err)
	check("creation is asynchronous", added.Status() == http.StatusAccepted, added.Status())
	created := added.Body()
	check("the id is kept", created.ID() == body.ID(), created.ID())
	check("the href is that of ARO HCP", created.HREF() == "/api/aro_hcp/v1alpha1/clusters/"+body.ID(), created.HREF())
	check("a new cluster validates", created.State() == arohcp.ClusterStateValidating, created.State())
	_, err = aro.Clusters().Add().Body(body).Send()
	refused("a second creation", err, http.StatusConflict, "already exists")

	one := aro.Clusters().Cluster(body.ID())
	ready(func() string {
		status, err := one.Status().Get().Send()
		must("get the status", err)
		return string(status.Body().State())
	})
	read, err := one.Get().Send()
	must("get the cluster", err)
	seen := read.Body()
	identities := seen.Azure().OperatorsAuthentication().ManagedIdentities()
	allow := seen.API().CIDRBlockAccess().Allow()
	check("the cluster is whole", seen.Name() == body.Name() && seen.Status() != nil && seen.Status().State() == "ready" &&
		!seen.CreationTimestamp().IsZero() && seen.DomainPrefix() != "" && seen.DNS().BaseDomain() != "" &&
		seen.Network().HostPrefix() == 23 && seen.Azure().ResourceName() == body.Azure().ResourceName() &&
		len(identities.ControlPlaneOperatorsManagedIdentities()) ==
			len(body.Azure().OperatorsAuthentication().ManagedIdentities().ControlPlaneOperatorsManagedIdentities()) &&
		allow.Mode() == "allow_list" && len(allow.Values()) == len(body.API().CIDRBlockAccess().Allow().Values()) &&
		seen.NodeDrainGracePeriod().Value() == body.NodeDrainGracePeriod().Value() &&
		!seen.Autoscaler().Link() && seen.Autoscaler().MaxPodGracePeriod() == body.Autoscaler().MaxPodGracePeriod(), seen)

	azure := body.Azure()
	search := fmt.Sprintf("azure.subscription_id = '%s' and azure.resource_group_name = '%s' and azure.resource_name = '%s' "+
		"and azure.tenant_id = '%s' and azure.managed_resource_group_name = '%s'", azure.SubscriptionID(),
		azure.ResourceGroupName(), azure.ResourceName(), azure.TenantID(), azure.ManagedResourceGroupName())
	found, err := aro.Clusters().List().Search(search).Page(1).Send()
	must("search the cluster", err)
	check("the search finds one", found.Total() == 1 && found.Items().Get(0).ID() == body.ID(), found.Total())
	none, err := aro.Clusters().List().Search("name = 'nothing'").Send()
	must("search nothing", err)
	check("an empty list is read", none.Total() == 0 && none.Items().Len() == 0, none.Total())
	_, err = aro.Clusters().List().Search("garbage").Send()
	refused("a bad search", err, http.StatusBadRequest, "Failed to parse search query")

	patch, err := arohcp.NewCluster().
		NodeDrainGracePeriod(arohcp.NewValue().Unit("minutes").Value(42)).
		Properties(map[string]string{"hosted_cluster_size_override": "small",
			"provisioner_noop_provision": "true", "provisioner_noop_deprovision": "true"}).
		Autoscaler(arohcp.NewClusterAutoscaler().MaxPodGracePeriod(7)).Build()
	must("build the patch", err)
	updated, err := one.Update().Body(patch).Send()
	must("update the cluster", err)
	check("the update is asynchronous", updated.Status() == http.StatusAccepted, updated.Status())
	changed := updated.Body()
	check("the update is echoed", changed.NodeDrainGracePeriod().Value() == 42 && len(changed.Properties()) == 3 &&
		changed.Autoscaler().MaxPodGracePeriod() == 7 &&
		changed.Autoscaler().MaxNodeProvisionTime() == body.Autoscaler().MaxNodeProvisionTime(), changed)
	immutable, err := arohcp.NewCluster().Name("other").Build()
	must("build the patch", err)
	_, err = one.Update().Body(immutable).Send()
	refused("an immutable change", err, http.StatusBadRequest, "cannot be changed")

	same, err := generic.Clusters().Cluster(body.ID()).Get().Send()
	must("get the cluster on the generic root", err)
	check("it is the same", same.Body().ID() == body.ID(), same.Body().ID())
	_, err = generic.Clusters().Cluster(body.ID()).Delete().Send()
	refused("a mutation on the generic root", err, http.StatusBadRequest, "ARO-HCP endpoint")
	_, err = aro.Clusters().Cluster("none").Get().Send()
	refused("an unknown cluster", err, http.StatusNotFound, "not found")
	return body.ID()
}

// ready polls a state until it is ready.
func ready(state func() string) {
	last := ""
	for range 600 {
		if last = state(); last == "ready" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	check("it becomes ready", false, last)
}

func pools(aro *arohcp.Client, id string, text []byte) {
	body, err := arohcp.UnmarshalNodePool(text)
	must("read the node pool's body", err)
	all := aro.Clusters().Cluster(id).NodePools()
	one := all.NodePool(body.ID())
	_, err = one.Get().Send()
	refused("an unknown node pool", err, http.StatusNotFound, "not found")
	added, err := all.Add().Body(body).Send()
	must("create the node pool", err)
	check("creation is asynchronous", added.Status() == http.StatusAccepted, added.Status())
	ready(func() string {
		status, err := one.Status().Get().Send()
		must("get the node pool's status", err)
		return status.Body().State().NodePoolStateValue()
	})
	read, err := one.Get().Send()
	must("get the node pool", err)
	pool := read.Body()
	check("the node pool is whole", pool.Replicas() == body.Replicas() && len(pool.Taints()) == len(body.Taints()) &&
		pool.Labels()["a"] == "b" && pool.NodeDrainGracePeriod() != nil && pool.Version().ID() == body.Version().ID() &&
		pool.AzureNodePool().VMSize() == body.AzureNodePool().VMSize() && pool.Status().State() != nil, pool)
	patch, err := arohcp.NewNodePool().Autoscaling(arohcp.NewNodePoolAutoscaling().MinReplica(1).MaxReplica(4)).Build()
	must("build the patch", err)
	updated, err := one.Update().Body(patch).Send()
	must("update the node pool", err)
	_, fixed := updated.Body().GetReplicas()
	check("autoscaling replaces replicas", !fixed && updated.Body().Autoscaling().MaxReplica() == 4, updated.Body())
	list, err := all.List().Send()
	must("list node pools", err)
	check("one node pool is listed", list.Total() == 1 && list.Items().Len() == 1, list.Total())
}

func externalAuths(aro *arohcp.Client, id string, text []byte) {
	body, err := arohcp.UnmarshalExternalAuth(text)
	must("read the external auth's body", err)
	all := aro.Clusters().Cluster(id).ExternalAuthConfig().ExternalAuths()
	added, err := all.Add().Body(body).Send()
	must("create the external auth", err)
	check("creation is asynchronous", added.Status() == http.StatusAccepted, added.Status())
	read, err := all.ExternalAuth(body.ID()).Get().Send()
	must("get the external auth", err)
	auth := read.Body()
	check("the external auth is whole", auth.Issuer().URL() == body.Issuer().URL() && len(auth.Clients()) == len(body.Clients()) &&
		auth.Claim().Mappings().UserName().PrefixPolicy() == "Prefix" && auth.Status().State().Value() != "", auth)
	updated, err := all.ExternalAuth(body.ID()).Update().Body(body).Send()
	must("update the external auth", err)
	check("it is the same", updated.Body().ID() == body.ID(), updated.Body())
	list, err := all.List().Send()
	must("list external auths", err)
	check("one external auth is listed", list.Total() == 1, list.Total())
}

func policies(aro *arohcp.Client, id string) {
	all := aro.Clusters().Cluster(id).ControlPlaneUpgradePolicies()
	for _, version := range []string{"4.20.10", "4.20.11"} {
		body, err := arohcp.NewControlPlaneUpgradePolicy().Version(version).Build()
		must("build the policy", err)
		added, err := all.Add().Body(body).Send()
		must("create the policy", err)
		check("the policy is created", added.Status() == http.StatusCreated && added.Body().ID() != "", added.Status())
	}
	list, err := all.List().Parameter("order", "creation_timestamp desc").Send()
	must("list policies", err)
	check("the newest comes first", list.Total() == 2 && list.Items().Get(0).Version() == "4.20.11", list.Total())
	pool := aro.Clusters().Cluster(id).NodePools().NodePool("np1").UpgradePolicies()
	body, err := arohcp.NewNodePoolUpgradePolicy().Version("4.20.10").Build()
	must("build the policy", err)
	added, err := pool.Add().Body(body).Send()
	must("create the node pool's policy", err)
	check("the policy knows its pool", added.Body().NodePoolID() == "np1", added.Body())
}

func rest(aro *arohcp.Client, generic *cmv1.Client, id string) {
	one := aro.Clusters().Cluster(id)
	shard, err := one.ProvisionShard().Get().Send()
	must("get the shard of the cluster", err)
	check("the shard has its address and cluster", strings.HasPrefix(shard.Body().HREF(), "/api/aro_hcp/v1alpha1/provision_shards/") &&
		shard.Body().AzureShard().AksManagementClusterResourceId() != "" && shard.Body().MaestroConfig().ConsumerName() != "", shard.Body())
	shards, err := aro.ProvisionShards().List().Search("status = 'active'").Send()
	must("list shards", err)
	check("one shard is active", shards.Total() == 1, shards.Total())
	autoscaler, err := one.Autoscaler().Get().Send()
	must("get the autoscaler", err)
	check("the autoscaler is whole", autoscaler.Body().MaxPodGracePeriod() == 7, autoscaler.Body())
	checks, err := one.InflightChecks().List().Send()
	must("list inflight checks", err)
	check("the list of checks is read", checks.Items() != nil, checks.Total())
	_, err = one.Resources().Get().Send()
	must("get the resources", err)
	hypershift, err := generic.Clusters().Cluster(id).Hypershift().Get().Send()
	must("get the place of the control plane", err)
	check("the control plane has a place", strings.HasPrefix(hypershift.Body().HCPNamespace(), "ocm-") &&
		hypershift.Body().ManagementCluster() != "" && hypershift.Body().Enabled(), hypershift.Body())
	ready(func() string {
		status, err := one.Status().Get().Send()
		must("get the status", err)
		return string(status.Body().State())
	})
	credentials := generic.Clusters().Cluster(id).BreakGlassCredentials()
	wanted, err := cmv1.NewBreakGlassCredential().Build()
	must("build the credential", err)
	added, err := credentials.Add().Body(wanted).Send()
	must("create a credential", err)
	check("the credential is created", added.Body().Status() == cmv1.BreakGlassCredentialStatusCreated &&
		strings.HasPrefix(added.Body().HREF(), "/api/clusters_mgmt/v1/"), added.Body())
	_, err = credentials.Delete().Send()
	must("revoke credentials", err)
	identities, err := aro.ManagedIdentitiesRequirements().Get().Send()
	must("get identity requirements", err)
	check("operators need identities", len(identities.Body().ControlPlaneOperatorsIdentities()) == 9, identities.Body())
}

func deletion(aro *arohcp.Client, id string) {
	one := aro.Clusters().Cluster(id)
	deleted, err := one.NodePools().NodePool("np1").Delete().Send()
	must("delete the node pool", err)
	check("deletion is asynchronous", deleted.Status() == http.StatusAccepted, deleted.Status())
	gone, err := one.Delete().Send()
	must("delete the cluster", err)
	check("deletion is asynchronous", gone.Status() == http.StatusAccepted, gone.Status())
	for range 600 {
		_, err = one.Status().Get().Send()
		if err != nil {
			refused("the status of a deleted cluster", err, http.StatusNotFound, "not found")
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	check("the cluster is deleted", false)
}

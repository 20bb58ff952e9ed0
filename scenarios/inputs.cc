#include "scenarios/inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/json_read.h"
#include "core/base/json_text.h"
#include "core/kube/label_selector.h"
#include "fakes/kube/objects/manifest.h"
#include "scenarios/manifest_check.h"
#include "scenarios/yaml_reader.h"

namespace wavetank::scenario {

using nlohmann::json;
using sim::Input;

namespace {

std::string ArgumentText(const json& in, const char* key) {
  const json& value = At(in, key);
  if (value.is_null()) return {};
  return value.is_string() ? value.get<std::string>() : JsonText(value);
}

// "namespace/name".
std::pair<std::string, std::string> SplitName(const std::string& text) {
  const size_t slash = text.find('/');
  return {text.substr(0, slash), text.substr(slash + 1)};
}

void SetNamespace(json& object, const std::string& ns) {
  if (fakekube::ClusterScoped(TextOf(At(object, "kind")))) return;
  json& meta = object["metadata"];
  if (TextOf(At(meta, "namespace")).empty()) meta["namespace"] = ns.empty() ? "default" : ns;
}

Input ApplyInput(const std::string& cluster, json object) {
  return {"apply", {{"cluster", cluster}, {"object", std::move(object)}}};
}

bool InSystemNamespace(const json& object) { return At(object, {"metadata", "namespace"}) == "istio-system"; }

// What must be there before pods are: the control plane and what it reads.
bool BelongsToControlPlane(const json& object) {
  const std::string kind = TextOf(At(object, "kind"));
  if (fakekube::ClusterScoped(kind)) return true;
  if (!InSystemNamespace(object)) return false;
  if (kind == "Deployment") return At(object, {"spec", "template", "metadata", "labels", "app"}) == "istiod";
  return kind == "ConfigMap" || kind == "Secret" || kind == "ServiceAccount" || kind == "Role" || kind == "RoleBinding";
}

}  // namespace

absl::StatusOr<std::vector<json>> LoadClusterManifests(const ClusterSpec& cluster, std::vector<std::string>* notes) {
  std::vector<json> out;
  for (const ManifestSpec& spec : cluster.manifests) {
    absl::StatusOr<std::vector<fakekube::Manifest>> manifests = fakekube::LoadManifests(spec.path);
    if (!manifests.ok()) return manifests.status();
    absl::StatusOr<kube::LabelSelector> selector = kube::LabelSelector::Parse(spec.selector);
    if (!selector.ok()) return selector.status();
    for (fakekube::Manifest& manifest : *manifests) {
      if (!selector->empty()) {
        kube::Labels labels;
        for (const auto& [key, value] : Members(At(manifest.object, {"metadata", "labels"}))) {
          labels[key] = TextOf(value);
        }
        if (!selector->Matches(labels)) continue;
      }
      SetNamespace(manifest.object, spec.ns);
      if (absl::Status status = CheckManifest(manifest.file, manifest.line, manifest.object, notes); !status.ok())
        return status;
      out.push_back(std::move(manifest.object));
    }
  }
  return out;
}

sim::WorldOptions MakeWorldOptions(const Scenario& scenario) {
  sim::WorldOptions out;
  out.seed = scenario.seed;
  out.profile = scenario.profile;
  out.timing = scenario.timing;
  // JSON is YAML.
  if (!scenario.mesh_config.is_null()) out.mesh_config = JsonText(scenario.mesh_config);
  for (const ClusterSpec& c : scenario.clusters) {
    sim::WorldCluster cluster{
        c.name, c.network, c.control_plane, c.pod_cidr, c.service_cidr, c.load_balancer_cidr, c.load_balancer_hostname,
        {}};
    for (const NodeSpec& n : c.nodes) cluster.nodes.push_back({n.name, n.region, n.zone});
    out.clusters.push_back(std::move(cluster));
  }
  for (const LinkSpec& l : scenario.links) out.links.push_back({l.a, l.b, l.latency, l.jitter, l.loss_ppm});
  return out;
}

absl::StatusOr<StartPhases> MakeStart(const Scenario& scenario) {
  StartPhases out;
  for (const ClusterSpec& cluster : scenario.clusters) {
    absl::StatusOr<std::vector<json>> objects = LoadClusterManifests(cluster, &out.notes);
    if (!objects.ok()) return objects.status();
    // Namespaces first: their labels decide what becomes of everything in them.
    std::stable_partition(objects->begin(), objects->end(),
                          [](const json& object) { return At(object, "kind") == "Namespace"; });
    if (scenario.ca != CaPlan::kSelfSigned && cluster.primary()) {
      out.phases[0].push_back(
          {"cacerts",
           {{"cluster", cluster.name}, {"root", scenario.ca == CaPlan::kOwnRoots ? "root-" + cluster.name : "root"}}});
    }
    for (json& object : *objects) {
      const int phase = BelongsToControlPlane(object) ? 0 : InSystemNamespace(object) ? 1 : 2;
      out.phases[phase].push_back(ApplyInput(cluster.name, std::move(object)));
    }
    out.phases[0].push_back({"install", {{"cluster", cluster.name}}});
  }
  for (const json& set : scenario.key_sets) out.phases[0].push_back({"keySet", set});
  for (const IssuerSpec& issuer : scenario.issuers) {
    out.phases[0].push_back({"issuer", {{"name", issuer.name}, {"jwksUri", issuer.jwks_uri}}});
  }
  for (const RemoteSecretSpec& secret : scenario.remote_secrets) {
    out.phases[1].push_back({"remoteSecret", {{"of", secret.of}, {"in", secret.in}, {"state", "present"}}});
  }
  if (absl::Status status = CheckSteps(scenario, &out.notes); !status.ok()) return status;
  return out;
}

absl::Status CheckSteps(const Scenario& scenario, std::vector<std::string>* notes) {
  for (const Step& step : scenario.steps) {
    for (const Action& action : step.actions) {
      if (absl::StatusOr<std::vector<Input>> inputs = MakeInputs(scenario, action, notes); !inputs.ok())
        return inputs.status();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Input>> MakeInputs(const Scenario& scenario, const Action& action,
                                              std::vector<std::string>* notes) {
  std::vector<Input> out;
  const json& a = action.arguments;
  const std::string cluster = ArgumentText(a, "cluster");
  const std::string ns = a.contains("namespace") ? ArgumentText(a, "namespace") : "default";
  const auto object_name = [&](const std::string& kind) {
    return json{{"cluster", cluster},
                {"kind", kind},
                {"namespace", fakekube::ClusterScoped(kind) ? "" : ns},
                {"name", ArgumentText(a, "name")}};
  };
  if (action.kind == "apply") {
    std::vector<json> objects = action.objects;
    if (a.contains("manifest")) {
      ClusterSpec one;
      one.manifests.push_back({ArgumentText(a, "manifest"), "", ""});  // LoadScenario has made it a path from here
      absl::StatusOr<std::vector<json>> loaded = LoadClusterManifests(one, notes);
      if (!loaded.ok()) return loaded.status();
      objects = *std::move(loaded);
    }
    for (json& object : objects) {
      if (!object.is_object() || !object.contains("kind") || !object.contains("metadata")) {
        return absl::InvalidArgumentError(
            fmt::format("{}:{}: an object needs apiVersion, kind and metadata", scenario.file, action.line));
      }
      SetNamespace(object, "default");
      if (absl::Status status = CheckManifest(scenario.file, action.line, object, notes); !status.ok()) return status;
      out.push_back(ApplyInput(cluster, std::move(object)));
    }
  } else if (action.kind == "delete") {
    out.push_back({"delete", object_name(ArgumentText(a, "kind"))});
  } else if (action.kind == "scale") {
    const bool stateful = a.contains("statefulSet");
    const auto [workload_ns, name] = SplitName(ArgumentText(a, stateful ? "statefulSet" : "deployment"));
    const int64_t replicas =
        a["replicas"].is_number() ? a["replicas"].get<int64_t>() : std::stoll(ArgumentText(a, "replicas"));
    out.push_back({"patch",
                   {{"cluster", cluster},
                    {"kind", stateful ? "StatefulSet" : "Deployment"},
                    {"namespace", workload_ns},
                    {"name", name},
                    {"patch", {{"spec", {{"replicas", replicas}}}}}}});
  } else if (action.kind == "label") {
    json labels = json::object();
    for (const auto& [key, value] : Members(At(a, "set"))) {
      labels[key] = value.is_string() ? value.get<std::string>() : JsonText(value);
    }
    const json remove = a.value("remove", json::array());
    for (const json& key : remove.is_array() ? remove : json::array({remove}))
      labels[TextOf(key, JsonText(key))] = nullptr;
    json body = object_name(ArgumentText(a, "kind"));
    body["patch"] = {{"metadata", {{"labels", labels}}}};
    out.push_back({"patch", std::move(body)});
  } else if (action.kind == "loadBalancer") {
    const auto [service_ns, name] = SplitName(ArgumentText(a, "service"));
    out.push_back(
        {"loadBalancer",
         {{"cluster", cluster}, {"namespace", service_ns}, {"name", name}, {"address", ArgumentText(a, "address")}}});
  } else if (action.kind == "remoteSecret") {
    out.push_back(
        {"remoteSecret",
         {{"of", ArgumentText(a, "of")}, {"in", ArgumentText(a, "in")}, {"state", ArgumentText(a, "state")}}});
  } else if (action.kind == "link") {
    json body = {{"between", a["between"]}};
    const std::string state = a.value("state", "changed");
    if (state != "changed") body["cut"] = state == "cut";
    const auto time = [&](const char* from, const char* to) {
      if (!a.contains(from)) return;
      if (const std::optional<Duration> d = ParseDuration(ArgumentText(a, from))) body[to] = d->count();
    };
    time("latency", "latencyNs");
    time("jitter", "jitterNs");
    if (a.contains("loss")) {
      if (const absl::StatusOr<Range> share = ParseRange(ArgumentText(a, "loss")); share.ok())
        body["lossPpm"] = share->low;
    }
    out.push_back({"link", std::move(body)});
  } else if (action.kind == "kill") {
    out.push_back(
        {"kill", {{"cluster", cluster}, {"namespace", ArgumentText(a, "namespace")}, {"app", ArgumentText(a, "app")}}});
  } else if (action.kind == "apiServer") {
    json body = {{"cluster", cluster}, {"fault", ArgumentText(a, "fault")}};
    for (const auto& [from, to] :
         {std::pair{"latency", "latencyNs"}, {"retryAfter", "retryAfterNs"}, {"skew", "skewNs"}}) {
      if (!a.contains(from)) continue;
      std::string text = ArgumentText(a, from);
      const bool behind = text.starts_with("-");
      if (const std::optional<Duration> d = ParseDuration(text.substr(behind ? 1 : 0)))
        body[to] = behind ? -d->count() : d->count();
    }
    out.push_back({"apiServer", std::move(body)});
  } else if (action.kind == "dns") {
    json addresses = a.value("addresses", json::array());
    if (addresses.is_string()) addresses = json::array({addresses});
    out.push_back({"dns", {{"name", ArgumentText(a, "name")}, {"addresses", std::move(addresses)}}});
  } else if (action.kind == "keySet") {
    out.push_back({"keySet", a});
  }
  return out;
}

namespace {

// What to sign, not what is signed: that is the world's, and stands in no log.
json TokenJson(const TokenSpec& token) {
  json out = {{"issuer", token.issuer}, {"lifetimeNs", token.expires.count()}};
  for (const auto& [key, text] : {std::pair{"subject", &token.subject}, std::pair{"signedBy", &token.signed_by},
                                  std::pair{"header", &token.header}, std::pair{"param", &token.param}}) {
    if (!text->empty()) out[key] = *text;
  }
  if (!token.audiences.empty()) out["audiences"] = token.audiences;
  if (token.claims.is_object()) out["claims"] = token.claims;
  if (token.not_before) out["notBeforeNs"] = token.not_before->count();
  return out;
}

}  // namespace

Input MakeTraffic(const FlowSpec& flow, const Traffic& traffic, const std::string& id) {
  const int64_t rate =
      std::max<int64_t>(traffic.rate_per_kilosecond > 0 ? traffic.rate_per_kilosecond : flow.rate_per_kilosecond, 1);
  Input out{"traffic",
            {{"id", id},
             {"flow", flow.name},
             {"from", {{"cluster", flow.from_cluster}, {"namespace", flow.from_namespace}, {"app", flow.from_app}}},
             {"host", flow.host},
             {"port", flow.port},
             {"path", flow.path},
             {"keepAlive", flow.keep_alive},
             {"tcp", flow.tcp},
             {"requests", traffic.requests},
             {"periodNs", 1'000'000'000'000 / rate}}};
  if (flow.method != "GET") out.body["method"] = flow.method;
  if (!flow.headers.empty()) out.body["headers"] = flow.headers;
  if (flow.token) out.body["token"] = TokenJson(*flow.token);
  return out;
}

}  // namespace wavetank::scenario

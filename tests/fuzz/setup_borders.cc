// What whoever sets up a mesh gives: configuration of istiod, of its injector and of CoreDNS, arguments of programs,
// rules of definitions, files of installers, fleets.
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "capacity/fleet/fleet.h"
#include "capacity/plan/slo.h"
#include "core/agent/dns_message.h"
#include "core/agent/probes.h"
#include "core/base/text/csv.h"
#include "core/config/mesh/mesh_config.h"
#include "core/config/mesh/mesh_config_validation.h"
#include "core/config/mesh/mesh_networks.h"
#include "core/config/mesh/mesh_text.h"
#include "core/inject/injection_config.h"
#include "core/inject/injection_webhook.h"
#include "core/kube/yaml.h"
#include "fakes/kube/http/api/schema_rules.h"
#include "import/text/log_rows.h"
#include "import/text/log_store.h"
#include "scenarios/language/install_setting.h"
#include "scenarios/mesh/installer_files.h"
#include "sim/network/corefile.h"
#include "sim/signing/istio_csr_settings.h"
#include "tests/fuzz/takers.h"
#include "tests/fuzz/their_file.h"

namespace wavetank::fuzz {
namespace {

// Parts of the bytes, with lines of "---" between them; as many as are wanted, the last ones empty perhaps.
std::vector<std::string> Parts(std::string_view bytes, size_t wanted) {
  std::vector<std::string> out =
      absl::StrSplit(absl::string_view(bytes.data(), bytes.size()), absl::MaxSplits("\n---\n", wanted - 1));
  out.resize(wanted);
  return out;
}

}  // namespace

void MeshSettings(std::string_view bytes) {
  const std::vector<std::string> parts = Parts(bytes, 2);
  if (const auto mesh = config::ApplyMeshConfigDefaults(parts[0]); mesh.ok()) {
    config::ValidateMeshConfig(**mesh).IgnoreError();
    config::MeshConfigText(**mesh);
  }
  if (const auto networks = config::ParseMeshNetworks(parts[1]); networks.ok()) config::MeshNetworksText(*networks);
}

void Injector(std::string_view bytes) {
  const std::vector<std::string> parts = Parts(bytes, 3);
  auto object = kube::ParseYaml(parts[0], "fuzz.yaml");
  if (!object.ok()) return;
  const auto config_map = kube::Object::FromJson(*std::move(object));
  if (!config_map.ok()) return;
  auto config = pilot::InjectionConfig::FromConfigMap(**config_map);
  auto pod = kube::ParseYaml(parts[1], "fuzz.yaml");
  if (!config.ok() || !pod.ok()) return;
  pilot::InjectionWebhook webhook;
  webhook.SetConfig(*std::move(config));
  const nlohmann::json answer = webhook.Admit(*pod, parts[2]);  // what is no review, and no pod
  pilot::ApplyAdmissionResponse(*pod, answer).status().IgnoreError();
  const nlohmann::json review = pilot::MakeAdmissionReview(*pod, "uid");
  pilot::ApplyAdmissionResponse(*std::move(pod), webhook.Admit(review, parts[2])).status().IgnoreError();
}

void SchemaRules(std::string_view bytes) {
  const std::vector<std::string> parts = Parts(bytes, 3);
  const auto schema = kube::ParseYaml(parts[0], "fuzz.yaml"), object = kube::ParseYaml(parts[1], "fuzz.yaml"),
             old = kube::ParseYaml(parts[2], "fuzz.yaml");
  if (!schema.ok() || !object.ok() || !old.ok() || !fakekube::http::HasSchemaRules(*schema)) return;
  fakekube::http::FindRuleProblems(*schema);
  fakekube::http::CheckSchemaRules(*schema, *object, nullptr, false);
  fakekube::http::CheckSchemaRules(*schema, *object, *old, true);
}

void CsrArguments(std::string_view bytes) {
  nlohmann::json words = nlohmann::json::array();
  for (const absl::string_view word : absl::StrSplit(absl::string_view(bytes.data(), bytes.size()), '\n'))
    words.push_back(std::string(word));
  sim::IstioCsrSettings::Of(
      {{"spec",
        {{"containers",
          {{{"name", "csr"}, {"image", "quay.io/jetstack/cert-manager-istio-csr:v0.14.0"}, {"args", words}}}}}}});
  // Of a pod that somebody wrote.
  if (const auto pod = kube::ParseYaml(bytes, "fuzz.yaml"); pod.ok()) sim::IstioCsrSettings::Of(*pod);
}

void CoreDns(std::string_view bytes) {
  const std::vector<std::string> parts = Parts(bytes, 3);
  const sim::Corefile::Files files = {{"NodeHosts", parts[1]}, {"custom/a.server", parts[2]}};
  const auto corefile = sim::Corefile::Make(parts[0], &files);
  if (!corefile.ok()) return;
  for (const char* name : {"web.shop.svc.cluster.local", "a.example.com", "1.0.0.10.in-addr.arpa", ""}) {
    (*corefile)->Query(name);
    (*corefile)->AfterServices(name);
  }
}

void DnsMessages(std::string_view bytes) {
  agent::ParseAnswer(bytes).status().IgnoreError();
  const auto query = agent::ParseQuery(bytes);
  if (!query.ok()) return;
  const IpAddress address = *IpAddress::Parse("10.0.0.1");
  const std::string answer = agent::MakeAnswer(
      *query, {{query->name, agent::DnsType::kCname, {}, "a.b."}, {query->name, agent::DnsType::kA, address, ""}},
      agent::DnsRcode::kNoError, query->udp_size);
  agent::ParseAnswer(answer).status().IgnoreError();
}

void Installers(std::string_view bytes) {
  const TheirFile file(bytes, "installer.yaml");
  scenario::ClusterSpec cluster;
  cluster.manifests.push_back({.path = file.path()});
  const auto ranges = scenario::ReadRanges(cluster);
  if (!ranges.ok()) return;
  scenario::EnforcesPolicies(cluster, *ranges);
  scenario::Scenario scenario;
  scenario.clusters = {cluster, cluster};
  scenario::SharedRanges(scenario, {*ranges, *ranges});
}

void FleetPage(std::string_view bytes) {
  const std::vector<std::string> parts = Parts(bytes, 2);
  const auto fleet = capacity::ParseFleet("fuzz.yaml", parts[0]);
  if (fleet.ok()) capacity::SizeOf(*fleet);
  if (const auto slo = capacity::ParseSlo(parts[1]); slo.ok()) slo->Text();
}

void LogStores(std::string_view bytes) {
  using importing::LogStoreFile;
  importing::ReadLogStore(importing::KindOfLogStore(bytes), bytes);
  for (const auto kind : {LogStoreFile::kAnswer, LogStoreFile::kLines, LogStoreFile::kCollected, LogStoreFile::kTable,
                          LogStoreFile::kGrafanaText})
    importing::ReadLogStore(kind, bytes);
}

void SmallSettings(std::string_view bytes) {
  importing::ParseRowTime(bytes);
  for (std::string_view rest = bytes; !rest.empty();) TakeCsvRecord(rest);
  agent::ParseAppProbers(bytes).status().IgnoreError();
  capacity::ParseSlo(bytes).status().IgnoreError();
  pilot::ParseInjectPath(bytes);
  const std::string text(bytes);
  scenario::CheckInstallSetting(text).IgnoreError();
  scenario::SplitInstallSetting(text);
}

}  // namespace wavetank::fuzz

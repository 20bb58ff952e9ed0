#include <string>

#include "absl/strings/str_split.h"
#include "core/base/cel/cel_syntax.h"
#include "core/base/duration.h"
#include "core/base/ip.h"
#include "core/base/json_text.h"
#include "core/base/text/go_url.h"
#include "core/kube/credentials/kubeconfig.h"
#include "core/kube/credentials/service_account_token.h"
#include "core/kube/label_selector.h"
#include "core/kube/time_format.h"
#include "core/model/proxy.h"
#include "core/validation/istio_object.h"
#include "core/validation/jwks_text.h"
#include "core/x509/x509.h"
#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/config/route/v3/route.pb.h"
#include "fakes/envoy/access_log/access_log_expression.h"
#include "fakes/envoy/access_log/access_log_format.h"
#include "fakes/envoy/config/cluster_config.h"
#include "fakes/envoy/config/listener_config.h"
#include "fakes/envoy/config/route_config.h"
#include "fakes/envoy/filters/jwt.h"
#include "fakes/envoy/filters/lua/vm.h"
#include "fakes/envoy/filters/registry.h"
#include "fakes/kube/cluster.h"
#include "fakes/kube/http/rest/rest.h"
#include "fakes/kube/objects/manifest.h"
#include "google/protobuf/any.pb.h"
#include "google/protobuf/util/json_util.h"
#include "import/access/access_format.h"
#include "import/importer.h"
#include "replay/event_log.h"
#include "scenarios/mesh/manifest_check.h"
#include "scenarios/reader/read_scenario.h"
#include "sim/inputs/input.h"
#include "sim/kernel/kernel.h"
#include "tests/fuzz/border.h"
#include "tests/fuzz/takers.h"
#include "tests/fuzz/their_file.h"

namespace wavetank::fuzz {
namespace {

void Scenario(std::string_view bytes) {
  scenario::ParseScenario("fuzz.yaml", std::string(bytes)).status().IgnoreError();
}

// As `apply`, `run` and `check` take manifests: read, held against the schemas, judged by istiod's webhook.
void Manifest(std::string_view bytes) {
  const auto manifests = fakekube::ParseManifests("fuzz.yaml", std::string(bytes));
  if (!manifests.ok()) return;
  for (const fakekube::Manifest& manifest : *manifests) {
    std::vector<std::string> notes;
    if (!scenario::CheckManifest("fuzz.yaml", manifest.line, manifest.object, &notes).ok()) continue;
    validation::Judge(manifest.object);
  }
}

void KubeConfig(std::string_view bytes) { kube::ParseKubeConfig(bytes, "fuzz").status().IgnoreError(); }

void Certificate(std::string_view bytes) {
  x509::ParseCertificates(bytes, "fuzz").status().IgnoreError();
  x509::Certificate::FromDer(bytes, "fuzz").status().IgnoreError();
  x509::TrustBundle::FromPem(bytes, "fuzz").status().IgnoreError();
  x509::KeyPair::FromPem(bytes, "fuzz").status().IgnoreError();
  x509::ParseCsr(bytes, "fuzz").status().IgnoreError();
}

// A token in the first line, a key set behind it.
void Jwt(std::string_view bytes) {
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(bytes.data(), bytes.size()), absl::MaxSplits('\n', 1));
  const envoysim::JwtToken token = envoysim::JwtToken::Parse(parts[0]);
  kube::TokenAuthority(1, "cluster1").Read(parts[0]).status().IgnoreError();
  if (parts.size() < 2) return;
  validation::KeySetError(parts[1]);
  for (const bool keeps_broken : {false, true}) {
    const auto keys = envoysim::JwtKeySet::Parse(parts[1], keeps_broken);
    if (token.status == envoysim::JwtStatus::kOk) keys.Verify(token);
  }
}

envoysim::AccessLogEntry Entry(const envoysim::RequestSpec& request) {
  envoysim::AccessLogEntry entry;
  entry.request = &request;
  entry.http = true;
  entry.code = 200;
  entry.end = Time{} + 5ms;
  return entry;
}

void Cel(std::string_view bytes) {
  cel::CelSyntaxError(bytes, cel::CelWords::kGo);
  const auto expression = envoysim::LogExpression::Make(bytes, envoysim::ExtensionSet::kStock);
  const envoysim::RequestSpec request;
  if (expression.ok()) (*expression)->Holds(Entry(request));
}

// A format in the first line; lines to read by it behind.
void AccessLog(std::string_view bytes) {
  const std::vector<std::string> lines = absl::StrSplit(absl::string_view(bytes.data(), bytes.size()), '\n');
  const envoysim::RequestSpec request;
  for (const auto set : {envoysim::ExtensionSet::kStock, envoysim::ExtensionSet::kIstioProxy}) {
    const auto format = envoysim::AccessLogFormat::MakeText(lines[0] + "\n", false, set);
    std::string line;
    if (format.ok()) format->Write(Entry(request), &line);
  }
  importing::AccessLine read;
  if (const auto format = importing::AccessFormat::Parse(lines[0]); format.ok()) {
    for (const std::string& line : lines) format->Read(line, read);
  }
  for (const importing::AccessFormat& format : importing::AccessFormat::Known()) {
    for (const std::string& line : lines) format.Read(line, read);
  }
}

void EventLog(std::string_view bytes) {
  const TheirFile file(bytes, "log.wtlog");
  auto log = replay::LogReader::Open(file.path());
  if (log.ok()) (*log)->Verify().status().IgnoreError();
}

// Logs of istiods and proxies, dumps, archives: whatever `import` is pointed at.
void Evidence(std::string_view bytes) {
  const TheirFile file(bytes, "evidence");
  importing::ImportOptions options;
  options.sources = {file.path()};
  importing::Import(options).status().IgnoreError();
}

// "METHOD target", the content's type, and the body behind an empty line; then the cluster's controllers get a while.
void KubeRequest(std::string_view bytes) {
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(bytes.data(), bytes.size()), absl::MaxSplits("\n\n", 1));
  const std::vector<std::string> head = absl::StrSplit(parts[0], '\n');
  const std::vector<std::string> line = absl::StrSplit(head[0], absl::MaxSplits(' ', 1));
  sim::Kernel kernel(1);
  const kube::TokenAuthority tokens(1, "cluster1");
  fakekube::ClusterOptions options;
  options.name = "cluster1";
  options.nodes = {{"node1", "r1", "z1", ""}};
  fakekube::Cluster cluster(kernel.NewHost("cluster1", 0, nullptr), options, nullptr, nullptr);
  fakekube::http::RestOptions rest;
  rest.tokens = &tokens;
  fakekube::http::RestApi api(cluster.api(), rest);
  fakekube::http::Request request;
  request.method = line[0];
  if (line.size() > 1) {
    const size_t mark = line[1].find('?');
    request.path = line[1].substr(0, mark);
    if (mark != std::string::npos) request.query = line[1].substr(mark + 1);
  }
  request.content_type = head.size() > 1 ? head[1] : "application/json";
  request.accept = head.size() > 2 ? head[2] : "application/json";
  if (parts.size() > 1) request.body = parts[1];
  fakekube::http::Response response = api.Handle(request);
  if (response.watch == nullptr) {
    response.Text();
  } else {
    response.watch->Start([](const fakekube::http::Line&) {}, [] {});
  }
  kernel.RunUntil(kernel.Now() + 10s);
}

// A resource as an istiod, or an EnvoyFilter, may send it: Any in protobuf's JSON, or an Any's bytes.
void XdsResource(std::string_view bytes) {
  google::protobuf::Any any;
  const std::string text(bytes);
  if (!google::protobuf::util::JsonStringToMessage(text, &any).ok() && !any.ParseFromString(text)) return;
  for (const auto set : {envoysim::ExtensionSet::kStock, envoysim::ExtensionSet::kIstioProxy}) {
    const envoysim::Extensions extensions(set, {}, &envoysim::AllFilters());
    if (envoy::config::cluster::v3::Cluster cluster; any.UnpackTo(&cluster)) {
      envoysim::CompileCluster(cluster, {}, extensions).status().IgnoreError();
    } else if (envoy::config::listener::v3::Listener listener; any.UnpackTo(&listener)) {
      envoysim::CompileListener(listener, {}, extensions).status().IgnoreError();
    } else if (envoy::config::route::v3::RouteConfiguration routes; any.UnpackTo(&routes)) {
      envoysim::CompileRoutes(routes, {}, extensions, false).status().IgnoreError();
    }
  }
}

// What a proxy says of itself when it connects: its id in the first line, its metadata behind.
void XdsNode(std::string_view bytes) {
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(bytes.data(), bytes.size()), absl::MaxSplits('\n', 1));
  pilot::ParseServiceNode(parts[0], ParseJson(parts.size() > 1 ? parts[1] : "{}")).status().IgnoreError();
}

// A log's input: its kind in the first line, its body behind.
void Input(std::string_view bytes) {
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(bytes.data(), bytes.size()), absl::MaxSplits('\n', 1));
  if (parts.size() < 2) return;
  const auto input = sim::Input::Parse(parts[0], ParseJson(parts[1]));
  if (!input.ok()) return;
  input->cluster();
  input->AsItsTextSays().status().IgnoreError();
}

void Lua(std::string_view bytes) { envoysim::LuaVm::Load(std::string(bytes)).status().IgnoreError(); }

// Small texts within larger ones.
void Words(std::string_view bytes) {
  ParseDuration(bytes);
  ParseSignedDuration(bytes);
  ParseGoDuration(bytes);
  ParseGoUrl(bytes);
  IpAddress::Parse(bytes).status().IgnoreError();
  SocketAddress::Parse(bytes).status().IgnoreError();
  IpPrefix::Parse(bytes).status().IgnoreError();
  kube::LabelSelector::Parse(bytes).status().IgnoreError();
  kube::ParseRfc3339(bytes);
  fakekube::http::Query::Parse(bytes).status().IgnoreError();
}

constexpr Border kBorders[] = {
    {"scenario", Scenario, 8},
    {"manifest", Manifest, 4},
    {"kubeconfig", KubeConfig, 2},
    {"certificate", Certificate, 4},
    {"jwt", Jwt, 1},
    {"cel", Cel, 1},
    {"access_log", AccessLog, 2},
    {"event_log", EventLog, 10},
    {"evidence", Evidence, 10},
    {"kube_request", KubeRequest, 10},
    {"envoy_filter", EnvoyFilterPatches, 50},
    {"http", HttpBytes, 20},
    {"grpc", GrpcMessages, 50},
    {"input", Input, 1},
    {"xds_resource", XdsResource, 4},
    {"xds_node", XdsNode, 1},
    {"lua", Lua, 4},
    {"words", Words, 1},
    {"mesh_config", MeshSettings, 4},
    {"injector", Injector, 20},
    {"schema_rules", SchemaRules, 4},
    {"csr_arguments", CsrArguments, 4},
    {"core_dns", CoreDns, 4},
    {"dns", DnsMessages, 1},
    {"installer", Installers, 20},
    {"fleet", FleetPage, 8},
    {"log_store", LogStores, 4},
    {"small_settings", SmallSettings, 1},
};

}  // namespace

std::span<const Border> Borders() { return kBorders; }

}  // namespace wavetank::fuzz

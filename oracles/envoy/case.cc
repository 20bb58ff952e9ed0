#include "oracles/envoy/case.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/json_text.h"
#include "core/envoyapi/descriptors.h"
#include "fmt/format.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"
#include "nlohmann/json.hpp"

namespace wavetank::envoydiff {
namespace {

using envoysim::XdsType;
using Json = nlohmann::json;

constexpr char kHcm[] =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

// Thrown and caught within this file.
struct Bad {
  std::string why;
};

Json SocketAddressJson(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) throw Bad{fmt::format("'{}' is no IP:PORT", address)};
  return {{"socket_address",
           {{"address", address.substr(0, colon)}, {"port_value", std::stoi(address.substr(colon + 1))}}}};
}

Json Assignment(const std::string& name, const Json& hosts, const Json& locality_weights) {
  std::map<std::pair<int, std::string>, Json> groups;
  std::vector<std::pair<int, std::string>> order;
  for (const std::string text : hosts) {
    const std::vector<std::string> words = absl::StrSplit(text, ' ');
    Json endpoint = {{"endpoint", {{"address", SocketAddressJson(words[0])}}}};
    int priority = 0;
    std::string locality;
    for (size_t i = 1; i < words.size(); ++i) {
      const std::string& w = words[i];
      if (w[0] == 'w') {
        endpoint["load_balancing_weight"] = std::stoi(w.substr(1));
      } else if (w[0] == 'p') {
        priority = std::stoi(w.substr(1));
      } else if (w[0] == '@') {
        locality = w.substr(1);
      } else {
        endpoint["health_status"] = w;
      }
    }
    const std::pair<int, std::string> key{priority, locality};
    if (!groups.contains(key)) order.push_back(key);
    groups[key].push_back(std::move(endpoint));
  }
  Json out = {{"cluster_name", name}, {"endpoints", Json::array()}};
  for (const auto& key : order) {
    Json group = {{"priority", key.first}, {"lb_endpoints", groups[key]}};
    if (!key.second.empty()) group["locality"] = {{"region", key.second}};
    if (locality_weights.contains(key.second)) group["load_balancing_weight"] = locality_weights[key.second];
    out["endpoints"].push_back(std::move(group));
  }
  return out;
}

// `json` without `keys`, merged over `base`.
Json Merged(Json base, Json json, std::initializer_list<const char*> keys) {
  for (const char* k : keys) json.erase(k);
  base.merge_patch(json);
  return base;
}

// A secret of the agent's, as Istio's resources ask for it.
Json SdsSecret(const std::string& name) {
  return {{"name", name},
          {"sds_config",
           {{"resource_api_version", "V3"},
            {"initial_fetch_timeout", "0s"},
            {"api_config_source",
             {{"api_type", "GRPC"},
              {"transport_api_version", "V3"},
              {"set_node_on_first_message_only", true},
              {"grpc_services", {{{"envoy_grpc", {{"cluster_name", "sds-grpc"}}}}}}}}}}};
}

// "mtls" of a cluster or listener as a transport socket.
Json MutualTls(const Json& json, bool upstream) {
  const Json versions = json.value("versions", Json{"TLSv1_2", "TLSv1_3"});
  Json common = {
      {"tls_params",
       {{"tls_minimum_protocol_version", versions.at(0)}, {"tls_maximum_protocol_version", versions.at(1)}}}};
  const Json alpn = upstream ? Json{"istio-peer-exchange", "istio"} : Json{"h2", "http/1.1"};
  if (json.contains("ciphers")) common["tls_params"]["cipher_suites"] = json["ciphers"];
  common["alpn_protocols"] = json.value("alpn", alpn);
  if (json.contains("certificate")) common["tls_certificate_sds_secret_configs"] = {SdsSecret(json["certificate"])};
  if (json.contains("curves")) common["tls_params"]["ecdh_curves"] = json["curves"];
  Json validation = json.value("validation", Json::object());
  for (const std::string san : json.value("sans", Json::array())) {
    validation["match_subject_alt_names"].push_back({{san.ends_with("/") ? "prefix" : "exact", san}});
  }
  if (json.contains("root")) {
    common["combined_validation_context"] = {{"default_validation_context", validation},
                                             {"validation_context_sds_secret_config", SdsSecret(json["root"])}};
  } else if (json.contains("validation")) {
    common["validation_context"] = validation;
  }
  const std::string type = upstream ? "UpstreamTlsContext" : "DownstreamTlsContext";
  Json context = {{"@type", "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3." + type},
                  {"common_tls_context", common}};
  if (!upstream) context["require_client_certificate"] = json.value("require", true);
  if (upstream && json.contains("sni")) context["sni"] = json["sni"];
  return {{"name", "envoy.transport_sockets.tls"}, {"typed_config", context}};
}

Json Expand(XdsType type, Json json) {
  if (json.contains("mtls")) {
    const Json socket = MutualTls(json["mtls"], type == XdsType::kCds);
    json.erase("mtls");
    json = Expand(type, json);
    if (type == XdsType::kCds) json["transport_socket"] = socket;
    for (Json& chain : json["filter_chains"]) {
      if (type == XdsType::kLds && !chain.contains("transport_socket")) chain["transport_socket"] = socket;
    }
    if (type == XdsType::kCds) json.erase("filter_chains");
    return json;
  }
  const Json ads = {{"ads", Json::object()}, {"resource_api_version", "V3"}};
  switch (type) {
    case XdsType::kCds:
      if (json.contains("static")) {
        return Merged({{"name", json["static"]},
                       {"type", "STATIC"},
                       {"connect_timeout", "1s"},
                       {"load_assignment", Assignment(json["static"], json.value("hosts", Json::array()),
                                                      json.value("locality_weights", Json::object()))}},
                      json, {"static", "hosts", "locality_weights"});
      }
      if (json.contains("eds")) {
        return Merged({{"name", json["eds"]},
                       {"type", "EDS"},
                       {"connect_timeout", "1s"},
                       {"eds_cluster_config", {{"eds_config", ads}}}},
                      json, {"eds"});
      }
      return json;
    case XdsType::kEds:
      if (!json.contains("eds")) return json;
      return Merged(
          Assignment(json["eds"], json.value("hosts", Json::array()), json.value("locality_weights", Json::object())),
          json, {"eds", "hosts", "locality_weights"});
    case XdsType::kLds: {
      if (json.contains("tcp")) {
        const Json proxy = {{"@type", "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"},
                            {"stat_prefix", json["tcp"]},
                            {"cluster", json["cluster"]}};
        return Merged({{"name", json["tcp"]},
                       {"address", SocketAddressJson(json["at"])},
                       {"filter_chains",
                        {{{"filters", {{{"name", "envoy.filters.network.tcp_proxy"}, {"typed_config", proxy}}}}}}}},
                      json, {"tcp", "at", "cluster"});
      }
      if (!json.contains("http")) return json;
      Json manager = {{"@type", kHcm}, {"stat_prefix", json["http"]}};
      if (json.contains("rds")) {
        manager["rds"] = {{"route_config_name", json["rds"]}, {"config_source", ads}};
      } else {
        Json hosts = json.value("virtual_hosts", Json::array());
        if (json.contains("to")) {
          Json route = {{"cluster", json["to"]}, {"timeout", "0s"}};
          if (json.contains("route")) route.merge_patch(json["route"]);
          hosts = {{{"name", "all"},
                    {"domains", {"*"}},
                    {"routes", {{{"name", "default"}, {"match", {{"prefix", "/"}}}, {"route", route}}}}}};
        }
        manager["route_config"] = {{"name", json["http"]}, {"virtual_hosts", hosts}};
      }
      manager["http_filters"] = json.value("filters", Json::array());
      manager["http_filters"].push_back(
          {{"name", "envoy.filters.http.router"},
           {"typed_config", {{"@type", "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}}});
      if (json.contains("manager")) manager.merge_patch(json["manager"]);
      return Merged(
          {{"name", json["http"]},
           {"address", SocketAddressJson(json["at"])},
           {"filter_chains",
            {{{"filters", {{{"name", "envoy.filters.network.http_connection_manager"}, {"typed_config", manager}}}}}}}},
          json, {"http", "at", "to", "route", "virtual_hosts", "rds", "filters", "manager"});
    }
    case XdsType::kRds:
    case XdsType::kSds:
    case XdsType::kEcds:
      return json;
  }
  return json;
}

// By Envoy's descriptors: what stands in an Any may be of any type of its API.
std::string Parse(std::string_view type, const Json& json) {
  const std::unique_ptr<google::protobuf::Message> message = pilot::NewEnvoyMessage(type);
  if (message == nullptr) throw Bad{fmt::format("no type '{}'", type)};
  const auto status = google::protobuf::util::JsonStringToMessage(JsonText(json), message.get());
  if (!status.ok()) throw Bad{status.ToString()};
  return message->SerializeAsString();
}

std::string Serialise(XdsType type, const Json& json) {
  switch (type) {
    case XdsType::kCds:
      return Parse("envoy.config.cluster.v3.Cluster", json);
    case XdsType::kEds:
      return Parse("envoy.config.endpoint.v3.ClusterLoadAssignment", json);
    case XdsType::kLds:
      return Parse("envoy.config.listener.v3.Listener", json);
    case XdsType::kRds:
      return Parse("envoy.config.route.v3.RouteConfiguration", json);
    case XdsType::kEcds:
      return Parse("envoy.config.core.v3.TypedExtensionConfig", json);
    case XdsType::kSds:  // cases hold none
      break;
  }
  return {};
}

constexpr std::pair<const char*, XdsType> kTypes[] = {{"clusters", XdsType::kCds},
                                                      {"endpoints", XdsType::kEds},
                                                      {"listeners", XdsType::kLds},
                                                      {"routes", XdsType::kRds},
                                                      {"extensions", XdsType::kEcds}};

World ParseWorld(const Json& json) {
  World world;
  for (const auto& [key, list] : json.items()) {
    if (key == "remove" || key == "secrets") continue;
    const auto* type =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&, k = key](const auto& t) { return t.first == k; });
    if (type == std::end(kTypes)) throw Bad{fmt::format("unknown resource type '{}'", key)};
    for (const Json& one : list) {
      const Json full = Expand(type->second, one);
      const std::string name = full.value(type->second == XdsType::kEds ? "cluster_name" : "name", "");
      world[type->second][name] = Serialise(type->second, full);
    }
  }
  return world;
}

Secrets ParseSecrets(const Json& json) {
  absl::StatusOr<Secrets> out = MakeSecrets(json);
  if (!out.ok()) throw Bad{std::string(out.status().message())};
  return *std::move(out);
}

Names ParseNames(const Json& json) {
  constexpr std::pair<const char*, NameAnswer::Kind> kKinds[] = {{"nxdomain", NameAnswer::Kind::kUnknown},
                                                                 {"empty", NameAnswer::Kind::kAddresses},
                                                                 {"servfail", NameAnswer::Kind::kFailure},
                                                                 {"silent", NameAnswer::Kind::kSilence}};
  Names out;
  for (const auto& [name, value] : json.items()) {
    const Json answer = value.is_object() ? value.at("answer") : value;
    NameAnswer& a = out[name];
    if (value.is_object()) {
      a.delay_ms = value.value("ms", 0);
      a.ttl_seconds = value.value("ttl", a.ttl_seconds);
    }
    const auto* kind =
        std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& k) { return answer == k.first; });
    if (kind != std::end(kKinds)) {
      a.kind = kind->second;
    } else {
      a.addresses = answer.is_array() ? answer.get<std::vector<std::string>>() : std::vector{answer.get<std::string>()};
    }
  }
  return out;
}

ClientTls ParseClientTls(const Json& json, bool http2) {
  ClientTls out;
  out.sni = json.value("sni", "");
  out.certificate = json.value("certificate", "");
  out.root = json.value("root", "");
  out.alpn = json.value("alpn", std::vector<std::string>{http2 ? "h2" : "http/1.1"});
  const Json versions = json.value("versions", Json{"TLSv1_2", "TLSv1_3"});
  const auto minor = [](const std::string& text) { return text.back() - '0'; };
  out.lowest_version = minor(versions.at(0));
  out.highest_version = minor(versions.at(1));
  return out;
}

ClientProxyProtocol ParseProxyProtocol(const Json& json) {
  if (json.is_number()) return {json.get<int>(), "", ""};
  return {json.value("version", 1), json.at("source"), json.at("destination")};
}

// How a client speaks; what it cannot do at once is an error.
void ParseClient(const Json& r, Requests* out) {
  out->http10 = r.value("http10", false);
  out->http2 = r.value("http2", false);
  out->grpc = r.value("grpc", false);
  if (out->grpc) {
    out->http2 = true;
    out->method = "POST";
    out->headers.emplace_back("content-type", "application/grpc");
    out->headers.emplace_back("te", "trailers");
    for (const char* name : {"grpc-status", "grpc-message"}) out->show.emplace_back(name);
  }
  if (r.contains("tls")) out->tls = ParseClientTls(r["tls"], out->http2);
  if (out->http10 && (out->http2 || out->tls || r.value("keep_alive", false))) {
    throw Bad{"http10: in clear text, and not kept"};
  }
  if (r.contains("proxy_protocol")) out->proxy_protocol = ParseProxyProtocol(r["proxy_protocol"]);
  if (out->proxy_protocol && (out->tls || out->http2)) throw Bad{"proxy_protocol: of HTTP/1.1 in clear text only"};
  if (out->tls && out->http2 && std::find(out->tls->alpn.begin(), out->tls->alpn.end(), "h2") == out->tls->alpn.end()) {
    throw Bad{"http2 with TLS: alpn lacks h2"};
  }
  out->background = r.value("background", false);
  out->anonymous = r.value("anonymous", false);
  out->interval_ms = r.value("interval_ms", 0);
  out->jitter_ms = r.value("jitter_ms", 0);
}

Step ParseStep(const Json& json) {
  Step step;
  if (json.contains("requests")) {
    const Json& r = json["requests"];
    step.kind = Step::Kind::kRequests;
    step.requests.to = r.at("to");
    step.requests.from = r.value("from", "");
    step.requests.count = r.value("count", 1);
    step.requests.parallel = r.value("parallel", 1);
    step.requests.keep_alive = r.value("keep_alive", true);
    step.requests.method = r.value("method", "GET");
    step.requests.host = r.value("host", "x");
    step.requests.path = r.value("path", "/");
    if (r.contains("headers")) {
      for (const auto& [name, value] : r["headers"].items()) {
        for (const Json& one : value.is_array() ? value : Json::array({value})) {
          step.requests.headers.emplace_back(name, one);
        }
      }
    }
    ParseClient(r, &step.requests);
    const Json behind = r.value("trailers", Json::object());
    for (const auto& [name, value] : behind.items()) step.requests.trailers.emplace_back(name, value);
    if (!step.requests.trailers.empty()) {
      if (step.requests.http2 || step.requests.http10 || step.requests.tls || r.contains("body_ms")) {
        throw Bad{"trailers: of HTTP/1.1 in clear text, behind a body that comes at once"};
      }
      step.requests.headers.emplace_back("transfer-encoding", "chunked");
      step.requests.chunk = r.value("body", 1);
    } else if (const int bytes = r.value("body", 0); bytes > 0) {
      step.requests.headers.emplace_back("content-length", std::to_string(bytes));
    }
    step.requests.body_ms = r.value("body_ms", 0);
    step.requests.body_pieces = r.value("body_pieces", 1);
    if (step.requests.body_ms < 0 || step.requests.body_pieces < 1) {
      throw Bad{"body_ms: no negative number; body_pieces: 1 or more"};
    }
    if (step.requests.body_ms > 0 && (step.requests.http2 || step.requests.tls || r.value("body", 0) < 1)) {
      throw Bad{"body_ms: of HTTP/1.1 in clear text with a body"};
    }
    for (const std::string name : r.value("show", Json::array())) step.requests.show.push_back(name);
    step.requests.upgrade = r.value("upgrade", "");
    if (!step.requests.upgrade.empty() && (step.requests.http2 || step.requests.http10 || step.requests.tls)) {
      throw Bad{"upgrade: of HTTP/1.1 in clear text"};
    }
  } else if (json.contains("push")) {
    step.kind = Step::Kind::kPush;
    step.push.upserts = ParseWorld(json["push"]);
    step.push.secrets = ParseSecrets(json["push"].value("secrets", Json::object()));
    if (json["push"].contains("remove")) {
      for (const auto& [key, type] : kTypes) {
        for (const std::string name : json["push"]["remove"].value(key, Json::array())) {
          step.push.removals.emplace_back(type, name);
        }
      }
    }
  } else if (json.contains("backend")) {
    const Json& b = json["backend"];
    step.kind = Step::Kind::kBackend;
    step.backend = {b.at("name"),
                    b.value("up", true),
                    b.value("silent", false),
                    b.value("code", 200),
                    b.value("delay_ms", 0),
                    b.value("authorizer", false),
                    b.value("allow", false),
                    {},
                    b.value("echo", std::vector<std::string>{}),
                    b.value("body", 0),
                    b.value("body_ms", 0),
                    b.value("grpc_status", 0),
                    b.value("grpc_message", ""),
                    {},
                    b.value("upgrade", false)};
    const Json behind = b.value("trailers", Json::object());
    for (const auto& [name, value] : behind.items()) step.backend.trailers.emplace_back(name, value);
    const Json said = b.value("headers", Json::object());
    for (const auto& [name, value] : said.items()) {
      step.backend.headers.emplace_back(name, value);
    }
  } else if (json.contains("dns")) {
    step.kind = Step::Kind::kNames;
    step.names = ParseNames(json["dns"]);
  } else if (json.contains("join")) {
    step.kind = Step::Kind::kJoin;
  } else if (json.contains("wait_ms")) {
    step.wait_ms = json["wait_ms"];
  } else {
    throw Bad{fmt::format("unknown step {}", JsonText(json))};
  }
  return step;
}

std::map<std::string, std::vector<envoysim::ServiceLimit>> ParseLimiters(const Json& json) {
  std::map<std::string, std::vector<envoysim::ServiceLimit>> out;
  for (const auto& [name, limits] : json.items()) {
    for (const Json& limit : limits) {
      envoysim::ServiceLimit& made = out[name].emplace_back();
      for (const Json& pair : limit.at("descriptor")) made.descriptor.emplace_back(pair.at(0), pair.at(1));
      made.requests = limit.at("requests");
      made.window_seconds = limit.value("window", 60);
      made.name = limit.value("name", "");
    }
  }
  return out;
}

Case ParseCase(Json json) {
  Case c;
  c.tokens = CaseTokens(json.value("keys", Json::object()), json.value("tokens", Json::object()));
  c.tokens.ExpandKeys(&json);
  c.delta = json.value("protocol", "sotw") == "delta";
  const std::string compare = json.value("compare", "exact");
  if (compare != "exact" && compare != "about" && compare != "statistical") {
    throw Bad{fmt::format("compare: '{}' is none of exact, about, statistical", compare)};
  }
  c.statistical = compare == "statistical";
  c.counts_about = compare == "about";
  c.answers = json.value("answers", true);
  c.compare_ads = json.value("compare_ads", true);
  c.compare_errors = json.value("compare_errors", true);
  c.draws = json.value("draws", 1);
  c.secrets = ParseSecrets(json.value("secrets", Json::object()));
  for (const char* part : {"resources", "steps"}) {
    if (!json.contains(part)) continue;
    if (const absl::Status s = ExpandSecrets(c.secrets, &json[part]); !s.ok()) throw Bad{std::string(s.message())};
  }
  c.resources = ParseWorld(json.value("resources", Json::object()));
  c.redirect = json.value("redirect", std::map<std::string, int>{});
  c.own_network = !c.redirect.empty();
  if (json.contains("dns")) c.names = ParseNames(json["dns"]);
  const Json backends = json.value("backends", Json::object());
  for (const auto& [name, address] : backends.items()) c.backends[name] = address;
  for (const Json& name : json.value("grpc_authorizers", Json::array())) c.grpc_authorizers.insert(name);
  for (const Json& name : json.value("grpc_backends", Json::array())) c.grpc_backends.insert(name);
  c.rate_limiters = ParseLimiters(json.value("rate_limiters", Json::object()));
  for (const Json& step : json.value("steps", Json::array())) c.steps.push_back(ParseStep(step));
  c.stats = json.value("stats", std::vector<std::string>{});
  return c;
}

absl::Status ReadCases(std::string text, const std::string& path, const std::string& network, std::vector<Case>* out) {
  std::string name;
  try {
    const Json file = Json::parse(absl::StrReplaceAll(text, {{"127.77.0.", network}}));
    for (const Json& json : file.at("cases")) {
      name = json.at("name");
      Case c = ParseCase(json);
      c.name_server = network + "53:10053";
      c.file = path;
      c.name = name;
      c.binds_every_address = json.dump().find("\"0.0.0.0\"") != std::string::npos;
      out->push_back(std::move(c));
    }
  } catch (const Bad& bad) {
    return absl::InvalidArgumentError(fmt::format("{}: case '{}': {}", path, name, bad.why));
  } catch (const std::exception& e) {
    return absl::InvalidArgumentError(fmt::format("{}: case '{}': {}", path, name, e.what()));
  }
  return absl::OkStatus();
}

absl::Status LoadFile(const std::string& path, const std::string& network, std::vector<Case>* out) {
  std::ifstream in(path);
  if (!in) return absl::NotFoundError(fmt::format("{}: cannot be read", path));
  std::stringstream text;
  text << in.rdbuf();
  return ReadCases(text.str(), path, network, out);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> UpgradeHeaders(const std::string& type) {
  return {{"connection", "Upgrade"}, {"upgrade", type}};
}

std::string PaddedBody(std::string text, int bytes) {
  if (static_cast<int>(text.size()) < bytes) text.append(static_cast<size_t>(bytes) - text.size(), '.');
  return text;
}

std::string EchoBody(const std::string& name, const std::vector<std::string>& echo,
                     const std::vector<std::optional<std::string>>& values) {
  std::string out = name;
  for (size_t i = 0; i < echo.size(); ++i) out += fmt::format(" {}={}", echo[i], values[i].value_or("-"));
  return out;
}

absl::StatusOr<std::vector<Case>> MakeCases(const Json& cases, const std::string& source, const std::string& network) {
  std::vector<Case> out;
  if (absl::Status s = ReadCases(Json{{"cases", cases}}.dump(), source, network, &out); !s.ok()) return s;
  return out;
}

absl::StatusOr<std::vector<Case>> LoadCases(const std::string& path, const std::string& network) {
  std::vector<Case> out;
  std::vector<std::string> files;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(path);
  }
  for (const std::string& file : files) {
    if (const absl::Status status = LoadFile(file, network, &out); !status.ok()) return status;
  }
  if (out.empty()) return absl::NotFoundError(fmt::format("{}: no cases", path));
  return out;
}

}  // namespace wavetank::envoydiff

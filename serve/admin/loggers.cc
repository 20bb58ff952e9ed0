#include "serve/admin/loggers.h"

#include <map>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "fmt/format.h"

namespace wavetank::serve {
namespace {

// envoy: source/common/common/logger.h, ALL_LOGGER_IDS, in its order: those of 1.26, and what 1.40 has besides. When
// each of the latter came is not looked at: every later release is shown with all of them.
struct Logger {
  const char* name;
  bool later;
};

constexpr Logger kLoggers[] = {
    {"a2a", true},
    {"admin", false},
    {"ai_protocol_manager", true},
    {"alternate_protocols_cache", false},
    {"aws", false},
    {"assert", false},
    {"backtrace", false},
    {"basic_auth", true},
    {"cache_filter", false},
    {"client", false},
    {"config", false},
    {"connection", false},
    {"conn_handler", false},
    {"compression", true},
    {"credential_injector", true},
    {"decompression", false},
    {"dns", false},
    {"dubbo", false},
    {"envoy_bug", false},
    {"ext_authz", false},
    {"ext_proc", false},
    {"rocketmq", false},
    {"file", false},
    {"filter", false},
    {"forward_proxy", false},
    {"geolocation", true},
    {"grpc", false},
    {"happy_eyeballs", false},
    {"hc", false},
    {"health_checker", false},
    {"http", false},
    {"http2", false},
    {"hystrix", false},
    {"init", false},
    {"io", false},
    {"jwt", false},
    {"json_rpc", true},
    {"kafka", false},
    {"key_value_store", false},
    {"lua", false},
    {"local_rate_limit", true},
    {"main", false},
    {"matcher", false},
    {"mcp", true},
    {"misc", false},
    {"mongo", false},
    {"multi_connection", false},
    {"notification", true},
    {"oauth2", false},
    {"quic", false},
    {"quic_stream", false},
    {"pool", false},
    {"rate_limit_quota", false},
    {"rbac", false},
    {"rds", false},
    {"redis", false},
    {"router", false},
    {"runtime", false},
    {"stats", false},
    {"secret", false},
    {"sse", true},
    {"tap", false},
    {"testing", false},
    {"thrift", false},
    {"tracing", false},
    {"upstream", false},
    {"udp", false},
    {"wasm", false},
    {"websocket", false},
    {"golang", false},
    {"stats_sinks", true},
    {"dynamic_modules", true},
    {"ip_tagging", true},
};

// The value of an argument of the proxy's container.
std::string Argument(const kube::Object& pod, std::string_view name, std::string otherwise) {
  for (const nlohmann::json& container : Items(At(pod.body, {"spec", "containers"}))) {
    if (Text(container, "name") != "istio-proxy") continue;
    const nlohmann::json& arguments = Items(At(container, "args"));
    for (size_t i = 0; i < arguments.size(); ++i) {
      const std::string text = TextOf(arguments[i]);
      if (text == name && i + 1 < arguments.size()) return TextOf(arguments[i + 1]);
      if (text.starts_with(std::string(name) + "=")) return text.substr(name.size() + 1);
    }
  }
  return otherwise;
}

}  // namespace

std::string ActiveLoggers(const kube::Object& pod, std::string_view envoy) {
  // As the agent starts it (istio: pkg/envoy/proxy.go, splitComponentLog()).
  std::string all = "info";
  std::map<std::string, std::string, std::less<>> of;
  const std::vector<std::string> levels = absl::StrSplit(Argument(pod, "--proxyLogLevel", "warning,misc:error"), ',');
  for (const std::string& level : levels) {
    const size_t colon = level.find(':');
    if (colon == level.npos) {
      all = level;
    } else {
      of[level.substr(0, colon)] = level.substr(colon + 1);
    }
  }
  if (of.empty()) {
    const std::vector<std::string> components = absl::StrSplit(Argument(pod, "--proxyComponentLogLevel", ""), ',');
    for (const std::string& level : components) {
      const size_t colon = level.find(':');
      if (colon != level.npos) of[level.substr(0, colon)] = level.substr(colon + 1);
    }
  }
  std::string out = "active loggers:\n";
  for (const Logger& logger : kLoggers) {
    if (logger.later && envoy == "1.26") continue;
    const auto its = of.find(logger.name);
    const std::string& level = its == of.end() ? all : its->second;
    // spdlog's word, whichever Envoy was told (envoy: source/server/options_impl.cc, parseAndValidateLogLevel()).
    out += fmt::format("  {}: {}\n", logger.name, level == "warn" ? "warning" : level);
  }
  return out;
}

}  // namespace wavetank::serve

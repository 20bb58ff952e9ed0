#include "import/skeleton/traffic_parts.h"

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"

namespace wavetank::importing {

using nlohmann::json;

replay::LogInput TrafficInput(const InferredInput& input, const std::string& cluster, const std::string& ns,
                              size_t number, Time at) {
  const json extra = ParseJson(input.extra);
  json body = {{"id", fmt::format("imported-{}", number)},
               {"flow", input.name + " to " + input.host},
               {"from", {{"cluster", cluster}, {"namespace", ns}, {"app", input.name}, {"pod", input.name}}},
               {"host", input.host},
               {"port", Number(extra, "port", 80)},
               {"keepAlive", true},
               {"tcp", At(extra, "tcp") == true},
               {"requests", Number(extra, "requests", 1)},
               {"periodNs", Number(extra, "periodNs", 1'000'000'000)}};
  body["path"] = wavetank::Text(extra, "path", "/");
  if (const std::string method = wavetank::Text(extra, "method", "GET"); method != "GET" && !method.empty()) {
    body["method"] = method;
  }
  return {at, 0, "traffic", std::move(body)};
}

replay::LogInput BehaviourInput(const InferredInput& input, const std::string& cluster, const std::string& ns,
                                const std::string& app, Time at) {
  const json extra = ParseJson(input.extra);
  json body = {{"app", app}};
  if (!cluster.empty()) body["cluster"] = cluster;
  if (!ns.empty()) body["namespace"] = ns;
  for (const char* field : {"version", "answers", "latency"}) {
    if (const json& value = At(extra, field); !value.is_null()) body[field] = value;
  }
  return {at, 0, "behaviour", std::move(body)};
}

}  // namespace wavetank::importing

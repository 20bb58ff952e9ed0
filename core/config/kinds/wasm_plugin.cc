#include "core/config/kinds/wasm_plugin.h"

#include "core/config/kinds/read_message.h"

namespace wavetank::config {
namespace {

struct WasmPortSelector {
  uint32_t number = 0;
};
void ReadMessage(ProtoJson& in, WasmPortSelector& out) { in.Field("number", out.number); }

struct WasmVmConfig {
  std::vector<WasmPlugin::EnvVar> env;
};
void ReadMessage(ProtoJson& in, WasmVmConfig& out) { in.Field("env", out.env); }

}  // namespace

void ReadMessage(ProtoJson& in, WasmPlugin::EnvVar& out) {
  enum class From : uint8_t { kInline, kHost };
  From from = From::kInline;
  in.Field("name", out.name);
  in.Field("value", out.value);
  in.Enum("valueFrom", from, {{"INLINE", From::kInline}, {"HOST", From::kHost}});
  out.from_host = from == From::kHost;
}

void ReadMessage(ProtoJson& in, WasmPlugin::TrafficSelector& out) {
  using Mode = WasmPlugin::Mode;
  in.Enum("mode", out.mode,
          {{"UNDEFINED", Mode::kUndefined},
           {"CLIENT", Mode::kClient},
           {"SERVER", Mode::kServer},
           {"CLIENT_AND_SERVER", Mode::kClientAndServer}});
  std::vector<WasmPortSelector> ports;
  in.Field("ports", ports);
  for (const WasmPortSelector& port : ports) out.ports.push_back(port.number);
}

void ReadMessage(ProtoJson& in, WasmPlugin& out) {
  using Phase = WasmPlugin::Phase;
  using PullPolicy = WasmPlugin::PullPolicy;
  ReadSelector(in, "selector", "matchLabels", out.selector);
  ReadTargets(in, out.targets);
  in.Field("url", out.url);
  in.Field("sha256", out.sha256);
  in.Enum("imagePullPolicy", out.image_pull_policy,
          {{"UNSPECIFIED_POLICY", PullPolicy::kUnspecified},
           {"IfNotPresent", PullPolicy::kIfNotPresent},
           {"Always", PullPolicy::kAlways}});
  in.Field("imagePullSecret", out.image_pull_secret);
  in.Field("verificationKey", out.verification_key);
  in.Field("pluginName", out.plugin_name);
  if (const nlohmann::json* value = in.Find("pluginConfig")) {
    if (value->is_object()) {
      out.plugin_config = *value;
    } else {
      in.Fail("pluginConfig", "expected a mapping");
    }
  }
  in.Enum("phase", out.phase,
          {{"UNSPECIFIED_PHASE", Phase::kUnspecified},
           {"AUTHN", Phase::kAuthn},
           {"AUTHZ", Phase::kAuthz},
           {"STATS", Phase::kStats}});
  in.Field("priority", out.priority);
  using FailStrategy = WasmPlugin::FailStrategy;
  in.Enum("failStrategy", out.fail_strategy,
          {{"FAIL_CLOSE", FailStrategy::kClose},
           {"FAIL_OPEN", FailStrategy::kOpen},
           {"FAIL_RELOAD", FailStrategy::kReload}});
  enum class Type : uint8_t { kUnspecified, kHttp, kNetwork };
  Type type = Type::kUnspecified;
  in.Enum("type", type,
          {{"UNSPECIFIED_PLUGIN_TYPE", Type::kUnspecified}, {"HTTP", Type::kHttp}, {"NETWORK", Type::kNetwork}});
  out.network = type == Type::kNetwork;
  WasmVmConfig vm;
  in.Field("vmConfig", vm);
  out.env = std::move(vm.env);
  in.Field("match", out.match);
}

}  // namespace wavetank::config

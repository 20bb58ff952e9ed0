#include "fakes/envoy/extensions/extensions.h"

#include <algorithm>
#include <array>
#include <string>

#include "envoy/extensions/filters/http/wasm/v3/wasm.pb.h"
#include "fakes/envoy/extensions/catalogue.h"
#include "fakes/envoy/match/durations.h"
#include "fmt/format.h"
#include "google/protobuf/any.pb.h"
#include "google/protobuf/util/json_util.h"
#include "udpa/type/v1/typed_struct.pb.h"

namespace wavetank::envoysim {
namespace {

using std::string_view_literals::operator""sv;

// They only look on: to leave them out changes nothing that anybody is answered.
constexpr std::array kObservers = {
    "envoy.extensions.filters.http.grpc_stats.v3.FilterConfig"sv,
    "envoy.tcp.metadataexchange.config.MetadataExchange"sv,
    "io.istio.http.peer_metadata.Config"sv,
    "stats.PluginConfig"sv,
};

// What istio-proxy has beside Envoy's own, by the minor release of the Envoy in it.
struct IstioExtension {
  std::string_view name;
  uint32_t since = 0, until = UINT32_MAX;  // until: the first without it
  bool In(EnvoyRelease release) const { return release.minor >= since && release.minor < until; }
};

// Of istio-proxy only. (A stock Envoy has Wasm, but none of the plugins that Istio names.) istio/proxy: the folders of
// source/extensions/ at tags 1.18.2 to 1.30.3: network/istio_authn is gone in 1.20, http/authn in 1.21, peer_metadata
// there since 1.19.
constexpr std::array kIstioTypes = {
    IstioExtension{"envoy.extensions.filters.http.wasm.v3.Wasm"},
    IstioExtension{"envoy.extensions.filters.network.wasm.v3.Wasm"},
    IstioExtension{"envoy.tcp.metadataexchange.config.MetadataExchange"},
    IstioExtension{"io.istio.http.peer_metadata.Config", 27},
    IstioExtension{"io.istio.network.authn.Config", 0, 28},
    IstioExtension{"istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig"},
    IstioExtension{"istio.envoy.config.filter.http.authn.v2alpha1.FilterConfig", 0, 29},
    IstioExtension{"stats.PluginConfig"},
};

// Plugins that are compiled in, and run in a null VM. istio/proxy: the folders of extensions/ at the same tags.
constexpr std::array kNullPlugins = {
    IstioExtension{"envoy.wasm.metadata_exchange", 0, 28},
    IstioExtension{"envoy.wasm.null.stackdriver", 0, 31},
};

constexpr uint32_t kNewest = EnvoyRelease().minor;

template <size_t n>
bool Has(const std::array<std::string_view, n>& types, std::string_view type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

const IstioExtension* FindIstio(std::string_view type) {
  const auto found =
      std::find_if(kIstioTypes.begin(), kIstioTypes.end(), [&](const IstioExtension& row) { return row.name == type; });
  return found == kIstioTypes.end() ? nullptr : &*found;
}

// What is compiled into Envoy only measures and exchanges metadata (istio/proxy: extensions/); other modules may do
// anything.
bool IsBuiltInWasm(std::string_view type, const google::protobuf::Any& config) {
  return type.ends_with(".wasm.v3.Wasm") && config.value().find("envoy.wasm.runtime.null") != std::string::npos;
}

// A plugin that the binary had, or will have, and has not: the Wasm filter that names it cannot be made.
bool LacksNullPlugin(EnvoyRelease release, std::string_view type, const google::protobuf::Any& config) {
  if (!IsBuiltInWasm(type, config)) return false;
  return std::any_of(kNullPlugins.begin(), kNullPlugins.end(), [&](const IstioExtension& row) {
    return config.value().find(row.name) != std::string::npos && !row.In(release);
  });
}

bool IsTypedStruct(std::string_view type) {
  return type == "udpa.type.v1.TypedStruct" || type == "xds.type.v3.TypedStruct";
}

}  // namespace

std::string_view TypeName(const google::protobuf::Any& config) {
  const std::string_view url(config.type_url());
  return url.substr(url.rfind('/') + 1);
}

std::string ConfigType(const google::protobuf::Any& config) {
  const std::string_view type = TypeName(config);
  if (!IsTypedStruct(type)) return std::string(type);
  udpa::type::v1::TypedStruct wrapped;  // xds.type.v3 has the same fields
  if (!wrapped.ParseFromString(config.value())) return std::string(type);
  return wrapped.type_url().substr(wrapped.type_url().rfind('/') + 1);
}

namespace {

// Neither InvalidArgument nor OutOfRange, by which a resource takes the whole response with it: what it holds is looked
// at later.
absl::Status CheckDurationsOfExtension(const google::protobuf::Message& message) {
  const absl::Status status = CheckDurations(message);
  return status.ok() ? status : absl::FailedPreconditionError(status.message());
}

}  // namespace

absl::Status UnpackConfig(const google::protobuf::Any& config, google::protobuf::Message* out) {
  const auto refused = [&](std::string_view why) {
    return absl::InvalidArgumentError(fmt::format("Unable to parse JSON as proto ({})", why));
  };
  if (!IsTypedStruct(TypeName(config))) {
    if (TypeName(config) == out->GetDescriptor()->full_name() && out->ParseFromString(config.value())) {
      return CheckDurationsOfExtension(*out);
    }
    if (config.type_url().empty()) return absl::OkStatus();  // named alone: all defaults
    return absl::InvalidArgumentError(
        fmt::format("Unable to unpack as {}: [{}]", out->GetDescriptor()->full_name(), config.type_url()));
  }
  udpa::type::v1::TypedStruct wrapped;
  if (!wrapped.ParseFromString(config.value())) return refused("TypedStruct");
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(wrapped.value(), &json).ok()) return refused("Struct");
  const auto read = google::protobuf::util::JsonStringToMessage(json, out);
  return read.ok() ? CheckDurationsOfExtension(*out) : refused(std::string(read.message()));
}

absl::Status Extensions::Check(std::string_view name, const google::protobuf::Any& config) const {
  const std::string type = ConfigType(config);
  const IstioExtension* const istio = FindIstio(type);
  if (istio == nullptr && HasExtension(release_, type)) return absl::OkStatus();
  if (set_ == ExtensionSet::kIstioProxy) {
    // No istio-proxy has an Envoy as new as the newest one: what is compared with real Envoys takes all there ever was.
    const bool any = release_.minor >= kNewest;
    if (istio != nullptr && (any || istio->In(release_))) {
      if (any || !LacksNullPlugin(release_, type, config)) return absl::OkStatus();
      // envoy: source/extensions/filters/http/wasm/wasm_filter.cc; the plugin's own name, which may be empty.
      envoy::extensions::filters::http::wasm::v3::Wasm wasm;
      const std::string plugin = wasm.ParseFromString(config.value()) ? wasm.config().name() : std::string();
      return absl::InvalidArgumentError(fmt::format("Unable to create Wasm HTTP filter {}", plugin));
    }
    // istio-proxy finds a filter by its name alone.
    if (type.empty() && (name.starts_with("istio") || name.starts_with("envoy."))) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("Didn't find a registered implementation for '{}' with type URL: '{}'", name, type));
}

void Extensions::NoteWithoutEffect(std::string_view kind, const google::protobuf::Any& config) const {
  std::string type = ConfigType(config);
  if (!IsBuiltInWasm(type, config)) NoteWithoutEffect(kind, std::move(type));
}

void Extensions::NoteWithoutEffect(std::string_view kind, std::string type) const {
  if (notes_ != nullptr && !type.empty() && !Has(kObservers, type))
    notes_->insert({std::string(kind), std::move(type)});
}

}  // namespace wavetank::envoysim

#include "fakes/envoy/config/discovered_filter.h"

#include <algorithm>
#include <utility>

#include "envoy/config/core/v3/config_source.pb.h"
#include "envoy/config/core/v3/extension.pb.h"
#include "fakes/envoy/config/filter_registry.h"
#include "fakes/envoy/match/proto_time.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::envoysim {
namespace {

// Envoy: source/common/http/filter_chain_helper.h, MissingConfigFilter
class Missing final : public HttpFilter {
 public:
  FilterStatus OnRequest(HttpStream& stream, Duration lead) const override {
    LocalReply reply;
    reply.code = 500;
    reply.flags = kNoFilterConfigFound;
    stream.Answer(reply, lead);
    return FilterStatus::kStop;
  }
};

}  // namespace

std::shared_ptr<const HttpFilter> MissingFilter() {
  static const auto* const kMissing = new std::shared_ptr<const HttpFilter>(std::make_shared<Missing>());
  return *kMissing;
}

absl::StatusOr<std::shared_ptr<const ExtensionFilter>> CompileExtension(
    const envoy::config::core::v3::TypedExtensionConfig& config, std::string_view stat_prefix,
    const Extensions& binary) {
  auto out = std::make_shared<ExtensionFilter>();
  const Extensions extensions = binary.WithNotes(&out->without_effect);
  const google::protobuf::Any& typed = config.typed_config();
  out->bytes = config.SerializeAsString();
  out->hash = HashBytes(typed.type_url() + typed.value());
  out->type = ConfigType(typed);
  out->link.name = config.name();
  if (absl::Status s = extensions.Check(config.name(), typed); !s.ok()) return s;
  const HttpFilterType* const type = extensions.filters()->Http(out->type, {});
  if (type == nullptr) {
    extensions.NoteWithoutEffect("HTTP filter", typed);
    return out;
  }
  out->link.canonical = std::string(type->name);
  out->terminal = type->terminal;
  absl::StatusOr<std::shared_ptr<const HttpFilter>> made = type->make(typed, {extensions, config.name(), stat_prefix});
  if (!made.ok()) return made.status();
  out->link.filter = *std::move(made);
  return out;
}

absl::Status DiscoveredFilter::TakesType(std::string_view type) const {
  if (std::find(types.begin(), types.end(), type) != types.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("Error: filter config has type URL {} but expect {}.", type, fmt::join(types, ", ")));
}

absl::Status DiscoveredFilter::Takes(const ExtensionFilter& filter) const {
  if (absl::Status s = TakesType(filter.type); !s.ok()) return s;
  // Envoy: source/common/config/utility.h, validateTerminalFilters
  if (filter.terminal && !last) {
    return absl::InvalidArgumentError(
        fmt::format("Error: terminal filter named {} of type {} must be the last filter in a http filter chain.", name,
                    filter.link.canonical));
  }
  if (!filter.terminal && last) {
    return absl::InvalidArgumentError(
        fmt::format("Error: non-terminal filter named {} of type {} is the last filter in a http filter chain.", name,
                    filter.link.canonical.empty() ? name : filter.link.canonical));
  }
  return absl::OkStatus();
}

absl::StatusOr<DiscoveredFilter> CompileDiscovered(std::string_view name, std::string_view stat_prefix,
                                                   const envoy::config::core::v3::ExtensionConfigSource& source,
                                                   bool last, const Extensions& extensions) {
  DiscoveredFilter out;
  if (source.type_urls().empty()) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (ExtensionConfigSourceValidationError.TypeUrls: value must contain at "
        "least 1 item(s))");
  }
  out.id = NextFilterId();
  out.name = std::string(name);
  out.stat_prefix = std::string(stat_prefix);
  out.last = last;
  out.waits = !source.apply_default_config_without_warming();
  if (!out.waits && !source.has_default_config()) {
    return absl::InvalidArgumentError(
        fmt::format("Error: filter config {} applied without warming but has no default config.", name));
  }
  for (const std::string& url : source.type_urls()) {
    google::protobuf::Any named;
    named.set_type_url(url);
    out.types.emplace_back(TypeName(named));
    if (!extensions.Check(name, named).ok()) {
      return absl::InvalidArgumentError(
          fmt::format("Error: no factory found for a required type URL {}.", out.types.back()));
    }
  }
  if (source.config_source().has_initial_fetch_timeout()) {
    out.initial_fetch_timeout = ToDuration(source.config_source().initial_fetch_timeout());
  }
  if (source.has_default_config()) {
    envoy::config::core::v3::TypedExtensionConfig config;
    config.set_name(out.name);
    *config.mutable_typed_config() = source.default_config();
    if (!extensions.Check(name, config.typed_config()).ok()) {
      return absl::InvalidArgumentError(
          fmt::format("Error: cannot find filter factory {} for default filter configuration with type URL {}.", name,
                      config.typed_config().type_url()));
    }
    absl::StatusOr<std::shared_ptr<const ExtensionFilter>> made = CompileExtension(config, stat_prefix, extensions);
    if (!made.ok()) return made.status();
    if (absl::Status s = out.Takes(**made); !s.ok()) return s;
    out.otherwise = *std::move(made);
  }
  return out;
}

}  // namespace wavetank::envoysim

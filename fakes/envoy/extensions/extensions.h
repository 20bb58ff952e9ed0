// What an Envoy's binary has: which filters, transport sockets and other extensions its configuration may name.
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "fakes/envoy/extensions/release.h"

namespace google::protobuf {
class Any;
class Message;
}  // namespace google::protobuf

namespace wavetank::envoysim {

class FilterRegistry;

// Which extensions the binary has.
enum class ExtensionSet : uint8_t {
  kIstioProxy,  // Envoy as Istio ships it: istio.alpn, istio.metadata_exchange, istio_authn, stats, ...
  kStock,       // upstream Envoy: unknown extensions are NACKed
};

class Extensions {
 public:
  // Something that was accepted and has no effect here: "HTTP filter", "envoy.extensions.filters.http.wasm.v3.Wasm".
  struct Note {
    std::string kind, type;
    auto operator<=>(const Note&) const = default;
  };
  using Notes = std::set<Note>;

  // `filters` and `notes` outlive this; nullptr: none, for what is compiled without filters.
  Extensions(ExtensionSet set, EnvoyRelease release = {}, const FilterRegistry* filters = nullptr,  // NOLINT
             Notes* notes = nullptr)
      : set_(set), release_(release), filters_(filters), notes_(notes) {}

  ExtensionSet set() const { return set_; }
  bool stock() const { return set_ == ExtensionSet::kStock; }
  EnvoyRelease release() const { return release_; }
  const FilterRegistry* filters() const { return filters_; }

  // InvalidArgument in Envoy's words if no extension of the binary takes the configuration.
  absl::Status Check(std::string_view name, const google::protobuf::Any& config) const;
  // The same, with notes of its own; they outlive the result.
  Extensions WithNotes(Notes* notes) const { return {set_, release_, filters_, notes}; }
  // Says that such a configuration was accepted and does nothing. `kind`: what it configures, "HTTP filter".
  void NoteWithoutEffect(std::string_view kind, const google::protobuf::Any& config) const;
  void NoteWithoutEffect(std::string_view kind, std::string type) const;

 private:
  ExtensionSet set_;
  EnvoyRelease release_;
  const FilterRegistry* filters_;
  Notes* notes_;
};

// "envoy.extensions.filters.http.router.v3.Router" of a type URL.
std::string_view TypeName(const google::protobuf::Any& config);
// The same of the message that a configuration is meant as: a TypedStruct says so itself.
std::string ConfigType(const google::protobuf::Any& config);
// Unpacks a configuration, of a TypedStruct too. InvalidArgument: it is none of the message's.
absl::Status UnpackConfig(const google::protobuf::Any& config, google::protobuf::Message* out);

}  // namespace wavetank::envoysim

#include "fakes/envoy/proxy/data_plane.h"

#include "fakes/envoy/config/config_store.h"
#include "fakes/envoy/filters/registry.h"
#include "fakes/envoy/proxy/router.h"
#include "fakes/envoy/tls/tls.h"

namespace wavetank::envoysim {

DataPlane::DataPlane(Host& host, Network& network, const Options& options)
    : options_(options),
      fabric_([&] {
        Fabric::Options f;
        f.tcp_hop = options.latencies.tcp_hop;
        return std::make_unique<Fabric>(host, network, f);
      }()),
      configs_(std::make_unique<ConfigStore>(Extensions(options.extensions, options.release, &AllFilters()))),
      tls_(std::make_unique<TlsSessions>()),
      router_(std::make_unique<Router>(*this)) {}

DataPlane::~DataPlane() = default;

void DataPlane::NoteNack(Time at, const std::string& proxy, std::string_view type, const std::string& text) {
  const auto [known, fresh] = known_nacks_.try_emplace({proxy, type, text}, nacks_.size());
  if (fresh) nacks_.push_back({proxy, type, text, at});
  Nack& nack = nacks_[known->second];
  nack.last = at;
  ++nack.count;
}

void DataPlane::NoteScript(Time at, const std::string& proxy, std::string_view level, const std::string& text) {
  for (ScriptLine& line : script_lines_) {
    if (line.proxy != proxy || line.level != level || line.text != text) continue;
    ++line.count;
    return;
  }
  if (script_lines_.size() < kMostScriptLines) script_lines_.push_back({proxy, std::string(level), text, at, 1});
}

void DataPlane::NoteWithoutEffect(const std::string& proxy, const Extensions::Notes& notes) {
  for (const Extensions::Note& note : notes) without_effect_[note].insert(proxy);
}

}  // namespace wavetank::envoysim

// What all parts of one Envoy stand on: its identity, its clock, chance and counters, and how far its life has come.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/host.h"
#include "core/base/random.h"
#include "fakes/envoy/extensions/release.h"
#include "fakes/envoy/match/string_map.h"
#include "fakes/envoy/process/context.h"
#include "fakes/envoy/tcp/fabric.h"
#include "fakes/envoy/tcp/latency.h"

namespace wavetank::envoysim {

class Process {
 public:
  // All but `options` outlive it.
  Process(EnvoyContext& context, Fabric& fabric, const StageLatencies& latencies, const EnvoyOptions& options,
          uint64_t seed, EnvoyRelease release);

  EnvoyContext& context() { return context_; }
  Host& host() { return host_; }
  Fabric& fabric() { return fabric_; }
  const StageLatencies& latencies() const { return latencies_; }
  const EnvoyOptions& options() const { return options_; }
  NameId trace_name() const { return trace_name_; }
  EnvoyRelease release() const { return release_; }

  // A new life, without memory of the one before.
  void Begin();
  void End();
  bool running() const { return running_; }
  // Its first CDS and LDS are in force; it accepts.
  bool live() const { return live_; }
  void set_live() { live_ = true; }
  bool draining() const { return draining_; }
  void Drain() { draining_ = running_; }

  uint32_t life() const { return lives_; }  // which it is, from 1 on
  // The number of one more connection, accepted or opened, as logs of this life tell it.
  // Envoy: source/common/network/connection_impl.cc, next_global_id_
  uint64_t NewConnection() { return connections_++; }
  // Of this life.
  RandomStream NewStream(std::string_view purpose) const;
  // From here on its chance is another's, as if it were another process that came to the same state.
  void DrawAnew(uint64_t as);
  RandomStream& random() { return random_; }
  Duration Draw(const LatencyRange& range);

  uint64_t& Counter(std::string_view name);
  template <typename Each>
  void ForEachCounter(Each each) const {  // in no order
    if (counters_ == nullptr) return;
    for (const auto& [name, value] : *counters_) each(name, value);  // order: the caller's business
  }
  uint64_t counter(std::string_view name) const;  // 0: never incremented

 private:
  EnvoyContext& context_;
  Host& host_;
  Fabric& fabric_;
  const StageLatencies& latencies_;
  const EnvoyOptions options_;
  const uint64_t seed_;
  const EnvoyRelease release_;
  const NameId trace_name_;
  RandomStream random_;
  uint32_t lives_ = 0;
  uint64_t drawn_as_ = 0, connections_ = 0;
  bool running_ = false;
  bool live_ = false;
  bool draining_ = false;
  std::unique_ptr<StringMap<uint64_t>> counters_;
};

}  // namespace wavetank::envoysim

#include "fakes/envoy/process/process.h"

#include "fmt/format.h"

namespace wavetank::envoysim {

Process::Process(EnvoyContext& context, Fabric& fabric, const StageLatencies& latencies, const EnvoyOptions& options,
                 uint64_t seed, EnvoyRelease release)
    : context_(context),
      host_(context.host()),
      fabric_(fabric),
      latencies_(latencies),
      options_(options),
      seed_(seed),
      release_(release),
      trace_name_(host_.Intern(options.name)),
      random_(seed, fmt::format("envoy/{}", options.name)) {}

void Process::Begin() {
  running_ = true;
  ++lives_;
  connections_ = 1;  // the first is its ADS stream's
  random_ = NewStream("main");
}

void Process::End() {
  running_ = live_ = draining_ = false;
  counters_.reset();
}

RandomStream Process::NewStream(std::string_view purpose) const {
  return RandomStream(seed_ ^ drawn_as_, fmt::format("envoy/{}/{}/{}", options_.name, lives_, purpose));
}

void Process::DrawAnew(uint64_t as) {
  drawn_as_ = Mix64(as);
  random_ = NewStream("main");
}

Duration Process::Draw(const LatencyRange& range) {
  if (range.max <= range.min) return range.min;
  return Duration(random_.Between(range.min.count(), range.max.count()));
}

uint64_t& Process::Counter(std::string_view name) {
  if (counters_ == nullptr) counters_ = std::make_unique<StringMap<uint64_t>>();
  const auto it = counters_->find(name);
  if (it != counters_->end()) return it->second;
  return counters_->emplace(std::string(name), 0).first->second;
}

uint64_t Process::counter(std::string_view name) const {
  if (counters_ == nullptr) return 0;
  const auto it = counters_->find(name);
  return it == counters_->end() ? 0 : it->second;
}

}  // namespace wavetank::envoysim
